"""Contractions and convolutions: a register tile of rows and vectors that reuses every operand it loads.

With `rows` of an operand that is constant along the lanes and `vectors` of one that is constant along the rows, each
step of the reduction makes rows*vectors multiply-adds from rows + vectors loads. The same tile serves matrix products
(rows = M, lanes = N), direct convolutions (rows = output width, lanes = output channels), depthwise ones and pooling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from eyas.codegen.common.kernel import Access, Kernel, Nest
from eyas.codegen.common.sizes import Size
from eyas.codegen.llvm_cpu.schedule import Schedule, Tile
from eyas.codegen.llvm_cpu.strategies.base import NestStrategy
from eyas.codegen.llvm_cpu.strategies.distribute import distribute
from eyas.codegen.llvm_cpu.strategies.rows import choose_tile, nest_is_scalar
from eyas.targets import Target


@dataclass(frozen=True)
class Contraction(NestStrategy):
    name: ClassVar[str] = "contraction"

    @classmethod
    def choose(cls, kernel: Kernel | None, target: Target) -> Contraction | str:
        if kernel is None:
            return "not expressible as loop nests"
        if len(kernel.nests) != 1:
            return "more than one loop nest"
        nest = kernel.nests[0]
        if not nest.statements[0].reductions:
            return "no reduction"
        if nest_is_scalar(nest):
            return "element types that vectors do not have"
        lanes = choose_tile(nest, target)
        if lanes.vector_loop is None:
            return "no contiguous loop"
        rows_loop = _rows_loop(nest, lanes)
        if rows_loop is None:
            return "no operand is reused between rows"
        tile = register_tile(nest, lanes, rows_loop, target)
        return cls(kernel, Schedule((tile,), distribute(kernel, [tile])))


def register_tile(nest: Nest, lanes: Tile, rows_loop: int, target: Target) -> Tile:
    """Rows and vectors that fill the register file but not more, and divide the extents well."""
    budget = target.vector_registers - 4 if target.vector_registers >= 32 else target.vector_registers - 3
    best: tuple[float, Tile] | None = None
    assert lanes.vector_loop is not None
    across_lanes = lanes.vector_loop in nest.reductions
    for vectors in (1, 2, 3, 4):
        for rows in range(1, 15):
            if rows * vectors + vectors + 1 > budget:
                continue
            tile = Tile(lanes.width, lanes.vector_loop, vectors, rows_loop, rows)
            loads = rows * vectors if across_lanes else (rows + vectors)
            speed = rows * vectors / max(rows * vectors, 0.9 * loads + 1)
            latency = min(1.0, rows * vectors / 8)
            vector_fill = 1.0 if across_lanes else _fill(nest.loops[lanes.vector_loop], vectors * lanes.width)
            score = speed * latency * vector_fill * _fill(nest.loops[rows_loop], rows)
            if best is None or score > best[0] + 1e-9:
                best = (score, tile)
    assert best is not None
    return best[1]


def _fill(extent: Size, step: int) -> float:
    """The part of a tiled loop that does useful work."""
    if not extent.static:  # unknown, or nothing to do at all
        return 1.0 - 0.01 * step
    return extent.static / (-(-extent.static // step) * step)


def _rows_loop(nest: Nest, lanes: Tile) -> int | None:
    """A parallel loop along which some input of the reduction stays the same; the innermost such loop."""
    statement = nest.statements[0]
    inputs = [source for source in statement.inputs if isinstance(source, Access)]
    candidates = [loop for loop in nest.parallel if loop != lanes.vector_loop and nest.loops[loop] != Size(1)]
    for loop in reversed(candidates):
        if any(source.strides[loop] == Size(0) for source in inputs):
            return loop
    return None
