"""Rows by teams of threads: softmax, norms, reductions, and whatever ops share their outer loops.

A team takes a row through all loop nests. Where all of them go through the same elements, each thread has its elements
in registers (`row_walk.py`), and a team is as small as that allows: threads of one subgroup do not wait for each other.
Otherwise intermediates are in shared memory: where a nest has many points in a row, each thread has some of them; where
it sums up many elements for few points, the team sums them up together. Several teams make a workgroup. Steps of
recurrent layers are rows that go through some of the nests again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, gpu, scf

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.blocks import locals_of
from eyas.codegen.common.emission.tile_loads import Block
from eyas.codegen.common.expressions import Number, ceil_div, divides, equal, most, select
from eyas.codegen.common.kernel import Access, Kernel, Nest, Unsupported
from eyas.codegen.common.normalize import check_locals
from eyas.codegen.common.sizes import Size, product
from eyas.codegen.common.space import Constraint, advice, law, powers_of_two
from eyas.codegen.common.strategies.nests import NO_NESTS
from eyas.codegen.gpu.interface import Interface
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.points import decode, each, fits_a_grid
from eyas.codegen.gpu.row_plan import Role, RowPlan, plan_of
from eyas.codegen.gpu.row_walk import RowWalk
from eyas.codegen.gpu.shared_memory import local_bytes
from eyas.codegen.gpu.strategies.base import (
    THREADS,
    TILES_STICK_OUT,
    KernelStrategy,
    at_most_threads,
    knob,
    powers,
    ranges,
)
from eyas.codegen.gpu.team import Team, TeamTile, why_not_together
from eyas.codegen.gpu.thread_tile import ThreadTile, contiguous_loop, points_along
from eyas.targets import Target
from eyas.targets.gpu import GpuTarget

_THREADS = 256
# Elements that each thread of a team has at least, where the row has so many.
_ELEMENTS = 4
# Threads of a workgroup that has many short rows.
_FEW_THREADS = 64
_UNKNOWN = 1024
# Rows in registers: threads that share one at the most, and of a workgroup with several of them.
_MOST_THREADS, _SOME_THREADS = 1024, 128
# Words of a row that a thread has at once, so that a processor has registers for a thousand threads; and where it goes
# on to the next ones.
_WORDS, _WORDS_IN_PASSING = 32, 16
# Words that threads read side by side: memory hands over whole lines.
_LINE_WORDS = 32
# Threads that each processor should have, where rows are few.
_THREADS_PER_CORE = 256
# More than this is more code than is good for any compiler.
_MOST_PIECES = 256
# Words of a row in registers that are worth trying.
_MOST_WORDS = 192


@dataclass(frozen=True)
class RowKnobs:
    threads: int = knob(THREADS)
    team: int = knob("threads that share a row; a workgroup has `threads / team` rows at a time")
    lanes: int = knob("threads of a subgroup, which hand values to each other; 1: they do not")
    held: int = knob("groups of neighbours of a row that a thread keeps in registers")
    pieces: int = knob(
        "how many of the others, which it reads again for each sum, it has at a time; 0: what nests hand to each other"
        " is in shared memory"
    )


@dataclass(frozen=True)
class Rows(KernelStrategy):
    name: ClassVar[str] = "rows"
    takes_steps: ClassVar[bool] = True
    knobs_type: ClassVar[type] = RowKnobs
    knobs: RowKnobs

    @classmethod
    def choose(cls, found: Analysis, target: Target) -> Rows | str:
        assert isinstance(target, GpuTarget)
        kernel = cls.kernel_of(found)
        if isinstance(kernel, str):
            return kernel
        if len(kernel.nests) == 1 and kernel.steps is None and (reason := _why_no_team(kernel.nests[0], target)):
            return reason
        if isinstance(plan := plan_of(kernel), RowPlan):
            return cls(kernel, _in_registers(plan, _rows(kernel), target))
        longest = max(_work(nest, kernel.shared) for nest in kernel.nests)
        most = min(_THREADS, target.max_threads)
        team = 1
        while team < most and team * _ELEMENTS < longest:
            team *= 2
        threads = max(team, min(_FEW_THREADS, most))
        while threads > team > 1 and local_bytes(kernel, threads // team, threads) > target.shared_bytes:
            threads //= 2
        if team > 1 and (needed := local_bytes(kernel, threads // team, threads)) > target.shared_bytes:
            return f"a row needs {needed} bytes of shared memory, the device has {target.shared_bytes}"
        lanes = target.subgroup if target.has("subgroup-shuffle") and threads % target.subgroup == 0 else 1
        return cls(kernel, RowKnobs(threads, team, lanes, 0, 0))

    @classmethod
    def kernel_of(cls, found: Analysis) -> Kernel | str:
        kernel = found.unkept
        if isinstance(kernel, str):
            return NO_NESTS
        if isinstance(found.plain, str) and isinstance(reason := plan_of(kernel), str):
            return f"{found.plain}, and {reason}"
        if any(nest.guards for nest in kernel.nests):
            return TILES_STICK_OUT
        if len(kernel.nests) == 1 and kernel.steps is None:  # each of its points is a row
            return replace(kernel, shared=len(kernel.nests[0].parallel))
        return kernel

    @classmethod
    def constraints(cls, kernel: Kernel, of: Any) -> list[Constraint]:
        found = [
            *powers(of, "threads", "team", "lanes"),
            at_most_threads(of, "team"),
            *ranges(of, 0, _MOST_PIECES, "held", "pieces"),
        ]
        if isinstance(reason := plan_of(kernel), str):
            found.append(law(of.pieces < 1, f"pieces is {{pieces}}; it must be 0, for {reason}"))
        if (reason := _why_not_kept(kernel)) is not None:
            found.append(law(of.pieces > 0, f"pieces is {{pieces}}; it must be more, for {reason}"))
        return found

    @classmethod
    def limits(cls, kernel: Kernel, of: Any, target: GpuTarget) -> list[Constraint]:
        found = [*super().limits(kernel, of, target)]
        lanes = target.subgroup if target.has("subgroup-shuffle") else 1
        words = f"lanes is {{lanes}}; it must be 1, or {lanes} where threads is a multiple of that"
        found.append(law(equal(of.lanes, 1) | (equal(of.lanes, lanes) & divides(lanes, of.threads)), words))
        if isinstance(plan := plan_of(kernel), RowPlan) and plan.groups.is_static:
            share, apart = ceil_div(plan.groups.factor, of.team), of.pieces < 1
            words = "held is {held}; a thread has {share} groups of its row"
            found.append(advice(apart | (of.held <= share), words, share=share))
            words = "held is {held}; without the others (pieces is 0) nothing is held"
            found.append(advice((of.pieces > 0) | (of.held < 1), words))
            words = "pieces is {pieces}; a thread has {share} groups of its row"
            found.append(advice(of.pieces <= most(share, 4), words, share=share))
            live = (of.held + of.pieces) * plan.live * plan.points
            words = f"held is {{held}}; {{live}} words of a thread are more than {_MOST_WORDS}, and leave registers"
            found.append(advice(apart | (live <= _MOST_WORDS), words, live=live))
        return found

    @classmethod
    def domains(cls, kernel: Kernel, target: GpuTarget) -> dict[str, Sequence[int]]:
        in_registers = isinstance(plan_of(kernel), RowPlan)
        return {
            "threads": powers_of_two(1, target.max_threads),
            "team": powers_of_two(1, target.max_threads),
            "lanes": (1, target.subgroup) if target.has("subgroup-shuffle") else (1,),
            "held": (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32) if in_registers else (0,),
            "pieces": (0, 1, 2, 4, 8, 16) if in_registers else (0,),
        }

    @classmethod
    def shared_bytes(cls, kernel: Kernel, of: Any) -> Number:
        kept = select(of.team > 1, local_bytes(kernel, of.threads // of.team, of.threads), 0)
        if isinstance(plan_of(kernel), str):
            return kept
        return select(of.pieces > 0, local_bytes(kernel, 0, of.threads), kept)

    @property
    def workgroups(self) -> Sequence[tuple[Size, int]]:
        return [(_rows(self.kernel), self.knobs.threads // self.knobs.team)]

    def emit(self, interface: Interface) -> None:
        at, kernel, teams = interface, self.kernel, self.knobs.threads // self.knobs.team
        slot = arith.DivUIOp(at.thread, at.index(self.knobs.team)).result if teams > 1 else None
        # A thread that has a row for itself shares nothing of it.
        memory = Memory(kernel, interface, 0, None) if self.knobs.team == 1 else Memory(kernel, interface, teams, slot)
        plan = plan_of(kernel) if self.knobs.pieces else None
        team = Team(memory, self.knobs.team, self.knobs.lanes)
        rows = memory.size(_rows(kernel))
        first = arith.MulIOp(at.ids[0], at.index(teams)).result
        stride = arith.MulIOp(gpu.grid_dim(gpu.Dimension.x), at.index(teams)).result

        def run(number: mlir.Value) -> None:
            row = number if slot is None else arith.AddIOp(number, slot).result
            emitter = _RowEmitter(kernel, memory, team, row, None if slot is None else rows)
            if isinstance(plan, RowPlan):
                held, pieces = self.knobs.held, self.knobs.pieces
                RowWalk(kernel, plan, memory, team, emitter.shared, emitter.exists, held, pieces).emit()
            else:
                emitter.emit()

        # Barriers need all threads of a workgroup, so that what is beyond the last row runs along and stores nothing.
        if fits_a_grid(_rows(kernel), teams):
            run(first)
        else:
            each(first, rows, stride, run)


class _RowEmitter:
    def __init__(self, kernel: Kernel, memory: Memory, team: Team, row: mlir.Value, rows: mlir.Value | None):
        self.kernel, self.memory, self.team = kernel, memory, team
        self.exists: mlir.Value | None = None
        if rows is not None:
            self.exists = arith.CmpIOp(arith.CmpIPredicate.ult, row, rows).result
            row = arith.MinUIOp(row, arith.SubIOp(rows, memory.at.index(1)).result).result
        sizes = kernel.nests[-1].loops[: kernel.shared] if kernel.nests else ()
        self.shared = decode(memory, row, sizes)

    def emit(self) -> None:
        steps, end = self.kernel.steps, len(self.kernel.nests)
        if steps is None:
            self._run(range(end))
            return
        self._run(range(steps.first))
        loop = scf.ForOp(self.memory.at.index(0), self.memory.size(steps.count), self.memory.at.index(1))
        with mlir.InsertionPoint(loop.body):
            anchor = arith.ConstantOp(mlir.IndexType.get(), 0)  # scalars that a step needs come before it
            self.memory.step = (steps.index, loop.induction_variable, mlir.InsertionPoint(anchor))
            self._run(range(steps.first, steps.last))
            scf.YieldOp([])
        self.memory.leave_steps()
        self._run(range(steps.last, end))

    def _run(self, numbers: range) -> None:
        for number in numbers:
            self._nest(self.kernel.nests[number])
            if self.team.size > 1:
                gpu.BarrierOp()

    def _nest(self, nest: Nest) -> None:
        if why_not_together(nest) is None and _points(nest, self.kernel.shared) < self.team.size:
            self._together(nest)
        else:
            self._apart(nest)

    def _apart(self, nest: Nest) -> None:
        """Each thread has every so manieth group of neighbours."""
        at, own = self.memory.at, [loop for loop in nest.parallel if loop >= self.kernel.shared]
        lane = contiguous_loop(nest, own)
        points = points_along(nest, lane)
        sizes = [_in_groups(nest.loops[loop], points if loop == lane else 1) for loop in own]
        tile = ThreadTile(self.memory, nest, lane_loop=lane)
        tile.writes = self.exists

        def run(number: mlir.Value) -> None:
            found = dict(zip(own, decode(self.memory, number, sizes), strict=True))
            if lane is not None and points > 1:
                found[lane] = arith.MulIOp(found[lane], at.index(points)).result
            tile.run(Block(self._indices(nest, found), 1, points, None))

        each(self.team.rank, self.memory.size(product(sizes)), at.index(self.team.size), run)

    def _together(self, nest: Nest) -> None:
        """The team takes one point after the other."""
        at, own = self.memory.at, [loop for loop in nest.parallel if loop >= self.kernel.shared]
        sizes = [nest.loops[loop] for loop in own]
        tile = TeamTile(self.memory, nest, self.team)
        first = self.team.is_first
        tile.writes = first if self.exists is None else arith.AndIOp(first, self.exists).result

        def run(number: mlir.Value) -> None:
            found = dict(zip(own, decode(self.memory, number, sizes), strict=True))
            tile.run(Block(self._indices(nest, found), 1, 1, None))

        if not own:
            run(at.index(0))
        else:
            each(at.index(0), self.memory.size(product(sizes)), at.index(1), run)

    def _indices(self, nest: Nest, found: dict[int, mlir.Value]) -> list[mlir.Value | None]:
        return [*self.shared, *(found.get(loop) for loop in range(self.kernel.shared, len(nest.loops)))]


def _why_not_kept(kernel: Kernel) -> str | None:
    """Why what nests hand to each other cannot be in shared memory."""
    try:
        check_locals(locals_of(kernel.nests))
    except Unsupported as reason:
        return str(reason)
    return None


def _in_registers(plan: RowPlan, rows: Size, target: GpuTarget) -> RowKnobs:
    """As few threads for a row as can have it in registers, whole lines side by side."""
    lanes = target.subgroup if target.has("subgroup-shuffle") else 1
    groups, count = plan.groups.static or -(-_UNKNOWN // plan.points), rows.static or _UNKNOWN
    passes_once = plan.roles.count(Role.SUM) == len(plan.roles) == 1
    # Where a CPU plays the device, threads that wait for each other are slower than reading again.
    most = (_THREADS if passes_once else _MOST_THREADS) if target.facts.shared_is_near else max(lanes, 1)
    most = min(most, target.max_threads)
    pieces = max(1, _WORDS // (plan.live * plan.points))

    def share(team: int) -> int:
        return -(-groups // team)

    team = 1
    while team < most and team < groups and (team * plan.points < _LINE_WORDS or share(team) > pieces):
        team *= 2
    while team < most and share(team) > 2 and count * team < target.cores * _THREADS_PER_CORE:
        team *= 2
    threads = max(team, min(_SOME_THREADS, target.max_threads))
    while threads > max(team, target.subgroup) and count * team < threads * target.cores:
        threads //= 2
    # What does not fit is read again as a whole where keeping a part of it saves nothing.
    fits = plan.groups.is_static and share(team) <= pieces
    keeps = plan.groups.is_static and target.facts.shared_is_near and not passes_once
    held = share(team) if fits else pieces // 2 if keeps else 0  # beside those that it passes
    lanes = lanes if threads % target.subgroup == 0 else 1
    return RowKnobs(threads, team, lanes, held, max(1, _WORDS_IN_PASSING // plan.points))


def _rows(kernel: Kernel) -> Size:
    return product(kernel.nests[-1].loops[: kernel.shared]) if kernel.nests else Size(1)


def _in_groups(extent: Size, points: int) -> Size:
    return Size(extent.factor // points, extent.symbols)


def _points(nest: Nest, shared: int) -> int:
    """Points of a nest in one row."""
    own = [nest.loops[loop] for loop in nest.parallel if loop >= shared]
    size = product(own).static
    return _UNKNOWN if size is None else size


def _work(nest: Nest, shared: int) -> int:
    """Points of a nest in one row, and what they sum up."""
    size = product([size for loop, size in enumerate(nest.loops) if loop >= shared]).static
    return _UNKNOWN if size is None else size


def _why_no_team(nest: Nest, target: GpuTarget) -> str | None:
    """Why the points of a lone nest are better off with a thread each."""
    if (reason := why_not_together(nest)) is not None:
        return reason
    points = product([nest.loops[loop] for loop in nest.parallel]).static
    sums = product([nest.loops[loop] for loop in nest.reductions]).static
    if sums is not None and sums < 2 * _ELEMENTS:
        return f"points sum up {sums} elements each, too few for several threads"
    first = nest.statements[0]
    along = any(isinstance(one, Access) and one.strides[first.reductions[-1]] == Size(1) for one in first.inputs)
    long = sums is not None and sums > target.max_iterations // 2
    if not along and not long and (points is None or points >= target.cores * target.subgroup):
        return "what it sums up is not contiguous, and there are points enough for a thread each"
    return None
