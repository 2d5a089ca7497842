"""Sorts of rows, stable, by any comparison: a workgroup for each row, a merge sort of the places of its elements.

The places are in shared memory where a row is known to be short enough, else in scratch memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, gpu

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.expressions import Number, one_of, select
from eyas.codegen.common.lone import SORT, LoneOp
from eyas.codegen.common.places import Filled
from eyas.codegen.common.sizes import Size, product
from eyas.codegen.common.space import Constraint, law, powers_of_two
from eyas.codegen.gpu.interface import Interface
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.points import decode, each_piece
from eyas.codegen.gpu.sorted_row import SortedRow
from eyas.codegen.gpu.strategies.base import THREADS, KernelStrategy, knob, powers
from eyas.targets import Target
from eyas.targets.gpu import GpuTarget

_FEW_THREADS, _MOST_THREADS = 32, 1024
# Elements of one thread: merging two runs waits for all threads, so that few of them wait less.
_ELEMENTS = 4
_UNKNOWN = 1024
# Two places of 32 bits.
_BYTES = 8


@dataclass(frozen=True)
class SortKnobs:
    threads: int = knob(THREADS)
    near: int = knob("1: places are in shared memory; 0: in scratch memory")


@dataclass(frozen=True)
class Sort(KernelStrategy):
    name: ClassVar[str] = "sort"
    works_in_place: ClassVar[bool] = False
    knobs_type: ClassVar[type] = SortKnobs
    kernel: LoneOp
    knobs: SortKnobs

    @classmethod
    def choose(cls, found: Analysis, target: Target) -> Sort | str:
        assert isinstance(target, GpuTarget)
        kernel = cls.kernel_of(found)
        if isinstance(kernel, str):
            return kernel
        length = _length(kernel).static
        threads, most = _FEW_THREADS, min(_MOST_THREADS, target.max_threads)
        while threads < most and threads * _ELEMENTS < (_UNKNOWN if length is None else length):
            threads *= 2
        near = length is not None and length * _BYTES <= target.shared_bytes
        return cls(kernel, SortKnobs(min(threads, most), int(near)))

    @classmethod
    def kernel_of(cls, found: Analysis) -> LoneOp | str:
        kernel = found.lone
        if kernel is None or kernel.op.name != SORT:
            return "it is no sort"
        if any(isinstance(one, Filled) and one.scalar is None for one in kernel.operands):
            return "what it sorts is undefined"
        if any(isinstance(result.element, mlir.ComplexType) for result in kernel.results if result is not None):
            return "it is of complex numbers"
        return kernel

    @classmethod
    def constraints(cls, kernel: LoneOp, of: Any) -> list[Constraint]:
        nears = (0,) if _length(kernel).static is None else (0, 1)
        near = law(one_of(of.near, nears), "near is {near}; it must be 0, or 1 for rows of a known length")
        return [near, *powers(of, "threads")]

    @classmethod
    def domains(cls, kernel: LoneOp, target: GpuTarget) -> dict[str, Sequence[int]]:
        return {"threads": powers_of_two(1, target.max_threads), "near": (0, 1)}

    @classmethod
    def shared_bytes(cls, kernel: LoneOp, of: Any) -> Number:
        return select(of.near > 0, (_length(kernel).static or 0) * _BYTES, 0)

    @property
    def workgroups(self) -> Sequence[tuple[Size, int]]:
        return [(_rows(self.kernel), 1)]

    def emit(self, interface: Interface) -> None:
        at, kernel, dimension = interface, self.kernel, _dimension(self.kernel)
        memory, i32 = Memory(kernel, interface), mlir.IntegerType.get_signless(32)
        sizes = [size for dim, size in enumerate(kernel.operands[0].shape) if dim != dimension]
        if self.knobs.near:
            places = at.shared(i32, max(2 * _length(kernel).factor, 1))
        else:
            places = at.scratch(i32)
            at.need_scratch([_rows(kernel) * _length(kernel) * _BYTES])

        def run(row: mlir.Value) -> None:
            one = SortedRow(memory, kernel, dimension, decode(memory, row, sizes), places)
            start = at.index(0)
            if not self.knobs.near:
                start = arith.MulIOp(row, memory.size(_length(kernel) * 2)).result
            one.sort(start)
            gpu.BarrierOp()  # before the memory is used again

        each_piece(memory, _rows(kernel), 1, run)


def _dimension(kernel: LoneOp) -> int:
    return mlir.IntegerAttr(kernel.op.attributes["dimension"]).value


def _length(kernel: LoneOp) -> Size:
    return kernel.operands[0].shape[_dimension(kernel)]


def _rows(kernel: LoneOp) -> Size:
    return product([size for dim, size in enumerate(kernel.operands[0].shape) if dim != _dimension(kernel)])
