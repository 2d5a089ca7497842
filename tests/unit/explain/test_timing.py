"""Times of dispatches from the times of workers."""

from __future__ import annotations

import pytest
from made import event

from eyas.errors import EyasError
from eyas.explain.timing import timings


def test_a_dispatch_alone_in_its_wave_has_the_time_of_the_wave():
    run = [event("a", 0, (10, 20), (12, 16)), event("b", 1, (23, 24))]
    a, b = timings([run], 2)
    assert (a.us, a.busy_us, a.gap_us) == (10, (10, 4), 0)
    assert a.idle_us == 20 - 14  # two workers for 10 us, busy for 14
    assert (b.us, b.busy_us, b.idle_us, b.gap_us) == (1, (1, 0), 1, 3)


def test_dispatches_of_one_wave_share_its_time_by_work():
    run = [event("a", 0, (0 + 1, 31), (1, 31)), event("b", 0, (31, 41), (31, 41))]
    a, b = timings([run], 2)
    assert (a.us, b.us) == (30, 10) and a.us + b.us == 40
    assert a.idle_us == b.idle_us == 0


def test_commands_without_work_take_no_time():
    run = [event("a", 0, (1, 3)), event("nothing", 0, grid=(0, 1, 1)), event("nothing", 1), event("b", 2, (4, 5))]
    assert [one.us for one in timings([run], 1)] == [2, 0, 0, 1]
    assert [one.gap_us for one in timings([run], 1)] == [0, 0, 0, 1]


def test_the_fastest_quarter_counts():
    runs = [[event("a", 0, (1, 1 + took))] for took in (10, 11, 12, 90, 95, 99, 100, 100, 100, 100, 100, 100)]
    assert timings(runs, 1)[0].us == 11
    assert timings([], 1) == timings([[]], 1) == []


def test_calls_that_differ_are_refused():
    with pytest.raises(EyasError, match="same commands"):
        timings([[event("a", 0, (1, 2))], [event("b", 0, (1, 2))]], 1)
