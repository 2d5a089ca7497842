"""`convert-stablehlo-sort`: sorts become those of the input contract, `tm_tensor.sort`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir.dialects import arith

from eyas.ir import Pass, mlir
from eyas.ir.walk import find_ops
from eyas.passes.input.stablehlo_scalars import Values, inline_scalars, restore, signless


@dataclass(frozen=True)
class ConvertStablehloSort(Pass):
    """Turns `stablehlo.sort` into `tm_tensor.sort`, which is stable whether asked or not. Its body says of two
    neighbours whether they may stay, which is where the second need not come before the first.

        %r = stablehlo.sort(%x) ({ compare LT %a, %b }) {dimension = 1}
    becomes
        %r = tm_tensor.sort dimension(1) outs(%x) { not (%right < %left) }
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
    inputs = [signless(value) for value in op.operands]
    i1, i64 = mlir.IntegerType.get_signless(1), mlir.IntegerType.get_signless(64)
    made = mlir.Operation.create(
        "tm_tensor.sort",
        [value.type for value in inputs],
        inputs,
        attributes={
            "dimension": mlir.IntegerAttr.get(i64, dimension),
            "operandSegmentSizes": mlir.DenseI32ArrayAttr.get([0, len(inputs)]),
        },
        regions=1,
    )
    elements = [mlir.RankedTensorType(value.type).element_type for value in inputs for _ in range(2)]
    body = made.regions[0].blocks.append(*elements, arg_locs=[mlir.Location.current] * len(elements))
    with mlir.InsertionPoint(body):
        lefts, rights = list(body.arguments)[::2], list(body.arguments)[1::2]
        swapped = [value for pair in zip(rights, lefts, strict=True) for value in pair]
        (must_move,) = inline_scalars(op.regions[0].blocks[0], swapped)
        stays = arith.xori(must_move, arith.constant(i1, 1))
        mlir.Operation.create("tm_tensor.yield", [], [stays])
    return list(made.results)
