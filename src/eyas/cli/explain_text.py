"""The report as text."""

from __future__ import annotations

from typing import Any

from eyas.cli.common import print_table, show_bytes, show_grid, show_time
from eyas.explain.compare import compare
from eyas.explain.report import Dispatch, Report
from eyas.targets.others import BUSY

_MOST_NAME, _EXPLAINED, _CHANGES, _KINDS = 60, 10, 15, 12


def print_report(report: Report, top: int | None = None, in_order: bool = False) -> None:
    """A row for each dispatch, slowest first unless `in_order`; totals; why the slowest are not faster."""
    machine = report.machine
    print(f"{report.module} for {report.target} on {report.driver}, {machine.workers} threads")
    levels = ", ".join(f"{level.name} {level.bytes_per_s / 1e9:.0f}" for level in machine.levels)
    print(f"{machine.cpu}: {machine.flops_per_s / 1e9:.0f} GFLOP/s of multiply-adds; reads in GB/s: {levels}")
    if machine.disturbed:
        print("measured beside other programs: these limits may be too low, and are not kept")
    if report.others > BUSY:
        print(f"other programs had {report.others:.0%} of the CPUs: the times are those of a busy machine")
    slowest = sorted(report.dispatches, key=lambda one: -one.us)
    shown = slowest if top is None else slowest[:top]
    left_out = len(slowest) - len(shown)
    if in_order:
        shown = sorted(shown, key=lambda one: one.index)
    print()
    rows = [
        ("#", "us", "share", "GFLOP/s", "peak", "GB/s", "mem", "limit", "idle", "grid", "strategy", "knobs", "what")
    ]
    print_table([*rows, *(_row(one, machine.workers) for one in shown)], numbers=range(9))
    if left_out:
        rest = sum(one.us for one in slowest[len(shown) :])
        print(f"... {left_out} more dispatches, {show_time(rest)}")
    _print_totals(report)
    _print_kinds(report)
    _print_reasons([one for one in slowest if one in shown][:_EXPLAINED])


def _row(one: Dispatch, workers: int) -> tuple[str, ...]:
    has_flops = bool(one.flops)
    return (
        str(one.index),
        f"{one.us:.1f}",
        f"{one.share:.1%}",
        f"{one.gflop_per_s:.1f}" if has_flops and one.gflop_per_s else "",
        f"{one.of_peak:.0%}" if has_flops and one.of_peak is not None else "",
        f"{one.gb_per_s:.1f}",
        f"{one.of_bandwidth:.0%}",
        f"{one.of_limit:.0%}",
        f"{one.idle_us / (one.us * workers):.0%}" if one.us else "",
        show_grid(one.grid),
        one.strategy,
        one.knobs,
        describe(one),
    )


def describe(one: Dispatch) -> str:
    """The kernel and the model's names, cut where they are long."""
    text = one.short_name + (f" ({', '.join(one.sources)})" if one.sources else "")
    return text if len(text) <= _MOST_NAME else text[: _MOST_NAME - 3] + "..."


def _print_totals(report: Report) -> None:
    totals = report.totals()
    speed = ""
    if totals["flops"]:
        reached = totals["flops"] / (report.call_us * 1e-6) if report.call_us else 0.0
        speed = f", {reached / 1e9:.1f} GFLOP/s, {reached / report.machine.flops_per_s:.0%} of peak"
    print()
    print(f"a call {show_time(report.call_us)} (median without timers; fastest {show_time(report.fastest_us)}){speed}")
    print(
        f"dispatches {show_time(report.dispatch_us)}, between waves {show_time(report.gap_us)}; workers waited"
        f" {show_time(report.idle_us)} in sum; moved {show_bytes(totals['bytes'])}"
    )
    if report.dispatch_us:
        part = report.limit_us / report.dispatch_us
        print(f"at this machine's limits the dispatches take {show_time(report.limit_us)}, {part:.0%} of that")


def _print_kinds(report: Report) -> None:
    kinds = report.kinds()
    if len(kinds) < 2:
        return
    total = report.dispatch_us or 1.0
    rows = [("us", "share", "limit", "n", "kind")]
    rows += [(f"{us:.1f}", f"{us / total:.1%}", f"{limit:.0%}", str(n), kind) for kind, n, us, limit in kinds[:_KINDS]]
    print()
    print_table(rows, numbers=range(4))


def _print_reasons(dispatches: list[Dispatch]) -> None:
    if dispatches:
        print("\nwhy not better")
    for one in dispatches:
        print(f"\n#{one.index} {one.kernel}, {one.us:.1f} us")
        if one.sources:
            print(f"    is {', '.join(one.sources)}")
        for reason in one.why:
            print(f"    {reason}")


def print_changes(report: Report, before: dict[str, Any], name: str) -> None:
    """What became faster and slower since a report that was written before."""
    was_us = float(before["totals"]["call_us"])
    ratio = f", {was_us / report.call_us:.2f} x as fast" if report.call_us else ""
    print(f"\nagainst {name}: a call {show_time(was_us)} then, {show_time(report.call_us)} now{ratio}\n")
    changes = compare(before["dispatches"], report.to_json()["dispatches"])
    rows = [("before", "now", "difference", "nodes")]
    for one in changes[:_CHANGES]:
        nodes = ", ".join(one.nodes) or "(dispatches without names)"
        shown = nodes if len(nodes) <= _MOST_NAME else nodes[: _MOST_NAME - 3] + "..."
        rows.append((f"{one.before_us:.1f}", f"{one.after_us:.1f}", f"{one.difference_us:+.1f}", shown))
    print_table(rows, numbers=range(3))
    rest = changes[_CHANGES:]
    if rest:
        print(f"... {len(rest)} more, {sum(one.difference_us for one in rest):+.1f} us together")
