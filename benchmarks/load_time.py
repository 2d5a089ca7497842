"""Load of a module of about 100 MB: under 30 ms, because weights are mapped and not read."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

import eyas
from benchmarks import models
from benchmarks.report import Row

BAR_MS = 30.0


def rows() -> Iterator[Row]:
    path = models.scratch() / "resnet50.eyas"
    models.compiled("resnet50").save(path)
    size = path.stat().st_size / 1e6
    reading = _milliseconds(path.read_bytes)
    loading = _milliseconds(lambda: eyas.load(path))
    baseline = f"reading the file, {reading:.1f} ms"
    yield Row(f"ResNet-50, {size:.0f} MB", loading, "ms", BAR_MS, baseline, loading / reading)
    module, photo = eyas.load(path), models.case("resnet50").args[0].numpy()
    begin = time.perf_counter()
    module(photo)
    yield Row("first call after it", 1e3 * (time.perf_counter() - begin), "ms")


def _milliseconds(call) -> float:
    times = []
    for _ in range(9):
        begin = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times)
