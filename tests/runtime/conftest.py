"""Builds of the C core that the tests drive: a plain one and one with sanitizers, kept between runs, and the same that
`make test-c` makes (runtime/tests/run.sh)."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def build(name: str, target: str, *options: str) -> Path:
    folder = ROOT / "build" / name
    beside = str(Path(sys.executable).parent)  # cmake may be there and not on the path
    environment = {**os.environ, "PATH": beside + os.pathsep + os.environ["PATH"]}
    base = ["-DEYAS_BUILD_PYTHON=OFF", "-DEYAS_BUILD_TESTS=ON", f"-DPython_EXECUTABLE={sys.executable}"]
    configure = ["cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja", *base, *options]
    folder.mkdir(parents=True, exist_ok=True)
    # Parallel runs of pytest share the folder: one process builds, the others wait and find it done.
    run_id, stamp = os.environ.get("PYTEST_XDIST_TESTRUNUID", ""), folder / ".built_by_run"
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if run_id and stamp.exists() and stamp.read_text() == run_id:
            return folder
        for command in (configure, ["cmake", "--build", str(folder), "--target", target, "-j2"]):
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
            assert done.returncode == 0, done.stdout + done.stderr
        stamp.write_text(run_id)
    return folder


@pytest.fixture(scope="session")
def plain_build() -> Path:
    return build("check", "all")


@pytest.fixture(scope="session")
def sanitized_build() -> Path:
    options = ("-DEYAS_SANITIZE=address,undefined", "-DCMAKE_BUILD_TYPE=Debug")
    return build("asan", "all", *options)
