"""Schedules that were edited are refused or right, and never leave their buffers. `make schedule-matrix` tries all."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
MATRIX = Path(__file__).parent / "matrix.py"
BAD = ("wrong", "outside", "broken")


def runnable() -> list[str]:
    """The targets whose code this machine can run."""
    from eyas.targets import Target

    sys.path.insert(0, str(MATRIX.parent))
    from matrix import TARGETS

    has = Target.host().feature_set if platform.machine() == "x86_64" else frozenset()
    able = {"sse2": "sse2" in has, "avx2": {"avx2", "fma"} <= has, "avx512": {"avx512f", "avx512vl"} <= has}
    return [name for name in TARGETS if able.get(name, True)]


def matrix(folder: Path, *options: str) -> dict:
    if shutil.which("cc") is None:
        pytest.skip("the guard is made with a C compiler")
    out = folder / "counts.json"
    done = subprocess.run(
        [sys.executable, MATRIX, *options, "--json", out], stderr=subprocess.PIPE, text=True, check=False
    )
    assert out.exists(), done.stderr
    return json.loads(out.read_text())


def test_edited_schedules_are_refused_or_right(tmp_path):
    found = matrix(
        tmp_path, "--targets", ",".join(runnable()), "--in-turn", "--per-program", "2", "--pairs", "5", "--seed", "1"
    )
    counts = found["counts"]
    assert not any(counts.get(one) for one in BAD), "\n".join(found["bad"])
    assert counts["right"] >= 6 and counts["refused"] >= 12
    strategies = {name.split()[1] for name in found["by_strategy"]}
    assert strategies == {"contraction", "windows", "transforms", "attention", "rows"}


def test_a_kernel_that_leaves_its_buffers_is_found(tmp_path):
    target = [name for name in runnable() if name != "vmvx"][-1:]
    if not target:
        pytest.skip("no machine code for this machine")
    found = matrix(tmp_path, "--targets", *target, "--programs", "elements", "--per-program", "4", "--plant")
    assert found["counts"].get("outside") and found["bad"]
