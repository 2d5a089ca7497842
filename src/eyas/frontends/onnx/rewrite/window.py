"""Rules for windows in forms that the importer lacks: ConvTranspose with groups or uneven pads, and pools."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from eyas.frontends.onnx.rewrite.half import in_f32
from eyas.frontends.onnx.rewrite.rules import Builder, attribute
from eyas.frontends.onnx.rewrite.sizes import filled, line, moved, over, product, sizes_of

# Ends the name of a node whose indices the importer counts within each image.
_BY_IMAGE = "_by_image"
_LAST = np.iinfo(np.int64).max


def conv_transpose(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Sizes and pads that are asked for are cut out of the whole result."""
    x, w = b.dims_of(node.input[0]), b.shape_of(node.input[1])
    auto, wanted = attribute(node, "auto_pad", "NOTSET"), attribute(node, "output_shape", None)
    rank = len(w or ()) - 2
    pads = attribute(node, "pads", [0] * 2 * rank)
    uneven = pads[:rank] != pads[rank:]
    groups = attribute(node, "group", 1)
    if x is None or w is None or b.opset < 11 or not (wanted or auto.startswith("SAME") or uneven or groups > 1):
        return None
    strides, dilations = attribute(node, "strides", [1] * rank), attribute(node, "dilations", [1] * rank)
    extra, kernel = attribute(node, "output_padding", [0] * rank), attribute(node, "kernel_shape", list(w[2:]))
    # By how much the whole result is larger than the image times the stride.
    over = [extra[i] + (kernel[i] - 1) * dilations[i] + 1 - strides[i] for i in range(rank)]
    if wanted is not None or auto.startswith("SAME"):
        totals = over
        if wanted is not None:
            if None in x[2:]:
                return None
            sizes = zip(x[2:], strides, wanted[-rank:], over, strict=True)
            totals = [(size or 0) * stride + more - want for size, stride, want, more in sizes]
        # What is missing is added at the end; what is too much goes from both ends.
        begins = [max(0, total // 2 if auto == "SAME_UPPER" else total - total // 2) for total in totals]
        pads = [*begins, *(total - begin for total, begin in zip(totals, begins, strict=True))]
    if groups > 1:
        ends = [e - pad for e, pad in zip(extra, pads[rank:], strict=True)]
        return _grouped_conv_transpose(node, b, w, (strides, dilations, pads[:rank], ends))
    more = [max(0, -pad) for pad in pads[rank:]]
    if min(pads[:rank]) < 0 or any(e + m >= s for e, m, s in zip(extra, more, strides, strict=True)):
        return None
    result = b.add(
        "ConvTranspose",
        *node.input,
        strides=strides,
        dilations=dilations,
        kernel_shape=kernel,
        output_padding=[e + m for e, m in zip(extra, more, strict=True)],
    )
    return [_cut(result, pads[:rank], [max(pad, 0) for pad in pads[rank:]], b)]


def _cut(value: str, begins: Sequence[int], ends: Sequence[int], b: Builder) -> str:
    """Takes so many pixels away from the beginning and the end of each spatial dimension."""
    stops = [-end if end else _LAST for end in ends]
    places = [b.constant(values, np.int64) for values in (begins, stops, list(range(2, len(stops) + 2)))]
    return b.add("Slice", value, *places)


def _grouped_conv_transpose(
    node: onnx.NodeProto,
    b: Builder,
    w: Sequence[int],
    window: tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]],
) -> list[str] | None:
    """A convolution of the image with zeros between its pixels, by the flipped kernel: the importer mixes up groups."""
    strides, dilations, begins, ends = window
    rank, groups, kernel = len(w) - 2, attribute(node, "group", 1), w[2:]
    x = [b.size(node.input[0], axis) for axis in range(rank + 2)]
    reach = [(k - 1) * d for k, d in zip(kernel, dilations, strict=True)]
    pads = [r - begin for r, begin in zip(reach, begins, strict=True)]
    pads += [r + end for r, end in zip(reach, ends, strict=True)]
    if min(pads) < 0:
        return None
    spaced = b.reshape(node.input[0], [*x[:2], *(part for size in x[2:] for part in (size, 1))])
    zeros = [0] * (2 + 2 * rank) + [0, 0, *(part for s in strides for part in (0, s - 1))]
    spaced = b.add("Pad", spaced, b.constant(zeros, np.int64))
    spaced = b.reshape(spaced, [*x[:2], *(b.times(size, s) for size, s in zip(x[2:], strides, strict=True))])
    # There are zeros behind each pixel, but none behind the last one.
    spaced = _cut(spaced, [0] * rank, [s - 1 for s in strides], b)
    weight = b.reshape(node.input[1], [groups, w[0] // groups, w[1], *kernel])
    weight = b.transpose(weight, [0, 2, 1, *range(3, 3 + rank)])
    weight = b.reshape(weight, [groups * w[1], w[0] // groups, *kernel])
    for axis, size in enumerate(kernel, 2):
        weight = b.add("Gather", weight, b.constant(np.arange(size)[::-1], np.int64), axis=axis)
    bias = [name for name in node.input[2:] if name]
    return [b.add("Conv", spaced, weight, *bias, group=groups, dilations=dilations, pads=pads)]


def lp_pool(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """A convolution with ones of the powers, and the root."""
    shape, kind = b.shape_of(node.input[0]), b.type_of(node.input[0])
    kernel = attribute(node, "kernel_shape", [])
    plain = attribute(node, "auto_pad", "NOTSET") in ("NOTSET", "VALID") and not attribute(node, "ceil_mode", 0)
    if shape is None or b.opset < 11 or (plain and set(attribute(node, "dilations", [1])) == {1}):
        return None
    if attribute(node, "ceil_mode", 0):
        return None
    p, dtype = attribute(node, "p", 2), onnx.helper.tensor_dtype_to_np_dtype(kind)
    rank = len(kernel)
    strides, dilations = attribute(node, "strides", [1] * rank), attribute(node, "dilations", [1] * rank)
    pads = _pads(node, shape[2:], kernel, strides, dilations)
    powers = b.add("Pow", b.add("Abs", node.input[0]), b.constant(p, dtype))
    ones = b.constant(np.ones((shape[1], 1, *kernel), dtype))
    sums = b.add("Conv", powers, ones, group=shape[1], strides=strides, dilations=dilations, pads=pads)
    return [b.add("Pow", sums, b.constant(1 / p, dtype))]


def max_pool(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """The importer's indices count within an image, by rows; ONNX's within the tensor, and by columns if asked for."""
    if node.name.endswith(_BY_IMAGE):
        return None
    if b.type_of(node.input[0]) in (onnx.TensorProto.INT8, onnx.TensorProto.UINT8):
        return _max_pool_of_bytes(node, b)
    if not b.rank_of(node.input[0]) or not (_has_result(node, 1) or attribute(node, "storage_order", 0)):
        return None
    options = {found.name: onnx.helper.get_attribute_value(found) for found in node.attribute}
    options["storage_order"] = 0
    values, places = b.add_many("MaxPool", 2, node.input[0], **options)
    b.nodes[-1].name += _BY_IMAGE
    if not _has_result(node, 1):
        return [values]
    images, channels, *spatial = sizes_of(node.input[0], b)
    first = b.reshape(line(product((images, channels), b), b), [images, channels, *[1] * len(spatial)])
    result = b.add("Mul", first, b.vector([product(spatial, b)]))
    if not attribute(node, "storage_order", 0):
        result = b.add("Add", result, places)
    else:
        # The last dimension was the fastest; now the first is.
        for axis, extent in enumerate(spatial):
            after, before = product(spatial[axis + 1 :], b), product(spatial[:axis], b)
            along = b.add("Mod", b.add("Div", places, b.vector([after])), b.vector([extent]))
            result = b.add("Add", result, b.add("Mul", along, b.vector([before])))
    return [value for value, name in zip((values, result), node.output, strict=False) if name]


def average_pool(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """With `ceil_mode` the last windows go beyond the image and its padding. The importer pads as much on both sides,
    which moves all windows, and divides by whole ones: here zeros are added behind, and sums are divided by how many
    elements count in each window."""
    x, half = b.dims_of(node.input[0]), len(attribute(node, "kernel_shape", []))
    auto, pads = attribute(node, "auto_pad", "NOTSET"), attribute(node, "pads", [0] * 2 * half)
    if not attribute(node, "ceil_mode", 0) or x is None or auto.startswith("SAME") or b.opset < 11:
        return in_f32(node, b)
    options = {found.name: onnx.helper.get_attribute_value(found) for found in node.attribute}
    options = {name: value for name, value in options.items() if name not in ("pads", "auto_pad", "count_include_pad")}
    options["ceil_mode"] = 0
    before, behind = pads[:half], pads[half:]
    around, more = [0, 0, *before, 0, 0, *behind], [0, 0] * (half + 2)
    more[-half:] = [stride - 1 for stride in attribute(node, "strides", [1] * half)]
    spatial = sizes_of(node.input[0], b)[2:]
    ones = b.cast(filled(1, [1, 1, *spatial], b), b.type_of(node.input[0]))
    dtype = onnx.helper.tensor_dtype_to_np_dtype(b.type_of(node.input[0]))
    counts = b.constant(int(attribute(node, "count_include_pad", 0)), dtype)
    pooled, share = (
        b.add("AveragePool", _padded(_padded(value, around, b, fill), more, b), **options)
        for value, fill in ((node.input[0], ""), (ones, counts))
    )
    return [begun_inside(node, node.input[0], b.add("Div", pooled, share), pads, b)]


def begun_inside(node: onnx.NodeProto, image: str, result: str, pads: Sequence[int], b: Builder) -> str:
    """Without the windows of `ceil_mode` that begin in the padding behind the image: they are none."""
    kernel = attribute(node, "kernel_shape", [])
    half = len(kernel)
    strides, dilations = attribute(node, "strides", [1] * half), attribute(node, "dilations", [1] * half)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    if all(end <= size - stride for end, size, stride in zip(pads[half:], reach, strides, strict=True)):
        return result
    spatial = zip(sizes_of(image, b)[2:], pads[:half], strides, strict=True)
    counts = b.vector([over(moved(size, before, b), stride, b) for size, before, stride in spatial])
    axes = b.constant(np.arange(2, 2 + half), np.int64)
    return b.add("Slice", result, b.constant([0] * half, np.int64), counts, axes)


def _padded(value: str, around: Sequence[int], b: Builder, fill: str = "") -> str:
    if not any(around):
        return value
    return b.add("Pad", value, b.constant(list(around), np.int64), *([fill] if fill else []))


def _max_pool_of_bytes(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """The importer compares bytes as signed ones and pads some with zeros: they are made signed, and padded here."""
    x, kind, int8 = node.input[0], b.type_of(node.input[0]), onnx.TensorProto.INT8
    options = {found.name: onnx.helper.get_attribute_value(found) for found in node.attribute}
    pads, auto = options.get("pads", [0]), attribute(node, "auto_pad", "NOTSET")
    if _has_result(node, 1) or options.get("ceil_mode", 0) or auto.startswith("SAME"):
        values, *places = b.add_many("MaxPool", len(node.output), b.cast(x, onnx.TensorProto.FLOAT), **options)
        return [b.cast(values, kind), *places]
    if kind == int8 and not any(pads):
        return None
    middle = b.constant(128, np.int16)
    wide = onnx.TensorProto.INT16
    if kind != int8:
        x = b.cast(b.add("Sub", b.cast(x, wide), middle), int8)
    if any(pads):
        rank = len(pads) // 2
        around = [0, 0, *pads[:rank], 0, 0, *pads[rank:]]
        x = b.add("Pad", x, b.constant(around, np.int64), b.constant(-128, np.int8))
    x = b.add("MaxPool", x, **{name: value for name, value in options.items() if name not in ("pads", "auto_pad")})
    return [x if kind == int8 else b.cast(b.add("Add", b.cast(x, wide), middle), kind)]


def _has_result(node: onnx.NodeProto, index: int) -> bool:
    return index < len(node.output) and bool(node.output[index])


def _pads(
    node: onnx.NodeProto,
    spatial: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> list[int]:
    auto, rank = attribute(node, "auto_pad", "NOTSET"), len(kernel)
    if not auto.startswith("SAME"):
        return [0] * 2 * rank if auto == "VALID" else attribute(node, "pads", [0] * 2 * rank)
    totals = []
    for size, length, stride, dilation in zip(spatial, kernel, strides, dilations, strict=True):
        covered = (-(-size // stride) - 1) * stride + (length - 1) * dilation + 1
        totals.append(max(covered - size, 0))
    small, large = [total // 2 for total in totals], [total - total // 2 for total in totals]
    return [*small, *large] if auto == "SAME_UPPER" else [*large, *small]
