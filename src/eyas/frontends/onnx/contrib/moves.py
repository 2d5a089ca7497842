"""Rules for operators that the standard has too, by another name or in another form, and for other small ones."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from eyas.frontends.onnx.contrib.common import is_ready, refuse, refuse_attributes, results, whole
from eyas.frontends.onnx.rewrite.rules import Builder, attribute

# Larger matrices would be very many nodes.
_LARGEST = 32


def same(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Pad and Trilu are the standard's."""
    given = {found.name: helper.get_attribute_value(found) for found in node.attribute}
    return b.add_many(node.op_type, len(node.output), *node.input, **given)


def unique(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """In the order of their first occurrence."""
    if not is_ready(node, b):
        return None
    values, _, places, counts = b.add_many("Unique", 4, node.input[0], sorted=0)
    return results(node, values, places, counts)


def grid_sample(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    given = {found.name: helper.get_attribute_value(found) for found in node.attribute}
    if b.opset >= 20:
        names = {b"bilinear": "linear", b"bicubic": "cubic"}
        given["mode"] = names.get(given.get("mode", b"bilinear"), "nearest")
    return [b.add("GridSample", *node.input, **given)]


def expand_dims(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    if not is_ready(node, b):
        return None
    axis = b.value_of(node.input[1])
    if axis is None:
        refuse(node, b, "its axis is not a constant")
    return [b.add("Unsqueeze", node.input[0], whole([int(axis.reshape(-1)[0])], b))]


def gather_nd(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    return [b.add("GatherND", node.input[0], b.cast(node.input[1], TensorProto.INT64))]


def embedding(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    return [b.add("Gather", *node.input[:2], axis=0)]


def range_(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    if not is_ready(node, b):
        return None
    given = [b.reshape(name, []) if b.rank_of(name) else name for name in node.input if name]
    if len(given) < 3:
        given.append(b.constant(1, b.dtype_of(node.input[0])))
    return [b.add("Range", *given)]


def unfold(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """All windows along one dimension, in a new last one."""
    shape = b.dims_of(node.input[0])
    if shape is None:
        return None
    axis, size, step = attribute(node, "dim", -1) % len(shape), attribute(node, "size", 1), attribute(node, "step", 1)
    extent = shape[axis]
    if extent is None:
        return None
    starts = np.arange(0, extent - size + 1, step)
    windows = b.add("Gather", node.input[0], b.constant(starts[:, None] + np.arange(size), np.int64), axis=axis)
    order = [place for place in range(len(shape) + 1) if place != axis + 1]
    return [b.transpose(windows, [*order, axis + 1])]


def complex_mul(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Real and imaginary parts are the last dimension; of ComplexMulConj the second factor is conjugated."""
    if not is_ready(node, b):
        return None
    (a, c), (d, e) = (b.add_many("Split", 2, name, axis=-1, num_outputs=2) for name in node.input)
    plus, minus = ("Sub", "Add") if node.op_type == "ComplexMul" else ("Add", "Sub")
    real = b.add(plus, b.add("Mul", a, d), b.add("Mul", c, e))
    cross = b.add("Mul", c, d), b.add("Mul", a, e)
    return [b.add("Concat", real, b.add(minus, *cross), axis=-1)]


def distances(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Between all rows of one matrix and all of another."""
    if not is_ready(node, b):
        return None
    metric = attribute(node, "metric", "sqeuclidean")
    if metric not in ("euclidean", "sqeuclidean"):
        refuse(node, b, f"its attribute metric is {metric}; euclidean and sqeuclidean are what is known")
    apart = b.add(
        "Sub", b.add("Unsqueeze", node.input[0], whole([1], b)), b.add("Unsqueeze", node.input[1], whole([0], b))
    )
    total = b.add("ReduceSum", b.add("Mul", apart, apart), whole([2], b), keepdims=0)
    return [b.add("Sqrt", total) if metric == "euclidean" else total]


def rfft(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Of the last dimension; the result's parts are a new last one."""
    rank = b.rank_of(node.input[0])
    if rank is None:
        return None
    refuse_attributes(node, b, signal_ndim=1, normalized=0, onesided=1)
    x = b.add("Unsqueeze", node.input[0], whole([-1], b))
    if rank == 1:
        return [b.add("Squeeze", _dft(b.add("Unsqueeze", x, whole([0], b)), 1, b, onesided=1), whole([0], b))]
    return [_dft(x, rank - 1, b, onesided=1)]


def irfft(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """The other half of the spectrum is the conjugate of the first."""
    dims = b.dims_of(node.input[0])
    if dims is None or dims[-2] is None:
        return None
    refuse_attributes(node, b, signal_ndim=1, normalized=0, onesided=1)
    axis, half = len(dims) - 2, dims[-2]
    x = node.input[0]
    mirrored = b.add("Gather", x, whole(range(half - 2, 0, -1), b), axis=axis)
    mirrored = b.add("Mul", mirrored, b.constant([1.0, -1.0], b.dtype_of(x)))
    full = b.add("Concat", x, mirrored, axis=axis)
    if axis == 0:
        full = b.add("Unsqueeze", full, whole([0], b))
    signal = b.add("Gather", _dft(full, max(axis, 1), b, inverse=1), b.constant(0, np.int64), axis=max(axis, 1) + 1)
    return [b.add("Squeeze", signal, whole([0], b)) if axis == 0 else signal]


def _dft(x: str, axis: int, b: Builder, **options: int) -> str:
    if b.opset >= 20:
        return b.add("DFT", x, "", b.constant(axis, np.int64), **options)
    return b.add("DFT", x, axis=axis, **options)


def crop_and_resize(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Boxes of images in one size; what lies outside of an image has a value of its own."""
    if not is_ready(node, b):
        return None
    x, boxes, ids = node.input[:3]
    size = b.value_of(node.input[3])
    if size is None:
        refuse(node, b, "its crop_size is not a constant")
    ends = b.add_many("Split", 4, boxes, axis=1, num_outputs=4)
    lines = []
    for first, last, count in ((ends[0], ends[2], int(size[0])), (ends[1], ends[3], int(size[1]))):
        share = np.arange(count) / (count - 1) if count > 1 else np.array([0.5])
        span = b.add("Mul", b.add("Sub", last, first), b.constant(share[None], np.float32))
        lines.append(b.add("Add", first, span))
    # (boxes, rows, columns): where in the image, from 0 to 1.
    shape = b.add(
        "Concat", b.add("Slice", b.add("Shape", boxes), whole([0], b), whole([1], b)), whole(size.tolist(), b), axis=0
    )
    rows, columns = (
        b.add("Expand", b.add("Unsqueeze", line, whole([axis], b)), shape)
        for line, axis in zip(lines, (2, 1), strict=True)
    )
    zero, one, two = (b.constant(number, np.float32) for number in (0, 1, 2))
    nearest = attribute(node, "mode", "bilinear") == "nearest"
    lines = [_nearest(line, x, axis, b) if nearest else line for line, axis in ((columns, 3), (rows, 2))]
    grid = b.add("Concat", *(b.add("Unsqueeze", line, whole([3], b)) for line in lines), axis=3)
    grid = b.add("Sub", b.add("Mul", grid, two), one)
    mode = "nearest" if nearest else "bilinear" if b.opset < 20 else "linear"
    chosen = b.add("Gather", x, ids, axis=0)
    value = b.add("GridSample", chosen, grid, mode=mode, padding_mode="border", align_corners=1)
    limits = (("GreaterOrEqual", zero), ("LessOrEqual", one))
    inside = [b.add(op, line, limit) for line in (rows, columns) for op, limit in limits]
    allowed = inside[0]
    for condition in inside[1:]:
        allowed = b.add("And", allowed, condition)
    outside = b.constant(attribute(node, "extrapolation_value", 0.0), np.float32)
    return [b.add("Where", b.add("Unsqueeze", allowed, whole([1], b)), value, outside)]


def _nearest(line: str, x: str, axis: int, b: Builder) -> str:
    """Places between pixels belong to the next one."""
    size = b.size(x, axis)
    last = b.constant([max(size, 2) - 1], np.float32) if isinstance(size, int) else ""
    if not last:
        last = b.cast(b.add("Sub", str(size), whole([1], b)), TensorProto.FLOAT)
    pixel = b.add("Floor", b.add("Add", b.add("Mul", line, last), b.constant(0.5, np.float32)))
    return b.add("Div", pixel, last)


def inverse(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Gauss and Jordan's elimination, where the largest number of a column among the rows that are left is the pivot.

    Rows stay where they are; which one was chosen in which step says where they belong.
    """
    dims, kind = b.dims_of(node.input[0]), b.type_of(node.input[0])
    if dims is None or dims[-1] is None:
        return None
    size, rank = dims[-1], len(dims)
    if size > _LARGEST:
        refuse(node, b, f"its matrices have {size} rows; {_LARGEST} is the most that is known")
    halves = kind in (TensorProto.FLOAT16, TensorProto.BFLOAT16)
    x = b.cast(node.input[0], TensorProto.FLOAT) if halves else node.input[0]
    dtype = np.dtype(np.float64 if kind == TensorProto.DOUBLE else np.float32)
    unit = b.add("Expand", b.constant(np.eye(size), dtype), b.add("Shape", x))
    matrix = b.add("Concat", x, unit, axis=-1)
    one, chosen = b.constant(1, dtype), []
    free = b.constant(np.ones(size), dtype)
    numbers = whole(range(size), b)
    for step in range(size):
        column = b.add("Gather", matrix, b.constant(step, np.int64), axis=rank - 1)
        # Rows that were chosen before are below all others.
        candidates = b.add("Sub", b.add("Mul", b.add("Add", b.add("Abs", column), one), free), one)
        place = b.add("ArgMax", candidates, axis=rank - 2, keepdims=1)
        is_pivot = b.cast(
            b.add("Equal", numbers, place), TensorProto.DOUBLE if dtype == np.float64 else TensorProto.FLOAT
        )
        free = b.add("Sub", free, is_pivot)
        marked = b.add("Unsqueeze", is_pivot, whole([-1], b))
        chosen.append(b.add("Unsqueeze", is_pivot, whole([-2], b)))
        row = b.add("ReduceSum", b.add("Mul", matrix, marked), whole([-2], b), keepdims=1)
        pivot = b.add("Gather", row, whole([step], b), axis=rank - 1)
        row = b.add("Div", row, pivot)
        others = b.add("Sub", matrix, b.add("Mul", b.add("Unsqueeze", column, whole([-1], b)), row))
        is_row = b.add("Greater", marked, b.constant(0.5, dtype))
        matrix = b.add("Where", is_row, row, others)
    right = b.add("Slice", matrix, whole([size], b), whole([2 * size], b), whole([-1], b))
    value = b.add("MatMul", b.add("Concat", *chosen, axis=-2), right)
    return [b.cast(value, kind) if halves else value]
