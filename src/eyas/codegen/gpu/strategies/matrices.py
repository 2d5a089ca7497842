"""Products of f16 with sums in f32, and of bytes with sums in i32, by the matrix instructions that subgroups have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.emission.tile_loads import Block
from eyas.codegen.common.kernel import Access, Kernel, Nest
from eyas.codegen.common.sizes import Size, product
from eyas.codegen.gpu.interface import Interface
from eyas.codegen.gpu.matrix_tile import GROUP, PAD_BYTES, Fragments, MatrixTile
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.staged_tile import Operand, operands_of
from eyas.codegen.gpu.strategies.base import check_powers_of_two
from eyas.codegen.gpu.strategies.contraction import Contraction, product_loops
from eyas.ir.values import element_bytes
from eyas.ir.walk import defining_op
from eyas.targets import Target
from eyas.targets.gpu import GpuTarget

# Subgroups along rows and columns, and fragments of each along rows and columns; the largest first.
_TILES = (((4, 2), (4, 4)), ((2, 2), (4, 4)), ((2, 2), (4, 2)), ((2, 2), (2, 2)), ((2, 2), (1, 1)), ((1, 1), (1, 1)))
_DEPTHS, _DEPTH_BYTES = (64, 32, 16, 8), 64
_UNKNOWN_ROWS = 256
# By the types of factors and sum: what extends a factor, multiplies and adds.
_ARITHMETIC = {
    ("f16", "f32"): ("arith.extf", "arith.mulf", "arith.addf"),
    ("i8", "i32"): ("arith.extsi", "arith.muli", "arith.addi"),
}


@dataclass(frozen=True)
class MatrixKnobs:
    threads: int
    subgroup: int
    """Threads of a subgroup."""
    columns: int
    """Subgroups of a workgroup side by side along the columns; the others are along the rows."""
    row_fragments: int
    column_fragments: int
    depth: int
    """Steps of the sum that pass through shared memory at a time."""
    fragment_rows: int
    fragment_columns: int
    fragment_depth: int


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
        nest = kernel.nests[0]
        element = operand_element(nest)
        types = (str(element), str(nest.statements[0].element_types[0]))
        shape = next((one for one in target.matrix_shapes if (one.operand, one.sum) == types), None)
        if shape is None:
            return f"no matrix instructions for {types[0]}"
        loops = product_loops(nest)
        assert not isinstance(loops, str) and loops.row is not None
        rows, columns = (nest.loops[loop].static or _UNKNOWN_ROWS for loop in (loops.row, loops.column))
        others = product([nest.loops[loop] for loop in loops.others]).static or 1
        steps = nest.loops[nest.statements[0].reductions[-1]].static
        most = _DEPTH_BYTES // element_bytes(element)
        depths = [
            depth for depth in _DEPTHS if depth <= most and depth % shape.depth == 0 and (steps or 1) % depth == 0
        ]
        if not depths:
            return f"a sum of {steps} steps is not made of {shape.depth} at a time"
        if rows < shape.rows or columns < shape.columns:
            return "fewer rows or columns than a fragment has"
        best = None
        for (down, across), (row_fragments, column_fragments) in _TILES:
            knobs = MatrixKnobs(
                down * across * target.subgroup, target.subgroup, across, row_fragments, column_fragments, depths[0],
                shape.rows, shape.columns, shape.depth,
            )  # fmt: skip
            if knobs.threads > target.max_threads or shared_bytes(knobs, element) > target.workgroup_bytes:
                continue
            height, width = tile_of(knobs)
            # What sticks out is computed for nothing.
            fits = height < 2 * rows and width < 2 * columns
            best = knobs if fits or best is None else best
            if fits and others * -(-rows // height) * -(-columns // width) >= target.cores:
                return cls(kernel, knobs)
        return cls(kernel, best) if best is not None else "no tile fits into shared memory"

    @classmethod
    def kernel_of(cls, found: Analysis) -> Kernel | str:
        kernel = super().kernel_of(found)
        if isinstance(kernel, str):
            return kernel
        return why_no_matrices(kernel.nests[0]) or kernel

    @classmethod
    def check(cls, kernel: Kernel, knobs: MatrixKnobs) -> str | None:  # type: ignore[override]
        names = ("threads", "subgroup", "columns", "fragment_rows", "fragment_columns", "fragment_depth")
        if (problem := check_powers_of_two(**{name: getattr(knobs, name) for name in names})) is not None:
            return problem
        if knobs.threads % (knobs.subgroup * knobs.columns):
            return f"threads is {knobs.threads}; it must be a multiple of subgroup * columns"
        for name in ("row_fragments", "column_fragments"):
            if not 1 <= getattr(knobs, name) <= 16:
                return f"{name} is {getattr(knobs, name)}; it must be 1 to 16"
        if knobs.fragment_rows * knobs.fragment_columns % (knobs.subgroup * GROUP):
            return f"subgroup is {knobs.subgroup}; each thread must have a multiple of {GROUP} elements of a fragment"
        nest = kernel.nests[0]
        steps = nest.loops[nest.statements[0].reductions[-1]].static
        if steps is None or knobs.depth < 1 or steps % knobs.depth or knobs.depth % knobs.fragment_depth:
            return f"depth is {knobs.depth}; it must divide the {steps} steps, and be a multiple of fragment_depth"
        return None

    @property
    def workgroups(self) -> Sequence[tuple[Size, int]]:
        nest, loops = self.kernel.nests[0], self.loops
        assert loops.row is not None
        height, width = tile_of(self.knobs)
        others = product([nest.loops[loop] for loop in loops.others])
        return [(others, 1), (nest.loops[loops.column], width), (nest.loops[loops.row], height)]

    def emit(self, interface: Interface) -> None:
        at, memory, nest, knobs = interface, Memory(self.kernel, interface), self.kernel.nests[0], self.knobs
        loops = self.loops
        found = operands_of(nest, loops.row, loops.column)
        assert not isinstance(found, str) and loops.row is not None
        height, width = tile_of(knobs)
        corner = (
            arith.MulIOp(at.ids[2], at.index(height)).result,
            arith.MulIOp(at.ids[1], at.index(width)).result,
        )
        rows, columns = Operand(found[0], loops.row, height), Operand(found[1], loops.column, width)
        shape = (knobs.fragment_rows, knobs.fragment_columns, knobs.fragment_depth)
        fragments = Fragments(knobs.subgroup, knobs.columns, knobs.row_fragments, knobs.column_fragments, shape)
        tile = MatrixTile(memory, nest, rows, columns, knobs.depth, corner, fragments)

        def run(number: mlir.Value) -> None:
            indices = self._other_indices(memory, number)
            tile.run(Block(indices, 1, 1, None))

        self._each_other(memory, run)


def tile_of(knobs: MatrixKnobs) -> tuple[int, int]:
    """Rows and columns that a workgroup computes."""
    down = knobs.threads // knobs.subgroup // knobs.columns
    height = down * knobs.row_fragments * knobs.fragment_rows
    return height, knobs.columns * knobs.column_fragments * knobs.fragment_columns


def shared_bytes(knobs: MatrixKnobs, element: mlir.Type) -> int:
    """What both operands take at the most, with what lies between their lines, and the fragments that are finished."""
    size = element_bytes(element)
    pad = PAD_BYTES // size
    operands = sum((extent + pad) * (knobs.depth + pad) * size for extent in tile_of(knobs))
    return operands + knobs.threads // knobs.subgroup * knobs.fragment_rows * knobs.fragment_columns * 4


def operand_element(nest: Nest) -> mlir.Type:
    """The element type of what is multiplied, where `why_no_matrices` has nothing against it."""
    source = nest.statements[0].inputs[0]
    assert isinstance(source, Access)
    return source.storage.element


def why_no_matrices(nest: Nest) -> str | None:
    """Why a nest is no sum of products of two tensors of one narrow type."""
    first, loops = nest.statements[0], product_loops(nest)
    assert not isinstance(loops, str)
    found = operands_of(nest, loops.row, loops.column)
    if isinstance(found, str):
        return found
    one, other = (str(access.storage.element) for access in found)
    extend, multiply, add = _ARITHMETIC.get((one, str(first.element_types[0])), ("", "", ""))
    if not extend or one != other or len(first.inits) != 1:
        return "no product of f16 in f32, or of bytes in i32"
    assert first.body is not None, "a product has a body"
    ops = [view.operation for view in first.body.operations]
    if sorted(op.name for op in ops) != sorted([extend, extend, multiply, add, "linalg.yield"]):
        return "the sum is of more than products"
    factors = [defining_op(value) for op in ops if op.name == multiply for value in op.operands]
    return (
        None if all(one is not None and one.name == extend for one in factors) else "the sum is of more than products"
    )
