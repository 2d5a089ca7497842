"""`convert-linear-algebra`: factorisations of matrices become loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch_mlir.dialects import arith

from eyas.ir import Pass, mlir
from eyas.ir.loops import Number
from eyas.ir.walk import defining_op
from eyas.passes.input.factorizations.catalogue import FACTORIZATIONS
from eyas.passes.input.torch_values import find_operators, operator_name, replace_by_tensors, to_tensor

PREFIX = "torch.eyas."


@dataclass(frozen=True)
class ConvertLinearAlgebra(Pass):
    """Turns operators such as `eyas.lu`, `eyas.qr` and `eyas.eigh` on [batch, rows, columns] into scf on tensors.

    A factorisation is a sequence of small dependent steps, in which the next one often depends on values. As loops on
    elements it is one dispatch, whose code does not grow with the matrix.

        %u, %info = torch.operator "torch.eyas.cholesky"(%a)
      becomes
        %r:2 = scf.for %b ... { scf.for %j ... { %p = tensor.extract %u[%b, %j, %j]; %s = math.sqrt %p; ... } }
    """

    name: ClassVar[str] = "convert-linear-algebra"

    def run(self, module: mlir.Module) -> None:
        for op in find_operators(module, *(PREFIX + name for name in FACTORIZATIONS)):
            with mlir.InsertionPoint(op), op.location:
                build = FACTORIZATIONS[operator_name(op).removeprefix(PREFIX)]
                replace_by_tensors(op, build(*(_argument(value) for value in op.operands)))


def _argument(value: mlir.Value) -> Any:
    """A tensor, a number or truth value that is known, or a number that a size says."""
    owner = defining_op(value)
    if owner is not None and owner.name in ("torch.constant.int", "torch.constant.bool"):
        return owner.attributes["value"].value
    if str(value.type) == "!torch.int":
        wide = mlir.IntegerType.get_signless(64)
        number = mlir.Operation.create("torch_c.to_i64", results=[wide], operands=[value]).result
        return Number(arith.index_cast(mlir.IndexType.get(), number))
    return to_tensor(value)
