"""`outline-loops`: loops with real work in each step run in the host program, their bodies are functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import func

from eyas.codegen.backends import backend_of
from eyas.dialects import flow
from eyas.ir.walk import defining_op, entry_block, functions, is_tensor, nested_operands, remap_operands
from eyas.passes.optimize.counted_loops import CountedLoop, counted_steps
from eyas.passes.optimize.evaluate_constants import constant_ops
from eyas.passes.optimize.work import points_of
from eyas.passes.targeted import TargetedPass

# Ops of a step that the strategy `recurrence` reads.
_OPS_OF_STEPS = ("arith.", "linalg.", "math.", "tensor.e", "tensor.insert_slice", "tensor.collapse_shape", "scf.yield")
_WORDS = 4  # bytes of a weight


@dataclass(frozen=True)
class OutlineLoops(TargetedPass):
    """Makes a function of the body of a loop that counts, and a call of that for all steps.

    As a function the body is optimised like any program: products with packed weights, gates fused, and one recording
    that every step submits. A step takes rows of what the loop reads, and the state, and gives rows and the next state.
    All cores work on a step then. Loops with little work stay as they are: a submission costs more than they do. Where
    there is the strategy `recurrence`, that is also what one core does as well: steps whose weights its cache holds, if
    rows of the batch or other loops of the kind keep the other cores busy, and steps of a few microseconds.

        %r:2 = scf.for %i = 0 to 300 iter_args(%h = %a, %ys = %z) {    %r:2 = call @main_loop_0_steps(%xs, %a)
          %x = tensor.extract_slice %xs[%i, 0] ...            =>       {flow.loop = @main_loop_0, flow.trips = 300, ...}
          ...                                                      func @main_loop_0(%x, %h) { ... return %new }
          tensor.insert_slice %new into %ys[%i, 0] ... }
    """

    name: ClassVar[str] = "outline-loops"
    min_work: int = 8192
    min_work_of_cores: int = 120_000
    disable: tuple[str, ...] = ()

    def run(self, module: mlir.Module) -> None:
        for function in functions(module):
            prefix = mlir.StringAttr(function.attributes["sym_name"]).value
            ordinal = 0
            for view in list(entry_block(function).operations):
                if view.operation.name != "scf.for":
                    continue
                loop = counted_steps(view.operation)
                if loop is not None and loop.trips > 1 and self._is_worth(loop):
                    ordinal += _Outlining(module, loop, f"{prefix}_loop_{ordinal}").run()

    def _is_worth(self, loop: CountedLoop) -> bool:
        work = points_of(loop.body)
        ops = [view.operation.name for view in loop.body.operations]
        strategies = [strategy.name for strategy in backend_of(self.target).strategies]
        if "recurrence" not in strategies or "recurrence" in self.disable or not all(map(_is_of_steps, ops)):
            return work >= self.min_work
        rows = _rows(loop)
        apart = rows * (1 + _neighbours(loop))
        fits = work // max(rows, 1) * _WORDS <= self.target.caches.l2_bytes
        return self.target.cores > 1 and work >= self.min_work_of_cores and not (apart >= self.target.cores and fits)


class _Outlining:
    def __init__(self, module: mlir.Module, loop: CountedLoop, name: str):
        self.module, self.loop, self.name = module, loop, name
        self.skipped = loop.skipped
        self.constant = constant_ops(loop.op.block)

    def run(self) -> bool:
        loop, op = self.loop, self.loop.op
        sources = {position: _unshaped(row.slice.operands[0]) for position, row in loop.rows.items()}
        following = {position: _unshaped(loop.next(position)) for position in loop.states}
        captured = self._captured([*sources.values(), *following.values()])
        if captured is None:
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
        with op.location:
            self._make_body(arguments, results)
            call = self._make_call(captured)
        rows = [number for position, row in enumerate(loop.rows.values()) for number in (position, row.start, row.step)]
        attributes = {
            flow.LOOP: mlir.FlatSymbolRefAttr.get(self.name),
            flow.TRIPS: mlir.IntegerAttr.get(mlir.IntegerType.get_signless(64), loop.trips),
            flow.READS: mlir.DenseI64ArrayAttr.get([n for row in loop.reads for n in (row.start, row.step)]),
            flow.ROWS: mlir.DenseI64ArrayAttr.get(rows),
            flow.STATES: mlir.DenseI64ArrayAttr.get(state_results),
        }
        for key, value in attributes.items():
            call.attributes[key] = value
        for position, new in zip([*loop.rows, *loop.states], call.results, strict=True):
            loop.result(position).replace_all_uses_with(new)
        op.erase()
        return True

    def _captured(self, given: list[mlir.Value]) -> list[mlir.Value] | None:
        """Tensors from outside that the body uses or gives and that are no constants; None where one is of unknown
        size or it uses a scalar."""
        inside: set[mlir.Value] = set(self.loop.body.arguments)
        used = list(given)
        for view in self.loop.body.operations:
            _note_values(view.operation, inside)
            if view.operation not in self.skipped:
                used += nested_operands(view.operation)
        found: dict[mlir.Value, None] = {}
        for value in used:
            owner = defining_op(value)
            if value in inside or (owner is not None and (owner in self.constant or owner.name == "arith.constant")):
                continue
            if not is_tensor(value) or not mlir.RankedTensorType(value.type).has_static_shape:
                return None
            found[value] = None
        return list(found)

    def _make_body(self, arguments: list[mlir.Value], results: list[mlir.Value]) -> None:
        with mlir.InsertionPoint(self.module.body):
            types = ([value.type for value in arguments], [value.type for value in results])
            function = func.FuncOp(self.name, types, visibility="private")
            entry = function.add_entry_block([self.loop.op.location] * len(arguments))
        known = dict(zip(arguments, entry.arguments, strict=True))
        outside = self.loop.op.block

        def bring(value: mlir.Value) -> None:
            owner = defining_op(value)
            if value in known or owner is None or owner.block != outside:
                return
            for operand in nested_operands(owner):
                bring(operand)
            copy = owner.clone().operation
            remap_operands(copy, known)
            known.update(zip(owner.results, copy.results, strict=True))

        with mlir.InsertionPoint(entry):
            for view in self.loop.body.operations:
                op = view.operation
                if op in self.skipped:
                    continue
                inside: set[mlir.Value] = set()
                _note_values(op, inside)
                needed = [value for value in nested_operands(op) if value not in inside]
                for value in needed:
                    bring(value)
                if not all(value in known for value in needed):
                    continue  # counting
                copy = op.clone().operation
                remap_operands(copy, known)
                known.update(zip(op.results, copy.results, strict=True))
            for value in results:
                bring(value)
            func.ReturnOp([known[value] for value in results])

    def _make_call(self, captured: list[mlir.Value]) -> func.CallOp:
        loop = self.loop
        starts = [loop.start(position) for position in loop.states]
        operands = [*(row.slice.operands[0] for row in loop.reads), *starts, *captured]
        types = [loop.body.arguments[position].type for position in [*loop.rows, *loop.states]]
        steps = f"{self.name}_steps"
        with mlir.InsertionPoint(self.module.body):
            func.FuncOp(steps, ([value.type for value in operands], types), visibility="private")
        with mlir.InsertionPoint(loop.op):
            return func.CallOp(types, mlir.FlatSymbolRefAttr.get(steps), operands)


def _is_of_steps(name: str) -> bool:
    return name.startswith(_OPS_OF_STEPS)


def _rows(loop: CountedLoop) -> int:
    """Rows of the batch: the first dimension of what steps give."""
    shapes = [mlir.RankedTensorType(loop.body.arguments[position].type).shape for position in loop.states]
    return min((shape[0] for shape in shapes if len(shape) > 1), default=1)


def _neighbours(loop: CountedLoop) -> int:
    """Loops right before and after this one that are independent of it: the other direction of the same layer."""
    found, before = 0, True
    made, needed = set(loop.op.results), set(nested_operands(loop.op))
    for view in loop.op.block.operations:
        op = view.operation
        if op == loop.op:
            before = False
        elif op.name == "scf.for":
            found += not (needed & set(op.results) if before else made & set(nested_operands(op)))
    return min(found, 1)


def _note_values(op: mlir.Operation, values: set[mlir.Value]) -> None:
    values.update(op.results)
    for region in op.regions:
        for block in region.blocks:
            values.update(block.arguments)
            for inner in block.operations:
                _note_values(inner.operation, values)


def _unshaped(value: mlir.Value) -> mlir.Value:
    """What a tensor is before it was given another shape: in memory they are the same."""
    owner = defining_op(value)
    while owner is not None and owner.name in ("tensor.expand_shape", "tensor.collapse_shape"):
        value = owner.operands[0]
        owner = defining_op(value)
    return value
