"""The forest: it learns what is there to learn, knows where it does not know, and says what mattered."""

from __future__ import annotations

import numpy as np
import pytest

from eyas.tune.forest import grow, permutation_importance


def table(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns 0 and 1 matter, and together; 2 and 3 do not."""
    rows = np.random.default_rng(seed).integers(0, 10, (count, 4)).astype(float)
    return rows, np.where(rows[:, 0] > 4, rows[:, 1], -rows[:, 1])


def test_it_learns_what_depends_on_two_columns():
    forest = grow(*table(800, 1), seed=3, trees=24)
    rows, values = table(300, 2)
    mean, _ = forest.predict(rows)
    assert ((mean - values) ** 2).mean() < 0.1 * values.var()


def test_it_is_the_same_for_the_same_seed_and_only_then():
    rows, values = table(200, 1)
    one, same, other = (grow(rows, values, seed, trees=8).predict(rows)[0] for seed in (5, 5, 6))
    assert (one == same).all() and (one != other).any()


def test_trees_disagree_where_nothing_was_seen():
    rows, values = table(600, 1)
    left_out = ~((rows[:, 0] > 6) & (rows[:, 1] > 6))
    forest = grow(rows[left_out], values[left_out], seed=1)
    _, spread = forest.predict(rows)
    assert spread[~left_out].mean() > 1.5 * spread[left_out].mean()


def test_weights_decide_between_rows_that_disagree():
    rows = np.zeros((20, 1))
    values = np.array([0.0] * 10 + [1.0] * 10)
    low = grow(rows, values, 1, np.array([9.0] * 10 + [1.0] * 10)).predict(rows[:1])[0][0]
    high = grow(rows, values, 1, np.array([1.0] * 10 + [9.0] * 10)).predict(rows[:1])[0][0]
    assert low < 0.2 and high > 0.8


def test_importance_names_the_columns_that_matter():
    rows, values = table(800, 1)
    groups = {"first": [0], "second": [1], "noise": [2, 3]}
    found = permutation_importance(grow(rows, values, 1), rows, values, groups, seed=1)
    assert list(found)[-1] == "noise" and found["noise"] < 0.05
    assert min(found["first"], found["second"]) > 0.25


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_few_rows_are_enough_to_answer(count):
    rows, values = table(count, 1)
    mean, spread = grow(rows, values, 1, trees=4).predict(rows)
    assert np.isfinite(mean).all() and np.isfinite(spread).all()


def test_equal_rows_and_constant_columns():
    mean, _ = grow(np.ones((9, 3)), np.full(9, 2.5), 1, trees=4).predict(np.array([[0.0, 1.0, 7.0]]))
    assert mean[0] == pytest.approx(2.5)
