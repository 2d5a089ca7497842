"""`wrap-scalars`: numbers that enter or leave the program become tensors without dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir.dialects import arith, tensor

from eyas.ir import Pass, mlir

_SCALARS = (mlir.IntegerType, mlir.FloatType, mlir.IndexType)


@dataclass(frozen=True)
class WrapScalars(Pass):
    """Gives `@main` tensors only, so that a call has one kind of value.

    An `index` becomes `tensor<i64>`.

        func.func @main(%n: i64) -> i64 { ... return %m : i64 }
    becomes
        func.func @main(%0: tensor<i64>) -> tensor<i64> {
          %n = tensor.extract %0[] : tensor<i64>
          ...
          %1 = tensor.from_elements %m : tensor<i64>
          return %1 : tensor<i64>
        }
    """

    name: ClassVar[str] = "wrap-scalars"

    def run(self, module: mlir.Module) -> None:
        for op in module.body.operations:
            if op.operation.name == "func.func" and op.regions[0].blocks:
                _wrap(op)


def _wrap(function: mlir.OpView) -> None:
    type_ = mlir.FunctionType(mlir.TypeAttr(function.attributes["function_type"]).value)
    if not any(isinstance(t, _SCALARS) for t in [*type_.inputs, *type_.results]):
        return
    block = function.regions[0].blocks[0]
    with mlir.InsertionPoint.at_block_begin(block), function.location:
        for argument in block.arguments:
            if isinstance(argument.type, _SCALARS):
                _wrap_argument(argument)
    end = list(block.operations)[-1]
    assert end.operation.name == "func.return", end.operation.name
    with mlir.InsertionPoint(end), end.location:
        for position, value in enumerate(end.operands):
            if isinstance(value.type, _SCALARS):
                end.operation.operands[position] = _wrap_result(value)
    inputs = [argument.type for argument in block.arguments]
    results = [value.type for value in end.operands]
    function.attributes["function_type"] = mlir.TypeAttr.get(mlir.FunctionType.get(inputs, results))


def _wrap_argument(argument: mlir.BlockArgument) -> None:
    type_ = argument.type
    is_index = isinstance(type_, mlir.IndexType)
    element = mlir.IntegerType.get_signless(64) if is_index else type_
    uses = list(argument.uses)
    argument.set_type(mlir.RankedTensorType.get([], element))
    value = tensor.extract(argument, [])
    if is_index:
        value = arith.index_cast(type_, value)
    for use in uses:
        use.owner.operation.operands[use.operand_number] = value


def _wrap_result(value: mlir.Value) -> mlir.Value:
    if isinstance(value.type, mlir.IndexType):
        value = arith.index_cast(mlir.IntegerType.get_signless(64), value)
    return tensor.from_elements(mlir.RankedTensorType.get([], value.type), [value])
