"""Convolutions, products and pools. Those of 8-bit integers are sums of integers, rescaled at the end."""

from __future__ import annotations

from typing import Any

import numpy as np

from eyas.frontends.tensorflow import windows
from eyas.frontends.tensorflow.graph import dims_of
from eyas.frontends.tensorflow.moves import known, reshape_to
from eyas.frontends.tensorflow.reductions import matrix_multiply
from eyas.frontends.tensorflow.windows import Window, channels_first, channels_last
from eyas.frontends.tflite.file import TensorRecord
from eyas.frontends.tflite.quantize import (
    clamp,
    dequantize_array,
    is_quantized,
    quantize,
    round_inputs,
    round_sums,
    scale_of,
    zero_of,
)
from eyas.frontends.tflite.translate import Call, activate

_PADDING = {0: "SAME", 1: "VALID"}


def conv_2d(call: Call) -> Any:
    kernel = call.g.transpose(call.input(1), [0, 3, 1, 2])
    groups = _groups(call, call.input(0), kernel)
    return _convolve(call, kernel, 0, groups)


def depthwise_conv_2d(call: Call) -> Any:
    """The filter is [1, H, W, channels]; several outputs of one input channel stand beside each other."""
    kernel = call.g.transpose(call.input(1), [3, 0, 1, 2])
    return _convolve(call, kernel, 3, call.g.size(call.input(0), 3))


def _groups(call: Call, x: Any, kernel: Any) -> int:
    had, taken = call.g.size(x, 3), call.g.size(kernel, 1)
    if taken == 0 or had % taken:
        raise call.refuse(f"{had} channels cannot be convolved with a filter of {taken}")
    return had // taken


def _window(call: Call) -> Window:
    return Window(
        (call.get("StrideH", 1), call.get("StrideW", 1)),
        (call.get("DilationHFactor", 1), call.get("DilationWFactor", 1)),
        _PADDING[call.get("Padding", 0)],
    )


def _convolve(call: Call, kernel: Any, axis: int, groups: int) -> Any:
    """`axis` is where the file has the filter's output channels."""
    g, window, bias = call.g, _window(call), call.input(2)
    if _is_integer(call, 1):
        x = g.transpose(call.input(0), channels_first(4))
        options = window.attributes(g, x, [g.size(kernel, 2), g.size(kernel, 3)])
        types = call.type(0), call.type(1)
        given = [x, scale_of(types[0]), zero_of(types[0]), kernel, scale_of(types[1]), zero_of(types[1])]
        made = g.add("QLinearConv", *given, scale_of(call.result), zero_of(call.result), bias, group=groups, **options)
        return clamp(g, g.transpose(made, channels_last(4)), call.result, call.activation)
    if _is_hybrid(call, 0, 1):
        return _finish(call, _convolve_hybrid(call, kernel, axis, window, groups))
    kernel = _real_kernel(call, kernel, axis)
    return _finish(call, windows.convolve(g, call.real(0), kernel, _real_bias(call, 2), window, groups))


def _convolve_hybrid(call: Call, kernel: Any, axis: int, window: Window, groups: int) -> Any:
    """Floats are rounded to 8 bits, each image by itself: of one image the sums are of integers.

    Where a window is one pixel and none is left out, LiteRT sees a product of rows, and rounds each pixel by itself.
    """
    g, bias = call.g, _real_bias(call, 2)
    is_product = dims_of(kernel)[2:] == (1, 1) and window.strides == (1, 1) and groups == 1
    if dims_of(call.input(0))[0] != 1 or is_product:
        x = round_inputs(g, call.input(0), [3] if is_product else range(1, 4))
        return windows.convolve(g, x, _real_kernel(call, kernel, axis), bias, window, groups)
    steps, scale, zero = g.add_many("DynamicQuantizeLinear", 3, g.transpose(call.input(0), channels_first(4)))
    options = window.attributes(g, steps, [g.size(kernel, 2), g.size(kernel, 3)])
    total = g.add("ConvInteger", steps, kernel, zero, group=groups, **options)
    weights = scale_of(call.type(1))
    factor = g.add("Mul", scale, weights.reshape(-1, 1, 1) if weights.ndim else weights)
    made = g.add("Mul", g.cast(total, np.float32), factor)
    made = made if bias is None else g.add("Add", made, g.reshape(bias, [-1, 1, 1]))
    return g.transpose(made, channels_last(4))


def _is_hybrid(call: Call, source: int, weights: int) -> bool:
    """Floats by symmetric weights of integers."""
    if not is_quantized(call.type(weights)) or call.type(source).kind != "FLOAT32":
        return False
    return call.type(weights).kind in ("INT4", "INT8") and not zero_of(call.type(weights)).any()


def _is_integer(call: Call, weights: int) -> bool:
    """Whether both factors are integers of 8 bits, and the result one that they can be rounded to."""
    types = call.type(0), call.type(weights), call.result
    if not all(map(is_quantized, types)) or types[0].quantization is None:
        return False
    return all(one.kind in ("INT4", "INT8", "UINT8") for one in types) and types[0].quantization.is_per_tensor


def _real_kernel(call: Call, kernel: Any, axis: int) -> Any:
    """Weights of integers where the rest is real (hybrid), or of 16-bit activations: real too."""
    record = call.type(1)
    if not is_quantized(record):
        return call.g.cast(kernel, np.float32)
    assert record.quantization is not None
    if not record.quantization.is_per_tensor and record.quantization.axis != axis:
        raise call.refuse(f"its weights have scales on axis {record.quantization.axis}")
    found = type(record.quantization)(record.quantization.scale, record.quantization.zero, 0)
    return dequantize_array(known(call.g, kernel, "weights"), found)


def _real_bias(call: Call, index: int) -> Any:
    """A bias of integers has the product of both scales, also where the file does not say so."""
    bias = call.input(index)
    if bias is None or np.dtype(bias.dtype).kind == "f":
        return bias
    scale = scale_of(call.type(0)) * scale_of(call.type(1))
    return known(call.g, bias, "bias").astype(np.float32) * scale.astype(np.float32)


def _finish(call: Call, x: Any) -> Any:
    x = activate(call.g, x, call.activation)
    return quantize(call.g, x, call.result) if is_quantized(call.result) else x


def fully_connected(call: Call) -> Any:
    """Weights are [outputs, inputs]; all but the last dimension of the input is a batch."""
    g, weights, bias = call.g, call.input(1), call.input(2)
    if call.get("WeightsFormat", 0):
        raise call.refuse("its weights are shuffled")
    width = g.size(weights, 1)
    x = call.input(0)
    dims = dims_of(x)
    flat = x if len(dims) == 2 and dims[1] == width else g.reshape(x, [-1, width])
    if _is_integer(call, 1):
        types = call.type(0), call.type(1)
        total = g.add("MatMulInteger", flat, g.transpose(weights, [1, 0]), zero_of(types[0]), zero_of(types[1]))
        total = total if bias is None else g.add("Add", total, g.cast(bias, np.int32))
        made = clamp(
            g, round_sums(g, total, scale_of(types[0]) * scale_of(types[1]), call.result), call.result, call.activation
        )
    elif _is_hybrid(call, 0, 1) and dims_of(flat)[0] == 1:
        steps, scale, zero = g.add_many("DynamicQuantizeLinear", 3, flat)
        total = g.add("MatMulInteger", steps, g.transpose(weights, [1, 0]), zero)
        made = g.add("Mul", g.cast(total, np.float32), g.add("Mul", scale, scale_of(call.type(1))))
        made = _finish(call, made if bias is None else g.add("Add", made, _real_bias(call, 2)))
    else:
        kernel = _real_kernel(call, weights, 0)
        given = call.real(0)
        given = given if len(dims) == 2 and dims[1] == width else g.reshape(given, [-1, width])
        given = round_inputs(g, given, [1]) if _is_hybrid(call, 0, 1) else given
        made = _finish(call, g.add("Gemm", given, kernel, _flat(call, _real_bias(call, 2)), transB=1))
    if call.get("KeepNumDims", False) and len(dims) != 2:
        return reshape_to(g, made, [*dims[:-1], g.size(weights, 0)])
    return made


def _flat(call: Call, bias: Any) -> Any:
    return bias if bias is None else call.g.reshape(bias, [-1])


def batch_matmul(call: Call) -> Any:
    g, adjoint = call.g, (call.get("AdjX", False), call.get("AdjY", False))
    if not _is_integer(call, 1) or not call.type(1).quantization.is_per_tensor:  # type: ignore[union-attr]
        x = call.real(0)
        x = round_inputs(g, x, [-2 if adjoint[0] else -1]) if _is_hybrid(call, 0, 1) else x
        made = matrix_multiply(g, x, call.real(1), *adjoint)
        return quantize(g, made, call.result) if is_quantized(call.result) else made
    x, y = (
        g.transpose(one, [*range(len(dims_of(one)) - 2), len(dims_of(one)) - 1, len(dims_of(one)) - 2]) if turn else one
        for one, turn in zip(call.inputs[:2], adjoint, strict=True)
    )
    types = call.type(0), call.type(1)
    total = g.add("MatMulInteger", x, y, zero_of(types[0]), zero_of(types[1]))
    return round_sums(g, total, scale_of(types[0]) * scale_of(types[1]), call.result)


def transpose_conv(call: Call) -> Any:
    """Inputs: the result's shape, weights [outputs, H, W, inputs], the image, perhaps a bias.

    Of integers the sums are exact in f32 up to 2^24, and are rescaled as those of a convolution are.
    """
    g = call.g
    shape = known(g, call.input(0), "shape of the result").tolist()
    window = Window((call.get("StrideH", 1), call.get("StrideW", 1)), (1, 1), _PADDING[call.get("Padding", 0)])
    kernel, image, bias = g.transpose(call.input(1), [3, 0, 1, 2]), call.input(2), call.input(3)
    weights, source = call.type(1), call.type(2)
    if is_quantized(weights) and is_quantized(source):
        # Centred integers in f32; the scale of a channel waits until the end.
        image = g.add("Sub", g.cast(image, np.float32), zero_of(source).astype(np.float32))
        kernel = known(g, kernel, "weights").astype(np.float32)
        zero = zero_of(weights).astype(np.float32)
        kernel = kernel - (zero.reshape(1, -1, 1, 1) if zero.ndim else zero)
        added = None if bias is None else known(g, bias, "bias").astype(np.float32)
        total = windows.convolve_transposed(g, image, kernel, added, window, shape[1:3])
        factor = scale_of(source) * scale_of(weights) / scale_of(call.result)
        made = g.add("QuantizeLinear", g.add("Mul", total, factor), np.array(1, np.float32), zero_of(call.result))
        return clamp(g, made, call.result, call.activation)
    if is_quantized(weights):
        image = round_inputs(g, image, range(1, 4)) if _is_hybrid(call, 2, 1) else image
        kernel = known(g, call.input(1), "weights")
        assert weights.quantization is not None
        kernel = np.ascontiguousarray(dequantize_array(kernel, weights.quantization).transpose(3, 0, 1, 2))
    return _finish(call, windows.convolve_transposed(g, image, kernel, bias, window, shape[1:3]))


def conv_3d(call: Call) -> Any:
    """The filter is [D, H, W, inputs, outputs]."""
    g = call.g
    kernel = g.transpose(call.input(1), [4, 3, 0, 1, 2])
    return _finish(call, windows.convolve(g, call.input(0), kernel, call.input(2), _window_3d(call)))


def conv_3d_transpose(call: Call) -> Any:
    """Inputs: the result's shape, weights [D, H, W, outputs, inputs], the image, perhaps a bias."""
    g = call.g
    shape = known(g, call.input(0), "shape of the result").tolist()
    kernel = g.transpose(call.input(1), [4, 3, 0, 1, 2])
    made = windows.convolve_transposed(g, call.input(2), kernel, call.input(3), _window_3d(call), shape[1:4])
    return _finish(call, made)


def _window_3d(call: Call) -> Window:
    strides = tuple(call.get(f"Stride{axis}", 1) for axis in "DHW")
    dilations = tuple(call.get(f"Dilation{axis}Factor", 1) for axis in "DHW")
    return Window(strides, dilations, _PADDING[call.get("Padding", 0)])


def _pool(kind: str) -> Any:
    def rule(call: Call) -> Any:
        g, x = call.g, call.input(0)
        window = Window((call.get("StrideH", 1), call.get("StrideW", 1)), (1, 1), _PADDING[call.get("Padding", 0)])
        kernel = [call.get("FilterHeight", 1), call.get("FilterWidth", 1)]
        if not is_quantized(call.result):
            return _finish(call, windows.pool(g, kind, x, kernel, window))
        if kind == "Max" and call.result.kind in ("INT8", "UINT8"):
            return clamp(g, windows.pool(g, kind, x, kernel, window), call.result, call.activation)
        mean = windows.pool(g, kind, g.cast(x, np.float32), kernel, window)
        return clamp(g, _round_away(call, mean, call.result), call.result, call.activation)

    return rule


def _round_away(call: Call, x: Any, record: TensorRecord) -> Any:
    """Halves away from zero, as integer division rounds them: means of few integers have many."""
    g = call.g
    up = g.add("Floor", g.add("Add", g.add("Abs", x), np.array(0.5, np.float32)))
    return g.cast(g.add("Mul", g.add("Sign", x), up), record.dtype)


def l2_pool_2d(call: Call) -> Any:
    window = Window((call.get("StrideH", 1), call.get("StrideW", 1)), (1, 1), _PADDING[call.get("Padding", 0)])
    kernel = [call.get("FilterHeight", 1), call.get("FilterWidth", 1)]
    return _finish(call, windows.pool(call.g, "L2", call.input(0), kernel, window))


EXACT = {
    "AVERAGE_POOL_2D": _pool("Average"),
    "BATCH_MATMUL": batch_matmul,
    "CONV_2D": conv_2d,
    "CONV_3D": conv_3d,
    "CONV_3D_TRANSPOSE": conv_3d_transpose,
    "DEPTHWISE_CONV_2D": depthwise_conv_2d,
    "FULLY_CONNECTED": fully_connected,
    "L2_POOL_2D": l2_pool_2d,
    "MAX_POOL_2D": _pool("Max"),
    "TRANSPOSE_CONV": transpose_conv,
}
