"""`eyas bench`: how long a call takes, and where the time goes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eyas.cli.common import (
    DEVICE_HELP,
    ENTRY_HELP,
    INPUT_HELP,
    PRECISION_HELP,
    TARGET_HELP,
    TUNING_HELP,
    VARIANT_HELP,
    choose_entry,
    make_inputs,
    open_module,
    print_json,
    print_table,
    show_grid,
    show_time,
)
from eyas.errors import UsageError

if TYPE_CHECKING:
    from eyas.explain.report import Dispatch, Report
    from eyas.runtime import Module

NAME = "bench"
_WARM_UP_SECONDS, _SECONDS, _LEAST_RUNS, _MOST_RUNS = 0.3, 2.0, 10, 10_000


def command(
    module: Annotated[Path, typer.Argument(help="A .eyas module, or a model, which is compiled first.")],
    input: Annotated[list[str] | None, typer.Option("-i", "--input", help=INPUT_HELP)] = None,
    entry: Annotated[str, typer.Option(help=ENTRY_HELP)] = "",
    target: Annotated[str, typer.Option(help=TARGET_HELP)] = "",
    precision: Annotated[str | None, typer.Option(help=PRECISION_HELP)] = None,
    tuning_spec: Annotated[list[Path] | None, typer.Option(help=TUNING_HELP)] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="[default: the CPUs of this process]")] = None,
    variant: Annotated[str | None, typer.Option(help=VARIANT_HELP)] = None,
    device: Annotated[str | None, typer.Option(help=DEVICE_HELP)] = None,
    runs: Annotated[int | None, typer.Option(min=1, help="[default: as many as fit into two seconds]")] = None,
    per_dispatch: Annotated[
        bool,
        typer.Option(
            "--per-dispatch",
            help="Time of each kernel, slowest first; `idle` is the part of it that workers waited for others.",
        ),
    ] = False,
    dispatch: Annotated[
        str, typer.Option(metavar="NAME", help="One dispatch of a model by itself, by its name or a part of it.")
    ] = "",
    cold: Annotated[
        bool, typer.Option("--cold", help="With --dispatch: operands come from memory, not from a cache.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="All numbers as JSON.")] = False,
) -> None:
    """Measure a module: median, spread, and GFLOP/s where known."""
    if dispatch or cold:
        from eyas.cli.bench_dispatch import bench_dispatch

        if per_dispatch or variant is not None or entry or not dispatch:
            raise UsageError("--dispatch NAME runs one dispatch of a model: without --per-dispatch, --variant, --entry")
        options = (target, precision, tuning_spec or (), threads, device)
        report = bench_dispatch(module, input or [], *options, dispatch, cold, runs)
        print_json(report) if json else print_dispatch(report)
        return
    loaded = open_module(
        module,
        device,
        threads,
        quiet=json,
        target=target,
        variant=variant,
        precision=precision,
        tuning_spec=tuning_spec,
    )
    function = choose_entry(loaded, entry)
    inputs = make_inputs(input or [], loaded.functions[function].signature)
    times = measure(loaded, inputs, runs, function)
    # The count is that of all entry points together.
    flops = loaded.manifest.get("flops") if len(loaded.functions) == 1 else None
    report: dict[str, Any] = {
        "module": str(module),
        "target": loaded.manifest.get("provenance", {}).get("target", ""),
        "device": loaded.device.info(),
        **statistics(times),
        "flops": flops,
        "gflop_per_s": round(flops / (statistics(times)["median_us"] * 1e3), 3) if flops else None,
    }
    if per_dispatch:
        report["dispatches"] = profile(loaded, inputs, min(len(times), 40), function)
    if json:
        print_json(report)
    else:
        _print(report)


def print_dispatch(report: dict[str, Any]) -> None:
    """What `--dispatch` measured, in three lines."""
    print(f"{report['dispatch']} for {report['target']} on {report['device']}, {report['operands']} operands")
    speed = f", {report['gflop_per_s']:.1f} GFLOP/s" if report["gflop_per_s"] else ""
    median, least, low, high = (show_time(report[name]) for name in ("median_us", "min_us", "p5_us", "p95_us"))
    print(f"median {median}, min {least}, 5 to 95 %: {low} to {high}, {report['runs']} runs{speed}, ", end="")
    print(f"{report['gb_per_s']:.1f} GB/s; in the model {show_time(report['in_model_us'])}")
    print(f"{report['strategy']} {report['knobs']}")


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


def profile(module: Module, inputs: list[Any], runs: int, entry: str = "") -> list[dict[str, Any]]:
    """One row for each kernel, slowest first: all its dispatches of one call together."""
    from eyas.explain.machine import this_machine
    from eyas.explain.report import make_report

    function = choose_entry(module, entry)
    measured = module.profile(*inputs, runs=runs, entry=function)
    report = make_report(module.manifest, function, measured, [], this_machine(module.device))
    kernels: dict[str, list[Dispatch]] = {}
    for dispatch in report.dispatches:
        kernels.setdefault(dispatch.kernel, []).append(dispatch)
    return sorted((_kernel_row(same, report) for same in kernels.values()), key=lambda row: -row["us"])


def _kernel_row(same: list[Dispatch], report: Report) -> dict[str, Any]:
    first, machine, us = same[0], report.machine, sum(one.us for one in same)
    seconds = max(us, 1e-3) / 1e6
    flops = None if first.flops is None else first.flops * len(same)
    bytes_ = sum(one.bytes for one in same)
    return {
        "name": first.kernel,
        "dispatches": len(same),
        "us": round(us, 2),
        "share": round(sum(one.share for one in same), 4),
        "flops": flops,
        "gflop_per_s": round(flops / seconds / 1e9, 2) if flops else None,
        "of_peak": round(flops / seconds / machine.flops_per_s, 4) if flops else None,
        "bytes": bytes_,
        "gb_per_s": round(bytes_ / seconds / 1e9, 2),
        "of_bandwidth": round(bytes_ / seconds / machine.memory.bytes_per_s, 4),
        "of_limit": round(sum(one.limit_us for one in same) / max(us, 1e-3), 4),
        "idle": round(sum(one.idle_us for one in same) / (us * machine.workers), 4) if us else 0.0,
        "grid": list(first.grid),
        "strategy": first.strategy,
        "knobs": first.knobs,
        "why": max(same, key=lambda one: one.us).why,
    }


def _print(report: dict[str, Any]) -> None:
    device = report["device"]
    print(f"{report['module']} for {report['target']} on {device['driver']}, {device['workers']} threads")
    speed = f", {report['gflop_per_s']:.1f} GFLOP/s" if report["gflop_per_s"] else ""
    median, least, low, high = (show_time(report[name]) for name in ("median_us", "min_us", "p5_us", "p95_us"))
    print(f"median {median}, min {least}, 5 to 95 %: {low} to {high}, {report['runs']} runs{speed}")
    if "dispatches" in report:
        columns = ("us", "share", "GFLOP/s", "peak", "GB/s", "mem", "limit", "idle", "n")
        rows: list[tuple[Any, ...]] = [(*columns, "grid", "strategy", "knobs", "kernel")]
        for r in report["dispatches"]:
            speed = (f"{r['gflop_per_s']:.1f}", f"{r['of_peak']:.0%}") if r["flops"] else ("", "")
            memory = f"{r['gb_per_s']:.1f}", f"{r['of_bandwidth']:.0%}", f"{r['of_limit']:.0%}", f"{r['idle']:.0%}"
            numbers = f"{r['us']:.1f}", f"{r['share']:.1%}", *speed, *memory, r["dispatches"]
            rows.append((*numbers, show_grid(r["grid"]), r["strategy"], r["knobs"], r["name"]))
        print_table(rows, numbers=range(len(columns)))
