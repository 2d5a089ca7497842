"""Attention by online softmax: a workgroup walks over the keys, and has scores of one block of them at a time.

For each of its rows a thread has the maximum so far, its share of the sum of exp(score - maximum), and some columns of
the weighted sum of values. Whenever the maximum grows, the other two are scaled to it (Milakov and Gimelshein 2018,
arXiv 1805.02867; Dao et al. 2022, arXiv 2205.14135).

    team of `side` threads:  `rows` query rows; each thread has `keys` keys of a block, and a part of the width
    workgroup:               some teams side by side along the rows, and `splits` of those, which share out the keys
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, gpu, memref, scf, vector

from eyas.codegen.common.emission.tile_loads import Block
from eyas.codegen.common.expressions import select
from eyas.codegen.common.kernel import Nest
from eyas.codegen.common.space import knob
from eyas.codegen.gpu.attention_form import AttentionForm
from eyas.codegen.gpu.axis import Axis
from eyas.codegen.gpu.held_tile import Held, HeldTile, Tile, in_registers
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.operands import operands_of
from eyas.codegen.gpu.product_stage import GROUP
from eyas.codegen.gpu.product_tile import ProductTile
from eyas.codegen.gpu.shuffle import shuffle
from eyas.codegen.gpu.softmax_state import (
    SoftmaxState,
    add,
    converted,
    exp_of_difference,
    finite,
    folded,
    in_rows,
    maximum,
)

# Groups of keys whose values are on their way to registers together.
_TOGETHER = 4


@dataclass(frozen=True)
class AttentionKnobs:
    threads: int = knob("threads of a workgroup")
    side: int = knob("threads that share rows")
    splits: int = knob("parts of a workgroup that share out the keys of its rows")
    rows: int = knob("query rows of a thread")
    keys: int = knob("keys of a thread in one block")
    depth: int = knob("steps of the first product that are written out")
    staged: int = knob("1: queries and keys pass through shared memory, `depth` steps at a time")
    subgroup: int = knob("threads that hand each other maxima and sums directly; 0: they go through shared memory")

    @property
    def teams(self) -> Any:
        return self.threads // self.side // self.splits

    @property
    def row_block(self) -> Any:
        return self.teams * self.rows

    @property
    def key_block(self) -> Any:
        return self.side * self.keys


class OnlineSoftmax:
    """Writes what one thread does for the rows that workgroup number `group` has of a head."""

    def __init__(self, form: AttentionForm, memory: Memory, knobs: AttentionKnobs, group: mlir.Value):
        at = memory.at
        self.form, self.memory, self.at, self.knobs = form, memory, at, knobs
        self.columns = columns_of_thread(form, knobs)
        self.rank = _remainder(at.thread, at.index(knobs.side), knobs.side)
        self.team = arith.DivUIOp(at.thread, at.index(knobs.side)).result
        self.split = arith.DivUIOp(self.team, at.index(knobs.teams)).result
        team = _remainder(self.team, at.index(knobs.teams), knobs.teams)
        # What would stick out is moved back: the same rows in two workgroups, the same columns in two threads.
        self.row_corner = self._cut(group, -(-form.row_count // knobs.row_block), knobs.row_block, form.row_count)
        self.row = self._plus(self.row_corner, team, knobs.rows)
        self.column = self._cut(self.rank, knobs.side, self.columns, form.width)
        self.element = form.element
        self.sum_type = form.values.statements[0].element_types[0]
        self.rows = range(knobs.rows)
        self.blocks = -(-form.key_count // knobs.key_block)
        self.is_whole = form.key_count % (knobs.key_block * knobs.splits) == 0
        self._allocate()

    def _allocate(self) -> None:
        """Shared memory: weights of a block, and shares of maxima and sums."""
        at, knobs = self.at, self.knobs
        self.group = group_of(self.form, knobs)
        count = weight_elements(self.form, knobs) // self.group
        self.weights = at.shared(self._group_type if self.group > 1 else self.form.weight.element, count)
        through_memory = knobs.side > 1 and not knobs.subgroup
        self.shares = at.shared(self.element, knobs.threads * knobs.rows) if through_memory else None

    def emit(self, heads: list[mlir.Value]) -> None:
        self.heads = heads
        lowest, zero = self._constant(float("-inf")), self._constant(0.0)
        nothing = [[self.at.constant(self.sum_type, 0.0)] * self.columns for _ in self.rows]
        state = SoftmaxState([lowest] * self.knobs.rows, [zero] * self.knobs.rows, nothing)
        steps = -(-self.blocks // self.knobs.splits)
        loop = scf.ForOp(self.at.index(0), self.at.index(steps), self.at.index(1), state.flat)
        with mlir.InsertionPoint(loop.body):
            old = SoftmaxState.of(list(loop.inner_iter_args), self.knobs.rows)
            scf.YieldOp(self._block(loop.induction_variable, old).flat)
        state = SoftmaxState.of(list(loop.results), self.knobs.rows)
        if self.knobs.side > 1:
            state = replace(state, sums=self._of_team(state.sums, add))
        self._finish(self._join_splits(state))

    # --- one block of keys --------------------------------------------------------------------------------------------

    def _block(self, step: mlir.Value, old: SoftmaxState) -> SoftmaxState:
        knobs = self.knobs
        number = step if knobs.splits == 1 else self._plus(self.split, step, knobs.splits)
        wanted, corner = self._keys_of(number)
        key = self._plus(corner, self.rank, knobs.keys)
        scores = self._scores(corner, key)
        self._hide_old(scores, key, wanted)
        own = [folded(maximum, scores[row]) for row in self.rows]
        new = self._of_team(own, maximum) if knobs.side > 1 else own
        maxima = [maximum(old.maxima[row], new[row]) for row in self.rows]
        shifts = [finite(one) for one in maxima]
        weights = [[exp_of_difference(score, shifts[row]) for score in scores[row]] for row in self.rows]
        seen = old.scaled(maxima)
        sums = [add(seen.sums[row], folded(add, weights[row])) for row in self.rows]
        self._hand_over(weights)
        return SoftmaxState(maxima, sums, self._add_values(corner, seen.values))

    def _keys_of(self, number: mlir.Value) -> tuple[mlir.Value, mlir.Value]:
        """The first key of a block that no block before it has, and the first that it has: the last one is whole."""
        wanted = arith.MulIOp(number, self.at.index(self.knobs.key_block)).result
        if self.is_whole:
            return wanted, wanted
        last = self.at.index(self.form.key_count - self.knobs.key_block)
        return wanted, arith.MinUIOp(wanted, last).result

    def _hide_old(self, scores: Tile, key: mlir.Value, wanted: mlir.Value) -> None:
        """Scores of keys that the block before had become those of nothing."""
        if self.is_whole:
            return
        lowest = self._constant(float("-inf"))
        for lane in range(self.knobs.keys):
            this = self.memory.add(key, self.at.index(lane))
            is_new = arith.CmpIOp(arith.CmpIPredicate.uge, this, wanted).result
            for row in self.rows:
                scores[row][lane] = arith.SelectOp(is_new, scores[row][lane], lowest).result

    def _scores(self, corner: mlir.Value, key: mlir.Value) -> Tile:
        """Scores of this thread's rows and keys."""
        form, knobs = self.form, self.knobs
        if knobs.staged:
            return self._finished_scores(key, self._staged(corner))
        first = form.scores[0]
        block = Block(self._indices(first, key), knobs.rows, knobs.keys, None)
        aligned = math.gcd(knobs.keys, form.key_count)
        tile = HeldTile(self.memory, first, Held(), form.row, form.inner, knobs.depth, aligned)
        return self._finished_scores(key, tile.sums(block))

    def _finished_scores(self, key: mlir.Value, sums: Tile) -> Tile:
        """What is made of the sums of this thread's rows and keys."""
        form, knobs, held = self.form, self.knobs, Held()
        aligned = math.gcd(knobs.keys, form.key_count)
        first, *rest = form.scores
        tile = HeldTile(self.memory, first, held, form.row, form.inner, aligned=aligned)
        tile.finish(Block(self._indices(first, key), knobs.rows, knobs.keys, None), sums)
        for nest in rest:
            tile = HeldTile(self.memory, nest, held, form.row, form.inner, aligned=aligned)
            tile.run(Block(self._indices(nest, key), knobs.rows, knobs.keys, None))
        score = held[form.score]
        return [[score(row, lane) for lane in range(knobs.keys)] for row in self.rows]

    def _staged(self, corner: mlir.Value) -> Tile:
        """The first product from shared memory, where the whole workgroup puts what it needs of queries and keys."""
        form, knobs = self.form, self.knobs
        nest = form.scores[0]
        found = operands_of(nest, form.row, form.inner)
        assert not isinstance(found, str), "the strategy checked this"
        axes = Axis(nest, (form.row,)), Axis(nest, (form.inner,))
        sizes = (knobs.teams, knobs.side), (knobs.rows, knobs.keys), knobs.depth, 1, 2
        tile = ProductTile(self.memory, nest, found, axes, *sizes, (self.row_corner, corner))
        indices = [*self.heads, *[None] * (len(nest.loops) - len(self.heads))]
        return in_rows(tile.sums_at(indices), knobs.rows)

    def _hand_over(self, weights: Tile) -> None:
        """Puts the weights of this thread where its team reads them."""
        at, knobs, count = self.at, self.knobs, self.group
        start = arith.MulIOp(self.rank, at.index(knobs.keys // count)).result
        for row in self.rows:
            line = self._line(row)
            stored = [converted(weight, self.form.weight.element) for weight in weights[row]]
            for first in range(0, knobs.keys, count):
                place = self.memory.add(self.memory.add(line, start), at.index(first // count))
                value = stored[first]
                if count > 1:
                    value = vector.FromElementsOp(self._group_type, stored[first : first + count]).result
                memref.StoreOp(value, self.weights, [place])
        if knobs.side > 1:
            gpu.BarrierOp()

    def _add_values(self, corner: mlir.Value, values: Tile) -> Tile:
        """Adds the values of a block of keys, each times its weight."""
        form, knobs, at, held = self.form, self.knobs, self.at, Held()
        lines = [self._line(row) for row in self.rows]
        tile = HeldTile(self.memory, form.values, held, form.row, form.inner, aligned=self._aligned_columns)
        block = Block(self._indices(form.values, self.column), knobs.rows, self.columns, None)
        groups = knobs.key_block // self.group
        together = math.gcd(groups, _TOGETHER) if self.group > 1 else 1
        loop = scf.ForOp(at.index(0), at.index(groups), at.index(together), list(chain.from_iterable(values)))
        with mlir.InsertionPoint(loop.body):
            old = in_rows(list(loop.inner_iter_args), knobs.rows)
            for ahead in range(together):
                inside = self.memory.add(loop.induction_variable, at.index(ahead))
                loaded = [memref.LoadOp(self.weights, [arith.AddIOp(line, inside).result]).result for line in lines]
                first = self._plus(corner, inside, self.group)
                for number in range(self.group):
                    lanes = [vector.ExtractOp(one, [], [number]).result for one in loaded] if self.group > 1 else loaded
                    held[form.weight] = in_registers([[weight] for weight in lanes])
                    old = tile.step(block, form.inner + 1, self.memory.add(first, at.index(number)), old)
            scf.YieldOp(list(chain.from_iterable(old)))
        return in_rows(list(loop.results), knobs.rows)

    # --- the end ------------------------------------------------------------------------------------------------------

    def _join_splits(self, state: SoftmaxState) -> SoftmaxState:
        """What all parts of the workgroup have together, in the first of them: half of them at a time hand over to the
        other half."""
        half, at, knobs = self.knobs.splits // 2, self.at, self.knobs
        if not half:
            return state
        part = knobs.threads // knobs.splits
        inside = _remainder(at.thread, at.index(part), part)
        statistics = at.shared(self.element, half * part * 2 * knobs.rows)
        partial = at.shared(self.sum_type, half * part * knobs.rows * self.columns)
        while half:
            number = self._plus(inside, _remainder(self.split, at.index(half), half), part)
            places = [
                (memory, self._plus(at.index(offset), number, count))
                for memory, count in ((statistics, 2 * knobs.rows), (partial, knobs.rows * self.columns))
                for offset in range(count)
            ]
            pair = arith.DivUIOp(self.split, at.index(half)).result
            gives = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.eq, pair, at.index(1)).result)
            with mlir.InsertionPoint(gives.then_block):
                for value, (memory, place) in zip(state.flat, places, strict=True):
                    memref.StoreOp(value, memory, [place])
                scf.YieldOp([])
            gpu.BarrierOp()
            other = SoftmaxState.of([memref.LoadOp(memory, [place]).result for memory, place in places], knobs.rows)
            state = state.joined(other)
            gpu.BarrierOp()
            half //= 2
        return state

    def _finish(self, state: SoftmaxState) -> None:
        """What is made of the sums, and then of the rows."""
        form, knobs, held = self.form, self.knobs, Held()
        sums = HeldTile(self.memory, form.sums, held, form.row, None)
        sums.finish(Block(self._indices(form.sums, None), knobs.rows, 1, None), [[one] for one in state.sums])
        values = state.values
        if form.divisor is not None:
            by = [converted(held[form.divisor](row, 0), self.sum_type) for row in self.rows]
            values = [[arith.DivFOp(value, by[row]).result for value in values[row]] for row in self.rows]
        tile = HeldTile(self.memory, form.values, held, form.row, form.inner, aligned=self._aligned_columns)
        if knobs.splits > 1:
            tile.writes = arith.CmpIOp(arith.CmpIPredicate.eq, self.split, self.at.index(0)).result
        tile.finish(Block(self._indices(form.values, self.column), knobs.rows, self.columns, None), values)

    # --- small things -------------------------------------------------------------------------------------------------

    def _of_team(
        self, shares: list[mlir.Value], join: Callable[[mlir.Value, mlir.Value], mlir.Value]
    ) -> list[mlir.Value]:
        """For each row, what the shares of all threads of a team are together."""
        at, knobs = self.at, self.knobs
        if knobs.subgroup:
            return self._of_neighbours(shares, join)
        memory = self.shares
        assert memory is not None
        first = arith.MulIOp(arith.SubIOp(at.thread, self.rank).result, at.index(knobs.rows)).result
        own = self._plus(first, self.rank, knobs.rows)
        for row in self.rows:
            memref.StoreOp(shares[row], memory, [self.memory.add(own, at.index(row))])
        gpu.BarrierOp()

        def load(thread: int, row: int) -> mlir.Value:
            return memref.LoadOp(memory, [self.memory.add(first, at.index(thread * knobs.rows + row))]).result

        return [folded(join, [load(thread, row) for thread in range(knobs.side)]) for row in self.rows]

    def _of_neighbours(
        self, shares: list[mlir.Value], join: Callable[[mlir.Value, mlir.Value], mlir.Value]
    ) -> list[mlir.Value]:
        """The same where the threads of a team are neighbours in a subgroup."""
        distance = 1
        while distance < self.knobs.side:
            others = [shuffle(self.at, share, distance, self.knobs.subgroup) for share in shares]
            shares = [join(*pair) for pair in zip(shares, others, strict=True)]
            distance *= 2
        return shares

    @property
    def _group_type(self) -> mlir.VectorType:
        return mlir.VectorType.get([self.group], self.form.weight.element)

    def _line(self, row: int) -> mlir.Value:
        """Where the weights of a row of this thread's team begin in shared memory, in groups."""
        line = self.knobs.key_block // self.group
        team = self.knobs.rows * line + (self.group > 1)
        return self._plus(self.at.index(row * line), self.team, team)

    def _indices(self, nest: Nest, inner: mlir.Value | None) -> list[mlir.Value | None]:
        indices = [*self.heads, self.row, inner]
        return [*indices, *[None] * (len(nest.loops) - len(indices))]

    @property
    def _aligned_columns(self) -> int:
        return math.gcd(self.columns, self.form.width)

    def _cut(self, number: mlir.Value, pieces: int, piece: int, extent: int) -> mlir.Value:
        """Where a piece begins; those that would stick out are moved back."""
        start = arith.MulIOp(number, self.at.index(piece)).result
        return start if pieces * piece <= extent else arith.MinUIOp(start, self.at.index(extent - piece)).result

    def _plus(self, start: mlir.Value, number: mlir.Value, scale: int) -> mlir.Value:
        return self.memory.add(start, arith.MulIOp(number, self.at.index(scale)).result)

    def _constant(self, number: float) -> mlir.Value:
        return self.at.constant(self.element, number)


def group_of(form: AttentionForm, knobs: AttentionKnobs) -> int:
    """Weights of neighbouring keys that are stored and read at once."""
    together = isinstance(form.weight.element, mlir.F32Type) and knobs.keys % GROUP == 0
    return GROUP if together else 1


def weight_elements(form: AttentionForm, knobs: AttentionKnobs) -> Any:
    """What weights of a block take: lines of teams begin in different banks where they are read in groups."""
    apart = select(knobs.keys % GROUP < 1, GROUP, 0) if isinstance(form.weight.element, mlir.F32Type) else 0
    return knobs.threads // knobs.side * (knobs.rows * knobs.key_block + apart)


def columns_of_thread(form: AttentionForm, knobs: AttentionKnobs) -> Any:
    """Columns of the result that each thread of a team has."""
    return -(-form.width // knobs.side)


def _remainder(number: mlir.Value, divisor: mlir.Value, known: int) -> mlir.Value:
    return arith.RemUIOp(number, divisor).result if known > 1 else arith.SubIOp(number, number).result
