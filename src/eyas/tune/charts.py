"""The drawings of the report, as SVG: bars before and after, trials one by one, importance of knobs."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import ceil, floor, log2
from typing import TYPE_CHECKING

from eyas.tune.importance import Importance, Knob
from eyas.tune.trials import Status, Trial

if TYPE_CHECKING:
    from eyas.tune.report import Tuned

_CLASSES = {status: status.value.replace(" ", "-") for status in Status}
_ROW, _NAME, _BAR, _TEXT = 30, 250, 460, 150


def draw_before_after(tuned: Sequence[Tuned]) -> str:
    """A pair of bars for each dispatch, and the gain with its interval."""
    if not tuned:
        return "<p class='soft'>No dispatch was tuned.</p>"
    longest = max(one.before_us for one in tuned) or 1.0
    height = _ROW * len(tuned) + 22
    width = _NAME + _BAR + _TEXT
    parts = [f'<svg id="before-after" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">']
    parts.append("<title>Time of each dispatch before and after</title>")
    step = _nice(longest / 4)
    for number in range(int(longest / step) + 1):
        x = _NAME + _BAR * number * step / longest
        parts.append(f'<path class="grid" d="M{x:.1f} 0V{height - 20}"/>')
        parts.append(
            f'<text class="soft" x="{x:.1f}" y="{height - 6}" text-anchor="middle">{number * step:g} us</text>'
        )
    for number, one in enumerate(tuned):
        y = number * _ROW
        before, after = _BAR * one.before_us / longest, _BAR * one.after_us / longest
        parts.append(f'<g class="row" data-dispatch="{number}" tabindex="0"><title>{escape(one.name)}</title>')
        parts.append(f'<rect class="hit" x="0" y="{y}" width="{width}" height="{_ROW}"/>')
        parts.append(f'<text x="{_NAME - 8}" y="{y + 18}" text-anchor="end">{escape(_short(one.name, 38))}</text>')
        parts.append(f'<rect class="before" x="{_NAME}" y="{y + 4}" width="{max(before, 1):.1f}" height="9" rx="2"/>')
        kind = "after" if one.best is not None else "after same"
        parts.append(f'<rect class="{kind}" x="{_NAME}" y="{y + 15}" width="{max(after, 1):.1f}" height="9" rx="2"/>')
        parts.append(f'<text x="{_NAME + max(before, after) + 8:.1f}" y="{y + 18}">{_gain(one)}</text></g>')
    return "".join([*parts, "</svg>"])


def _gain(one: Tuned) -> str:
    if one.best is None or one.best.ratio is None:
        return '<tspan class="soft">default stays</tspan>'
    low, middle, high = one.best.ratio
    return f'<tspan class="gain">{middle:.2f}x</tspan> <tspan class="soft">{low:.2f} to {high:.2f}</tspan>'


_W, _H, _LEFT, _RIGHT, _TOP, _BOTTOM = 330, 190, 40, 10, 30, 24
_LEAST = 0.25
"""Slower than a quarter of the default is drawn at the bottom."""


def draw_convergence(number: int, one: Tuned) -> str:
    """Trials of a dispatch in order: a dot at the ratio of each, ticks below for those without a time, and the best so
    far as a line."""
    ratios = [max(_LEAST, ratio) if (ratio := _ratio(trial)) is not None else None for trial in one.trials]
    known = [ratio for ratio in ratios if ratio is not None]
    low = floor(2 * log2(min([1.0, *known]))) / 2
    high = max(0.25, ceil(4 * log2(max([1.0, *known]) * 1.02)) / 4)
    count = max(len(ratios), 2)

    def x_of(index: float) -> float:
        return _LEFT + (_W - _LEFT - _RIGHT) * (index + 0.5) / count

    def y_of(ratio: float) -> float:
        return _TOP + (_H - _TOP - _BOTTOM) * (high - log2(ratio)) / (high - low)

    parts = [f'<svg class="convergence" data-dispatch="{number}" tabindex="0" width="{_W}" height="{_H}" role="img"']
    parts.append(f' viewBox="0 0 {_W} {_H}"><title>{escape(one.name)}</title>')
    parts.append(f'<text class="name" x="{_LEFT}" y="14">{escape(_short(one.name, 34))}</text>')
    parts.append(f'<text class="soft" x="{_W - _RIGHT}" y="14" text-anchor="end">{one.gain:.2f}x</text>')
    for mark in _marks(low, high):
        y = y_of(mark)
        kind = "grid one" if mark == 1.0 else "grid"
        parts.append(f'<path class="{kind}" d="M{_LEFT} {y:.1f}H{_W - _RIGHT}"/>')
        parts.append(f'<text class="soft" x="{_LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{mark:g}x</text>')
    for index in sorted({0, (count - 1) // 2, count - 1}):
        parts.append(f'<text class="soft" x="{x_of(index):.1f}" y="{_H - 4}" text-anchor="middle">{index + 1}</text>')
    best, line = 1.0, [f"M{_LEFT} {y_of(1.0):.1f}"]
    for index, (trial, ratio) in enumerate(zip(one.trials, ratios, strict=True)):
        x, kind = x_of(index), _CLASSES[trial.status]
        if ratio is None:
            parts.append(f'<path class="fail {kind}" d="M{x:.1f} {_H - _BOTTOM + 1}v7"/>')
            continue
        parts.append(f'<circle class="trial {kind}" cx="{x:.1f}" cy="{y_of(ratio):.1f}" r="2.6"/>')
        if ratio > best and trial.status is Status.TIMED:
            best = ratio
            line.append(f"H{x:.1f}V{y_of(best):.1f}")
    parts.append(f'<path class="best" d="{"".join(line)}H{_W - _RIGHT}"/>')
    return "".join([*parts, "</svg>"])


def _ratio(trial: Trial) -> float | None:
    if not trial.status.has_time:
        return None
    if trial.ratio is not None:
        return trial.ratio[1]
    return trial.baseline_us / trial.us if trial.us and trial.baseline_us else None


def _marks(low: float, high: float) -> list[float]:
    """Where the axis has lines: few, and round."""
    fine = high - low < 1.3
    marks = [0.25, 0.5, 0.7, 0.85, 1.0, 1.2, 1.4, 2.0, 2.8, 4.0] if fine else [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0]
    return [mark for mark in marks if low - 1e-9 <= log2(mark) <= high + 1e-9]


def draw_importance(found: Sequence[Importance]) -> str:
    """For each strategy its knobs by importance, and how trials with each value of a knob went."""
    if not found:
        return "<p class='soft'>Too few trials of one strategy to say which knobs matter.</p>"
    return "".join(_strategy(one) for one in found)


def _strategy(one: Importance) -> str:
    shown = one.knobs[:8]
    greatest = max([knob.importance for knob in shown], default=0.0) or 1.0
    trust = f"{max(one.explained, 0.0):.0%} of the differences between trials it had not seen are explained"
    if one.explained < 0.2:
        trust = "trials that it had not seen are not explained, so do not believe this"
    parts = [f"<h3>{escape(one.strategy)} <span class='soft'>{one.backend}, {one.trials} trials; {trust}</span></h3>"]
    width, row = 900, 62
    height = row * len(shown) + 4
    parts.append(
        f'<svg class="importance" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">'
    )
    parts.append(f"<title>Importance of the knobs of {escape(one.strategy)}</title>")
    for number, knob in enumerate(shown):
        y = number * row
        bar = 180 * knob.importance / greatest
        parts.append(f'<text x="112" y="{y + 34}" text-anchor="end">{escape(_short(knob.name, 18))}</text>')
        parts.append(f'<rect class="bar" x="120" y="{y + 23}" width="{max(bar, 1):.1f}" height="14" rx="2"/>')
        parts.append(f'<text class="soft" x="{126 + bar:.1f}" y="{y + 34}">{knob.importance:.2f}</text>')
        parts += _values(knob, 360, y + 4, width - 370, row - 8)
    return "".join([*parts, "</svg>"])


def _values(knob: Knob, left: float, top: float, width: float, height: float) -> list[str]:
    """A column for each value: the mean speed as a bar, the best as a tick; the full height is a dispatch's best."""
    step = min(width / max(len(knob.values), 1), 46)
    floor_y = top + height - 13
    tall = floor_y - top
    parts = [f'<path class="grid" d="M{left} {floor_y:.1f}h{step * len(knob.values):.1f}"/>']
    for number, (value, middle, best, count) in enumerate(knob.values):
        x = left + number * step
        parts.append(
            f"<g><title>{escape(knob.name)} = {value}: {middle:.0%} of the best in the mean, {best:.0%} at best,"
        )
        parts.append(f" {count} trials</title>")
        size = tall * middle
        parts.append(
            f'<rect class="value" x="{x + 3:.1f}" y="{floor_y - size:.1f}" width="{step - 6:.1f}" height="{size:.1f}"/>'
        )
        tick = floor_y - tall * best
        parts.append(f'<path class="tick" d="M{x + 2:.1f} {tick:.1f}h{step - 4:.1f}"/>')
        parts.append(
            f'<text class="soft" x="{x + step / 2:.1f}" y="{top + height - 1:.1f}" text-anchor="middle">{value}</text>'
            "</g>"
        )
    return parts


def _short(name: str, most: int) -> str:
    """The end of a kernel's name says what it is; the beginning only whose."""
    _, found, rest = name.partition("_dispatch_")
    name = rest.partition("_")[2] or name if found else name
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _nice(value: float) -> float:
    """A round number near a value."""
    if value <= 0:
        return 1.0
    power = 10.0 ** floor(log2(value) / log2(10))
    return next(power * one for one in (1, 2, 5, 10) if power * one >= value)
