"""`convert-stablehlo-sort`: sorts become merge sorts in loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from eyas.ir import Pass, mlir
from eyas.ir.walk import find_ops
from eyas.passes.input.stablehlo_scalars import Values, inline_scalars, restore, signless
from eyas.passes.sorting import merge_sort


@dataclass(frozen=True)
class ConvertStablehloSort(Pass):
    """Turns `stablehlo.sort` into a bottom-up merge sort, which is stable whether asked or not.

    Each row is copied out, merged in passes of doubled width between two buffers, and written back.

        %r = stablehlo.sort(%x) ({ compare LT }) {dimension = 1}
    becomes
        scf.for %row ... {
          scf.for %pass ... { scf.for %run ... { scf.for %k ... merge two runs } }
        }
    """

    name: ClassVar[str] = "convert-stablehlo-sort"

    def run(self, module: mlir.Module) -> None:
        for op in find_ops(module, "stablehlo.sort"):
            dimension = mlir.IntegerAttr(op.operation.attributes["dimension"]).value
            type_ = mlir.RankedTensorType(op.operation.operands[0].type)
            dimension += type_.rank if dimension < 0 else 0
            with mlir.InsertionPoint(op), op.location:
                results = _convert(op.operation, dimension)
                for old, new in zip(op.operation.results, results, strict=True):
                    old.replace_all_uses_with(restore(new, old.type))
            op.operation.erase()


def _convert(op: mlir.Operation, dimension: int) -> Values:
    comparator = op.regions[0].blocks[0]

    def before(lefts: Values, rights: Values) -> mlir.Value:
        pairs = [value for pair in zip(rights, lefts, strict=True) for value in pair]
        return inline_scalars(comparator, pairs)[0]

    used = [any(True for _ in result.uses) for result in op.results]
    return merge_sort([signless(value) for value in op.operands], dimension, before, used)
