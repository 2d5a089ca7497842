"""Which tensors of a program in f32 are kept in a narrow float, and what moves them without computing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from torch_mlir import ir as mlir

from eyas.dialects import flow
from eyas.ir.structured import element_type, split_operands
from eyas.ir.transforms import is_transform
from eyas.ir.walk import defining_op, find_ops, is_tensor
from eyas.passes.dispatch.grouping import Role, is_plain_copy, role_of
from eyas.passes.optimize.evaluate_constants import constant_ops

LARGEST = 65504.0
"""The largest finite f16."""

_VIEWS = ("tensor.expand_shape", "tensor.collapse_shape", "tensor.extract_slice", "tensor.cast", "flow.reshape")
_TO_INTEGERS = ("arith.fptosi", "arith.fptoui")


def is_product(op: mlir.Operation) -> bool:
    """A product, convolution or window of floats, which adds up in f32."""
    if len(op.results) != 1 or is_transform(op) or not (role_of(op) is Role.CONTRACTION or _adds_products(op)):
        return False
    floats = (mlir.F32Type, mlir.F16Type, mlir.BF16Type)
    return is_wide(op.results[0]) and all(isinstance(element_type(value), floats) for value in op.operands)


def _adds_products(op: mlir.Operation) -> bool:
    """A product that reads heads where they lie, which upstream does not take for one."""
    if op.name != "linalg.generic" or role_of(op) is not Role.REDUCTION or len(factors_of(op)) != 2:
        return False
    names = [view.operation.name for view in op.regions[0].blocks[0].operations]
    return [name for name in names if name != "arith.extf"] == ["arith.mulf", "arith.addf", "linalg.yield"]


def is_wide(value: mlir.Value) -> bool:
    return is_tensor(value) and isinstance(element_type(value), mlir.F32Type)


def factors_of(product: mlir.Operation) -> list[int]:
    """Positions of the tensors that are multiplied. Of a window only its size is read, and of what tells a product that
    reads heads where they lie how long they are."""
    inputs, _ = split_operands(product)
    if product.name == "linalg.generic":
        arguments = product.regions[0].blocks[0].arguments
        return [i for i, value in enumerate(inputs) if is_tensor(value) and list(arguments[i].uses)]
    return [0] if "pooling" in product.name else [i for i, value in enumerate(inputs) if is_tensor(value)]


def moved_operands(op: mlir.Operation) -> list[mlir.Value] | None:
    """The tensors whose elements an op only moves; None for an op that computes."""
    if op.name in _VIEWS or op.name in ("linalg.transpose", "linalg.broadcast"):
        return [op.operands[0]]
    if op.name == "tensor.concat":
        return list(op.operands)
    if op.name == "tensor.pad":
        return [op.operands[0]] if pad_value(op) is not None else None
    if op.name == "linalg.generic" and len(op.operands) == 2 and is_tensor(op.operands[0]) and is_plain_copy(op):
        return [op.operands[0]]
    return None


def pad_value(pad: mlir.Operation) -> float | None:
    """The constant that a padding is made of, else None."""
    made = defining_op(list(pad.regions[0].blocks[0].operations)[-1].operands[0])
    if made is None or made.name != "arith.constant" or "nofold" in pad.attributes:
        return None
    return mlir.FloatAttr(made.attributes["value"]).value if isinstance(made.results[0].type, mlir.F32Type) else None


@dataclass(frozen=True)
class HalfValues:
    """What is kept narrow: factors of products, tables of weights that rows are taken from, and what lives while a
    product runs. Everything else has its place in registers, or in the rows of one dispatch, and stays as it was."""

    values: set[mlir.Value] = field(default_factory=set)
    large: set[mlir.Value] = field(default_factory=set)
    """Values that may be beyond f16 because a constant in their arithmetic is: what is added to mask scores."""

    @staticmethod
    def of(block: mlir.Block) -> HalfValues:
        ops = [view.operation for view in block.operations]
        found = HalfValues(large=_large(ops))
        products = [position for position, op in enumerate(ops) if is_product(op)]
        for position in products:
            op = ops[position]
            for index in factors_of(op):
                found._add(op.operands[index])
        for op in ops:
            if op.name == "flow.parameter" and _is_table(op):
                found._add(op.results[0])
        constant, exact = constant_ops(block), _exact(ops)
        places = {op: position for position, op in enumerate(ops)}
        for position, op in enumerate(ops):
            if op in constant or role_of(op) in (Role.HOST, Role.CLONED, Role.REDUCTION):
                continue
            for value in filter(is_wide, op.results):
                if value in found.large or value in exact:
                    continue
                last = max(_places_of_uses(value, places), default=position)
                if any(position < product < last for product in products):
                    found._add(value)
        return found

    def _add(self, value: mlir.Value) -> None:
        """A value, and what it is moved from."""
        if not is_wide(value) or value in self.values or _is_state(value):
            return
        self.values.add(value)
        op = defining_op(value)
        for source in (moved_operands(op) or ()) if op is not None else ():
            self._add(source)


def _is_state(value: mlir.Value) -> bool:
    """Whether a value is a state of the program, old or new, as far as it is only moved: states keep their type, and
    rounding one in each call would cost more than it saves."""
    op = defining_op(value)
    if any(use.owner.operation.name == "flow.set_state" for use in value.uses):
        return True
    if op is None:
        return False
    sources = moved_operands(op)
    return op.name == "flow.state" if sources is None else any(map(_is_state, sources))


def _places_of_uses(value: mlir.Value, places: dict[mlir.Operation, int]) -> Iterable[int]:
    """Where in the block ops of other dispatches read a value. What leaves the program leaves it as it was made."""
    group = group_of(defining_op(value))
    for use in value.uses:
        user = use.owner.operation
        while user not in places:
            user = user.parent.operation
        within = group is not None and group_of(user) == group
        if not within and (role_of(user) is not Role.HOST or user.name == "flow.reshape"):
            yield places[user]


def _is_table(parameter: mlir.Operation) -> bool:
    """Whether rows of a weight are read at computed positions, as an embedding's are."""
    users = [use.owner.operation.name for use in parameter.results[0].uses]
    return mlir.RankedTensorType(parameter.results[0].type).rank > 1 and "tensor.extract" in users


def _large(ops: list[mlir.Operation]) -> set[mlir.Value]:
    found: set[mlir.Value] = set()
    for op in ops:
        if is_product(op) or role_of(op) is Role.REDUCTION or _has_function(op):
            continue
        if any(value in found for value in op.operands) or _has_large_constant(op):
            found.update(op.results)
    return found


def _has_function(op: mlir.Operation) -> bool:
    """Whether an op computes exponentials and the like: what was far off is nothing, or one, after that."""
    return any(view.operation.name.startswith("math.") for region in op.regions for view in region.blocks[0].operations)


def _has_large_constant(op: mlir.Operation) -> bool:
    """Whether an op is, or has in its body, a finite number that f16 has not."""
    inside = [one.operation for one in find_ops(op, "arith.constant")] if op.regions else [op]
    used = [owner for region in op.regions for block in region.blocks for owner in _constants_read(block)]
    return any(_is_large(one) for one in (*inside, *used))


def _constants_read(block: mlir.Block) -> Iterable[mlir.Operation]:
    for view in block.operations:
        yield from (owner for value in view.operation.operands if (owner := defining_op(value)) is not None)


def _is_large(op: mlir.Operation) -> bool:
    if op.name != "arith.constant":
        return False
    attribute = op.attributes["value"]
    if isinstance(attribute, mlir.DenseFPElementsAttr) and attribute.is_splat:
        attribute = attribute.get_splat_value()
    return isinstance(attribute, mlir.FloatAttr) and LARGEST < abs(attribute.value) < float("inf")


def _exact(ops: list[mlir.Operation]) -> set[mlir.Value]:
    """Values that become integers, such as positions in an image: a step of theirs may be finer than a narrow float."""
    found: set[mlir.Value] = set()
    for op in reversed(ops):
        if is_product(op) or role_of(op) is Role.REDUCTION:
            continue
        if any(result in found for result in op.results) or (op.regions and find_ops(op, *_TO_INTEGERS)):
            found.update(filter(is_wide, op.operands))
    return found


def group_of(op: mlir.Operation | None) -> int | None:
    """The number of the dispatch that a pass has put an op into."""
    return mlir.IntegerAttr(op.attributes[flow.GROUP]).value if op is not None and flow.GROUP in op.attributes else None
