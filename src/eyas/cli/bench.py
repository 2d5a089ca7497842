"""`eyas bench`: how long a call takes, and where the time goes."""

from __future__ import annotations

import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eyas.cli.common import ENTRY_HELP, INPUT_HELP, choose_entry, make_inputs, open_module, print_json, print_table

if TYPE_CHECKING:
    from eyas.runtime import Module

NAME = "bench"
_WARM_UP_SECONDS, _SECONDS, _LEAST_RUNS, _MOST_RUNS = 0.3, 2.0, 10, 10_000


def command(
    module: Annotated[Path, typer.Argument(help="A .eyas module, or a model, which is compiled first.")],
    input: Annotated[list[str] | None, typer.Option("-i", "--input", help=INPUT_HELP)] = None,
    entry: Annotated[str, typer.Option(help=ENTRY_HELP)] = "",
    threads: Annotated[int | None, typer.Option(min=1, help="[default: the CPUs of this process]")] = None,
    device: Annotated[str, typer.Option(help="See `eyas devices`.")] = "local-task",
    runs: Annotated[int | None, typer.Option(min=1, help="[default: as many as fit into two seconds]")] = None,
    per_dispatch: Annotated[bool, typer.Option("--per-dispatch", help="Time of each kernel.")] = False,
    json: Annotated[bool, typer.Option("--json", help="All numbers as JSON.")] = False,
) -> None:
    """Measure a module: median, spread, and GFLOP/s where known."""
    loaded = open_module(module, device, threads, quiet=json)
    function = choose_entry(loaded, entry)
    inputs = make_inputs(input or [], loaded.functions[function].signature)
    times = measure(loaded, inputs, runs, function)
    # The count is that of all entry points together.
    flops = loaded.manifest.get("flops") if len(loaded.functions) == 1 else None
    report: dict[str, Any] = {
        "module": str(module),
        "target": loaded.manifest.get("provenance", {}).get("target", ""),
        "device": {"driver": device, **loaded.device},
        **statistics(times),
        "flops": flops,
        "gflop_per_s": round(flops / (statistics(times)["median_us"] * 1e3), 3) if flops else None,
    }
    if per_dispatch:
        report["dispatches"] = profile(loaded, inputs, min(len(times), 20), function)
    if json:
        print_json(report)
    else:
        _print(report)


def measure(module: Module, inputs: list[Any], runs: int | None, entry: str = "") -> list[float]:
    """Microseconds of each call, in order, after a warm-up."""
    call = module.functions[choose_entry(module, entry)]
    begin = time.perf_counter()
    call(*inputs)
    while time.perf_counter() - begin < (_WARM_UP_SECONDS if runs is None else 0):
        call(*inputs)
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < (runs or _LEAST_RUNS) or (
        runs is None and len(times) < _MOST_RUNS and time.perf_counter() - begin < _SECONDS
    ):
        start = time.perf_counter_ns()
        call(*inputs)
        times.append((time.perf_counter_ns() - start) / 1e3)
    return times


def statistics(times: list[float]) -> dict[str, Any]:
    """Median, fastest, and the range that holds nine of ten runs, in microseconds."""
    import numpy as np

    low, median, high = np.percentile(times, [5, 50, 95])
    names = ("median_us", "min_us", "p5_us", "p95_us")
    values = (median, min(times), low, high)
    return {"runs": len(times), **{name: round(float(value), 3) for name, value in zip(names, values, strict=True)}}


def profile(module: Module, inputs: list[Any], runs: int, entry: str | None = None) -> list[dict[str, Any]]:
    """One row for each kernel, slowest first: microseconds of all its dispatches in one call (median over calls)."""
    import numpy as np

    kernels = {kernel["name"]: kernel for kernel in module.manifest.get("kernels", ())}
    per_run: list[dict[str, float]] = []
    counts: dict[str, int] = {}
    for events in module.profile(*inputs, runs=runs, entry=entry):
        took: dict[str, float] = defaultdict(float)
        counts = defaultdict(int)
        for event in events:
            took[event.name] += event.duration_us
            counts[event.name] += 1
        per_run.append(took)
    rows = []
    for name in per_run[0] if per_run else ():
        microseconds = float(np.median([took.get(name, 0.0) for took in per_run]))
        flops = (kernels.get(name, {}).get("flops") or 0) * counts[name]
        rows.append(
            {
                "name": name,
                "dispatches": counts[name],
                "us": round(microseconds, 2),
                "gflop_per_s": round(flops / (microseconds * 1e3), 2) if flops and microseconds else None,
                "strategy": kernels.get(name, {}).get("strategy", ""),
            }
        )
    total = sum(row["us"] for row in rows) or 1.0
    for row in rows:
        row["share"] = round(row["us"] / total, 4)
    return sorted(rows, key=lambda row: -row["us"])


def _print(report: dict[str, Any]) -> None:
    device = report["device"]
    print(f"{report['module']} for {report['target']} on {device['driver']}, {device['workers']} threads")
    speed = f", {report['gflop_per_s']:.1f} GFLOP/s" if report["gflop_per_s"] else ""
    print(
        f"median {_time(report['median_us'])}, min {_time(report['min_us'])}, 5 to 95 %: {_time(report['p5_us'])} to"
        f" {_time(report['p95_us'])}, {report['runs']} runs{speed}"
    )
    if "dispatches" in report:
        rows = [("us", "share", "GFLOP/s", "n", "strategy", "kernel")]
        rows += [
            (f"{r['us']:.1f}", f"{r['share']:.1%}", r["gflop_per_s"] or "", r["dispatches"], r["strategy"], r["name"])
            for r in report["dispatches"]
        ]
        print_table(rows, numbers=(0, 1, 2, 3))


def _time(microseconds: float) -> str:
    if microseconds < 1e3:
        return f"{microseconds:.2f} us"
    return f"{microseconds / 1e3:.3f} ms" if microseconds < 1e6 else f"{microseconds / 1e6:.3f} s"
