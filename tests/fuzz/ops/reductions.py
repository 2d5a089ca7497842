"""Reductions, scans and what is made of them: softmax, norms, arg-max, sort, top-k."""

from __future__ import annotations

import numpy as np
from tests.fuzz.ops.base import Op, add, functional, jax, jnp, lax, torch
from tests.fuzz.ops.elementwise import FUNCTION_UNITS
from tests.fuzz.shadow import FLOATS, INFINITY, INTEGERS, UNIT, Shadow, elementwise, moved, rounded, total


def wide(dtype: str) -> str:
    """What sums of a type accumulate in."""
    return "f32" if dtype in ("f16", "bf16") else dtype


def _axes_build(dtypes, nonempty=False, one=False):
    def build(b):
        value = b.value(dtypes, min_rank=1, where=lambda t: not nonempty or all(t.smallest(i) for i in range(t.rank)))
        if value is None:
            return None
        rank = b.type(value).rank
        first = b.integer(0, rank - 1)
        axes = [first] if one else sorted({first, *(i for i in range(rank) if b.boolean())})
        return (value,), {"axes": tuple(axes), "keep": b.boolean()}

    return build


def _count(x: Shadow, axes) -> int:
    return int(np.prod([x.shape[axis] for axis in axes]))


def _sum(x: Shadow, axes, keep) -> Shadow:
    def add_up(value):
        return value.sum(tuple(axes), dtype=value.dtype, keepdims=keep)

    return total(add_up, [x], _count(x, axes), wide(x.dtype))


def _onnx_reduce(name):
    return lambda emit, a, k: emit(name, [a[0], emit.integers(k["axes"])], keepdims=int(k["keep"]))


add(
    Op(
        "sum",
        _axes_build((*FLOATS, *INTEGERS)),
        lambda args, k: _sum(args[0], k["axes"], k["keep"]),
        lambda a, k: torch.sum(a[0], k["axes"], keepdim=k["keep"], dtype=a[0].dtype),
        lambda a, k: jnp.sum(a[0], k["axes"], keepdims=k["keep"], dtype=a[0].dtype),
        _onnx_reduce("ReduceSum"),
        4,
    )
)


def average(add_up, x: Shadow, count: int) -> Shadow:
    """A sum in the wide type, which may overflow, and one division."""
    whole = total(add_up, [Shadow(x.value, x.error, wide(x.dtype))], count)
    with np.errstate(all="ignore"):
        return rounded(whole.value / np.float64(count), whole.error / max(count, 1), x.dtype, units=2.0)


def _mean(x: Shadow, axes, keep) -> Shadow:
    return average(lambda v: v.sum(tuple(axes), keepdims=keep), x, _count(x, axes))


add(
    Op(
        "mean",
        _axes_build(FLOATS),
        lambda args, k: _mean(args[0], k["axes"], k["keep"]),
        lambda a, k: torch.mean(a[0], k["axes"], keepdim=k["keep"]),
        lambda a, k: jnp.mean(a[0], k["axes"], keepdims=k["keep"]),
        _onnx_reduce("ReduceMean"),
        2,
    )
)


def _extreme(function):
    def evaluate(args, k):
        (x,) = args
        value = function(x.value, axis=k["axes"], keepdims=k["keep"])
        error = np.max(x.errors(), axis=k["axes"], keepdims=k["keep"])
        return Shadow(value, error, x.dtype)

    return evaluate


for _name, _f, _onnx in (("amax", np.max, "ReduceMax"), ("amin", np.min, "ReduceMin")):
    add(
        Op(
            _name,
            _axes_build((*FLOATS, *INTEGERS, "i1"), nonempty=True),
            _extreme(_f),
            lambda a, k, name=_name: getattr(torch, name)(a[0], k["axes"], keepdim=k["keep"]),
            lambda a, k, name=_name: getattr(jnp, name)(a[0], k["axes"], keepdims=k["keep"]),
            _onnx_reduce(_onnx),
        )
    )


def _product(args, k):
    (x,) = args
    (axis,) = k["axes"]
    if not x.is_float:
        with np.errstate(all="ignore"):
            value = np.prod(x.value, axis, dtype=x.value.dtype, keepdims=k["keep"])
        return Shadow(value, np.max(x.errors(), axis, keepdims=k["keep"], initial=0.0), x.dtype)
    result = Shadow(np.ones(np.delete(x.shape, axis)), np.zeros(np.delete(x.shape, axis)), x.dtype)
    for index in range(x.shape[axis]):
        part = Shadow(np.take(x.value, index, axis), np.take(x.errors(), index, axis), x.dtype)
        result = elementwise(np.multiply, result, part)
    # Another order may leave the range on the way.
    with np.errstate(all="ignore"):
        spread = np.sum(np.abs(np.log2(np.abs(x.value))), axis)
        has_zero_and_infinity = np.any(x.value == 0, axis) & np.any(np.isinf(x.value), axis)
    never = np.any(np.isnan(x.value), axis) | has_zero_and_infinity
    error = np.where((spread < 14) | never, result.errors(), INFINITY)
    result = Shadow(result.value, error, x.dtype)
    return moved(lambda v: np.expand_dims(v, axis), result) if k["keep"] else result


add(
    Op(
        "prod",
        _axes_build((*FLOATS, *INTEGERS), one=True),
        _product,
        lambda a, k: torch.prod(a[0], k["axes"][0], keepdim=k["keep"], dtype=a[0].dtype),
        lambda a, k: jnp.prod(a[0], k["axes"], keepdims=k["keep"], dtype=a[0].dtype),
        _onnx_reduce("ReduceProd"),
        1,
    )
)


def _logic(function):
    def evaluate(args, k):
        (x,) = args
        value = function(x.value, axis=k["axes"], keepdims=k["keep"])
        unsure = np.max(x.errors(), axis=k["axes"], keepdims=k["keep"], initial=0.0)
        return Shadow(value, unsure, "i1")

    return evaluate


for _name, _f in (("any", np.any), ("all", np.all)):
    add(
        Op(
            _name,
            _axes_build(("i1",), one=True),
            _logic(_f),
            lambda a, k, name=_name: getattr(torch, name)(a[0], k["axes"][0], keepdim=k["keep"]),
            lambda a, k, name=_name: getattr(jnp, name)(a[0], k["axes"], keepdims=k["keep"]),
            weight=1,
        )
    )


# Softmax and norms, out of the same steps.


def _part(function, x: Shadow, axis: int) -> Shadow:
    return Shadow(function(x.value, axis=axis, keepdims=True), np.max(x.errors(), axis=axis, keepdims=True), x.dtype)


def _as(x: Shadow, dtype: str) -> Shadow:
    return Shadow(x.value, x.error, dtype)


def _softmax(args, k):
    """Relative to its result, softmax moves by no more than the largest difference of inputs does."""
    (x,) = args
    axis, u = k["axis"], UNIT[x.dtype]
    with np.errstate(all="ignore"):
        top = np.max(x.value, axis=axis, keepdims=True)
        powers = np.exp(x.value - top)
        sums = powers.sum(axis, keepdims=True)
        value = powers / sums
        spread = 2 * np.max(x.errors(), axis=axis, keepdims=True)
        distance = np.where(np.isfinite(x.value - top), np.abs(x.value - top), 0.0)
        # JAX rounds the difference in the input's type before it takes the exponential.
        moved = np.expm1(np.minimum(spread + distance * u, 50.0))
        relative = moved + (x.shape[axis] + 12 + 4 * distance) * UNIT[wide(x.dtype)] + 4 * u
        error = np.where(np.isnan(value), 0.0, value * relative)
        # An infinity on either side of a bound changes everything.
        error = np.where(np.any(np.isinf(x.errors()), axis=axis, keepdims=True), INFINITY, error)
    if k["log"]:
        with np.errstate(all="ignore"):
            value = x.value - top - np.log(sums)
            error = spread + 8 * u * (np.abs(value) + distance + 1) + x.shape[axis] * UNIT[wide(x.dtype)]
            error = np.where(np.isinf(np.broadcast_to(spread, value.shape)), INFINITY, error)
            error = np.where(~np.isfinite(value) & np.isfinite(error), 0.0, error)
    return rounded(value, error, x.dtype)


def _axis_build(dtypes, nonempty=True, **attrs):
    def build(b):
        value = b.value(dtypes, min_rank=1, where=lambda t: not nonempty or all(t.smallest(i) for i in range(t.rank)))
        if value is None:
            return None
        drawn = {key: b.choose(options) for key, options in attrs.items()}
        return (value,), {"axis": b.integer(0, b.type(value).rank - 1), **drawn}

    return build


add(
    Op(
        "softmax",
        _axis_build(FLOATS, log=(False, True)),
        _softmax,
        lambda a, k: (torch.log_softmax if k["log"] else torch.softmax)(a[0], k["axis"]),
        lambda a, k: (jax.nn.log_softmax if k["log"] else jax.nn.softmax)(a[0], k["axis"]),
        lambda emit, a, k: emit("LogSoftmax" if k["log"] else "Softmax", a, axis=k["axis"]),
        3,
    )
)


def _normalize(args, k):
    """(x - mean) / sqrt(variance + 1) along the last axis, then scale and bias."""
    x, scale, bias = args
    inner = wide(x.dtype)
    x = _as(x, inner)
    centred = x
    if k["centre"]:
        centred = elementwise(np.subtract, x, _mean(x, (-1,), True))
    squares = elementwise(np.multiply, centred, centred)
    variance = _mean(squares, (-1,), True)
    factor = elementwise(lambda v: 1 / np.sqrt(v + k["eps"]), variance, units=FUNCTION_UNITS)
    made = elementwise(np.multiply, centred, factor)
    made = elementwise(np.multiply, made, _as(scale, inner))
    made = elementwise(np.add, made, _as(bias, inner))
    result = rounded(made.value, made.error, args[0].dtype)
    # The framework may round to the narrow type between steps.
    extra = 4 * UNIT[args[0].dtype] * (np.abs(made.value) + np.abs(bias.value)) if inner != args[0].dtype else 0.0
    return Shadow(result.value, result.error + extra, result.dtype)


def _build_normalize(b):
    value = b.value(FLOATS, min_rank=1, where=lambda t: isinstance(t.shape[-1], int) and t.shape[-1] > 0)
    if value is None:
        return None
    kind, size = b.type(value).dtype, b.type(value).shape[-1]
    return (value, b.leaf(kind, (size,), "normal"), b.leaf(kind, (size,), "normal")), {
        "centre": b.boolean(),
        "eps": 2.0**-10,  # exact in f32, in which ONNX keeps attributes
    }


def _torch_normalize(a, k):
    x, scale, bias = a
    if k["centre"]:
        return functional.layer_norm(x, x.shape[-1:], scale, bias, k["eps"])
    inner = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    return ((inner * torch.rsqrt((inner * inner).mean(-1, keepdim=True) + k["eps"])) * scale + bias).to(x.dtype)


def _jax_normalize(a, k):
    x, scale, bias = a
    inner = x.astype(jnp.float32) if x.dtype.itemsize == 2 else x
    centred = inner - inner.mean(-1, keepdims=True) if k["centre"] else inner
    made = centred * lax.rsqrt((centred * centred).mean(-1, keepdims=True) + k["eps"])
    return (made * scale + bias).astype(x.dtype)


add(
    Op(
        "normalize",
        _build_normalize,
        _normalize,
        _torch_normalize,
        _jax_normalize,
        lambda emit, a, k: (
            emit("LayerNormalization", a, axis=-1, epsilon=k["eps"])
            if k["centre"]
            else emit("Add", [emit("RMSNormalization", a[:2], axis=-1, epsilon=k["eps"]), a[2]])
        ),
        3,
    )
)


# Scans.


def _cumsum(args, k):
    """Partial sums may be rounded at each step."""
    (x,) = args

    def add_up(value):
        return np.cumsum(value, k["axis"], dtype=value.dtype)

    return total(add_up, args, x.shape[k["axis"]])


add(
    Op(
        "cumsum",
        _axis_build((*FLOATS, *INTEGERS), nonempty=False),
        _cumsum,
        lambda a, k: torch.cumsum(a[0], k["axis"], dtype=a[0].dtype),
        lambda a, k: jnp.cumsum(a[0], k["axis"], dtype=a[0].dtype),
        lambda emit, a, k: emit("CumSum", [a[0], emit.array(np.array(k["axis"], np.int64))]),
        2,
    )
)


# Order.


def _rows_with_ties(x: Shadow, axis: int, exact_ties: bool) -> np.ndarray:
    """Rows whose order rounding decides (or, with `exact_ties`, equal elements)."""
    order = np.argsort(x.value, axis=axis, kind="stable")
    value, error = np.take_along_axis(x.value, order, axis), np.take_along_axis(x.errors(), order, axis)
    first, second = (np.delete(value, -1, axis), np.delete(value, 0, axis)) if value.shape[axis] else (value, value)
    bound = np.delete(error, -1, axis) + np.delete(error, 0, axis) if value.shape[axis] else error
    with np.errstate(all="ignore"):
        gap = second.astype(np.float64) - first.astype(np.float64)
        unsure = (bound > 0) & ~(gap > bound)
        if exact_ties:
            unsure = unsure | ~(gap > 0)
    return np.any(unsure, axis=axis, keepdims=True) | np.any(np.isinf(x.errors()), axis=axis, keepdims=True)


def _sorted(x: Shadow, k) -> Shadow:
    value = np.sort(x.value, k["axis"], kind="stable")
    error = np.broadcast_to(np.max(x.errors(), k["axis"], keepdims=True, initial=0.0), value.shape)
    if k["descending"]:
        value = np.flip(value, k["axis"])
        # Where NaN goes differs between frameworks.
        error = np.where(np.any(np.isnan(value), k["axis"], keepdims=True), INFINITY, error) if x.is_float else error
    return Shadow(value, error, x.dtype)


def _argsort(args, k):
    (x,) = args
    keys = x.value
    if k["descending"]:
        keys = np.flip(keys, k["axis"])
    order = np.argsort(keys, axis=k["axis"], kind="stable").astype(np.int64)
    if k["descending"]:
        order = np.flip(x.shape[k["axis"]] - 1 - order, k["axis"])
    unsure = _rows_with_ties(x, k["axis"], exact_ties=False)
    if x.is_float:
        unsure = unsure | np.any(np.isnan(x.value), k["axis"], keepdims=True)
    return Shadow(order, np.where(np.broadcast_to(unsure, order.shape), INFINITY, 0.0), "i64")


add(
    Op(
        "sort",
        _axis_build((*FLOATS, *INTEGERS, "i1"), descending=(False, True)),
        lambda args, k: _sorted(args[0], k),
        lambda a, k: torch.sort(a[0], dim=k["axis"], descending=k["descending"], stable=True)[0],
        lambda a, k: jnp.sort(a[0], k["axis"], descending=k["descending"]),
        weight=1,
    )
)
add(
    Op(
        "argsort",
        _axis_build((*FLOATS, *INTEGERS, "i1"), descending=(False, True)),
        _argsort,
        lambda a, k: torch.sort(a[0], dim=k["axis"], descending=k["descending"], stable=True)[1],
        lambda a, k: jnp.argsort(a[0], k["axis"], descending=k["descending"], stable=True).astype(jnp.int64),
        weight=1,
    )
)


def _build_topk(b):
    value = b.value((*FLOATS, *INTEGERS), min_rank=1, where=lambda t: t.smallest(-1) > 0)
    if value is None:
        return None
    kind = b.type(value)
    return (value,), {"k": b.integer(1, min(kind.smallest(-1), 6)), "indices": b.boolean()}


def _topk(args, k):
    (x,) = args
    down = {"axis": -1 % len(x.shape), "descending": True}
    if not k["indices"]:
        made = _sorted(x, down)
        return Shadow(made.value[..., : k["k"]], made.errors()[..., : k["k"]], x.dtype)
    order = _argsort(args, down)
    unsure = np.broadcast_to(_rows_with_ties(x, down["axis"], exact_ties=True), order.shape)
    error = np.where(unsure, INFINITY, order.errors())
    return Shadow(order.value[..., : k["k"]], error[..., : k["k"]], "i64")


add(
    Op(
        "topk",
        _build_topk,
        _topk,
        lambda a, k: torch.topk(a[0], k["k"])[int(k["indices"])],
        lambda a, k: lax.top_k(a[0], k["k"])[1].astype(jnp.int64) if k["indices"] else lax.top_k(a[0], k["k"])[0],
        lambda emit, a, k: emit("TopK", [a[0], emit.integers([k["k"]])], outputs=2)[int(k["indices"])],
        1,
    )
)


def _arg_extreme(name):
    def evaluate(args, k):
        (x,) = args
        sign = 1 if name == "argmax" else -1
        best = getattr(np, name)(x.value, axis=k["axis"])
        rows = np.moveaxis(x.value.astype(np.float64), k["axis"], -1) * sign
        bounds = np.moveaxis(x.errors(), k["axis"], -1)
        chosen = np.take_along_axis(rows, best[..., None], -1)
        margin = bounds + np.take_along_axis(bounds, best[..., None], -1)
        with np.errstate(all="ignore"):
            rival = (chosen - rows <= margin) & (margin > 0)
        rival &= np.arange(rows.shape[-1]) != best[..., None]
        unsure = np.any(rival, -1) | np.any(np.isinf(bounds), -1) | np.any(np.isnan(rows), -1)
        return Shadow(best.astype(np.int64), np.where(unsure, INFINITY, 0.0), "i64")

    return evaluate


for _name in ("argmax", "argmin"):
    add(
        Op(
            _name,
            _axis_build((*FLOATS, *INTEGERS)),
            _arg_extreme(_name),
            lambda a, k, name=_name: getattr(torch, name)(a[0], k["axis"]),
            lambda a, k, name=_name: getattr(jnp, name)(a[0], k["axis"]).astype(jnp.int64),
            lambda emit, a, k, name=_name: emit(
                "ArgMax" if name == "argmax" else "ArgMin", a, axis=k["axis"], keepdims=0
            ),
            1,
        )
    )
