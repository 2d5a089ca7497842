"""The report as one HTML page that needs nothing else: drawings, a table to sort and search, details of each dispatch.

`page.html` is the frame; what changes is put where it says `{{...}}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from eyas.explain.graph import draw_graph
from eyas.targets.others import BUSY
from eyas.explain.report import Report
from eyas.explain.roofline import draw_roofline
from eyas.explain.timeline import draw_timeline
from eyas.runtime import Event


def make_page(report: Report, events: Sequence[Event]) -> str:
    """The page for a report and the commands of one profiled call."""
    frame = files("eyas.explain").joinpath("page.html").read_text(encoding="utf-8")
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
        "data": _script_data(report.to_json() | {"names": [one.short_name for one in report.dispatches]}),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], frame)


def _script_data(data: Any) -> str:
    """JSON that is safe inside a script element: no tag can end it."""
    return json.dumps(data).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
