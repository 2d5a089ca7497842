"""Steps of a loop that counts as a function that the host program runs on rows of tensors."""

from __future__ import annotations

from torch_mlir import ir as mlir

from eyas.dialects import flow
from eyas.ir.walk import defining_op, nested_operands
from eyas.passes.optimize.counted_loops import CountedLoop
from eyas.passes.optimize.outlining import Outlining


def outline_steps(module: mlir.Module, loop: CountedLoop, name: str) -> bool:
    """Makes a function of the body, and a call of that for all steps; says whether that was possible.

    A step takes rows of what the loop reads, and the state, and gives rows and the next state.

        %r:2 = scf.for %i = 0 to 300 iter_args(%h = %a, %ys = %z) {    %r:2 = call @main_loop_0_steps(%xs, %a)
          %x = tensor.extract_slice %xs[%i, 0] ...            =>       {flow.loop = @main_loop_0, flow.trips = 300, ...}
          ...                                                      func @main_loop_0(%x, %h) { ... return %new }
          tensor.insert_slice %new into %ys[%i, 0] ... }
    """
    outlining = Outlining(module, loop.op, scalars=False)
    sources = {position: _unshaped(row.slice.operands[0]) for position, row in loop.rows.items()}
    following = {position: _unshaped(loop.next(position)) for position in loop.states}
    steps = [view.operation for view in loop.body.operations if view.operation not in loop.skipped]
    used = [value for op in steps for value in nested_operands(op)]
    captured = outlining.captured([*sources.values(), *following.values(), *used])
    if captured is None or not all(mlir.RankedTensorType(value.type).has_static_shape for value in captured):
        return False
    arguments = [
        *(row.slice.results[0] for row in loop.reads),
        *(loop.body.arguments[position] for position in loop.states),
        *captured,
    ]
    results = list(sources.values())
    state_results = []
    for value in following.values():
        # One result may be a row and a state; what is two states is given twice.
        shared = results.index(value) if value in results[: len(sources)] else None
        if shared is None or shared in state_results:
            shared = len(results)
            results.append(value)
        state_results.append(shared)
    outlining.make_function(name, arguments, steps, results)  # without what only counts
    operands = [*(row.slice.operands[0] for row in loop.reads), *map(loop.start, loop.states), *captured]
    types = [loop.body.arguments[position].type for position in [*loop.rows, *loop.states]]
    call = outlining.declare(f"{name}_steps", operands, types)
    rows = [number for position, row in enumerate(loop.rows.values()) for number in (position, row.start, row.step)]
    attributes = {
        flow.LOOP: mlir.FlatSymbolRefAttr.get(name),
        flow.TRIPS: mlir.IntegerAttr.get(mlir.IntegerType.get_signless(64), loop.trips),
        flow.READS: mlir.DenseI64ArrayAttr.get([n for row in loop.reads for n in (row.start, row.step)]),
        flow.ROWS: mlir.DenseI64ArrayAttr.get(rows),
        flow.STATES: mlir.DenseI64ArrayAttr.get(state_results),
    }
    for key, value in attributes.items():
        call.attributes[key] = value
    for position, new in zip([*loop.rows, *loop.states], call.results, strict=True):
        loop.result(position).replace_all_uses_with(new)
    loop.op.erase()
    return True


def _unshaped(value: mlir.Value) -> mlir.Value:
    """What a tensor is before it was given another shape: in memory they are the same."""
    owner = defining_op(value)
    while owner is not None and owner.name in ("tensor.expand_shape", "tensor.collapse_shape"):
        value = owner.operands[0]
        owner = defining_op(value)
    return value
