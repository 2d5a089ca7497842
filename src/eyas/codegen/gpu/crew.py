"""The threads of the one workgroup that runs a plain kernel.

All of them run the same code with the same values, so that loops and branches are taken together. What is written is
written by one of them, or is divided among them; barriers part that from what is read before and after.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, gpu, scf

from eyas.codegen.gpu.interface import Interface


class Crew:
    """Keeps account of what was read and written since the last barrier."""

    def __init__(self, interface: Interface):
        self._at = interface
        self._read = self._written = False

    def fence(self) -> None:
        """What any thread did before comes before what any thread does after."""
        if self._read or self._written:
            gpu.BarrierOp()
        self._read = self._written = False

    def before_read(self) -> None:
        """All threads are about to read the same."""
        if self._written:
            self.fence()
        self._read = True

    def alone(self, write: Callable[[], None]) -> None:
        """The first thread writes."""
        self.fence()
        first = scf.IfOp(arith.cmpi(arith.CmpIPredicate.eq, self._at.thread, self._at.index(0)))
        with mlir.InsertionPoint(first.then_block):
            write()
            scf.YieldOp([])
        self._written = True

    def share(self, sizes: Sequence[mlir.Value], body: Callable[[Sequence[mlir.Value]], None]) -> None:
        """Each thread runs `body` for a part of all indices, which must not depend on each other."""
        self.fence()
        at = self._at
        count = reduce(arith.muli, sizes, at.index(1))
        loop = scf.ForOp(at.thread, count, at.index(at.threads))
        with mlir.InsertionPoint(loop.body):
            body(_indices(loop.induction_variable, sizes))
            scf.YieldOp([])
        self._written = True


def _indices(number: mlir.Value, sizes: Sequence[mlir.Value]) -> list[mlir.Value]:
    """The index that has this number in row-major order."""
    indices: list[mlir.Value] = []
    for size in reversed(sizes[1:]):
        indices.append(arith.remui(number, size))
        number = arith.divui(number, size)
    return [number, *reversed(indices)] if sizes else []
