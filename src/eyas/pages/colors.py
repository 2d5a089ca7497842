"""Heat: from the colour of what takes no time to that of what takes the most."""

from __future__ import annotations

_RAMP = ((0.0, (226, 232, 240)), (0.25, (253, 230, 138)), (0.6, (249, 146, 60)), (1.0, (200, 30, 30)))


def heat(part: float) -> tuple[str, str]:
    """Fill and text colour for a part of the greatest value, from 0 to 1. The root spreads out the small ones."""
    at = min(max(part, 0.0), 1.0) ** 0.5
    for (low, first), (high, last) in zip(_RAMP, _RAMP[1:], strict=False):
        if at <= high:
            mix = (at - low) / (high - low)
            red, green, blue = (round(a + (b - a) * mix) for a, b in zip(first, last, strict=True))
            return f"#{red:02x}{green:02x}{blue:02x}", "#fff" if at > 0.75 else "#111"
    raise AssertionError("the ramp ends at 1")
