"""The points of a nest that one thread has: neighbours in registers, loaded and stored in vectors where they can be."""

from __future__ import annotations

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, scf

from eyas.codegen.common.emission.tile_body import TileBody
from eyas.codegen.common.emission.tile_loads import Block, TileContext, TileLoads
from eyas.codegen.common.kernel import Access, Nest, Storage
from eyas.codegen.common.sizes import ONE, ZERO
from eyas.codegen.gpu.memory import Memory

VECTORS = (4, 2)
"""Neighbours that memory hands over at once."""


class ThreadTile(TileBody):
    """`rows` points along one loop and `vectors` along another, each a scalar. `writes` is the condition under which
    this thread stores what it makes."""

    def __init__(self, memory: Memory, nest: Nest, row_loop: int | None = None, lane_loop: int | None = None):
        super().__init__(memory, nest, TileContext(memory, row_loop, lane_loop), 1)
        self.memory: Memory = memory
        self.writes: mlir.Value | None = None

    def run(self, block: Block) -> None:
        """All statements of the nest for one tile."""
        self._block(block, self.nest.statements)

    def _loads(self, block: Block, outer: TileLoads | None = None) -> TileLoads:
        return ThreadLoads(self.context, block, 1, outer)

    def _store(self, access: Access, block: Block, values: list[list[mlir.Value]]) -> None:
        if self.writes is None:
            self._store_all(access, block, values)
            return
        branch = scf.IfOp(self.writes)
        with mlir.InsertionPoint(branch.then_block):
            self._store_all(access, block, values)
            scf.YieldOp([])

    def _store_all(self, access: Access, block: Block, values: list[list[mlir.Value]]) -> None:
        loads = self._loads(block)
        count = vector_of(access, self.lane_loop, block.vectors, self.memory)
        for row in range(block.rows):
            for first in range(0, block.vectors, count):
                address = loads.address(access, row, first)
                if count > 1:
                    self.memory.store_vector(access.storage, address, values[row][first : first + count])
                else:
                    self.memory.store(access.storage, address, values[row][first], 1, ZERO, None)


class ThreadLoads(TileLoads):
    """Loads of one thread's tile."""

    memory: Memory

    def get(self, access: Access, row: int, vector: int) -> mlir.Value:
        count = vector_of(access, self.lane_loop, self.block.vectors, self.memory)
        if count == 1:
            return super().get(access, row, vector)
        row = row if self._depends(access, self.row_loop) else 0
        if (id(access), row, vector) not in self.values:
            first = vector - vector % count
            for lane, value in enumerate(self._load_vector(access, row, first, count)):
                self.values[id(access), row, first + lane] = value
        return self.values[id(access), row, vector]

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
