"""What other programs take of the CPUs."""

from __future__ import annotations

import os
import time

import pytest

from eyas.targets import others
from eyas.targets.others import OtherPrograms


@pytest.fixture
def clocks(monkeypatch):
    """All CPUs, this process, and time, each in seconds."""
    values = {"busy": 100.0, "own": 7.0, "time": 50.0}
    monkeypatch.setattr(others, "_all_busy_seconds", lambda: values["busy"])
    monkeypatch.setattr(others, "_own_seconds", lambda: values["own"])
    monkeypatch.setattr(time, "monotonic", lambda: values["time"])
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    return values


def test_the_part_that_is_not_our_own(clocks):
    watch = OtherPrograms()
    assert watch.share() == 0, "no time has passed"
    clocks.update(busy=103.0, own=9.0, time=52.0)
    assert watch.share() == pytest.approx(1 / 8)
    clocks.update(own=10.5)
    assert watch.share() == 0, "clocks tick at different moments"
    clocks.update(busy=None)
    assert watch.share() == 0


def test_the_real_clocks_run():
    before = others._all_busy_seconds(), others._own_seconds()
    end = time.monotonic() + 0.1
    while time.monotonic() < end:
        pass
    after = others._all_busy_seconds(), others._own_seconds()
    assert after[1] > before[1]
    assert before[0] is None or (after[0] or 0) > before[0]
