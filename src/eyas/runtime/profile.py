"""What profiling saw of a call: `Module.profile` gives one Event for each command."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

READ, WRITE = 1, 2  # bits of Binding.access


@dataclass(frozen=True)
class Share:
    """What one worker did of a command."""

    worker: int
    workgroups: int
    start_ns: int
    end_ns: int
    busy_ns: int  # end - start, less what it did between two chunks of the command


@dataclass(frozen=True)
class Binding:
    """Memory that a command was given."""

    address: int
    bytes: int
    access: int  # READ, WRITE or both

    def overlaps(self, other: Binding) -> bool:
        return self.address < other.address + other.bytes and other.address < self.address + self.bytes


@dataclass(frozen=True)
class Event:
    """One command of a profiled call. Times are nanoseconds of the monotonic clock; 0 when it had no work."""

    name: str  # the kernel, or "fill", "copy", "update"
    submission: int  # which of the call, from 0
    wave: int  # commands of one wave may run at the same time
    grid: tuple[int, int, int]  # workgroups, or pieces of a transfer
    start_ns: int
    end_ns: int
    shares: tuple[Share, ...] = field(default=(), repr=False)  # of the workers that had a part in it
    bindings: tuple[Binding, ...] = field(default=(), repr=False)
    constants: tuple[int, ...] = field(default=(), repr=False)  # push constants: sizes known only at run time

    @staticmethod
    def of(raw: tuple) -> Event:
        """From what the C core gives."""
        name, submission, wave, grid, start_ns, end_ns, shares, bindings, constants = raw
        by_worker, memory = tuple(Share(*one) for one in shares), tuple(Binding(*one) for one in bindings)
        return Event(name, submission, wave, grid, start_ns, end_ns, by_worker, memory, constants)

    @property
    def workgroups(self) -> int:
        return prod(self.grid)

    @property
    def busy_ns(self) -> int:
        """Summed over workers."""
        return sum(share.busy_ns for share in self.shares)

    @property
    def duration_us(self) -> float:
        return (self.end_ns - self.start_ns) / 1e3
