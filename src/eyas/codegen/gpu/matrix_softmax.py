"""Attention by online softmax whose products are those of matrix instructions.

Each subgroup has some rows of queries in fragments, and the sums of weighted values of these. Keys and values pass
through shared memory, a block at a time; scores go through it too, because nobody knows which thread has which element
of a fragment, and each thread computes weights of a few rows and keys, as in `OnlineSoftmax`:

    registers <- queries; registers <- keys and values of the first block
    for each block of keys:
        shared <- registers; barrier; registers <- keys and values of the next block
        shared <- queries times keys; barrier
        scores, maxima, weights and factors of old sums of each thread; shared <- weights, factors; barrier
        sums = sums * factors + weights times values; barrier

A factor is the same along its row, so a fragment of factors has it in each column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, gpu, memref, scf, vector

from eyas.codegen.common.emission.tile_loads import Block, Indices
from eyas.codegen.common.expressions import most, odd
from eyas.codegen.common.kernel import Access, Nest
from eyas.codegen.common.space import knob
from eyas.codegen.gpu.attention_form import AttentionForm
from eyas.codegen.gpu.held_tile import Held, HeldTile, Tile
from eyas.codegen.gpu.matrix_stage import (
    GROUP_BYTES,
    MatrixStage,
    Side,
    fragment_element,
    group_type,
    is_deep,
    staged_groups,
)
from eyas.codegen.gpu.matrix_tile import POINTS
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.online_softmax import AttentionKnobs, OnlineSoftmax
from eyas.codegen.gpu.operands import operands_of
from eyas.codegen.gpu.softmax_state import SoftmaxState, add, converted, exp_of_difference, finite, folded, maximum
from eyas.ir.values import element_bytes

SIDE = 16
"""Rows, columns and depth of a fragment."""
KEYS = 8
"""Keys of a thread in one block: their weights are what it stores at once."""


@dataclass(frozen=True)
class MatrixAttentionKnobs:
    threads: int = knob("threads of a workgroup")
    subgroup: int = knob("threads of a subgroup")
    row_fragments: int = knob("fragments of each subgroup along the rows")
    key_block: int = knob("keys that are looked at together")

    @property
    def row_block(self) -> Any:
        return self.threads // self.subgroup * self.row_fragments * SIDE

    @property
    def of_threads(self) -> AttentionKnobs:
        """How threads share out rows and keys: each subgroup has the rows of its own fragments."""
        side = self.key_block // KEYS
        rows = self.row_fragments * SIDE * side // self.subgroup
        return AttentionKnobs(self.threads, side, 1, rows, KEYS, 1, 0, self.subgroup)


@dataclass(frozen=True)
class Areas:
    """Where things begin in shared memory, in groups of 16 bytes, and the groups between their lines."""

    keys: int
    values: Any
    scores: Any
    factors: Any
    total: Any
    weight_pitch: Any
    score_pitch: Any
    factor_pitch: Any
    sum_pitch: Any

    @staticmethod
    def of(form: AttentionForm, knobs: MatrixAttentionKnobs) -> Areas:
        queries, keys, values = factors_of(form)
        element = keys.storage.element
        per, rows, block = GROUP_BYTES // element_bytes(element), knobs.row_block, knobs.key_block
        depth, width = padded(form.scores[0].loops[form.inner + 1].factor), form.width
        score_sum, value_sum = form.inner + 1, form.inner + 1
        key_groups = staged_groups(block, depth, SIDE, element, is_deep(keys, score_sum))
        value_groups = staged_groups(width, block, SIDE, element, is_deep(values, value_sum))
        query_groups = staged_groups(rows, depth, SIDE, element, is_deep(queries, score_sum))
        weight_pitch, score_pitch = odd(block // per), odd(block // POINTS)
        factor_pitch, sum_pitch = odd(SIDE // POINTS), odd(width // POINTS)
        first = most(key_groups, rows * weight_pitch)  # weights lie where keys were
        scores = first + value_groups
        factors = scores + rows * score_pitch
        total = most(most(factors + rows * factor_pitch, rows * sum_pitch), query_groups)
        return Areas(0, first, scores, factors, total, weight_pitch, score_pitch, factor_pitch, sum_pitch)


def factors_of(form: AttentionForm) -> tuple[Access, Access, Access]:
    """Queries, keys and values."""
    found = operands_of(form.scores[0], form.row, form.inner)
    assert not isinstance(found, str), "the strategy checked this"
    inputs = [source for source in form.values.statements[0].inputs if isinstance(source, Access)]
    (values,) = (source for source in inputs if source.storage is not form.weight)
    return *found, values


def padded(extent: int) -> int:
    """The next multiple of a fragment's depth."""
    return -(-extent // SIDE) * SIDE


@dataclass(frozen=True)
class _Product:
    """What stages belong to."""

    memory: Memory
    nest: Nest
    sum: int
    depth: int
    shared: mlir.Value


class MatrixSoftmax(OnlineSoftmax):
    """Writes what one thread does for the rows that workgroup number `group` has of a head."""

    def __init__(self, form: AttentionForm, memory: Memory, knobs: MatrixAttentionKnobs, group: mlir.Value):
        self.matrix_knobs, self.areas = knobs, Areas.of(form, knobs)
        super().__init__(form, memory, knobs.of_threads, group)
        at, (queries, keys, values) = self.at, factors_of(form)
        self.depth, block = padded(form.scores[0].loops[form.inner + 1].factor), knobs.key_block
        self.first = arith.MulIOp(gpu.subgroup_id(), at.index(knobs.row_fragments * SIDE)).result
        self.scored = _Product(memory, form.scores[0], form.inner + 1, self.depth, self.shared)
        self.weighed = _Product(memory, form.values, form.inner + 1, block, self.shared)
        self.query_side = Side(queries, (form.row,), knobs.row_block)
        self.key_side = Side(keys, (form.inner,), block)
        self.value_side = Side(values, (form.inner,), form.width)
        self.half = fragment_element(keys.storage.element)
        self.slices, self.key_fragments, self.columns_of_fragments = (
            self.depth // SIDE,
            block // SIDE,
            form.width // SIDE,
        )

    def _allocate(self) -> None:
        self.shared = self.at.shared(group_type(), self.areas.total)

    # --- the loop -----------------------------------------------------------------------------------------------------

    def emit(self, heads: list[mlir.Value]) -> None:
        self.heads = heads
        at, rows = self.at, self.knobs.rows
        queries = self._queries()
        zero = gpu.SubgroupMmaConstantMatrixOp(_type("f32", "COp"), at.constant(self.sum_type, 0.0)).result
        sums = [zero] * (self.matrix_knobs.row_fragments * self.columns_of_fragments)
        lowest, nothing = self._constant(float("-inf")), self._constant(0.0)
        coming = self._fetch(at.index(0))
        carried = [*[lowest] * rows, *[nothing] * rows, *sums, *coming]
        loop = scf.ForOp(at.index(0), at.index(self.blocks), at.index(1), carried)
        with mlir.InsertionPoint(loop.body):
            values = list(loop.inner_iter_args)
            seen = values[:rows], values[rows : 2 * rows], values[2 * rows : 2 * rows + len(sums)]
            scf.YieldOp(self._step(loop.induction_variable, queries, *seen, values[2 * rows + len(sums) :]))
        results = list(loop.results)
        totals = self._of_team(results[rows : 2 * rows], add)
        values = self._from_fragments(results[2 * rows : 2 * rows + len(sums)])
        self._finish(SoftmaxState(results[:rows], totals, values))

    def _step(
        self,
        step: mlir.Value,
        queries: list[mlir.Value],
        old_maxima: list[mlir.Value],
        old_sums: list[mlir.Value],
        fragments: list[mlir.Value],
        coming: list[mlir.Value],
    ) -> list[mlir.Value]:
        """One block of keys: what is carried to the next."""
        wanted, corner = self._keys_of(step)
        self._put(corner, coming)
        gpu.BarrierOp()
        coming = self._fetch(self._keys_of(self._later(step))[1])
        self._score(queries)
        gpu.BarrierOp()
        key = self._plus(corner, self.rank, KEYS)
        scores = self._finished_scores(key, self._with_initial(key, self._read_scores()))
        self._hide_old(scores, key, wanted)
        new = self._of_team([folded(maximum, scores[row]) for row in self.rows], maximum)
        maxima = [maximum(old_maxima[row], new[row]) for row in self.rows]
        shifts = [finite(one) for one in maxima]
        weights = [[exp_of_difference(score, shifts[row]) for score in scores[row]] for row in self.rows]
        factors = [exp_of_difference(old_maxima[row], shifts[row]) for row in self.rows]
        sums = [add(arith.MulFOp(old_sums[row], factors[row]).result, folded(add, weights[row])) for row in self.rows]
        self._write_weights(weights)
        self._write_factors(factors)
        gpu.BarrierOp()
        fragments = self._weigh(fragments)
        gpu.BarrierOp()
        return [*maxima, *sums, *fragments, *coming]

    def _later(self, step: mlir.Value) -> mlir.Value:
        """The next block, or the last again: what is loaded twice is not used."""
        following = arith.AddIOp(step, self.at.index(1)).result
        return arith.MinUIOp(following, self.at.index(self.blocks - 1)).result

    # --- keys and values ----------------------------------------------------------------------------------------------

    def _stages(self, corner: mlir.Value) -> tuple[MatrixStage, MatrixStage]:
        keys = MatrixStage(self.scored, self.key_side, corner, SIDE, self.areas.keys)
        values = MatrixStage(self.weighed, self.value_side, self.at.index(0), SIDE, self.areas.values)
        return keys, values

    def _fetch(self, corner: mlir.Value) -> list[mlir.Value]:
        """This thread's share of a block of keys and values, in registers."""
        found: list[mlir.Value] = []
        starts = self.at.index(0), corner
        for stage, nest, start in zip(self._stages(corner), (self.scored.nest, self.weighed.nest), starts, strict=True):
            stage.prepare(self._heads_of(nest))
            nothing: Indices = [None] * len(nest.loops)
            found += [stage.load(nothing, start, number) for number in range(stage.rounds)]
        return found

    def _put(self, corner: mlir.Value, groups: list[mlir.Value]) -> None:
        keys, values = self._stages(corner)
        for number in range(keys.rounds):
            keys.store(groups[number], number, self.at.index(0))
        for number in range(values.rounds):
            values.store(groups[keys.rounds + number], number, self.at.index(0))

    def _heads_of(self, nest: Nest) -> Indices:
        return [*self.heads, *[None] * (len(nest.loops) - len(self.heads))]

    # --- the first product --------------------------------------------------------------------------------------------

    def _queries(self) -> list[mlir.Value]:
        """Fragments of the subgroup's rows: those of one slice of the sum after the other."""
        at, of = self.at, self.matrix_knobs
        stage = MatrixStage(self.scored, self.query_side, self.row_corner, SIDE, 0)
        stage.prepare(self._heads_of(self.scored.nest))
        nothing: Indices = [None] * len(self.scored.nest.loops)
        for number in range(stage.rounds):
            stage.store(stage.load(nothing, at.index(0), number), number, at.index(0))
        gpu.BarrierOp()
        number = arith.MulIOp(gpu.subgroup_id(), at.index(of.row_fragments)).result
        first = stage.first_of(number, at.index(0))
        found = [
            stage.read(first, row, slice_, SIDE, True)
            for slice_ in range(self.slices)
            for row in range(of.row_fragments)
        ]
        gpu.BarrierOp()
        return found

    def _score(self, queries: list[mlir.Value]) -> None:
        """Puts scores of the subgroup's rows and all keys of the block into shared memory."""
        at, rows = self.at, self.matrix_knobs.row_fragments
        stage, _ = self._stages(at.index(0))
        first = stage.first_of(at.index(0), at.index(0))
        zero = gpu.SubgroupMmaConstantMatrixOp(_type("f32", "COp"), at.constant(self.element, 0.0)).result
        sums = [[zero] * self.key_fragments for _ in range(rows)]
        for slice_ in range(self.slices):
            keys = [stage.read(first, number, slice_, SIDE, False) for number in range(self.key_fragments)]
            for row in range(rows):
                query = queries[slice_ * rows + row]
                sums[row] = [
                    gpu.SubgroupMmaComputeOp(query, key, sum_).result for key, sum_ in zip(keys, sums[row], strict=True)
                ]
        for row in range(rows):
            for column, fragment in enumerate(sums[row]):
                place = self._place(self.areas.scores, self.areas.score_pitch, row, column * SIDE // POINTS)
                gpu.SubgroupMmaStoreMatrixOp(fragment, self.shared, [place], self.areas.score_pitch)

    def _place(self, area: int, pitch: int, row: int, ahead: int) -> mlir.Value:
        """Where the fragment of one of the subgroup's rows of them begins in an area."""
        line = self.memory.add(self.first, self.at.index(row * SIDE))
        return self.memory.add(arith.MulIOp(line, self.at.index(pitch)).result, self.at.index(area + ahead))

    def _line(self, row: int) -> mlir.Value:
        """The number of a row of this thread inside of the workgroup."""
        return self._plus(self.at.index(row), self.team, self.knobs.rows)

    def _read_scores(self) -> Tile:
        areas, count = self.areas, KEYS // POINTS
        found: Tile = []
        for row in self.rows:
            start = self._plus(self._at(areas.scores, areas.score_pitch, row), self.rank, count)
            groups = [
                memref.LoadOp(self.shared, [self.memory.add(start, self.at.index(number))]).result
                for number in range(count)
            ]
            found.append([self._number(group, lane) for group in groups for lane in range(POINTS)])
        return found

    def _at(self, area: int, pitch: int, row: int) -> mlir.Value:
        """Where a row of this thread begins in an area."""
        return self._plus(self.at.index(area), self._line(row), pitch)

    def _number(self, group: mlir.Value, lane: int) -> mlir.Value:
        return arith.BitcastOp(self.sum_type, vector.ExtractOp(group, [], [lane]).result).result

    def _with_initial(self, key: mlir.Value, sums: Tile) -> Tile:
        """What the sums begin with is added now: fragments begin with zeros."""
        nest = self.form.scores[0]
        first = nest.statements[0]
        if first.inits[0] is None:
            return sums
        tile = HeldTile(self.memory, nest, Held(), self.form.row, self.form.inner)
        block = Block(self._indices(nest, key), self.knobs.rows, KEYS, None)
        (initial,) = tile._initial(first, block, tile._loads(block))
        return [[add(*pair) for pair in zip(*pairs, strict=True)] for pairs in zip(initial, sums, strict=True)]

    # --- the second product -------------------------------------------------------------------------------------------

    def _write_weights(self, weights: Tile) -> None:
        """Puts the weights of this thread where its subgroup reads fragments of them."""
        areas, bits = self.areas, mlir.IntegerType.get_signless(16)
        for row in self.rows:
            halves = [converted(one, self.form.weight.element) for one in weights[row]]
            words = self._packed([arith.BitcastOp(bits, half).result for half in halves])
            group = vector.FromElementsOp(group_type(), words).result
            place = self.memory.add(self._at(areas.keys, areas.weight_pitch, row), self.rank)
            memref.StoreOp(group, self.shared, [place])

    def _packed(self, halves: list[mlir.Value]) -> list[mlir.Value]:
        """Words of two halves each, the first in the lower bits."""
        i32 = mlir.IntegerType.get_signless(32)
        wide = [arith.ExtUIOp(i32, half).result for half in halves]
        return [
            arith.OrIOp(low, arith.ShLIOp(high, self.at.constant(i32, 16)).result).result
            for low, high in zip(wide[::2], wide[1::2], strict=True)
        ]

    def _write_factors(self, factors: list[mlir.Value]) -> None:
        """The first threads of a team write the columns of a fragment."""
        areas, at, i32 = self.areas, self.at, mlir.IntegerType.get_signless(32)

        def write() -> None:
            for row, factor in enumerate(factors):
                word = arith.BitcastOp(i32, factor).result
                group = vector.FromElementsOp(group_type(), [word] * POINTS).result
                place = self.memory.add(self._at(areas.factors, areas.factor_pitch, row), self.rank)
                memref.StoreOp(group, self.shared, [place])

        if self.knobs.side == SIDE // POINTS:
            write()
            return
        branch = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ult, self.rank, at.index(SIDE // POINTS)).result)
        with mlir.InsertionPoint(branch.then_block):
            write()
            scf.YieldOp([])

    def _weigh(self, fragments: list[mlir.Value]) -> list[mlir.Value]:
        """Sums of values after one more block."""
        at, areas, rows = self.at, self.areas, self.matrix_knobs.row_fragments
        sums: Tile = []
        for row in range(rows):
            place = self._place(areas.factors, areas.factor_pitch, row, 0)
            factor = gpu.SubgroupMmaLoadMatrixOp(_type("f32", "COp"), self.shared, [place], areas.factor_pitch).result
            old = fragments[row * self.columns_of_fragments : (row + 1) * self.columns_of_fragments]
            sums.append([_product(one, factor) for one in old])
        _, stage = self._stages(at.index(0))
        first = stage.first_of(at.index(0), at.index(0))
        for slice_ in range(self.key_fragments):
            values = [stage.read(first, number, slice_, SIDE, False) for number in range(self.columns_of_fragments)]
            for row in range(rows):
                place = self._place(areas.keys, areas.weight_pitch, row, slice_ * SIDE // KEYS)
                type_ = _type(self.half, "AOp")
                weight = gpu.SubgroupMmaLoadMatrixOp(type_, self.shared, [place], areas.weight_pitch).result
                sums[row] = [
                    gpu.SubgroupMmaComputeOp(weight, value, sum_).result
                    for value, sum_ in zip(values, sums[row], strict=True)
                ]
        return [one for row in sums for one in row]

    def _from_fragments(self, fragments: list[mlir.Value]) -> Tile:
        """The sums of this thread's rows and columns, by way of shared memory."""
        areas, count = self.areas, self.columns // POINTS
        for number, fragment in enumerate(fragments):
            row, column = divmod(number, self.columns_of_fragments)
            place = self._place(0, areas.sum_pitch, row, column * SIDE // POINTS)
            gpu.SubgroupMmaStoreMatrixOp(fragment, self.shared, [place], areas.sum_pitch)
        gpu.BarrierOp()
        found: Tile = []
        for row in self.rows:
            start = self._plus(self._at(0, areas.sum_pitch, row), self.rank, count)
            places = [self.memory.add(start, self.at.index(number)) for number in range(count)]
            groups = [memref.LoadOp(self.shared, [place]).result for place in places]
            found.append([self._number(group, lane) for group in groups for lane in range(POINTS)])
        return found


def _type(element: str, use: str) -> mlir.Type:
    return mlir.Type.parse(f'!gpu.mma_matrix<{SIDE}x{SIDE}x{element}, "{use}">')


def _product(one: mlir.Value, other: mlir.Value) -> mlir.Value:
    """Element by element."""
    kind = mlir.Attribute.parse("#gpu<mma_element_wise mulf>")
    return gpu.SubgroupMmaElementwiseOp(one.type, [one, other], kind).result
