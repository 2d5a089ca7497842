"""torch's reads and writes at places: gather, scatter and their relatives, the reference being eager torch."""

from __future__ import annotations

from tests.fuzz.ops.base import functional, torch
from tests.fuzz.ops.eager import row
from tests.fuzz.ops.torch_order import dim_of
from tests.fuzz.shadow import FLOATS, INTEGERS, REALS

_SUMMED = ("u8", "i1", *FLOATS, *INTEGERS)


def _places(b, dtypes, dynamic=False, count=None):
    """A value, a dimension of it and the number of places along that."""

    def suits(kind):
        fixed = dynamic or kind.is_static
        return fixed and all(kind.smallest(axis) for axis in range(kind.rank))

    value = b.value(dtypes, min_rank=1, where=suits)
    rank = b.type(value).rank
    dim = dim_of(b, rank)
    return value, b.type(value), dim, b.type(value).smallest(dim)


def _along(dtypes, writes=True, **draws):
    """Places along a dimension for each element of a tensor that is smaller along any."""

    def build(b):
        value, kind, dim, size = _places(b, dtypes)
        shape = tuple(b.integer(1, extent) for extent in kind.shape)
        places = b.leaf("i64", shape, f"index:{size}")
        sources = (b.leaf(kind.dtype, shape),) if writes else ()
        return (value, places, *sources), {"dim": dim, **{name: b.choose(of) for name, of in draws.items()}}

    return build


def _rows(dtypes, distinct=False, **draws):
    """Whole slices at places along a dimension."""

    def build(b):
        value, kind, dim, size = _places(b, dtypes)
        count = b.integer(0, min(size, 6))
        places = b.leaf("i64", (count,), f"{'distinct' if distinct else 'index'}:{size}")
        shape = list(kind.shape)
        shape[dim] = count
        attrs = {"dim": dim, **{name: b.choose(of) for name, of in draws.items()}}
        return (value, places, b.leaf(kind.dtype, tuple(shape))), attrs

    return build


_KINDS = ("sum", "prod", "mean", "amax", "amin")
row("scatter_add_along", _along(_SUMMED), lambda a, k: a[0].scatter_add(k["dim"], a[1], a[2]), 2)
row(
    "scatter_reduce",
    _along(_SUMMED, reduce=_KINDS, include=(True, False)),
    lambda a, k: a[0].scatter_reduce(k["dim"], a[1], a[2], k["reduce"], include_self=k["include"]),
    3,
)
row("scatter_value", _along(REALS, writes=False), lambda a, k: a[0].scatter(k["dim"], a[1], 1), 2)
row("scatter_same", _along(REALS), lambda a, k: a[0].scatter(k["dim"], a[1], torch.zeros_like(a[2])))
row("gather_along", _along(REALS, writes=False), lambda a, k: torch.gather(a[0], k["dim"], a[1]))
row("take_along_dim", _along(REALS, writes=False), lambda a, k: torch.take_along_dim(a[0], a[1], k["dim"]))
row("index_add", _rows(_SUMMED), lambda a, k: a[0].index_add(k["dim"], a[1], a[2]), 2)
row("index_copy", _rows(REALS, distinct=True), lambda a, k: a[0].index_copy(k["dim"], a[1], a[2]))
row("index_fill", _rows(REALS), lambda a, k: a[0].index_fill(k["dim"], a[1], 1))
row(
    "index_reduce",
    _rows(_SUMMED, reduce=("prod", "mean", "amax", "amin"), include=(True, False)),
    lambda a, k: a[0].index_reduce(k["dim"], a[1], a[2], k["reduce"], include_self=k["include"]),
    2,
)


def _first(dtypes, distinct=False, dynamic=False):
    """Places along the first dimension, whose size may vary."""

    def build(b):
        value = b.value(dtypes, min_rank=1, where=lambda t: (dynamic or t.is_static) and t.smallest(0) > 0)
        kind = b.type(value)
        count = b.integer(0, min(kind.smallest(0), 6))
        places = b.leaf("i64", (count,), f"{'distinct' if distinct else 'index'}:{kind.smallest(0)}")
        updates = () if dynamic else (b.leaf(kind.dtype, (count, *kind.shape[1:])),)
        return (value, places, *updates), {}

    return build


row(
    "index_put_add",
    _first(_SUMMED),
    lambda a, k: a[0].index_put((a[1],), a[2], accumulate=True),
    2,
)
row("index_put", _first(REALS, distinct=True), lambda a, k: a[0].index_put((a[1],), a[2]))
row("rows_of_tensor", _first(REALS, dynamic=True), lambda a, k: a[0][a[1]], 2)


def _listed(b):
    """Places that the program itself names, in a tensor whose size may vary."""
    value = b.value(REALS, min_rank=1, where=lambda t: t.smallest(0) > 0)
    size = b.type(value).smallest(0)
    return (value,), {"places": tuple(b.integer(-size, size - 1) for _ in range(b.integer(1, 4)))}


row("rows_of_list", _listed, lambda a, k: a[0][list(k["places"])], 2)
row("rows_of_constant", _listed, lambda a, k: a[0][torch.tensor(k["places"])])


def _table(b):
    value = b.value((*FLOATS, "i64", "u8"), min_rank=2, max_rank=2, where=lambda t: t.smallest(0) > 0)
    shape = tuple(b.integer(0, 4) for _ in range(b.integer(0, 2)))
    return (b.leaf("i64", shape, f"index:{b.type(value).smallest(0)}"), value), {}


row("embedding", _table, lambda a, k: functional.embedding(a[0], a[1]))


def _masked(b):
    value = b.value(REALS)
    return (value, b.companion(value, dtype="i1")), {}


row("masked_fill", _masked, lambda a, k: a[0].masked_fill(a[1], 1))


def _counted(b):
    weights = b.choose(("i64", "f32", "f64", "u8", "i1"))
    size = b.integer(0, 20)
    return (b.leaf(b.choose(("i64", "i32", "u8")), (size,), "index:7"), b.leaf(weights, (size,))), {}


row("bincount", _counted, lambda a, k: torch.bincount(a[0], a[1], minlength=7)[:7])


def _split(b):
    value = b.value(REALS, min_rank=1, where=lambda t: t.is_static)
    size = b.type(value).shape[0]
    places = sorted(b.integer(0, size + 1) for _ in range(b.integer(0, 3)))
    return (value,), {"places": tuple(places), "result": b.integer(0, 3)}


row("tensor_split", _split, lambda a, k: torch.tensor_split(a[0], torch.tensor(k["places"], dtype=torch.int64)))
row("split_at", _split, lambda a, k: torch.tensor_split(a[0], k["places"]))


def _picked(b):
    return (b.value(REALS, min_rank=1, where=lambda t: t.is_static and all(t.shape)),), {}


row("times_own_number", _picked, lambda a, k: a[0] * a[0].reshape(-1)[0].item())
