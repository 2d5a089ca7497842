"""Calls bind as Python's do, and trees survive storage."""

from __future__ import annotations

import pytest

from eyas.errors import CallError
from eyas.module.trees import LEAF, CallTree, Tree, constant, dict_of, flat_results, result_names, tuple_of

CALL = CallTree(
    tuple_of([LEAF, dict_of({"a": LEAF, "b": LEAF}), constant(2.0)]), ("x", "d", "scale"), dict_of({"k": LEAF})
)


def test_positional_and_keyword_arguments_bind_alike():
    expected = ["X", "A", "B", "K"]
    assert CALL.flatten(("X", {"b": "B", "a": "A"}, 2.0), {"k": "K"}) == expected
    assert CALL.flatten(("X",), {"d": {"a": "A", "b": "B"}, "k": "K"}) == expected
    assert CALL.flatten((), {"x": "X", "d": {"a": "A", "b": "B"}, "scale": 2.0, "k": "K"}) == expected
    assert CALL.paths() == ["x", "d.a", "d.b", "k"]


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "argument 'x' is missing"),
        (("X", {"a": "A"}), {"k": "K"}, r"argument 'd' has no 'b'"),
        (("X", {"a": "A", "b": "B"}, 3.0), {"k": "K"}, "imported with 2.0"),
        (("X", {"a": "A", "b": "B"}), {"k": "K", "z": 1}, "unknown argument 'z'"),
        (("X", {"a": "A", "b": "B"}), {}, "argument 'k' is missing"),
        ((None, {"a": "A", "b": "B"}), {"k": "K"}, "is None"),
    ],
)
def test_wrong_calls_teach(args, kwargs, message):
    with pytest.raises(CallError, match=message):
        CALL.flatten(args, kwargs)


def test_sequences_must_have_the_right_length():
    call = CallTree(tuple_of([Tree("list", (LEAF, LEAF))]), ("pair",), dict_of({}))
    assert call.flatten(([1, 2],), {}) == [1, 2]
    with pytest.raises(CallError, match="must be a list of 2, got a list of 3"):
        call.flatten(([1, 2, 3],), {})


def test_storage_round_trip():
    assert CallTree.from_json(CALL.to_json()) == CALL
    tree = Tree("object", (LEAF, tuple_of([LEAF, constant(None)])), ("first", "rest"), "some.module:Output")
    assert Tree.from_json(tree.to_json()) == tree


def test_objects_of_absent_modules_become_dicts():
    tree = Tree("object", (LEAF, LEAF), ("first", "second"), "no.such.module:Output")
    assert tree.unflatten([1, 2]) == {"first": 1, "second": 2}


def test_result_names():
    assert result_names(LEAF) == ["output"]
    assert result_names(tuple_of([LEAF, dict_of({"a": LEAF})])) == ["output.0", "output.1.a"]
    assert result_names(dict_of({"logits": LEAF})) == ["logits"]
    assert flat_results(["a"]).unflatten([1]) == 1
    assert flat_results(["a", "b"]).unflatten([1, 2]) == (1, 2)
