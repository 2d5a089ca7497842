"""Bisection by itself: programs are predicates over what is switched off."""

from __future__ import annotations

import pytest

from eyas.codegen.backends import backend_of
from eyas.pipelines.phases import switches
from eyas.targets import Target
from eyas.verification.bisect import Blame
from eyas.verification.bisect import bisect as bisect_among

HOST = Target.host()


def bisect(is_right, target: Target = HOST) -> Blame:
    return bisect_among(is_right, switches(target), backend_of(target).strategy_switches)


@pytest.mark.parametrize("culprit", switches(HOST))
def test_one_culprit_is_named(culprit):
    blame = bisect(lambda off: culprit in off)
    assert blame.culprits == (culprit,) and blame.cures == (culprit,)


def test_the_last_of_several_cures_is_blamed():
    """A wrong strategy for fused kernels: without fusion it is never asked."""
    blame = bisect(lambda off: bool({"form-dispatches", "rows"} & set(off)))
    assert blame.name == "rows" and blame.cures == ("form-dispatches", "rows")


def test_strategies_get_no_credit_for_what_is_left_out_with_them():
    """Without a strategy nothing is reused in place, so a wrong reuse is right without either of them."""
    blame = bisect(lambda off: bool({"reuse-in-place", "contraction", "rows"} & set(off)))
    assert blame.name == "reuse-in-place"


def test_culprits_that_must_both_be_off():
    blame = bisect(lambda off: {"contraction", "rows"} <= set(off))
    assert blame.name == "contraction + rows" and blame.cures == ()
    assert (("contraction",), False) in blame.tried and (("contraction", "rows"), True) in blame.tried


def test_nothing_optional_is_to_blame():
    blame = bisect(lambda off: False)
    assert not blame.culprits and "still wrong with everything optional switched off" in blame.reason


def test_a_fault_that_does_not_come_back():
    blame = bisect(lambda off: True)
    assert not blame.culprits and "right when it is compiled and run again" in blame.reason


def test_nothing_is_compiled_twice():
    seen = []

    def is_right(off):
        assert off not in seen
        seen.append(off)
        return {"contraction", "expand-math"} <= set(off)

    assert bisect(is_right).name == "contraction + expand-math"
