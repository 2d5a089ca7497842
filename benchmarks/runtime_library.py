"""The runtime's shared library: under 1 MB stripped, no dependency but the C library (libc.so and its half libm.so)."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks import models
from benchmarks.report import Row

BAR_BYTES = 1_000_000
ROOT = Path(__file__).resolve().parent.parent


def rows() -> Iterator[Row]:
    build = models.scratch() / "runtime"
    options = ["-DEYAS_BUILD_PYTHON=OFF", f"-DPython_EXECUTABLE={sys.executable}"]
    _run("cmake", "-S", str(ROOT), "-B", str(build), *options)
    _run("cmake", "--build", str(build), "--target", "eyas_runtime")
    library = next(build.glob("libeyas_runtime.so"))
    stripped = build / "stripped.so"
    _run("strip", "-o", str(stripped), str(library))
    needed = re.findall(r"NEEDED.*\[(.+)\]", _run("readelf", "-d", str(stripped)))
    yield Row("stripped size", stripped.stat().st_size, "bytes", BAR_BYTES)
    others = [name for name in needed if not re.match(r"lib[cm]\.|ld-linux", name)]
    yield Row("dependencies besides the C library", len(others), "", 0, note=", ".join(needed))


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
