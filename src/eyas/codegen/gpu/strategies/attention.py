"""Attention: a workgroup takes a block of query rows of one head and walks over the keys with online softmax.

Scores are never in memory as a whole, so that there may be any number of keys. Where rows are many, neighbouring
threads share them; where they are few (a decoder's), parts of the workgroup share out the keys, and join what they have
at the end. How the code looks like is `online_softmax`, what matches is `attention_form`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import gpu

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.combine import combiner_of
from eyas.codegen.common.expressions import Number, any_of, divides, equal, select
from eyas.codegen.common.kernel import Access, Kernel
from eyas.codegen.common.sizes import Size, product
from eyas.codegen.common.space import Constraint, advice, first_problem, law, powers_of_two
from eyas.codegen.common.strategies.nests import NO_NESTS
from eyas.codegen.common.traffic import element_bytes
from eyas.codegen.gpu.attention_form import AttentionForm, attention_form
from eyas.codegen.gpu.axis import Axis
from eyas.codegen.gpu.interface import Interface
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.online_softmax import AttentionKnobs, OnlineSoftmax, columns_of_thread, weight_elements
from eyas.codegen.gpu.operands import operands_of
from eyas.codegen.gpu.points import decode, each, fits_a_grid
from eyas.codegen.gpu.product_stage import GROUP, is_deep, staged_groups
from eyas.codegen.gpu.shuffle import can_shuffle
from eyas.codegen.gpu.strategies.base import KernelStrategy, open_knobs, powers, ranges
from eyas.targets import Target
from eyas.targets.gpu import GpuTarget

_THREADS = 128
_ROWS, _KEYS, _DEPTH = 8, 4, 4
# Sums of a thread that still are in registers, or near.
_MOST_SUMS = 256
# Threads that share rows; through shared memory, threads at the most, and steps at a time.
_SIDE, _STAGED_THREADS, _STAGED_DEPTHS = 16, 128, (16, 8)


@dataclass(frozen=True)
class Attention(KernelStrategy):
    name: ClassVar[str] = "attention"
    works_in_place: ClassVar[bool] = False
    knobs_type: ClassVar[type] = AttentionKnobs
    knobs: AttentionKnobs

    @classmethod
    def choose(cls, found: Analysis, target: Target) -> Attention | str:
        assert isinstance(target, GpuTarget)
        kernel = cls.kernel_of(found)
        if isinstance(kernel, str):
            return kernel
        form = _form(kernel)
        knobs = default_knobs(form, target)
        while (needed := shared_bytes(form, knobs)) > target.shared_bytes:
            smaller = _smaller(knobs)
            if smaller is None:
                return f"a block of keys needs {needed} bytes of shared memory, the device has {target.shared_bytes}"
            knobs = smaller
        return cls(kernel, knobs)

    @classmethod
    def kernel_of(cls, found: Analysis) -> Kernel | str:
        kernel = found.raw
        if kernel is None:
            return NO_NESTS
        form = attention_form(kernel)
        return form if isinstance(form, str) else kernel

    @classmethod
    def constraints(cls, kernel: Kernel, of: Any) -> list[Constraint]:
        form = _form(kernel)
        rows, keys = form.row_count, form.key_count
        return [
            *powers(of, "threads", "side", "splits"),
            law(of.side * of.splits <= of.threads, "threads is {threads}; it must be at least side * splits"),
            *ranges(of, 1, 64, "rows", "keys", "depth"),
            law(
                equal(of.subgroup, 0) | (equal(of.staged, 1) & (of.subgroup > 0) & divides(of.side, of.subgroup)),
                "subgroup is {subgroup}; it must be 0, or staged must be 1 and side divide it",
            ),
            law(
                of.row_block <= rows,
                f"rows is {{rows}}; {{teams}} teams of so many are more than the {rows} rows",
                teams=of.teams,
            ),
            law(of.key_block <= keys, f"keys is {{keys}}; {{side}} threads with so many are more than the {keys} keys"),
            *ranges(of, 0, 1, "staged"),
            *_staged_constraints(form, of),
        ]

    @classmethod
    def limits(cls, kernel: Kernel, of: Any, target: GpuTarget) -> list[Constraint]:
        talking = [0, target.subgroup] if _can_talk(_form(kernel), target) else [0]
        there = law(
            any_of([equal(of.subgroup, one) for one in talking]),
            f"subgroup is {{subgroup}}; on this device it must be {' or '.join(map(str, talking))}",
        )
        sums = of.rows * (columns_of_thread(_form(kernel), of) + of.keys)
        words = f"rows is {{rows}}; {{sums}} sums of a thread are more than {_MOST_SUMS}, and leave registers"
        return [*super().limits(kernel, of, target), there, advice(sums <= 2 * _MOST_SUMS, words, sums=sums)]

    @classmethod
    def domains(cls, kernel: Kernel, target: GpuTarget) -> dict[str, Sequence[int]]:
        return {
            "threads": powers_of_two(1, target.max_threads),
            "side": powers_of_two(1, 32),
            "splits": powers_of_two(1, 32),
            "rows": (1, 2, 3, 4, 6, 8, 12, 16),
            "keys": (1, 2, 4, 8, 16),
            "depth": (1, 2, 4, 8, 16, 32),
            "staged": (0, 1),
            "subgroup": (0, target.subgroup) if _can_talk(_form(kernel), target) else (0,),
        }

    @classmethod
    def shared_bytes(cls, kernel: Kernel, of: Any) -> Number:
        return shared_bytes(_form(kernel), of)

    @property
    def form(self) -> AttentionForm:
        return _form(self.kernel)

    @property
    def workgroups(self) -> Sequence[tuple[Size, int]]:
        """Of heads, and of rows."""
        loops = self.form.values.loops
        return [(product(loops[: self.form.row]), 1), (loops[self.form.row], self.knobs.row_block)]

    def _softmax(self, memory: Memory) -> OnlineSoftmax:
        """What writes the code of a workgroup for one head."""
        return OnlineSoftmax(self.form, memory, self.knobs, memory.at.ids[1])

    def emit(self, interface: Interface) -> None:
        memory, form = Memory(self.kernel, interface), self.form
        (heads, _), _ = self.workgroups
        sizes = form.values.loops[: form.row]
        softmax = self._softmax(memory)

        def run(number: mlir.Value) -> None:
            softmax.emit(decode(memory, number, sizes))
            if not fits_a_grid(heads, 1):
                gpu.BarrierOp()  # before shared memory is used again

        if fits_a_grid(heads, 1):
            run(interface.ids[0])
        else:
            each(interface.ids[0], memory.size(heads), gpu.grid_dim(gpu.Dimension.x), run)


def shared_bytes(form: AttentionForm, knobs: AttentionKnobs) -> Any:
    """Shared memory of a workgroup: weights of a block, shares of maxima, what splits hand over, and what is staged."""
    number, sums = element_bytes(form.element), element_bytes(form.values.statements[0].element_types[0])
    needed = weight_elements(form, knobs) * element_bytes(form.weight.element)
    shares = knobs.threads * knobs.rows * number
    needed += select(knobs.side > 1, select(knobs.subgroup > 0, 0, shares), 0)
    handed_over = knobs.threads // 2 * knobs.rows * (2 * number + columns_of_thread(form, knobs) * sums)
    needed += select(knobs.splits > 1, handed_over, 0)
    operands = operands_of(form.scores[0], form.row, form.inner)
    if not isinstance(operands, str):
        sum_ = Axis(form.scores[0], form.scores[0].statements[0].reductions)
        for operand, extent in zip(operands, (knobs.row_block, knobs.key_block), strict=True):
            groups = staged_groups(extent, knobs.depth, is_deep(operand, sum_))
            staged = 2 * GROUP * groups * element_bytes(operand.storage.element)
            needed += select(knobs.staged > 0, staged, 0)
    return needed


def _form(kernel: Kernel) -> AttentionForm:
    form = attention_form(kernel)
    assert isinstance(form, AttentionForm), form
    return form


def _staged_constraints(form: AttentionForm, of: Any) -> list[Constraint]:
    found, apart = [], of.staged < 1
    if (reason := _why_never_staged(form)) is not None:
        found.append(law(apart, f"staged is {{staged}}; it must be 0: {reason}"))
    words = "staged is {staged}; it must be 0 where parts of a workgroup have keys of their own"
    found.append(law(apart | (of.splits <= 1), words))
    words = f"staged is {{staged}}; it must be 0 where a thread has other than {GROUP} rows and {GROUP} keys"
    found.append(law(apart | (equal(of.rows, GROUP) & equal(of.keys, GROUP)), words))
    steps = form.scores[0].loops[-1].factor
    words = f"depth is {{depth}}; where operands are staged it must divide the {steps} steps of the sum"
    return [*found, law(apart | (divides(GROUP, of.depth) & divides(of.depth, steps)), words)]


def _why_never_staged(form: AttentionForm) -> str | None:
    first = form.scores[0].statements[0]
    if isinstance(found := operands_of(form.scores[0], form.row, form.inner), str):
        return found
    if found[0].storage.element != found[1].storage.element:
        return "queries and keys have two types"
    if combiner_of(first.body, len(first.inputs)) is None or isinstance(first.inits[0], Access):
        return "scores are no plain sums"
    return None


def _why_not_staged(form: AttentionForm, knobs: AttentionKnobs) -> str | None:
    return first_problem(_staged_constraints(form, open_knobs(AttentionKnobs)), asdict(knobs))


def default_knobs(form: AttentionForm, target: GpuTarget) -> AttentionKnobs:
    """What suits a device best, if its shared memory is large enough."""
    return (_knobs_side_by_side if target.facts.shared_is_near else _knobs_of_lone_threads)(form, target)


def _knobs_of_lone_threads(form: AttentionForm, target: GpuTarget) -> AttentionKnobs:
    """Where shared memory is no nearer than any other and barriers cost much: each row is a thread's own."""
    threads = min(target.subgroup, target.max_threads)
    rows, teams = _rows_and_teams(form, target, threads, _power(_ROWS, max(1, _MOST_SUMS // form.width)))
    keys = _power(2 * _KEYS, form.key_count)
    splits = _power(threads // teams, form.key_count // keys)
    return AttentionKnobs(teams * splits, 1, splits, rows, keys, _DEPTH, 0, 0)


def _knobs_side_by_side(form: AttentionForm, target: GpuTarget) -> AttentionKnobs:
    """Where shared memory is near: threads of a row share its keys and its columns, and all of them what they read."""
    side = _power(_SIDE, form.width, form.key_count)
    keys = _power(_KEYS, form.key_count // side)
    teams, subgroup = _staged_teams(form, target, side), _talking(form, target, side)
    for depth in _STAGED_DEPTHS:
        staged = AttentionKnobs(side * teams, side, 1, GROUP, keys, depth, 1, subgroup)
        if teams > 1 and staged.row_block <= form.row_count and _why_not_staged(form, staged) is None:
            return staged
    threads = min(_THREADS, target.max_threads)
    rows, teams = _rows_and_teams(form, target, threads // side, _ROWS)
    splits = _power(threads // side // teams, form.key_count // (side * keys))
    return AttentionKnobs(side * teams * splits, side, splits, rows, keys, _DEPTH, 0, 0)


def _rows_and_teams(form: AttentionForm, target: GpuTarget, teams: int, rows: int) -> tuple[int, int]:
    """The most rows of a thread that leave each processor a workgroup, and teams of a workgroup, of which there are at
    most so many."""
    heads = product(form.values.loops[: form.row]).factor
    rows = _power(rows, form.row_count)
    while rows > 2 and heads * form.row_count < target.cores * rows * _power(teams, form.row_count // rows):
        rows //= 2
    return rows, _power(teams, form.row_count // rows)


def _talking(form: AttentionForm, target: GpuTarget, side: int) -> int:
    """Threads of a subgroup, where those of a team are in one and can hand each other scores; else 0."""
    return target.subgroup if _can_talk(form, target) and target.subgroup % side == 0 else 0


def _can_talk(form: AttentionForm, target: GpuTarget) -> bool:
    return target.has("subgroup-shuffle") and can_shuffle(form.element)


def _staged_teams(form: AttentionForm, target: GpuTarget, side: int) -> int:
    """The most teams of a workgroup that leave each processor one."""
    heads = product(form.values.loops[: form.row]).factor
    teams = _power(min(_STAGED_THREADS, target.max_threads) // side, form.row_count // GROUP)
    while teams > 2 and heads * form.row_count < target.cores * GROUP * teams:
        teams //= 2
    return teams


def _smaller(knobs: AttentionKnobs) -> AttentionKnobs | None:
    """Knobs that need less shared memory, if any do."""
    if knobs.splits > 1:
        return replace(knobs, threads=knobs.threads // 2, splits=knobs.splits // 2)
    if knobs.staged:
        fewer = replace(knobs, threads=knobs.threads // 2)
        return fewer if knobs.teams > 1 else replace(knobs, depth=_DEPTH, staged=0, subgroup=0)
    if knobs.rows > 1:
        return replace(knobs, rows=knobs.rows // 2)
    if knobs.teams > 1:
        return replace(knobs, threads=knobs.threads // 2)
    return replace(knobs, keys=knobs.keys // 2) if knobs.keys > 1 else None


def _power(*most: int) -> int:
    """The largest power of two that is not larger than any of these."""
    return 1 << (max(1, min(most)).bit_length() - 1)
