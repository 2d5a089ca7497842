"""`winograd`: 3x3 convolutions with fewer multiplications."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, linalg, tensor

from eyas.ir.padding import pad_with_zeros, zero_padding
from eyas.ir.structured import constant_scalar, fill_value, generic, index_constant
from eyas.ir.transforms import TileLoops, tile_transform
from eyas.ir.walk import defining_op, entry_block, functions
from eyas.passes.optimize.evaluate_constants import constant_ops
from eyas.passes.optimize.toom_cook import OUTPUTS, TAPS, Matrices, matrices
from eyas.passes.targeted import TargetedPass
from eyas.targets import Target
from eyas.targets.gpu import GpuTarget

_CONV = "linalg.conv_2d_nhwc_hwcf"
_WORTH_IT = 0.8
# Sides of images of open size: 64 with 64 channels, 16 with 256.
_LEAST_SIDE, _LARGEST_SIDE, _CHANNELS_OF_ONE = 8, 64, 4096


@dataclass(frozen=True)
class Costs:
    """What things take, in multiply-adds."""

    weight: int
    """To read a weight from memory; that happens partly at the same time, so costs add as squares."""
    element: int
    """To transform an element of the input or the output, and to write and read it."""
    far_element: int
    """The same when they do not fit into the last cache."""
    start: int
    """To begin the two dispatches of the transforms."""
    near_bytes: int
    """What the last cache has."""


def costs_of(target: Target) -> Costs | None:
    """The costs on a target; None where it is not worth while at all.

    Two cores of Zen 4 do some 105 multiply-adds in a nanosecond; measured on the layers of ResNet-50 (`eyas bench
    --per-dispatch`), which these numbers predict to a tenth. A GPU does some 12,000, and moves an element in the time
    of 12 to 30. Where a CPU plays the GPU, its kernels are too far from either to tell.
    """
    if not isinstance(target, GpuTarget):
        return Costs(12, 8, 30, 0, target.caches.l3_bytes)
    return Costs(12, 12, 30, 72_000_000, target.caches.l2_bytes) if target.facts.shared_is_near else None


@dataclass(frozen=True)
class Winograd(TargetedPass):
    """Computes tiles of the output of a convolution from products of transformed tiles and transformed filters.

    An output tile of m x m takes (m + 2)^2 multiplications per channel instead of 9 m^2: a quarter for m = 4. Filters
    are transformed at compile time, so only constant ones qualify; `tile` is m, or 0 to let `choose_tile` decide.

        %y = conv_2d_nhwc_hwcf(pad %x, %w)
      becomes, with T tiles and 36 = (4 + 2)^2 positions in each
        %v = transform of tiles of pad %x                   : 6x6x...xC, as 36xTxC
        %u = transform of %w, in f64                        : 36xCxF, evaluated at compile time
        %m = batch_matmul(%v, %u)                           : 36xTxF
        %y = slice of the transform of tiles of %m
    """

    name: ClassVar[str] = "winograd"
    tile: int = 0

    def run(self, module: mlir.Module) -> None:
        costs = costs_of(self.target)
        for function in functions(module):
            block = entry_block(function)
            constant = constant_ops(block)
            for op in [view for view in block.operations if view.operation.name == _CONV]:
                layer = _layer_of(op, constant)
                tile = None if layer is None or costs is None else self.tile or choose_tile(layer, costs)
                if layer is not None and tile:
                    with mlir.InsertionPoint(op), op.operation.location:
                        _rewrite(op, layer, tile)


@dataclass(frozen=True)
class Layer:
    """The sizes of a convolution that has such a form; likely ones where they are open."""

    batch: int
    height: int
    width: int
    channels: int
    filters: int


def _layer_of(op: mlir.OpView, constant: set[mlir.Operation]) -> Layer | None:
    image, filter_, init = op.operands
    types = [mlir.RankedTensorType(value.type) for value in (image, filter_, init)]
    if not all(isinstance(type_.element_type, mlir.F32Type) for type_ in types):
        return None
    windows = [op.attributes[name] for name in ("strides", "dilations") if name in op.attributes]
    if any(set(mlir.DenseIntElementsAttr(steps)) != {1} for steps in windows):
        return None
    if list(types[1].shape[:2]) != [TAPS, TAPS] or 0 in [*types[1].shape, *types[2].shape]:
        return None
    if defining_op(filter_) not in constant:
        return None
    channels, filters = types[1].shape[2:]
    if mlir.ShapedType.get_dynamic_size() in (channels, filters):
        return None
    side = _likely_side(max(channels, filters))
    batch, height, width = (
        likely if types[2].is_dynamic_dim(dim) else types[2].shape[dim] for dim, likely in enumerate((1, side, side))
    )
    return Layer(batch, height, width, channels, filters)


def _likely_side(channels: int) -> int:
    """How many pixels an image of open size has along a side: networks have fewer where they have more channels."""
    return max(_LEAST_SIDE, min(_LARGEST_SIDE, _CHANNELS_OF_ONE // channels))


def choose_tile(layer: Layer, costs: Costs) -> int | None:
    """The tile size that is estimated to be fastest, or None when the direct convolution is, or nearly."""
    best = min(OUTPUTS, key=lambda tile: _winograd_cost(layer, tile, costs))
    return best if _winograd_cost(layer, best, costs) < _WORTH_IT * _direct_cost(layer, costs) else None


def _direct_cost(layer: Layer, costs: Costs) -> float:
    weights = TAPS * TAPS * layer.channels * layer.filters
    return math.hypot(layer.batch * layer.height * layer.width * weights, costs.weight * weights)


def _winograd_cost(layer: Layer, tile: int, costs: Costs) -> float:
    positions = (tile + TAPS - 1) ** 2
    tiles = layer.batch * -(-layer.height // tile) * -(-layer.width // tile)
    weights = positions * layer.channels * layer.filters
    elements = positions * tiles * (layer.channels + layer.filters)
    transforms = elements * (costs.element if 4 * elements < costs.near_bytes else costs.far_element)
    return math.hypot(tiles * weights, costs.weight * weights) + transforms + costs.start


def _rewrite(op: mlir.OpView, layer: Layer, tile: int) -> None:
    image, filter_, init = op.operands
    made = matrices(tile)
    size = tile + TAPS - 1
    batch, height, width, filters = _sizes(init)
    rows, columns = (_divided(extent, tile) for extent in (height, width))
    tiles = [batch, rows, columns]

    padded = _cover(image, [height, width], tile)
    p, q, n, h, w, c, i, j = (mlir.AffineDimExpr.get(loop) for loop in range(8))
    read = mlir.AffineMap.get(8, 0, [n, h * tile + i, w * tile + j, c])
    write = mlir.AffineMap.get(8, 0, [p, q, n, h, w, c])
    zeros = _zeros([size, size, *tiles, layer.channels])
    inputs = tile_transform(padded, read, (made.input, made.input), TileLoops(0, 1, 6, 7), zeros, write)

    groups = [[0, 1], [2, 3, 4], [5]]
    flat = [size * size, _times(batch, _times(rows, columns))]
    inputs = tensor.CollapseShapeOp(_f32([*flat, layer.channels]), inputs, groups).result
    product = linalg.batch_matmul(inputs, _filters(filter_, layer, made), outs=[_zeros([*flat, layer.filters])])
    product = _split(product, groups, [size, size, *tiles, filters])

    n, h, p, w, q, c, i, j = (mlir.AffineDimExpr.get(loop) for loop in range(8))
    read = mlir.AffineMap.get(8, 0, [i, j, n, h, w, c])
    write = mlir.AffineMap.get(8, 0, [n, h * tile + p, w * tile + q, c])
    zeros = _zeros([batch, _times(rows, tile), _times(columns, tile), filters])
    result = tile_transform(product, read, (made.output, made.output), TileLoops(2, 4, 6, 7), zeros, write)
    result = _corner(result, [batch, height, width, filters])
    op.results[0].replace_all_uses_with(_plus(result, init))
    op.operation.erase()


def _cover(image: mlir.Value, sizes: list[_Extent], tile: int) -> mlir.Value:
    """The image with zeros added so that whole tiles fit; they join the zeros that are there already. Where the size is
    open as many are added as may be needed: what no tile reads costs nothing."""
    found = zero_padding(image)
    if found is None or min(*found[1], *found[2]) < 0:  # one that cuts stays
        found = (image, [0] * 4, [0] * 4)
    source, low, high = found
    added = [tile - 1 if isinstance(size, mlir.Value) else -size % tile for size in sizes]
    return pad_with_zeros(source, low, [high[0], high[1] + added[0], high[2] + added[1], high[3]])


def _filters(filter_: mlir.Value, layer: Layer, made: Matrices) -> mlir.Value:
    """(m + 2)^2 x C x F: `G g G^T`, computed in f64 because it is done once."""
    f64, f32 = mlir.F64Type.get(), mlir.F32Type.get()
    size, rest = made.filter.shape[0], [layer.channels, layer.filters]
    table_type = mlir.RankedTensorType.get(list(made.filter.shape), f64)
    table = arith.ConstantOp(table_type, mlir.DenseElementsAttr.get(np.ascontiguousarray(made.filter))).result
    p, q, c, f, i, j = (mlir.AffineDimExpr.get(loop) for loop in range(6))
    maps = [mlir.AffineMap.get(6, 0, exprs) for exprs in ([i, j, c, f], [p, i], [q, j], [p, q, c, f])]
    op = generic(
        [filter_, table, table], [_zeros([size, size, *rest], f64)], maps, ["parallel"] * 4 + ["reduction"] * 2
    )
    block = op.regions[0].blocks[0]
    with mlir.InsertionPoint(block):
        value, left, right, old = block.arguments
        factor = arith.MulFOp(left, right).result
        product = arith.MulFOp(factor, arith.ExtFOp(f64, value).result).result
        linalg.YieldOp([arith.AddFOp(old, product).result])
    identity = mlir.AffineMap.get_identity(4)
    empty = tensor.EmptyOp([size, size, *rest], f32).result
    rounded = generic([op.results[0]], [empty], [identity, identity], ["parallel"] * 4)
    block = rounded.regions[0].blocks[0]
    with mlir.InsertionPoint(block):
        linalg.YieldOp([arith.TruncFOp(f32, block.arguments[0]).result])
    return tensor.CollapseShapeOp(_f32([size * size, *rest]), rounded.results[0], [[0, 1], [2], [3]]).result


def _corner(value: mlir.Value, sizes: list[_Extent]) -> mlir.Value:
    type_ = _f32(sizes)
    if type_ == value.type and type_.has_static_shape:
        return value
    ones, zeros, open_ = [1] * len(sizes), [0] * len(sizes), [size for size in sizes if isinstance(size, mlir.Value)]
    return tensor.ExtractSliceOp(type_, value, [], open_, [], zeros, list(type_.shape), ones).result


def _split(value: mlir.Value, groups: list[list[int]], sizes: list[_Extent]) -> mlir.Value:
    type_, open_ = _f32(sizes), [size for size in sizes if isinstance(size, mlir.Value)]
    return tensor.ExpandShapeOp(type_, value, groups, open_, list(type_.shape)).result


def _plus(value: mlir.Value, init: mlir.Value) -> mlir.Value:
    """The convolution's initial value is added at the end; often it is a bias that was repeated."""
    scalar = fill_value(init)
    if scalar is not None and constant_scalar(scalar) == 0:
        return value
    identity = mlir.AffineMap.get_identity(4)
    empty = tensor.EmptyOp(_sizes(init), mlir.F32Type.get()).result
    op = generic([value, init], [empty], [identity] * 3, ["parallel"] * 4)
    block = op.regions[0].blocks[0]
    with mlir.InsertionPoint(block):
        linalg.YieldOp([arith.AddFOp(block.arguments[0], block.arguments[1]).result])
    return op.results[0]


def _zeros(sizes: list[_Extent], element: mlir.Type | None = None) -> mlir.Value:
    element = element or mlir.F32Type.get()
    zero = arith.ConstantOp(element, mlir.FloatAttr.get(element, 0.0)).result
    return linalg.fill(zero, outs=[tensor.EmptyOp(sizes, element).result])


_Extent = int | mlir.Value
"""A size of a tensor: a value where it is open."""


def _sizes(value: mlir.Value) -> list[_Extent]:
    type_ = mlir.RankedTensorType(value.type)
    return [
        tensor.DimOp(value, index_constant(dim)).result if type_.is_dynamic_dim(dim) else type_.shape[dim]
        for dim in range(type_.rank)
    ]


def _divided(extent: _Extent, by: int) -> _Extent:
    """Rounded up."""
    if isinstance(extent, int):
        return -(-extent // by)
    return arith.CeilDivSIOp(extent, index_constant(by)).result


def _times(one: _Extent, other: _Extent) -> _Extent:
    if isinstance(one, int) and isinstance(other, int):
        return one * other
    left, right = (index_constant(size) if isinstance(size, int) else size for size in (one, other))
    return arith.MulIOp(left, right).result


def _f32(sizes: list[_Extent]) -> mlir.RankedTensorType:
    open_ = mlir.ShapedType.get_dynamic_size()
    shape = [open_ if isinstance(size, mlir.Value) else size for size in sizes]
    return mlir.RankedTensorType.get(shape, mlir.F32Type.get())
