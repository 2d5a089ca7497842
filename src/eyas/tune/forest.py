"""A random forest (Breiman 2001) for regression, on NumPy: a few thousand rows, some dozens of columns, in a second.

Columns are cut into bins once; a tree then grows a level at a time, with sums by node, column and bin instead of
sorting. The trees' disagreement says where the forest does not know.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_BINS = 32


@dataclass(frozen=True)
class Tree:
    """Nodes as columns; a leaf is its own child. `bins` are those that go left, up to and including."""

    feature: np.ndarray
    bins: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray

    def predict(self, binned: np.ndarray, depth: int) -> np.ndarray:
        at = np.zeros(len(binned), dtype=np.int64)
        rows = np.arange(len(binned))
        for _ in range(depth):
            goes_left = binned[rows, self.feature[at]] <= self.bins[at]
            at = np.where(goes_left, self.left[at], self.right[at])
        return self.value[at]


@dataclass(frozen=True)
class Forest:
    """What `grow` makes. `edges` has the upper ends of each column's bins but the last."""

    trees: tuple[Tree, ...]
    edges: tuple[np.ndarray, ...]
    depth: int

    def predict(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation over the trees."""
        each = self.each(rows)
        return each.mean(axis=0), each.std(axis=0)

    def each(self, rows: np.ndarray) -> np.ndarray:
        """What every tree says, one line each."""
        binned = _binned(rows, self.edges)
        return np.stack([tree.predict(binned, self.depth) for tree in self.trees])


def grow(
    rows: np.ndarray,
    values: np.ndarray,
    seed: int,
    weights: np.ndarray | None = None,
    trees: int = 48,
    depth: int = 12,
    least: int = 2,
    share: float = 0.5,
) -> Forest:
    """A forest for `values` of `rows`. Each tree sees as many rows as there are, drawn with replacement by `weights`,
    and each node a `share` of the columns; a leaf has at least `least` rows."""
    assert len(rows) == len(values) > 0 and rows.ndim == 2
    random = np.random.default_rng(seed)
    edges = tuple(_edges(column) for column in rows.T)
    binned = _binned(rows, edges)
    chance = None if weights is None else weights / weights.sum()
    grown = []
    for _ in range(trees):
        drawn = random.choice(len(rows), len(rows), p=chance)
        grown.append(_grow_tree(binned[drawn], values[drawn], random, depth, least, share))
    return Forest(tuple(grown), edges, depth)


def permutation_importance(
    forest: Forest, rows: np.ndarray, values: np.ndarray, groups: dict[str, list[int]], seed: int
) -> dict[str, float]:
    """How much worse the forest predicts when a group of columns is shuffled between rows: the error's growth as a part
    of the values' variance; greatest first."""
    random = np.random.default_rng(seed)
    spread = float(values.var()) or 1.0
    base = float(((forest.predict(rows)[0] - values) ** 2).mean())
    found = {}
    for name, columns in groups.items():
        errors = []
        for _ in range(3):
            shuffled = rows.copy()
            shuffled[:, columns] = rows[random.permutation(len(rows))][:, columns]
            errors.append(float(((forest.predict(shuffled)[0] - values) ** 2).mean()))
        found[name] = max(0.0, (float(np.mean(errors)) - base) / spread)
    return dict(sorted(found.items(), key=lambda one: -one[1]))


def _edges(column: np.ndarray) -> np.ndarray:
    """Between the values of a column, at most as many as there are bins, where rows are dense."""
    seen = np.unique(column)
    if len(seen) > _BINS:
        seen = np.unique(np.quantile(column, np.linspace(0, 1, _BINS), method="nearest"))
    return (seen[:-1] + seen[1:]) / 2


def _binned(rows: np.ndarray, edges: tuple[np.ndarray, ...]) -> np.ndarray:
    columns = [np.searchsorted(ends, column) for ends, column in zip(edges, rows.T, strict=True)]
    return np.stack(columns, axis=1) if columns else np.zeros((len(rows), 0), dtype=np.int64)


def _grow_tree(
    binned: np.ndarray, values: np.ndarray, random: np.random.Generator, depth: int, least: int, share: float
) -> Tree:
    count, columns = binned.shape
    feature, bins, left, right, value = [0], [0], [0], [0], [float(values.mean())]
    node_of = np.zeros(count, dtype=np.int64)  # number among the open nodes; -1 once its leaf is known
    open_nodes = [0]
    for _ in range(depth):
        rows = np.flatnonzero(node_of >= 0)
        if not len(rows) or not columns:
            break
        sums, counts = _histograms(binned[rows], values[rows], node_of[rows], len(open_nodes))
        allowed = random.random((len(open_nodes), columns)) < share
        best_column, best_bin, gain = _best_splits(sums, counts, allowed, least)
        splits = np.flatnonzero(gain > 1e-12)
        next_nodes: list[int] = []
        numbers = np.full((len(open_nodes), 2), -1, dtype=np.int64)
        for one in splits:
            column, cut = int(best_column[one]), int(best_bin[one])
            at = open_nodes[one]
            below, below_count = sums[one, column, : cut + 1].sum(), counts[one, column, : cut + 1].sum()
            above, above_count = sums[one, column, cut + 1 :].sum(), counts[one, column, cut + 1 :].sum()
            feature[at], bins[at], left[at], right[at] = column, cut, len(value), len(value) + 1
            for mean in (below / below_count, above / above_count):
                numbers[one, len(value) - left[at]] = len(next_nodes)
                next_nodes.append(len(value))
                feature.append(0)
                bins.append(0)
                left.append(len(value))
                right.append(len(value))
                value.append(float(mean))
        at_node = node_of[rows]
        goes_right = binned[rows, best_column[at_node]] > best_bin[at_node]
        node_of[rows] = numbers[at_node, goes_right.astype(np.int64)]
        open_nodes = next_nodes
    whole = [np.array(one, dtype=np.int64) for one in (feature, bins, left, right)]
    return Tree(whole[0], whole[1], whole[2], whole[3], np.array(value))


def _histograms(
    binned: np.ndarray, values: np.ndarray, node_of: np.ndarray, nodes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sums and counts of values by node, column and bin."""
    columns = binned.shape[1]
    place = (node_of[:, None] * columns + np.arange(columns)) * _BINS + binned
    size, shape = nodes * columns * _BINS, (nodes, columns, _BINS)
    weights = np.broadcast_to(values[:, None], binned.shape)
    sums = np.bincount(place.ravel(), weights.ravel(), size).reshape(shape)
    return sums, np.bincount(place.ravel(), minlength=size).reshape(shape).astype(float)


def _best_splits(
    sums: np.ndarray, counts: np.ndarray, allowed: np.ndarray, least: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each node the column and bin that take the most from the squared error, and how much that is."""
    below, below_count = sums.cumsum(axis=2), counts.cumsum(axis=2)
    total, total_count = below[:, :, -1:], below_count[:, :, -1:]
    above, above_count = total - below, total_count - below_count
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = below**2 / below_count + above**2 / above_count - total**2 / total_count
    fits = (below_count >= least) & (above_count >= least) & allowed[:, :, None]
    gain = np.where(fits, gain, -1.0).reshape(len(sums), -1)
    best = gain.argmax(axis=1)
    return best // _BINS, best % _BINS, gain[np.arange(len(sums)), best]
