"""Products of f16 and bf16 with sums in f32, and of bytes with sums in i32, by the matrix instructions of subgroups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.emission.tile_loads import Block
from eyas.codegen.common.expressions import Int, Number, all_of, any_of, between, divides, equal, lift, most, one_of
from eyas.codegen.common.kernel import Access, Kernel, Nest, Statement
from eyas.codegen.common.sizes import Size, product
from eyas.codegen.common.space import Constraint, advice, first_problem, law, powers_of_two
from eyas.codegen.gpu.interface import MATRIX_ELEMENT, Interface
from eyas.codegen.gpu.matrix_stage import GROUP_BYTES, Side, is_deep, staged_groups
from eyas.codegen.gpu.matrix_tile import POINTS, Fragments, MatrixTile
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.operands import moves, operands_of
from eyas.codegen.gpu.strategies.base import THREADS, knob, powers, ranges
from eyas.codegen.gpu.strategies.contraction import Contraction, no_idle_threads, product_loops
from eyas.ir.values import element_bytes
from eyas.ir.walk import defining_op
from eyas.targets import Target
from eyas.targets.gpu import GpuTarget
from eyas.targets.gpu_facts import MatrixShape


class _Tile(NamedTuple):
    parts: int
    subgroups: tuple[int, int]
    """Along rows and columns."""
    fragments: tuple[int, int]
    """Of each subgroup, along rows and columns."""
    depth_bytes: int
    """Of each row and column that are in shared memory at a time."""
    buffers: int
    in_flight: int


# What fits into 48 KiB. Tiles of 128x128 and 64x64 have the depths, buffers and steps in flight that were fastest on an
# H200; the others follow them and were not timed.
_TILES = (
    _Tile(1, (2, 4), (4, 4), 32, 2, 2),
    _Tile(1, (2, 2), (4, 4), 128, 1, 1),
    _Tile(1, (4, 1), (4, 4), 64, 2, 1),
    _Tile(1, (1, 4), (4, 4), 64, 2, 1),
    _Tile(1, (2, 2), (4, 2), 64, 2, 2),
    _Tile(1, (2, 2), (2, 4), 64, 2, 2),
    _Tile(1, (2, 4), (2, 2), 64, 2, 3),
    _Tile(1, (2, 2), (2, 2), 128, 2, 2),
    _Tile(2, (2, 2), (2, 2), 128, 2, 1),
    _Tile(4, (1, 1), (1, 2), 256, 2, 2),
    _Tile(2, (2, 2), (1, 2), 128, 2, 1),
    _Tile(1, (1, 1), (1, 1), 64, 2, 2),
)
# Workgroups that are next to each other along the rows before those along the columns follow.
_BAND = 8
# Subgroups that keep a processor busy; what waiting at barriers costs where it has one workgroup at a time; and sums of
# all subgroups, for each of their threads, that are more than half of its registers.
_BUSY, _ALONE, _MOST_SUMS = 8, 1.45, 512
_UNKNOWN_ROWS = 256
# Sums of one thread that are worth trying.
_MOST_OF_A_THREAD = 256
# By the types of factors and sum: what extends a factor, multiplies and adds.
_ARITHMETIC = {
    ("f16", "f32"): ("arith.extf", "arith.mulf", "arith.addf"),
    ("bf16", "f32"): ("arith.extf", "arith.mulf", "arith.addf"),
    ("i8", "i32"): ("arith.extsi", "arith.muli", "arith.addi"),
}


@dataclass(frozen=True)
class MatrixKnobs:
    threads: int = knob(THREADS)
    subgroup: int = knob("threads of a subgroup")
    parts: int = knob("subgroups that have the same tile and share its sum")
    columns: int = knob("subgroups side by side along the columns; the others are along the rows")
    row_fragments: int = knob("fragments of a subgroup along the rows")
    column_fragments: int = knob("fragments of a subgroup along the columns")
    depth: int = knob("steps of the sum that pass through shared memory at a time")
    fragment_rows: int = knob("rows of a matrix instruction")
    fragment_columns: int = knob("columns of a matrix instruction")
    fragment_depth: int = knob("steps of a matrix instruction")
    buffers: int = knob("of shared memory: with two, one is filled while the other is read")
    in_flight: int = knob("steps of `depth` whose elements are on their way from memory to registers")
    band: int = knob(
        "workgroups that are next to each other along the rows before those along the columns follow, so that caches"
        " have what they read"
    )
    spread: int = knob(
        "when what is in registers goes to shared memory: 0 before the slices of a step, 1 between them, 2 between"
        " their multiplications"
    )
    ahead: int = knob("1: fragments are read one slice before they are multiplied")


@dataclass(frozen=True)
class MatrixLoops:
    """The factors of a product (rows, columns), and the loops of its nest: rows are all those along which the columns'
    factor stays the same, such as images, lines and places of a convolution."""

    factors: tuple[Access, Access]
    rows: tuple[int, ...]
    column: int
    others: tuple[int, ...]


@dataclass(frozen=True)
class Matrices(Contraction):
    """A workgroup has a tile of the result, each of its subgroups a part of that in fragments."""

    name: ClassVar[str] = "matrices"
    knobs_type: ClassVar[type] = MatrixKnobs
    knobs: MatrixKnobs  # type: ignore[assignment]

    @classmethod
    def choose(cls, found: Analysis, target: Target) -> Matrices | str:
        assert isinstance(target, GpuTarget)
        kernel = cls.kernel_of(found)
        if isinstance(kernel, str):
            return kernel
        if (reason := cls.why_not_on(kernel, target)) is not None:
            return reason
        nest = kernel.nests[0]
        shape = max(shapes_of(nest, target), key=lambda one: one.rows * one.columns * one.depth)
        loops = matrix_loops(nest)
        rows, columns = (product([nest.loops[loop] for loop in side]).static or _UNKNOWN_ROWS
                         for side in (loops.rows, (loops.column,)))  # fmt: skip
        others = product([nest.loops[loop] for loop in loops.others]).static or 1
        if 2 * columns <= shape.columns:
            return "half of each fragment would be columns that there are not"
        tiles = [one for one in (_knobs(nest, tile, shape, target) for tile in _TILES) if one is not None]
        if not tiles:
            return "no tile fits into shared memory"
        return cls(kernel, min(tiles, key=lambda knobs: _cost(knobs, (rows, columns, others), target.cores)))

    @classmethod
    def kernel_of(cls, found: Analysis) -> Kernel | str:
        kernel = super().kernel_of(found)
        if isinstance(kernel, str):
            return kernel
        return why_no_matrices(kernel.nests[0]) or kernel

    @classmethod
    def why_not_on(cls, kernel: Kernel, target: GpuTarget) -> str | None:
        nest = kernel.nests[0]
        return None if shapes_of(nest, target) else f"no matrix instructions for {operand_element(nest)}"

    @classmethod
    def constraints(cls, kernel: Kernel, of: Any) -> list[Constraint]:
        shape = ("fragment_rows", "fragment_columns", "fragment_depth")
        steps = of.parts * of.fragment_depth
        words = "depth is {depth}; it must be a multiple of parts * fragment_depth, and at most 512"
        return [
            *powers(of, "threads", "subgroup", "parts", "columns", *shape),
            law(
                divides(of.subgroup * of.parts * of.columns, of.threads),
                "threads is {threads}; it must be a multiple of subgroup * parts * columns",
            ),
            *ranges(of, 1, 16, "row_fragments", "column_fragments"),
            *_shape_constraints(
                tuple(getattr(of, name) for name in shape), of.subgroup, operand_element(kernel.nests[0])
            ),
            law(between(1, of.depth, 512) & divides(steps, of.depth), words),
            *ranges(of, 1, 2, "buffers"),
            *ranges(of, 1, 4, "in_flight"),
            *ranges(of, 1, 64, "band"),
            law(one_of(of.spread, (0, 1, 2)), "spread is {spread}; it must be 0, 1 or 2"),
            *ranges(of, 0, 1, "ahead"),
        ]

    @classmethod
    def limits(cls, kernel: Kernel, of: Any, target: GpuTarget) -> list[Constraint]:
        nest, fragments = kernel.nests[0], fragments_of(of)
        shapes = [
            equal(of.fragment_rows, one.rows) & equal(of.fragment_columns, one.columns)
            & equal(of.fragment_depth, one.depth) for one in shapes_of(nest, target)
        ]  # fmt: skip
        there = ", ".join(f"{one.rows}x{one.columns}x{one.depth}" for one in shapes_of(nest, target))
        sums = fragments.rows * fragments.columns * fragments.shape[0] * fragments.shape[1] // fragments.subgroup
        words = f"row_fragments is {{row_fragments}}; {{sums}} sums of a thread are more than {_MOST_OF_A_THREAD}"
        return [
            *super(Contraction, cls).limits(kernel, of, target),
            law(
                any_of(shapes),
                "fragment_rows is {fragment_rows}; fragments of the device are (rows x columns x depth) " + there,
            ),
            law(
                equal(of.subgroup, target.subgroup),
                f"subgroup is {{subgroup}}; subgroups of the device have {target.subgroup} threads",
            ),
            advice(lift(sums) <= _MOST_OF_A_THREAD, words, sums=sums),
            *no_idle_threads(cls(kernel, of).workgroups),
        ]

    @classmethod
    def domains(cls, kernel: Kernel, target: GpuTarget) -> dict[str, Sequence[int]]:
        shapes = shapes_of(kernel.nests[0], target)
        return {
            "threads": powers_of_two(target.subgroup, target.max_threads),
            "subgroup": (target.subgroup,),
            "parts": (1, 2, 4),
            "columns": powers_of_two(1, 8),
            "row_fragments": (1, 2, 3, 4, 6, 8),
            "column_fragments": (1, 2, 3, 4, 6, 8),
            "depth": (16, 32, 64, 128, 256),
            "fragment_rows": [one.rows for one in shapes],
            "fragment_columns": [one.columns for one in shapes],
            "fragment_depth": [one.depth for one in shapes],
            "buffers": (1, 2),
            "in_flight": (1, 2, 3, 4),
            "band": (1, 2, 4, 8, 16),
            "spread": (0, 1, 2),
            "ahead": (0, 1),
        }

    @classmethod
    def shared_bytes(cls, kernel: Kernel, of: Any) -> Number:
        return shared_bytes(kernel.nests[0], of)

    @property
    def loops(self) -> MatrixLoops:  # type: ignore[override]
        return matrix_loops(self.kernel.nests[0])

    @property
    def workgroups(self) -> Sequence[tuple[Size, int]]:
        nest, loops = self.kernel.nests[0], self.loops
        height, width = tile_of(self.knobs)
        others, rows = (product([nest.loops[loop] for loop in some]) for some in (loops.others, loops.rows))
        return [(others, 1), (nest.loops[loops.column], width), (rows, height)]

    def emit(self, interface: Interface) -> None:
        at, memory, nest, knobs = interface, Memory(self.kernel, interface), self.kernel.nests[0], self.knobs
        loops = self.loops
        height, width = tile_of(knobs)
        sides = Side(loops.factors[0], loops.rows, height), Side(loops.factors[1], (loops.column,), width)
        at.function.attributes[MATRIX_ELEMENT] = mlir.TypeAttr.get(operand_element(nest))
        buffers = knobs.buffers, knobs.in_flight, knobs.spread, knobs.ahead == 1
        tile = MatrixTile(memory, nest, sides, knobs.depth, self._corner(memory), fragments_of(knobs), *buffers)

        def run(number: mlir.Value) -> None:
            indices = self._other_indices(memory, number)
            tile.run(Block(indices, 1, 1, None))

        self._each_other(memory, run)

    def _corner(self, memory: Memory) -> tuple[mlir.Value, mlir.Value]:
        """The first row and column of the workgroup: bands of rows, in which columns follow each other."""
        at, (columns, width), (rows, height) = memory.at, *self.workgroups[1:]
        row, column = at.ids[2], at.ids[1]
        across, down = (self._pieces(memory, *one) for one in ((columns, width), (rows, height)))
        if self.knobs.band > 1:
            number = arith.AddIOp(arith.MulIOp(row, across).result, column).result
            band = at.index(self.knobs.band)
            per = arith.MulIOp(across, band).result
            first = arith.MulIOp(arith.DivUIOp(number, per).result, band).result
            number = arith.RemUIOp(number, per).result
            count = arith.MinUIOp(arith.SubIOp(down, first).result, band).result
            row = arith.AddIOp(first, arith.RemUIOp(number, count).result).result
            column = arith.DivUIOp(number, count).result
        return arith.MulIOp(row, at.index(height)).result, arith.MulIOp(column, at.index(width)).result

    def _pieces(self, memory: Memory, extent: Size, piece: int) -> mlir.Value:
        return arith.CeilDivUIOp(memory.size(extent), memory.at.index(piece)).result


def _knobs(nest: Nest, tile: _Tile, shape: MatrixShape, target: GpuTarget) -> MatrixKnobs | None:
    """The knobs for a tile, with fewer buffers or less depth where the target has less room; None where it has none."""
    (down, across), least = tile.subgroups, tile.parts * shape.depth
    depth = max(least, tile.depth_bytes // element_bytes(operand_element(nest)))
    threads = tile.parts * down * across * target.subgroup
    while threads <= target.max_threads:
        for buffers in range(tile.buffers, 0, -1):
            knobs = MatrixKnobs(
                threads, target.subgroup, tile.parts, across, *tile.fragments, depth,
                shape.rows, shape.columns, shape.depth, buffers, tile.in_flight, _BAND, 0, 1,
            )  # fmt: skip
            if shared_bytes(nest, knobs) <= target.shared_bytes:
                return knobs
        if depth == least:
            break
        depth = max(least, depth // 2)
    return None


def _cost(knobs: MatrixKnobs, sizes: tuple[int, int, int], cores: int) -> float:
    """How long a product takes, in no unit: the rows and columns that the busiest processor reads, because what caches
    deliver is the limit; more where its subgroups are too few, or wait for each other, for it to be always busy."""
    (rows, columns, others), of, (height, width) = sizes, fragments_of(knobs), tile_of(knobs)
    workgroups = others * -(-rows // height) * -(-columns // width)
    each = -(-workgroups // cores)
    sums = of.rows * of.columns * of.shape[0] * of.shape[1] // of.subgroup
    is_alone = each == 1 or of.subgroups * sums > _MOST_SUMS
    return each * (height + width) * (_ALONE if is_alone else 1) / min(1, each * of.subgroups / _BUSY)


def matrix_loops(nest: Nest) -> MatrixLoops:
    """Of a nest that `why_no_matrices` has nothing against."""
    loops = product_loops(nest)
    assert not isinstance(loops, str) and loops.row is not None
    factors = operands_of(nest, loops.row, loops.column)
    assert not isinstance(factors, str)
    rows = tuple(loop for loop in nest.parallel if loop != loops.column and not moves(factors[1], loop))
    others = tuple(loop for loop in nest.parallel if loop != loops.column and loop not in rows)
    return MatrixLoops(factors, rows, loops.column, others)


def tile_of(knobs: MatrixKnobs) -> tuple[Any, Any]:
    """Rows and columns that a workgroup computes."""
    of = fragments_of(knobs)
    return of.down * of.rows * of.shape[0], of.across * of.columns * of.shape[1]


def fragments_of(knobs: MatrixKnobs) -> Fragments:
    down = knobs.threads // knobs.subgroup // knobs.parts // knobs.columns
    shape = (knobs.fragment_rows, knobs.fragment_columns, knobs.fragment_depth)
    counts = knobs.row_fragments, knobs.column_fragments
    return Fragments(knobs.subgroup, knobs.parts, down, knobs.columns, *counts, shape)


def shapes_of(nest: Nest, target: GpuTarget) -> list[MatrixShape]:
    """Matrix instructions of a target that multiply what a nest does."""
    element = operand_element(nest)
    types = (str(element), str(nest.statements[0].element_types[0]))
    shapes = [one for one in target.matrix_shapes if (one.operand, one.sum) == types]
    return [one for one in shapes if why_not_shape(one[2:], target.subgroup, element) is None]


def shared_bytes(nest: Nest, knobs: MatrixKnobs) -> Any:
    """What the operands take in shared memory, or the fragments that are finished."""
    loops, sum_ = matrix_loops(nest), nest.statements[0].reductions[-1]
    element = operand_element(nest)
    sides = zip(loops.factors, tile_of(knobs), (knobs.fragment_rows, knobs.fragment_columns), strict=True)
    operands = sum(
        staged_groups(extent, knobs.depth, fragment, element, is_deep(access, sum_))
        for access, extent, fragment in sides
    )
    return GROUP_BYTES * most(knobs.buffers * operands, fragments_of(knobs).finished)


def why_not_shape(shape: tuple[int, int, int], subgroup: int, element: mlir.Type) -> str | None:
    """Why fragments cannot pass through shared memory in groups, an equal share for each thread of a subgroup."""
    lifted = tuple(map(lift, shape))
    return first_problem(_shape_constraints(lifted, lift(subgroup), element), {"fragment_rows": shape[0]})


def _shape_constraints(shape: tuple[Int, ...], subgroup: Int, element: mlir.Type) -> list[Constraint]:
    per, rows = GROUP_BYTES // element_bytes(element), "fragment_rows is {fragment_rows}; "
    return [
        law(
            all_of([divides(per, extent) for extent in shape]),
            f"{rows}fragments must have a multiple of {per} rows, columns and steps",
        ),
        law(
            divides(POINTS * subgroup, shape[0] * shape[1]),
            f"{rows}each thread of a subgroup must finish a multiple of {POINTS} elements of a fragment",
        ),
    ]


def operand_element(nest: Nest) -> mlir.Type:
    """The element type of what is multiplied, where `why_no_matrices` has nothing against it."""
    return next(source for source in nest.statements[0].inputs if isinstance(source, Access)).storage.element


def why_no_matrices(nest: Nest) -> str | None:
    """Why a nest is no sum of products of two tensors of one narrow type."""
    first, loops = nest.statements[0], product_loops(nest)
    assert not isinstance(loops, str)
    found = operands_of(nest, loops.row, loops.column)
    if isinstance(found, str):
        return found
    return why_not_multiplied(first, found)


def why_not_multiplied(sum_: Statement, factors: tuple[Access, Access]) -> str | None:
    """Why a statement is no sum of products of two tensors of one narrow type."""
    one, other = (str(access.storage.element) for access in factors)
    extend, multiply, add = _ARITHMETIC.get((one, str(sum_.element_types[0])), ("", "", ""))
    if not extend or one != other or len(sum_.inits) != 1:
        return "no product of f16 or bf16 in f32, or of bytes in i32"
    assert sum_.body is not None, "a product has a body"
    ops = [view.operation for view in sum_.body.operations]
    if sorted(op.name for op in ops) != sorted([extend, extend, multiply, add, "linalg.yield"]):
        return "the sum is of more than products"
    made = [defining_op(value) for op in ops if op.name == multiply for value in op.operands]
    return None if all(op is not None and op.name == extend for op in made) else "the sum is of more than products"
