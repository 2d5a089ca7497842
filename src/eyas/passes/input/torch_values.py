"""Values of the torch dialect as tensors, and operators of ours among its ops: what passes of this folder share."""

from __future__ import annotations

import re
from collections.abc import Sequence

from eyas.ir import mlir
from eyas.ir.walk import find_ops

_VTENSOR = re.compile(r"!torch\.vtensor<\[([^\]]*)\],([^>]+)>")


def find_operators(module: mlir.Module, *names: str) -> list[mlir.Operation]:
    """Every `torch.operator` with one of these names, in program order."""
    operators = [op.operation for op in find_ops(module, "torch.operator")]
    return [op for op in operators if operator_name(op) in names]


def operator_name(op: mlir.Operation) -> str:
    return mlir.StringAttr(op.attributes["name"]).value


def builtin_type(type_: mlir.Type) -> mlir.RankedTensorType | None:
    """The tensor type of a torch value; None when its shape or element type is unknown."""
    match = _VTENSOR.fullmatch(str(type_))
    if match is None:
        return None
    dims = [dim for dim in match.group(1).split(",") if dim]
    element = re.sub(r"^[su]i(\d+)$", r"i\1", match.group(2))
    return mlir.RankedTensorType(mlir.Type.parse("tensor<" + "".join(f"{dim}x" for dim in dims) + f"{element}>"))


def to_tensor(value: mlir.Value) -> mlir.Value:
    """A torch value of known type as a tensor."""
    type_ = builtin_type(value.type)
    assert type_ is not None, value
    return mlir.Operation.create("torch_c.to_builtin_tensor", results=[type_], operands=[value]).result


def replace_by_tensor(op: mlir.Operation, tensor: mlir.Value) -> None:
    """Puts a tensor in the place of the op's one result, and erases the op."""
    replace_by_tensors(op, [tensor])


def replace_by_tensors(op: mlir.Operation, tensors: Sequence[mlir.Value]) -> None:
    """Puts a tensor in the place of each of the op's results, and erases the op. Sizes that one of both knows may
    differ."""
    for result, made in zip(op.results, tensors, strict=True):
        type_ = builtin_type(result.type)
        assert type_ is not None, op
        if made.type != type_:
            made = mlir.Operation.create("tensor.cast", results=[type_], operands=[made]).result
        back = mlir.Operation.create("torch_c.from_builtin_tensor", results=[result.type], operands=[made]).result
        result.replace_all_uses_with(back)
    op.erase()
