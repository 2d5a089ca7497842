"""Reductions, orders and norms along axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from eyas.frontends.tensorflow.elementwise import constant, is_float
from eyas.frontends.tensorflow.graph import Graph, Tensor, dims_of
from eyas.frontends.tensorflow.moves import axis_of, known
from eyas.frontends.tensorflow.windows import channels_first, channels_last

_KINDS = {"Sum": "ReduceSum", "Mean": "ReduceMean", "Max": "ReduceMax", "Min": "ReduceMin", "Prod": "ReduceProd"}


def reduce(g: Graph, kind: str, x: Any, axes: Tensor, keep: bool) -> Any:
    """`kind` is Sum, Mean, Max, Min, Prod, Any or All."""
    rank = len(dims_of(x))
    chosen = sorted({axis_of(g, int(axis), rank) for axis in known(g, axes, "axes").reshape(-1)})
    if not chosen:
        return x
    if kind in ("Any", "All"):
        found = reduce(g, "Max" if kind == "Any" else "Min", g.cast(x, np.int32), axes, keep)
        return g.cast(found, np.bool_)
    if kind == "Mean" and not is_float(x):
        total = reduce(g, "Sum", x, axes, keep)
        count = int(np.prod([g.size(x, axis) for axis in chosen]))
        return g.add("Div", total, constant(x, count))
    return g.add(_KINDS[kind], x, np.array(chosen, np.int64), keepdims=int(keep))


def arg_extreme(g: Graph, kind: str, x: Any, axis: Tensor, dtype: Any) -> Any:
    """`kind` is "ArgMax" or "ArgMin"; the axis disappears."""
    place = axis_of(g, int(known(g, axis, "axis").reshape(-1)[0]), len(dims_of(x)))
    return g.cast(g.add(kind, x, axis=place, keepdims=0), dtype)


def top_k(g: Graph, x: Any, k: Tensor, dtype: Any = np.int32) -> list[Any]:
    count = g.cast(g.reshape(k, [1]), np.int64)
    values, places = g.add_many("TopK", 2, x, count, axis=-1)
    return [values, g.cast(places, dtype)]


def cumulative(g: Graph, x: Any, axis: Tensor, exclusive: bool, reverse: bool) -> Any:
    place = known(g, axis, "axis").reshape(()).astype(np.int64)
    return g.add("CumSum", x, place, exclusive=int(exclusive), reverse=int(reverse))


def softmax(g: Graph, x: Any, beta: float = 1.0) -> Any:
    if beta != 1.0:
        x = g.add("Mul", x, constant(x, beta))
    return g.add("Softmax", x, axis=-1)


def log_softmax(g: Graph, x: Any) -> Any:
    return g.add("LogSoftmax", x, axis=-1)


def l2_normalize(g: Graph, x: Any, smallest: float) -> Any:
    """Divided by its length along the last axis."""
    total = g.add("ReduceSum", g.add("Mul", x, x), np.array([-1], np.int64), keepdims=1)
    return g.add("Div", x, g.add("Sqrt", g.add("Max", total, constant(x, smallest))))


def local_response(g: Graph, x: Any, radius: int, bias: float, alpha: float, beta: float) -> Any:
    """Divided by a power of the sum of squares of neighbouring channels."""
    size = 2 * radius + 1
    image = g.transpose(x, channels_first(4))
    found = g.add("LRN", image, size=size, bias=float(bias), alpha=float(alpha * size), beta=float(beta))
    return g.transpose(found, channels_last(4))


def matrix_multiply(g: Graph, x: Any, y: Any, transpose_x: bool = False, transpose_y: bool = False) -> Any:
    """Products of the last two dimensions."""
    return g.add("MatMul", _turned(g, x) if transpose_x else x, _turned(g, y) if transpose_y else y)


def _turned(g: Graph, x: Any) -> Any:
    rank = len(dims_of(x))
    return g.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def segment(g: Graph, kind: str, x: Any, ids: Tensor, count: int) -> Any:
    """Rows of `x` reduced by segment; `kind` is Sum, Prod, Max or Min. Without rows, one is its neutral element."""
    neutral: dict[str, Any] = {"Sum": 0, "Prod": 1}
    limits = np.finfo(x.dtype) if is_float(x) else np.iinfo(x.dtype)
    neutral |= {"Max": limits.min, "Min": limits.max}
    shape = [count, *(g.size(x, axis) for axis in range(len(dims_of(ids)), len(dims_of(x))))]
    places: Any = g.cast(ids, np.int64)
    if isinstance(places, np.ndarray):
        keep = np.flatnonzero((places.reshape(-1) >= 0) & (places.reshape(-1) < count))
        places = places.reshape(-1)[keep].reshape(-1, 1)
        x = g.reshape(x, [-1, *shape[1:]])
        x = x if len(keep) == dims_of(x)[0] else g.add("Gather", x, keep, axis=0)
    else:
        places = g.reshape(places, [-1, 1])
        x = g.reshape(x, [-1, *shape[1:]])
    start = np.full(shape, neutral[kind], x.dtype)
    how = {"Sum": "add", "Prod": "mul", "Max": "max", "Min": "min"}[kind]
    return g.add("ScatterND", start, places, x, reduction=how)
