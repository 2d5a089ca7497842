"""Transforms of small tiles by constant matrices, as before and after the products of Winograd convolutions.

Columns are channels, rows are neighbours among the small tiles. Each element of a small tile is then one tile of the
machine, and the matrices are additions and multiply-adds of those. Where a small tile leaves the image, `tload_inside`
reads zeros, and rows that stick out are not stored.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eyas.codegen.common import linear_map
from eyas.codegen.common.kernel import Access, Guard, Nest, Statement, Unsupported
from eyas.codegen.common.schedule import Tile
from eyas.codegen.common.transform import transform_of
from eyas.codegen.vmvx.builder import Builder, Scalar
from eyas.codegen.vmvx.builder import Tile as Value
from eyas.codegen.vmvx.emit import UNIT, Bounds, KernelEmitter, NestEmitter
from eyas.codegen.vmvx.memory import View
from eyas.codegen.vmvx.types import tile_type
from eyas.module.vmvx_isa import Type

# Tiles between the two matrices that are kept; the others are made in a second turn from the same elements.
_MOST_KEPT = 24
# Small enough that all of them together stay in the second-level cache; larger ones gain nothing.
_MOST_ELEMENTS = 4 * UNIT


class TransformEmitter(NestEmitter):
    takes_guards = True

    def __init__(self, parent: KernelEmitter, nest: Nest, tile: Tile, bounds: Bounds):
        super().__init__(parent, nest, tile, bounds)
        found = transform_of(nest)
        if found is None or tile.loop is None:
            raise Unsupported("no transform of tiles")
        if tile_type(found.source.storage.element) is not Type.F32:
            raise Unsupported("a transform of another type than f32")
        if any(
            guard.shift < 0 or min(guard.coefficients) < 0 or guard.coefficients[tile.loop] for guard in nest.guards
        ):
            raise Unsupported("tiles that stick out on another side than the end of their rows")
        self.transform = found
        self.parts = -(-len(found.left) * found.right.shape[1] // _MOST_KEPT)

    def emit(self, view: View) -> None:
        lane, row = self.tile.loop, self.tile.unroll_loop
        apart = (lane, row, self.transform.p, self.transform.q)
        plain = [loop for loop in self.nest.parallel if view.indices[loop] is None and loop not in apart]
        most_rows, most_columns = self._tile_sizes()

        def rows(outer: View) -> None:
            self._blocks(row, most_rows, outer, View.with_rows, self._block)

        self._enter(plain, view, lambda outer: self._blocks(lane, most_columns, outer, View.with_columns, rows))

    def _tile_sizes(self) -> tuple[Scalar, Scalar]:
        builder, lane, row = self.builder, self.tile.loop, self.tile.unroll_loop
        assert lane is not None
        most = builder.min(self.parent.capacity, builder.const(_MOST_ELEMENTS))
        rows = builder.const(1) if row is None else builder.min(self._span(row), builder.const(self.tile.unroll))
        columns = builder.max(builder.min(self._span(lane), builder.div(most, rows)), builder.const(1))
        return rows, columns

    def _block(self, view: View) -> None:
        height, found = len(self.transform.left), self.transform
        each = -(-height // self.parts)
        for first in range(0, height, each):
            left = TileMap(found.left[first : first + each], self.builder)
            right = TileMap(found.right, self.builder)
            columns = [left.apply(self._column(view, j)) for j in range(found.right.shape[1])]
            for p in range(len(left.matrix)):
                for q, value in enumerate(right.apply([column[p] for column in columns])):
                    self._finish(self._at(view, {found.p: first + p, found.q: q}), value)

    def _column(self, view: View, j: int) -> list[Value]:
        """Elements of the source, loaded again in each turn: tiles are few."""
        found = self.transform
        at = [self._at(view, {found.i: i, found.j: j}) for i in range(found.left.shape[1])]
        return [self.memory.load(found.source, one, again=self.parts > 1) for one in at]

    def _at(self, view: View, loops: dict[int, int]) -> View:
        for loop, index in loops.items():
            view = view.at(loop, self.builder.const(index))
        return view

    def _finish(self, view: View, value: Value) -> None:
        """Stores what the following statements make of an element, where it is inside."""
        made = {(0, 0): value}
        results: list[tuple[Access, Value]] = []
        for position, statement in enumerate(self.nest.statements):
            if position:
                guarded = self._guarded(statement)
                values = self._apply(guarded, view, made, self._initial(guarded, view))
                made.update({(position, output): one for output, one in enumerate(values)})
            results += [
                (one, made[position, output]) for output, one in enumerate(statement.outputs) if one is not None
            ]
        if not self.nest.guards:
            for access, result in results:
                self.memory.store(access, result, view, self.nest.loops)
            return
        builder, one, zero = self.builder, self.builder.const(1), self.builder.const(0)
        shape = (view.rows or one, view.columns or one)
        _, end_row, _, _ = self.memory.box(self.nest.guards, view, *shape)
        with builder.loop(zero, builder.min(end_row, one), one):
            inside = view if view.rows is None else replace(view, rows=end_row)
            for access, result in results:
                self.memory.store(access, result, inside, self.nest.loops)

    def _guarded(self, statement: Statement) -> Statement:
        """A statement that reads nothing beside its tensors where a tile sticks out."""
        guards = self.nest.guards
        if not guards:
            return statement
        inputs = tuple(_within(one, guards) if isinstance(one, Access) else one for one in statement.inputs)
        inits = tuple(_within(one, guards) if isinstance(one, Access) else one for one in statement.inits)
        return replace(statement, inputs=inputs, inits=inits)


def _within(access: Access, guards: tuple[Guard, ...]) -> Access:
    if access.guards:
        raise Unsupported("padding beside tiles that stick out")
    moves = [loop for loop, stride in enumerate(access.strides) if stride.factor]
    needed = tuple(guard for guard in guards if any(guard.coefficients[loop] for loop in moves))
    return replace(access, guards=needed, otherwise=None)


class TileMap(linear_map.LinearMap[Value]):
    """Tiles times a constant matrix."""

    def __init__(self, matrix: np.ndarray, builder: Builder):
        super().__init__(matrix)
        self.builder = builder

    def add(self, total: Value, factor: float, value: Value) -> Value:
        if abs(factor) == 1.0:
            return self.builder.tile("tfadd_f32" if factor > 0 else "tfsub_f32", Type.F32, total, value)
        return self.builder.tile("tfma_f32", Type.F32, value, self._splat(factor, value), total)

    def times(self, factor: float, value: Value) -> Value:
        return self.builder.tile("tfmul_f32", Type.F32, value, self._splat(factor))

    def _splat(self, factor: float, like: Value | None = None) -> Value:
        """A constant; with the extents of another tile, since a multiply-add repeats no operand for free."""
        rows, columns = (None, None) if like is None else (like.rows, like.columns)
        return self.builder.fill(self.builder.const_f32(factor), Type.F32, rows, columns)
