"""Tiles of machine code as knobs: which numbers are worth trying, and which tiles the register file has room for."""

from __future__ import annotations

from collections.abc import Iterable

from torch_mlir import ir as mlir

from eyas.codegen.common.constraints import NO_LOOP, TileNumbers, own_loops
from eyas.codegen.common.expressions import Bool, ceil_div, equal, lift
from eyas.codegen.common.kernel import Kernel, Nest
from eyas.codegen.common.schedule import Tile
from eyas.codegen.common.sizes import ONE
from eyas.codegen.common.space import Constraint, Knob, advice, domain, law
from eyas.codegen.llvm_cpu import schedule
from eyas.codegen.llvm_cpu.dot import INTRINSICS, why_no_dots
from eyas.codegen.llvm_cpu.schedule import MAX_WIDTH, nest_is_scalar, why_not_across_lanes
from eyas.targets import Target

_VECTORS = (1, 2, 3, 4, 6, 8)
_ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16)


def tile_knobs(kernel: Kernel, number: int, default: Tile, target: Target) -> list[Knob]:
    """The numbers of a nest's tile."""
    nest, path = kernel.nests[number], TileNumbers.of(number).path
    scalar, common = nest_is_scalar(nest), kernel.common_of(number)
    own = [loop for loop in nest.parallel if loop >= common and nest.loops[loop] != ONE]
    lanes = [] if scalar else [*(loop for loop in own if _is_contiguous(nest, loop)), *_lane_reductions(nest)]
    rows = [loop for loop in own_loops(nest, kernel.shared) if loop >= common or _in_block(kernel, number, loop)]
    native = target.lanes(widest_bits(nest))
    widths = [1] if scalar else [width for width in (native // 2, native, 2 * native) if 1 < width <= MAX_WIDTH]
    dots = [group for group in (1, 2, 4) if group <= getattr(target, "integer_dot", 1)]
    numbers = {
        "loop": (domain(lanes, _number(default.loop)), "the loop that runs in vectors; -1: none"),
        "width": (domain(widths, default.width), "lanes of a vector"),
        "vectors": ((1,) if scalar else _VECTORS, "vectors of a block"),
        "unroll_loop": (domain([NO_LOOP, *rows]), "the loop that advances several points at a time; -1: none"),
        "unroll": (_ROWS, "how many points it advances at a time"),
        "dot": (dots if _may_dot(nest) else (1,), "points of a sum that one instruction multiplies and adds"),
    }
    return [Knob(f"{path}.{name}", tuple(values), meaning) for name, (values, meaning) in numbers.items()]


def tile_constraints(kernel: Kernel, number: int, target: Target) -> list[Constraint]:
    """What a tile must keep on this target, and what is worth trying."""
    of, nest = TileNumbers.of(number), kernel.nests[number]
    parts = ceil_div(of.width, target.lanes(widest_bits(nest)))
    live = lift(of.unroll * of.vectors * parts)
    has = target.vector_registers
    found = [*schedule.tile_laws(kernel, number), dot_law(nest, number)]
    words = of.words("unroll", f"{{live}} vectors are at work at once, and the CPU has {has} registers")
    found.append(advice(live <= (has if nest.reductions else 2 * has), words, live=live))
    for loop in nest.parallel:
        extent = nest.loops[loop].static
        if extent:
            words = of.words("vectors", f"the {extent} points of loop {loop} fill less than half of them")
            found.append(advice(~equal(of.loop, loop) | (of.lanes < 2 * extent) | equal(of.vectors, 1), words))
            words = of.words("unroll", f"loop {loop} has {extent} points")
            found.append(advice(~equal(of.unroll_loop, loop) | (of.unroll <= extent), words))
    return found


def dot_law(nest: Nest, number: int) -> Constraint:
    """When `why_no_dots` has nothing against groups of neighbours."""
    of, pairs = TileNumbers.of(number), list(loop_pairs(nest)) if _may_dot(nest) else []
    fitting = [
        equal(of.dot, group) & equal(of.width, width) & at_loops(of, lane, row)
        for group, width in INTRINSICS
        for lane, row in pairs
        if why_no_dots(nest, Tile(width, lane, unroll_loop=row), group) is None
    ]
    alone: Bool = equal(of.dot, 1)
    for one in fitting:
        alone = alone | one
    return law(alone, of.words("dot", "it must be 1: no instruction multiplies such groups of such numbers"))


def loop_pairs(nest: Nest) -> Iterable[tuple[int, int | None]]:
    """Loops for lanes and for rows."""
    for lane in nest.parallel:
        for row in (None, *nest.parallel):
            if row != lane:
                yield lane, row


def at_loops(of: TileNumbers, lane: int, row: int | None) -> Bool:
    return equal(of.loop, lane) & equal(of.unroll_loop, _number(row))


def widest_bits(nest: Nest) -> int:
    """Of the elements that a statement makes."""
    return max([32] + [_bits(type_) for statement in nest.statements for type_ in statement.element_types])


def _bits(type_: mlir.Type) -> int:
    return type_.width if isinstance(type_, mlir.FloatType | mlir.IntegerType) else 64


def _number(loop: int | None) -> int:
    return NO_LOOP if loop is None else loop


def _may_dot(nest: Nest) -> bool:
    types = {str(access.storage.element) for access in nest.accesses}
    return bool(nest.reductions) and bool(types & {"i8", "i16"})


def _in_block(kernel: Kernel, number: int, loop: int) -> bool:
    return bool(kernel.block) and number >= kernel.first and loop == kernel.shared


def _is_contiguous(nest: Nest, loop: int) -> bool:
    return any(access.strides[loop] == ONE for access in nest.accesses)


def _lane_reductions(nest: Nest) -> list[int]:
    """Reductions that may run across lanes, along which something is contiguous."""
    return [
        loop for loop in sorted(nest.reductions)
        if why_not_across_lanes(nest, loop) is None and _is_contiguous(nest, loop) and nest.loops[loop] != ONE
    ]  # fmt: skip


__all__ = ["at_loops", "dot_law", "loop_pairs", "tile_constraints", "tile_knobs", "widest_bits"]
