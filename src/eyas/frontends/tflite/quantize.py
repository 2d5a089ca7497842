"""Quantised tensors between their stored integers and the real numbers that they stand for.

A quantised operator of TFLite rounds its real result once, to the step of its output. Here that is float arithmetic and
a rounding to even, which is what XNNPACK does; the reference kernels differ by one step at ties.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eyas.errors import FrontendError
from eyas.frontends.tensorflow.graph import Graph
from eyas.frontends.tflite.file import Quantization, TensorRecord

INTEGERS = ("INT4", "INT8", "UINT8", "INT16", "UINT16")


def is_quantized(record: TensorRecord | None) -> bool:
    """Whether a tensor holds integers that stand for real numbers."""
    return record is not None and record.quantization is not None and record.kind in INTEGERS


def zero_of(record: TensorRecord) -> np.ndarray:
    """The zero point in the type of the tensor: a scalar, or a vector per channel."""
    found = _quantization(record)
    zero = found.zero.astype(record.dtype)
    return zero.reshape(()) if found.is_per_tensor else zero


def scale_of(record: TensorRecord) -> np.ndarray:
    found = _quantization(record)
    return found.scale.reshape(()) if found.is_per_tensor else found.scale


def _quantization(record: TensorRecord) -> Quantization:
    if record.quantization is None:
        raise FrontendError(f"tensor '{record.name}' holds integers that stand for real numbers, but has no scale")
    return record.quantization


def dequantize(g: Graph, x: Any, record: TensorRecord) -> Any:
    """The real numbers, f32."""
    found = record.quantization
    assert found is not None
    if isinstance(x, np.ndarray):
        return dequantize_array(x, found)
    axis = 0 if found.is_per_tensor else found.axis
    return g.add("DequantizeLinear", x, scale_of(record), zero_of(record), axis=axis)


def dequantize_array(x: np.ndarray, found: Quantization) -> np.ndarray:
    spread = [1] * x.ndim
    if not found.is_per_tensor:
        spread[found.axis] = -1
    scale, zero = (one.reshape(spread) if x.ndim else one.reshape(()) for one in (found.scale, found.zero))
    return (x.astype(np.int64) - zero).astype(np.float32) * scale


def quantize(g: Graph, x: Any, record: TensorRecord) -> Any:
    """Real numbers as the integers of an output."""
    axis = 0 if record.quantization is None or record.quantization.is_per_tensor else record.quantization.axis
    scale, zero = scale_of(record), zero_of(record)
    if isinstance(x, np.ndarray) and not scale.ndim:
        limits = np.iinfo(record.dtype)
        return np.clip(np.round(x / scale) + zero, limits.min, limits.max).astype(record.dtype)
    return g.add("QuantizeLinear", x, scale, zero, axis=axis)


def requantize(g: Graph, x: Any, source: TensorRecord, target: TensorRecord) -> Any:
    """Integers of one scale as those of another."""
    if not is_quantized(source) or not is_quantized(target):
        return x
    assert source.quantization is not None
    if source.quantization.equals(target.quantization):
        return x
    return quantize(g, dequantize(g, x, source), target)


def round_sums(g: Graph, total: Any, factor: np.ndarray, record: TensorRecord) -> Any:
    """INT32 sums times the scale of their products over that of the output, rounded into it."""
    real = g.add("Mul", g.cast(total, np.float32), (factor / scale_of(record)).astype(np.float32))
    return g.add("QuantizeLinear", real, np.array(1, np.float32), zero_of(record))


def clamp(g: Graph, x: Any, record: TensorRecord, activation: str) -> Any:
    """A fused activation on stored integers; one that cuts nothing off is none."""
    bounds = {"RELU": (0.0, None), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}.get(activation)
    if bounds is None:
        return x
    limits = np.iinfo(record.dtype)
    scale, zero = float(scale_of(record)), int(zero_of(record))
    low, high = (None if bound is None else round(bound / scale) + zero for bound in bounds)
    if low is not None and low > limits.min:
        x = g.add("Max", x, np.array(min(low, limits.max), record.dtype))
    if high is not None and high < limits.max:
        x = g.add("Min", x, np.array(max(high, limits.min), record.dtype))
    return x


def round_inputs(g: Graph, x: Any, axes: Sequence[int]) -> Any:
    """Real numbers rounded to 256 steps between their extremes along some axes, zero among them, and real again.

    This is how LiteRT gives floats to weights of 8 bits (hybrid operators): for each row or image on its own.
    """
    zero, along = np.array(0, np.float32), np.array(list(axes), np.int64)
    low = g.add("Min", g.add("ReduceMin", x, along, keepdims=1), zero)
    high = g.add("Max", g.add("ReduceMax", x, along, keepdims=1), zero)
    scale = g.add("Div", g.add("Sub", high, low), np.array(255, np.float32))
    scale = g.add("Where", g.add("Equal", scale, zero), np.array(1, np.float32), scale)
    first = g.add("Round", g.add("Neg", g.add("Div", low, scale)))
    steps = g.add("Add", g.add("Round", g.add("Div", x, scale)), first)
    steps = g.add("Clip", steps, zero, np.array(255, np.float32))
    return g.add("Mul", g.add("Sub", steps, first), scale)
