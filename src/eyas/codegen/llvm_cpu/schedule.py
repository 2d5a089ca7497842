"""Which schedules machine code can run: constraints with messages, for heuristic, verifier and tuner alike.

What holds for every target is in `common/constraints.py`.
"""

from __future__ import annotations

from torch_mlir import ir as mlir

from eyas.codegen.common import constraints
from eyas.codegen.common.combine import combiner_of
from eyas.codegen.common.constraints import NO_LOOP, TileNumbers, own_loops
from eyas.codegen.common.expressions import differ, one_of, power_of_two
from eyas.codegen.common.kernel import Kernel, Nest
from eyas.codegen.common.schedule import Schedule
from eyas.codegen.common.space import Constraint, first_problem, law
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
        of = TileNumbers.of(number)
        if (problem := first_problem(tile_laws(kernel, number), of.values(tile))) is not None:
            return problem
        if tile.dot != 1 and (reason := why_no_dots(nest, tile, tile.dot)) is not None:
            return f"{of.path}.dot is {tile.dot}; it must be 1: {reason}"
    if len(schedule.staged) > 1 or set(schedule.staged) & set(schedule.packed_bindings):
        return f"staged is {list(schedule.staged)}; one binding can be staged, and not one that is packed"
    for binding in schedule.staged:
        if (problem := why_not_staged(kernel, schedule.tiles, binding)) is not None:
            return f"staged is [{binding}], but that binding cannot be: {problem}"
    return None


def tile_laws(kernel: Kernel, number: int) -> list[Constraint]:
    """What machine code asks of the numbers of a tile, beside what every target asks."""
    of, nest = TileNumbers.of(number), kernel.nests[number]
    own, across = own_loops(nest, kernel.shared), sorted(nest.reductions)
    alone = of.width <= 1
    found = [
        law(power_of_two(of.width, MAX_WIDTH), of.words("width", f"it must be a power of two up to {MAX_WIDTH}")),
        law(of.vectors <= MAX_VECTORS, of.words("vectors", f"it must be at most {MAX_VECTORS}")),
        law(of.unroll <= MAX_UNROLL, of.words("unroll", f"it must be at most {MAX_UNROLL}")),
        law(
            of.lanes * of.unroll <= MAX_POINTS,
            of.words("unroll", f"width * vectors * unroll must be at most {MAX_POINTS}"),
        ),
        law(
            alone | differ(of.loop, NO_LOOP), of.words("width", "without a loop for the lanes it must be 1")
        ),
        law(
            one_of(of.unroll_loop, [NO_LOOP, *own]),
            of.words("unroll_loop", f"reductions cannot be unrolled, parallel loops are {own}"),
        ),
    ]  # fmt: skip
    if nest_is_scalar(nest):
        words = "the nest has element types that vectors do not have, so it must be 1"
        found.append(law(alone, of.words("width", words)))
    if across:
        words = of.words("width", "lanes along a reduction must be at least 2")
        found.append(law((of.width > 1) | ~one_of(of.loop, across), words))
    for loop in across:
        if (reason := why_not_across_lanes(nest, loop)) is not None:
            words = f"{of.path}.loop is {loop}, a reduction that cannot run across lanes: {reason}"
            found.append(law(differ(of.loop, loop), words))
    if kernel.block and number >= kernel.first:
        words = "that loop runs in blocks of rows, so it cannot be lanes"
        found.append(law(differ(of.loop, kernel.shared), of.words("loop", words)))
    return found


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
