"""Comparing by layers, with a framework that is made up: what is wrong, what is hidden, what cannot be a result."""

from __future__ import annotations

import numpy as np
import pytest

from eyas.errors import FrontendError
from eyas.verification.build import Build
from eyas.verification.compare import Tolerance
from eyas.verification.layers import Tracer, ancestors
from eyas.verification.source import Layer, Reference, Source, Tapped

NAMES = ["a", "b", "side", "c", "d", "e"]
READS = {"a": (), "b": ("a",), "side": ("a",), "c": ("b",), "d": ("c",), "e": ("d",)}


class Made(Source):
    """Six layers in a row, of which the last is the result; `refuse` cannot be results."""

    framework = "made up"

    def __init__(self, refuse=()):
        self.layers = tuple(Layer(name, "op", reads=READS[name]) for name in NAMES)
        self.refuse, self.asked = set(refuse), []

    @property
    def results(self):
        return ("e",)

    def program(self, taps=()):
        self.asked.append(tuple(taps))
        if self.refuse & set(taps):
            raise FrontendError(f"{sorted(self.refuse & set(taps))} cannot be a result")
        return Tapped(tuple(taps), {"e": 0} | {tap: 1 + index for index, tap in enumerate(taps)})

    def reference(self, inputs):
        return Reference([np.zeros(2, np.float32)], {name: np.zeros(2, np.float32) for name in NAMES})


class Pretending(Build):
    """Instead of compiling, says which layers are wrong, given what the program returns."""

    def __init__(self, wrong):
        object.__setattr__(self, "wrong", wrong)

    def call(self, program, inputs, disable=()):
        wrong = self.wrong(program)
        return [np.full(2, float(name in wrong), np.float32) for name in ("e", *program)]


def trace(wrong, refuse=()):
    source = Made(refuse)
    return source, Tracer(source, Pretending(wrong), [], source.reference([]), Tolerance()).trace()


def test_all_is_right():
    source, found = trace(lambda taps: set())
    assert found.first is None and not found.hidden and found.tapped is not None
    assert [row.layer.name for row in found.layers] == NAMES
    assert source.asked == [(), ("a", "b", "side", "c", "d")], "one compilation as it is, one with layers"


def test_the_first_wrong_layer():
    _, found = trace(lambda taps: {"c", "d", "e"})
    assert found.first is not None and found.first.layer.name == "c" and not found.hidden


@pytest.mark.parametrize("first", ["a", "b", "c", "d"])
def test_a_fault_that_hides_is_searched_by_halves(first):
    """It shows only while at most one layer is a result as well."""
    bad = set(NAMES[NAMES.index(first) :]) - {"side"}
    source, found = trace(lambda taps: bad if len(taps) <= 1 else set())
    assert found.hidden and found.first is not None and found.first.layer.name == first
    assert ("side",) not in source.asked, "what the result does not depend on is not asked for"


def test_a_fault_that_hides_behind_any_extra_result():
    _, found = trace(lambda taps: set() if taps else {"e"})
    assert found.hidden and found.first is not None and found.first.layer.name == "e" and found.first.is_result


def test_layers_that_cannot_be_results_are_left_out():
    _, found = trace(lambda taps: {"d", "e"}, refuse=("b", "side"))
    rows = {row.layer.name: row for row in found.layers}
    assert rows["b"].difference is None and "cannot be a result" in rows["b"].note
    assert rows["side"].difference is None and rows["a"].difference is not None
    assert found.first is not None and found.first.layer.name == "d"


def test_ancestors():
    assert ancestors(Made(), ["c"]) == {"a", "b", "c"}
