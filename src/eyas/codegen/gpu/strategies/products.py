"""Products and convolutions through shared memory: tiles of rows and columns that a workgroup computes together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, gpu

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.combine import combiner_of
from eyas.codegen.common.expressions import Number, divides, one_of, select
from eyas.codegen.common.kernel import Access, Kernel, Nest
from eyas.codegen.common.sizes import Size, product
from eyas.codegen.common.space import Constraint, law, powers_of_two
from eyas.codegen.gpu.axis import Axis
from eyas.codegen.gpu.interface import Interface
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.operands import moves, operands_of
from eyas.codegen.gpu.points import MAX_GRID, decode, each, fits_a_grid
from eyas.codegen.gpu.product_stage import GROUP, is_deep, staged_groups
from eyas.codegen.gpu.product_tile import ProductTile
from eyas.codegen.gpu.strategies.base import THREADS, KernelStrategy, knob, powers, ranges
from eyas.codegen.gpu.strategies.contraction import Contraction, few_sums, no_idle_threads, product_loops
from eyas.ir.values import element_bytes
from eyas.targets import Target
from eyas.targets.gpu import GpuTarget

# Threads of a team along rows and columns, and points of each thread.
_TILES = (
    ((16, 16), (8, 8)), ((16, 8), (8, 8)), ((8, 16), (8, 8)), ((8, 8), (8, 8)), ((16, 16), (4, 4)), ((16, 8), (4, 4)),
    ((8, 16), (4, 4)), ((8, 8), (4, 4)), ((4, 16), (4, 4)), ((4, 8), (4, 4)),
)  # fmt: skip
_DEPTH, _SLICES = 16, (1, 2, 4, 8, 16)
# A processor that has so many workgroups waits for none of them. There a second buffer only costs threads with the most
# points (28 against 35 TFLOP/s on an H200).
_MANY, _MOST_POINTS = 3, 64
# Rows, columns and steps of the sum from which on this is worth while.
_FEWEST = (9, 16, 16)
_UNKNOWN = 256
# Clocks of a processor, fitted to convolutions of ResNet-50 on an H200 (`estimated_clocks`): of a step that waits for
# memory, of all that it does beside each multiply-add, of an element on its way through shared memory, and of a slice.
_LATENCY, _WORK, _TRAFFIC, _JOIN = 350, 1.2, 12, 200
_PER_CLOCK, _REGISTERS, _MOST_RESIDENT = 128, 65_536, 2048
# Registers that a thread takes, by its points.
_REGISTERS_OF = {64: 160, 16: 80}
# Factors may be widened, multiplied and added; then a factor of zero adds nothing.
_PRODUCT_OPS = {"arith.extf", "arith.extsi", "arith.mulf", "arith.muli", "arith.addf", "arith.addi", "linalg.yield"}


@dataclass(frozen=True)
class TileKnobs:
    threads: int = knob(THREADS)
    columns: int = knob("threads of a team side by side along the columns; the others are along the rows")
    row_points: int = knob("rows of a thread")
    column_points: int = knob("columns of a thread")
    depth: int = knob("steps of the sum that are in shared memory at a time")
    slices: int = knob("teams of threads that share the sum of one tile")
    buffers: int = knob("of shared memory: with two, one is filled while the other is read")

    @property
    def rows(self) -> Any:
        return self.threads // self.slices // self.columns

    @property
    def tile(self) -> tuple[Any, Any]:
        """Rows and columns of a workgroup."""
        return self.rows * self.row_points, self.columns * self.column_points


@dataclass(frozen=True)
class Factors:
    """The two operands of a product, and what loops are its rows, its columns, and neither."""

    rows: Access
    columns: Access
    row_axis: Axis
    column_axis: Axis
    others: Axis
    sum: Axis


@dataclass(frozen=True)
class Products(KernelStrategy):
    name: ClassVar[str] = "products"
    knobs_type: ClassVar[type] = TileKnobs
    knobs: TileKnobs

    @classmethod
    def choose(cls, found: Analysis, target: Target) -> Products | str:
        assert isinstance(target, GpuTarget)
        kernel = cls.kernel_of(found)
        if isinstance(kernel, str):
            return kernel
        if not target.facts.shared_is_near:
            return "shared memory is no nearer than what caches have"
        if (reason := cls.why_not_on(kernel, target)) is not None:
            return reason
        factors = _factors(kernel)
        sizes = _sizes(factors)
        if any(size < least for size, least in zip(sizes, _FEWEST, strict=False)):
            return "too few rows, columns or steps"
        knobs = choose_knobs(factors, target)
        return cls(kernel, knobs) if knobs is not None else "no tile fits into shared memory"

    @classmethod
    def kernel_of(cls, found: Analysis) -> Kernel | str:
        kernel = Contraction.kernel_of(found)
        if isinstance(kernel, str):
            return kernel
        factors = factors_of(kernel.nests[0])
        return factors if isinstance(factors, str) else kernel

    @classmethod
    def why_not_on(cls, kernel: Kernel, target: GpuTarget) -> str | None:
        element = _factors(kernel).rows.storage.element
        has = isinstance(element, mlir.F32Type) or (isinstance(element, mlir.F16Type) and target.has("f16"))
        return None if has else f"factors of {element}"

    @classmethod
    def constraints(cls, kernel: Kernel, of: Any) -> list[Constraint]:
        found = powers(of, "threads", "columns")
        for name in ("row_points", "column_points", "depth"):
            words = f"{name} is {{{name}}}; it must be a multiple of {GROUP}, and at most 64"
            found.append(law(one_of(getattr(of, name), range(GROUP, 65, GROUP)), words))
        side = of.threads // of.columns
        divided = (of.slices >= 1) & (side >= 1) & divides(of.slices, side)
        found.append(law(divided, "slices is {slices}; it must divide threads / columns = {side}", side=side))
        return [*found, *ranges(of, 1, 2, "buffers")]

    @classmethod
    def limits(cls, kernel: Kernel, of: Any, target: GpuTarget) -> list[Constraint]:
        found = [*super().limits(kernel, of, target), *few_sums(of)]
        return [*found, *no_idle_threads(cls(kernel, of).workgroups)]

    @classmethod
    def domains(cls, kernel: Kernel, target: GpuTarget) -> dict[str, Sequence[int]]:
        return {
            "threads": powers_of_two(16, target.max_threads),
            "columns": powers_of_two(1, 64),
            "row_points": (4, 8, 12, 16),
            "column_points": (4, 8, 12, 16),
            "depth": (4, 8, 16, 32, 64),
            "slices": _SLICES,
            "buffers": (1, 2),
        }

    @classmethod
    def shared_bytes(cls, kernel: Kernel, of: Any) -> Number:
        return shared_bytes(_factors(kernel), of)

    @property
    def factors(self) -> Factors:
        return _factors(self.kernel)

    @property
    def workgroups(self) -> Sequence[tuple[Size, int]]:
        """Of everything that is neither row nor column, of the columns, and of the rows."""
        factors, (height, width) = self.factors, self.knobs.tile
        return [
            (factors.others.extent, 1), (factors.column_axis.extent, width), (factors.row_axis.extent, height),
        ]  # fmt: skip

    def emit(self, interface: Interface) -> None:
        at, memory, factors, knobs = interface, Memory(self.kernel, interface), self.factors, self.knobs
        height, width = knobs.tile
        corner = arith.MulIOp(at.ids[2], at.index(height)).result, arith.MulIOp(at.ids[1], at.index(width)).result
        tile = ProductTile(
            memory, self.kernel.nests[0], (factors.rows, factors.columns), (factors.row_axis, factors.column_axis),
            (knobs.rows, knobs.columns), (knobs.row_points, knobs.column_points), knobs.depth, knobs.slices,
            knobs.buffers, corner,
        )  # fmt: skip
        nothing = [None] * len(self.kernel.nests[0].loops)

        def run(number: mlir.Value) -> None:
            indices = list(nothing)
            for loop, index in zip(factors.others.loops, decode(memory, number, factors.others.sizes), strict=True):
                indices[loop] = index
            tile.run_at(indices)

        others = factors.others.extent
        if fits_a_grid(others, 1):
            run(at.ids[0])
        else:
            each(at.ids[0], memory.size(others), gpu.grid_dim(gpu.Dimension.x), run)


def factors_of(nest: Nest) -> Factors | str:
    """The operands of a sum of products, or why a nest is none."""
    first, loops = nest.statements[0], product_loops(nest)
    if isinstance(loops, str):
        return loops
    found = operands_of(nest, loops.row, loops.column)
    if isinstance(found, str):
        return found
    rows, columns = found
    if rows.storage.element != columns.storage.element:
        return "factors of two types"
    assert first.body is not None, "a product has a body"
    if (
        combiner_of(first.body, len(first.inputs)) is None
        or {op.operation.name for op in first.body.operations} - _PRODUCT_OPS
    ):
        return "the sum is of more than products"
    parallel = [loop for loop in nest.parallel if loop != loops.column]
    pixels = tuple(loop for loop in parallel if moves(rows, loop) and not moves(columns, loop))
    others = tuple(loop for loop in parallel if loop not in pixels)
    axes = [Axis(nest, one) for one in (pixels, (loops.column,), others, first.reductions)]
    return Factors(rows, columns, *axes)


def choose_knobs(factors: Factors, target: GpuTarget) -> TileKnobs | None:
    """The tile that is estimated to take the fewest clocks."""
    best: tuple[float, TileKnobs] | None = None
    for (down, across), (row_points, column_points) in _TILES:
        for slices in _SLICES:
            knobs = TileKnobs(down * across * slices, across, row_points, column_points, _DEPTH, slices, 2)
            is_busy = per_core(factors, knobs, target) >= _MANY
            if is_busy and slices > 1:
                break  # threads have enough to do without sharing
            if (is_busy and row_points * column_points == _MOST_POINTS) or not _fits(factors, knobs, target):
                knobs = replace(knobs, buffers=1)
            if knobs.threads > target.max_threads or not _fits(factors, knobs, target):
                continue
            if -(-_sizes(factors)[0] // knobs.tile[0]) > MAX_GRID:
                continue
            clocks = estimated_clocks(factors, knobs, target)
            if best is None or clocks < best[0]:
                best = clocks, knobs
    return best[1] if best is not None else None


def _fits(factors: Factors, knobs: TileKnobs, target: GpuTarget) -> bool:
    return shared_bytes(factors, knobs) <= target.workgroup_bytes


def per_core(factors: Factors, knobs: TileKnobs, target: GpuTarget) -> int:
    """Workgroups of the processor that has the most of them."""
    (rows, columns, _, others), (height, width) = _sizes(factors), knobs.tile
    return -(-others * -(-rows // height) * -(-columns // width) // target.cores)


def estimated_clocks(factors: Factors, knobs: TileKnobs, target: GpuTarget) -> float:
    """Clocks of the processor that has the most to do."""
    steps, (height, width), points = _sizes(factors)[2], knobs.tile, knobs.row_points * knobs.column_points
    each = per_core(factors, knobs, target)
    room = min(_MOST_RESIDENT, _REGISTERS // _REGISTERS_OF[points]) // knobs.threads
    resident = min(each, max(room, 1))
    rounds = -(-steps // (knobs.depth * knobs.slices))
    cost = _WORK + _TRAFFIC * (height + width) / (height * width)
    busy = knobs.threads * points * knobs.depth / _PER_CLOCK * cost
    clocks = -(-each // resident) * (rounds + 1) * max(_LATENCY + busy, resident * busy)
    return clocks + (each * knobs.slices * _JOIN if knobs.slices > 1 else 0)


def _factors(kernel: Kernel) -> Factors:
    factors = factors_of(kernel.nests[0])
    assert isinstance(factors, Factors)
    return factors


def shared_bytes(factors: Factors, knobs: TileKnobs) -> Any:
    """What both operands take, and what slices add up."""
    size = element_bytes(factors.rows.storage.element)
    operands = zip((factors.rows, factors.columns), knobs.tile, strict=True)
    groups = sum(staged_groups(extent, knobs.depth, is_deep(access, factors.sum)) for access, extent in operands)
    joined = select(knobs.slices > 1, GROUP * 4 * knobs.threads, 0)
    return knobs.slices * knobs.buffers * groups * GROUP * size + joined


def _sizes(factors: Factors) -> tuple[int, int, int, int]:
    """Rows, columns, steps and all others, as far as they are known."""
    rows, columns, steps = (
        axis.extent.static or _UNKNOWN for axis in (factors.row_axis, factors.column_axis, factors.sum)
    )
    return rows, columns, steps, product(factors.others.sizes).static or 1
