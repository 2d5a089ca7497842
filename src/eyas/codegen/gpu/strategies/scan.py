"""Scans: running sums, products and extrema of rows.

A team of threads goes through its row in blocks: each thread sums up a few neighbours, shared memory turns the sums of
the threads into what lies before each of them, and the block hands its total to the next. Where there are threads
enough for one row each, or the body is no sum of some kind, each takes its row alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, gpu, scf

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.combine import Combiner, combiner_of
from eyas.codegen.common.expressions import Number, select
from eyas.codegen.common.lone import SCAN, LoneOp, apply_body, read_place
from eyas.codegen.common.sizes import ZERO, Size, product
from eyas.codegen.common.space import Constraint, law, powers_of_two
from eyas.codegen.common.traffic import element_bytes
from eyas.codegen.gpu.interface import Interface
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.points import decode, each_piece
from eyas.codegen.gpu.shared_values import SharedValues
from eyas.codegen.gpu.strategies.base import THREADS, KernelStrategy, at_most_threads, knob, powers
from eyas.targets import Target
from eyas.targets.gpu import GpuTarget

_MOST_THREADS, _FEW_THREADS = 256, 64
# Neighbours of one thread in a block.
_ITEMS = 4
# Rows shorter than this are for one thread each.
_SHORT = 16
_UNKNOWN = 1 << 12


@dataclass(frozen=True)
class ScanKnobs:
    threads: int = knob(THREADS)
    team: int = knob("threads that share a row; a workgroup has `threads / team` rows")
    items: int = knob("neighbours that one thread of a team has in a block")


@dataclass(frozen=True)
class Scan(KernelStrategy):
    name: ClassVar[str] = "scan"
    works_in_place: ClassVar[bool] = False
    knobs_type: ClassVar[type] = ScanKnobs
    kernel: LoneOp
    knobs: ScanKnobs

    @classmethod
    def choose(cls, found: Analysis, target: Target) -> Scan | str:
        assert isinstance(target, GpuTarget)
        kernel = cls.kernel_of(found)
        if isinstance(kernel, str):
            return kernel
        most = min(_MOST_THREADS, target.max_threads)
        rows, length = (size.static for size in (_rows(kernel), _length(kernel)))
        length = _UNKNOWN if length is None else length
        is_contiguous = _dimension(kernel) == len(kernel.operands[0].shape) - 1
        many = rows is not None and rows >= 4 * target.cores * target.subgroup
        team = 1
        if _combiner(kernel) is not None and not (length < _SHORT or (many and not is_contiguous)):
            while team < most and team * _ITEMS < length:
                team *= 2
        return cls(kernel, ScanKnobs(max(team, min(_FEW_THREADS, most)), team, _ITEMS))

    @classmethod
    def kernel_of(cls, found: Analysis) -> LoneOp | str:
        kernel = found.lone
        if kernel is None or kernel.op.name != SCAN:
            return "it is no scan"
        if kernel.results[0] is None or kernel.results[1] is not None:
            return "the last value of each row is asked for by itself"
        if isinstance(kernel.results[0].element, mlir.ComplexType):
            return "it is of complex numbers"
        return kernel

    @classmethod
    def constraints(cls, kernel: LoneOp, of: Any) -> list[Constraint]:
        found = powers(of, "threads", "team", "items")
        if _combiner(kernel) is None:
            found.append(law(of.team <= 1, "team is {team}; it must be 1, since shares of a row cannot be joined"))
        return [*found, at_most_threads(of, "team")]

    @classmethod
    def domains(cls, kernel: LoneOp, target: GpuTarget) -> dict[str, Sequence[int]]:
        threads = powers_of_two(1, target.max_threads)
        return {"threads": threads, "team": threads if _combiner(kernel) else (1,), "items": powers_of_two(1, 16)}

    @classmethod
    def shared_bytes(cls, kernel: LoneOp, of: Any) -> Number:
        assert kernel.results[0] is not None
        return select(of.team > 1, of.threads * element_bytes(kernel.results[0].element), 0)

    @property
    def workgroups(self) -> Sequence[tuple[Size, int]]:
        return [(_rows(self.kernel), self.knobs.threads // self.knobs.team)]

    def emit(self, interface: Interface) -> None:
        at, kernel, team = interface, self.kernel, self.knobs.team
        memory = Memory(kernel, interface)
        rows, count = memory.size(_rows(kernel)), self.knobs.threads // team
        scan = _Scan(memory, kernel, self.knobs)

        def run(number: mlir.Value) -> None:
            row = arith.AddIOp(number, arith.DivUIOp(at.thread, at.index(team)).result).result
            exists = arith.CmpIOp(arith.CmpIPredicate.ult, row, rows).result
            # Barriers need all threads: those beyond the last row run along and store nothing.
            scan.row(arith.MinUIOp(row, arith.SubIOp(rows, at.index(1)).result).result, exists)

        each_piece(memory, _rows(kernel), count, run)


class _Scan:
    def __init__(self, memory: Memory, kernel: LoneOp, knobs: ScanKnobs):
        self.memory, self.at, self.kernel, self.knobs = memory, memory.at, kernel, knobs
        self.length = memory.size(_length(kernel))
        self.inclusive = mlir.BoolAttr(kernel.op.attributes["inclusive"]).value
        assert kernel.results[0] is not None
        self.output = kernel.results[0]
        if knobs.team > 1:
            self.totals = SharedValues(memory.at, self.output.element, knobs.threads)
            self.rank = arith.RemUIOp(memory.at.thread, memory.at.index(knobs.team)).result

    def row(self, row: mlir.Value, exists: mlir.Value) -> None:
        dimension = _dimension(self.kernel)
        shape = self.kernel.operands[0].shape
        self.exists = exists
        self.others = decode(self.memory, row, [size for dim, size in enumerate(shape) if dim != dimension])
        combiner = _combiner(self.kernel)
        if self.knobs.team == 1:
            self._alone()
        else:
            assert combiner is not None, "a team joins shares"
            self._together(combiner)

    def _alone(self) -> None:
        """One thread takes the row from its first element on."""
        zero, one = self.at.index(0), self.at.index(1)
        some = arith.CmpIOp(arith.CmpIPredicate.ult, zero, self.length).result
        branch = scf.IfOp(arith.AndIOp(some, self.exists).result)
        with mlir.InsertionPoint(branch.then_block):
            first = self._input(zero) if self.inclusive else self._initial()
            self._output(zero, first)
            loop = scf.ForOp(one, self.length, one, [first])
            with mlir.InsertionPoint(loop.body):
                place = loop.induction_variable
                element = self._input(place if self.inclusive else arith.SubIOp(place, one).result)
                (value,) = apply_body(self.memory, self.kernel.body, [loop.inner_iter_args[0], element])
                self._output(place, value)
                scf.YieldOp([value])
            scf.YieldOp([])

    def _together(self, combiner: Combiner) -> None:
        """The team takes the row block by block, with the total of those before."""
        at, knobs, type_ = self.at, self.knobs, self.output.element
        identity = at.constant(type_, combiner.identity(type_))
        loop = scf.ForOp(
            at.index(0),
            self.length,
            at.index(knobs.team * knobs.items),
            [identity if self.inclusive else self._initial()],
        )
        with mlir.InsertionPoint(loop.body):
            (before,) = loop.inner_iter_args
            own = arith.MulIOp(self.rank, at.index(knobs.items)).result
            start = arith.AddIOp(loop.induction_variable, own).result
            places = [arith.AddIOp(start, at.index(item)).result for item in range(knobs.items)]
            inside = [arith.CmpIOp(arith.CmpIPredicate.ult, place, self.length).result for place in places]
            running: list[mlir.Value] = []
            for place, exists in zip(places, inside, strict=True):
                safe = arith.SelectOp(exists, place, at.index(0)).result
                element = arith.SelectOp(exists, self._input(safe), identity).result
                running.append(combiner.join(running[-1], element) if running else element)
            others, total = self._scan_totals(combiner, running[-1], identity)
            base = combiner.join(before, others)
            values = [combiner.join(base, one) for one in running]
            made = values if self.inclusive else [base, *values[:-1]]
            for place, exists, value in zip(places, inside, made, strict=True):
                store = scf.IfOp(arith.AndIOp(exists, self.exists).result)
                with mlir.InsertionPoint(store.then_block):
                    self._output(place, value)
                    scf.YieldOp([])
            scf.YieldOp([combiner.join(before, total)])

    def _scan_totals(
        self, combiner: Combiner, share: mlir.Value, identity: mlir.Value
    ) -> tuple[mlir.Value, mlir.Value]:
        """What the threads before this one have, and what all of them have."""
        at, totals, value, reach = self.at, self.totals, share, 1
        totals.store(value, at.thread)
        while reach < self.knobs.team:
            gpu.BarrierOp()
            value = combiner.join(self._behind(reach, identity), value)
            gpu.BarrierOp()
            totals.store(value, at.thread)
            reach *= 2
        gpu.BarrierOp()
        others = self._behind(1, identity)
        last = arith.SubIOp(arith.AddIOp(at.thread, at.index(self.knobs.team - 1)).result, self.rank).result
        total = totals.load(last)
        gpu.BarrierOp()  # before the memory is used again
        return others, total

    def _behind(self, reach: int, identity: mlir.Value) -> mlir.Value:
        """What the thread of the team that is so many before this one has stored."""
        exists = arith.CmpIOp(arith.CmpIPredicate.uge, self.rank, self.at.index(reach)).result
        step = arith.SelectOp(exists, self.at.index(reach), self.at.index(0)).result
        found = self.totals.load(arith.SubIOp(self.at.thread, step).result)
        return arith.SelectOp(exists, found, identity).result

    def _at(self, place: mlir.Value) -> list[mlir.Value]:
        dimension = _dimension(self.kernel)
        return [*self.others[:dimension], place, *self.others[dimension:]]

    def _input(self, place: mlir.Value) -> mlir.Value:
        return read_place(self.memory, self.kernel.operands[0], self._at(place))

    def _initial(self) -> mlir.Value:
        return read_place(self.memory, self.kernel.operands[2], self.others)

    def _output(self, place: mlir.Value, value: mlir.Value) -> None:
        address = self.at.index(0)
        for index, stride in zip(self._at(place), self.output.strides, strict=True):
            address = self.memory.add(address, self.memory.scaled(index, stride))
        self.memory.store(self.output, address, value, 1, ZERO, None)


def _dimension(kernel: LoneOp) -> int:
    return mlir.IntegerAttr(kernel.op.attributes["dimension"]).value


def _length(kernel: LoneOp) -> Size:
    return kernel.operands[0].shape[_dimension(kernel)]


def _rows(kernel: LoneOp) -> Size:
    return product([size for dim, size in enumerate(kernel.operands[0].shape) if dim != _dimension(kernel)])


def _combiner(kernel: LoneOp) -> Combiner | None:
    """What joins shares of a row: the body, if it joins an element to what came before by one op."""
    combiner = combiner_of(kernel.body, 1)
    return combiner if combiner is not None and len(list(kernel.body.operations)) == 2 else None
