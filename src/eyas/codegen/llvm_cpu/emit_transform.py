"""Emits a nest that transforms tiles: a tile in registers, its sums written out, and what follows on each element.

Tiles at the edge test each element that they read or write; the others do not. Which kind a tile is, is asked once.
What is outside of the image is read from a line of zeros, so that a test costs two conditional moves and no mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, scf

from eyas.codegen.common.emission.tile_loads import Block, Indices, TileLoads
from eyas.codegen.common.kernel import Access, Guard, Statement
from eyas.codegen.common.sizes import Size
from eyas.codegen.common.transform import TileTransform, transform_of
from eyas.codegen.llvm_cpu.emit import NestEmitter
from eyas.codegen.llvm_cpu.linear_map import LinearMap
from eyas.ir.structured import constant_scalar


class TransformEmitter(NestEmitter):
    takes_guards = True

    def emit(self, indices: Indices) -> None:
        transform = self._transform()
        apart = (self.lane_loop, transform.p, transform.q)
        plain = [loop for loop in self.nest.parallel if indices[loop] is None and loop not in apart]
        self._enter(plain, indices, self._vector_blocks)

    def _transform(self) -> TileTransform:
        transform = transform_of(self.nest)
        assert transform is not None, "the strategy checked this"
        return transform

    def _block(self, block: Block, statements: Sequence[Statement]) -> None:
        transform = self._transform()
        guards = [*transform.source.guards, *self.nest.guards]
        if not guards:
            self._tile(block, statements, transform, ())
            return
        inside = None
        for guard in guards:
            for condition in self._all_inside(guard, block.indices):
                inside = condition if inside is None else arith.AndIOp(inside, condition).result
        branch = scf.IfOp(inside, has_else=True)
        with mlir.InsertionPoint(branch.then_block):
            self._tile(block, statements, replace(transform, source=replace(transform.source, guards=())), ())
            scf.YieldOp([])
        with mlir.InsertionPoint(branch.else_block):
            self._tile(block, statements, transform, self.nest.guards)
            scf.YieldOp([])

    def _all_inside(self, guard: Guard, indices: Indices) -> list[mlir.Value]:
        """Whether the first and the last element of the tile are inside."""
        first, beyond = self._position(guard, indices), 0
        for loop, coefficient in enumerate(guard.coefficients):
            if coefficient and indices[loop] is None:
                beyond += coefficient * ((self.nest.loops[loop].static or 1) - 1)
        last = self.memory.add(first, self.at.index(beyond))
        low = arith.CmpIOp(arith.CmpIPredicate.sge, first, self.at.index(0)).result
        high = arith.CmpIOp(arith.CmpIPredicate.slt, last, self.memory.size(guard.extent)).result
        return [low, high]

    def _position(self, guard: Guard, indices: Indices) -> mlir.Value:
        position = self.at.index(guard.shift)
        for coefficient, index in zip(guard.coefficients, indices, strict=True):
            if coefficient and index is not None:
                position = self.memory.add(position, self.memory.multiply(index, coefficient))
        return position

    def _tile(
        self, block: Block, statements: Sequence[Statement], transform: TileTransform, guards: tuple[Guard, ...]
    ) -> None:
        width = self.tile.width if self.lane_loop is not None else 1
        height, wide = transform.left.shape[1], transform.right.shape[1]
        left, right = LinearMap(transform.left, self.memory), LinearMap(transform.right, self.memory)
        columns = []
        known: dict[tuple, mlir.Value] = {}
        for j in range(wide):
            at = [self._at(block, {transform.i: i, transform.j: j}) for i in range(height)]
            columns.append(left.apply([self._element(transform.source, one, width, known) for one in at]))
        for p in range(len(transform.left)):
            row = right.apply([column[p] for column in columns])
            for q, value in enumerate(row):
                self._finish(self._at(block, {transform.p: p, transform.q: q}), statements, value, guards, width)

    def _element(self, access: Access, block: Block, width: int, known: dict[tuple, mlir.Value]) -> mlir.Value:
        """One element of the source, for all lanes; `known` are the tests that this tile made before."""
        loads = TileLoads(self.context, block, width)
        zero = isinstance(access.otherwise, mlir.Value) and constant_scalar(access.otherwise) == 0
        lanes = self.lane_loop
        if lanes is None or not access.guards or not zero or access.strides[lanes] != Size(1):
            return loads.get(access, 0, 0)
        if any(guard.coefficients[lanes] for guard in access.guards):
            return loads.get(access, 0, 0)
        inside = None
        for number, guard in enumerate(access.guards):
            key = (number, *(block.indices[loop] for loop, factor in enumerate(guard.coefficients) if factor))
            if key not in known:
                known[key] = self.memory.in_range(self._position(guard, block.indices), guard.extent)
            inside = known[key] if inside is None else arith.AndIOp(inside, known[key]).result
        assert inside is not None
        return self.memory.load_or_zeros(access.storage, loads.address(access, 0, 0), width, block.mask, inside)

    def _at(self, block: Block, loops: dict[int, int]) -> Block:
        indices = list(block.indices)
        for loop, index in loops.items():
            indices[loop] = self.at.index(index)
        return Block(indices, 1, 1, block.mask)

    def _finish(
        self, block: Block, statements: Sequence[Statement], value: mlir.Value, guards: tuple[Guard, ...], width: int
    ) -> None:
        """Stores one element of the tile, or what the following statements make of it, if it is inside."""
        if guards:
            inside = None
            for guard in guards:
                condition = self.memory.in_range(self._position(guard, block.indices), guard.extent)
                inside = condition if inside is None else arith.AndIOp(inside, condition).result
            branch = scf.IfOp(inside)
            with mlir.InsertionPoint(branch.then_block):
                self._finish(block, statements, value, (), width)
                scf.YieldOp([])
            return
        made = {(0, 0): [[value]]}
        for position, statement in enumerate(statements):
            if position:
                loads = TileLoads(self.context, block, width)
                tiles = self._apply(statement, block, loads, made, self._initial(statement, block, loads))
                made.update({(position, output): tile for output, tile in enumerate(tiles)})
            for output, access in enumerate(statement.outputs):
                if access is not None:
                    self._store(access, block, made[position, output])
