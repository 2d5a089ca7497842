"""`expand-bfloats`: arithmetic on bf16 is in f32, and results are rounded with integer operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir

from eyas.codegen.common.passes.lanes import element_type
from eyas.ir import Pass, run_upstream
from eyas.ir.walk import find_ops

_EMULATION = "arith-emulate-unsupported-floats{source-types=bf16 target-type=f32}"
_EXPANSION = "arith-expand{include-bf16=true}"


@dataclass(frozen=True)
class ExpandBfloats(Pass):
    """Widens with a shift and rounds to nearest even with an addition, so that subnormal numbers stay.

    The instruction that rounds to bf16 (`vcvtneps2bf16`) takes subnormal numbers for zero, and processors without it
    would call a function for each element.

        %2 = arith.addf %0, %1 : vector<16xbf16>   =>   %2 = arith.addf (%0 << 16), (%1 << 16) : vector<16xf32>
                                                        %3 = (%2 + 0x7fff + (%2 >> 16 & 1)) >> 16, or NaN
    """

    name: ClassVar[str] = "expand-bfloats"

    def run(self, module: mlir.Module) -> None:
        if _has_bfloats(module):
            run_upstream(module, _EMULATION)
            keep_roundings(module)
            run_upstream(module, _EXPANSION)


def keep_roundings(module: mlir.Module) -> None:
    """The emulation allows a rounding that is followed by a widening to be left out; a framework would not."""
    strict = mlir.Attribute.parse("#arith.fastmath<none>", module.context)
    for op in find_ops(module, "arith.truncf", "arith.extf"):
        op.operation.attributes["fastmath"] = strict


def _has_bfloats(module: mlir.Module) -> bool:
    known: dict[mlir.Type, bool] = {}
    found = False

    def visit(op: mlir.Operation) -> mlir.WalkResult:
        nonlocal found
        for result in op.results:
            type_ = result.type
            if type_ not in known:
                known[type_] = isinstance(element_type(type_), mlir.BF16Type)
            found = found or known[type_]
        return mlir.WalkResult.INTERRUPT if found else mlir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found
