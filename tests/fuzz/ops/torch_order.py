"""What torch has of order, norms, scans and diagonals: the reference is eager torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tests.fuzz.ops.base import functional, torch
from tests.fuzz.ops.eager import row
from tests.fuzz.shadow import FLOATS, INTEGERS, REALS, SMALLEST_NORMAL, UNIT, Shadow

SIGNLESS = ("u8", "i1", "i8", "u8", "i32", "i64", "i16", "f32", "f16", "bf16", "f64")
"""Types with those that lose their sign first."""


def dim_of(b, rank: int) -> int:
    """Counted from either end; a tensor of no dimensions has the dimensions 0 and -1."""
    return b.integer(0, max(rank, 1) - 1) - (max(rank, 1) if b.boolean() else 0)


def along(dtypes, **draws):
    """A value and a dimension of it, and what else is drawn from lists."""

    def build(b):
        value = b.value(dtypes)
        attrs = {name: b.choose(options) for name, options in draws.items()}
        return (value,), {"dim": dim_of(b, b.type(value).rank), **attrs}

    return build


def plain(dtypes, min_rank=0, max_rank=6, **draws):
    def build(b):
        value = b.value(dtypes, min_rank, max_rank)
        return (value,), {name: b.choose(options) for name, options in draws.items()}

    return build


def square(dtypes):
    """Matrices with as many rows as columns, of which fused uses read a diagonal."""

    def build(b):
        size = b.integer(1, 9)
        lead = tuple(b.integer(1, 3) for _ in range(b.integer(0, 1)))
        return (b.operand(b.choose(dtypes), (*lead, size, size)),), {"add": b.boolean()}

    return build


def _diagonal(b):
    value = b.value(min_rank=2)
    rank = b.type(value).rank
    one, other = b.permutation(range(rank))[:2]
    attrs = {"offset": b.integer(-2, 2), "dim1": one - (rank if b.boolean() else 0), "dim2": other}
    return (value,), {**attrs, "add": b.boolean()}


def _use(made, k):
    """Fused with what comes after, or a plain copy."""
    return made + 1 if k["add"] and made.dtype != torch.bool else made


row(
    "diagonal",
    _diagonal,
    lambda a, k: _use(torch.diagonal(a[0], k["offset"], k["dim1"], k["dim2"]), k),
    2,
)
row("diagonal_of_square", square(REALS), lambda a, k: _use(torch.diagonal(a[0], dim1=-2, dim2=-1), k), 2)
row("einsum_trace", square(REALS), lambda a, k: torch.einsum("...ii->...", a[0]))
row("einsum_diagonal", square(FLOATS), lambda a, k: torch.einsum("...ii->...i", a[0]) * 2)
row(
    "trace", square(REALS), lambda a, k: torch.trace(a[0]) if a[0].dim() == 2 else torch.diagonal(a[0], 0, 1, 2).sum(-1)
)
row("diag_embed", plain(REALS, 1, 3, offset=(0, 1, -2)), lambda a, k: torch.diag_embed(a[0], k["offset"]))

# Order.

row(
    "torch_sort",
    along(SIGNLESS, descending=(False, True), result=(0, 1)),
    lambda a, k: torch.sort(a[0], dim=k["dim"], descending=k["descending"], stable=True),
)
row("msort", plain(SIGNLESS), lambda a, k: torch.msort(a[0]))
row("torch_argsort", along(SIGNLESS), lambda a, k: torch.argsort(a[0], dim=k["dim"], stable=True))


def _chosen(b):
    value = b.value(SIGNLESS, where=lambda t: t.is_static and all(t.shape))
    kind = b.type(value)
    dim = dim_of(b, kind.rank)
    size = kind.shape[dim] if kind.rank else 1
    return (value,), {"dim": dim, "k": b.integer(1, size), "largest": b.boolean()}


row("kthvalue", _chosen, lambda a, k: torch.kthvalue(a[0], k["k"], k["dim"])[0])
row("torch_topk", _chosen, lambda a, k: torch.topk(a[0], k["k"], k["dim"], k["largest"])[0])
row("mode", along((*INTEGERS, "i1")), lambda a, k: torch.mode(a[0], k["dim"])[0])  # rounding decides which is frequent
for _name in ("median", "nanmedian"):
    row(_name, along(SIGNLESS), lambda a, k, name=_name: getattr(torch, name)(a[0], k["dim"])[0])
for _name in ("max", "min"):
    row(f"{_name}_dim", along(SIGNLESS), lambda a, k, name=_name: getattr(torch, name)(a[0], k["dim"])[0])
    row(f"{_name}_all", plain(SIGNLESS), lambda a, k, name=_name: getattr(torch, name)(a[0]))
    row(f"cum{_name}", along(SIGNLESS), lambda a, k, name=_name: getattr(torch, f"cum{name}")(a[0], k["dim"])[0])
row("aminmax", along(SIGNLESS, result=(0, 1)), lambda a, k: torch.aminmax(a[0], dim=k["dim"]))
for _name in ("argmax", "argmin"):
    row(f"torch_{_name}", along(SIGNLESS), lambda a, k, name=_name: getattr(torch, name)(a[0], k["dim"]))


def _bucket(b):
    value = b.value((*INTEGERS, *FLOATS))
    dtype = b.type(value).dtype
    return (value, b.leaf(dtype, (b.integer(0, 9),))), {"right": b.boolean()}


row("bucketize", _bucket, lambda a, k: torch.bucketize(a[0], torch.sort(a[1])[0], right=k["right"]))
row("isin", _bucket, lambda a, k: torch.isin(a[0], a[1]))

# Reductions and scans, in the types that torch itself chooses.

for _name in ("sum", "prod", "nansum", "amax", "amin", "all", "any", "count_nonzero"):
    row(f"{_name}_dim", along(SIGNLESS), lambda a, k, name=_name: getattr(torch, name)(a[0], k["dim"]))
for _name in ("sum", "prod", "all", "any", "count_nonzero"):
    row(f"{_name}_all", plain(SIGNLESS), lambda a, k, name=_name: getattr(torch, name)(a[0]))
for _name in ("mean", "logsumexp", "var", "std"):
    row(f"{_name}_dim", along(FLOATS), lambda a, k, name=_name: getattr(torch, name)(a[0], k["dim"]))
row("torch_cumsum", along(SIGNLESS), lambda a, k: torch.cumsum(a[0], k["dim"]))
row("cumprod", along(SIGNLESS), lambda a, k: torch.cumprod(a[0], k["dim"]))


def _logarithms_cancel(args: Sequence[Shadow], attrs: dict[str, Any]) -> float:
    """A step adds the logarithm of a sum to the largest so far, and rounds as these do, though they may cancel."""
    (x,) = args
    finite = np.abs(x.value[np.isfinite(x.value)])
    return 4 * UNIT["f64" if x.dtype == "f64" else "f32"] * float(np.max(finite, initial=1.0))


row("logcumsumexp", along(FLOATS), lambda a, k: torch.logcumsumexp(a[0], k["dim"]), 2, _logarithms_cancel)
for _name in ("softmax", "log_softmax"):
    row(f"torch_{_name}", along(FLOATS), lambda a, k, name=_name: getattr(torch, name)(a[0], k["dim"]))

# Norms, whose squares overflow in f16 where the norm does not.

_ORDERS = (2, 1, 3, 0, float("inf"), float("-inf"), 0.5)


def _powers_vanish(args: Sequence[Shadow], attrs: dict[str, Any]) -> float:
    """Powers below the least f32 are lost, but where torch sees that there is one element and makes none."""
    (x,), order = args, attrs["ord"]
    if not 1 < order < np.inf:
        return 0.0
    least = SMALLEST_NORMAL["f64" if x.dtype == "f64" else "f32"]
    return float((least * max(x.shape[attrs["dim"]] if x.shape else 1, 1)) ** (1 / order))


row(
    "vector_norm",
    along(FLOATS, ord=_ORDERS),
    lambda a, k: torch.linalg.vector_norm(a[0], k["ord"], k["dim"]),
    2,
    _powers_vanish,
)
row("norm", plain(FLOATS), lambda a, k: torch.norm(a[0]))
row("normalize_dim", along(FLOATS, p=(2.0, 1.0)), lambda a, k: functional.normalize(a[0], k["p"], k["dim"]), 2)
row("rms_norm", plain(FLOATS, 1), lambda a, k: functional.rms_norm(a[0], a[0].shape[-1:]), 2)


def _pair(dtypes):
    def build(b):
        value = b.value(dtypes)
        return (value, b.companion(value)), {"dim": dim_of(b, b.type(value).rank)}

    return build


row("cosine_similarity", _pair(FLOATS), lambda a, k: functional.cosine_similarity(a[0], a[1], k["dim"]))
row("dist", _pair(FLOATS), lambda a, k: torch.dist(a[0], a[1]))
