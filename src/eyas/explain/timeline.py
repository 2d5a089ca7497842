"""A call as SVG: a line for each worker, its dispatches coloured by their time; what is empty is waiting."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from eyas.explain.report import Report
from eyas.pages.colors import heat
from eyas.runtime import Event

_WIDTH, _ROW, _LEFT, _BOTTOM = 1400, 24, 70, 22
_LEAST_WIDTH = 0.2


def draw_timeline(report: Report, events: Sequence[Event]) -> str:
    """Pieces have `data-dispatch`, for the page's script."""
    workers = report.machine.workers
    ran = [event for event in events if event.end_ns]
    start_ns = min((event.start_ns for event in ran), default=0)
    length_ns = max((event.end_ns for event in ran), default=1) - start_ns or 1
    height = workers * _ROW + _BOTTOM
    scale = (_WIDTH - _LEFT - 30) / length_ns
    greatest = max((one.us for one in report.dispatches), default=0.0) or 1.0
    parts = [f'<svg id="timeline" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" role="img">']
    parts.append("<title>What each worker does in a call</title>")
    for worker in range(workers):
        parts.append(f'<text x="4" y="{worker * _ROW + 16}">worker {worker}</text>')
        parts.append(
            f'<rect class="idle" x="{_LEFT}" y="{worker * _ROW + 3}" width="{length_ns * scale:.1f}" height="18"/>'
        )
    for one, event in zip(report.dispatches, events, strict=True):
        fill, _ = heat(one.us / greatest)
        for share in event.shares:
            x = _LEFT + (share.start_ns - start_ns) * scale
            width = max((share.end_ns - share.start_ns) * scale, _LEAST_WIDTH)
            parts.append(
                f'<rect class="piece" data-dispatch="{one.index}" x="{x:.2f}" y="{share.worker * _ROW + 3}"'
                f' width="{width:.2f}" height="18" fill="{fill}"><title>{escape(one.title)}</title></rect>'
            )
    for tick in range(6):
        x, label = _LEFT + length_ns * scale * tick / 5, f"{length_ns * tick / 5e3:.0f} us"
        parts.append(f'<text x="{x:.1f}" y="{height - 6}" text-anchor="middle">{label}</text>')
    return "".join([*parts, "</svg>"])
