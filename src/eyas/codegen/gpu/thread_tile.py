"""The points of a nest that one thread has: neighbours in registers, loaded and stored in vectors where they can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, scf

from eyas.codegen.common.emission.tile_body import TileBody, with_index
from eyas.codegen.common.emission.tile_loads import Block, TileContext, TileLoads
from eyas.codegen.common.kernel import Access, Nest, Storage
from eyas.codegen.common.sizes import ONE, ZERO
from eyas.codegen.gpu.memory import Memory

VECTORS = (4, 2)
"""Neighbours that memory hands over at once."""


@dataclass
class Ahead:
    """Several steps of a reduction that are written out: what lies side by side along its loop is loaded at once, by
    the first of them, and what one row reads in one step and another row in another, where windows overlap, once."""

    loop: int
    count: int
    step: int = 0
    loaded: dict[tuple[int, int, int], list[mlir.Value]] = field(default_factory=dict)
    slid: dict[tuple[int, int, int], mlir.Value] = field(default_factory=dict)
    """Elements by the access, how far from the first row and step they lie, and the lane."""


class ThreadTile(TileBody):
    """`rows` points along one loop and `vectors` along another, each a scalar. `writes` is the condition under which
    this thread stores what it makes; `depth` steps of the innermost reduction are written out."""

    def __init__(
        self, memory: Memory, nest: Nest, row_loop: int | None = None, lane_loop: int | None = None, depth: int = 1
    ):
        super().__init__(memory, nest, TileContext(memory, row_loop, lane_loop), 1)
        self.memory: Memory = memory
        self.writes: mlir.Value | None = None
        self.later: list[Callable[[], None]] | None = None
        """Where stores are put off to: a load cannot be moved before one."""
        self.depth = depth
        self.ahead: Ahead | None = None

    def run(self, block: Block) -> None:
        """All statements of the nest for one tile."""
        self._block(block, self.nest.statements)

    def sums(self, block: Block) -> list[list[mlir.Value]]:
        """What the first statement sums up, for each row and lane of a tile."""
        return self._reduce(self.nest.statements[0], block, {})[0]

    def _loads(self, block: Block, outer: TileLoads | None = None) -> ThreadLoads:
        return ThreadLoads(self.context, block, outer, self.ahead)

    def _run_reductions(
        self,
        loops: Sequence[int],
        block: Block,
        carried: list[mlir.Value],
        step: Callable[[Block, list[mlir.Value]], list[mlir.Value]],
        reach: int = 1,
    ) -> list[mlir.Value]:
        if len(loops) != 1 or self.depth == 1 or self.nest.loops[loops[0]].factor % self.depth:
            return super()._run_reductions(loops, block, carried, step, reach)
        return super()._run_reductions(loops, block, carried, self._steps(loops[0], step), self.depth)

    def _steps(
        self, loop: int, step: Callable[[Block, list[mlir.Value]], list[mlir.Value]]
    ) -> Callable[[Block, list[mlir.Value]], list[mlir.Value]]:
        """`depth` steps of a reduction, one after the other."""

        def steps(first: Block, values: list[mlir.Value]) -> list[mlir.Value]:
            index = first.indices[loop]
            assert index is not None
            ahead = Ahead(loop, self.depth)
            for number in range(self.depth):
                self.ahead = replace(ahead, step=number)
                at = self.memory.add(index, self.at.index(number))
                values = step(replace(first, indices=with_index(first.indices, loop, at)), values)
            self.ahead = None
            return values

        return steps

    def _store(self, access: Access, block: Block, values: list[list[mlir.Value]]) -> None:
        if self.later is not None:
            self.later.append(lambda: self._store_now(access, block, values))
        else:
            self._store_now(access, block, values)

    def _store_now(self, access: Access, block: Block, values: list[list[mlir.Value]]) -> None:
        if self.writes is None:
            self._store_all(access, block, values)
            return
        branch = scf.IfOp(self.writes)
        with mlir.InsertionPoint(branch.then_block):
            self._store_all(access, block, values)
            scf.YieldOp([])

    def _store_all(self, access: Access, block: Block, values: list[list[mlir.Value]]) -> None:
        loads = self._loads(block)
        count = vector_of(access, self.lane_loop, loads.aligned, self.memory)
        for row in range(block.rows):
            for first in range(0, block.vectors, count):
                address = loads.address(access, row, first)
                if count > 1:
                    self.memory.store_vector(access.storage, address, values[row][first : first + count])
                else:
                    self.memory.store(access.storage, address, values[row][first], 1, ZERO, None)


class ThreadLoads(TileLoads):
    """Loads of one thread's tile, whose first lane has an index that is a multiple of `aligned`: of its number of lanes
    unless told otherwise."""

    memory: Memory

    def __init__(
        self,
        context: TileContext,
        block: Block,
        outer: TileLoads | None,
        ahead: Ahead | None,
        aligned: int | None = None,
    ):
        super().__init__(context, block, 1, outer)
        self.ahead = ahead
        self.aligned = block.vectors if aligned is None else aligned

    def get(self, access: Access, row: int, vector: int) -> mlir.Value:
        if self.ahead is not None and self._is_ahead(access, self.ahead):
            return self._load_ahead(access, row, vector, self.ahead)
        if self.ahead is not None and slides(access, self.row_loop, self.ahead.loop):
            return self._load_slid(access, row, vector, self.ahead)
        return self._get(access, row, vector)

    def _load_slid(self, access: Access, row: int, vector: int, ahead: Ahead) -> mlir.Value:
        """What this row reads in this step may be what another has read before."""
        assert self.row_loop is not None
        vector = vector if self._depends(access, self.lane_loop) else 0
        apart = row * access.strides[self.row_loop].factor + ahead.step * access.strides[ahead.loop].factor
        key = (id(access), apart, vector)
        if key not in ahead.slid:
            ahead.slid[key] = self._get(access, row, vector)
        return ahead.slid[key]

    def _get(self, access: Access, row: int, vector: int) -> mlir.Value:
        count = vector_of(access, self.lane_loop, self.aligned, self.memory)
        if count == 1:
            return super().get(access, row, vector)
        row = row if self._depends(access, self.row_loop) else 0
        if (id(access), row, vector) not in self.values:
            first = vector - vector % count
            for lane, value in enumerate(self._load_vector(access, row, first, count)):
                self.values[id(access), row, first + lane] = value
        return self.values[id(access), row, vector]

    def _is_ahead(self, access: Access, ahead: Ahead) -> bool:
        """Whether what several steps read lies side by side, and not what several lanes read."""
        width = vector_of(access, ahead.loop, ahead.count, self.memory)
        return not access.guards and width == ahead.count

    def _load_ahead(self, access: Access, row: int, vector: int, ahead: Ahead) -> mlir.Value:
        row = row if self._depends(access, self.row_loop) else 0
        vector = vector if self._depends(access, self.lane_loop) else 0
        key = (id(access), row, vector)
        if key not in ahead.loaded:
            assert ahead.step == 0, "the first step loads for all"
            address = self.address(access, row, vector)
            ahead.loaded[key] = self.memory.load_vector(access.storage, address, ahead.count)
        return ahead.loaded[key][ahead.step]

    def _load_vector(self, access: Access, row: int, first: int, count: int) -> list[mlir.Value]:
        address = self.address(access, row, first)
        if not access.guards:
            return self.memory.load_vector(access.storage, address, count)
        inside = self._guard(access, row, first, 1)
        assert isinstance(access.otherwise, mlir.Value), "vector_of asks for that"
        fallback = self.memory.scalar(access.otherwise)
        safe = arith.SelectOp(inside, address, self.memory.constant_index(0)).result
        lanes = self.memory.load_vector(access.storage, safe, count)
        return [arith.SelectOp(inside, lane, fallback).result for lane in lanes]


def slides(access: Access, row: int | None, step: int) -> bool:
    """Whether rows of an access read the same elements in different steps, and under the same conditions."""
    if row is None or isinstance(access.otherwise, Access):
        return False
    down, along = access.strides[row], access.strides[step]
    if not down.factor or not along.factor or down.symbols != along.symbols:
        return False
    return all(
        guard.coefficients[row] * along.factor == guard.coefficients[step] * down.factor for guard in access.guards
    )


def vector_of(access: Access, loop: int | None, points: int, memory: Memory) -> int:
    """How many neighbours along `loop`, whose index is a multiple of `points`, one load brings."""
    if loop is None or access.strides[loop] != ONE or not memory.has_vectors(access.storage):
        return 1
    if any(guard.coefficients[loop] for guard in access.guards) or isinstance(access.otherwise, Access):
        return 1
    others = [stride for at, stride in enumerate(access.strides) if at != loop]
    others += [*access.offset, *access.storage.start, access.storage.step]
    fitting = (count for count in VECTORS if points % count == 0 and all(one.factor % count == 0 for one in others))
    return next(fitting, 1)


def points_along(nest: Nest, loop: int | None) -> int:
    """How many neighbours along a loop a thread should have so that it uses vectors: as many as divide its extent."""
    if loop is None:
        return 1
    extent = nest.loops[loop]
    return next((count for count in VECTORS if extent.factor % count == 0 and extent.factor), 1)


def contiguous_loop(nest: Nest, loops: list[int]) -> int | None:
    """The loop along which most of what is written, or else read, are neighbours."""
    outputs = [output for statement in nest.statements for output in statement.outputs if output is not None]
    for loop in reversed(loops):
        if outputs and all(output.strides[loop] == ONE for output in outputs):
            return loop
    return None


def storages_read(nest: Nest) -> list[Storage]:
    """Where a nest reads from."""
    found: list[Storage] = []
    for statement in nest.statements:
        for source in (*statement.inputs, *statement.inits):
            while isinstance(source, Access):
                found.append(source.storage)
                source = source.otherwise
    return found
