"""Scatters: each workgroup has a part of the target to itself and looks through all updates for those that go there.

No thread ever waits for another workgroup, and updates of one element take effect in their order, whatever they do:
results are those of a loop over the updates, to the last bit.

- Where new values do not depend on old ones, the last update of each slot counts. Shared memory keeps the number of it
  (an atomic maximum), and every element is written once.
- Else the part is copied first. Runs of elements are changed by all threads, one update after the other. For single
  elements each thread has an update; of several that go to the same element the first goes ahead, then the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.expressions import Number
from eyas.codegen.common.lone import LoneOp
from eyas.codegen.common.sizes import ONE, Size
from eyas.codegen.common.space import Constraint, powers_of_two
from eyas.codegen.gpu.interface import Interface
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.points import each_piece
from eyas.codegen.gpu.scatter_part import Part, part_bytes
from eyas.codegen.gpu.scattered import Scattered
from eyas.codegen.gpu.strategies.base import THREADS, KernelStrategy, knob, powers
from eyas.targets import Target
from eyas.targets.gpu import GpuTarget

_THREADS = 256
# Workgroups for each processor; each of them reads all indices.
_PER_CORE = 4
_MOST_SLOTS = 2048
_UNKNOWN = 1 << 16


@dataclass(frozen=True)
class ScatterKnobs:
    threads: int = knob(THREADS)
    slots: int = knob("slots of the target that one workgroup has")


@dataclass(frozen=True)
class Scatter(KernelStrategy):
    name: ClassVar[str] = "scatter"
    works_in_place: ClassVar[bool] = False
    knobs_type: ClassVar[type] = ScatterKnobs
    kernel: LoneOp
    knobs: ScatterKnobs

    @classmethod
    def choose(cls, found: Analysis, target: Target) -> Scatter | str:
        assert isinstance(target, GpuTarget)
        scattered = Scattered.of(found.lone)
        if isinstance(scattered, str):
            return scattered
        threads = min(_THREADS, target.max_threads)
        count = scattered.slots.static or _UNKNOWN
        slots = 1 if scattered.run != ONE else threads
        while slots < _MOST_SLOTS and slots * _PER_CORE * target.cores < count:
            slots *= 2
        return cls(scattered.kernel, ScatterKnobs(threads, slots))

    @classmethod
    def kernel_of(cls, found: Analysis) -> LoneOp | str:
        scattered = Scattered.of(found.lone)
        return scattered if isinstance(scattered, str) else scattered.kernel

    @classmethod
    def constraints(cls, kernel: LoneOp, of: Any) -> list[Constraint]:
        return powers(of, "threads", "slots")

    @classmethod
    def domains(cls, kernel: LoneOp, target: GpuTarget) -> dict[str, Sequence[int]]:
        return {"threads": powers_of_two(1, target.max_threads), "slots": powers_of_two(1, _MOST_SLOTS)}

    @classmethod
    def shared_bytes(cls, kernel: LoneOp, of: Any) -> Number:
        return part_bytes(of.threads, of.slots)

    @property
    def workgroups(self) -> Sequence[tuple[Size, int]]:
        return [(self._scattered.slots, self.knobs.slots)]

    @property
    def _scattered(self) -> Scattered:
        scattered = Scattered.of(self.kernel)
        assert isinstance(scattered, Scattered)
        return scattered

    def emit(self, interface: Interface) -> None:
        scattered = self._scattered
        part = Part(Memory(self.kernel, interface), scattered, self.knobs.threads, self.knobs.slots)
        if scattered.assigns:
            run = part.assign
        else:
            run = part.change_runs if scattered.run != ONE else part.change_elements
        each_piece(part.memory, scattered.slots, self.knobs.slots, run)
