"""How a contraction reads its weights: what can be chosen, and the schedule that a choice is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from torch_mlir import ir as mlir

from eyas.codegen.common.constraints import TileNumbers
from eyas.codegen.common.expressions import FALSE, Bool, Var, any_of, equal, lift
from eyas.codegen.common.kernel import Access, Kernel, Nest
from eyas.codegen.common.schedule import Schedule, Tile
from eyas.codegen.common.sizes import Size, product
from eyas.codegen.common.space import Constraint, Knob, advice, law
from eyas.codegen.llvm_cpu.interface import SCRATCH_BYTES
from eyas.codegen.llvm_cpu.space import at_loops, loop_pairs
from eyas.codegen.llvm_cpu.staging import staged_loops, why_not_staged

_STAGED = Var("staged")
_INSIDE = Var("inside")


def lane_operand(nest: Nest, tile: Tile) -> Access | None:
    """The only input that is read along the lanes and is the same for all rows."""
    loop, rows = tile.loop, tile.unroll_loop
    if loop is None or loop in nest.reductions:
        return None
    found = [
        source
        for source in nest.statements[0].inputs
        if isinstance(source, Access)
        and source.strides[loop] == Size(1)
        and (rows is None or source.strides[rows] == Size(0))
        and not source.guards
    ]
    return found[0] if len(found) == 1 else None


def loops_inside(nest: Nest, tile: Tile, weights: Access) -> tuple[int, ...]:
    """Loops on which the weights do not depend: inside of a block of lanes, a panel serves all of them."""
    apart = (tile.loop, tile.unroll_loop)
    return tuple(loop for loop in nest.parallel if loop not in apart and weights.strides[loop] == Size(0))


def weight_knobs(kernel: Kernel, may_stage: bool) -> list[Knob]:
    nest = kernel.nests[0]
    operands = [lane_operand(nest, Tile(2, lane, unroll_loop=row)) for lane, row in loop_pairs(nest)]
    some = any(one is not None and one.storage.binding is not None for one in operands)
    return [
        Knob("inside", (0, 1), "1: loops on which the weights do not depend run inside of a block of lanes"),
        Knob(
            "staged", (0, 1) if some and may_stage else (0,), "1: a block of lanes first copies its part of the weights"
        ),
        Knob("panels", (0, 1) if some else (1,), "1: weights that are constant lie in panels of a block's lanes"),
        Knob("prefetch", (0, 1, 2) if some else (1,), "how many panels ahead memory is asked for the next; 0: never"),
    ]


def weight_constraints(kernel: Kernel) -> list[Constraint]:
    nest, of = kernel.nests[0], TileNumbers.of(0)
    inside: list[Bool] = []
    staged: list[Bool] = []
    for lane, row in loop_pairs(nest):
        tile = Tile(2, lane, unroll_loop=row)
        weights = lane_operand(nest, tile)
        if weights is None:
            continue
        if loops_inside(nest, tile, weights):
            inside.append(at_loops(of, lane, row))
        binding = weights.storage.binding
        if binding is not None and why_not_staged(kernel, (tile,), binding) is None:
            staged.append(at_loops(of, lane, row) & (_panel_bytes(nest, weights, of) <= SCRATCH_BYTES))
    words = "inside is {inside}; with these loops there is none on which the weights do not depend"
    return [
        advice(equal(_INSIDE, 0) | any_of(inside), words),
        law(
            equal(_STAGED, 0) | ((of.width > 1) & any_of(staged) if staged else FALSE),
            "staged is {staged}; with this tile no operand can be: one that is read once, along the lanes, the same for"
            f" all rows, of which a panel fits into {SCRATCH_BYTES} bytes",
        ),
        advice(
            equal(Var("prefetch"), 1) | equal(Var("panels"), 1),
            "prefetch is {prefetch}; without panels there is no next one to ask for",
        ),
    ]  # fmt: skip


def weight_point(schedule: Schedule) -> dict[str, int]:
    return {
        "inside": int(bool(schedule.tiles[0].inside)),
        "staged": int(bool(schedule.staged)),
        "panels": schedule.panels,
        "prefetch": schedule.prefetch,
    }


def weight_schedule(kernel: Kernel, schedule: Schedule, point: Mapping[str, int]) -> Schedule:
    """The schedule in which weights are read as a point says."""
    nest, tile = kernel.nests[0], schedule.tiles[0]
    weights = lane_operand(nest, tile)
    if weights is not None and point["inside"]:
        tile = replace(tile, inside=loops_inside(nest, tile, weights))
    binding = None if weights is None else weights.storage.binding
    # What is not there cannot be staged; the check then says so.
    staged = (-1 if binding is None else binding,) if point["staged"] else ()
    return replace(schedule, tiles=(tile,), staged=staged, panels=point["panels"], prefetch=point["prefetch"])


def _panel_bytes(nest: Nest, weights: Access, of: TileNumbers):
    element = weights.storage.element
    assert isinstance(element, mlir.FloatType | mlir.IntegerType)
    depth = product([nest.loops[loop] for loop in staged_loops(nest, weights)]).factor
    return lift(of.lanes * (depth * max(1, element.width // 8)))
