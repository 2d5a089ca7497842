"""`convert-checks`: conditions that a frontend takes to hold are looked at when the program runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir.dialects import arith, cf, tensor

from eyas.ir import Pass, mlir
from eyas.ir.structured import index_constant
from eyas.ir.walk import defining_op
from eyas.passes.input.torch_values import find_operators, operator_name, to_tensor

OPERATOR = "eyas.check"
# The same from a torch program; its message is an operand, and what is checked should hold.
TORCH_OPERATOR = "torch.eyas.check"


@dataclass(frozen=True)
class ConvertChecks(Pass):
    """Replaces `eyas.check` by a `cf.assert` that stays: the call fails with its message unless the one element of the
    operand is what it should be.

        torch.operator "eyas.check"(%0) {torch.onnx.wanted = 1, torch.onnx.message = "..."} : (!torch.vtensor<[],i1>)
      becomes
        %b = torch_c.to_builtin_tensor %0
        %v = tensor.extract %b[] : tensor<i1>
        cf.assert %v, "..." {flow.keep}
    """

    name: ClassVar[str] = "convert-checks"

    def run(self, module: mlir.Module) -> None:
        for op in find_operators(module, OPERATOR, TORCH_OPERATOR):
            with mlir.InsertionPoint(op), op.location:
                _convert(op)


def _convert(op: mlir.Operation) -> None:
    value = to_tensor(op.operands[0])
    type_ = mlir.RankedTensorType(value.type)
    assert type_.element_type == mlir.IntegerType.get_signless(1), op
    holds = tensor.ExtractOp(value, [index_constant(0)] * type_.rank).result
    if operator_name(op) == TORCH_OPERATOR:
        owner = defining_op(op.operands[1])
        assert owner is not None, op
        message = mlir.StringAttr(owner.attributes["value"]).value
    else:
        message = mlir.StringAttr(op.attributes["torch.onnx.message"]).value
        if not mlir.IntegerAttr(op.attributes["torch.onnx.wanted"]).value:
            holds = arith.XOrIOp(holds, arith.ConstantOp(holds.type, mlir.IntegerAttr.get(holds.type, 1)).result).result
    check = cf.AssertOp(holds, message)
    check.operation.attributes["flow.keep"] = mlir.UnitAttr.get()
    op.erase()
