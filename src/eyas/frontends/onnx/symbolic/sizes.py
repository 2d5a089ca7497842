"""Shapes of results that onnx's own inference loses: where sizes are computed, from dimensions or from other values.

A rule gives a shape for each result; an entry that is None is a size that is not known, a shape that is None says
nothing. Whatever has no rule here is inferred by onnx, which hands dimensions through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx

from eyas.frontends.onnx.symbolic import expressions as ex
from eyas.frontends.onnx.symbolic import rare_sizes
from eyas.frontends.onnx.symbolic.call import Call, Shape, Size
from eyas.frontends.onnx.symbolic.values import Value


def result_shapes(node: onnx.NodeProto, inputs: Sequence[Value | None], opset: int) -> Sequence[Shape] | None:
    """The shapes of a node's results, as far as a rule says; None without a rule."""
    rule = _RULES.get(node.op_type) or rare_sizes.RULES.get(node.op_type)
    if rule is None:
        return None
    try:
        return rule(Call(node, list(inputs), opset))
    except (IndexError, ValueError, TypeError):
        # What does not fit together is for onnx to say.
        return None


def _reshape(call: Call) -> Sequence[Shape] | None:
    shape, wanted = call.shape(), call.elements(1, "shape")
    if wanted is None:
        count = call.count(1)
        return None if count is None else [[None] * count]
    keeps = not call.attribute("allowzero", 0)
    dims: list[Any] = []
    for index, size in enumerate(wanted):
        if size == 0 and keeps:
            dims.append(None if shape is None else shape[index])
        else:
            # A number that only a call knows may be the -1.
            dims.append(None if ex.has_elements(size) else size)
    if -1 in dims:
        rest = [size for size in dims if not (isinstance(size, int) and size == -1)]
        if shape is None or None in rest:
            dims[dims.index(-1)] = None
        else:
            dims[dims.index(-1)] = _rest(shape, rest)
    return [[None if size is None or not _is_size(size) else size for size in dims]]


def _rest(shape: Sequence[ex.Integer], others: list[Any]) -> Size:
    """What a -1 stands for. Common factors go first: the whole product may be a sum in several variables."""
    left, right = list(shape), list(others)
    for size in list(right):
        if size in left:
            left.remove(size)
            right.remove(size)
    total, part = ex.product(left), ex.product(right)
    return ex.divide(total, part, "floordiv")


def _is_size(size: Any) -> bool:
    return isinstance(size, ex.Poly) or (isinstance(size, int) and size >= 0)


def _expand(call: Call) -> Sequence[Shape] | None:
    shape, wanted = call.shape(), call.elements(1)
    if shape is None:
        return None
    if wanted is None:
        count = call.count(1)
        return None if count is None else [[None] * max(count, len(shape))]
    rank = max(len(shape), len(wanted))
    left = [1] * (rank - len(shape)) + list(shape)
    right = [1] * (rank - len(wanted)) + list(wanted)
    return [[broadcast(a, b) for a, b in zip(left, right, strict=True)]]


def broadcast(a: Size, b: Size) -> Size:
    """The size of two dimensions beside each other."""
    if a == b or (isinstance(b, int) and b == 1):
        return a
    if isinstance(a, int):
        return b if a == 1 else a
    return b if isinstance(b, int) else None


def _constant_of_shape(call: Call) -> Sequence[Shape] | None:
    wanted = call.elements(0)
    if wanted is None:
        count = call.count(0)
        return None if count is None else [[None] * count]
    return [[size if _is_size(size) else None for size in wanted]]


def _slice(call: Call) -> Sequence[Shape] | None:
    shape = call.shape()
    if shape is None:
        return None
    starts, ends = call.elements(1, "starts"), call.elements(2, "ends")
    axes = call.elements(3, "axes")
    if axes is None and call.has(3):
        return [[None] * len(shape)]
    if axes is None:
        axes = list(range(len(starts or ends or shape)))
    steps = call.elements(4, "steps")
    if steps is None and not call.has(4):
        steps = [1] * len(axes)
    result: list[Size] = list(shape)
    for index, axis in enumerate(axes):
        at = int(axis) % len(shape)
        if starts is None or ends is None or steps is None:
            result[at] = None
        else:
            result[at] = slice_size(shape[at], starts[index], ends[index], steps[index])
    return [result]


def slice_size(size: ex.Integer, start: Any, end: Any, step: Any) -> Size:
    """How many elements a slice takes."""
    if not isinstance(step, int) or step == 0:
        return None
    if isinstance(size, int) and all(isinstance(one, int) for one in (start, end)):
        return len(range(*slice(start, None if step < 0 and end < -size else end, step).indices(size)))
    if step < 0:
        whole = isinstance(start, int) and isinstance(end, int) and start in (-1, _LAST) and end < -(1 << 31)
        return ex.divide(size, -step, "ceildiv") if whole else None
    first, last = _position(start, size), _position(end, size)
    if first is None or last is None:
        return None
    length = ex.sub(last, first)
    if not ex.is_not_negative(length):
        length = ex.extreme("max", length, 0)
    return ex.divide(length, step, "ceildiv")


_LAST = (1 << 63) - 1
# Ends beyond any size mean "to the end": exporters write the largest integer of 32 or 64 bits.
_FAR = (1 << 31) - 1


def _position(at: Any, size: ex.Integer) -> Size:
    if isinstance(at, int):
        if at >= _FAR:
            return size
        if at < 0:
            moved = ex.add(size, at)
            return moved if ex.is_not_negative(moved) else ex.extreme("max", moved, 0)
        return 0 if at == 0 else ex.extreme("min", size, at)
    if at == size:
        return size
    if ex.is_not_negative(at):
        return ex.extreme("min", at, size)
    # Something like `n - 3`, which may count from the end: not known.
    return None


def _concat(call: Call) -> Sequence[Shape] | None:
    shapes = [call.shape(index) for index in range(len(call.inputs))]
    known = [shape for shape in shapes if shape is not None]
    if not known:
        return None
    axis, rank = call.attribute("axis", 1), len(known[0])
    result: list[Size] = []
    for at in range(rank):
        if at == axis % rank:
            total: Size = 0
            for shape in shapes:
                total = None if total is None or shape is None else ex.add(total, shape[at])
            result.append(total)
        else:
            # All have one size here: a number is better than an expression.
            sizes = [shape[at] for shape in known]
            result.append(next((size for size in sizes if isinstance(size, int)), sizes[0]))
    return [result]


def _pad(call: Call) -> Sequence[Shape] | None:
    shape = call.shape()
    pads = call.elements(1, "pads" if call.opset > 1 else "paddings")
    if shape is None:
        return None
    axes = call.elements(3)
    if pads is None or (call.has(3) and axes is None):
        return [[None] * len(shape)]
    along = [int(axis) % len(shape) for axis in axes] if axes is not None else list(range(len(shape)))
    result: list[Size] = list(shape)
    for index, at in enumerate(along):
        result[at] = ex.add(shape[at], ex.add(pads[index], pads[index + len(along)]))
    return [result]


def _tile(call: Call) -> Sequence[Shape] | None:
    shape, repeats = call.shape(), call.elements(1)
    if shape is None:
        return None
    return [[None] * len(shape) if repeats is None else [ex.mul(a, b) for a, b in zip(shape, repeats, strict=True)]]


def _resize(call: Call) -> Sequence[Shape] | None:
    shape = call.shape()
    if shape is None:
        return None
    if call.attribute("axes") is not None or call.attribute("keep_aspect_ratio_policy", b"stretch") != b"stretch":
        return None
    sizes = call.elements(3)
    if call.has(3):
        return [[None] * len(shape) if sizes is None else list(sizes)]
    place = 2 if call.node.op_type == "Resize" and call.opset >= 11 else 1
    scales = call.elements(place, "scales")
    if scales is None or len(scales) != len(shape):
        return [[None] * len(shape)]
    result: list[Size] = []
    for size, scale in zip(shape, scales, strict=True):
        scaled = ex.calculate("mul", ex.to_float(size, "f32"), scale, "f32")
        result.append(ex.to_integer(ex.function("floor", scaled, "f32")))
    return [result]


def _split(call: Call) -> Sequence[Shape] | None:
    shape, count = call.shape(), len(call.node.output)
    if shape is None:
        return None
    axis = call.attribute("axis", 0) % len(shape)
    parts = call.elements(1, "split")
    if parts is None and call.has(1):
        parts = [None] * count
    if parts is None:
        chunk = ex.exact_quotient(shape[axis], count)
        if chunk is None:
            chunk = ex.divide(shape[axis], count, "ceildiv")
        last = None if chunk is None else ex.sub(shape[axis], ex.mul(chunk, count - 1))
        parts = [chunk] * (count - 1) + [last]
    return [[*shape[:axis], size, *shape[axis + 1 :]] for size in parts]


def _range(call: Call) -> Sequence[Shape] | None:
    ends = [call.elements(index) for index in range(3)]
    if any(one is None for one in ends):
        return [[None]]
    start, limit, step = (one[0] for one in ends if one is not None)
    if not all(isinstance(one, (int, ex.Poly)) for one in (start, limit, step)):
        return [[_float_range(start, limit, step)]]
    if not isinstance(step, int):
        return [[None]]
    distance = ex.sub(limit, start) if step > 0 else ex.sub(start, limit)
    if not ex.is_not_negative(distance):
        distance = ex.extreme("max", distance, 0)
    return [[ex.divide(distance, abs(step), "ceildiv")]]


def _float_range(start: Any, limit: Any, step: Any) -> Size:
    """ceil((limit - start) / step), as floats compute it."""
    distance = ex.calculate("sub", limit, start, "f32")
    quotient = ex.function("ceil", ex.calculate("div", distance, step, "f32"), "f32")
    count = ex.to_integer(quotient)
    return count if ex.is_not_negative(count) else ex.extreme("max", count, 0)


def _top_k(call: Call) -> Sequence[Shape] | None:
    shape, k = call.shape(), call.elements(1, "k")
    if shape is None:
        return None
    axis = call.attribute("axis", -1) % len(shape)
    one: Shape = [*shape[:axis], None if k is None else k[0], *shape[axis + 1 :]]
    return [one, one]


def _one_hot(call: Call) -> Sequence[Shape] | None:
    shape, depth = call.shape(), call.elements(1)
    if shape is None:
        return None
    axis = call.attribute("axis", -1) % (len(shape) + 1)
    size = None if depth is None else ex.to_integer(depth[0])
    return [[*shape[:axis], size, *shape[axis:]]]


def _flatten(call: Call) -> Sequence[Shape] | None:
    shape = call.shape()
    if shape is None:
        return None
    axis = call.attribute("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    return [[ex.product(shape[:axis]), ex.product(shape[axis:])]]


def _window(call: Call) -> Sequence[Shape] | None:
    """Convolutions and pooling."""
    shape = call.shape()
    if shape is None:
        return None
    weights = call.shape(1) if call.node.op_type == "Conv" else None
    rank = len(shape) - 2
    kernel = call.attribute("kernel_shape") or (list(weights[2:]) if weights is not None else None)
    if kernel is None or len(kernel) != rank:
        return None
    channels: Size = shape[1] if call.node.op_type != "Conv" else weights[0] if weights is not None else None
    strides = call.attribute("strides") or [1] * rank
    dilations = call.attribute("dilations") or [1] * rank
    pads = call.attribute("pads") or [0] * 2 * rank
    auto = call.attribute("auto_pad", b"NOTSET")
    result: list[Size] = [shape[0], channels]
    for at, size in enumerate(shape[2:]):
        reach = ex.add(ex.mul(dilations[at], ex.sub(kernel[at], 1)), 1)
        if auto in (b"SAME_UPPER", b"SAME_LOWER"):
            result.append(ex.divide(size, strides[at], "ceildiv"))
            continue
        padding = 0 if auto == b"VALID" else pads[at] + pads[at + rank]
        room = ex.sub(ex.add(size, padding), reach)
        if not call.attribute("ceil_mode", 0):
            steps = ex.divide(room, strides[at], "floordiv")
        else:
            steps = ex.divide(room, strides[at], "ceildiv")
            behind = 0 if auto == b"VALID" else pads[at + rank]
            if strides[at] > 1 and not _ends_inside(behind, reach, strides[at]):
                # The last window must begin inside the image, which the formula alone does not say.
                if not (isinstance(steps, int) and isinstance(size, int)):
                    result.append(None)
                    continue
                steps = min(steps, -(-(size + pads[at]) // strides[at]) - 1)
        result.append(None if steps is None else ex.add(steps, 1))
    one: Shape = result
    return [one] * len(call.node.output)


def _ends_inside(behind: int, reach: Size, stride: int) -> bool:
    """Whether no window can begin in the padding behind an image."""
    return isinstance(reach, int) and behind <= reach - stride


def _conv_transpose(call: Call) -> Sequence[Shape] | None:
    shape, weights = call.shape(), call.shape(1)
    auto = call.attribute("auto_pad", b"NOTSET")
    if shape is None or weights is None or call.attribute("output_shape") or auto not in (b"NOTSET", b"VALID"):
        return None
    rank = len(shape) - 2
    strides, dilations = call.attribute("strides") or [1] * rank, call.attribute("dilations") or [1] * rank
    pads = (call.attribute("pads") if auto == b"NOTSET" else None) or [0] * 2 * rank
    extra = call.attribute("output_padding") or [0] * rank
    result: list[Size] = [shape[0], ex.mul(weights[1], call.attribute("group", 1))]
    for at, size in enumerate(shape[2:]):
        reach = ex.add(ex.mul(dilations[at], ex.sub(weights[at + 2], 1)), 1)
        grown = ex.add(ex.mul(ex.sub(size, 1), strides[at]), reach)
        result.append(ex.add(grown, extra[at] - pads[at] - pads[at + rank]))
    return [result]


def _depth_to_space(call: Call) -> Sequence[Shape] | None:
    shape, block = call.shape(), call.attribute("blocksize", 1)
    if shape is None:
        return None
    n, c, h, w = shape
    if call.node.op_type == "DepthToSpace":
        return [[n, ex.divide(c, block * block), ex.mul(h, block), ex.mul(w, block)]]
    return [[n, ex.mul(c, block * block), ex.divide(h, block), ex.divide(w, block)]]


def _einsum(call: Call) -> Sequence[Shape] | None:
    equation = call.attribute("equation", b"").decode().replace(" ", "")
    shapes = [call.shape(index) for index in range(len(call.inputs))]
    if "..." in equation or "->" not in equation or any(shape is None for shape in shapes):
        return None
    terms, result = equation.split("->")
    sizes: dict[str, Size] = {}
    for term, shape in zip(terms.split(","), shapes, strict=True):
        for letter, size in zip(term, shape or (), strict=True):
            sizes[letter] = broadcast(sizes[letter], size) if letter in sizes else size
    return [[sizes[letter] for letter in result]]


def _squeeze(call: Call) -> Sequence[Shape] | None:
    """Without axes all dimensions of one go. An open size is taken to be larger, which is checked when it runs."""
    shape = call.shape()
    if shape is None or call.has(1) or call.attribute("axes") is not None:
        return None
    return [[size for size in shape if size != 1]]


def _non_zero(call: Call) -> Sequence[Shape] | None:
    shape = call.shape()
    return None if shape is None else [[len(shape), None]]


_RULES: dict[str, Callable[[Call], Sequence[Shape] | None]] = {
    "AveragePool": _window,
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "Conv": _window,
    "ConvTranspose": _conv_transpose,
    "DepthToSpace": _depth_to_space,
    "Einsum": _einsum,
    "Expand": _expand,
    "Flatten": _flatten,
    "LpPool": _window,
    "MaxPool": _window,
    "NonZero": _non_zero,
    "OneHot": _one_hot,
    "Pad": _pad,
    "Range": _range,
    "Reshape": _reshape,
    "Resize": _resize,
    "Slice": _slice,
    "SpaceToDepth": _depth_to_space,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "TopK": _top_k,
    "Upsample": _resize,
}
