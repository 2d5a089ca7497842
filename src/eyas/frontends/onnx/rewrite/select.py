"""Rules for operators that keep some elements: Compress, TopK and Unique. How many is found by NonZero at run time."""

from __future__ import annotations

import numpy as np
import onnx

from eyas.frontends.onnx.rewrite.rules import Builder, attribute
from eyas.frontends.onnx.rewrite.sizes import Size, filled, line, product, sizes_of

# Comparing all pairs of slices takes n * n * m steps and bytes.
_MOST_COMPARISONS = 1 << 26
# Ends the name of a node that sorts all that there is.
_ALL = "_all"


def compress(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """A gather of the positions where the condition holds."""
    axis = attribute(node, "axis", None)
    data = node.input[0] if axis is not None else b.reshape(node.input[0], [-1])
    return [b.add("Gather", data, _positions(node.input[1], b), axis=axis or 0)]


def top_k(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """How many is said by data: all are sorted, and the first ones kept. The importer wants a number, or a size."""
    rank = b.rank_of(node.input[0])
    if node.name.endswith(_ALL) or not rank or b.opset < 13 or b.value_of(node.input[1]) is not None:
        return None
    if b.is_size(node.input[1]):
        return None
    axis = attribute(node, "axis", -1) % rank
    options = {"axis": axis, "largest": attribute(node, "largest", 1), "sorted": 1}
    results = b.add_many("TopK", 2, node.input[0], b.vector([b.size(node.input[0], axis)]), **options)
    b.nodes[-1].name += _ALL
    ends = b.constant([0], np.int64), b.cast(node.input[1], onnx.TensorProto.INT64), b.constant([axis], np.int64)
    return [b.add("Slice", one, *ends) for one, name in zip(results, node.output, strict=False) if name]


def unique(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Sorts the elements, or for slices their ranks, and keeps those that differ from the one before."""
    dims, axis = b.dims_of(node.input[0]), attribute(node, "axis", None)
    if dims is None or 0 in dims or b.opset < 11:
        return None
    data, key, place = node.input[0], "", 0
    sizes = sizes_of(data, b)
    if axis is None:
        data = key = b.reshape(node.input[0], [-1])
    else:
        place = axis % len(dims)
        key = _ranks(data, sizes, place, b)
        if key is None:
            return None
    size = product(sizes, b) if axis is None else sizes[place]
    first, inverse, counts = _distinct(key, size, b)
    if not attribute(node, "sorted", 1):
        first, inverse, counts = _by_appearance(first, inverse, counts, size, b)
    results = [b.add("Gather", data, first, axis=place), first, inverse, counts]
    return [results[index] for index in range(4) if index < len(node.output) and node.output[index]]


def _positions(condition: str, b: Builder) -> str:
    return b.reshape(b.add("NonZero", condition), [-1])


def _distinct(key: str, size: Size, b: Builder) -> tuple[str, str, str]:
    """For each distinct key in ascending order its first position and count; for each element which of them it is."""
    count = b.vector([size])
    values, order = b.add_many("TopK", 2, key, count, largest=0, sorted=1, axis=0)
    zero, one, last, end = (b.constant([n], np.int64) for n in (0, 1, -1, np.iinfo(np.int64).max))
    is_new = b.constant(np.ones(1, np.bool_))
    if size != 1:
        differs = b.add("Not", b.add("Equal", b.add("Slice", values, zero, last), b.add("Slice", values, one, end)))
        is_new = b.add("Concat", is_new, differs, axis=0)
    if isinstance(size, str):
        is_new = b.add("Slice", is_new, zero, count)  # there may be no element at all
    numbers = b.add("CumSum", b.cast(is_new, onnx.TensorProto.INT64), b.constant(0, np.int64))
    starts = _positions(is_new, b)
    ends = b.add("Concat", b.add("Slice", starts, one, end), count, axis=0)
    inverse = b.add("ScatterElements", filled(0, [size], b), order, b.add("Sub", numbers, one), axis=0)
    if isinstance(size, str):
        ends = b.add("Slice", ends, zero, b.add("Shape", starts))
    # Equal elements are sorted by their positions, so that the first of them appeared first.
    return b.add("Gather", order, starts, axis=0), inverse, b.add("Sub", ends, starts)


def _by_appearance(first: str, inverse: str, counts: str, size: Size, b: Builder) -> tuple[str, str, str]:
    appeared = b.add("Gather", first, inverse, axis=0)
    is_first = b.add("Equal", appeared, line(size, b))
    numbers = b.add("CumSum", b.cast(is_first, onnx.TensorProto.INT64), b.constant(0, np.int64))
    numbers = b.add("Sub", numbers, b.constant([1], np.int64))
    positions = _positions(is_first, b)
    counts = b.add("Gather", counts, b.add("Gather", inverse, positions, axis=0), axis=0)
    return positions, b.add("Gather", numbers, appeared, axis=0), counts


def _ranks(data: str, shape: list[Size], axis: int, b: Builder) -> str | None:
    """How many slices come before each one; equal slices have equal ranks."""
    count, length = shape[axis], product([*shape[:axis], *shape[axis + 1 :]], b)
    if isinstance(count, int) and isinstance(length, int) and count * count * length > _MOST_COMPARISONS:
        return None
    rows = b.transpose(data, [axis, *(i for i in range(len(shape)) if i != axis)])
    left, right = b.reshape(rows, [count, 1, length]), b.reshape(rows, [1, count, length])
    differs = b.cast(b.add("Not", b.add("Equal", left, right)), onnx.TensorProto.INT64)
    # Only the first place where two slices differ decides.
    before = b.add("CumSum", differs, b.constant(2, np.int64), exclusive=1)
    decides = b.add("And", b.add("Less", right, left), b.add("Equal", before, b.constant(0, np.int64)))
    smaller = b.sum(b.cast(decides, onnx.TensorProto.INT64), 2)
    return b.sum(smaller, 1)
