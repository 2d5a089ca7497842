"""The rule for GroupQueryAttention: queries of several heads share keys, which are kept from call to call."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from eyas.frontends.onnx.contrib.common import (
    Floats,
    is_ready,
    refuse_attributes,
    refuse_inputs,
    refuse_results,
    results,
    whole,
)
from eyas.frontends.onnx.contrib.heads import Scores, Size, attend, plus, positions, rotate, size_name
from eyas.frontends.onnx.contrib.normalize import root_mean_square
from eyas.frontends.onnx.rewrite.rules import Builder, attribute, operand


def group_query_attention(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Each batch entry has its own length, of which the past is what the new rows do not bring."""
    if not is_ready(node, b):
        return None
    refuse_attributes(node, b, k_quant_type="NONE", v_quant_type="NONE", sliding_window_cache=0, qk_output=0)
    refuse_inputs(node, b, k_scale=12, v_scale=13)
    refuse_results(node, b, output_qk=3)
    query, key, value = (operand(node, place) for place in range(3))
    floats = Floats(b.type_of(query), b)
    heads, groups = attribute(node, "num_heads", 1), attribute(node, "kv_num_heads", 1)
    width = (b.dims_of(query) or [None])[-1]
    if width is None:
        return None
    depth = width // heads if key else width // (heads + 2 * groups)
    counts = (heads, groups, groups)
    if key:
        flat = [query, key, value]
    else:
        flat = b.add_many("Split", 3, query, whole([count * depth for count in counts], b), axis=-1)
    parts = [b.reshape(floats.read(one), [0, 0, count, depth]) for one, count in zip(flat, counts, strict=True)]
    rows = b.size(query, 1)
    lengths = b.add("Add", b.cast(operand(node, 5), TensorProto.INT64), b.constant(1, np.int64))
    before = b.add("Max", b.add("Sub", b.reshape(lengths, [-1]), size_name(rows, b)), b.constant(0, np.int64))
    for place in range(2):
        if weight := operand(node, 14 + place):
            scaled = root_mean_square(parts[place], floats, attribute(node, "qk_norm_epsilon", 1e-6))
            parts[place] = b.add("Mul", scaled, floats.read(weight))
    row = b.add("Add", positions(rows, b), b.reshape(before, [-1, 1]))
    if attribute(node, "do_rotary", 0):
        place = b.cast(operand(node, 9), TensorProto.INT64) if operand(node, 9) else row
        half = (b.dims_of(operand(node, 7)) or [None])[-1]
        if half is None:
            return None
        tables = [
            b.add("Unsqueeze", b.add("Gather", floats.read(operand(node, k)), place, axis=0), whole([2], b))
            for k in (7, 8)
        ]
        interleaved = bool(attribute(node, "rotary_interleaved", 0))
        parts[:2] = [rotate(one, tables[0], tables[1], depth, 2 * half, interleaved, b) for one in parts[:2]]
    q, k, v = (b.add("Transpose", one, perm=[0, 2, 1, 3]) for one in parts)
    columns = rows
    if operand(node, 3):
        columns = _present_length(node, rows, b)
        source = _sources(node, columns, rows, before, b)
        pasts = operand(node, 3), operand(node, 4)
        k, v = (
            _extend(floats.read(past), past, new, source, groups, depth, b)
            for past, new in zip(pasts, (k, v), strict=True)
        )
    scores = _scores(node, row, columns, depth, heads, floats, b)
    computed = Floats(floats.computed, b)
    mixed, _ = attend(q, k, v, rows, heads, groups, scores, computed)
    return results(node, *(floats.write(one) for one in (mixed, k, v)))


def _scores(
    node: onnx.NodeProto, row: str, columns: Size, depth: int, heads: int, floats: Floats, b: Builder
) -> Scores:
    place, row = positions(columns, b), b.add("Unsqueeze", row, whole([1, 3], b))
    allowed = b.add("LessOrEqual", place, row) if attribute(node, "causal", 1) else ""
    window = attribute(node, "local_window_size", -1)
    if window > 0:
        near = b.add("Greater", place, b.add("Sub", row, b.constant(window, np.int64)))
        allowed = b.add("And", allowed, near) if allowed else near
    sinks = ""
    if operand(node, 11):
        sinks = b.reshape(floats.read(operand(node, 11)), [1, heads, 1, 1])
    elif attribute(node, "smooth_softmax", 0) == 1:
        sinks = b.constant(np.zeros((1, heads, 1, 1)), floats.dtype)
    scale = attribute(node, "scale", 0.0) or depth**-0.5
    bias = operand(node, 10) and floats.read(operand(node, 10))
    return Scores(scale, bias, allowed, attribute(node, "softcap", 0.0), sinks)


def _present_length(node: onnx.NodeProto, rows: Size, b: Builder) -> Size:
    """A buffer that is long enough keeps its length; otherwise it is as long as the longest sequence."""
    held, total = b.size(operand(node, 3), 2), operand(node, 6)
    if held == 0:
        return rows
    known = b.value_of(total)
    if known is not None and isinstance(held, int):
        return max(held, int(known.reshape(-1)[0]))
    return b.add("Max", size_name(held, b), b.reshape(b.cast(total, TensorProto.INT64), [1]))


def _sources(node: onnx.NodeProto, columns: Size, rows: Size, before: str, b: Builder) -> str:
    """(batch, columns): which row of the past, followed by the new rows, is at which place."""
    held = b.size(operand(node, 3), 2)
    place, start = positions(columns, b), b.reshape(before, [-1, 1])
    new = b.add("Add", b.add("Sub", place, start), size_name(held, b))
    end = b.add("Add", start, size_name(rows, b))
    last = b.add("Sub", size_name(plus([held, rows], b), b), whole([1], b))
    is_new = b.add("And", b.add("GreaterOrEqual", place, start), b.add("Less", place, end))
    return b.add("Where", is_new, new, b.add("Min", place, last))


def _extend(past: str, like: str, new: str, source: str, groups: int, depth: int, b: Builder) -> str:
    """The past with the new rows at their places; all are (batch, groups, rows, depth)."""
    both = b.add("Concat", past, new, axis=2)
    if (b.dims_of(like) or [None])[0] == 1:
        return b.add("Gather", both, b.reshape(source, [-1]), axis=2)
    by_row = b.add("Transpose", both, perm=[0, 2, 1, 3])
    shape = b.add("Shape", by_row)
    batch, length = (b.add("Gather", shape, whole([axis], b), axis=0) for axis in (0, 1))
    zero, one = b.constant(0, np.int64), b.constant(1, np.int64)
    known = (b.dims_of(like) or [None])[0]
    numbers = whole(range(known), b) if known else b.add("Range", zero, b.reshape(batch, []), one)
    starts = b.add("Mul", b.reshape(numbers, [-1, 1]), length)
    chosen = b.add("Gather", b.reshape(by_row, [-1, groups, depth]), b.add("Add", source, starts), axis=0)
    return b.add("Transpose", chosen, perm=[0, 2, 1, 3])
