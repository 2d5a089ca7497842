"""Rules for Attention, QAttention, MultiHeadAttention, DecoderMaskedMultiHeadAttention and RotaryEmbedding."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import onnx
from onnx import TensorProto

from eyas.frontends.onnx.contrib.common import (
    Floats,
    is_ready,
    refuse,
    refuse_attributes,
    refuse_inputs,
    results,
    whole,
)
from eyas.frontends.onnx.contrib.heads import (
    Scores,
    Size,
    attend,
    causal,
    padding,
    plus,
    positions,
    rotate,
    split_heads,
)
from eyas.frontends.onnx.contrib.integers import product_of_integers
from eyas.frontends.onnx.rewrite.rules import Builder, attribute, operand


def attention(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """The projections are one product, of floats or (QAttention) of integers."""
    if not is_ready(node, b):
        return None
    quantized = node.op_type == "QAttention"
    refuse_attributes(node, b, do_rotary=0, past_present_share_buffer=0)
    x, weights, bias = (operand(node, place) for place in range(3))
    if quantized:
        mask, past, added = operand(node, 5), operand(node, 8), ""
        scales, zeros = node.input[3:5], (operand(node, 6), operand(node, 7))
        floats = Floats(b.type_of(scales[0]), b)
        joined = product_of_integers(x, weights, (scales[0], scales[1]), zeros, b)
    else:
        refuse_inputs(node, b, past_sequence_length=6)
        mask, past, added = (operand(node, place) for place in (3, 4, 5))
        floats = Floats(b.type_of(x), b)
        joined = floats.read(b.add("MatMul", x, weights))
    columns = (b.dims_of(weights) or [None])[-1]
    if columns is None:
        return None
    if bias:
        joined = b.add("Add", joined, floats.read(bias))
    heads = attribute(node, "num_heads", 1)
    sizes = list(attribute(node, "qkv_hidden_sizes", [])) or [columns // 3] * 3
    parts = b.add_many("Split", 3, joined, whole(sizes, b), axis=-1)
    q, k, v = (split_heads(part, heads, b) for part in parts)
    rows = b.size(x, 1)
    before: Size = 0
    if past:
        before = b.size(past, 3)
        held = [floats.read(b.add("Gather", past, b.constant(side, np.int64), axis=0)) for side in range(2)]
        k, v = (b.add("Concat", old, new, axis=2) for old, new in zip(held, (k, v), strict=True))
    present = ""
    if len(node.output) > 1 and node.output[1]:
        present = b.add("Concat", *(b.add("Unsqueeze", one, whole([0], b)) for one in (k, v)), axis=0)
    computed = Floats(floats.computed, b)
    form = _Form(node, x, rows, rows, before, sizes[0] // heads, computed)
    mixed, _ = attend(q, k, v, rows, heads, heads, form.scores(mask, added), computed)
    return results(node, floats.write(mixed), floats.write(present) if present else "")


def multi_head_attention(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """A past is put before the keys; or it is a buffer, where the one new key has a place."""
    if not is_ready(node, b):
        return None
    decoder = node.op_type == "DecoderMaskedMultiHeadAttention"
    places = (10, 3, 4, 5, 6) if decoder else range(3, 8)
    bias, mask, added, past_key, past_value = (operand(node, place) for place in places)
    held = operand(node, 7 if decoder else 8)
    refuse_inputs(node, b, cache_indirection=9)
    query, key, value = (operand(node, place) for place in range(3))
    floats = Floats(b.type_of(query), b)
    heads = attribute(node, "num_heads", 1)
    found = _projections(node, query, key, value, bias, heads, floats, b)
    if found is None:
        return None
    q, k, v, depth = found
    rows = b.size(query, 1)
    length = b.size(key, 2 if b.rank_of(key) == 4 else 1) if key else rows
    before: Size = 0
    valid = ""
    if past_key and held:
        if rows != 1:
            refuse(node, b, f"its past is a buffer, and its queries have {rows} rows; 1 is what is known")
        length = b.size(past_key, 2)
        last, place = b.cast(held, TensorProto.INT64), positions(length, b)
        valid = b.add("LessOrEqual", place, last)
        is_new = b.reshape(b.add("Equal", place, last), [-1, 1])
        k, v = (
            b.add("Where", is_new, new, floats.read(old))
            for old, new in zip((past_key, past_value), (k, v), strict=True)
        )
    elif past_key:
        before = b.size(past_key, 2)
        k, v = (
            b.add("Concat", floats.read(old), new, axis=2)
            for old, new in zip((past_key, past_value), (k, v), strict=True)
        )
    computed = Floats(floats.computed, b)
    form = _Form(node, query, rows, length, before, depth, computed)
    scores = form.scores(mask, added)
    if valid:
        scores = replace(scores, allowed=valid)
    mixed, weights = attend(q, k, v, rows, heads, heads, scores, computed)
    return results(node, *(floats.write(one) for one in (mixed, k, v, weights)))


@dataclass(frozen=True)
class _Form:
    """Sizes of one call: rows of queries, new keys, keys of the past, numbers of a head."""

    node: onnx.NodeProto
    query: str
    rows: Size
    length: Size
    before: Size
    depth: int
    floats: Floats

    def scores(self, mask: str, added: str) -> Scores:
        node, b = self.node, self.floats.b
        columns = plus([self.before, self.length], b)
        bias = added and (added if b.type_of(added) == self.floats.kind else b.cast(added, self.floats.kind))
        if mask:
            rank = b.rank_of(mask)
            assert rank is not None
            if rank > 3:
                refuse(node, b, f"its mask has {rank} dimensions")
            filtered = attribute(node, "mask_filter_value", -10000.0)
            hidden = padding(mask, rank, rank == 1 and self._has_starts(mask), columns, filtered, self.floats)
            bias = b.add("Add", hidden, bias) if bias else hidden
        allowed = causal(self.rows, columns, self.before, b) if attribute(node, "unidirectional", 0) else ""
        scale = attribute(node, "scale", 0.0) or self.depth**-0.5
        return Scores(scale, bias, allowed)

    def _has_starts(self, mask: str) -> bool:
        """A vector of lengths, or of ends and then starts."""
        b = self.floats.b
        batch, count = b.name_of(self.query, 0), b.name_of(mask, 0)
        if batch is not None and batch == count:
            return False
        if not isinstance(batch, int) or not isinstance(count, int) or count != 2 * batch:
            refuse(self.node, b, f"its mask is a vector of {count} where the batch is {batch}")
        return True


def _projections(
    node: onnx.NodeProto, query: str, key: str, value: str, bias: str, heads: int, floats: Floats, b: Builder
) -> tuple[str, str, str, int] | None:
    """Queries, keys and values by heads, and how many numbers a query has; None where sizes are not known."""
    read = floats.read
    if b.rank_of(query) == 5 or (key and b.rank_of(key) == 5):
        # Packed: (batch, rows, heads, how many, depth).
        packed = query if b.rank_of(query) == 5 else key
        depth, count = (b.dims_of(packed) or [None])[-1], 3 if packed == query else 2
        if depth is None:
            return None
        parts = [b.add("Gather", read(packed), b.constant(k, np.int64), axis=3) for k in range(count)]
        flat = [b.reshape(part, [0, 0, heads * depth]) for part in parts]
        flat = flat if count == 3 else [read(query), *flat]
    else:
        width = (b.dims_of(query) or [None])[-1]
        if width is None or not key:
            if key:
                return None
            refuse(node, b, "it has no keys, and its queries are not packed with them")
        depth, flat = width // heads, [read(name) for name in (query, key, value)]
    by_head = bool(key) and b.rank_of(key) == 4
    if bias:
        width = heads * depth
        bounds = [(0, width), (width, 2 * width), (2 * width, (b.dims_of(bias) or [None])[0] or 1 << 30)]
        for place, (begin, end) in enumerate(bounds[: 1 if by_head else 3]):
            part = b.add("Slice", read(bias), whole([begin], b), whole([end], b))
            flat[place] = b.add("Add", flat[place], part)
    q, k, v = (one if by_head and place else split_heads(one, heads, b) for place, one in enumerate(flat))
    return q, k, v, depth


def rotary_embedding(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Of (batch, rows, heads * depth) or (batch, heads, rows, depth)."""
    if not is_ready(node, b):
        return None
    refuse_attributes(node, b, is_packed_batching=0, scale=1.0)
    x, ids, cosines, sines = node.input
    rank, width = b.rank_of(x), (b.dims_of(x) or [None])[-1]
    half = (b.dims_of(cosines) or [None])[-1]
    if width is None or half is None:
        return None
    heads, turned = attribute(node, "num_heads", 0), attribute(node, "rotary_embedding_dim", 0)
    depth = width if rank == 4 else width // heads if heads else 2 * half
    floats = Floats(b.type_of(x), b)
    rows = b.size(x, 2 if rank == 4 else 1)
    place = b.cast(ids, TensorProto.INT64)
    if b.rank_of(ids) == 1:
        place = b.add("Unsqueeze", b.add("Add", positions(rows, b), place), whole([0], b))
    axis = whole([1 if rank == 4 else 2], b)
    tables = [b.add("Unsqueeze", b.add("Gather", floats.read(t), place, axis=0), axis) for t in (cosines, sines)]
    value = floats.read(x)
    value = value if rank == 4 else b.reshape(value, [0, 0, width // depth, depth])
    interleaved = bool(attribute(node, "interleaved", 0))
    value = rotate(value, tables[0], tables[1], depth, turned or 2 * half, interleaved, b)
    return [floats.write(value if rank == 4 else b.reshape(value, [0, 0, width]))]
