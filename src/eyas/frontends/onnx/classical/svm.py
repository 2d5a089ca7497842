"""Rules for SVMRegressor and SVMClassifier."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
from onnx import helper

from eyas.frontends.onnx.classical.linear import rows_of
from eyas.frontends.onnx.classical.scores import both, column, label_of, named, transform
from eyas.frontends.onnx.rewrite.rules import Builder, attribute

_FLOAT = np.dtype(np.float32)
# Of the iteration for the probabilities of several classes; it ends earlier when no row has an error.
_STEPS = 100


def svm_regressor(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    x = rows_of(node.input[0], b)
    if x is None:
        return None
    coefficients, count = _array(node, "coefficients"), attribute(node, "n_supports", 0)
    if count:
        kernels = _kernels(x, _array(node, "support_vectors").reshape(count, -1), node, b)
        scores = b.add("MatMul", kernels, b.constant(coefficients.reshape(-1, 1)))
    else:
        scores = _kernels(x, coefficients.reshape(1, -1), node, b, linear=True)
    scores = b.add("Add", scores, b.constant(_array(node, "rho")[:1]))
    if attribute(node, "one_class", 0):
        inside = b.add("Greater", scores, b.constant(0, _FLOAT))
        return [b.add("Where", inside, b.constant(1, _FLOAT), b.constant(-1, _FLOAT))]
    return [scores]


def svm_classifier(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    x = rows_of(node.input[0], b)
    if x is None:
        return None
    labels = list(attribute(node, "classlabels_ints", [])) or list(attribute(node, "classlabels_strings", []))
    coefficients, rho, how = (
        _array(node, "coefficients"),
        _array(node, "rho"),
        attribute(node, "post_transform", "NONE"),
    )
    vectors = list(attribute(node, "vectors_per_class", []))
    if not sum(vectors):
        scores = _kernels(x, coefficients.reshape(len(labels), -1), node, b, linear=True)
        scores = b.add("Add", scores, b.constant(rho[:1]))
        place = b.add("ArgMax", scores, axis=1, keepdims=0)
        return named(node, [label_of(place, labels, b), transform(scores, how, _FLOAT, b)])
    supports = _array(node, "support_vectors").reshape(sum(vectors), -1)
    kernels = _kernels(x, supports, node, b)
    matrix = _pair_weights(coefficients.reshape(len(labels) - 1, -1), vectors)
    scores = b.add("Add", b.add("MatMul", kernels, b.constant(matrix)), b.constant(rho[: matrix.shape[1]]))
    place = _most_votes(scores, len(labels), b)
    label = label_of(place, labels, b)
    if (a := _array(node, "prob_a")).size:
        chances = _pair_chances(scores, a, _array(node, "prob_b"), b)
        scores = _class_chances(chances, len(labels), b)
    elif len(labels) == 2:
        return named(node, [label, both(scores, how, how != "NONE", _FLOAT, b)])
    return named(node, [label, transform(scores, how, _FLOAT, b)])


def _array(node: onnx.NodeProto, name: str) -> np.ndarray:
    return np.array(attribute(node, name, []), _FLOAT)


def _kernels(x: str, vectors: np.ndarray, node: onnx.NodeProto, b: Builder, linear: bool = False) -> str:
    """The kernel of each row with each vector."""
    kind = attribute(node, "kernel_type", "LINEAR")
    gamma, shift, degree = (*attribute(node, "kernel_params", []), 0.0, 0.0, 0.0)[:3]
    if kind == "RBF" and not linear:
        # The differences themselves: of large equal norms the short form would leave little.
        apart = b.add("Sub", b.add("Unsqueeze", x, b.constant([1], np.int64)), b.constant(vectors[None]))
        squares = b.add("ReduceSum", b.add("Mul", apart, apart), b.constant([2], np.int64), keepdims=0)
        return b.add("Exp", b.add("Mul", squares, b.constant(-gamma, _FLOAT)))
    product = b.add("MatMul", x, b.constant(vectors.T))
    if kind == "LINEAR" or linear:
        return product
    inner = b.add("Add", b.add("Mul", product, b.constant(gamma, _FLOAT)), b.constant(shift, _FLOAT))
    return b.add("Tanh", inner) if kind == "SIGMOID" else b.add("Pow", inner, b.constant(degree, _FLOAT))


def _pairs(count: int) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(count), 2))


def _pair_weights(coefficients: np.ndarray, vectors: list[int]) -> np.ndarray:
    """For each pair of classes the weights of all support vectors: those of other classes are nothing."""
    starts = np.cumsum([0, *vectors])
    matrix = np.zeros((coefficients.shape[1], len(_pairs(len(vectors)))), _FLOAT)
    for pair, (i, j) in enumerate(_pairs(len(vectors))):
        first, second = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
        matrix[first, pair] = coefficients[j - 1, first]
        matrix[second, pair] = coefficients[i, second]
    return matrix


def _most_votes(scores: str, count: int, b: Builder) -> str:
    """The class that wins most of its pairs."""
    won = np.zeros((len(_pairs(count)), count), _FLOAT)
    lost = np.zeros_like(won)
    for pair, (i, j) in enumerate(_pairs(count)):
        won[pair, i] = lost[pair, j] = 1
    wins = b.cast(b.add("Greater", scores, b.constant(0, _FLOAT)), onnx.TensorProto.FLOAT)
    rest = b.add("Sub", b.constant(1, _FLOAT), wins)
    votes = b.add("Add", b.add("MatMul", wins, b.constant(won)), b.add("MatMul", rest, b.constant(lost)))
    return b.add("ArgMax", votes, axis=1, keepdims=0)


def _pair_chances(scores: str, a: np.ndarray, c: np.ndarray, b: Builder) -> str:
    """How likely the first class of each pair is (Platt's sigmoid)."""
    inner = b.add("Add", b.add("Mul", scores, b.constant(a)), b.constant(c))
    chance = b.add("Sigmoid", b.add("Neg", inner))
    low, high = b.constant(1e-7, _FLOAT), b.constant(1 - 1e-7, _FLOAT)
    return b.add("Max", b.add("Min", chance, high), low)


def _class_chances(chances: str, count: int, b: Builder) -> str:
    """How likely each class is, from pairs: the second method of Wu, Lin and Weng, "Probability estimates for
    multi-class classification by pairwise coupling" (2004), step by step for as long as a row has an error."""
    first, second = np.array(_pairs(count)).T
    place = np.zeros((count, count), np.int64)
    place[first, second] = place[second, first] = np.arange(len(first))
    # r[i, j]: how likely i is, of i and j.
    upper = b.constant(np.triu(np.ones((1, count, count), np.bool_), 1))
    spread = b.add("Gather", chances, b.constant(place), axis=1)
    one, zero = b.constant(1, _FLOAT), b.constant(0, _FLOAT)
    r = b.add("Where", upper, spread, b.add("Sub", one, spread))
    eye = b.constant(np.eye(count, dtype=np.bool_)[None])
    r = b.add("Where", eye, zero, r)
    turned = b.transpose(r, [0, 2, 1])
    squares = b.add("ReduceSum", b.add("Mul", r, r), b.constant([1], np.int64), keepdims=1)
    q = b.add("Where", eye, squares, b.add("Neg", b.add("Mul", r, turned)))
    start = b.add("Mul", column(chances, 0, b), zero)
    p = b.add("Add", b.add("Concat", *[start] * count, axis=1), b.constant(1 / count, _FLOAT))
    outer, prefix = b.nodes, b.prefix
    b.nodes, b.prefix = [], f"{prefix}_step"
    improved, wrong = _improve(f"{prefix}_p", q, count, b)
    body = helper.make_graph(
        b.nodes,
        f"{prefix}_body",
        [
            helper.make_tensor_value_info(f"{prefix}_number", onnx.TensorProto.INT64, []),
            helper.make_tensor_value_info(f"{prefix}_goes_on", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info(f"{prefix}_p", onnx.TensorProto.FLOAT, [None, count]),
        ],
        [
            helper.make_tensor_value_info(wrong, onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info(improved, onnx.TensorProto.FLOAT, [None, count]),
        ],
    )
    b.nodes, b.prefix = outer, prefix
    return b.add("Loop", b.constant(_STEPS, np.int64), b.constant(True), p, body=body)


def _improve(p: str, q: str, count: int, b: Builder) -> tuple[str, str]:
    """One step for the rows whose error is too large, and whether there were any."""
    axis, one, two = b.constant([1], np.int64), b.constant(1, _FLOAT), b.constant(2, _FLOAT)
    qp = b.add(
        "Squeeze", b.add("MatMul", q, b.add("Unsqueeze", p, b.constant([2], np.int64))), b.constant([2], np.int64)
    )
    pqp = b.add("ReduceSum", b.add("Mul", p, qp), axis, keepdims=1)
    error = b.add("ReduceMax", b.add("Abs", b.add("Sub", qp, pqp)), axis, keepdims=1)
    wrong = b.add("GreaterOrEqual", error, b.constant(0.005 / count, _FLOAT))
    old = p
    for i in range(count):
        row = b.add("Squeeze", b.add("Gather", q, b.constant([i], np.int64), axis=1), axis)
        own, here = column(row, i, b), column(qp, i, b)
        step = b.add("Div", b.add("Sub", pqp, here), own)
        rest = b.add("Add", step, one)
        unit = b.constant(np.eye(count, dtype=_FLOAT)[[i]])
        p = b.add("Div", b.add("Add", p, b.add("Mul", step, unit)), rest)
        gain = b.add("Mul", step, b.add("Add", b.add("Mul", step, own), b.add("Mul", two, here)))
        pqp = b.add("Div", b.add("Add", pqp, gain), b.add("Mul", rest, rest))
        qp = b.add("Div", b.add("Add", qp, b.add("Mul", step, row)), rest)
    any_wrong = b.add("ReduceMax", b.cast(wrong, onnx.TensorProto.INT32), b.constant([0, 1], np.int64), keepdims=0)
    return b.add("Where", wrong, p, old), b.cast(any_wrong, onnx.TensorProto.BOOL)
