"""Compile of ResNet-50 in a fresh process: under 20 s on 2 cores, and at most 8 x the model's size in memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.report import Row

BAR_SECONDS, BAR_MEMORY = 20.0, 8.0

# Peaks of the process and of its largest worker; workers are one fewer than CPUs.
_CHILD = """
import json, os, resource, time
from benchmarks import models
one = models.case("resnet50")
size = sum(t.numel() * t.element_size() for t in one.model.state_dict().values())
def peak(who):
    return resource.getrusage(who).ru_maxrss * 1024
before = peak(resource.RUSAGE_SELF)
begin = time.perf_counter()
import eyas
module = eyas.compile(one.model, one.args, progress=False)
seconds = time.perf_counter() - begin
workers = len(os.sched_getaffinity(0)) - 1
print(json.dumps({"seconds": seconds, "size": size, "before": before, "peak": peak(resource.RUSAGE_SELF),
                  "worker": peak(resource.RUSAGE_CHILDREN), "workers": workers,
                  "phases": module.manifest["compile_seconds"]}))
"""


def rows() -> Iterator[Row]:
    done = subprocess.run([sys.executable, "-c", _CHILD], capture_output=True, text=True)
    if done.returncode:
        yield Row("ResNet-50, cold", float("inf"), "s", BAR_SECONDS, note=done.stderr.strip().splitlines()[-1])
        return
    seen = json.loads(done.stdout.splitlines()[-1])
    phases = ", ".join(f"{name} {seconds:.1f}" for name, seconds in seen["phases"].items())
    yield Row("ResNet-50, cold", seen["seconds"], "s", BAR_SECONDS, note=phases)
    size = seen["size"]
    together = seen["peak"] + seen["worker"] * seen["workers"]
    yield Row(
        "peak memory, all processes",
        together / 2**20,
        "MiB",
        BAR_MEMORY,
        f"model of {size / 2**20:.0f} MiB",
        together / size,
        f"{seen['before'] / 2**20:.0f} MiB of it torch and the model before eyas, {seen['worker'] / 2**20:.0f} a worker",
        limits_ratio=True,
    )
