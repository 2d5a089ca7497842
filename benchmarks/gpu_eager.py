"""`python -m benchmarks.gpu_eager`: the eight models of the GPU bars beside PyTorch eager on the same GPU.

Calls of both take turns, with arguments and results on the device, each until its results are there. PyTorch computes
in f32 without TF32, and in f16 as `model.half()`; ours is `precision="f16"`. Where torch has no CUDA, it runs on the
CPU: enough to try this out. `--table 20` prints the slowest kernels of each model by the device's own clock.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import queue
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.gpu_models import MODELS
from benchmarks.models import Case, batched, flat, relative_error
from benchmarks.timing import interleave

WARM_UP_SECONDS = 0.5
TOLERANCE = {"f32": 1e-4, "f16": 2e-2}
"""The largest difference from PyTorch's f32 over the largest value of a result."""


@dataclass(frozen=True)
class Setting:
    model: str
    batch: int
    precision: str

    def __str__(self) -> str:
        return f"{self.model} b{self.batch} {self.precision}"


@dataclass(frozen=True)
class Row:
    setting: Setting
    ours_us: float = float("nan")
    torch_us: float = float("nan")
    error: float = float("nan")
    """Of ours, from PyTorch in f32."""
    torch_error: float = float("nan")
    """Of PyTorch in this precision, from itself in f32."""
    reason: str = ""
    """Why there are no times."""

    @property
    def ratio(self) -> float:
        return self.torch_us / self.ours_us

    @property
    def is_right(self) -> bool:
        return self.error <= max(TOLERANCE[self.setting.precision], 2 * self.torch_error)


@dataclass(frozen=True)
class Turns:
    """What processes wait for, one for each setting: that all have compiled, and then for each other."""

    ready: Any
    start: Any
    device: Any
    rows: Any


def run_setting(setting: Setting, cpus: set[int], options: argparse.Namespace, turns: Turns) -> None:
    """Builds and compiles a model in a process of its own, and times it when its turn comes."""
    os.sched_setaffinity(0, cpus)
    try:
        call = prepare(setting, tuple(filter(None, options.disable.split(","))))
        turns.ready.put(setting)
        turns.start.wait()
        with turns.device:
            os.sched_setaffinity(0, range(os.cpu_count() or 1))
            row = call.measure(options.turns)
            print_row(row)
            if options.table:
                print_kernels(call.module, call.inputs, options.table)
    except Exception as error:  # of any model; the others go on
        row = Row(setting, reason=f"{type(error).__name__}: {str(error)[:300]}")
        print_row(row)
        turns.ready.put(setting)
    turns.rows.put(row)


@dataclass(frozen=True)
class Call:
    """One setting, ready to be called: the model, a call of it, the module, and the same arguments on the device."""

    setting: Setting
    case: Case
    module: Any
    on_device: Any

    @property
    def inputs(self) -> list[Any]:
        from torch.utils._pytree import tree_leaves

        return tree_leaves(self.on_device)

    def measure(self, turns: int) -> Row:
        """Times of both, and how far they are from PyTorch in f32."""
        import torch

        args, kwargs = self.on_device
        exact = self._on_torch(torch.float32)
        theirs = exact if self.setting.precision == "f32" else self._on_torch(torch.float16)
        wanted = _numbers(exact())
        error = max(relative_error(flat(self.module(*self.case.args, **self.case.kwargs)), wanted) for _ in range(2))
        calls = {"ours": lambda: self.module.on_device(*args, **kwargs), "torch": theirs}
        begin = time.perf_counter()
        while time.perf_counter() - begin < WARM_UP_SECONDS:  # clocks of an idle GPU are low
            for call in calls.values():
                call()
        times = interleave(calls, turns)
        ours_us, torch_us = (1e3 * times[name].median_ms for name in ("ours", "torch"))
        return Row(self.setting, ours_us, torch_us, error, relative_error(_numbers(theirs()), wanted))

    def _on_torch(self, type_: Any) -> Callable[[], Any]:
        """A call of the model in PyTorch that waits for its results."""
        import torch
        from torch.utils._pytree import tree_map

        place = "cuda" if torch.cuda.is_available() else "cpu"
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False

        def convert(leaf: torch.Tensor) -> torch.Tensor:
            return leaf.to(place, type_ if leaf.is_floating_point() else None)

        network = copy.deepcopy(self.case.model).to(place, type_)
        args, kwargs = tree_map(convert, (self.case.args, dict(self.case.kwargs)))

        def call() -> Any:
            with torch.inference_mode():
                answer = network(*args, **kwargs)
            if place == "cuda":
                torch.cuda.synchronize()
            return answer

        return call


def prepare(setting: Setting, disable: Sequence[str] = ()) -> Call:
    """Builds and compiles a model."""
    from torch.utils._pytree import tree_map

    import eyas

    one = batched(MODELS[setting.model](), setting.batch)
    precision = None if setting.precision == "f32" else setting.precision
    options = {"target": "vulkan", "precision": precision, "disable": disable, "progress": False}
    module = eyas.compile(one.model, one.args, kwargs=one.kwargs, **options)
    put = module.device.put
    return Call(setting, one, module, tree_map(lambda leaf: put(leaf.contiguous()), (one.args, dict(one.kwargs))))


def _numbers(answer: Any) -> list[Any]:
    from torch import Tensor
    from torch.utils._pytree import tree_map

    return flat(tree_map(lambda leaf: leaf.float().cpu() if isinstance(leaf, Tensor) else leaf, answer))


def run_together(settings: Sequence[Setting], options: argparse.Namespace) -> list[Row]:
    """Compiles some settings at the same time, and times one after the other."""
    processes, begin = get_context("spawn"), time.perf_counter()
    turns = Turns(processes.Queue(), processes.Event(), processes.Lock(), processes.Queue())
    cpus = sorted(os.sched_getaffinity(0))
    started: dict[Setting, Any] = {}
    for number, setting in enumerate(settings):
        mine = set(cpus[number % len(cpus) :: min(len(settings), len(cpus))])
        started[setting] = processes.Process(target=run_setting, args=(setting, mine, options, turns))
        started[setting].start()
    ready: list[Setting] = []
    while len(ready) < len(settings):
        left = None if options.limit is None else max(0.0, options.limit - (time.perf_counter() - begin))
        try:
            ready.append(turns.ready.get(timeout=left))
        except queue.Empty:
            break
    print(f"{len(ready)} of {len(settings)} compiled in {time.perf_counter() - begin:.0f} s", flush=True)
    late = [setting for setting in settings if setting not in ready]
    for setting in late:
        started[setting].terminate()
    turns.start.set()
    rows = [Row(setting, reason=f"not compiled in {options.limit} s") for setting in late]
    while len(rows) < len(settings):
        try:
            rows.append(turns.rows.get(timeout=1))
        except queue.Empty:
            if not any(process.is_alive() for process in started.values()):
                seen = [row.setting for row in rows]
                rows += [Row(setting, reason="its process died") for setting in settings if setting not in seen]
    for process in started.values():
        process.join()
    return rows


def print_kernels(module: Any, inputs: list[Any], count: int) -> None:
    """The slowest kernels of a module, all dispatches of each together."""
    from eyas.cli.bench import profile

    rows = profile(module, inputs, 5)
    total, dispatches = sum(row["us"] for row in rows), sum(row["dispatches"] for row in rows)
    print(f"  {total:.0f} us in {dispatches} dispatches of {len(rows)} kernels")
    for row in rows[:count]:
        knobs = ",".join(part.partition("=")[2] for part in row["knobs"].split())
        grid = "x".join(map(str, row["grid"]))
        name = row["name"].partition("_dispatch_")[2] or row["name"]
        speed = f"{row['gflop_per_s'] or 0:7.0f} GF/s {row['gb_per_s']:5.0f} GB/s"
        print(f"  {row['us']:8.1f} us {row['dispatches']:3} {speed} {grid:>10} {row['strategy']} {knobs} {name}")


def print_row(row: Row) -> None:
    if row.reason:
        print(f"{row.setting!s:24} {row.reason}", flush=True)
        return
    times = f"{row.ours_us:9.0f} us, torch {row.torch_us:9.0f} us, {row.ratio:5.2f} x"
    right = "right" if row.is_right else "WRONG"
    print(f"{row.setting!s:24} {times}, error {row.error:.1e} (torch's {row.torch_error:.1e}), {right}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_eager", description=__doc__)
    parser.add_argument("--models", default=",".join(MODELS), help="comma-separated")
    parser.add_argument("--batches", default="1,16", help="comma-separated")
    parser.add_argument("--precisions", default="f32,f16", help="comma-separated")
    parser.add_argument("--jobs", type=int, default=1, help="settings that are compiled at the same time")
    parser.add_argument("--limit", type=float, default=None, help="seconds after which no more is compiled")
    parser.add_argument("--turns", type=int, default=5, help="how often each engine's turn comes")
    parser.add_argument("--table", type=int, default=0, metavar="N", help="print the N slowest kernels of each")
    parser.add_argument("--disable", default="", help="comma-separated passes and strategies to leave out")
    parser.add_argument("--json", metavar="FILE", help="write all times there")
    options = parser.parse_args()
    settings = [
        Setting(model, int(batch), precision)
        for model in options.models.split(",")
        for batch in options.batches.split(",")
        for precision in options.precisions.split(",")
    ]
    rows: list[Row] = []
    for first in range(0, len(settings), options.jobs):
        rows += run_together(settings[first : first + options.jobs], options)
        if options.json:
            Path(options.json).write_text(json.dumps([asdict(one) for one in rows], indent=1))
    slower = [str(row.setting) for row in rows if not row.reason and row.ratio < 1]
    wrong = [str(row.setting) for row in rows if row.reason or not row.is_right]
    print(
        f"{len(rows)} settings; slower than PyTorch: {', '.join(slower) or 'none'}; wrong: {', '.join(wrong) or 'none'}"
    )
    return len(slower) + len(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
