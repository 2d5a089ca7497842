"""What a step of a host loop is given and where its results go, as instructions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch_mlir import ir as mlir

from eyas.dialects import hal


class Emitter(Protocol):
    """Who makes the instructions."""

    values: dict[mlir.Value, mlir.Value]

    def emit(self, name: str, *operands: object) -> mlir.Value: ...
    def constant(self, value: int) -> mlir.Value: ...


@dataclass(frozen=True)
class _Row:
    """Step t uses the `size` bytes of row `start + step * t` of a buffer from an offset on."""

    whole: tuple[mlir.Value, mlir.Value]
    start: int
    step: int
    size: int


class LoopSteps:
    """The buffers of a `hal.loop`: rows by their number, states by turns.

    A state that is a written row as well is read where the last step has written it. Any other has two buffers: the
    first step reads the initial value and writes the first, the second reads that and writes the second, and so on.
    """

    def __init__(self, emitter: Emitter, op: hal.LoopOp):
        self.emitter = emitter
        ranges = list(zip(op.buffers, op.offsets, op.lengths, strict=True))
        reads, states, shared, rows = list(op.counts)
        self.reads = [_Row(ranges[i][:2], *one) for i, one in enumerate(_groups(op.reads, 3))]
        first = reads + states + shared
        self.rows = {made: _Row(ranges[first + i][:2], *one) for i, (made, *one) in enumerate(_groups(op.rows, 4))}
        self.next = list(op.states)
        starts = [part_of(emitter, *one) for one in ranges[reads : reads + states]]
        self.fixed = [part_of(emitter, *one) for one in ranges[reads + states : reads + states + shared]]
        turns = iter([part_of(emitter, *one) for one in ranges[reads + states + shared + rows :]])
        self.initial = [emitter.constant(0)]
        for start, made in zip(starts, self.next, strict=True):
            self.initial.append(start)
            if made not in self.rows:
                self.initial += [next(turns), next(turns)]

    def one(self, registers: list[mlir.Value]) -> tuple[list[mlir.Value], dict[int, mlir.Value], list[mlir.Value]]:
        """Arguments and results of the body, and the registers of the next step; the first one counts."""
        step, *rest = registers
        given = [self._row(step, read) for read in self.reads]
        made = {number: self._row(step, row) for number, row in self.rows.items()}
        following = [self.emitter.emit("add", step, self.emitter.constant(1))]
        for number in self.next:
            given.append(rest.pop(0))
            if number in self.rows:
                following.append(made[number])
                continue
            target, spare = rest.pop(0), rest.pop(0)
            made[number] = target
            following += [target, spare, target]
        return [*given, *self.fixed], made, following

    def _row(self, step: mlir.Value, row: _Row) -> mlir.Value:
        emit, constant = self.emitter.emit, self.emitter.constant
        buffer, offset = (self.emitter.values[value] for value in row.whole)
        place = emit("mul", step, constant(row.step * row.size))
        place = emit("add", place, constant(row.start * row.size))
        place = emit("add", place, offset)
        return emit("buffer_view", buffer, place, constant(row.size))


def part_of(emitter: Emitter, buffer: mlir.Value, offset: mlir.Value, length: mlir.Value) -> mlir.Value:
    """The register of a range of a buffer."""
    values = emitter.values
    owner = length.owner
    if owner.name == "arith.constant" and owner.attributes["value"].value == -1:
        return values[buffer]  # all of it
    return emitter.emit("buffer_view", values[buffer], values[offset], values[length])


def _groups(numbers: object, size: int) -> list[tuple[int, ...]]:
    flat = [int(number) for number in numbers]  # type: ignore[attr-defined]
    return [tuple(flat[first : first + size]) for first in range(0, len(flat), size)]
