"""From the scores of classical models to what they answer: transformed scores and class labels.

Where the standard is vague, with two classes that have one score between them, this is what ONNX Runtime does. Labels
that are text cannot be tensors here: their place in the list of labels, an INT64, stands for them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto

from eyas.frontends.onnx.rewrite.rules import Builder

# Scores nearer to zero than this count as none in SOFTMAX_ZERO.
_NOTHING = 1e-7


def transform(scores: str, how: str, dtype: np.dtype, b: Builder) -> str:
    """Applies a post_transform along the last axis."""
    if how == "SOFTMAX":
        return b.add("Softmax", scores, axis=-1)
    if how == "LOGISTIC":
        return b.add("Sigmoid", scores)
    if how == "SOFTMAX_ZERO":
        return _softmax_zero(scores, dtype, b)
    return _probit(scores, dtype, b) if how == "PROBIT" else scores


def classify(
    scores: str,
    labels: Sequence[int | bytes],
    scored: Sequence[int],
    all_positive: bool,
    base: np.ndarray,
    how: str,
    dtype: np.dtype,
    b: Builder,
) -> tuple[str, str]:
    """(label, transformed scores) of an ensemble: `scored` are the classes that it has scores for. Where that is one
    of two, `scores` are those of this class alone."""
    count = len(labels)
    if count != 2 or len(scored) != 1:
        if base.size:
            scores = b.add("Add", scores, b.constant(np.resize(np.append(base, np.zeros(count)), count), dtype))
        best = scores
        if 0 < len(scored) < count and not base.size:
            absent = np.array([[0.0 if target in scored else -np.inf for target in range(count)]], dtype)
            best = b.add("Add", scores, b.constant(absent))
        return label_of(b.add("ArgMax", best, axis=1, keepdims=0), labels, b), transform(scores, how, dtype, b)
    # Two classes of which one has a score.
    known, one = scored[0], scores
    if base.size > known:
        one = b.add("Add", one, b.constant(base[known], dtype))
    limit = b.constant(0.5 if all_positive else 0.0, dtype)
    label = label_of(b.reshape(b.add("Greater", one, limit), [-1]), labels, b)
    if known == 1 or base.size == 2:
        nothing = b.add("Mul", one, b.constant(0, dtype))
        pair = [one, nothing] if known == 0 else [nothing, one]
        return label, transform(b.add("Concat", *pair, axis=1), how, dtype, b)
    return label, both(one, how, all_positive, dtype, b)


def both(one: str, how: str, all_positive: bool, dtype: np.dtype, b: Builder) -> str:
    """Scores of two classes from that of the second one."""
    if how == "LOGISTIC":
        return b.add("Sigmoid", b.add("Concat", b.add("Neg", one), one, axis=1))
    if how == "PROBIT":
        return b.add("Concat", transform(one, how, dtype, b), b.add("Mul", one, b.constant(0, dtype)), axis=1)
    other = b.add("Sub", b.constant(1, dtype), one) if all_positive else b.add("Neg", one)
    return b.add("Concat", other, one, axis=1)


def label_of(place: str, labels: Sequence[int | bytes], b: Builder) -> str:
    """The label at a place of the list (or of False and True), the place itself where labels are text."""
    place = b.cast(place, TensorProto.INT64)
    if not labels or isinstance(labels[0], bytes) or list(labels) == list(range(len(labels))):
        return place
    return b.add("Gather", b.constant(np.array(labels, np.int64)), place, axis=0)


def column(scores: str, number: int, b: Builder) -> str:
    """One column of a matrix, which stays one."""
    return b.add("Gather", scores, b.constant([number], np.int64), axis=1)


def named(node: onnx.NodeProto, results: Sequence[str]) -> list[str]:
    """Those results that the node has names for."""
    return [result for result, name in zip(results, node.output, strict=False) if name]


def _softmax_zero(scores: str, dtype: np.dtype, b: Builder) -> str:
    axis = b.constant([-1], np.int64)
    largest = b.add("ReduceMax", scores, axis, keepdims=1)
    counts = b.add("Greater", b.add("Abs", scores), b.constant(_NOTHING, dtype))
    zero = b.constant(0, dtype)
    powers = b.add("Exp", b.add("Sub", scores, largest))
    total = b.add("ReduceSum", b.add("Where", counts, powers, zero), axis, keepdims=1)
    kept = b.add("Where", counts, powers, b.add("Mul", scores, b.add("Exp", b.add("Neg", largest))))
    return b.add("Div", kept, total)


def _probit(scores: str, dtype: np.dtype, b: Builder) -> str:
    """The inverse of the normal distribution, by Winitzki's formula: a = 0.147."""

    def number(value: float) -> str:
        return b.constant(value, dtype)

    x = b.add("Sub", b.add("Mul", scores, number(2)), number(1))
    log = b.add("Log", b.add("Mul", b.add("Sub", number(1), x), b.add("Add", number(1), x)))
    v = b.add("Add", b.add("Mul", log, number(0.5)), number(2 / (3.14159 * 0.147)))
    root = b.add("Sqrt", b.add("Sub", b.add("Mul", v, v), b.add("Mul", log, number(1 / 0.147))))
    size = b.add("Sqrt", b.add("Sub", root, v))
    sign = b.add("Where", b.add("Less", x, number(0)), number(-1), number(1))
    return b.add("Mul", b.add("Mul", sign, size), number(np.sqrt(2)))
