"""Rules for operators that move data: CumProd, Col2Im, MaxUnpool, DepthToSpace and back, TensorScatter; and Det."""

from __future__ import annotations

import itertools

import numpy as np
import onnx

from eyas.frontends.onnx.rewrite.rules import Builder, attribute, operand
from eyas.frontends.onnx.rewrite.sizes import divided, line, sizes_of


def cum_prod(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Products with doubling distance (Hillis and Steele): log2(n) steps, each of the whole tensor."""
    shape, axis = b.shape_of(node.input[0]), b.value_of(node.input[1])
    if shape is None or axis is None or not shape:
        return None
    along = int(axis.reshape(())) % len(shape)
    size = shape[along]
    dtype = b.dtype_of(node.input[0])
    reverse, exclusive = attribute(node, "reverse", 0), attribute(node, "exclusive", 0)

    def shifted(value: str, distance: int) -> str:
        ones = b.constant(np.ones([*shape[:along], distance, *shape[along + 1 :]], dtype))
        first, last = (distance, size) if reverse else (0, size - distance)
        ends = [b.constant([part], np.int64) for part in (first, last, along)]
        kept = b.add("Slice", value, *ends)
        return b.add("Concat", *((kept, ones) if reverse else (ones, kept)), axis=along)

    value = node.input[0]
    if exclusive and size > 0:
        value = shifted(value, 1) if size > 1 else b.constant(np.ones(shape, dtype))
    distance = 1
    while distance < size:
        value = b.add("Mul", value, shifted(value, distance))
        distance *= 2
    return [value]


def col2im(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Each pixel is a sum over the kernel's positions; at each, at most one column holds it."""
    columns = b.shape_of(node.input[0])
    image, block = b.value_of(node.input[1]), b.value_of(node.input[2])
    if columns is None or image is None or block is None:
        return None
    rank = len(image)
    strides = np.array(attribute(node, "strides", [1] * rank))
    dilations = np.array(attribute(node, "dilations", [1] * rank))
    pads = np.array(attribute(node, "pads", [0] * 2 * rank))
    batch, kernel, pixels = columns[0], int(np.prod(block)), int(np.prod(image))
    channels = columns[1] // kernel
    counts = (image + pads[:rank] + pads[rank:] - (dilations * (block - 1) + 1)) // strides + 1
    nothing = kernel * columns[2]
    table = np.full((kernel, pixels), nothing, np.int64)
    for k, offset in enumerate(itertools.product(*map(range, block))):
        for column, position in enumerate(itertools.product(*map(range, counts))):
            pixel = np.array(position) * strides + np.array(offset) * dilations - pads[:rank]
            if (pixel >= 0).all() and (pixel < image).all():
                table[k, np.ravel_multi_index(tuple(pixel), tuple(image))] = k * columns[2] + column
    flat = b.reshape(node.input[0], [batch, channels, nothing])
    dtype = b.dtype_of(node.input[0])
    padded = b.add("Concat", flat, b.constant(np.zeros((batch, channels, 1), dtype)), axis=2)
    taken = b.reshape(b.add("Gather", padded, b.constant(table.reshape(-1)), axis=2), [batch, channels, kernel, pixels])
    return [b.reshape(b.sum(taken, 2), [batch, channels, *(int(size) for size in image)])]


def max_unpool(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """A scatter into zeros. Indices count within the pooled tensor, which `output_shape` may only enlarge."""
    shape = b.shape_of(node.input[0])
    if shape is None:
        return None
    kernel = attribute(node, "kernel_shape", [])
    strides, pads = attribute(node, "strides", [1] * len(kernel)), attribute(node, "pads", [0] * 2 * len(kernel))
    rank = len(kernel)
    inferred = [*shape[:2]]
    for i in range(rank):
        inferred.append((shape[i + 2] - 1) * strides[i] - pads[i] - pads[i + rank] + kernel[i])
    wanted = inferred
    if operand(node, 2):
        given = b.value_of(operand(node, 2))
        if given is None:
            return None
        wanted = [int(size) for size in given]
    dtype = b.dtype_of(node.input[0])
    zeros = b.constant(np.zeros(int(np.prod(inferred)), dtype))
    flat = [b.reshape(name, [-1]) for name in (node.input[1], node.input[0])]
    value = b.reshape(b.add("ScatterElements", zeros, *flat, axis=0), inferred)
    if wanted != inferred:
        grow = [0] * len(shape) + [want - have for want, have in zip(wanted, inferred, strict=True)]
        if min(grow) < 0:
            return None
        value = b.add("Pad", value, b.constant(grow, np.int64))
    return [value]


def space_to_depth(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Blocks of pixels become channels; the mode says whether blocks or channels come first."""
    if b.rank_of(node.input[0]) != 4:
        return None
    (n, c, *image), size = sizes_of(node.input[0], b), int(attribute(node, "blocksize", 1))
    h, w = (divided(side, size, b) for side in image)
    parts = b.reshape(node.input[0], [n, c, h, size, w, size])
    order = [0, 3, 5, 1, 2, 4] if attribute(node, "mode", "DCR") == "DCR" else [0, 1, 3, 5, 2, 4]
    return [b.reshape(b.transpose(parts, order), [n, b.times(c, size * size), h, w])]


def depth_to_space(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Channels become blocks of pixels. The importer takes those of mode CRD, which torch's pixel shuffle is, in the
    order of the other."""
    if b.rank_of(node.input[0]) != 4:
        return None
    (n, c, h, w), size = sizes_of(node.input[0], b), int(attribute(node, "blocksize", 1))
    kept = divided(c, size * size, b)
    blocks_first = attribute(node, "mode", "DCR") == "DCR"
    parts = b.reshape(node.input[0], [n, size, size, kept, h, w] if blocks_first else [n, kept, size, size, h, w])
    order = [0, 3, 4, 1, 5, 2] if blocks_first else [0, 1, 4, 2, 5, 3]
    return [b.reshape(b.transpose(parts, order), [n, kept, b.times(h, size), b.times(w, size)])]


def tensor_scatter(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Each position of the cache knows which update, if any, it takes: no scatter is needed."""
    cache, update = b.shape_of(node.input[0]), b.shape_of(node.input[1])
    if cache is None or update is None:
        return None
    rank = len(cache)
    axis = attribute(node, "axis", -2) % rank
    size, count = cache[axis], update[axis]
    positions = np.arange(size, dtype=np.int64).reshape([-1 if i == axis else 1 for i in range(rank)])
    distance = b.constant(positions)
    if operand(node, 2):
        distance = b.add("Sub", distance, b.reshape(node.input[2], [cache[0]] + [1] * (rank - 1)))
    else:
        distance = b.add("Expand", distance, b.constant([cache[0]] + [1] * (rank - 1), np.int64))
    zero, wrap = b.constant(0, np.int64), b.constant(size, np.int64)
    if attribute(node, "mode", "linear") == "circular":
        distance = b.add("Where", b.add("Less", distance, zero), b.add("Add", distance, wrap), distance)
    inside = b.add(
        "And",
        b.add("Not", b.add("Less", distance, zero)),
        b.add("Less", distance, b.constant(count, np.int64)),
    )
    index = b.add("Max", b.add("Min", distance, b.constant(count - 1, np.int64)), zero)
    index = b.add("Expand", index, b.constant([*cache], np.int64))
    return [b.add("Where", inside, b.add("GatherElements", node.input[1], index, axis=axis), node.input[0])]


def det(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Small determinants by cofactors, which needs no pivoting."""
    shape = b.shape_of(node.input[0])
    if shape is None or not 1 <= shape[-1] <= 4 or b.opset < 11:
        return None
    size, batch = shape[-1], [*shape[:-2]]
    flat = b.reshape(node.input[0], [-1, size * size])
    entries = {
        (i, j): b.add("Gather", flat, b.constant(i * size + j, np.int64), axis=1)
        for i in range(size)
        for j in range(size)
    }

    def minor(row: int, columns: tuple[int, ...]) -> str:
        if len(columns) == 1:
            return entries[row, columns[0]]
        total = ""
        for place, column in enumerate(columns):
            term = b.add("Mul", entries[row, column], minor(row + 1, columns[:place] + columns[place + 1 :]))
            total = term if not place else b.add("Sub" if place % 2 else "Add", total, term)
        return total

    return [b.reshape(minor(0, tuple(range(size))), batch)]


def expand(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Open sizes that may be 1 and become others: the importer takes a result of the operand's type for the operand,
    and the size that is asked for where that is 1 and the operand's is not. Each such axis is a gather, of the only
    element or of all of them."""
    given, made = b.dims_of(node.input[0]), b.dims_of(node.output[0])
    if given is None or made is None or len(given) > len(made) or None not in given or b.opset < 13:
        return None
    rank, wanted = len(made), b.rank_of(node.input[1])
    sizes = b.dims_of(node.input[1])
    if wanted != 1 or sizes is None or sizes[0] is None:
        return None
    lead = rank - len(given)
    dims = [*[1] * lead, *given]
    same = [axis >= lead and _has_name(node, axis - lead, axis, b) for axis in range(rank)]
    if lead and all(is_same or dim is not None for is_same, dim in zip(same, dims, strict=True)):
        return None
    one, value = b.constant([1], np.int64), node.input[0]
    if lead:
        value = b.reshape(value, [*[1] * lead, *(b.size(node.input[0], axis) for axis in range(len(given)))])
    for axis in range(rank):
        place = axis - rank + sizes[0]
        if same[axis] or place < 0 or dims[axis] not in (None, 1) or dims[axis] == made[axis] == 1:
            continue
        have = one if axis < lead else b.vector([b.size(node.input[0], axis - lead)])
        target = b.add("Gather", node.input[1], b.constant([place], np.int64), axis=0)
        count = b.add("Where", b.add("Equal", have, one), b.cast(target, onnx.TensorProto.INT64), have)
        places = b.add("Min", line(count, b), b.add("Sub", have, one))
        value = b.add("Gather", value, places, axis=axis)
    return None if value == node.input[0] else [value]


def _has_name(node: onnx.NodeProto, before: int, after: int, b: Builder) -> bool:
    name = b.name_of(node.input[0], before)
    return name is not None and name == b.name_of(node.output[0], after)


def center_crop_pad(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Open sizes, of which each may be too large or too small: the standard's body pads by less than nothing then."""
    dims, wanted = b.dims_of(node.input[0]), b.value_of(node.input[1])
    if dims is None or wanted is None or None not in dims:
        return None
    axes = [axis % len(dims) for axis in attribute(node, "axes", range(len(dims)))]
    zero, two, value = b.constant([0], np.int64), b.constant([2], np.int64), node.input[0]
    before: list[int | str] = [0] * len(dims)
    after: list[int | str] = [0] * len(dims)
    for axis, want in zip(axes, map(int, wanted), strict=True):
        size, target = b.vector([b.size(node.input[0], axis)]), b.constant([want], np.int64)
        more = b.add("Max", b.add("Sub", size, target), zero)
        less = b.add("Max", b.add("Sub", target, size), zero)
        # Of an odd number one more is cut from, or put to, the end.
        start, ahead = b.add("Div", more, two), b.add("Div", less, two)
        end = b.add("Add", start, b.add("Min", size, target))
        value = b.add("Slice", value, start, end, b.constant([axis], np.int64))
        before[axis], after[axis] = ahead, b.add("Sub", less, ahead)
    return [b.add("Pad", value, b.vector([*before, *after]))]
