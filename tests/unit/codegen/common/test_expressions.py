"""Expressions are data that counts with numbers and says how to count with variables."""

from __future__ import annotations

import pytest

from eyas.codegen.common.expressions import (
    FALSE,
    TRUE,
    Arithmetic,
    Const,
    Implies,
    Var,
    all_of,
    any_of,
    between,
    ceil_div,
    differ,
    divides,
    equal,
    least,
    most,
    odd,
    one_of,
    power_of_two,
    product_of,
    select,
    variables,
)

A, B = Var("a"), Var("b")
POINT = {"a": 12, "b": 5}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (A + B, 17), (A - B, 7), (A * B, 60), (A // B, 2), (A % B, 2), (3 + A, 15), (3 - A, -9), (3 * A, 36),
        (100 // A, 8), (100 % A, 4), (-A, -12), (ceil_div(A, B), 3), (ceil_div(10, B), 2), (odd(A), 13), (odd(B), 5),
        (least(A, B), 5), (most(A, 20), 20), (product_of([A, B, 2]), 120),
        (select(A > B, A, 0), 12), (select(A < B, A, 0), 0),
    ],
)  # fmt: skip
def test_numbers(expression, value):
    assert expression.evaluate(POINT) == value


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (A < B, False), (A <= 12, True), (A > B, True), (A >= 13, False), (equal(A, 12), True), (differ(A, 12), False),
        (one_of(B, (1, 5)), True), (power_of_two(A), False), (power_of_two(A + 4), True), (power_of_two(A - 12), False),
        (divides(4, A), True), (divides(B, A), False), (between(1, B, 4), False), ((A > B) & (B > 4), True),
        ((A < B) | (B > 4), True), (~(A < B), True), (Implies(A < B, FALSE), True), (all_of([]), True),
        (any_of([]), False), (TRUE & FALSE, False),
    ],
)  # fmt: skip
def test_conditions(condition, holds):
    assert condition.evaluate(POINT) is holds


def test_functions_serve_numbers_and_variables():
    def size(rows, depth):
        return select(rows > 1, rows * odd(depth // 4), 0)

    assert size(8, 16) == 8 * 5
    assert size(A, B).evaluate({"a": 8, "b": 16}) == 8 * 5


def test_what_is_not_needed_is_not_evaluated():
    """Conditions may take for granted what those before them say."""
    assert Implies(A > 100, Var("missing") > 0).evaluate(POINT)
    assert not ((A > 100) & (Var("missing") > 0)).evaluate(POINT)
    assert select(A > 100, Var("missing"), 1).evaluate(POINT) == 1


def test_a_condition_is_no_truth():
    with pytest.raises(TypeError, match="has no value yet"):
        bool(A < B)
    with pytest.raises(TypeError):
        max(A, B)


def test_expressions_are_data():
    assert A + B == Var("a") + Var("b") and hash(A + B) == hash(Var("a") + Var("b"))
    assert A + 0 is A and 1 * A is A and A // 1 is A
    assert Const(2) * Const(3) == Const(6)
    assert isinstance(A * B, Arithmetic)
    assert variables((A > B) & equal(A, Var("c"))) == ("a", "b", "c")
    assert str((A + 1) * B) == "((a + 1) * b)"


def test_a_divisor_of_nothing_is_for_others_to_exclude():
    assert (A // (B - 5)).evaluate(POINT) == 0 and (A % (B - 5)).evaluate(POINT) == 12
