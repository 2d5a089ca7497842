"""`convert-stablehlo-select-and-scatter`: the gradient of pooling becomes loops over windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from torch_mlir.dialects import arith, linalg, tensor

from eyas.ir import Pass, mlir
from eyas.ir.structured import index_constant
from eyas.ir.walk import find_ops
from eyas.passes.input.stablehlo_scalars import Values, inline_scalars, nest, restore, signless, sizes_of, when


@dataclass(frozen=True)
class ConvertStablehloSelectAndScatter(Pass):
    """Turns `stablehlo.select_and_scatter` into loops: each window's chosen element receives the source's element.

        %r = stablehlo.select_and_scatter(%x, %source, %init) ({ GE }, { add }) {window_dimensions = ...}
    becomes
        scf.for %o ... iter_args(%r = fill(%init)) {
          %found, %value, %at = scf.for %w ... { the first element of the window that no later one beats }
          scf.if %found { tensor.insert (tensor.extract %r[%at]) + (tensor.extract %source[%o]) into %r[%at] }
        }
    """

    name: ClassVar[str] = "convert-stablehlo-select-and-scatter"

    def run(self, module: mlir.Module) -> None:
        for op in find_ops(module, "stablehlo.select_and_scatter"):
            if not mlir.RankedTensorType(op.operation.results[0].type).has_static_shape:
                continue
            with mlir.InsertionPoint(op), op.location:
                old = op.operation.results[0]
                old.replace_all_uses_with(restore(_convert(op.operation), old.type))
            op.operation.erase()


def _convert(op: mlir.Operation) -> mlir.Value:
    operand, source, init = (signless(value) for value in op.operands)
    type_ = mlir.RankedTensorType(operand.type)
    rank = type_.rank
    window = _array(op, "window_dimensions", rank)
    strides = _array(op, "window_strides", rank)
    padding = np.zeros((rank, 2), int)
    if "padding" in op.attributes:
        padding = np.asarray(mlir.DenseElementsAttr(op.attributes["padding"])).reshape(rank, 2)
    select, combine = (region.blocks[0] for region in op.regions)
    sizes, zero = sizes_of(operand), index_constant(0)
    i1 = mlir.IntegerType.get_signless(1)
    empty = tensor.empty(list(type_.shape), type_.element_type)
    start = tensor.extract(init, [])
    filled = linalg.fill(start, outs=[empty])

    def scatter(position: Values, carried: Values) -> Values:
        corner = [
            arith.subi(arith.muli(index, index_constant(stride)), index_constant(int(low)))
            for index, stride, low in zip(position, strides, padding[:, 0], strict=True)
        ]

        def visit(offset: Values, best: Values) -> Values:
            at = [arith.addi(base, index) for base, index in zip(corner, offset, strict=True)]
            inside = arith.constant(i1, 1)
            for index, size in zip(at, sizes, strict=True):
                # A negative index is a large unsigned one.
                inside = arith.andi(inside, arith.cmpi(arith.CmpIPredicate.ult, index, size))

            def compare() -> Values:
                value = tensor.extract(operand, at)
                keep = arith.andi(best[0], inline_scalars(select, [best[1], value])[0])
                return [
                    arith.constant(i1, 1),
                    *(arith.select(keep, old, new) for old, new in zip(best[1:], [value, *at], strict=True)),
                ]

            return when(inside, best, compare)

        nothing = [arith.constant(i1, 0), start, *[zero] * rank]
        found, _, *at = nest([index_constant(size) for size in window], nothing, visit)

        def add() -> Values:
            old, new = tensor.extract(carried[0], at), tensor.extract(source, position)
            return [tensor.insert(inline_scalars(combine, [old, new])[0], carried[0], at)]

        return when(found, carried, add)

    return nest(sizes_of(source), [filled], scatter)[0]


def _array(op: mlir.Operation, name: str, rank: int) -> list[int]:
    return list(mlir.DenseI64ArrayAttr(op.attributes[name])) if name in op.attributes else [1] * rank
