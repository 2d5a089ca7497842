"""Transforms of small tiles: a tile in registers, its sums written out, and what follows on each element.

Tiles at the edge test each element that they read or write; the others do not. Which kind a tile is, is asked once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, scf

from eyas.codegen.common.emission.linear_map import LinearMap
from eyas.codegen.common.emission.tile_body import TileBody
from eyas.codegen.common.emission.tile_loads import Block, Indices
from eyas.codegen.common.kernel import Access, Guard, Statement
from eyas.codegen.common.transform import TileTransform, transform_of


class TransformBody(TileBody):
    """The statements of a nest that begins with a transform, for tiles in `context`."""

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
        height, wide = transform.left.shape[1], transform.right.shape[1]
        left, right = LinearMap(transform.left, self.memory), LinearMap(transform.right, self.memory)
        columns = []
        known: dict[tuple, mlir.Value] = {}
        for j in range(wide):
            at = [self._at(block, {transform.i: i, transform.j: j}) for i in range(height)]
            columns.append(left.apply([self._element(transform.source, one, known) for one in at]))
        for p in range(len(transform.left)):
            row = right.apply([column[p] for column in columns])
            for q, value in enumerate(row):
                self._finish(self._at(block, {transform.p: p, transform.q: q}), statements, value, guards)

    def _element(self, access: Access, block: Block, known: dict[tuple, mlir.Value]) -> mlir.Value:
        """One element of the source, for all lanes; `known` are the tests that this tile made before."""
        del known
        return self._loads(block).get(access, 0, 0)

    def _at(self, block: Block, loops: dict[int, int]) -> Block:
        indices = list(block.indices)
        for loop, index in loops.items():
            indices[loop] = self.at.index(index)
        return Block(indices, 1, 1, block.mask)

    def _finish(
        self, block: Block, statements: Sequence[Statement], value: mlir.Value, guards: tuple[Guard, ...]
    ) -> None:
        """Stores one element of the tile, or what the following statements make of it, if it is inside."""
        if guards:
            inside = None
            for guard in guards:
                condition = self.memory.in_range(self._position(guard, block.indices), guard.extent)
                inside = condition if inside is None else arith.AndIOp(inside, condition).result
            branch = scf.IfOp(inside)
            with mlir.InsertionPoint(branch.then_block):
                self._finish(block, statements, value, ())
                scf.YieldOp([])
            return
        made = {(0, 0): [[value]]}
        for position, statement in enumerate(statements):
            if position:
                loads = self._loads(block)
                tiles = self._apply(statement, block, loads, made, self._initial(statement, block, loads))
                made.update({(position, output): tile for output, tile in enumerate(tiles)})
            for output, access in enumerate(statement.outputs):
                if access is not None:
                    self._store(access, block, made[position, output])
