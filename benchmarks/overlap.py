"""Calls at the same time: two modules on two one-thread devices take at most 1.15 x the time of one."""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import torch
from torch import nn

import eyas
from benchmarks.report import Row

BAR = 1.15
SECONDS, TURNS = 0.5, 9
"""How long a turn of one module takes, and how many there are of each kind."""


def rows() -> Iterator[Row]:
    cores = len(os.sched_getaffinity(0))
    if cores < 2:
        yield Row("calls at the same time", float("nan"), "x", note="needs two cores", noisy=True)
        return
    torch.manual_seed(0)
    for name, model, x, bar in _models():
        module, array = eyas.compile(model, (x,), device="local-sync"), x.numpy()
        own = [module.clone(eyas.Device("local-task", threads=1)) for _ in range(2)]
        one = module.clone(eyas.Device("local-task", threads=1))
        pool = module.clone(eyas.Device("local-task", threads=2))
        yield _row(f"{name}, two one-thread devices", [partial(each, array) for each in own], bar)
        yield _row(f"{name}, clones on a one-thread device", [partial(each, array) for each in (one, one.clone())], bar)
        yield _row(f"{name}, clones on a two-thread device", [partial(each, array) for each in (pool, pool.clone())])
        yield _row(f"{name}, submitted to two devices", [partial(_submitted, each, array) for each in own])


def _submitted(module: eyas.Module, array: np.ndarray) -> object:
    return module.submit(array).result()


def _models() -> Iterator[tuple[str, nn.Module, torch.Tensor, float | None]]:
    """Calls of some milliseconds, and of some microseconds: those have no bar, because their threads mostly pass
    Python's lock to one another."""
    convolutions = [nn.Conv2d(64, 64, 3, padding=1), nn.ReLU()] * 4
    yield "convolutions", nn.Sequential(*convolutions).eval(), torch.randn(1, 64, 28, 28), BAR
    layer = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True)
    yield "encoder layer", layer.eval(), torch.randn(1, 64, 256), BAR
    small = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256))
    yield "perceptron", small.eval(), torch.randn(1, 256), None


def _row(what: str, calls: Sequence[Callable[[], object]], limit: float | None = None) -> Row:
    """The time of both at once over that of one alone, in turns so that both see the same machine."""
    count = _fitting(calls[0])
    alone, together, busy = [], [], []
    for _ in range(TURNS):
        begin = time.process_time()
        alone.append(_seconds(calls[:1], count))
        busy.append((time.process_time() - begin) / alone[-1])
        together.append(_seconds(calls, count))
    ratio = statistics.median(together) / statistics.median(alone)
    milliseconds = 1e3 * statistics.median(together) / count
    # A thread that does nothing but compute has a core for itself, or other programs are in the way.
    noisy = statistics.median(busy) < 0.9 or statistics.median(alone) > 1.2 * min(alone)
    return Row(what, milliseconds, "ms", limit, "one alone", ratio, limits_ratio=True, noisy=noisy)


def _fitting(call: Callable[[], object]) -> int:
    """How many calls fit into a turn."""
    call()
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < SECONDS:
        call()
        count += 1
    return count


def _seconds(calls: Sequence[Callable[[], object]], count: int) -> float:
    """From the first call to the last, with a thread for each of `calls`."""
    start = threading.Barrier(len(calls) + 1)

    def work(call: Callable[[], object]) -> None:
        call()
        start.wait()
        for _ in range(count):
            call()

    threads = [threading.Thread(target=work, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    start.wait()
    begin = time.perf_counter()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begin
