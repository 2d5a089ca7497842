"""`hide-constants`: upstream does not see what it would compute of constants, and get wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir.dialects import arith, linalg, tensor

from eyas.ir import Pass, mlir
from eyas.ir.walk import defining_op, functions
from eyas.passes.input.torch_values import builtin_type

_MOVES = frozenset(
    f"torch.{name}"
    for name in (
        *("aten.clone", "aten.expand", "aten.permute", "aten.select.int", "aten.slice.Tensor", "aten.squeeze.dim"),
        *("aten.squeeze.dims", "aten.transpose.int", "aten.unsqueeze", "aten.view", "aten._to_copy"),
        *("aten.where.self", "prims.convert_element_type", "prim.ListConstruct"),
    )
)
"""Ops that upstream does right, or not at all."""

# Which operand is the number that a tensor is filled with; None for those whose name says it.
_FILLS = {
    "torch.aten.full": 1,
    "torch.aten.full_like": 1,
    "torch.aten.new_full": 2,
    "torch.aten.new_ones": None,
    "torch.aten.new_zeros": None,
    "torch.aten.ones": None,
    "torch.aten.ones_like": None,
    "torch.aten.scalar_tensor": 0,
    "torch.aten.zeros": None,
    "torch.aten.zeros_like": None,
    "torch.prim.NumToTensor.Scalar": 0,
}
_LITERAL = "torch.vtensor.literal"


@dataclass(frozen=True)
class HideConstants(Pass):
    """Turns filled tensors into `linalg.fill` where upstream would compute something of constants alone.

    Upstream's own arithmetic of constants mixes types: whole numbers are negative or not as it happens, a result may be
    written over the end of its memory, and a division by zero ends the process. `evaluate-constants` does it later.
    What numbers of sizes are computed from stays visible, and so do literals: frontends compute what is made of those.

        %0 = torch.aten.full_like %x, %int7, ... : !torch.vtensor<[3],si32>
        %1 = torch.aten.div.Tensor_mode %0, %0, %str
      becomes
        %f = linalg.fill ins(%c7_i32) outs(tensor.empty) -> tensor<3xi32>
        %0 = torch_c.from_builtin_tensor %f
        %1 = torch.aten.div.Tensor_mode %0, %0, %str
    """

    name: ClassVar[str] = "hide-constants"

    def run(self, module: mlir.Module) -> None:
        for function in functions(module):
            for block in function.operation.regions[0].blocks:
                for op in _risky(block):
                    with mlir.InsertionPoint(op), op.location:
                        _hide(op)


def _risky(block: mlir.Block) -> list[mlir.Operation]:
    """Sources of constants that reach an op which upstream computes, in program order."""
    sources: dict[mlir.Value, frozenset[mlir.Operation]] = {}
    risky: set[mlir.Operation] = set()
    needed: set[mlir.Operation] = set()
    ops = [op.operation for op in block.operations]
    for op in ops:
        if _is_source(op):
            sources[op.results[0]] = frozenset((op,))
            continue
        operands = _tensors(op)
        of = [sources.get(operand) for operand in operands]
        found = frozenset().union(*(one for one in of if one))
        if not found:
            continue
        if any(not _is_tensor(result) for result in op.results) and op.name != "torch.prim.ListConstruct":
            needed |= found
        # A choice is one of its operands, if its condition is a constant.
        if all(of) or (op.name == "torch.aten.where.self" and of[0]):
            sources.update((result, found) for result in op.results)
            risky |= frozenset() if op.name in _MOVES or "quantize" in op.name else found
    return [op for op in ops if op in risky and op not in needed and op.name != _LITERAL]


def _tensors(op: mlir.Operation) -> list[mlir.Value]:
    """The tensors that an op takes, in lists too."""
    found = []
    for operand in op.operands:
        made_by = defining_op(operand)
        inside = made_by.operands if made_by and made_by.name == "torch.prim.ListConstruct" else [operand]
        found += [value for value in inside if _is_tensor(value)]
    return found


def _is_tensor(value: mlir.Value) -> bool:
    return str(value.type).startswith("!torch.vtensor")


def _is_source(op: mlir.Operation) -> bool:
    if op.name not in _FILLS:
        return op.name == _LITERAL and isinstance(op.attributes["value"], mlir.DenseElementsAttr)
    type_ = builtin_type(op.results[0].type)
    return type_ is not None and type_.has_static_shape and _scalar(op, type_.element_type) is not None


def _hide(op: mlir.Operation) -> None:
    (result,) = op.results
    type_ = builtin_type(result.type)
    assert type_ is not None, op
    attribute = _scalar(op, type_.element_type)
    assert attribute is not None, op
    value = arith.constant(type_.element_type, attribute)
    made = linalg.fill(value, outs=[tensor.empty(type_.shape, type_.element_type)])
    hidden = mlir.Operation.create("torch_c.from_builtin_tensor", results=[result.type], operands=[made]).result
    result.replace_all_uses_with(hidden)
    op.erase()


def _scalar(op: mlir.Operation, element: mlir.Type) -> mlir.Attribute | None:
    """What a tensor is filled with, without its sign; None if it is not known."""
    value = _filling(op)
    if value is None:
        return None
    if isinstance(element, mlir.IntegerType):
        half = 1 << (element.width - 1)
        whole = int(bool(value)) if element.width == 1 else (int(value) + half) % (2 * half) - half
        return mlir.IntegerAttr.get(element, whole)
    if isinstance(element, (mlir.F16Type, mlir.BF16Type, mlir.F32Type, mlir.F64Type)):
        return mlir.FloatAttr.get(element, float(value))
    return None


def _filling(op: mlir.Operation) -> float | int | None:
    """The number that a tensor is filled with, if it is known."""
    position = _FILLS[op.name]
    if position is None:
        return int("ones" in op.name)
    number = defining_op(op.operands[position])
    if number is None or number.name not in ("torch.constant.int", "torch.constant.float"):
        return None
    kind = mlir.IntegerAttr if number.name == "torch.constant.int" else mlir.FloatAttr
    return kind(number.attributes["value"]).value
