"""Operators of graph models that detectors and segmenters have, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")

from tests.unit.frontends.tfjs.test_tfjs_control import compiled, node, place, text  # noqa: E402

RANDOM = np.random.default_rng(0)
INT = {"type": "DT_INT32"}
HALF = np.array(0.5, np.float32)


def suppressed(boxes, scores, most):
    chosen = []
    for one in np.argsort(-scores, kind="stable"):
        areas = [np.prod(boxes[other][2:] - boxes[other][:2]) for other in (one, *chosen)]
        overlaps = []
        for area, other in zip(areas[1:], chosen, strict=True):
            low, high = np.maximum(boxes[one][:2], boxes[other][:2]), np.minimum(boxes[one][2:], boxes[other][2:])
            inner = np.prod(np.maximum(high - low, 0))
            overlaps.append(inner / (area + areas[0] - inner))
        if scores[one] > 0.5 and all(overlap < 0.5 for overlap in overlaps) and len(chosen) < most:
            chosen.append(int(one))
    return chosen


def test_boxes_that_do_not_overlap(tmp_path):
    """Padded with zeros up to the largest number, or to that of the boxes where it is smaller."""
    weights = {"most": np.array(10, np.int32), "overlap": HALF, "least": HALF}
    given = ("boxes", "scores", "most", "overlap", "least")
    nodes = [
        place("boxes", [-1, 4]),
        place("scores", [-1]),
        node("NonMaxSuppressionV3", "plain", *given),
        node("NonMaxSuppressionV4", "padded", *given, pad_to_max_output_size={"b": True}),
    ]
    module = compiled(tmp_path, nodes, ["plain", "padded", "padded:1"], weights=weights)
    for count in (60, 7):
        corner = RANDOM.random((count, 2))
        boxes = np.concatenate([corner, corner + RANDOM.random((count, 2))], 1).astype(np.float32)
        scores = RANDOM.random(count).astype(np.float32)
        plain, padded, number = module(boxes, scores)
        expected = suppressed(boxes, scores, 10)
        assert plain.tolist() == expected and number == len(expected)
        assert padded.tolist() == expected + [0] * (min(10, count) - len(expected))


def test_parts_of_an_image(tmp_path):
    weights = {"size": np.array([3, 4], np.int32)}
    nodes = [
        place("x", [-1, 5, 7, 2]),
        place("boxes", [-1, 4]),
        place("owners", [-1], INT),
        node("CropAndResize", "y", "x", "boxes", "owners", "size", method=text("bilinear")),
    ]
    module = compiled(tmp_path, nodes, ["y"], weights=weights)
    x = RANDOM.random((2, 5, 7, 2)).astype(np.float32)
    boxes = np.array([[0, 0, 0.5, 0.5], [0.5, 0.5, 0, 2]], np.float32)
    (whole, outside) = module(x, boxes, np.array([1, 0], np.int32))
    np.testing.assert_allclose(whole, x[1, [0, 1, 2]][:, [0, 1, 2, 3]], atol=1e-6)
    np.testing.assert_allclose(outside[:, 0], x[0, [2, 1, 0], 3], atol=1e-6)
    assert not outside[:, 2:].any()


def test_a_size_that_is_computed(tmp_path):
    weights = {"first": np.array([1], np.int32), "last": np.array([3], np.int32), "two": np.array([2, 2], np.int32)}
    nodes = [
        place("x", [1, -1, -1, 2]),
        node("Shape", "shape", "x", out_type=INT),
        node("StridedSlice", "sides", "shape", "first", "last", "first"),
        node("Mul", "size", "sides", "two"),
        node("ResizeNearestNeighbor", "y", "x", "size"),
    ]
    module = compiled(tmp_path, nodes, ["y"], weights=weights)
    for size in ((3, 4), (5, 2)):
        x = RANDOM.random((1, *size, 2)).astype(np.float32)
        np.testing.assert_array_equal(module(x), x.repeat(2, 1).repeat(2, 2))


def test_dilations_that_are_blocks(tmp_path):
    """Of an image of any size: a kernel with one element moves it by two pixels."""
    kernel = np.zeros((3, 1, 2, 1), np.float32)
    kernel[2] = 1
    weights = {
        "kernel": kernel,
        "block": np.array([2, 2], np.int32),
        "pads": np.array([[2, 3], [0, 1]], np.int32),
        "crops": np.array([[0, 1], [0, 1]], np.int32),
    }
    ones = {"list": {"i": ["1"] * 4}}
    nodes = [
        place("x", [-1, -1, -1, 2]),
        node("SpaceToBatchND", "blocks", "x", "block", "pads"),
        node("DepthwiseConv2dNative", "moved", "blocks", "kernel", strides=ones, padding=text("VALID")),
        node("BatchToSpaceND", "y", "moved", "block", "crops"),
    ]
    module = compiled(tmp_path, nodes, ["y"], weights=weights)
    for shape in ((1, 5, 3, 2), (2, 7, 9, 2)):
        x = RANDOM.random(shape).astype(np.float32)
        expected = np.concatenate([x[:, 2:], np.zeros_like(x[:, :2])], 1)
        np.testing.assert_array_equal(module(x), expected)
