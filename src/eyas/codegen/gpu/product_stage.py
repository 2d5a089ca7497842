"""An operand's way to the threads of a product: from memory through registers into shared memory, in groups of four.

Elements that are neighbours in memory stay neighbours, along the sum or across it, so that vectors are copied as they
are. Lines along the sum are put where threads that have every fourth of them read from different banks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, memref, scf, vector

from eyas.codegen.common.emission.tile_loads import Block, Indices, TileContext
from eyas.codegen.common.expressions import Number, odd
from eyas.codegen.common.kernel import Access
from eyas.codegen.common.sizes import ONE
from eyas.codegen.gpu.axis import Axis
from eyas.codegen.gpu.thread_tile import ThreadLoads, vector_of

if TYPE_CHECKING:
    from eyas.codegen.gpu.product_tile import ProductTile

GROUP = 4
"""Elements that pass through shared memory together."""


def is_deep(access: Access, sum_: Axis) -> bool:
    """Whether neighbours in memory lie along the sum."""
    return access.strides[sum_.inner] == ONE


def staged_groups(extent: Number, depth: Number, deep: bool) -> Any:
    """Groups of shared memory that `depth` steps of `extent` rows or columns take."""
    return extent * odd(depth // GROUP) if deep else depth * (extent // GROUP)


@dataclass(frozen=True)
class _Share:
    """One group of elements that a thread brings in each step."""

    slot: mlir.Value
    """Where it goes in shared memory."""
    step: mlir.Value
    """Its first step, counted from the first of those that are brought together."""
    places: list[Indices]
    """Indices of its elements but for the sum: of the first, or of each where they are loaded one by one."""
    mine: mlir.Value | None
    """Whether the thread brings it at all; None for sure."""


class ProductStage:
    """The part of an operand that a slice of a workgroup has in shared memory: `extent` points of an axis from `corner`
    on, and `depth` steps of the sum. `first` is where its memory begins, in groups."""

    def __init__(self, tile: ProductTile, access: Access, axis: Axis, extent: int, corner: mlir.Value, first: int):
        self.tile, self.access, self.axis, self.extent, self.corner = tile, access, axis, extent, corner
        self.first, self.depth = first, tile.depth
        self.is_deep = is_deep(access, tile.sum)
        self.size = staged_groups(extent, tile.depth, self.is_deep)
        along = (tile.sum if self.is_deep else axis).inner
        self.context = TileContext(tile.memory, None, along)
        # Groups of neighbours do not go around the end of a line.
        lines_are_whole = tile.nest.loops[along].factor % GROUP == 0
        self.together = lines_are_whole and vector_of(access, along, GROUP, tile.memory) > 1
        self.sticks_out = axis.extent.static is None or bool(axis.extent.static % extent)
        self._outer: list[list[ThreadLoads]] = []
        groups = extent * self.depth // GROUP
        rounds = -(-groups // tile.team)
        self.shares = [self._share(number, groups) for number in range(rounds)]

    # --- what a thread brings -----------------------------------------------------------------------------------------

    def _share(self, number: int, groups: int) -> _Share:
        at, memory, side = self.tile.at, self.tile.memory, (self.depth if self.is_deep else self.extent) // GROUP
        group, mine = memory.add(self.tile.member, at.index(number * self.tile.team)), None
        if groups < (number + 1) * self.tile.team:
            mine = arith.CmpIOp(arith.CmpIPredicate.ult, group, at.index(groups)).result
            group = arith.MinUIOp(group, at.index(groups - 1)).result
        slow, fast = (kind(group, at.index(side)).result for kind in (arith.DivUIOp, arith.RemUIOp))
        fast_step = arith.MulIOp(fast, at.index(GROUP)).result
        spot, step = (slow, fast_step) if self.is_deep else (fast_step, slow)
        slot = memory.add(self._line(slow), fast)
        count = 1 if self.together or self.is_deep else GROUP
        last = GROUP if self.together and not self.is_deep else 1
        places = [self._place(memory.add(spot, at.index(lane)), last) for lane in range(count)]
        return _Share(memory.add(slot, at.index(self.first)), step, places, mine)

    def _place(self, spot: mlir.Value, last: int) -> Indices:
        """Indices of a point of the tile; those beyond the end are read from there, and never stored."""
        memory, at = self.tile.memory, self.tile.at
        position = arith.AddIOp(self.corner, spot).result
        if self.sticks_out:
            beyond = arith.SubIOp(memory.size(self.axis.extent), at.index(last)).result
            position = arith.MinUIOp(position, beyond).result
        return self.axis.place(memory, [None] * len(self.tile.nest.loops), position)

    def _line(self, number: mlir.Value) -> mlir.Value:
        """Where a line begins: one along the sum for each point, or one across it for each step."""
        at = self.tile.at
        if not self.is_deep:
            return arith.MulIOp(number, at.index(self.extent // GROUP)).result
        block = arith.MulIOp(arith.RemUIOp(number, at.index(GROUP)).result, at.index(self.extent // GROUP)).result
        line = arith.AddIOp(block, arith.DivUIOp(number, at.index(GROUP)).result).result
        return arith.MulIOp(line, at.index(self.depth // GROUP | 1)).result

    # --- from memory to registers -------------------------------------------------------------------------------------

    def enter(self, indices: Indices) -> None:
        """Computes what stays the same in all steps of the sum, for the given indices of all other loops."""
        self._outer = []
        for share in self.shares:
            places = [_joined(indices, place) for place in share.places]
            count = GROUP if self.together else 1
            loads = [ThreadLoads(self.context, Block(place, 1, count, None), None, None) for place in places]
            for one in loads:
                one.prepare([self.access])
            self._outer.append(loads)

    def load(self, start: mlir.Value) -> list[mlir.Value]:
        """This thread's groups from the step `start` of the sum on, in vectors; zeros behind its end."""
        return [self._group(share, outer, start) for share, outer in zip(self.shares, self._outer, strict=True)]

    def _group(self, share: _Share, outer: list[ThreadLoads], start: mlir.Value) -> mlir.Value:
        memory, at = self.tile.memory, self.tile.at
        type_ = mlir.VectorType.get([GROUP], self.access.storage.element)
        first = memory.add(start, share.step)
        if self.together:
            point, inside = self._step(first, GROUP if self.is_deep else 1)
            lanes = [self._or_zero(inside, lane) for lane in self._elements(outer[0], point, GROUP)]
            return vector.FromElementsOp(type_, lanes).result
        lanes = []
        for lane in range(GROUP):
            point, inside = self._step(memory.add(first, at.index(lane)) if self.is_deep else first, 1)
            (value,) = self._elements(outer[0 if self.is_deep else lane], point, 1)
            lanes.append(self._or_zero(inside, value))
        return vector.FromElementsOp(type_, lanes).result

    def _or_zero(self, inside: mlir.Value | None, value: mlir.Value) -> mlir.Value:
        return value if inside is None else arith.SelectOp(inside, value, self.tile.memory.zero_like(value)).result

    def _step(self, point: mlir.Value, last: int) -> tuple[mlir.Value, mlir.Value | None]:
        """A step of the sum that there is, and whether it is the one that was asked for."""
        if not self.tile.ends_early:
            return point, None
        memory, at = self.tile.memory, self.tile.at
        steps = memory.size(self.tile.sum.extent)
        inside = arith.CmpIOp(arith.CmpIPredicate.ult, point, steps).result
        return arith.MinUIOp(point, arith.SubIOp(steps, at.index(last)).result).result, inside

    def _elements(self, outer: ThreadLoads, point: mlir.Value, count: int) -> list[mlir.Value]:
        indices = self.tile.sum.place(self.tile.memory, outer.block.indices, point, self.access)
        loads = ThreadLoads(self.context, Block(indices, 1, count, None), outer, None)
        return [loads.get(self.access, 0, lane) for lane in range(count)]

    # --- to shared memory, and from there to the threads --------------------------------------------------------------

    def store(self, groups: list[mlir.Value], buffer: mlir.Value) -> None:
        """Puts what `load` gave into the part of shared memory that begins at `buffer`."""
        for share, group in zip(self.shares, groups, strict=True):
            address = self.tile.memory.add(buffer, share.slot)
            if share.mine is None:
                memref.StoreOp(group, self.tile.shared, [address])
                continue
            branch = scf.IfOp(share.mine)
            with mlir.InsertionPoint(branch.then_block):
                memref.StoreOp(group, self.tile.shared, [address])
                scf.YieldOp([])

    def read(self, buffer: mlir.Value, place: mlir.Value, points: int, stride: int, step: int) -> list[list]:
        """Elements of GROUP steps from `step` on, a list for each: of `points` in groups, the first of which is number
        `place` of the tile's, the others `stride` groups apart."""
        found: list[list[mlir.Value]] = [[] for _ in range(GROUP)]
        pitch, quarter = self.depth // GROUP | 1, self.extent // GROUP
        for group in range(points // GROUP):
            for number in range(GROUP):
                if self.is_deep:  # one point, all steps
                    ahead = (number * quarter + group * stride) * pitch + step // GROUP
                    lanes = self._lanes(buffer, place, pitch, ahead)
                    for at, lane in enumerate(lanes):
                        found[at].append(lane)
                else:  # one step, all points
                    ahead = (step + number) * quarter + group * stride
                    found[number] += self._lanes(buffer, place, 1, ahead)
        return found

    def _lanes(self, buffer: mlir.Value, place: mlir.Value, pitch: int, ahead: int) -> list[mlir.Value]:
        memory, at = self.tile.memory, self.tile.at
        address = memory.add(buffer, memory.multiply(place, pitch))
        whole = memref.LoadOp(self.tile.shared, [memory.add(address, at.index(ahead + self.first))]).result
        return [vector.ExtractOp(whole, [], [lane]).result for lane in range(GROUP)]


def _joined(indices: Indices, more: Indices) -> Indices:
    return [one if other is None else other for one, other in zip(indices, more, strict=True)]
