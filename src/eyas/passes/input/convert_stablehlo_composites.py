"""`convert-stablehlo-composites`: composites that stand for a chlo op become that op again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from eyas.ir import Pass, mlir
from eyas.ir.walk import find_ops

# Ops without attributes whose result has the type of their operands, or is made of booleans.
_OPS = frozenset(
    "acos acosh asin asinh atan atanh bessel_i1e conj cosh digamma erf erf_inv erfc is_inf is_neg_inf is_pos_inf lgamma"
    " next_after polygamma sinh square tan zeta".split()
)


@dataclass(frozen=True)
class ConvertStablehloComposites(Pass):
    """Turns `stablehlo.composite "chlo.erf"` into `chlo.erf`, whose own expansion is elementwise.

    JAX writes chlo ops on dynamic shapes as composites. The decompositions that they carry hold their coefficients in
    tables on which they loop. Other composites are left for their decomposition.

        %1 = stablehlo.composite "chlo.erf" %0 {decomposition = @chlo.erf.impl} : (tensor<?xf32>) -> tensor<?xf32>
      becomes
        %1 = chlo.erf %0 : tensor<?xf32> -> tensor<?xf32>
    """

    name: ClassVar[str] = "convert-stablehlo-composites"

    def run(self, module: mlir.Module) -> None:
        for view in find_ops(module, "stablehlo.composite"):
            op = view.operation
            name = mlir.StringAttr(op.attributes["name"]).value
            if not name.startswith("chlo.") or name.removeprefix("chlo.") not in _OPS:
                continue
            with mlir.InsertionPoint(op), op.location:
                types, operands = [result.type for result in op.results], list(op.operands)
                made = mlir.Operation.create(name, results=types, operands=operands)
            op.results[0].replace_all_uses_with(made.result)
            op.erase()
