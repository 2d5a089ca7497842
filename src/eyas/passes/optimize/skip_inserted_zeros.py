"""`skip-inserted-zeros`: transposed convolutions multiply only what is not zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, linalg, tensor

from eyas.ir import Pass
from eyas.ir.padding import pad_with_zeros
from eyas.ir.structured import (
    constant_scalar,
    copy_body,
    element_type,
    fill_value,
    generic,
    index_constant,
    transpose,
)
from eyas.ir.walk import constant_int, defining_op, find_ops

_CONVS = ("linalg.conv_1d_ncw_fcw", "linalg.conv_2d_nchw_fchw", "linalg.conv_3d_ncdhw_fcdhw")
_OPEN = mlir.ShapedType.get_dynamic_size()


@dataclass(frozen=True)
class _Axis:
    """One direction: pixel i is at `low + stride * i` of an image of `stride * pixels + more`, which `taps` slide over.

    An output at `stride * q + r - shift` sees pixels from `q - before` on, with every stride-th tap from
    `stride - 1 - r` on. `shift` makes `before` the same for each r.
    """

    low: int
    stride: int
    more: int
    taps: int

    @property
    def shift(self) -> int:
        return (self.stride - 1 - self.low) % self.stride

    @property
    def steps(self) -> int:
        """The taps that meet pixels."""
        return -(-self.taps // self.stride)

    @property
    def before(self) -> int:
        """Zeros in front of the pixels."""
        return (self.low + self.shift - self.stride + 1) // self.stride

    @property
    def after(self) -> int:
        """Zeros behind the pixels, so that there are outputs for all positions."""
        beyond = -(-(self.more - self.taps + 1 + self.shift) // self.stride)
        return max(0, beyond + self.steps - 1 - self.before)

    @property
    def longer(self) -> int:
        """How many more outputs than pixels there are for each r."""
        return self.before + self.after - self.steps + 1

    @property
    def surplus(self) -> int:
        """Outputs that are computed and not asked for."""
        return self.stride * self.longer - (self.more - self.taps + 1)


@dataclass(frozen=True)
class SkipInsertedZeros(Pass):
    """Makes a convolution of an image that has zeros between its pixels one of the pixels alone.

    That is what frameworks make of a transposed convolution. Of the outputs, every s-th sees the pixels through the
    same taps: s sets of filters with 1/s of the taps compute all of them, side by side, with channels innermost. Where
    s does not divide the taps, zeros make the sets equally long; a pixel that is not finite makes NaN of them.

        %z = tensor.insert_slice %x into (fill 0) [0, 0, 11] [1, 256, 70] [1, 1, 8]     : 1x256x575
        %y = conv_1d_ncw_fcw(%z, %w : 128x256x16)                                       : 1x128x560
      becomes
        %p = linalg.generic (transpose (pad %x), %v : 2x256x8x128)                      : 1x71x8x128
        %y = transpose (extract_slice (collapse_shape %p) [0, 4, 0] [1, 560, 128])
    """

    name: ClassVar[str] = "skip-inserted-zeros"

    def run(self, module: mlir.Module) -> None:
        for op in find_ops(module, *_CONVS):
            slice_ = defining_op(op.operands[0])
            axes = _axes(op, slice_) if slice_ is not None else None
            if slice_ is not None and axes is not None and any(axis.stride > 1 for axis in axes):
                with mlir.InsertionPoint(op), op.operation.location:
                    _rewrite(op, slice_.operands[0], axes)


def _axes(op: mlir.OpView, slice_: mlir.Operation) -> list[_Axis] | None:
    """The directions of a convolution whose image is made of pixels and zeros, or None."""
    if slice_.name != "tensor.insert_slice" or not _is_plain(op) or not _is_zero(slice_.operands[1]):
        return None
    pixels, image = (mlir.RankedTensorType(value.type) for value in list(slice_.operands)[:2])
    offsets, strides = (list(mlir.DenseI64ArrayAttr(slice_.attributes[f"static_{n}"])) for n in ("offsets", "strides"))
    window = mlir.RankedTensorType(op.operands[1].type)
    if pixels.rank != image.rank or not window.has_static_shape or _OPEN in offsets or _OPEN in strides:
        return None
    if not isinstance(image.element_type, mlir.FloatType) or any(offsets[:2]) or strides[:2] != [1, 1]:
        return None
    if any(_constant_part(slice_, dim, 1) != 0 for dim in (0, 1)):
        return None  # images or channels of zeros behind the pixels
    axes = []
    for dim in range(2, image.rank):
        more = _constant_part(slice_, dim, strides[dim])
        if more is None:
            return None
        axes.append(_Axis(offsets[dim], strides[dim], more, window.shape[dim]))
    return axes if all(axis.surplus >= axis.shift for axis in axes) else None


def _is_plain(op: mlir.OpView) -> bool:
    """Whether a window moves by one and has no gaps."""
    return all(set(mlir.DenseIntElementsAttr(op.attributes[name])) == {1} for name in ("strides", "dilations"))


def _is_zero(value: mlir.Value) -> bool:
    scalar = fill_value(value)
    return scalar is not None and constant_scalar(scalar) == 0


def _constant_part(slice_: mlir.Operation, dim: int, stride: int) -> int | None:
    """The size of the image less `stride` times that of the pixels, if that is known."""
    pixels, image = _size(slice_.operands[0], dim), _size(slice_.operands[1], dim)
    terms = dict(image)
    for symbol, factor in pixels.items():
        terms[symbol] = terms.get(symbol, 0) - stride * factor
    constant = terms.pop(None, 0)
    given = {symbol: factor for symbol, factor in terms.items() if factor}
    return None if given else constant


_Terms = dict[mlir.Value | tuple[mlir.Value, int] | None, int]
"""Factors of values, or of the dimensions of tensors, that are added up; None stands for one."""

# Sums of sums are followed this far: what a size is to its image is said nearby.
_DEEPEST = 10


def _size(value: mlir.Value, dim: int, depth: int = 0) -> _Terms:
    type_ = mlir.RankedTensorType(value.type)
    if not type_.is_dynamic_dim(dim):
        return {None: type_.get_dim_size(dim)}
    owner = defining_op(value)
    if owner is not None and owner.name in ("linalg.fill", "linalg.generic", "linalg.broadcast", "linalg.transpose"):
        return _size(list(owner.operands)[-len(owner.results)], dim, depth)
    if owner is not None and owner.name == "tensor.empty":
        ordinal = sum(type_.is_dynamic_dim(before) for before in range(dim))
        return _terms(owner.operands[ordinal], depth)
    return {(value, dim): 1}


def _terms(value: mlir.Value, depth: int = 0) -> _Terms:
    """An integer as a sum of others."""
    constant, owner = constant_int(value), defining_op(value)
    if constant is not None:
        return {None: constant}
    if owner is None or depth == _DEEPEST:
        return {value: 1}
    if owner.name == "tensor.dim" and (dim := constant_int(owner.operands[1])) is not None:
        return _size(owner.operands[0], dim, depth + 1)
    if owner.name == "arith.index_cast":
        return _terms(owner.operands[0], depth + 1)
    if owner.name in ("arith.addi", "arith.subi"):
        sign = 1 if owner.name == "arith.addi" else -1
        total = dict(_terms(owner.operands[0], depth + 1))
        for symbol, factor in _terms(owner.operands[1], depth + 1).items():
            total[symbol] = total.get(symbol, 0) + sign * factor
        return total
    if owner.name == "arith.muli":
        sides = [_terms(operand, depth + 1) for operand in owner.operands]
        for one, other in (sides, sides[::-1]):
            if set(other) <= {None}:
                return {symbol: factor * other.get(None, 0) for symbol, factor in one.items()}
    return {value: 1}


def _rewrite(op: mlir.OpView, pixels: mlir.Value, axes: list[_Axis]) -> None:
    _, filter_, init = op.operands
    count = len(axes)
    last = [0, *range(2, 2 + count), 1]
    before, after = [0, 0, *(axis.before for axis in axes)], [0, 0, *(axis.after for axis in axes)]
    image = transpose(pad_with_zeros(pixels, before, after), last)
    loops = iter(mlir.AffineDimExpr.get(loop) for loop in range(3 * count + 3))
    sample = next(loops)
    position, phase = zip(*((next(loops), next(loops)) for _ in axes), strict=True)
    output, step, channel = next(loops), [next(loops) for _ in axes], next(loops)
    seen = [one + tap for one, tap in zip(position, step, strict=True)]
    written = [sample, *(loop for pair in zip(position, phase, strict=True) for loop in pair), output]
    reads = [[sample, *seen, channel], [*phase[:-1], *step, channel, phase[-1], output]]
    start = _init(init, pixels, axes)
    maps = [mlir.AffineMap.get(3 * count + 3, 0, exprs) for exprs in (*reads, written)]
    kinds = ["parallel"] * (2 * count + 2) + ["reduction"] * (count + 1)
    new = generic([image, _phases(filter_, axes)], [start], maps, kinds)
    copy_body(op, new)
    joined = _joined(new.results[0], axes)
    result = transpose(_cut(joined, init, axes), [0, 1 + count, *range(1, 1 + count)])
    if _bias(init) is None and not _is_zero(init):
        result = _added(result, init)
    op.results[0].replace_all_uses_with(result)
    op.operation.erase()


def _phases(filter_: mlir.Value, axes: list[_Axis]) -> mlir.Value:
    """The taps that meet pixels, for each place of an output between them: [r, ..., steps, ..., channels, r, outputs],
    where the last r stands beside the outputs."""
    type_ = mlir.RankedTensorType(filter_.type)
    outputs, channels = type_.shape[:2]
    padding = [0, 0, *(axis.stride * axis.steps - axis.taps for axis in axes)]
    padded = pad_with_zeros(filter_, [0] * len(padding), padding)
    strides, steps = [axis.stride for axis in axes], [axis.steps for axis in axes]
    shape = [*strides[:-1], *steps, channels, strides[-1], outputs]
    empty = tensor.EmptyOp(shape, type_.element_type).result
    new = generic([], [empty], [mlir.AffineMap.get_identity(len(shape))], ["parallel"] * len(shape))
    block = new.regions[0].blocks[0]
    with mlir.InsertionPoint(block):
        loops = [linalg.IndexOp(dim).result for dim in range(len(shape))]
        count = len(axes)
        phases = [*loops[: count - 1], loops[-2]]
        at = []
        for axis, phase, step in zip(axes, phases, loops[count - 1 : 2 * count - 1], strict=True):
            first = arith.SubIOp(index_constant(axis.stride - 1), phase).result
            at.append(arith.AddIOp(first, arith.MulIOp(step, index_constant(axis.stride)).result).result)
        linalg.YieldOp([tensor.ExtractOp(padded, [loops[-1], loops[-3], *at]).result])
    return new.results[0]


def _bias(init: mlir.Value) -> mlir.Value | None:
    """What a result begins with, when that is one number for each channel."""
    owner = defining_op(init)
    if owner is None or owner.name != "linalg.broadcast":
        return None
    rank = mlir.RankedTensorType(init.type).rank
    dims = list(mlir.DenseI64ArrayAttr(owner.attributes["dimensions"]))
    return owner.operands[0] if dims == [0, *range(2, rank)] else None


def _init(init: mlir.Value, pixels: mlir.Value, axes: list[_Axis]) -> mlir.Value:
    """The bias or zeros, in the shape that is computed."""
    outputs, element = mlir.RankedTensorType(init.type).shape[1], element_type(init)
    sizes: list[mlir.Value | int] = [_dim(pixels, 0, 0)]
    for dim, axis in enumerate(axes, start=2):
        sizes += [_dim(pixels, dim, axis.longer), axis.stride]
    empty = tensor.EmptyOp([*sizes, outputs], element).result
    bias = _bias(init)
    if bias is None:
        zero = arith.ConstantOp(element, mlir.FloatAttr.get(element, 0.0)).result
        return linalg.fill(zero, outs=[empty])
    rank = len(sizes) + 1
    # Repeated along the last phase, so that it and the outputs are one loop.
    rows = tensor.EmptyOp([axes[-1].stride, outputs], element).result
    repeated = _broadcast(bias, rows, [0])
    return _broadcast(repeated, empty, list(range(rank - 2)))


def _broadcast(value: mlir.Value, empty: mlir.Value, dims: list[int]) -> mlir.Value:
    op = linalg.BroadcastOp(result=[empty.type], input=value, init=empty, dimensions=dims)
    linalg.fill_builtin_region(op.operation)
    return op.results[0]


def _dim(value: mlir.Value, dim: int, more: int) -> mlir.Value | int:
    type_ = mlir.RankedTensorType(value.type)
    if not type_.is_dynamic_dim(dim):
        return type_.get_dim_size(dim) + more
    size = tensor.DimOp(value, index_constant(dim)).result
    return arith.AddIOp(size, index_constant(more)).result if more else size


def _joined(value: mlir.Value, axes: list[_Axis]) -> mlir.Value:
    """Positions and phases as one dimension."""
    shape = mlir.RankedTensorType(value.type).shape
    groups = [[0], *([1 + 2 * axis, 2 + 2 * axis] for axis in range(len(axes))), [len(shape) - 1]]
    sizes = [shape[0]]
    for axis in range(len(axes)):
        pair = shape[1 + 2 * axis : 3 + 2 * axis]
        sizes.append(_OPEN if _OPEN in pair else pair[0] * pair[1])
    type_ = mlir.RankedTensorType.get([*sizes, shape[-1]], element_type(value))
    return tensor.CollapseShapeOp(type_, value, groups).result


def _cut(value: mlir.Value, init: mlir.Value, axes: list[_Axis]) -> mlir.Value:
    """The positions that were asked for."""
    if not any(axis.surplus for axis in axes):
        return value
    count = len(axes)
    source = mlir.RankedTensorType(value.type)
    wanted = mlir.RankedTensorType(init.type).shape
    shape = [source.shape[0], *wanted[2:], source.shape[-1]]
    type_ = mlir.RankedTensorType.get(shape, source.element_type)
    sizes = [tensor.DimOp(value, index_constant(0)).result] if shape[0] == _OPEN else []
    sizes += [_dim(init, 2 + axis, 0) for axis in range(count) if wanted[2 + axis] == _OPEN]
    starts = [0, *(axis.shift for axis in axes), 0]
    return tensor.ExtractSliceOp(type_, value, [], sizes, [], starts, shape, [1] * len(shape)).result


def _added(value: mlir.Value, other: mlir.Value) -> mlir.Value:
    rank = mlir.RankedTensorType(value.type).rank
    identity = mlir.AffineMap.get_identity(rank)
    op = generic([value], [other], [identity, identity], ["parallel"] * rank)
    block = op.regions[0].blocks[0]
    with mlir.InsertionPoint(block):
        linalg.YieldOp([arith.AddFOp(*block.arguments).result])
    return op.results[0]
