"""Ensembles of decision trees as tables of numbers that a branch-free walk can follow (see `convert-trees`).

Every test becomes "the value lies in an interval", with the child for that second: other comparisons are the same with
children swapped or with the next smaller number as the limit. So nodes differ in data only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from eyas.errors import FrontendError
from eyas.passes.input.convert_trees import COLUMN_BITS, FARTHEST

# What another loop over trees costs, in steps of a walk; trees of similar depth are walked together.
_LOOP_STEPS = 256
# Ensembles of more steps for a row are cut into parts that several workers walk, so that one row is fast too.
_PART_STEPS, _MOST_PARTS = 1 << 15, 16
_MOST_COLUMNS = 1 << 31  # that a node's link can name


@dataclass(frozen=True)
class Test:
    """An inner node: rows whose `column` is in [low, high] go to `second`, others, and NaN unless it is said, to
    `first`. Children are numbers of nodes."""

    column: int
    low: float
    high: float
    nan_is_inside: bool
    first: int
    second: int


@dataclass(frozen=True)
class Leaf:
    """What a leaf adds to which targets."""

    weights: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Forest:
    """Trees as nodes and numbers of roots. `dtype` is what is compared; `width` how many columns a row has."""

    nodes: Sequence[Test | Leaf]
    roots: Sequence[int]
    targets: int
    dtype: np.dtype
    width: int | None = None


@dataclass(frozen=True)
class Walks:
    """The operands and attributes of `eyas.trees`: nodes, what they are worth, and roots of trees that are walked
    together, so many steps each. Each target's trees are cut into `parts`."""

    table: np.ndarray
    values: np.ndarray
    roots: Sequence[np.ndarray]
    depths: Sequence[int]
    interval: bool
    missing: bool
    wide: bool
    parts: int
    columns: int
    """How many columns rows have at least: all that nodes look at."""
    twice: bool
    """Whether rows have all columns again with -inf for NaN, which goes where small numbers go. Nodes that send NaN
    there look at those: that costs nothing in each step."""


def make_test(mode: str, column: int, limit: np.floating, nan_is_true: bool, true: int, false: int) -> Test:
    """A comparison as an interval; `mode` as in ONNX, without BRANCH_."""
    lowest, below = -np.inf, float(np.nextafter(limit, limit.dtype.type(-np.inf)))
    never = bool(np.isnan(limit))
    if mode in ("LT", "GTE") and limit == -np.inf:
        below, lowest = np.nan, np.nan
    if mode == "LEQ" or (mode == "LT") or never and mode != "NEQ":
        return Test(column, lowest, below if mode == "LT" else float(limit), nan_is_true, false, true)
    if mode in ("GT", "GTE"):
        return Test(column, lowest, float(limit) if mode == "GT" else below, not nan_is_true, true, false)
    if mode == "EQ":
        return Test(column, float(limit), float(limit), nan_is_true, false, true)
    assert mode == "NEQ", mode
    return Test(column, float(limit), float(limit), False, true, false)


def make_walks(forest: Forest, empty: float) -> Walks:
    """Walks that together visit all trees. `empty` is what leaves are worth to targets that they do not name."""
    laid = [_lay_out(forest.nodes, root) for root in forest.roots]
    depths = [depth for _, depth in laid]
    trees = [tree for tree, _ in laid]
    nodes = [forest.nodes[number] for tree in trees for number, _ in tree]
    starts = np.cumsum([0, *(len(tree) for tree in trees)])
    targets = [_targets(nodes[start : start + len(tree)]) for start, tree in zip(starts, trees, strict=False)]
    apart = all(len(found) <= 1 for found in targets)
    classes = _by_depth(depths)
    steps = sum(max(depths[tree] for tree in chosen) * len(chosen) for chosen in classes)
    parts = int(np.clip(steps // _PART_STEPS, 1, _MOST_PARTS))
    roots = []
    for chosen in classes:
        groups: list[list[int]] = [[] for _ in range(forest.targets if apart else 1)]
        for tree in chosen:
            for target in targets[tree] if apart else [0]:
                groups[target].append(int(starts[tree]))
        roots.append(_table_of(groups, parts, len(nodes)))
    distances = np.array([distance for tree in trees for _, distance in tree] + [0], np.int64)
    columns = 1 if apart else forest.targets
    inner = [(place, node) for place, node in enumerate(nodes) if isinstance(node, Test)]
    if wrong := [node.column for _, node in inner if not 0 <= node.column < _MOST_COLUMNS]:
        raise FrontendError(f"a node of a decision tree looks at column {wrong[0]}, which no table has")
    interval = any(node.low != -np.inf for _, node in inner)
    missing = any(node.nan_is_inside for _, node in inner)
    twice = missing and not interval and forest.width is not None
    if twice:
        assert forest.width is not None
        inner = [
            (place, replace(node, column=node.column + node.nan_is_inside * forest.width, nan_is_inside=False))
            for place, node in inner
        ]
    farthest = max((node.column for _, node in inner), default=0)
    wide = farthest >= 1 << COLUMN_BITS or distances.max() > FARTHEST
    table = _nodes(inner, distances, forest.dtype, interval, wide)
    values = _values(forest, nodes, columns, empty)
    deepest = [max(depths[tree] for tree in chosen) for chosen in classes]
    return Walks(table, values, roots, deepest, interval, missing and not twice, wide, parts, farthest + 1, twice)


def _table_of(groups: list[list[int]], parts: int, nothing: int) -> np.ndarray:
    """Roots of each group, or of each of its parts, in a row; filled up with a leaf that is worth nothing."""
    length = -(-max(len(group) for group in groups) // parts) * parts
    roots = np.full((len(groups), length), nothing, np.int32)
    for row, group in zip(roots, groups, strict=True):
        row[: len(group)] = group
    return roots.reshape(len(groups) * parts, length // parts)


def _lay_out(nodes: Sequence[Test | Leaf], root: int) -> tuple[list[tuple[int, int]], int]:
    """The nodes of a tree, children side by side and after their parent, each with the distance to its children (0 for
    a leaf); and the depth."""
    placed, depths = [root], [0]
    found: list[tuple[int, int]] = []
    for position, number in enumerate(placed):
        node = nodes[number]
        if isinstance(node, Leaf):
            found.append((number, 0))
            continue
        found.append((number, len(placed) - position))
        placed += (node.first, node.second)
        depths += (depths[position] + 1,) * 2
    return found, max(depths)


def _by_depth(depths: Sequence[int]) -> list[list[int]]:
    """Numbers of trees, in classes such that the steps of all walks are few: each takes as long as its deepest tree."""
    order = sorted(range(len(depths)), key=lambda tree: depths[tree])
    ends = [n for n in range(1, len(order) + 1) if n == len(order) or depths[order[n]] != depths[order[n - 1]]]
    # best[i]: the fewest steps for the trees before ends[i], and where the last class begins.
    best: list[tuple[int, int]] = []
    for index, end in enumerate(ends):
        deepest = max(depths[order[end - 1]], 1)
        starts = [(0, -1)] + [(best[before][0], before) for before in range(index)]
        costs = [
            (cost + _LOOP_STEPS + deepest * (end - (ends[before] if before >= 0 else 0)), before)
            for cost, before in starts
        ]
        best.append(min(costs))
    classes: list[list[int]] = []
    index = len(ends) - 1
    while index >= 0:
        before = best[index][1]
        classes.append(order[ends[before] if before >= 0 else 0 : ends[index]])
        index = before
    return classes[::-1]


def _nodes(
    inner: list[tuple[int, Test]], distances: np.ndarray, dtype: np.dtype, interval: bool, wide: bool
) -> np.ndarray:
    """Nodes in words of 32 bits. Nothing is in the interval of a leaf, which has a NaN for a limit."""
    count = len(distances)
    places = [place for place, _ in inner]
    low, high = (np.full(count, np.nan, dtype) for _ in range(2))
    low[places] = [node.low for _, node in inner]
    high[places] = [node.high for _, node in inner]
    column, nan_is_inside = np.zeros(count, np.int64), np.zeros(count, np.int64)
    column[places] = [node.column for _, node in inner]
    nan_is_inside[places] = [node.nan_is_inside for _, node in inner]
    words = [array.view(np.int32).reshape(count, -1) for array in ([low, high] if interval else [high])]
    if wide:
        links = [column | (nan_is_inside << 31), distances]
    else:
        links = [column | (nan_is_inside << COLUMN_BITS) | (distances << (COLUMN_BITS + 1))]
    words += [link.astype(np.uint32).view(np.int32)[:, None] for link in links]
    return np.concatenate(words, 1)


def _values(forest: Forest, nodes: list[Test | Leaf], columns: int, empty: float) -> np.ndarray:
    """What nodes are worth: one number where each tree has one target, else one for each target."""
    values = np.full((len(nodes) + 1, columns), empty, forest.dtype)
    seen: set[tuple[int, int]] = set()
    for place, node in enumerate(nodes):
        if isinstance(node, Leaf):
            for target, weight in node.weights:
                cell = (place, 0 if columns == 1 else target)
                # A leaf may name a target twice.
                values[cell] = values[cell] + weight if cell in seen else weight
                seen.add(cell)
    return values


def _targets(nodes: list[Test | Leaf]) -> set[int]:
    return {target for node in nodes if isinstance(node, Leaf) for target, _ in node.weights}
