"""Two reports of one model side by side."""

from __future__ import annotations

import json

import pytest

from eyas.errors import UsageError
from eyas.explain.compare import Change, compare, read_report


def dispatch(us: float, *sources: str) -> dict:
    return {"us": us, "sources": list(sources)}


def test_nodes_that_were_fused_meanwhile_are_taken_together():
    before = [dispatch(5, "conv"), dispatch(3, "relu"), dispatch(2, "fc"), dispatch(9)]
    after = [dispatch(6, "conv", "relu"), dispatch(2.5, "fc"), dispatch(1)]
    assert compare(before, after) == [
        Change((), 9, 1),
        Change(("conv", "relu"), 8, 6),
        Change(("fc",), 2, 2.5),
    ]


def test_groups_grow_over_chains():
    before = [dispatch(1, "a", "b"), dispatch(1, "c", "d"), dispatch(1, "e")]
    after = [dispatch(1, "b", "c"), dispatch(1, "x")]
    groups = {change.nodes: (change.before_us, change.after_us) for change in compare(before, after)}
    assert groups == {("a", "b", "c", "d"): (2, 1), ("e",): (1, 0), ("x",): (0, 1)}
    assert compare([], []) == []


def test_what_is_no_report_is_refused(tmp_path):
    path = tmp_path / "r.json"
    with pytest.raises(UsageError, match="cannot read"):
        read_report(path)
    for text in ("", "[]", "{}", '{"format": 2}', '{"format": 1, "totals": {"call_us": 1}, "dispatches": [{}]}'):
        path.write_text(text)
        with pytest.raises(UsageError, match="is not a report"):
            read_report(path)
    good = {"format": 1, "totals": {"call_us": 1}, "dispatches": [dispatch(1, "a")]}
    path.write_text(json.dumps(good))
    assert read_report(path) == good
