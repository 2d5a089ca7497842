"""Attention of several heads as products and a softmax, with the masks, pasts and rotations that operators give it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from eyas.frontends.onnx.contrib.common import Floats, whole
from eyas.frontends.onnx.rewrite.rules import Builder

Size = int | str
"""A size, or the name of a vector of one element that has it when the model runs."""


@dataclass(frozen=True)
class Scores:
    """What happens between both products: `bias` is added, positions that are not `allowed` count for nothing, and
    `sinks`, one number for each head, take part in the sum of the softmax."""

    scale: float
    bias: str = ""
    allowed: str = ""
    softcap: float = 0.0
    sinks: str = ""


def attend(
    q: str, k: str, v: str, rows: Size, heads: int, groups: int, scores: Scores, floats: Floats
) -> tuple[str, str]:
    """(batch, rows, heads * depth) and the weights, of queries (batch, heads, rows, depth). Keys and values are of
    `groups` heads: the queries that share one are its rows, so that nothing is repeated."""
    b, share = floats.b, heads // groups

    def fold(value: str) -> str:
        return b.reshape(value, [0, groups, b.times(rows, share), -1]) if share > 1 else value

    def unfold(value: str) -> str:
        return b.reshape(value, [0, heads, rows, -1]) if share > 1 else value

    q, k, v = map(floats.read, (q, k, v))
    weights = unfold(b.add("MatMul", fold(q), b.add("Transpose", k, perm=[0, 1, 3, 2])))
    weights = b.add("Mul", weights, floats.number(scores.scale))
    if scores.softcap:
        cap = floats.number(scores.softcap)
        weights = b.add("Mul", b.add("Tanh", b.add("Div", weights, cap)), cap)
    if scores.bias:
        weights = b.add("Add", weights, scores.bias)
    if scores.allowed:
        weights = b.add("Where", scores.allowed, weights, floats.number(float(np.finfo(floats.dtype).min)))
    if scores.sinks:
        weights = _softmax_with_sinks(weights, scores.sinks, b)
    else:
        weights = b.add("Softmax", weights, axis=-1)
    mixed = unfold(b.add("MatMul", fold(weights), v))
    merged = b.reshape(b.add("Transpose", mixed, perm=[0, 2, 1, 3]), [0, 0, -1])
    return floats.write(merged), floats.write(weights)


def split_heads(value: str, heads: int, b: Builder) -> str:
    """(batch, rows, heads * depth) as (batch, heads, rows, depth)."""
    return b.add("Transpose", b.reshape(value, [0, 0, heads, -1]), perm=[0, 2, 1, 3])


def rotate(value: str, cosines: str, sines: str, depth: int, width: int, interleaved: bool, b: Builder) -> str:
    """Turns pairs of numbers: those of the two halves of the first `width` of `depth`, or neighbours."""
    rest = ""
    if width < depth:
        value, rest = (
            b.add("Slice", value, whole([begin], b), whole([end], b), whole([-1], b))
            for begin, end in ((0, width), (width, depth))
        )
    if interleaved:
        pairs = b.reshape(value, [0, 0, 0, width // 2, 2])
        first, second = (b.add("Gather", pairs, b.constant(k, np.int64), axis=4) for k in range(2))
    else:
        first, second = b.add_many("Split", 2, value, axis=-1, num_outputs=2)
    turned = [
        b.add("Sub", b.add("Mul", first, cosines), b.add("Mul", second, sines)),
        b.add("Add", b.add("Mul", second, cosines), b.add("Mul", first, sines)),
    ]
    if interleaved:
        columns = [b.add("Unsqueeze", one, whole([4], b)) for one in turned]
        value = b.reshape(b.add("Concat", *columns, axis=4), [0, 0, 0, width])
    else:
        value = b.add("Concat", *turned, axis=-1)
    return b.add("Concat", value, rest, axis=-1) if rest else value


def positions(count: Size, b: Builder) -> str:
    """0, 1, 2 and so on, so many."""
    if isinstance(count, int):
        return whole(range(count), b)
    zero, one = b.constant(0, np.int64), b.constant(1, np.int64)
    return b.add("Range", zero, b.reshape(count, []), one)


def plus(sizes: Sequence[Size], b: Builder) -> Size:
    """The sum of sizes."""
    known = sum(size for size in sizes if isinstance(size, int))
    total: Size = known
    for size in sizes:
        if isinstance(size, str):
            total = b.add("Add", size, whole([total], b) if isinstance(total, int) else total)
    return total


def size_name(size: Size, b: Builder) -> str:
    """A size as a vector of one element."""
    return whole([size], b) if isinstance(size, int) else size


def causal(rows: Size, columns: Size, before: Size, b: Builder) -> str:
    """(rows, columns): whether a column is not after its row, of which `before` others come first."""
    if isinstance(rows, int) and isinstance(columns, int) and isinstance(before, int):
        return b.constant(np.arange(columns) <= np.arange(rows)[:, None] + before)
    row = b.reshape(b.add("Add", positions(rows, b), size_name(before, b)), [-1, 1])
    return b.add("LessOrEqual", positions(columns, b), row)


def padding(mask: str, rank: int, lefts: bool, columns: Size, filtered: float, floats: Floats) -> str:
    """What a mask of keys adds to scores: `filtered` where it is 0, or beyond lengths (before starts, with `lefts`)."""
    b = floats.b
    zero, low = floats.number(0), floats.number(filtered)
    if rank > 1:
        kept = b.add("Greater", mask, b.constant(0, np.int32))
        added = b.add("Where", kept, zero, low)
        return b.add("Unsqueeze", added, whole([1, 2] if rank == 2 else [1], b))
    place = positions(columns, b)
    lengths = b.cast(mask, TensorProto.INT64)
    if not lefts:
        kept = b.add("Less", place, b.reshape(lengths, [-1, 1, 1, 1]))
        return b.add("Where", kept, zero, low)
    ends, starts = (b.reshape(part, [-1, 1, 1, 1]) for part in b.add_many("Split", 2, lengths, axis=0, num_outputs=2))
    kept = b.add("And", b.add("Less", place, ends), b.add("GreaterOrEqual", place, starts))
    return b.add("Where", kept, zero, low)


def _softmax_with_sinks(weights: str, sinks: str, b: Builder) -> str:
    shape = b.add("Shape", weights)
    column = b.add("Concat", b.add("Slice", shape, whole([0], b), whole([3], b)), whole([1], b), axis=0)
    wide = b.add("Concat", weights, b.add("Expand", sinks, column), axis=3)
    return b.add("Slice", b.add("Softmax", wide, axis=-1), whole([0], b), whole([-1], b), whole([3], b))
