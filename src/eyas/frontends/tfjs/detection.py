"""Rules for what detectors end with: boxes that do not overlap, and parts of an image that boxes cut out."""

from __future__ import annotations

from typing import Any

import numpy as np

from eyas.frontends.tensorflow import moves
from eyas.frontends.tensorflow.graph import dims_of
from eyas.frontends.tfjs.node import Node, Rule


def _chosen(node: Node) -> Any:
    """The places of the boxes that stay, best first, INT64."""
    g, (boxes, scores, most) = node.g, node.inputs[:3]
    overlap = node.inputs[3] if len(node.inputs) > 3 else np.array(0.5, np.float32)
    if isinstance(overlap, np.ndarray):
        # TensorFlow.js drops a box that overlaps by just as much, ONNX one that does by more.
        overlap = np.asarray(np.maximum(np.nextafter(overlap.astype(np.float32), -1, dtype=np.float32), 0))
    least = node.inputs[4] if len(node.inputs) > 4 else None
    if isinstance(least, np.ndarray) and np.isneginf(least).all():
        least = None
    given = [moves.expand_dims(g, boxes, 0), g.reshape(scores, [1, 1, -1]), g.reshape(g.cast(most, np.int64), [1])]
    given += [g.reshape(one, [1]) if one is not None else None for one in (overlap, least)]
    found = g.add("NonMaxSuppression", *given)
    return g.add("Gather", found, np.array(2, np.int64), axis=1)


def suppress(node: Node) -> Any:
    return node.g.cast(_chosen(node), np.int32)


def suppress_padded(node: Node) -> list[Any]:
    """With zeros up to the largest number, if that is asked for, and how many there are."""
    g, chosen = node.g, _chosen(node)
    count = g.add("Size", chosen)
    if node.get("pad_to_max_output_size"):
        boxes = g.cast(g.reshape(g.add("Size", node.inputs[1]), [1]), np.int64)
        most = g.add("Min", g.cast(g.reshape(node.inputs[2], [1]), np.int64), boxes)
        missing = g.add("Sub", most, g.reshape(count, [1]))
        chosen = g.add("Pad", chosen, g.add("Concat", np.array([0], np.int64), missing, axis=0))
    return [g.cast(chosen, np.int32), g.cast(count, np.int32)]


def suppress_softly(node: Node) -> list[Any]:
    """With the scores of those that stay. Scores that fall with each overlap are refused."""
    g, sigma = node.g, node.inputs[5]
    if not isinstance(sigma, np.ndarray) or sigma.any():
        raise node.refuse("it lowers scores by their overlap (soft_nms_sigma)")
    chosen = _chosen(node)
    count = g.cast(g.add("Size", chosen), np.int32)
    return [g.cast(chosen, np.int32), g.add("Gather", node.inputs[1], chosen, axis=0), count]


def crop_and_resize(node: Node) -> Any:
    """Boxes [y1, x1, y2, x2], in parts of the image's reach, resized to one size."""
    g, (image, boxes, owners) = node.g, node.inputs[:3]
    wanted = node.numbers(3, "crop_size")
    nearest = node.get("method") == "nearest"
    inside, places = list[Any](), list[Any]()
    for axis, count in enumerate(wanted):
        last = np.array(g.size(image, axis + 1) - 1, np.float32)
        first, end = (g.add("Gather", boxes, np.array([axis + shift]), axis=1) for shift in (0, 2))
        if count > 1:
            step = g.add("Div", g.add("Mul", g.add("Sub", end, first), last), np.array(count - 1, np.float32))
            moved = g.add("Mul", step, np.arange(count, dtype=np.float32)[None])
            place = g.add("Add", g.add("Mul", first, last), moved)
        else:
            place = g.add("Mul", g.add("Mul", g.add("Add", first, end), np.array(0.5, np.float32)), last)
        low = g.add("GreaterOrEqual", place, np.array(0, np.float32))
        inside.append(g.add("And", low, g.add("LessOrEqual", place, last)))
        places.append(g.add("Clip", place, np.array(0, np.float32), last))
    (y, x), (rows, columns) = places, wanted
    height, width = g.size(image, 1), g.size(image, 2)
    pixels = g.reshape(image, [-1, g.size(image, 3)])

    def sample(y: Any, x: Any) -> Any:
        """Pixels at whole places."""
        index = g.add("Mul", g.cast(g.reshape(owners, [-1, 1, 1]), np.int64), np.array(height * width))
        down = g.add("Mul", g.cast(g.reshape(y, [-1, rows, 1]), np.int64), np.array(width))
        index = g.add("Add", g.add("Add", index, down), g.cast(g.reshape(x, [-1, 1, columns]), np.int64))
        return g.cast(g.add("Gather", pixels, index, axis=0), np.float32)

    if nearest:
        found = sample(*(g.add("Floor", g.add("Add", one, np.array(0.5, np.float32))) for one in (y, x)))
    else:
        (top, left), (bottom, right) = ([g.add(op, one) for one in (y, x)] for op in ("Floor", "Ceil"))
        down = g.reshape(g.add("Sub", y, top), [-1, rows, 1, 1])
        along = g.reshape(g.add("Sub", x, left), [-1, 1, columns, 1])
        upper = _between(g, sample(top, left), sample(top, right), along)
        lower = _between(g, sample(bottom, left), sample(bottom, right), along)
        found = _between(g, upper, lower, down)
    both = g.add("And", g.reshape(inside[0], [-1, rows, 1, 1]), g.reshape(inside[1], [-1, 1, columns, 1]))
    return g.add("Where", both, found, np.array(node.get("extrapolation_value") or 0, np.float32))


def _between(g: Any, a: Any, b: Any, part: Any) -> Any:
    return g.add("Add", a, g.add("Mul", g.add("Sub", b, a), part))


def band_part(node: Node) -> Any:
    """The diagonals around the middle one; a negative number is all on that side."""
    g, x = node.g, node.inputs[0]
    below, above = (node.numbers(index, "band")[0] for index in (1, 2))
    rank = len(dims_of(x))
    away = np.arange(g.size(x, rank - 1))[None] - np.arange(g.size(x, rank - 2))[:, None]
    keep = ((below < 0) | (-away <= below)) & ((above < 0) | (away <= above))
    return g.add("Where", keep, x, np.zeros((), x.dtype))


RULES: dict[str, Rule] = {
    "CropAndResize": crop_and_resize,
    "MatrixBandPart": band_part,
    "NonMaxSuppressionV2": suppress,
    "NonMaxSuppressionV3": suppress,
    "NonMaxSuppressionV4": suppress_padded,
    "NonMaxSuppressionV5": suppress_softly,
}
