"""Which schedules machine code can run: constraints with messages, for heuristic, verifier and tuner alike.

What holds for every target is in `common/constraints.py`.
"""

from __future__ import annotations

from torch_mlir import ir as mlir

from eyas.codegen.common import constraints
from eyas.codegen.common.combine import combiner_of
from eyas.codegen.common.constraints import own_loops
from eyas.codegen.common.kernel import Kernel, Nest
from eyas.codegen.common.schedule import Schedule, Tile
from eyas.codegen.llvm_cpu.dot import why_no_dots
from eyas.codegen.llvm_cpu.staging import why_not_staged

MAX_WIDTH, MAX_VECTORS, MAX_UNROLL = 64, 16, 64
MAX_POINTS = 1024
"""Of a register tile: what it has beyond the register file is spilled, and all of it is code."""


def check_schedule(schedule: Schedule, kernel: Kernel) -> str | None:
    """Why the schedule cannot run this kernel, or None."""
    if (problem := constraints.check_schedule(schedule, kernel)) is not None:
        return problem
    for number, (tile, nest) in enumerate(zip(schedule.tiles, kernel.nests, strict=True)):
        if (problem := _check_numbers(tile) or _check_tile(tile, nest, kernel.shared)) is not None:
            return f"tiles[{number}].{problem}"
        if kernel.block and number >= kernel.first and tile.loop == kernel.shared:
            return f"tiles[{number}].loop is {tile.loop}; that loop runs in blocks of rows, so it cannot be lanes"
    if len(schedule.staged) > 1 or set(schedule.staged) & set(schedule.packed_bindings):
        return f"staged is {list(schedule.staged)}; one binding can be staged, and not one that is packed"
    for binding in schedule.staged:
        if (problem := why_not_staged(kernel, schedule.tiles, binding)) is not None:
            return f"staged is [{binding}], but that binding cannot be: {problem}"
    return None


def _check_numbers(tile: Tile) -> str | None:
    if tile.width > MAX_WIDTH or tile.width & (tile.width - 1):
        return f"width is {tile.width}; it must be a power of two up to {MAX_WIDTH}"
    for name, most in (("vectors", MAX_VECTORS), ("unroll", MAX_UNROLL)):
        if getattr(tile, name) > most:
            return f"{name} is {getattr(tile, name)}; it must be at most {most}"
    if tile.lanes * tile.unroll > MAX_POINTS:
        return f"unroll is {tile.unroll}; width * vectors * unroll must be at most {MAX_POINTS}"
    if tile.width > 1 and tile.loop is None:
        return f"width is {tile.width}; without a loop for the lanes it must be 1"
    return None


def _check_tile(tile: Tile, nest: Nest, shared: int) -> str | None:
    own = own_loops(nest, shared)
    if tile.unroll_loop is not None and tile.unroll_loop not in own:
        return f"unroll_loop is {tile.unroll_loop}; reductions cannot be unrolled, parallel loops are {own}"
    if tile.width > 1 and nest_is_scalar(nest):
        return f"width is {tile.width}; the nest has element types that vectors do not have, so it must be 1"
    if tile.dot != 1 and (problem := why_no_dots(nest, tile, tile.dot)) is not None:
        return f"dot is {tile.dot}; it must be 1: {problem}"
    if tile.loop in nest.reductions:
        if tile.width == 1:
            return "width is 1; lanes along a reduction must be at least 2"
        if (problem := why_not_across_lanes(nest, tile.loop)) is not None:
            return f"loop is {tile.loop}, a reduction that cannot run across lanes: {problem}"
    return None


def why_not_across_lanes(nest: Nest, loop: int | None) -> str | None:
    """Why partial results of a reduction cannot be kept in lanes and combined at the end, or None."""
    first = nest.statements[0]
    if loop not in first.reductions or any(statement.reductions for statement in nest.statements[1:]):
        return "it is not the nest's first and only one"
    if combiner_of(first.body, len(first.inputs)) is None:
        return "its partial results cannot be combined"
    if first.body is not None and any(op.operation.name == "cf.assert" for op in first.body.operations):
        return "it asserts something of each element"
    return None


def nest_is_scalar(nest: Nest) -> bool:
    """Whether a body or type rules vectors out."""
    for access in nest.accesses:
        if not isinstance(access.storage.element, mlir.FloatType | mlir.IntegerType):
            return True
    # A complex number may live between two statements, or inside one, without being stored.
    for statement in nest.statements:
        bodies = [] if statement.body is None else list(statement.body.operations)
        types = [result.type for view in bodies for result in view.operation.results]
        if any(isinstance(type_, mlir.ComplexType) for type_ in [*statement.element_types, *types]):
            return True
    return False
