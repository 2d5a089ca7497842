"""Operators that draw random numbers, as arithmetic on `EyasRandom`: uniform or normal numbers of a tensor's shape."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto

from eyas.frontends.onnx.rewrite.rules import Builder, attribute, operand

_DOMAIN = "eyas"


def numbers(
    b: Builder,
    like: str,
    distribution: str,
    seed: float | None,
    data_type: int = TensorProto.FLOAT,
    dims: Sequence[int | str | None] | None = None,
) -> str:
    """Numbers in the shape of a value: `uniform` in [0, 1), or `normal` with mean 0 and variance 1. `dims` are its
    sizes, where it is not a value of the graph."""
    if dims is None:
        dims = [b.name_of(like, axis) for axis in range(b.rank_of(like) or 0)]
    given = {} if seed is None else {"seed": float(seed)}
    result = b.add("EyasRandom", like, domain=_DOMAIN, distribution=distribution, **given)
    b.declare_type(result, onnx.helper.make_tensor_type_proto(_wide(data_type), dims))
    return result


def _wide(data_type: int) -> int:
    """The type that numbers are drawn in."""
    return TensorProto.DOUBLE if data_type == TensorProto.DOUBLE else TensorProto.FLOAT


def random_normal(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """RandomNormal and RandomNormalLike."""
    return _scaled(node, b, "normal", attribute(node, "mean", 0.0), attribute(node, "scale", 1.0))


def random_uniform(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """RandomUniform and RandomUniformLike."""
    low, high = attribute(node, "low", 0.0), attribute(node, "high", 1.0)
    return _scaled(node, b, "uniform", low, high - low)


def _scaled(node: onnx.NodeProto, b: Builder, distribution: str, offset: float, factor: float) -> list[str] | None:
    seed, kind = attribute(node, "seed", None), attribute(node, "dtype", 0)
    if node.op_type.endswith("Like"):
        if b.rank_of(node.input[0]) is None:
            return None
        kind = kind or b.type_of(node.input[0])
        value = numbers(b, node.input[0], distribution, seed, kind)
    else:
        kind = kind or TensorProto.FLOAT
        shape = attribute(node, "shape", [])
        like = b.add("ConstantOfShape", b.constant(shape, np.int64))
        value = numbers(b, like, distribution, seed, kind, shape)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(_wide(kind))
    if factor != 1:
        value = b.add("Mul", value, b.constant(factor, dtype))
    if offset != 0:
        value = b.add("Add", value, b.constant(offset, dtype))
    return [value if kind == _wide(kind) else b.cast(value, kind)]


def bernoulli(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """1 where a uniform number is below the chance."""
    if b.rank_of(node.input[0]) is None:
        return None
    kind = b.type_of(node.input[0])
    chance = node.input[0] if kind == _wide(kind) else b.cast(node.input[0], _wide(kind))
    drawn = b.add("Less", numbers(b, node.input[0], "uniform", attribute(node, "seed", None), kind), chance)
    return [b.cast(drawn, attribute(node, "dtype", 0) or kind)]


def multinomial(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """The largest logarithm of a chance plus Gumbel noise is at a class as often as its chance says."""
    scores, samples = node.input[0], attribute(node, "sample_size", 1)
    if b.rank_of(scores) != 2:
        return None
    kind = b.type_of(scores)
    dims = [b.name_of(scores, 0), samples, b.name_of(scores, 1)]
    if kind != _wide(kind):
        scores = b.cast(scores, _wide(kind))
    axes = {"axes": [1]} if b.opset < 13 else {}
    rows = b.add("Unsqueeze", scores, *([] if axes else [b.constant([1], np.int64)]), **axes)
    rows = b.add("Expand", rows, b.constant([1, samples, 1], np.int64))
    drawn = numbers(b, rows, "uniform", attribute(node, "seed", None), kind, dims)
    noise = b.add("Neg", b.add("Log", b.add("Neg", b.add("Log", drawn))))
    chosen = b.add("ArgMax", b.add("Add", rows, noise), axis=2, keepdims=0)
    wanted = attribute(node, "dtype", TensorProto.INT32)
    return [chosen if wanted == TensorProto.INT64 else b.cast(chosen, wanted)]


def dropout(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """In training mode. With a seed and a known shape, the numbers that the standard's reference draws are a constant;
    otherwise they are drawn in each call."""
    data, training = node.input[0], operand(node, 2)
    shape, kind = b.shape_of(data), b.type_of(data)
    if b.opset < 12 or not training or b.rank_of(data) is None:
        return None
    known = b.value_of(training)
    if known is not None and not known.any():
        everything = onnx.helper.make_tensor("value", TensorProto.BOOL, [1], [True])
        mask = b.add("ConstantOfShape", b.add("Shape", data), value=everything)
        return [data, mask][: len([name for name in node.output if name])]
    ratio = b.value_of(operand(node, 1)) if operand(node, 1) else np.float32(0.5)
    seed = attribute(node, "seed", None)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
    if shape is not None and (seed is not None or (ratio is not None and ratio == 0)):
        drawn = b.constant(np.random.RandomState(seed).uniform(0, 1.0, shape))
    else:
        drawn = numbers(b, data, "uniform", seed, TensorProto.DOUBLE)
    chance = operand(node, 1) or b.constant(0.5, np.float32)
    chance = b.cast(chance, TensorProto.DOUBLE)
    one, zero = b.constant(1.0, np.float64), b.constant(0.0, np.float64)
    idle = b.add("Or", b.add("Not", training), b.add("Equal", chance, zero))
    mask = b.add("Or", b.add("Not", b.add("Less", drawn, chance)), idle)
    scale = b.cast(b.add("Where", idle, one, b.add("Div", one, b.add("Sub", one, chance))), kind)
    kept = b.add("Where", mask, b.add("Mul", data, scale), b.constant(0, dtype))
    return [kept, mask][: len([name for name in node.output if name])]
