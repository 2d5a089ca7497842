"""A case that crashes or hangs is one outcome; the others go on."""

from __future__ import annotations

import os
import signal
import time

import pytest

pytest.importorskip("onnx")
from tests.conformance.onnx import workers  # noqa: E402
from tests.conformance.onnx.check import Outcome, Status  # noqa: E402


def misbehave(case):
    if case == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if case == "hang":
        time.sleep(60)
    return Outcome(Status.PASSED)


def test_crash_and_hang_cost_one_case(monkeypatch):
    monkeypatch.setattr(workers, "TIMEOUT_S", 1.0)
    seen = []
    outcomes = workers.run_all(["ok", "crash", "hang", "ok"], 1, lambda case, outcome: seen.append(case), misbehave)
    assert [o.status for o in outcomes] == [Status.PASSED, Status.CRASHED, Status.TIMEOUT, Status.PASSED]
    assert "SIGKILL" in outcomes[1].reason
    assert seen == ["ok", "crash", "hang", "ok"]
