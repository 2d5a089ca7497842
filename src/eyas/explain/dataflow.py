"""Who reads what whom wrote, and from which level of memory: seen from the memory that commands were given.

The addresses of a profiled call are enough for this. A command that reads a range depends on those that wrote it last;
and what was touched recently is still in a cache.
"""

from __future__ import annotations

from collections.abc import Sequence

from eyas.explain.machine import Level
from eyas.runtime import Event
from eyas.runtime.profile import READ, WRITE, Binding

_PAGE_BYTES, _MOST_PAGES = 4096, 200_000

_Range = tuple[int, int]


def producers(events: Sequence[Event]) -> list[list[int]]:
    """For each command, which earlier ones of the call wrote what it reads."""
    written: list[tuple[int, int, int]] = []  # begin, end, command
    low, high = 0, 0
    found: list[list[int]] = []
    for index, event in enumerate(events):
        makers: set[int] = set()
        for binding in event.bindings:
            # Weights and arguments lie where nothing is written.
            if binding.access & READ and binding.address < high and binding.address + binding.bytes > low:
                makers |= _writers(written, binding)
        found.append(sorted(makers))
        for binding in event.bindings:
            if binding.access & WRITE and binding.bytes:
                begin, end = binding.address, binding.address + binding.bytes
                low, high = (min(low, begin), max(high, end)) if written else (begin, end)
                written.append((begin, end, index))
    return found


def _writers(written: list[tuple[int, int, int]], binding: Binding) -> set[int]:
    """The commands whose writes are still there when the binding is read."""
    makers: set[int] = set()
    unseen: list[_Range] = [(binding.address, binding.address + binding.bytes)]
    for begin, end, command in reversed(written):
        if not unseen:
            break
        if any(first < end and begin < last for first, last in unseen):
            makers.add(command)
            unseen = [piece for one in unseen for piece in _without(one, (begin, end))]
    return makers


def _without(whole: _Range, part: _Range) -> list[_Range]:
    pieces = [(whole[0], min(whole[1], part[0])), (max(whole[0], part[1]), whole[1])]
    return [(first, last) for first, last in pieces if first < last]


def bytes_by_level(events: Sequence[Event], levels: Sequence[Level], workers: int) -> list[list[float]]:
    """For each command, how many of the bytes that it was given come from each level.

    Calls follow one another with the same addresses. A page is found in the first level that holds all that was touched
    since it was, itself included; private caches count once for each worker. A command goes through all of its memory
    side by side.
    """
    total = sum(binding.bytes for event in events for binding in event.bindings)
    page = max(_PAGE_BYTES, total // _MOST_PAGES)
    capacities = [level.bytes * (1 if level.shared else workers) for level in levels[:-1]]
    touched: dict[int, float] = {}  # page -> the clock when it was touched
    clock = 0.0
    out: list[list[float]] = []
    touches = [_touches(event, page) for event in events]
    for repeat in range(2):  # the first call fills the caches
        for pages in touches:
            counts = [0.0] * len(levels)
            for number, count in pages:
                distance = clock - touched.get(number, float("-inf"))
                counts[_level(distance + count, capacities)] += count
                touched[number] = clock
                clock += count
            if repeat:
                out.append(counts)
    return out


def _touches(event: Event, page: int) -> list[tuple[int, float]]:
    """The pages that a command touches, in order, with the bytes of each."""
    timed = []
    for binding in event.bindings:
        pages = range(binding.address // page, (binding.address + max(binding.bytes, 1) - 1) // page + 1)
        each = binding.bytes / len(pages)
        timed += [(position / len(pages), number, each) for position, number in enumerate(pages)]
    return [(number, each) for _, number, each in sorted(timed)]


def _level(distance: float, capacities: Sequence[int]) -> int:
    for index, capacity in enumerate(capacities):
        if distance <= capacity:
            return index
    return len(capacities)
