"""What models are made of: attention, variance, batch norm, transposed convolution, upsampling, mixed types."""

from __future__ import annotations

import numpy as np
from tests.fuzz.ops.base import Op, add, functional, jax, jnp, torch
from tests.fuzz.ops.elementwise import FUNCTION_UNITS, cast
from tests.fuzz.ops.linear import _convolve
from tests.fuzz.ops.reductions import _axes_build, _count, _mean, _softmax, average, wide
from tests.fuzz.shadow import (
    FLOATS,
    INFINITY,
    LARGEST,
    REALS,
    SMALLEST_NORMAL,
    UNIT,
    Shadow,
    elementwise,
    moved,
    rounded,
    total,
)

# Attention: two products around a softmax, which fuse or do not.


def _build_attention(b):
    kind = b.choose(FLOATS)
    lead = tuple(b.integer(1, 3) for _ in range(b.integer(0, 2)))
    size, rows, keys = b.choose((1, 2, 4, 8, 16)), b.integer(1, 17), b.integer(1, 17)
    key = b.operand(kind, (*lead, keys, size))
    return (b.operand(kind, (*lead, rows, size)), key, b.operand(kind, (*lead, keys, size))), {"causal": b.boolean()}


def _attention(args, k):
    query, key, value = args
    scores = total(lambda q, x: np.matmul(q, np.swapaxes(x, -1, -2)), [query, key], query.shape[-1], wide(query.dtype))
    if k["causal"]:
        hidden = np.triu(np.ones(scores.shape[-2:], bool), 1)
        low = np.float64(-1e4)
        scores = Shadow(np.where(hidden, low, scores.value), np.where(hidden, 0.0, scores.errors()), scores.dtype)
    weights = _softmax([scores], {"axis": len(scores.shape) - 1, "log": False})
    made = total(np.matmul, [weights, value], value.shape[-2], wide(value.dtype))
    # A weight may be rounded to zero, and zero times infinity is NaN.
    vanishing = (weights.value - weights.errors() <= SMALLEST_NORMAL[value.dtype]).astype(float)
    doubtful = np.matmul(vanishing, (~np.isfinite(value.value)).astype(float)) > 0
    # Sums may be divided by the sum of weights at the end, and overflow before.
    with np.errstate(all="ignore"):
        most = np.abs(value.value).sum(-2, keepdims=True)
    doubtful |= most > LARGEST[value.dtype]
    return Shadow(made.value, np.where(doubtful, INFINITY, made.errors()), made.dtype)


def _torch_attention(a, k):
    scores = torch.matmul(a[0], a[1].transpose(-1, -2))
    if k["causal"]:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, -1e4)
    return torch.matmul(torch.softmax(scores, -1), a[2])


def _jax_attention(a, k):
    scores = jnp.einsum("...qd,...kd->...qk", a[0], a[1], precision="highest")
    if k["causal"]:
        scores = jnp.where(jnp.triu(jnp.ones(scores.shape[-2:], bool), 1), jnp.asarray(-1e4, scores.dtype), scores)
    return jnp.matmul(jax.nn.softmax(scores, -1), a[2], precision="highest")


def _onnx_attention(emit, a, k):
    rank = len(emit.shapes[a[1]])
    order = [*range(rank - 2), rank - 1, rank - 2]
    scores = emit("MatMul", [a[0], emit("Transpose", [a[1]], perm=order)])
    if k["causal"]:
        shape = (emit.shapes[a[0]][-2], emit.shapes[a[1]][-2])
        hidden = emit.array(np.triu(np.ones(shape, bool), 1))
        scores = emit("Where", [hidden, emit.scalar_like(a[0], -1e4), scores])
    return emit("MatMul", [emit("Softmax", [scores], axis=-1), a[2]])


add(Op("attention", _build_attention, _attention, _torch_attention, _jax_attention, _onnx_attention, 2))


# Variance and log-sum-exp.


def _variance(args, k):
    (x,) = args
    inner = Shadow(x.value, x.error, wide(x.dtype))
    centred = elementwise(np.subtract, inner, _mean(inner, k["axes"], True))
    squares = elementwise(np.multiply, centred, centred)
    count = _count(x, k["axes"])
    made = average(lambda v: v.sum(k["axes"], keepdims=k["keep"]), squares, count - k["correction"])
    # The correction may leave nothing to divide by, and a sum of count terms was bounded with fewer.
    error = np.where(count <= k["correction"] + 1, INFINITY, 1.5 * made.errors())
    return rounded(made.value, error, x.dtype)


def _build_variance(b):
    drawn = _axes_build(FLOATS, nonempty=True)(b)
    if drawn is None:
        return None
    return drawn[0], {**drawn[1], "correction": b.integer(0, 1)}


add(
    Op(
        "variance",
        _build_variance,
        _variance,
        lambda a, k: torch.var(a[0], k["axes"], correction=k["correction"], keepdim=k["keep"]),
        lambda a, k: jnp.var(a[0], k["axes"], ddof=k["correction"], keepdims=k["keep"]),
        weight=2,
    )
)


def _log_sum_exp(args, k):
    (x,) = args
    with np.errstate(all="ignore"):
        top = np.max(x.value, axis=k["axes"], keepdims=True)
        shift = np.where(np.isfinite(top), top, 0.0)
        value = np.log(np.sum(np.exp(x.value - shift), axis=k["axes"], keepdims=True)) + shift
        spread = np.max(x.errors(), axis=k["axes"], keepdims=True)
        unit = UNIT[x.dtype]
        error = spread + FUNCTION_UNITS * unit * (np.abs(shift) + 2) + _count(x, k["axes"]) * unit
        error = np.where(np.isfinite(value) | np.isinf(spread), error, 0.0)
    if not k["keep"]:
        value, error = (np.squeeze(one, k["axes"]) for one in (value, np.broadcast_to(error, value.shape)))
    return rounded(value, error, x.dtype)


add(
    Op(
        "log_sum_exp",
        _axes_build(FLOATS, nonempty=True),
        _log_sum_exp,
        lambda a, k: torch.logsumexp(a[0], k["axes"], keepdim=k["keep"]),
        lambda a, k: jax.nn.logsumexp(a[0], k["axes"], keepdims=k["keep"]),
        lambda emit, a, k: emit("ReduceLogSumExp", [a[0], emit.integers(k["axes"])], keepdims=int(k["keep"])),
        1,
    )
)


# Images.


def _build_image(b, dtypes=FLOATS):
    return b.value(
        dtypes,
        min_rank=4,
        max_rank=4,
        where=lambda t: isinstance(t.shape[1], int) and all(t.smallest(i) for i in range(t.rank)),
    )


EPSILON = 2.0**-10  # exact in f32, in which ONNX keeps attributes


def _build_batch_norm(b):
    image = _build_image(b)
    kind = b.type(image)
    shape = (kind.shape[1],)
    kinds = ("normal", "positive", "normal", "normal")  # mean, variance, scale, bias
    return (image, *(b.leaf(kind.dtype, shape, one, constant=True) for one in kinds)), {}


def _batch_norm(args, k):
    x, mean, variance, scale, bias = args
    inner = wide(x.dtype)
    column = [Shadow(one.value[:, None, None], np.zeros(()), inner) for one in (mean, variance, scale, bias)]
    factor = elementwise(lambda v: 1 / np.sqrt(v + EPSILON), column[1], units=FUNCTION_UNITS)
    made = elementwise(np.subtract, Shadow(x.value, x.error, inner), column[0])
    made = elementwise(np.multiply, elementwise(np.multiply, made, factor), column[2])
    # Weights may be joined first, so that terms are larger than their difference.
    terms = (
        np.abs(x.value) * factor.value * np.abs(column[2].value)
        + np.abs(column[0].value * column[2].value) * factor.value
    )
    made = elementwise(np.add, made, column[3])
    with np.errstate(all="ignore"):
        extra = 8 * UNIT[x.dtype] * np.where(np.isfinite(terms), terms + np.abs(column[3].value), 0.0)
    with np.errstate(all="ignore"):
        extra = np.where(terms < LARGEST[x.dtype] / 16, extra, np.where(np.isfinite(x.value), INFINITY, extra))
    return rounded(made.value, made.error + extra, x.dtype)


add(
    Op(
        "batch_norm",
        _build_batch_norm,
        _batch_norm,
        lambda a, k: functional.batch_norm(*a, training=False, eps=EPSILON),
        onnx=lambda emit, a, k: emit("BatchNormalization", [a[0], a[3], a[4], a[1], a[2]], epsilon=EPSILON),
        weight=2,
    )
)


def _build_transposed(b):
    image = _build_image(b)
    kind = b.type(image)
    kernel = (b.integer(1, 3), b.integer(1, 3))
    weight = b.leaf(kind.dtype, (kind.shape[1], b.integer(1, 9), *kernel), "normal")
    strides = (b.integer(1, 3), b.integer(1, 3))
    padding = tuple(b.integer(0, size - 1) for size in kernel)
    if any(
        (kind.smallest(axis) - 1) * s + k <= 2 * p
        for axis, s, k, p in zip((2, 3), strides, kernel, padding, strict=True)
    ):
        return None
    return (image, weight), {"strides": strides, "padding": padding}


def _spread(x, k):
    """The image with zeros between pixels and around, so that an ordinary convolution follows."""
    (sy, sx), (py, px) = k["strides"], k["around"]
    out = np.zeros((*x.shape[:2], (x.shape[2] - 1) * sy + 1, (x.shape[3] - 1) * sx + 1), x.dtype)
    out[:, :, ::sy, ::sx] = x
    return np.pad(out, [(0, 0), (0, 0), (py, py), (px, px)])


def _transposed(args, k):
    weight = args[1]
    around = tuple(size - 1 - p for size, p in zip(weight.shape[2:], k["padding"], strict=True))
    plain = {"groups": 1, "padding": (0, 0), "strides": (1, 1), "dilations": (1, 1)}

    def convolve(x, w):
        turned = np.swapaxes(w[:, :, ::-1, ::-1], 0, 1)
        return _convolve(_spread(x, {**k, "around": around}), turned, plain)

    made = total(convolve, args, int(np.prod(weight.shape)) // weight.shape[1], wide(weight.dtype))
    doubtful = _meets_zeros(args, k, around)
    return Shadow(made.value, np.where(doubtful, INFINITY, made.errors()), made.dtype)


def _meets_zeros(args, k, around):
    """Where what is not finite may be multiplied by a zero that stands for nothing: a weight by those between and
    around the pixels, which other ways to compute it do not have, and a pixel by those that make all sets of every
    stride-th tap as long as the longest."""
    pixels, weights = (~np.isfinite(arg.value) | ~np.isfinite(arg.errors()) for arg in args)
    plain = {"groups": 1, "padding": (0, 0), "strides": (1, 1), "dilations": (1, 1)}
    empty = 1.0 - _spread(np.ones(args[0].shape), {**k, "around": around})
    turned = np.swapaxes(weights[:, :, ::-1, ::-1], 0, 1).astype(float)
    missing = [-taps % stride for taps, stride in zip(weights.shape[2:], k["strides"], strict=True)]
    behind = [(0, 0), (0, 0), *((0, more) for more in missing)]
    image = np.pad(_spread(pixels.astype(float), {**k, "around": around}), behind)
    added = np.pad(np.zeros(turned.shape), behind, constant_values=1.0)
    return (_convolve(empty, turned, plain) > 0) | (_convolve(image, added, plain) > 0)


add(
    Op(
        "transposed_conv",
        _build_transposed,
        _transposed,
        lambda a, k: functional.conv_transpose2d(a[0], a[1], None, k["strides"], k["padding"]),
        onnx=lambda emit, a, k: emit("ConvTranspose", a, strides=k["strides"], pads=[*k["padding"], *k["padding"]]),
        weight=2,
    )
)

add(
    Op(
        "upsample",
        lambda b: ((_build_image(b),), {"factor": b.integer(1, 3)}),
        lambda args, k: moved(lambda x: x.repeat(k["factor"], 2).repeat(k["factor"], 3), args[0]),
        lambda a, k: functional.interpolate(a[0], scale_factor=k["factor"], mode="nearest"),
        lambda a, k: jnp.repeat(jnp.repeat(a[0], k["factor"], 2), k["factor"], 3),
        weight=1,
    )
)


# Types that meet.

_PROMOTED = {
    ("i8", "u8"): "i16",
    ("f16", "bf16"): "f32",
    ("i1", "i1"): "i1",
}


def promoted(one: str, other: str) -> str:
    """torch's result type of two tensors with dimensions."""
    if one == other:
        return one
    if tuple(sorted((one, other))) in {tuple(sorted(pair)) for pair in _PROMOTED}:
        return next(to for pair, to in _PROMOTED.items() if set(pair) == {one, other})
    if {one, other} & {"u16", "u32", "u64"}:
        raise ValueError("torch promotes these with nothing else")
    floats = [name for name in (one, other) if name in UNIT]
    if len(floats) == 1:
        return floats[0]
    order = ("i1", "u8", "i8", "i16", "i32", "i64", "bf16", "f16", "f32", "f64")
    return max(one, other, key=order.index)


def _build_mixed(b):
    first = b.value(REALS, min_rank=1)
    return (first, b.companion(first, dtype=b.choose(REALS))), {}


def _mixed(args, k):
    to = promoted(args[0].dtype, args[1].dtype)
    if to == "i1" or not all(arg.shape for arg in args):
        raise ValueError("tensors without dimensions are promoted by other rules")
    return elementwise(np.multiply, *(cast(arg, to) for arg in args))


add(Op("mixed_mul", _build_mixed, _mixed, lambda a, k: a[0] * a[1], weight=2))
