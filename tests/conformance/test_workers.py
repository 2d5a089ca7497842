"""The runner of all lists: a crash or a hang is one outcome, the others go on; a section replaces only itself."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.conformance.outcome import Outcome  # noqa: E402
from tests.conformance.report import table, write_section  # noqa: E402
from tests.conformance.workers import run_all  # noqa: E402


def misbehave(name: str) -> Outcome:
    """What the children of these tests do with their cases."""
    what = name.partition("/")[2]
    if what == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "hang":
        time.sleep(60)
    if what == "raise":
        raise ValueError("no such thing")
    print("noise on the way of the answers")
    return Outcome(name, "passed", f"process {os.getpid()}")


@pytest.mark.parametrize("jobs", [1, 2])
def test_crash_and_hang_cost_one_case(jobs, monkeypatch):
    monkeypatch.setattr("tests.conformance.workers.START_S", 20.0)
    names = ["a/ok", "a/crash", "a/raise", "a/hang", "a/fine"]
    seen: list[Outcome] = []
    check = "tests.conformance.test_workers:misbehave"
    outcomes = run_all(check, names, seen.append, jobs=jobs, timeout_s=2.0)
    assert [outcome.name for outcome in outcomes] == names
    assert [outcome.kind for outcome in outcomes] == ["passed", "crashed", "crashed", "crashed", "passed"]
    assert "SIGKILL" in outcomes[1].reason and "no such thing" in outcomes[2].reason
    assert "no answer after 2 s" in outcomes[3].reason
    assert sorted(outcome.name for outcome in seen) == sorted(names)


def test_children_are_replaced():
    check = "tests.conformance.test_workers:misbehave"
    outcomes = run_all(check, ["a/1", "a/2", "a/3"], lambda outcome: None, lifetime=2)
    first, second, third = (outcome.reason for outcome in outcomes)
    assert first == second != third


def test_children_share_the_processors_and_stop_in_time():
    check = "tests.conformance.test_workers:processors"
    outcomes = run_all(check, ["a/1", "a/2"], lambda outcome: None, jobs=2, pinned=True)
    one, other = (set(outcome.parts) for outcome in outcomes)
    assert len(os.sched_getaffinity(0)) == 1 or not one & other
    assert run_all(check, ["a/1"], lambda outcome: None, until=time.monotonic()) == []


def processors(name: str) -> Outcome:
    time.sleep(1)  # so that one child does not take both cases
    return Outcome(name, "passed", parts=sorted(os.sched_getaffinity(0)))


def test_section_is_replaced_in_place(tmp_path: Path):
    page = tmp_path / "conformance.md"
    page.write_text("# Conformance\n\n## JAX\n\nold\n\n## ONNX\n\nstays\n")
    write_section(page, "JAX", table([Outcome("lax/sort", "passed"), Outcome("lax/x", "unsupported", "why")]))
    text = page.read_text()
    assert "old" not in text and "stays" in text and "| lax/x | unsupported | why |" in text
    assert text.index("## JAX") < text.index("## ONNX")
