"""Runs the statements of a nest for one register tile: what every target does once its loops are entered.

A tile has rows along one loop and vectors along another; a vector of width 1 is a scalar, which is what a thread of a
GPU has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from torch_mlir import ir as mlir
from torch_mlir.dialects import scf

from eyas.codegen.common.emission.body import Lane, evaluate_body
from eyas.codegen.common.emission.tile_loads import Block, Indices, TileContext, TileLoads
from eyas.codegen.common.emission.values import Memory
from eyas.codegen.common.kernel import Access, Nest, Statement
from eyas.codegen.common.sizes import Size


class TileBody:
    """The statements of a nest, for tiles in `context` whose vectors have `width` lanes."""

    def __init__(self, memory: Memory, nest: Nest, context: TileContext, width: int):
        self.memory, self.at, self.nest, self.context, self.width = memory, memory.at, nest, context, width
        self.lane_loop = context.lane_loop

    def _loads(self, block: Block, outer: TileLoads | None = None) -> TileLoads:
        """Addresses and loads of a tile, inside of those of another."""
        return TileLoads(self.context, block, self.width, outer)

    def _block(self, block: Block, statements: Sequence[Statement]) -> None:
        """All statements of the nest for one register tile."""
        made: dict[tuple[int, int], list[list[mlir.Value]]] = {}
        for position, statement in enumerate(statements):
            loads = self._loads(block)
            if statement.reductions:
                tiles = self._reduce(statement, block, made)
            else:
                tiles = self._apply(statement, block, loads, made, self._initial(statement, block, loads))
            self._keep(position, statement, block, tiles, made)

    def _keep(self, position: int, statement: Statement, block: Block, tiles: list, made: dict) -> None:
        """Hands what a statement has made to those after it, and to memory."""
        for output, access in enumerate(statement.outputs):
            made[position, output] = tiles[output]
            if access is not None:
                self._store(access, block, tiles[output])

    def _initial(self, statement: Statement, block: Block, loads: TileLoads) -> list[list[list[mlir.Value | None]]]:
        """Values of the output arguments before the body runs, per output, row and vector."""
        return [
            [
                [
                    loads.get(init, row, vector) if isinstance(init, Access) else self._outside(init)
                    for vector in range(block.vectors)
                ]
                for row in range(block.rows)
            ]
            for init in statement.inits
        ]

    def _outside(self, value: mlir.Value | None) -> mlir.Value | None:
        return None if value is None else self.memory.scalar(value)

    def _apply(
        self, statement: Statement, block: Block, loads: TileLoads, made: dict, olds: list
    ) -> list[list[list[mlir.Value]]]:
        """Runs the body at every point of the tile; returns the new values per output, row and vector."""
        results: list[list[list[mlir.Value]]] = [
            [[None] * block.vectors for _ in range(block.rows)] for _ in statement.outputs
        ]
        for row in range(block.rows):
            for vector in range(block.vectors):
                arguments: list[mlir.Value | None] = []
                for source in statement.inputs:
                    if isinstance(source, Access):
                        arguments.append(loads.get(source, row, vector))
                    elif isinstance(source, tuple):
                        arguments.append(made[source][row][vector])
                    elif source is None:
                        arguments.append(None)
                    else:
                        arguments.append(self.memory.scalar(source))
                arguments += [old[row][vector] for old in olds]
                readers = self._index_readers(statement, loads, row, vector)
                lane = Lane(self.memory, loads.width, block.mask_of(vector), *readers, sums=bool(statement.reductions))
                values = evaluate_body(statement.body, arguments, lane)
                for output, value in enumerate(values):
                    results[output][row][vector] = value
        return results

    def _index_readers(
        self, statement: Statement, loads: TileLoads, row: int, vector: int
    ) -> tuple[Callable[[int], mlir.Value], Callable[[int, Size], mlir.Value | None]]:
        def read(dim: int) -> mlir.Value:
            loop = statement.loop_of_index[dim]
            return self.at.index(0) if loop is None else loads.index(loop, row, vector)

        def first(dim: int, size: Size) -> mlir.Value | None:
            loop = statement.loop_of_index[dim]
            if loop is None:
                return self.at.index(0)
            extent = self.nest.loops[loop]
            fits = extent == size or (extent.is_static and size.is_static and extent.factor <= size.factor)
            return loads.scalar_index(loop, row, vector) if fits else None

        return read, first

    def _reduce(self, statement: Statement, block: Block, made: dict) -> list:
        """Reduction loops innermost, accumulators carried in registers."""
        outer = self._loads(block)
        types = statement.element_types

        def step(inner: Block, carried: list[mlir.Value]) -> list[mlir.Value]:
            olds = unflatten(carried, len(types), block.rows, block.vectors)
            loads = self._loads(inner, outer)
            self._before_step(statement, loads)
            return self._flatten(self._apply(statement, inner, loads, made, olds), types)

        first = self._first_values(statement, block, outer)
        final = self._run_reductions(statement.reductions, block, first, step)
        return unflatten(final, len(types), block.rows, block.vectors)

    def _before_step(self, statement: Statement, loads: TileLoads) -> None:
        """What a target does before each step of a reduction."""

    def _first_values(self, statement: Statement, block: Block, loads: TileLoads) -> list[mlir.Value]:
        """What accumulators begin with. What the body does not read has no initial value; the last step is the
        result."""
        olds = self._initial(statement, block, loads)
        filled = [
            [[self.at.constant(type_, 0) if value is None else value for value in row] for row in old]
            for old, type_ in zip(olds, statement.element_types, strict=True)
        ]
        return self._flatten(filled, statement.element_types)

    def _flatten(self, tiles: list, types: Sequence[mlir.Type]) -> list[mlir.Value]:
        return [
            self.memory.as_width(value, type_, self.width)
            for tile, type_ in zip(tiles, types, strict=True)
            for row in tile
            for value in row
        ]

    def _run_reductions(
        self,
        loops: Sequence[int],
        block: Block,
        carried: list[mlir.Value],
        step: Callable[[Block, list[mlir.Value]], list[mlir.Value]],
        reach: int = 1,
    ) -> list[mlir.Value]:
        """Loops that carry values around `step`, the innermost in steps of `reach`."""
        if not loops:
            return step(block, carried)
        loop, rest = loops[0], loops[1:]
        low, high = self._reduction_bounds(loop)

        def run(index: mlir.Value, inside: list[mlir.Value]) -> list[mlir.Value]:
            at = with_index(block.indices, loop, index)
            return self._run_reductions(rest, replace(block, indices=at), inside, step, reach)

        return self._carry(low, high, 1 if rest else reach, carried, run)

    def _reduction_bounds(self, loop: int) -> tuple[mlir.Value, mlir.Value]:
        return self.at.index(0), self.memory.size(self.nest.loops[loop])

    def _carry(self, low, high, step: int, carried: list[mlir.Value], body: Callable) -> list[mlir.Value]:
        op = scf.ForOp(low, high, self.at.index(step), carried)
        with mlir.InsertionPoint(op.body):
            scf.YieldOp(body(op.induction_variable, list(op.inner_iter_args)))
        return list(op.results)

    def _store(self, access: Access, block: Block, values: list[list[mlir.Value]]) -> None:
        loads, width = self._loads(block), self.width
        for row in range(block.rows):
            for vector in range(block.vectors):
                address = loads.address(access, row, vector)
                stride = access.strides[self.lane_loop] if self.lane_loop is not None else Size(0)
                self.memory.store(access.storage, address, values[row][vector], width, stride, block.mask_of(vector))


def with_index(indices: Indices, loop: int, index: mlir.Value) -> Indices:
    changed = list(indices)
    changed[loop] = index
    return changed


def unflatten(values: list[mlir.Value], outputs: int, rows: int, vectors: int) -> list[list[list[mlir.Value]]]:
    per_output = rows * vectors
    return [
        [values[output * per_output + row * vectors : output * per_output + (row + 1) * vectors] for row in range(rows)]
        for output in range(outputs)
    ]
