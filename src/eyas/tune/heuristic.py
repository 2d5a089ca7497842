"""How fast a candidate should be, from the machine's facts alone: for the first trials, when nothing is known yet.

It is the reasoning of the strategies' own defaults, kept to what holds for every target: a register tile is bound by
its loads, by the latency of its sums, or by spills; lanes, rows and workgroups that are not full are lost; what a
workgroup holds should be near.
"""

from __future__ import annotations

from math import log2

from eyas.tune.features import Features

_IN_FLIGHT = 8
"""Sums that hide the latency of a multiply-add: 4 clocks, two units."""
_PLAIN = -5.0
_LOADS, _STEP = 0.9, 1.0
"""What a load costs beside a multiply-add, and what a step does beside both."""


def expected_speed(features: Features) -> float:
    """The logarithm (base 2) of the expected speed; only differences between candidates of a dispatch mean a thing."""
    if "tile columns" in features:
        return _gpu_speed(features)
    if "sums" not in features:
        return _PLAIN  # plain loops: whatever is not absurd is faster
    sums = 2 ** features["sums"] - 1
    loads = sums / max(features["multiply-adds/load"], 1e-6)
    speed = sums / max(sums, _LOADS * loads + _STEP)
    if features.get("shape depth", 0.0) > 1.0 and not features["lanes along a sum"]:
        speed *= min(1.0, sums / _IN_FLIGHT)
    # Beyond the register file each sum is stored and loaded in every step.
    speed /= max(1.0, features["registers"]) ** 3
    speed *= features["filled lanes"] * features["filled rows"] * features["filled pieces"] * features["balance"]
    narrow = 2 ** features["width/native"] - 1
    speed *= min(1.0, max(narrow, 1e-3)) ** 0.7 * (0.97 if narrow > 1 else 1.0)
    speed *= 0.8 ** features["lanes apart"]
    # What is beyond a cache is fetched again by the next workgroup.
    speed *= 1.0 - 0.03 * max(0.0, features["group bytes/l2"] - 1.0)
    if features["workgroups/core"] > 6.0:
        speed *= 0.97 ** (features["workgroups/core"] - 6.0)
    if features.get("strategy loops") or (features.get("strategy rows") and features.get("shape flops", 0.0) > 0):
        speed *= 0.6  # there is a strategy that was made for it
    return log2(max(speed, 1e-9))


def _gpu_speed(features: Features) -> float:
    tile = features["multiply-adds/load"]
    speed = tile / (tile + 12.0) if features.get("shape flops", 0.0) > 0 else 1.0
    speed *= features["filled"] * features["balance"] * (1.0 if features["whole subgroups"] else 0.5)
    speed *= min(1.0, 0.4 + features.get("occupancy", 1.0))
    if features.get("shared/most", 0.0) > 1.0:
        speed *= 0.1
    points = 2 ** features["points of a thread"] - 1
    speed *= min(1.0, 64.0 / max(points, 1e-6)) * min(1.0, 0.5 + points / 8)
    speed *= min(1.0, 0.3 + features["waves"])
    return log2(max(speed, 1e-9))
