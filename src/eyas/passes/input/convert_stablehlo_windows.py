"""`convert-stablehlo-windows`: reductions of windows over dynamic tensors become padding and loop nests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from torch_mlir.dialects import arith, linalg, tensor

from eyas.ir import Pass, mlir
from eyas.ir.structured import generic, index_constant
from eyas.ir.walk import find_ops
from eyas.passes.input.stablehlo_padding import pad, window_count
from eyas.passes.input.stablehlo_scalars import (
    Values,
    constant_of,
    elements_of,
    inline_scalars,
    restore,
    signless,
    sizes_of,
)

_DYNAMIC_CALL = "stablehlo.dynamic_reduce_window"


@dataclass(frozen=True)
class ConvertStablehloWindows(Pass):
    """Turns `stablehlo.reduce_window` on dynamic shapes, which upstream does not lower, into pad and generic.

    JAX writes a window whose own size is dynamic (a cumulative sum along a dynamic dimension) as a custom call with
    the same meaning. Dilated operands are left alone.

        %r = stablehlo.reduce_window(%x init: %i) applies add {window_dimensions = [1, 3], padding = [[0, 0], [1, 1]]}
    becomes
        %p = tensor.pad %x low[0, 1] high[0, 1] { %i }
        %r = linalg.generic ins(%p [d0 + d2, d1 + d3], %window [d2, d3]) outs(fill(%i) [d0, d1]) { add }
    """

    name: ClassVar[str] = "convert-stablehlo-windows"

    def run(self, module: mlir.Module) -> None:
        reducers = []
        for view in find_ops(module, "stablehlo.reduce_window", "stablehlo.custom_call"):
            op = view.operation
            if op.name == "stablehlo.custom_call" and _DYNAMIC_CALL not in str(op.attributes["call_target_name"]):
                continue
            with mlir.InsertionPoint(op), op.location:
                made = _convert(op, module, reducers)
                if made is None:
                    continue
                op.results[0].replace_all_uses_with(restore(made, op.results[0].type))
            op.erase()
        for reducer in dict.fromkeys(reducers):
            reducer.erase()


@dataclass(frozen=True)
class _Window:
    """Sizes may be values; strides and dilations are numbers."""

    sizes: Values
    strides: Sequence[int]
    dilations: Sequence[int]
    padding: Sequence[Sequence[mlir.Value]]


def _convert(op: mlir.Operation, module: mlir.Module, reducers: list[mlir.Operation]) -> mlir.Value | None:
    if len(op.results) != 1:
        return None
    if op.name == "stablehlo.reduce_window":
        if mlir.RankedTensorType(op.operands[0].type).has_static_shape:
            return None
        window, block = _static_window(op), op.regions[0].blocks[0]
    else:
        window, reducer = _dynamic_window(op), _reducer(op, module)
        if window is not None:
            reducers.append(reducer)
        block = reducer.regions[0].blocks[0]
    if window is None:
        return None
    operand, init = signless(op.operands[0]), tensor.extract(signless(op.operands[1]), [])
    return _reduce(operand, init, window, lambda old, new: inline_scalars(block, [old, new])[0])


def _static_window(op: mlir.Operation) -> _Window | None:
    rank = mlir.RankedTensorType(op.operands[0].type).rank

    def array(name: str) -> list[int]:
        return list(mlir.DenseI64ArrayAttr(op.attributes[name])) if name in op.attributes else [1] * rank

    padding = np.zeros((rank, 2), int)
    if "padding" in op.attributes:
        padding = np.asarray(mlir.DenseElementsAttr(op.attributes["padding"])).reshape(rank, 2)
    if any(size != 1 for size in array("base_dilations")) or (padding < 0).any():
        return None
    sizes = [index_constant(size) for size in array("window_dimensions")]
    pads = [[index_constant(int(low)), index_constant(int(high))] for low, high in padding]
    return _Window(sizes, array("window_strides"), array("window_dilations"), pads)


def _dynamic_window(op: mlir.Operation) -> _Window | None:
    sizes, strides, base, dilations, padding = list(op.operands)[2:]
    steps, spread, holes = constant_of(strides), constant_of(base), constant_of(dilations)
    if steps is None or spread is None or holes is None or any(size != 1 for size in spread):
        return None
    index = mlir.IndexType.get()
    pads = [arith.index_cast(index, value) for value in elements_of(padding)]
    window = [arith.index_cast(index, value) for value in elements_of(sizes)]
    return _Window(window, steps, holes, [pads[at : at + 2] for at in range(0, len(pads), 2)])


def _reducer(op: mlir.Operation, module: mlir.Module) -> mlir.Operation:
    name = mlir.FlatSymbolRefAttr(mlir.ArrayAttr(op.attributes["called_computations"])[0]).value
    return mlir.SymbolTable(module.operation)[name].operation


def _reduce(
    operand: mlir.Value, init: mlir.Value, window: _Window, combine: Callable[[mlir.Value, mlir.Value], mlir.Value]
) -> mlir.Value:
    rank = len(window.sizes)
    padded = pad(operand, init, window.padding)
    element = mlir.RankedTensorType(operand.type).element_type
    counts = [
        window_count(*one) for one in zip(sizes_of(padded), window.sizes, window.strides, window.dilations, strict=True)
    ]
    filled = linalg.fill(init, outs=[tensor.empty(counts, element)])
    shape = tensor.empty(list(window.sizes), element)
    dims = [mlir.AffineExpr.get_dim(dim) for dim in range(2 * rank)]
    reads = [dims[dim] * window.strides[dim] + dims[rank + dim] * window.dilations[dim] for dim in range(rank)]
    maps = [mlir.AffineMap.get(2 * rank, 0, exprs) for exprs in (reads, dims[rank:], dims[:rank])]
    op = generic([padded, shape], [filled], maps, ["parallel"] * rank + ["reduction"] * rank)
    block = op.regions[0].blocks[0]
    with mlir.InsertionPoint(block):
        linalg.YieldOp([combine(block.arguments[2], block.arguments[0])])
    return op.results[0]
