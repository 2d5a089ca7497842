"""Rules for operators that are a gather or a scatter with known indices, and for small ones beside them."""

from __future__ import annotations

import numpy as np
import onnx

from eyas.frontends.onnx.rewrite.rules import Builder, attribute, operand


def slice_backwards(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Negative steps: the importer reads outside the tensor when the start is beyond the end."""
    dims = b.dims_of(node.input[0])
    given = [b.value_of(name) if name else None for name in (list(node.input[1:]) + [""] * 4)[:4]]
    starts, ends, axes, steps = given
    if dims is None or starts is None or ends is None or steps is None or min(steps, default=1) > 0:
        return None
    places = range(len(starts)) if axes is None else [int(axis) % len(dims) for axis in axes]
    value = node.input[0]
    for start, end, axis, step in zip(map(int, starts), map(int, ends), places, map(int, steps), strict=True):
        size = dims[axis]
        if size is not None:
            chosen = np.arange(size)[slice(start, _end(end, size, step), step)]
            value = b.add("Gather", value, b.constant(chosen.astype(np.int64)), axis=axis)
        elif step > 0:
            value = b.add("Slice", value, *(b.constant([part], np.int64) for part in (start, end, axis, step)))
        else:
            value = b.add("Gather", value, _backwards(value, axis, start, end, step, b), axis=axis)
    return [value]


def _backwards(value: str, axis: int, start: int, end: int, step: int, b: Builder) -> str:
    """The positions of a slice with a negative step along an axis of open size."""
    size = b.reshape(b.add("Gather", b.add("Shape", value), b.constant([axis], np.int64), axis=0), [])
    last = b.add("Sub", size, b.constant(1, np.int64))

    def bound(place: int) -> str:
        """Counted from the end where it is negative, and no further than one before the first element."""
        at = b.constant(place, np.int64)
        if place < 0:
            at = b.add("Max", b.add("Add", at, size), b.constant(-1, np.int64))
        return b.add("Min", at, last)

    return b.add("Range", bound(start), bound(end), b.constant(step, np.int64))


def _end(end: int, size: int, step: int) -> int | None:
    # Far below zero means down to the first element, which Python writes as None.
    return None if step < 0 and end < -size else end


def pad(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Negative pads cut; pads that repeat the tensor's own elements are gathers along each axis."""
    pads = b.value_of(operand(node, 1)) if operand(node, 1) else None
    if pads is not None and b.opset >= 13 and b.rank_of(node.input[0]) is not None and min(pads, default=0) < 0:
        return _cut(node, pads, b)
    return _pad_wrapped(node, b)


def _cut(node: onnx.NodeProto, pads: np.ndarray, b: Builder) -> list[str] | None:
    """Cut first, pad then, as ONNX Runtime does."""
    rank = b.rank_of(node.input[0])
    assert rank is not None
    axes = b.value_of(operand(node, 3)) if operand(node, 3) else np.arange(rank)
    if axes is None:
        return None
    before, after = np.split(pads.astype(np.int64), 2)
    ends = np.where(after < 0, after, np.iinfo(np.int64).max)
    cut = [b.constant(part, np.int64) for part in (np.maximum(-before, 0), ends, axes)]
    value = b.add("Slice", node.input[0], *cut)
    if (pads <= 0).all():
        return [value]
    kept = b.constant(np.maximum(pads, 0), np.int64)
    return [b.add("Pad", value, kept, *node.input[2:], mode=attribute(node, "mode", "constant"))]


def _pad_wrapped(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Pads that repeat the tensor's own elements are gathers along each axis. Sizes may be open where the tensor starts
    over, for which the importer has no lowering that ends; it knows the other modes."""
    mode, dims = attribute(node, "mode", "constant"), b.dims_of(node.input[0])
    pads = b.value_of(operand(node, 1)) if operand(node, 1) else None
    if mode == "constant" or dims is None or pads is None or 0 in dims or min(pads, default=0) < 0:
        return None
    axes = b.value_of(operand(node, 3)) if operand(node, 3) else np.arange(len(dims))
    if axes is None or (None in dims and mode != "wrap"):
        return None
    value = node.input[0]
    for place, axis in enumerate(int(axis) % len(dims) for axis in axes):
        before, after, size = int(pads[place]), int(pads[place + len(axes)]), dims[axis]
        if not before and not after:
            continue
        if size is not None:
            table = b.constant(np.pad(np.arange(size, dtype=np.int64), (before, after), mode=mode))  # type: ignore[call-overload]
        else:
            count = b.reshape(b.add("Gather", b.add("Shape", value), b.constant([axis], np.int64), axis=0), [])
            end = b.add("Add", count, b.constant(after, np.int64))
            line = b.add("Range", b.constant(-before, np.int64), end, b.constant(1, np.int64))
            table = b.add("Mod", line, count)
        value = b.add("Gather", value, table, axis=axis)
    return [value]


def gather_nothing(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """No indices, in a shape with a dynamic dimension, on which the importer aborts: broadcasting makes the result."""
    data, indices = b.value_type(node.input[0]), b.value_type(node.input[1])
    if data is None or indices is None or b.rank_of(node.input[0]) is None or b.opset < 13:
        return None
    dims, places = data.tensor_type.shape.dim, indices.tensor_type.shape.dim
    sizes = [place.dim_value if place.HasField("dim_value") else None for place in places]
    axis = attribute(node, "axis", 0) % len(dims)
    if 0 not in sizes or None not in sizes or not dims[axis].dim_value:
        return None
    # (data before the axis, dimensions of the indices, data behind it)
    first = b.add("Slice", node.input[0], *(b.constant([part], np.int64) for part in (0, 1, axis)))
    first = b.add("Unsqueeze", first, b.constant(np.arange(axis + 1, axis + len(places)), np.int64))
    after = np.arange(len(places), len(places) + len(dims) - axis - 1)
    chosen = b.cast(b.add("Unsqueeze", node.input[1], b.constant(after, np.int64)), onnx.TensorProto.BOOL)
    zero = b.constant(0, b.dtype_of(node.input[0]))
    return [b.add("Where", chosen, first, zero)]


def join_nothing(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Operands that are known to have nothing along the axis, on which the importer aborts beside open sizes."""
    axis = attribute(node, "axis", 0)
    dims = [b.dims_of(name) for name in node.input]
    kept = [name for name, sizes in zip(node.input, dims, strict=True) if not sizes or sizes[axis] != 0]
    if len(kept) == len(node.input):
        return None
    kept = kept or [node.input[0]]
    return [b.add("Identity", kept[0]) if len(kept) == 1 else b.add("Concat", *kept, axis=axis)]


def scatter_elements(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Reductions by maximum and minimum are known of ScatterND, whose indices are whole positions."""
    rank = b.rank_of(node.input[0])
    if attribute(node, "reduction", "none") not in ("max", "min") or not rank or b.rank_of(node.input[1]) != rank:
        return None
    axis = attribute(node, "axis", 0) % rank
    given = b.cast(node.input[1], onnx.TensorProto.INT64)
    size = b.size(node.input[0], axis)
    size = b.constant(size, np.int64) if isinstance(size, int) else b.reshape(size, [])
    given = b.add("Where", b.add("Less", given, b.constant(0, np.int64)), b.add("Add", given, size), given)
    columns = [given if at == axis else _positions(node.input[1], at, rank, b) for at in range(rank)]
    last = b.constant([rank], np.int64)
    places = b.add("Concat", *(b.add("Unsqueeze", column, last) for column in columns), axis=rank)
    return [b.add("ScatterND", node.input[0], places, node.input[2], reduction=attribute(node, "reduction", "none"))]


def _positions(like: str, axis: int, rank: int, b: Builder) -> str:
    """For each element of a value its position along an axis."""
    shape = b.shape_of(like)
    if shape is not None:
        return b.constant(np.ascontiguousarray(np.indices(shape)[axis]), np.int64)
    zero, one = b.constant(0, np.int64), b.constant(1, np.int64)
    size = b.size(like, axis)
    end = b.constant(size, np.int64) if isinstance(size, int) else b.reshape(size, [])
    line = b.reshape(b.add("Range", zero, end, one), [-1 if at == axis else 1 for at in range(rank)])
    return b.add("Expand", line, b.add("Shape", like))


def einsum(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """One scalar stays what it is: the importer runs out of memory on an equation without letters. What an equation
    leaves out is written: the letters that occur once, in their order, behind the dimensions that have none."""
    if len(node.input) == 1 and b.rank_of(node.input[0]) == 0:
        return [node.input[0]]
    equation = attribute(node, "equation", "").replace(" ", "")
    if "->" in equation:
        return None
    letters = equation.replace("...", "").replace(",", "")
    once = "".join(sorted(letter for letter in set(letters) if letters.count(letter) == 1))
    result = ("..." if "..." in equation else "") + once
    return [b.add("Einsum", *node.input, equation=f"{equation}->{result}")]


def swiglu(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """a * sigmoid(alpha * a) * b."""
    gate, kind = node.input[0], b.type_of(node.input[0])
    alpha = attribute(node, "alpha", 1.0)
    scale = b.constant(alpha, onnx.helper.tensor_dtype_to_np_dtype(kind))
    inner = gate if alpha == 1.0 else b.add("Mul", gate, scale)
    return [b.add("Mul", b.add("Mul", gate, b.add("Sigmoid", inner)), node.input[1])]
