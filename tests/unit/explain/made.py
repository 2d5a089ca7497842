"""Made-up events and machines, so that what is computed from them can be said exactly."""

from __future__ import annotations

from eyas.explain.machine import Level, Machine
from eyas.runtime.profile import READ, WRITE, Binding, Event, Share

MACHINE = Machine(
    cpu="made up",
    workers=2,
    flops_per_s=200e9,
    levels=(
        Level("L2", 1 << 20, False, 100e9),
        Level("L3", 8 << 20, True, 50e9),
        Level("memory", 0, True, 10e9),
    ),
)


def event(
    name: str,
    wave: int,
    *busy: tuple[int, int],
    reads: tuple[tuple[int, int], ...] = (),
    writes: tuple[tuple[int, int], ...] = (),
    grid: tuple[int, int, int] = (4, 1, 1),
) -> Event:
    """An event with (start, end) in microseconds for each worker in turn, and memory as (address, bytes)."""
    shares = [Share(worker, 2, a * 1000, b * 1000, (b - a) * 1000) for worker, (a, b) in enumerate(busy) if b > a]
    bindings = [Binding(*one, READ) for one in reads] + [Binding(*one, WRITE) for one in writes]
    start = min((share.start_ns for share in shares), default=0)
    end = max((share.end_ns for share in shares), default=0)
    return Event(name, 0, wave, grid, start, end, tuple(shares), tuple(bindings))
