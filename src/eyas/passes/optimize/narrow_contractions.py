"""`narrow-contractions`: integer products read the numbers as they are stored, and add up in i32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, linalg

from eyas.ir import Pass
from eyas.ir.structured import element_type, empty_like, fill_value, generic, is_elementwise, split_operands
from eyas.ir.walk import defining_op, entry_block, functions
from eyas.passes.dispatch.grouping import Role, indexing_maps, is_plain_copy, role_of

# Ops that move elements of their first operand, whatever the type.
_VIEWS = frozenset({"tensor.expand_shape", "tensor.collapse_shape", "tensor.extract_slice", "tensor.cast"})


@dataclass(frozen=True)
class NarrowContractions(Pass):
    """Named contractions and convolutions extend their operands themselves, so that what was extended before, on the
    way through padding, transposes and reshapes, need not be: a quarter of the memory traffic for i8. Importers add up
    in i64 and keep the low half, which i32 alone gives as well.

        %a = linalg.generic (extsi) %x : i8 -> i32            %2 = linalg.matmul ins(%x, %y : i8, i8) outs(i32)
        %b = linalg.generic (extsi) %y : i8 -> i32       =>
        %1 = linalg.matmul ins(%a, %b : i32) outs(i64)
        %2 = linalg.generic (trunci) %1 : i64 -> i32
    """

    name: ClassVar[str] = "narrow-contractions"

    def run(self, module: mlir.Module) -> None:
        for function in functions(module):
            for view in list(entry_block(function).operations):
                op = view.operation
                if _is_integer_product(op):
                    with mlir.InsertionPoint(op), op.location:
                        _narrow(op)


def _is_integer_product(op: mlir.Operation) -> bool:
    if op.name == "linalg.generic" or "pooling" in op.name or "quantized" in op.name:
        return False
    if role_of(op) is not Role.CONTRACTION or len(op.operands) != 3:
        return False
    return all(isinstance(element_type(value), mlir.IntegerType) for value in op.operands)


def _narrow(op: mlir.Operation) -> None:
    inputs, (init,) = split_operands(op)
    sources = [_narrow_source(value) for value in inputs]
    shorter = _truncated(op, init)
    if not any(source is not None for source in sources) and shorter is None:
        return
    operands = [value if source is None else source for value, source in zip(inputs, sources, strict=True)]
    if shorter is not None:
        init = _zeros_like(init)
    attributes = {name: op.attributes[name] for name in op.attributes}
    new = mlir.Operation.create(
        op.name, results=[init.type], operands=[*operands, init], attributes=attributes, regions=1
    )
    linalg.fill_builtin_region(new)
    old = op if shorter is None else shorter
    old.results[0].replace_all_uses_with(new.results[0])
    if shorter is not None:
        shorter.erase()
    op.erase()


def _truncated(op: mlir.Operation, init: mlir.Value) -> mlir.Operation | None:
    """The one user of a sum in i64 from nothing, if it keeps the low 32 bits."""
    uses = list(op.results[0].uses)
    scalar = fill_value(init)
    if mlir.IntegerType(element_type(init)).width != 64 or len(uses) != 1 or not _is_zero(scalar):
        return None
    user = uses[0].owner.operation
    if not is_elementwise(user) or len(user.operands) != 2 or not _is_single(user, "arith.trunci"):
        return None
    return user if mlir.IntegerType(element_type(user.results[0])).width == 32 else None


def _zeros_like(init: mlir.Value) -> mlir.Value:
    i32 = mlir.IntegerType.get_signless(32)
    shape = list(mlir.RankedTensorType(init.type).shape)
    return linalg.fill(arith.constant(i32, 0), outs=[empty_like(init, shape, range(len(shape)), i32)])


def _narrow_source(value: mlir.Value) -> mlir.Value | None:
    """A tensor of at most 8 bits that, sign-extended, is `value`; moves on the way are made again in its type."""
    op = defining_op(value)
    if op is None:
        return None
    if op.name == "linalg.generic" and len(op.operands) == 2 and not list(op.regions[0].blocks[0].arguments[1].uses):
        return _narrow_generic(op)
    if op.name == "linalg.transpose" or op.name in _VIEWS or op.name == "tensor.pad":
        source = _narrow_source(op.operands[0])
        if source is None:
            return None
        with mlir.InsertionPoint(op), op.location:
            return _REBUILD.get(op.name, rebuild_view)(op, source)
    return None


def _narrow_generic(op: mlir.Operation) -> mlir.Value | None:
    maps = indexing_maps(op)
    assert maps is not None
    source = op.operands[0]
    if maps[0] == maps[1] and _is_single(op, "arith.extsi") and is_elementwise(op):
        return source if mlir.IntegerType(element_type(source)).width <= 8 else None
    if not is_plain_copy(op) or not isinstance(source.type, mlir.RankedTensorType):
        return None
    narrow = _narrow_source(source)
    if narrow is None:
        return None
    with mlir.InsertionPoint(op), op.location:
        shape = list(mlir.RankedTensorType(op.results[0].type).shape)
        init = empty_like(op.operands[1], shape, range(len(shape)), element_type(narrow))
        new = generic([narrow], [init], maps, ["parallel"] * maps[0].n_dims)
        with mlir.InsertionPoint(new.regions[0].blocks[0]):
            linalg.YieldOp([new.regions[0].blocks[0].arguments[0]])
        return new.results[0]


def _rebuild_transpose(op: mlir.Operation, source: mlir.Value) -> mlir.Value:
    from eyas.ir.structured import permutation_of, transpose

    return transpose(source, permutation_of(op))


def rebuild_view(op: mlir.Operation, source: mlir.Value) -> mlir.Value:
    """The same view of a tensor of another type."""
    result = mlir.RankedTensorType.get(list(mlir.RankedTensorType(op.results[0].type).shape), element_type(source))
    attributes = {name: op.attributes[name] for name in op.attributes}
    operands = [source, *list(op.operands)[1:]]
    return mlir.Operation.create(op.name, results=[result], operands=operands, attributes=attributes).results[0]


def _rebuild_pad(op: mlir.Operation, source: mlir.Value) -> mlir.Value | None:
    padding = defining_op(list(op.regions[0].blocks[0].operations)[-1].operands[0])
    if padding is None or padding.name != "arith.constant":
        return None
    return rebuild_pad(op, source, mlir.IntegerAttr(padding.attributes["value"]).value)


def rebuild_pad(op: mlir.Operation, source: mlir.Value, number: int) -> mlir.Value | None:
    """The same padding of a tensor of integers with `number`, if its type has it."""
    element = mlir.IntegerType(element_type(source))
    if "nofold" in op.attributes:
        return None
    if not -(1 << (element.width - 1)) <= number < 1 << (element.width - 1):
        return None
    scalar = arith.constant(element, number)
    result = mlir.RankedTensorType.get(list(mlir.RankedTensorType(op.results[0].type).shape), element)
    attributes = {name: op.attributes[name] for name in op.attributes}
    operands = [source, *list(op.operands)[1:]]
    new = mlir.Operation.create("tensor.pad", results=[result], operands=operands, attributes=attributes, regions=1)
    rank = mlir.RankedTensorType(source.type).rank
    block = new.regions[0].blocks.append(*[mlir.IndexType.get()] * rank, arg_locs=[op.location] * rank)
    with mlir.InsertionPoint(block):
        mlir.Operation.create("tensor.yield", operands=[scalar])
    return new.results[0]


_REBUILD = {"linalg.transpose": _rebuild_transpose, "tensor.pad": _rebuild_pad}


def _is_single(op: mlir.Operation, name: str) -> bool:
    """Whether the body is one op of this name on the first argument."""
    body = op.regions[0].blocks[0]
    operations = [view.operation for view in body.operations]
    return len(operations) == 2 and operations[0].name == name and operations[0].operands[0] == body.arguments[0]


def _is_zero(scalar: mlir.Value | None) -> bool:
    op = None if scalar is None else defining_op(scalar)
    return op is not None and op.name == "arith.constant" and mlir.IntegerAttr(op.attributes["value"]).value == 0
