"""`trim-windows`: convolutions leave out taps that only ever see padding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import linalg, tensor

from eyas.ir import Pass
from eyas.ir.structured import constant_scalar, element_type
from eyas.ir.walk import defining_op, find_ops

_OPS = {
    "linalg.conv_2d_nhwc_hwcf": linalg.Conv2DNhwcHwcfOp,
    "linalg.depthwise_conv_2d_nhwc_hwc": linalg.DepthwiseConv2DNhwcHwcOp,
}


@dataclass(frozen=True)
class _Axis:
    """One direction of the window: the image without padding, the padding, and the taps."""

    size: int
    low: int
    taps: int
    stride: int
    dilation: int
    positions: int

    def sees_image(self, tap: int) -> bool:
        first = tap * self.dilation - self.low
        return any(0 <= first + self.stride * position < self.size for position in range(self.positions))

    def kept(self) -> tuple[int, int]:
        """The taps to keep, from and to: the outer ones that see nothing are gone, if padding remains positive."""
        first, last = 0, self.taps
        while first + 1 < last and not self.sees_image(first) and self.low >= (first + 1) * self.dilation:
            first += 1
        while last - 1 > first and not self.sees_image(last - 1):
            last -= 1
        return first, last

    def padding(self, first: int, last: int) -> tuple[int, int]:
        """Below and above, so that the kept taps have all they read."""
        low = self.low - first * self.dilation
        needed = (self.positions - 1) * self.stride + (last - first - 1) * self.dilation + 1
        return low, max(0, needed - low - self.size)


@dataclass(frozen=True)
class TrimWindows(Pass):
    """Cuts the outer taps of a filter when the zeros around the image are all that they meet.

    With a dilation that is larger than the image, as in the last layers of segmentation networks, only the middle of
    the window sees anything: a 3x3 convolution is a product with one matrix, and the padding is many times the image.

        %p = tensor.pad %x low[0, 36, 36, 0] high[0, 36, 36, 0]              : 16x16 to 88x88
        %y = conv_2d_nhwc_hwcf {dilations = 36} (%p, %w : 3x3x960x256)
      becomes
        %t = tensor.extract_slice %w[1, 1, 0, 0] [1, 1, 960, 256]
        %y = conv_2d_nhwc_hwcf {dilations = 36} (%x, %t : 1x1x960x256)
    """

    name: ClassVar[str] = "trim-windows"

    def run(self, module: mlir.Module) -> None:
        for op in find_ops(module, *_OPS):
            pad = defining_op(op.operands[0])
            if pad is not None and pad.name == "tensor.pad" and _pads_with_zeros(pad):
                with mlir.InsertionPoint(op), op.operation.location:
                    _trim(op, pad)


def _trim(op: mlir.OpView, pad: mlir.Operation) -> None:
    image, filter_, init = pad.operands[0], op.operands[1], op.operands[2]
    shapes = [mlir.RankedTensorType(value.type) for value in (image, filter_, init)]
    if not all(shape.has_static_shape for shape in shapes):
        return
    lows, highs = (list(mlir.DenseI64ArrayAttr(pad.attributes[name])) for name in ("static_low", "static_high"))
    strides, dilations = (list(mlir.DenseIntElementsAttr(op.attributes[name])) for name in ("strides", "dilations"))
    axes = [
        _Axis(shapes[0].shape[1 + d], lows[1 + d], shapes[1].shape[d], strides[d], dilations[d], shapes[2].shape[1 + d])
        for d in range(2)
    ]
    kept = [axis.kept() for axis in axes]
    if all(last - first == axis.taps for axis, (first, last) in zip(axes, kept, strict=True)):
        return
    for d, (axis, ends) in enumerate(zip(axes, kept, strict=True)):
        lows[1 + d], highs[1 + d] = axis.padding(*ends)
    rest = list(shapes[1].shape)[2:]
    taps = [last - first for first, last in kept]
    type_ = mlir.RankedTensorType.get([*taps, *rest], element_type(filter_))
    starts = [first for first, _ in kept] + [0] * len(rest)
    cut = tensor.ExtractSliceOp(type_, filter_, [], [], [], starts, [*taps, *rest], [1] * (2 + len(rest))).result
    new = _OPS[op.operation.name](
        [init.type],
        [_padded(pad, image, lows, highs), cut],
        [init],
        strides=op.attributes["strides"],
        dilations=op.attributes["dilations"],
    )
    linalg.fill_builtin_region(new.operation)
    op.results[0].replace_all_uses_with(new.results[0])
    op.operation.erase()


def _padded(pad: mlir.Operation, image: mlir.Value, lows: list[int], highs: list[int]) -> mlir.Value:
    if not any(lows + highs):
        return image
    source = mlir.RankedTensorType(image.type)
    shape = [low + size + high for low, size, high in zip(lows, source.shape, highs, strict=True)]
    type_ = mlir.RankedTensorType.get(shape, source.element_type)
    new = tensor.PadOp(type_, image, [], [], lows, highs)
    index = mlir.IndexType.get()
    block = new.operation.regions[0].blocks.append(*[index] * len(shape), arg_locs=[pad.location] * len(shape))
    with mlir.InsertionPoint(block):
        tensor.YieldOp(_yielded(pad))
    return new.result


def _yielded(pad: mlir.Operation) -> mlir.Value:
    return list(pad.regions[0].blocks[0].operations)[-1].operands[0]


def _pads_with_zeros(pad: mlir.Operation) -> bool:
    """By constant amounts, with a constant from outside of the op that is zero."""
    value = _yielded(pad)
    owner = defining_op(value)
    return len(pad.operands) == 1 and owner is not None and owner.parent != pad and constant_scalar(value) == 0
