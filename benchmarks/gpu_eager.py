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
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.gpu_models import MODELS
from benchmarks.models import batched, flat, relative_error
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

    def file(self, folder: Path) -> Path:
        return folder / f"{self.model}-{self.batch}-{self.precision}.eyas"


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


def share_cpus(jobs: int, number: Any) -> None:
    """Leaves a process its part of the CPUs; the next one counts on."""
    cpus = sorted(os.sched_getaffinity(0))
    with number.get_lock():
        mine = number.value
        number.value += 1
    os.sched_setaffinity(0, {cpus[at] for at in range(len(cpus)) if at % min(jobs, len(cpus)) == mine % len(cpus)})


def compile_setting(setting: Setting, folder: Path, disable: Sequence[str] = ()) -> float:
    """Writes a module; returns how long that took. Runs in a process of its own."""
    import eyas

    begin = time.perf_counter()
    one = batched(MODELS[setting.model](), setting.batch)
    precision = None if setting.precision == "f32" else setting.precision
    options = {"target": "vulkan", "precision": precision, "disable": disable, "progress": False}
    eyas.compile(one.model, one.args, kwargs=one.kwargs, **options).save(setting.file(folder))
    return time.perf_counter() - begin


def measure(setting: Setting, folder: Path, turns: int) -> tuple[Row, Any, list[Any]]:
    """Times of both and how far they are from f32; the module and its arguments, to look at it closer."""
    import torch
    from torch.utils._pytree import tree_leaves, tree_map

    import eyas

    one = batched(MODELS[setting.model](), setting.batch)
    module = eyas.load(setting.file(folder))
    inside = tree_map(lambda leaf: module.device.put(leaf.contiguous()), (one.args, dict(one.kwargs)))
    place = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False

    def on_torch(type_: torch.dtype) -> Callable[[], Any]:
        def convert(leaf: torch.Tensor) -> torch.Tensor:
            return leaf.to(place, type_ if leaf.is_floating_point() else None)

        network = copy.deepcopy(one.model).to(place, type_)
        args, kwargs = tree_map(convert, (one.args, dict(one.kwargs)))

        def call() -> Any:
            with torch.inference_mode():
                answer = network(*args, **kwargs)
            if place == "cuda":
                torch.cuda.synchronize()
            return answer

        return call

    def ours() -> Any:
        return module.on_device(*inside[0], **inside[1])

    def numbers(answer: Any) -> list[Any]:
        return flat(tree_map(lambda leaf: leaf.float().cpu() if isinstance(leaf, torch.Tensor) else leaf, answer))

    exact = on_torch(torch.float32)
    theirs = exact if setting.precision == "f32" else on_torch(torch.float16)
    wanted = numbers(exact())
    error = max(relative_error(flat(module(*one.args, **one.kwargs)), wanted) for _ in range(2))
    begin = time.perf_counter()
    while time.perf_counter() - begin < WARM_UP_SECONDS:  # clocks of an idle GPU are low
        ours()
        theirs()
    times = interleave({"ours": ours, "torch": theirs}, turns)
    row = Row(
        setting,
        1e3 * times["ours"].median_ms,
        1e3 * times["torch"].median_ms,
        error,
        relative_error(numbers(theirs()), wanted),
    )
    return row, module, tree_leaves(inside)


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
    parser.add_argument("--jobs", type=int, default=1, help="processes that compile")
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
    disable = tuple(filter(None, options.disable.split(",")))
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="eyas-bench-") as scratch:
        folder, begin = Path(scratch), time.perf_counter()
        processes = get_context("spawn")
        counter = processes.Value("i", 0)
        pool = ProcessPoolExecutor(options.jobs, processes, share_cpus, (options.jobs, counter))
        compiled = {one: pool.submit(compile_setting, one, folder, disable) for one in settings}
        wait(compiled.values(), timeout=options.limit)
        ready = [one for one, future in compiled.items() if future.done()]
        for process in list((pool._processes or {}).values()):
            process.terminate()  # what takes too long is given up, so that nothing runs beside what is timed
        pool.shutdown(cancel_futures=True)
        seconds = f"{time.perf_counter() - begin:.0f} s"
        print(f"{len(ready)} of {len(settings)} compiled in {seconds} with {options.jobs} processes", flush=True)
        for setting in settings:
            try:
                if setting not in ready:
                    raise TimeoutError(f"not compiled in {options.limit} s")
                compiled[setting].result()
                row, module, inputs = measure(setting, folder, options.turns)
            except Exception as error:  # of any model; the others go on
                rows.append(Row(setting, reason=f"{type(error).__name__}: {str(error)[:300]}"))
                print_row(rows[-1])
                continue
            rows.append(row)
            print_row(row)
            if options.table:
                print_kernels(module, inputs, options.table)
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
