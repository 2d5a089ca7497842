"""The roofline as SVG (Williams, Waterman and Patterson 2009): speed over arithmetic per byte, and the machine's roofs.

A dispatch is a dot, coloured by its time. Those without counted arithmetic have no place in it.
"""

from __future__ import annotations

from html import escape
from math import ceil, floor, log10

from eyas.explain.report import Report
from eyas.pages.colors import heat

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 760, 400, 60, 90, 16, 44


def draw_roofline(report: Report) -> str:
    """Dots have `data-dispatch`, for the page's script."""
    counted = [one for one in report.dispatches if one.flops and one.bytes and one.gflop_per_s]
    machine = report.machine
    peak = machine.flops_per_s / 1e9
    intensities = [(one.flops or 0) / one.bytes for one in counted]
    ridges = [machine.flops_per_s / level.bytes_per_s for level in machine.levels]
    x_axis = _Axis([*intensities, *ridges, 0.1], _LEFT, _WIDTH - _RIGHT)
    speeds = [one.gflop_per_s or 0.0 for one in counted]
    y_axis = _Axis([*speeds, peak * 1.5, peak / 100], _HEIGHT - _BOTTOM, _TOP)
    parts = [f'<svg id="roofline" width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">']
    parts.append("<title>Roofline: GFLOP/s over flops per byte</title>")
    parts += _grid(x_axis, y_axis)
    names: list[float] = []  # heights of those that are written
    for level in machine.levels:
        parts += _roof(level.name, level.bytes_per_s / 1e9, peak, x_axis, y_axis, names)
    y = y_axis(peak)
    parts.append(f'<text class="roof-name" x="{_WIDTH - _RIGHT + 4}" y="{y + 4:.1f}">{peak:.0f} GFLOP/s</text>')
    greatest = max((one.us for one in report.dispatches), default=0.0) or 1.0
    # The slowest are drawn last, on top.
    for one in sorted(counted, key=lambda one: one.us):
        x, y = x_axis((one.flops or 0) / one.bytes), y_axis(one.gflop_per_s or 0.0)
        radius = 3 + 9 * (one.us / greatest) ** 0.5
        fill, _ = heat(one.us / greatest)
        parts.append(
            f'<circle class="dot" data-dispatch="{one.index}" tabindex="0" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"'
            f' fill="{fill}"><title>{escape(one.title)}</title></circle>'
        )
    return "".join([*parts, "</svg>"])


class _Axis:
    """A logarithmic axis over whole decades that hold all values."""

    def __init__(self, values: list[float], start: float, end: float) -> None:
        positive = [value for value in values if value > 0]
        self.low, self.high = floor(log10(min(positive))), ceil(log10(max(positive)))
        self.start, self.end = start, end

    def __call__(self, value: float) -> float:
        part = (log10(value) - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)

    @property
    def decades(self) -> list[int]:
        return list(range(self.low, self.high + 1))


def _grid(x_axis: _Axis, y_axis: _Axis) -> list[str]:
    parts = []
    for decade in x_axis.decades:
        x = x_axis(10.0**decade)
        parts.append(f'<path class="grid" d="M{x:.1f} {_TOP}V{_HEIGHT - _BOTTOM}"/>')
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - 26}" text-anchor="middle">{_power(decade)}</text>')
    for decade in y_axis.decades:
        y = y_axis(10.0**decade)
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_power(decade)}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{_HEIGHT - 6}" text-anchor="middle">flops per byte</text>')
    parts.append(
        f'<text x="14" y="{_HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 14 {_HEIGHT / 2})">GFLOP/s</text>'
    )
    return parts


def _roof(name: str, gb_per_s: float, peak: float, x_axis: _Axis, y_axis: _Axis, names: list[float]) -> list[str]:
    """The slope of one level of memory up to the peak, and along it. Its name stays clear of those above."""
    left = max(10.0**x_axis.low, 10.0**y_axis.low / gb_per_s)
    ridge, right = peak / gb_per_s, 10.0**x_axis.high
    points = [(left, left * gb_per_s), (ridge, peak), (right, peak)]
    path = "L".join(f"{x_axis(x):.1f} {y_axis(y):.1f}" for x, y in points)
    x, y = x_axis(left) + 4, max([y_axis(left * gb_per_s) + 12, *(one + 12 for one in names)])
    names.append(y)
    return [
        f'<path class="roof" d="M{path}"/>',
        f'<text class="roof-name" x="{x:.1f}" y="{y:.1f}">{name} {gb_per_s:.0f} GB/s</text>',
    ]


def _power(decade: int) -> str:
    return f"{10.0**decade:g}"
