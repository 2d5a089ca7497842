"""Compile of ResNet-50 in a fresh process: under 20 s on 2 cores, and at most 8 x the model's size in memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

from benchmarks import models
from benchmarks.report import Row, failure

BAR_SECONDS, BAR_MEMORY = 20.0, 8.0

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

if sys.argv[1:]:
    model, call, size = sys.argv[1], (), os.path.getsize(sys.argv[1])
else:
    one = models.case("resnet50")
    model, call = one.model, one.args
    size = sum(t.numel() * t.element_size() for t in model.state_dict().values())
before = resident("self")
threading.Thread(target=watch, daemon=True).start()
begin = time.perf_counter()
import eyas
module = eyas.compile(model, call, progress=False)
seconds = time.perf_counter() - begin
print(json.dumps({"seconds": seconds, "size": size, "before": before, **peak}))
"""


def rows() -> Iterator[Row]:
    yield from _measure("ResNet-50, cold")
    yield from _measure("ResNet-50, ONNX file, cold", str(models.onnx_file("resnet50")))


def _measure(what: str, *arguments: str) -> Iterator[Row]:
    done = subprocess.run([sys.executable, "-c", _CHILD, *arguments], capture_output=True, text=True)
    if done.returncode:
        yield failure(what, "s", BAR_SECONDS, done.stderr.strip().splitlines()[-1])
        return
    seen = json.loads(done.stdout.splitlines()[-1])
    yield Row(what, seen["seconds"], "s", BAR_SECONDS)
    size = seen["size"]
    mib = {name: f"{seen[name] / 2**20:.0f}" for name in ("before", "process", "workers", "size")}
    yield Row(
        "  peak memory, all processes",
        seen["together"] / 2**20,
        "MiB",
        BAR_MEMORY,
        f"model of {mib['size']} MiB",
        seen["together"] / size,
        f"process {mib['process']} ({mib['before']} before Eyas was imported), workers {mib['workers']}",
        limits_ratio=True,
    )
