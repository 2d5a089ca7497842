"""Rare forms of common ONNX operators that the importer gets wrong."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from eyas.frontends.onnx.rewrite.rules import Builder, attribute

_FLOATS = (TensorProto.BFLOAT16, TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE)


def equal_to_itself(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Each number but NaN is; the importer says so of NaN too."""
    if node.input[0] != node.input[1] or b.type_of(node.input[0]) not in _FLOATS:
        return None
    return [b.add("Not", b.add("IsNaN", node.input[0]))]


def where(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """The importer forgets that a choice has the shape of all three: where the condition is one constant, and where it
    finds a choice between a value and itself."""
    condition, one, other = node.input
    known = b.value_of(condition)
    if known is not None and known.size and (known.all() or not known.any()) and one != other:
        return _certain(known.shape, *((one, other) if known.all() else (other, one)), b)
    if one == other:
        return [_expanded(one, condition, b)]
    made = b.dims_of(node.output[0])
    if made is None or condition == one or any(b.dims_of(name) in (None, made) for name in (one, other)):
        return None
    # Neither has the shape of the result, and they may turn out to be one value.
    return [b.add("Where", condition, _expanded(one, condition, b), other)]


def _certain(condition: tuple[int, ...], chosen: str, rest: str, b: Builder) -> list[str] | None:
    """The chosen value in the shape of all three."""
    ranks = b.rank_of(chosen), b.rank_of(rest)
    if None in ranks:
        return None
    rank = max(len(condition), *(one for one in ranks if one is not None))
    sizes: list[int | str] = []
    for axis in range(-rank, 0):
        size = condition[axis] if -axis <= len(condition) else 1
        sizes.append(b.size(rest, axis) if size == 1 and -axis <= (ranks[1] or 0) else size)
    return [b.add("Expand", chosen, b.vector(sizes)) if sizes else chosen]


def _expanded(value: str, like: str, b: Builder) -> str:
    """The value, repeated where only `like` has a size."""
    rank, wanted = b.rank_of(like), b.rank_of(value)
    if rank == 0:
        return value
    shape = b.add("Shape", like)
    # Beside dynamic dimensions the importer wants a size for each dimension.
    if rank is not None and wanted is not None and rank < wanted:
        shape = b.add("Concat", b.constant([1] * (wanted - rank), np.int64), shape, axis=0)
    return b.add("Expand", value, shape)


def sign(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """The importer compares floats with an integer zero, and folds that wrongly where they are constants."""
    if b.type_of(node.input[0]) not in _FLOATS:
        return None
    kind = b.dtype_of(node.input[0])
    zero, one, minus = (b.constant(value, kind) for value in (0, 1, -1))
    rest = b.add("Where", b.add("Less", node.input[0], zero), minus, zero)
    return [b.add("Where", b.add("Greater", node.input[0], zero), one, rest)]


def negative_integer(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """The importer negates integers as f32, which loses all but 24 bits."""
    kind = b.dtype_of(node.input[0])
    if kind.kind != "i":
        return None
    return [b.add("Sub", b.constant(0, kind), node.input[0])]


def integer_power(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """The importer raises integers as f64, which loses all but 53 bits, and keeps sizes from being read back. Small
    powers are products."""
    kind, exponent = b.dtype_of(node.input[0]), b.value_of(node.input[1])
    rank = b.rank_of(node.input[0])
    if kind.kind not in "iu" or exponent is None or exponent.size != 1 or rank is None or exponent.ndim > rank:
        return None
    times = float(exponent.reshape(()))
    if times not in range(1, 9):
        return None
    result = ""
    for bit in f"{int(times):b}":
        result = b.add("Mul", result, result) if result else ""
        if bit == "1":
            result = b.add("Mul", result, node.input[0]) if result else node.input[0]
    return [result if result != node.input[0] else b.add("Identity", result)]


def extreme(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Max and Min of floats: NaN in any operand is the result; the importer misses it in the first."""
    kind = b.dtype_of(node.input[0])
    if kind.kind not in "fV" or len(node.input) != 2:
        return None
    one, other = node.input
    beats = b.add("Greater" if node.op_type == "Max" else "Less", one, other)
    return [b.add("Where", b.add("Or", beats, b.add("IsNaN", one)), one, other)]


def last_index(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """ArgMax and ArgMin that take the last of equal elements: the first of them backwards. The importer takes the
    first."""
    rank = b.rank_of(node.input[0])
    if not attribute(node, "select_last_index", 0) or not rank or b.opset < 13:
        return None
    axis = attribute(node, "axis", 0) % rank
    ends = [b.constant([part], np.int64) for part in (-1, np.iinfo(np.int64).min + 1, axis, -1)]
    backwards = b.add("Slice", node.input[0], *ends)
    found = b.add(node.op_type, backwards, axis=axis, keepdims=attribute(node, "keepdims", 1))
    size = b.size(node.input[0], axis)
    last = b.constant(size - 1, np.int64) if isinstance(size, int) else b.reshape(size, [])
    last = last if isinstance(size, int) else b.add("Sub", last, b.constant(1, np.int64))
    return [b.add("Sub", last, found)]


def softsign(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """x / (1 + |x|)."""
    kind = b.type_of(node.input[0])
    if not kind:
        return None
    one = b.constant(1, onnx.helper.tensor_dtype_to_np_dtype(kind))
    return [b.add("Div", node.input[0], b.add("Add", one, b.add("Abs", node.input[0])))]
