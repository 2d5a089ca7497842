"""Reads and writes at computed positions. Indices are leaves in range, or made from arg-max and sorts."""

from __future__ import annotations

import numpy as np
from tests.fuzz.ops.base import Op, add, jax, jnp, torch
from tests.fuzz.shadow import DTYPES, FLOATS, INFINITY, INTEGERS, UNIT, ZERO, Shadow, elementwise


def _read(value: np.ndarray, indices: np.ndarray, axis: int, along: bool) -> np.ndarray:
    return np.take_along_axis(value, indices, axis) if along else np.take(value, indices, axis)


def _gather(args, k):
    x, indices = args
    # Unknown indices may hold anything: read element 0 there and say so.
    at = np.where(indices.errors() > 0, 0, indices.value).astype(np.int64)
    value = _read(x.value, at, k["axis"], k["along"])
    error = _read(x.errors(), at, k["axis"], k["along"]) if np.any(x.error) else np.zeros(value.shape)
    doubt = indices.errors()
    if not k["along"]:
        lead, tail = k["axis"], len(x.shape) - k["axis"] - 1
        doubt = doubt.reshape((1,) * lead + indices.shape + (1,) * tail)
    return Shadow(value, np.where(np.broadcast_to(doubt, value.shape) > 0, INFINITY, error), x.dtype)


def _build_take(b):
    value = b.value(min_rank=1, where=lambda t: t.smallest(0) > 0)
    kind = b.type(value)
    axes = [axis for axis in range(kind.rank) if kind.smallest(axis) > 0]
    axis = b.choose(axes)
    indices = b.leaf(b.choose(("i64", "i32")), b.shape(max_rank=2), f"index:{kind.smallest(axis)}")
    return (value, indices), {"axis": axis, "along": False}


def _torch_take(a, k):
    flat, axis = torch.index_select(a[0], k["axis"], a[1].reshape(-1)), k["axis"] % a[0].dim()
    return flat.reshape((*a[0].shape[:axis], *a[1].shape, *a[0].shape[axis + 1 :]))


add(
    Op(
        "take",
        _build_take,
        _gather,
        _torch_take,
        lambda a, k: jnp.take(a[0], a[1], axis=k["axis"], mode="clip"),
        lambda emit, a, k: emit("Gather", a, axis=k["axis"]),
        3,
    )
)


def _build_along(b):
    value = b.value(min_rank=1, where=lambda t: t.is_static and all(t.shape))
    kind = b.type(value)
    axis = b.integer(0, kind.rank - 1)
    shape = list(kind.shape)
    shape[axis] = b.integer(0, 6)
    return (value, b.leaf("i64", tuple(shape), f"index:{kind.shape[axis]}")), {"axis": axis, "along": True}


add(
    Op(
        "take_along",
        _build_along,
        _gather,
        lambda a, k: torch.gather(a[0], k["axis"], a[1]),
        lambda a, k: jnp.take_along_axis(a[0], a[1], k["axis"], mode="clip"),
        lambda emit, a, k: emit("GatherElements", a, axis=k["axis"]),
        2,
    )
)


def _build_select_sorted(b):
    """Rows in the order of their arg-sorted keys: indices that the program itself computes."""
    value = b.value(min_rank=2, where=lambda t: t.is_static and all(t.shape))
    kind = b.type(value)
    keys = b.leaf("f32", (kind.shape[0],), "normal")
    return (value, keys), {}


def _select_sorted(args, k):
    x, keys = args
    order = np.argsort(keys.value, kind="stable")
    return Shadow(x.value[order], x.errors()[order] if np.any(x.error) else ZERO, x.dtype)


add(
    Op(
        "select_sorted",
        _build_select_sorted,
        _select_sorted,
        lambda a, k: a[0][torch.sort(a[1], stable=True)[1]],
        lambda a, k: a[0][jnp.argsort(a[1])],
        weight=1,
    )
)


def _build_scatter_add(b):
    value = b.value((*FLOATS, *INTEGERS), min_rank=1, where=lambda t: t.is_static and all(t.shape))
    kind = b.type(value)
    count = b.integer(0, 5)
    indices = b.leaf("i64", (count,), f"index:{kind.shape[0]}")
    return (value, indices, b.leaf(kind.dtype, (count, *kind.shape[1:]), "normal")), {}


def _scatter_add(args, k):
    x, indices, updates = args
    value, sizes, error = x.value.copy(), np.abs(x.value), x.errors().copy()
    with np.errstate(all="ignore"):
        np.add.at(value, indices.value, updates.value)
        if not x.is_float:
            reached = (error > 0).astype(np.float64)
            np.add.at(reached, indices.value, (updates.errors() > 0).astype(np.float64))
            return Shadow(value.astype(DTYPES[x.dtype]), np.where(reached > 0, INFINITY, 0.0), x.dtype)
        np.add.at(sizes, indices.value, np.abs(updates.value))
        np.add.at(error, indices.value, updates.errors())
        bound = error + (len(indices.value) + 1) * UNIT[x.dtype] * sizes
        bound = np.where(np.isfinite(value) | np.isnan(bound), bound, 0.0)
        bound = np.where(np.isnan(value) | np.isinf(value), np.where(np.isinf(error), INFINITY, 0.0), bound)
    return elementwise(lambda v: v, Shadow(value, bound, x.dtype))


add(
    Op(
        "scatter_add",
        _build_scatter_add,
        _scatter_add,
        lambda a, k: a[0].index_add(0, a[1], a[2]),
        lambda a, k: a[0].at[a[1]].add(a[2]),
        weight=2,
    )
)


def _build_scatter(b):
    """Overwrites rows; the indices differ, since the order of equal ones is not defined."""
    value = b.value(min_rank=1, where=lambda t: t.is_static and all(t.shape))
    kind = b.type(value)
    count = b.integer(1, min(kind.shape[0], 5))
    indices = b.leaf("i64", (count,), f"distinct:{kind.shape[0]}")
    return (value, indices, b.leaf(kind.dtype, (count, *kind.shape[1:]), "normal")), {}


def _scatter(args, k):
    x, indices, updates = args
    value, error = x.value.copy(), x.errors().copy()
    value[indices.value] = updates.value
    error[indices.value] = updates.errors()
    return Shadow(value, error, x.dtype)


add(
    Op(
        "scatter",
        _build_scatter,
        _scatter,
        lambda a, k: a[0].index_copy(0, a[1], a[2]),
        lambda a, k: a[0].at[a[1]].set(a[2]),
        lambda emit, a, k: emit("ScatterND", [a[0], emit("Unsqueeze", [a[1], emit.integers([1])]), a[2]]),
        2,
    )
)


def _build_one_hot(b):
    depth = b.integer(1, 7)
    return (b.leaf("i64", b.shape(max_rank=2), f"index:{depth}"),), {"depth": depth}


add(
    Op(
        "one_hot",
        _build_one_hot,
        lambda args, k: Shadow((args[0].value[..., None] == np.arange(k["depth"])).astype(np.int64), ZERO, "i64"),
        lambda a, k: torch.nn.functional.one_hot(a[0], k["depth"]),
        lambda a, k: jax.nn.one_hot(a[0], k["depth"], dtype=jnp.int64),
        weight=1,
    )
)
