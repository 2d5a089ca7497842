"""Times add up, phases follow each other, kernels from the cache are counted, and the command shows it all."""

from __future__ import annotations

import json
import re

import pytest

from eyas.cli.app import main
from eyas.pipelines import timings
from eyas.pipelines.request import Phase
from eyas.pipelines.timings import Timings

TEXT = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = math.exp %x : tensor<4xf32>
  return %y : tensor<4xf32>
}"""


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass only when a test says so."""
    now = [100.0]
    monkeypatch.setattr(timings.time, "perf_counter", lambda: now[0])

    def go(seconds: float) -> None:
        now[0] += seconds

    return go


def test_what_took_how_long(clock):
    watch = Timings()
    clock(2)
    watch.on_phase(Phase.INPUT, None)
    watch.on_pass("verify-input-contract", 0.25)
    watch.on_pass("canonicalize", 0.005)
    watch.on_pass("verify-input-contract", 0.25)
    clock(1)
    watch.on_phase(Phase.CODEGEN, None)
    watch.on_kernel("slow", 3.0)
    watch.on_kernel("fast", 0.001)
    watch.on_kernel("known", None)
    watch.on_kernel("too short to be seen", 0.0)
    clock(3)
    watch.__exit__()
    clock(1)
    found = watch.finish().as_dict()
    assert found["phases"] == {"import": 2.0, "input": 1.0, "codegen": 3.0, "write": 1.0}
    assert found["passes"] == {"input": {"verify-input-contract": 0.5, "canonicalize": 0.005}}
    assert (
        found["kernels"] == {"slow": 3.0, "fast": 0.001, "known": 0, "too short to be seen": 0}
        and found["kernels_from_cache"] == 1
    )

    text = watch.as_text()
    assert re.search(r"^all +7\.00 s +100 %$", text, re.MULTILINE)
    # Passes and kernels that took next to nothing have no line.
    assert re.search(r"^input +1\.00 s +14 %  verify-input-contract 0\.50$", text, re.MULTILINE)
    assert "4 kernels, 1 of them from the cache: 3.00 s" in text
    assert "  slow" in text and "  fast" not in text


def test_nothing_was_done(clock):
    assert Timings().finish().as_text() == "all            0.00 s    0 %\nimport         0.00 s    0 %"


def test_the_command_shows_it(tmp_path, capsys):
    source, module = tmp_path / "model.mlir", tmp_path / "model.eyas"
    source.write_text(TEXT)

    def said(*words: str) -> str:
        try:
            main(["compile", str(source), "-o", str(module), "--target", "vmvx", "--timings", *words])
        except SystemExit as done:
            assert not done.code
        out, err = capsys.readouterr()
        return out if words else out + err

    shown = said()
    assert all(f"\n{phase.value}" in shown for phase in Phase) and "\n1 kernel: " in shown
    times = json.loads(said("--json"))["timings"]
    assert list(times["phases"]) == ["import", *(phase.value for phase in Phase), "write"]
    assert len(times["kernels"]) == 1 and times["passes"]["dispatch"]["form-dispatches"] >= 0
