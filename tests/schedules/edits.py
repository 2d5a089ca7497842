# ruff: noqa: B023 - a change is made before its loop goes on
"""Every field of a schedule with other values: legal ones, and those that must be refused."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

HUGE = 2**40
NUMBERS = {
    "width": (-1, 0, 1, 2, 3, 4, 8, 16, 32, 64, 128, HUGE),
    "vectors": (-1, 0, 1, 2, 3, 4, 7, 16, 17, HUGE),
    "unroll": (-1, 0, 1, 2, 3, 4, 5, 8, 16, 33, 64, 65, HUGE),
}
LOOPS = (None, -1, 0, 1, 2, 3, 4, 5, 99)
INSIDE = ((), (0,), (1,), (2,), (0, 1), (1, 0), (0, 0), (2, 3), (-1,), (99,))
PIECES = (-1, 0, 1, 2, 3, 7, 10, 16, 24, 32, 64, 100, 2**31 - 1, HUGE)
BINDINGS = (-1, 0, 1, 2, 3, 99)
ROWS = (-1, 0, 1, 2, 3, 5, 24, 64, 1000, HUGE)
WRONG_TYPES = ("16", True, 1.5, [1], {"one": 1})
STRATEGIES = ("transforms", "windows", "contraction", "attention", "rows", "loops", "contractoin")


@dataclass(frozen=True)
class Edit:
    """What was changed, in words, and the strategy and schedule that it gives."""

    what: str
    strategy: str
    schedule: dict[str, Any]


def edits(strategy: str, schedule: dict[str, Any]) -> Iterator[Edit]:
    """Each field of a schedule, one at a time."""

    def edit(what: str, change) -> Edit:
        changed = copy.deepcopy(schedule)
        change(changed)
        return Edit(what, strategy, changed)

    for number, tile in enumerate(schedule.get("tiles", [])):
        where = f"tiles[{number}]"
        for field, values in NUMBERS.items():
            for value in values:
                if value != tile.get(field, 1):
                    yield edit(f"{where}.{field} = {value}", lambda s: s["tiles"][number].update({field: value}))
        for field in ("loop", "unroll_loop"):
            for value in LOOPS:
                if value != tile.get(field):
                    yield edit(f"{where}.{field} = {value}", lambda s: _set(s["tiles"][number], field, value))
        for value in INSIDE:
            if list(value) != tile.get("inside", []):
                text = f"{where}.inside = {list(value)}"
                yield edit(text, lambda s: s["tiles"][number].update(inside=list(value)))
        yield edit(f"{where}: loops swapped", lambda s: _swap(s["tiles"][number]))
    yield edit("tiles: one less", lambda s: s["tiles"].pop())
    yield edit("tiles: one more", lambda s: s["tiles"].append({}))

    for number, axis in enumerate(schedule.get("grid", [])):
        where = f"grid[{number}]"
        for value in PIECES:
            if value != axis["tile"]:
                yield edit(f"{where}.tile = {value}", lambda s: s["grid"][number].update(tile=value))
        for value in LOOPS[1:]:
            if value != axis["loop"]:
                yield edit(f"{where}.loop = {value}", lambda s: s["grid"][number].update(loop=value))
        yield edit(f"{where}: none", lambda s: s["grid"].pop(number))
        yield edit(f"{where}: twice", lambda s: s["grid"].append(dict(axis)))
    for loop in range(4):
        for piece in (1, 3, 10, 16, 24, 64):
            axis = {"loop": loop, "tile": piece}
            yield edit(f"grid: only {axis}", lambda s: s.update(grid=[axis]))
    whole = [{"loop": loop, "tile": 5} for loop in range(4)]
    yield edit("grid: three axes", lambda s: s.update(grid=whole[:3]))
    yield edit("grid: three axes, the other way", lambda s: s.update(grid=whole[2::-1]))
    yield edit("grid: four axes", lambda s: s.update(grid=whole))

    for number, panels in enumerate(schedule.get("packed", [])):
        where = f"packed[{number}]"
        for value in (-1, 0, 1, 8, 16, 32, 48, 64, HUGE):
            if value != panels["lanes"]:
                yield edit(f"{where}.lanes = {value}", lambda s: s["packed"][number].update(lanes=value))
        for value in BINDINGS:
            if value != panels["binding"]:
                yield edit(f"{where}.binding = {value}", lambda s: s["packed"][number].update(binding=value))
        yield edit(f"{where}: none", lambda s: s["packed"].pop(number))
        yield edit(f"{where}: twice", lambda s: s["packed"].append(dict(panels)))
        for vectors, lanes in ((1, 16), (2, 32), (4, 64)):  # consistent with the tile, but not with the weights
            yield edit(
                f"{where}: {lanes} lanes, and the tile with them",
                lambda s: (s["packed"][number].update(lanes=lanes), s["tiles"][0].update(width=16, vectors=vectors)),
            )
    for binding in BINDINGS:
        lanes = _lanes(schedule)
        yield edit(f"packed: {binding}", lambda s: s.update(packed=[{"binding": binding, "lanes": lanes}]))
        yield edit(f"staged: {binding}", lambda s: s.update(staged=[binding]))
    yield edit("staged: none", lambda s: s.pop("staged", None))
    yield edit("staged: two", lambda s: s.update(staged=[0, 1]))

    for nest in (0, 1, 2, 3, -1, 99):
        yield edit(f"block.nest = {nest}", lambda s: s.update(block={**s.get("block", {"rows": 4}), "nest": nest}))
    for rows in ROWS:
        yield edit(f"block.rows = {rows}", lambda s: s.update(block={**s.get("block", {"nest": 0}), "rows": rows}))
    yield edit("block: none", lambda s: s.pop("block", None))

    for name in STRATEGIES:
        if name != strategy:
            yield Edit(f"strategy {name}", name, copy.deepcopy(schedule))
    yield Edit("strategy loops, without a schedule", "loops", {})


def misspelt(strategy: str, schedule: dict[str, Any]) -> Iterator[Edit]:
    """Fields that are unknown, missing or of another type."""
    for value in WRONG_TYPES:
        for field in ("tiles", "grid", "packed", "staged", "block"):
            yield Edit(f"{field} = {value!r}", strategy, {**copy.deepcopy(schedule), field: value})
        for field in ("loop", "width", "vectors", "unroll_loop", "unroll", "inside"):
            if field == "inside" and value == [1]:
                continue
            yield Edit(f"tiles[0].{field} = {value!r}", strategy, {**schedule, "tiles": [{field: value}]})
        for field in ("loop", "tile"):
            axis = {"loop": 0, "tile": 1, field: value}
            yield Edit(f"grid[0].{field} = {value!r}", strategy, {**schedule, "grid": [axis]})
    yield Edit("tile", strategy, {**schedule, "tile": []})
    yield Edit("tiles[0].with", strategy, {**schedule, "tiles": [{"with": 16}]})
    yield Edit("grid[0] without a tile", strategy, {**schedule, "grid": [{"loop": 0}]})
    yield Edit("packed[0] without lanes", strategy, {**schedule, "packed": [{"binding": 0}]})
    yield Edit("block without rows", strategy, {**schedule, "block": {"nest": 0}})


def together(strategy: str, schedule: dict[str, Any], random_: random.Random, count: int) -> Iterator[Edit]:
    """Two or three edits at once."""
    for _ in range(count):
        one = Edit("", strategy, schedule)
        for _ in range(random_.choice((2, 3))):
            if not one.schedule.get("tiles"):
                break
            step = random_.choice(list(edits(one.strategy, one.schedule)))
            one = Edit(f"{one.what}; {step.what}".strip("; "), step.strategy, step.schedule)
        yield one


def _lanes(schedule: dict[str, Any]) -> int:
    tile = schedule["tiles"][0] if schedule.get("tiles") else {}
    return tile.get("width", 1) * tile.get("vectors", 1)


def _set(tile: dict[str, Any], field: str, value: int | None) -> None:
    if value is None:
        tile.pop(field, None)
    else:
        tile[field] = value


def _swap(tile: dict[str, Any]) -> None:
    loop, rows = tile.get("loop"), tile.get("unroll_loop")
    _set(tile, "loop", rows)
    _set(tile, "unroll_loop", loop)
