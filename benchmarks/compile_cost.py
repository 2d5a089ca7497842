"""Compile of ResNet-50 in a fresh process, 2 cores: under 8 s, 1.5 s from the cache, at most 8 x its size in memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from benchmarks import models
from benchmarks.report import Row, failure

BAR_COLD_SECONDS, BAR_WARM_SECONDS, BAR_MEMORY = 8.0, 1.5, 8.0

# getrusage tells nothing of workers (a child's peak counts what its parent had at the fork), so a thread watches this
# process and its children. Their proportional set sizes add up: a page of a library that two of them share counts once.
_CHILD = """
import json, os, sys, threading, time
from pathlib import Path
from benchmarks import models

def resident(pid):
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    except (OSError, IndexError, StopIteration):
        return 0  # it has just ended

def children():
    found = [pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()]
    return sorted(set(found))

peak = {"process": 0, "workers": 0, "together": 0}
def watch():
    while True:
        own, workers = resident("self"), sum(resident(pid) for pid in children())
        for name, seen in (("process", own), ("workers", workers), ("together", own + workers)):
            peak[name] = max(peak[name], seen)
        time.sleep(0.03)

what, *path = sys.argv[1:]
if path:
    model, call, size = path[0], (), os.path.getsize(path[0])
else:
    one = models.case("resnet50")
    model, call = one.model, one.args
    size = sum(t.numel() * t.element_size() for t in model.state_dict().values())
before = resident("self")
if what == "memory":  # watching takes a third of a core
    threading.Thread(target=watch, daemon=True).start()
begin = time.perf_counter()
import eyas
module = eyas.compile(model, call, progress=False)
seconds = time.perf_counter() - begin
print(json.dumps({"seconds": seconds, "size": size, "before": before, **peak}))
"""


def rows() -> Iterator[Row]:
    yield from _measure("ResNet-50")
    yield from _measure("ResNet-50, ONNX file", str(models.onnx_file("resnet50")))


def _measure(what: str, *arguments: str) -> Iterator[Row]:
    """The first process finds an empty cache, the second what the first has left."""
    with tempfile.TemporaryDirectory(prefix="eyas-bench-") as cache:
        for state, bar in (("cold", BAR_COLD_SECONDS), ("from the cache", BAR_WARM_SECONDS)):
            seen = _run(cache, "time", *arguments)
            if isinstance(seen, str):
                yield failure(f"{what}, {state}", "s", bar, seen)
                return
            yield Row(f"{what}, {state}", seen["seconds"], "s", bar)
    seen = _run("off", "memory", *arguments)
    yield failure(f"{what}, memory", "MiB", BAR_MEMORY, seen) if isinstance(seen, str) else _memory(seen)


def _run(cache: str, *arguments: str) -> dict[str, float] | str:
    """What the child measured, or the last line of its complaint."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "EYAS_CACHE": cache},
    )
    return done.stderr.strip().splitlines()[-1] if done.returncode else json.loads(done.stdout.splitlines()[-1])


def _memory(seen: dict[str, float]) -> Row:
    mib = {name: f"{seen[name] / 2**20:.0f}" for name in ("before", "process", "workers", "size")}
    return Row(
        "  peak memory, all processes",
        seen["together"] / 2**20,
        "MiB",
        BAR_MEMORY,
        f"model of {mib['size']} MiB",
        seen["together"] / seen["size"],
        f"process {mib['process']} ({mib['before']} before Eyas was imported), workers {mib['workers']}",
        limits_ratio=True,
    )
