"""The report as one HTML page that needs nothing else: drawings, a table to sort and search, details of each dispatch.

`page.html` is the frame; what changes is put where it says `{{...}}`.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from eyas.explain.graph import draw_graph
from eyas.explain.report import Report
from eyas.explain.roofline import draw_roofline
from eyas.explain.timeline import draw_timeline
from eyas.pages.frame import fill, script_data
from eyas.runtime import Event
from eyas.targets.others import BUSY


def make_page(report: Report, events: Sequence[Event]) -> str:
    """The page for a report and the commands of one profiled call."""
    machine, totals = report.machine, report.totals()
    levels = ", ".join(f"{level.name} {level.bytes_per_s / 1e9:.0f}" for level in machine.levels)
    busy = f"; other programs had {report.others:.0%} of the CPUs meanwhile" if report.others > BUSY else ""
    low = "; measured beside other programs, so maybe too low" if machine.disturbed else ""
    values = {
        "title": escape(f"{report.module} {report.entry}".strip()),
        "call": f"{report.call_us / 1e3:.3f} ms (median, without timers){busy}",
        "dispatches": f"{len(report.dispatches)}, {totals['dispatch_us'] / 1e3:.3f} ms",
        "limit": f"{totals['limit_us'] / 1e3:.3f} ms",
        "waiting": f"{totals['idle_us'] / 1e3:.3f} ms, between waves {totals['gap_us'] / 1e3:.3f} ms",
        "where": escape(f"{report.target}, {report.driver}, {machine.workers} threads, {machine.cpu}"),
        "limits": escape(f"{machine.flops_per_s / 1e9:.0f} GFLOP/s of multiply-adds; reads in GB/s: {levels}{low}"),
        "timeline": draw_timeline(report, events),
        "roofline": draw_roofline(report),
        "graph": draw_graph(report),
        "data": script_data(report.to_json() | {"names": [one.short_name for one in report.dispatches]}),
    }
    return fill("eyas.explain", "page.html", values)
