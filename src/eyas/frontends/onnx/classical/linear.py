"""Rules for LinearRegressor and LinearClassifier: one product."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from eyas.frontends.onnx.classical.scores import both, label_of, named, transform
from eyas.frontends.onnx.rewrite.rules import Builder, attribute

_FLOAT = np.dtype(np.float32)


def rows_of(name: str, b: Builder) -> str | None:
    """The features as FLOAT, one row for each example; None while their type is unknown."""
    if not b.type_of(name) or b.rank_of(name) is None:
        return None
    value = name if b.type_of(name) == TensorProto.FLOAT else b.cast(name, TensorProto.FLOAT)
    return b.reshape(value, [1, -1]) if b.rank_of(name) == 1 else value


def linear_regressor(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    x = rows_of(node.input[0], b)
    if x is None:
        return None
    targets = attribute(node, "targets", 1)
    scores = _product(x, attribute(node, "coefficients", []), targets, b)
    if intercepts := attribute(node, "intercepts", []):
        scores = b.add("Add", scores, b.constant(intercepts, _FLOAT))
    how = attribute(node, "post_transform", "NONE")
    # One target is a number, not the chances of a class: other runtimes leave it as it is.
    return [transform(scores, how, _FLOAT, b) if targets > 1 or how == "PROBIT" else scores]


def linear_classifier(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    x = rows_of(node.input[0], b)
    if x is None:
        return None
    intercepts = list(attribute(node, "intercepts", []))
    labels = list(attribute(node, "classlabels_ints", [])) or list(attribute(node, "classlabels_strings", []))
    coefficients = attribute(node, "coefficients", [])
    count = len(intercepts) or len(labels)
    scores = _product(x, coefficients, count, b)
    if intercepts:
        scores = b.add("Add", scores, b.constant(intercepts, _FLOAT))
    how = attribute(node, "post_transform", "NONE")
    if count > 1:
        place = b.add("ArgMax", scores, axis=1, keepdims=0)
        return named(node, [label_of(place, labels, b), transform(scores, how, _FLOAT, b)])
    positive = b.reshape(b.add("Greater", scores, b.constant(0, _FLOAT)), [-1])
    label = label_of(positive, labels if len(labels) == 2 else [], b)
    made = both(scores, how, True, _FLOAT, b) if len(labels) == 2 else transform(scores, how, _FLOAT, b)
    return named(node, [label, made])


def _product(x: str, coefficients: list[float], count: int, b: Builder) -> str:
    return b.add("MatMul", x, b.constant(np.array(coefficients, _FLOAT).reshape(count, -1).T))
