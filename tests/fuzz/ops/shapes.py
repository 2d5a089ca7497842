"""Ops that move elements: views, permutations, slices, concatenation, padding, repetition."""

from __future__ import annotations

import numpy as np
from tests.fuzz.ops.base import Op, add, functional, jnp, torch
from tests.fuzz.shadow import FLOATS, INTEGERS, ZERO, Shadow, moved

ANY = (*FLOATS, *INTEGERS, "i1")


def _move(function):
    return lambda args, attrs: moved(lambda *values: function(attrs, *values), *args)


def _build_permute(b):
    value = b.value(min_rank=2)
    order = list(range(b.type(value).rank))
    return (value,), {"order": tuple(b.permutation(order))}


add(
    Op(
        "permute",
        _build_permute,
        _move(lambda k, x: np.transpose(x, k["order"])),
        lambda a, k: a[0].permute(k["order"]),
        lambda a, k: jnp.transpose(a[0], k["order"]),
        lambda emit, a, k: emit("Transpose", a, perm=k["order"]),
        5,
    )
)


def _build_reshape(b):
    value = b.value(where=lambda t: t.is_static)
    size = int(np.prod(b.type(value).at(0)))
    if size == 0:
        return (value,), {"shape": (0, b.integer(0, 3))}
    shape, rest = [], size
    for _ in range(b.integer(0, 3)):
        factor = b.choose([f for f in range(1, rest + 1) if rest % f == 0][:12])
        shape.append(factor)
        rest //= factor
    return (value,), {"shape": tuple([*shape, rest] if rest > 1 or b.boolean() else shape)}


add(
    Op(
        "reshape",
        _build_reshape,
        _move(lambda k, x: np.reshape(x, k["shape"])),
        lambda a, k: a[0].reshape(k["shape"]),
        lambda a, k: jnp.reshape(a[0], k["shape"]),
        lambda emit, a, k: emit("Reshape", [a[0], emit.integers(k["shape"])], allowzero=1),
        5,
    )
)


def _build_flatten(b):
    value = b.value(min_rank=2)
    start = b.integer(0, b.type(value).rank - 2)
    return (value,), {"start": start, "end": b.integer(start + 1, b.type(value).rank - 1)}


def _flat(x, k):
    merged = 1
    for size in x.shape[k["start"] : k["end"] + 1]:
        merged = merged * size
    return (*x.shape[: k["start"]], merged, *x.shape[k["end"] + 1 :])


add(
    Op(
        "flatten",
        _build_flatten,
        _move(lambda k, x: np.reshape(x, _flat(x, k))),
        lambda a, k: torch.flatten(a[0], k["start"], k["end"]),
        lambda a, k: jnp.reshape(a[0], _flat(a[0], k)),
        weight=3,
    )
)


def _build_unsqueeze(b):
    value = b.value(max_rank=4)
    return (value,), {"axis": b.integer(0, b.type(value).rank)}


add(
    Op(
        "unsqueeze",
        _build_unsqueeze,
        _move(lambda k, x: np.expand_dims(x, k["axis"])),
        lambda a, k: a[0].unsqueeze(k["axis"]),
        lambda a, k: jnp.expand_dims(a[0], k["axis"]),
        lambda emit, a, k: emit("Unsqueeze", [a[0], emit.integers([k["axis"]])]),
        new_axes=1,
    )
)


def _build_slice(b):
    value = b.value(min_rank=1)
    kind, slices = b.type(value), []
    for axis in range(kind.rank):
        low = b.integer(0, kind.smallest(axis)) if b.boolean() else 0
        if isinstance(kind.shape[axis], int):
            high = b.integer(low, kind.shape[axis])
            slices.append((low, high, b.choose((1, 2, 3))))
        else:
            slices.append((min(low, 1), None, 1))
    return (value,), {"slices": tuple(slices)}


def _slice(k, x):
    return x[tuple(slice(*one) for one in k["slices"])]


def _onnx_slice(emit, a, k):
    ends = [2**62 if high is None else high for _, high, _ in k["slices"]]
    starts, steps = [low for low, _, _ in k["slices"]], [step for _, _, step in k["slices"]]
    axes = list(range(len(starts)))
    return emit("Slice", [a[0], emit.integers(starts), emit.integers(ends), emit.integers(axes), emit.integers(steps)])


add(
    Op("slice", _build_slice, _move(_slice), lambda a, k: _slice(k, a[0]), lambda a, k: _slice(k, a[0]), _onnx_slice, 5)
)


def _build_flip(b):
    value = b.value(min_rank=1)
    return (value,), {
        "axes": tuple(sorted({b.integer(0, b.type(value).rank - 1), b.integer(0, b.type(value).rank - 1)}))
    }


add(
    Op(
        "flip",
        _build_flip,
        _move(lambda k, x: np.flip(x, k["axes"])),
        lambda a, k: torch.flip(a[0], k["axes"]),
        lambda a, k: jnp.flip(a[0], k["axes"]),
        weight=3,
    )
)


def _build_roll(b):
    value = b.value(min_rank=1, where=lambda t: t.is_static)
    return (value,), {"axis": b.integer(0, b.type(value).rank - 1), "shift": b.integer(-3, 5)}


add(
    Op(
        "roll",
        _build_roll,
        _move(lambda k, x: np.roll(x, k["shift"], k["axis"])),
        lambda a, k: torch.roll(a[0], k["shift"], k["axis"]),
        lambda a, k: jnp.roll(a[0], k["shift"], k["axis"]),
        weight=1,
    )
)


def _build_expand(b):
    value = b.value(max_rank=3)
    kind = b.type(value)
    shape = [b.integer(0, 4) if b.choose((1, 0, 0, 0)) else b.integer(1, 5) for _ in range(b.integer(0, 2))]
    shape += [b.integer(1, 6) if dim == 1 else -1 for dim in kind.shape]
    return (value,), {"shape": tuple(shape)}


def _expanded(x, k):
    lead = len(k["shape"]) - len(x.shape)
    return tuple(x.shape[axis - lead] if size == -1 else size for axis, size in enumerate(k["shape"]))


add(
    Op(
        "expand",
        _build_expand,
        _move(lambda k, x: np.broadcast_to(x, _expanded(x, k))),
        lambda a, k: a[0].expand(k["shape"]),
        lambda a, k: jnp.broadcast_to(a[0], _expanded(a[0], k)),
        lambda emit, a, k: emit("Expand", [a[0], emit.integers([1 if size == -1 else size for size in k["shape"]])]),
        3,
    )
)


def _build_tile(b):
    value = b.value(min_rank=1, max_rank=3)
    return (value,), {"repeats": tuple(b.integer(1, 3) for _ in range(b.type(value).rank))}


add(
    Op(
        "tile",
        _build_tile,
        _move(lambda k, x: np.tile(x, k["repeats"])),
        lambda a, k: a[0].repeat(k["repeats"]),
        lambda a, k: jnp.tile(a[0], k["repeats"]),
        lambda emit, a, k: emit("Tile", [a[0], emit.integers(k["repeats"])]),
        1,
    )
)


def _build_concat(b):
    first = b.value(min_rank=1)
    kind = b.type(first)
    axis = b.integer(0, kind.rank - 1)
    values = [first]
    for _ in range(b.integer(1, 2)):
        values.append(b.matching(kind, axis))
    return tuple(b.permutation(values)), {"axis": axis}


add(
    Op(
        "concat",
        _build_concat,
        _move(lambda k, *x: np.concatenate(x, k["axis"])),
        lambda a, k: torch.cat(a, k["axis"]),
        lambda a, k: jnp.concatenate(a, k["axis"]),
        lambda emit, a, k: emit("Concat", a, axis=k["axis"]),
        4,
    )
)


def _build_stack(b):
    first = b.value(max_rank=3)
    kind = b.type(first)
    return (first, b.matching(kind, None)), {"axis": b.integer(0, kind.rank)}


add(
    Op(
        "stack",
        _build_stack,
        _move(lambda k, *x: np.stack(x, k["axis"])),
        lambda a, k: torch.stack(a, k["axis"]),
        lambda a, k: jnp.stack(a, k["axis"]),
        lambda emit, a, k: emit(
            "Concat", [emit("Unsqueeze", [x, emit.integers([k["axis"]])]) for x in a], axis=k["axis"]
        ),
        1,
        new_axes=1,
    )
)


def _build_pad(b):
    value = b.value(min_rank=1)
    pads = tuple((b.integer(0, 3), b.integer(0, 3)) for _ in range(b.type(value).rank))
    return (value,), {"pads": pads, "fill": b.choose((0, 1, 3))}


def _pad(args, k):
    (x,) = args
    fill = np.asarray(k["fill"]).astype(x.value.dtype)
    error = np.pad(x.errors(), k["pads"]) if np.any(x.error) else ZERO
    return Shadow(np.pad(x.value, k["pads"], constant_values=fill), error, x.dtype)


add(
    Op(
        "pad",
        _build_pad,
        _pad,
        lambda a, k: functional.pad(a[0], [n for pair in reversed(k["pads"]) for n in pair], value=k["fill"]),
        lambda a, k: jnp.pad(a[0], k["pads"], constant_values=k["fill"]),
        lambda emit, a, k: emit(
            "Pad",
            [
                a[0],
                emit.integers([*(p[0] for p in k["pads"]), *(p[1] for p in k["pads"])]),
                emit.scalar_like(a[0], k["fill"]),
            ],
        ),
        4,
    )
)


def _build_triangle(b):
    return (b.value(min_rank=2),), {"diagonal": b.integer(-2, 2), "upper": b.boolean()}


add(
    Op(
        "triangle",
        _build_triangle,
        _move(lambda k, x: (np.triu if k["upper"] else np.tril)(x, k["diagonal"])),
        lambda a, k: (torch.triu if k["upper"] else torch.tril)(a[0], k["diagonal"]),
        lambda a, k: (jnp.triu if k["upper"] else jnp.tril)(a[0], k["diagonal"]),
        lambda emit, a, k: emit("Trilu", [a[0], emit.array(np.array(k["diagonal"], np.int64))], upper=int(k["upper"])),
        1,
    )
)
