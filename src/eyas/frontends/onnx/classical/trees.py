"""Rules for TreeEnsembleRegressor, TreeEnsembleClassifier and TreeEnsemble."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from eyas.frontends.onnx.classical.ensemble import Forest, Leaf, Test, make_test, make_walks
from eyas.frontends.onnx.classical.scores import classify, named, transform
from eyas.frontends.onnx.rewrite.rules import Builder
from eyas.frontends.onnx.types import DOMAIN

_MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER")
_COMBINE = {"SUM": "sum", "AVERAGE": "sum", "MIN": "min", "MAX": "max"}
_NEUTRAL = {"sum": 0.0, "min": np.inf, "max": -np.inf}


def regressor(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    x = _floats(node.input[0], b)
    if x is None:
        return None
    value, dtype = x
    given = _attributes(node, b)
    forest = _read_old_forest(given, "target", int(given.get("n_targets", 1)), dtype)
    scores = _score(value, forest, given.get("aggregate_function", b"SUM").decode(), b)
    base = _numbers(given, "base_values", dtype)
    if base.size:
        scores = b.add("Add", scores, b.constant(base))
    post = given.get("post_transform", b"NONE").decode()
    # One target is a number, not the chances of a class: other runtimes leave it as it is.
    if forest.targets > 1 or post == "PROBIT":
        scores = transform(scores, post, dtype, b)
    return [scores if dtype == np.float32 else b.cast(scores, TensorProto.FLOAT)]


def classifier(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    x = _floats(node.input[0], b)
    if x is None:
        return None
    value, dtype = x
    given = _attributes(node, b)
    labels = list(given.get("classlabels_int64s", [])) or list(given.get("classlabels_strings", []))
    ids, weights = given.get("class_ids", []), _numbers(given, "class_weights", dtype)
    forest = _read_old_forest(given, "class", max(len(labels), 1), dtype)
    scored = sorted(set(ids))
    only_one = len(labels) == 2 and len(scored) == 1
    scores = _walk(value, _only(forest, scored), "SUM", b) if only_one else _score(value, forest, "SUM", b)
    post, base = given.get("post_transform", b"NONE").decode(), _numbers(given, "base_values", dtype)
    all_positive = bool((weights >= 0).all())
    label, scores = classify(scores, labels, scored, all_positive, base, post, dtype, b)
    return named(node, [label, scores if dtype == np.float32 else b.cast(scores, TensorProto.FLOAT)])


def ensemble(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    x = _floats(node.input[0], b)
    if x is None:
        return None
    value, dtype = x
    given = _attributes(node, b)
    forest = _read_forest(given, dtype)
    how = ("AVERAGE", "SUM", "MIN", "MAX")[given.get("aggregate_function", 1)]
    scores = _score(value, forest, how, b)
    post = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")[given.get("post_transform", 0)]
    scores = transform(scores, post, dtype, b)
    wanted = b.type_of(node.input[0])
    return [scores if wanted in (TensorProto.FLOAT, TensorProto.DOUBLE) else b.cast(scores, wanted)]


def _floats(name: str, b: Builder) -> tuple[str, np.dtype] | None:
    """The features as FLOAT or DOUBLE, one row for each example."""
    kind, rank = b.type_of(name), b.rank_of(name)
    if not kind or rank is None:
        return None
    value = name if kind in (TensorProto.FLOAT, TensorProto.DOUBLE) else b.cast(name, TensorProto.FLOAT)
    if rank == 1:
        value = b.reshape(value, [1, -1])
    return value, np.dtype(np.float64 if kind == TensorProto.DOUBLE else np.float32)


def _attributes(node: onnx.NodeProto, b: Builder) -> dict[str, Any]:
    """Attributes by name, tensors as arrays."""
    given = {found.name: helper.get_attribute_value(found) for found in node.attribute}
    return {name: b.read(value) if isinstance(value, TensorProto) else value for name, value in given.items()}


def _numbers(given: dict[str, Any], name: str, dtype: np.dtype) -> np.ndarray:
    """Numbers of an attribute that is a list, or a tensor under this or another name."""
    found = given.get(f"{name}_as_tensor", given.get(name, []))
    found = np.asarray(found, np.float32) if isinstance(found, list) else found
    return found.astype(dtype).reshape(-1)


def _read_old_forest(given: dict[str, Any], kind: str, targets: int, dtype: np.dtype) -> Forest:
    """Nodes by tree and number; leaves are nodes."""
    keys = list(zip(given["nodes_treeids"], given["nodes_nodeids"], strict=True))
    places = {key: place for place, key in enumerate(keys)}
    weights: dict[int, list[tuple[int, float]]] = {}
    named = (given.get(f"{kind}_{part}", []) for part in ("treeids", "nodeids", "ids"))
    for tree, number, target, weight in zip(*named, _numbers(given, f"{kind}_weights", dtype).tolist(), strict=True):
        weights.setdefault(places[tree, number], []).append((target, weight))
    limits = _numbers(given, "nodes_values", dtype)
    missing = given.get("nodes_missing_value_tracks_true") or [0] * len(keys)
    nodes: list[Test | Leaf] = []
    children: set[int] = set()
    for place, (tree, _) in enumerate(keys):
        mode = given["nodes_modes"][place].decode().removeprefix("BRANCH_")
        if mode == "LEAF":
            nodes.append(Leaf(tuple(weights.get(place, ()))))
            continue
        true, false = (places[tree, given[f"nodes_{way}nodeids"][place]] for way in ("true", "false"))
        children.update((true, false))
        column, is_true = given["nodes_featureids"][place], bool(missing[place])
        nodes.append(make_test(mode, column, limits[place], is_true, true, false))
    roots = [place for place in range(len(keys)) if place not in children]
    return Forest(nodes, roots, targets, dtype)


def _read_forest(given: dict[str, Any], dtype: np.dtype) -> Forest:
    """Nodes and leaves by number; a node says of each child which of both it is."""
    limits = _numbers(given, "nodes_splits", dtype)
    modes = _numbers(given, "nodes_modes", np.dtype(np.int64))
    missing = given.get("nodes_missing_value_tracks_true") or [0] * len(limits)
    members = _numbers(given, "membership_values", dtype)
    ends = np.flatnonzero(np.isnan(members))
    sets = iter([list(part[~np.isnan(part)]) for part in np.split(members, ends)])
    ids, weights = given["leaf_targetids"], _numbers(given, "leaf_weights", dtype).tolist()
    leaves: list[Test | Leaf] = [Leaf(((target, weight),)) for target, weight in zip(ids, weights, strict=True)]
    count = len(limits)
    # Tests, then leaves, then tests that membership in a set needs beyond its first.
    nodes: list[Test | Leaf] = [*[Leaf(())] * count, *leaves]
    for place in range(count):
        true, false = (
            given[f"nodes_{way}nodeids"][place] + (count if given[f"nodes_{way}leafs"][place] else 0)
            for way in ("true", "false")
        )
        mode, column = _MODES[modes[place]], given["nodes_featureids"][place]
        limit, is_true = limits[place], bool(missing[place])
        if mode != "MEMBER":
            nodes[place] = make_test(mode, column, limit, is_true, true, false)
            continue
        after = false
        found = next(sets)
        for member in found[1:]:
            nodes.append(make_test("EQ", column, member, is_true, true, after))
            after = len(nodes) - 1
        first = found[0] if found else dtype.type(np.nan)
        nodes[place] = make_test("EQ", column, first, is_true, true, after)
    return Forest(nodes, list(given["tree_roots"]), int(given.get("n_targets", 1)), dtype)


def _score(x: str, forest: Forest, how: str, b: Builder) -> str:
    """(rows, targets): what the leaves that each row reaches are worth together; 0 for targets that no leaf names."""
    named = sorted({target for node in forest.nodes if isinstance(node, Leaf) for target, _ in node.weights})
    if len(named) == forest.targets:
        return _walk(x, forest, how, b)
    return _spread(_walk(x, _only(forest, named or [0]), how, b), named, forest, b)


def _walk(x: str, forest: Forest, how: str, b: Builder) -> str:
    """The same where a leaf names each target."""
    combine = _COMBINE[how]
    walks = make_walks(replace(forest, width=(b.dims_of(x) or [None])[-1]), _NEUTRAL[combine])
    rows = (b.dims_of(x) or [None])[0]
    if walks.twice:
        lowest = b.constant(-np.inf, forest.dtype)
        x = b.add("Concat", x, b.add("Where", b.add("IsNaN", x), lowest, x), axis=1)
    options = {name: int(getattr(walks, name)) for name in ("interval", "missing", "wide", "columns")}
    roots = [b.constant(table) for table in walks.roots]
    operands = (b.constant(walks.table), b.constant(walks.values), *roots)
    total = b.add("EyasTrees", x, *operands, domain=DOMAIN, combine=combine, depths=list(walks.depths), **options)
    shape = [rows, len(walks.roots[0]), walks.values.shape[1]]
    b.declare_type(total, helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(forest.dtype), shape))
    if walks.parts > 1:
        total = b.reshape(total, [-1, shape[1] // walks.parts, walks.parts, shape[2]])
        reduce = {"sum": "ReduceSum", "min": "ReduceMin", "max": "ReduceMax"}[combine]
        total = b.add(reduce, total, b.constant([2], np.int64), keepdims=0)
    total = b.reshape(total, [-1, forest.targets])
    if how == "AVERAGE":
        total = b.add("Div", total, b.constant(len(forest.roots), forest.dtype))
    return total


def _only(forest: Forest, named: list[int]) -> Forest:
    """The forest with these targets alone, which its leaves name."""
    numbers = {target: number for number, target in enumerate(named)}
    nodes = [
        Leaf(tuple((numbers[target], weight) for target, weight in node.weights)) if isinstance(node, Leaf) else node
        for node in forest.nodes
    ]
    return replace(forest, nodes=nodes, targets=len(named))


def _spread(scores: str, named: list[int], forest: Forest, b: Builder) -> str:
    """Columns of all targets from those of the named ones."""
    places = [named.index(target) if target in named else 0 for target in range(forest.targets)]
    known = b.constant(np.array([[target in named for target in range(forest.targets)]]))
    columns = b.add("Gather", scores, b.constant(places, np.int64), axis=1)
    return b.add("Where", known, columns, b.constant(0, forest.dtype))
