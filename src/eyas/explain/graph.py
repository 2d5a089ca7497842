"""The dispatch graph as SVG: a row for each wave, a box for each dispatch coloured by its time, lines for data."""

from __future__ import annotations

from html import escape
from itertools import groupby

from eyas.explain.report import Dispatch, Report
from eyas.pages.colors import heat

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _LEFT = 290, 26, 16, 14, 64
_MOST_LETTERS = 33


def draw_graph(report: Report) -> str:
    """Boxes have `data-dispatch`, lines `data-from` and `data-to`, for the page's script."""
    places, height = _places(report.dispatches)
    columns = max((x for x, _ in places), default=0) // (_WIDTH + _GAP_X) + 1
    # Lines that skip waves run at the right.
    width = _LEFT + columns * (_WIDTH + _GAP_X) + 120
    greatest = max((one.us for one in report.dispatches), default=0.0) or 1.0
    parts = [f'<svg id="graph" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">']
    parts.append("<title>Dispatches by wave, coloured by time</title>")
    for one in report.dispatches:
        parts += [_line(one.index, maker, places) for maker in one.producers]
    shown: set[int] = set()
    for one, (x, y) in zip(report.dispatches, places, strict=True):
        if y not in shown:
            shown.add(y)
            parts.append(f'<text class="wave" x="4" y="{y + 17}">wave {one.wave}</text>')
        parts.append(_box(one, x, y, greatest))
    return "".join([*parts, "</svg>"])


def _places(dispatches: list[Dispatch]) -> tuple[list[tuple[int, int]], int]:
    """Where each box is, and how high the drawing is."""
    places = []
    y = 6
    for _, group in groupby(dispatches, key=lambda one: (one.submission, one.wave)):
        places += [(_LEFT + column * (_WIDTH + _GAP_X), y) for column, _ in enumerate(group)]
        y += _HEIGHT + _GAP_Y
    return places, y


def _box(one: Dispatch, x: int, y: int, greatest_us: float) -> str:
    fill, ink = heat(one.us / greatest_us)
    name = one.short_name if len(one.short_name) <= _MOST_LETTERS else one.short_name[: _MOST_LETTERS - 1] + "…"
    return (
        f'<g class="box" data-dispatch="{one.index}" tabindex="0" style="fill:{ink}"><title>{escape(one.title)}</title>'
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="5" fill="{fill}"/>'
        f'<text x="{x + 8}" y="{y + 17}">{escape(name)}</text>'
        f'<text x="{x + _WIDTH - 8}" y="{y + 17}" text-anchor="end">{one.us:.1f}</text></g>'
    )


def _line(reader: int, maker: int, places: list[tuple[int, int]]) -> str:
    (x1, y1), (x2, y2) = places[maker], places[reader]
    start, end = (x1 + _WIDTH // 2, y1 + _HEIGHT), (x2 + _WIDTH // 2, y2)
    middle = (start[1] + end[1]) // 2
    path = f"M{start[0]} {start[1]} C{start[0]} {middle} {end[0]} {middle} {end[0]} {end[1]}"
    if y2 - y1 > _HEIGHT + _GAP_Y:
        # It skips waves: out to the right, further the longer it is.
        right = max(x1, x2) + _WIDTH
        out = right + min(100, 18 + (y2 - y1) // 12)
        a, b = y1 + _HEIGHT // 2, y2 + _HEIGHT // 2
        path = f"M{x1 + _WIDTH} {a} C{out} {a} {out} {b} {x2 + _WIDTH} {b}"
    return f'<path class="edge" data-from="{maker}" data-to="{reader}" d="{path}"/>'
