"""`flow`: a program as a graph of tensors and dispatches.

Values are immutable tensors. Weights are `flow.parameter`s, reshapes and slices are views, `flow.tie_shape` says how
large dynamic tensors are. Work is in private functions marked `flow.executable`, called by `func.call ...
{flow.dispatch}`.
"""

from collections.abc import Sequence
from typing import Any

from torch_mlir import ir as mlir

from eyas.ir.dialect import Dialect, Operand, Pure, Result


class Flow(Dialect, name="flow"):
    pass


class ParameterOp(Flow.Operation, name="parameter", traits=[Pure]):
    """A weight, by name. Its bytes live outside the IR, in the program's parameter table.

    Fails to verify when the name is empty or the type has a dynamic dimension.

        %0 = "flow.parameter"() {key = "fc.weight"} : () -> tensor<10x64xf32>
    """

    key: mlir.StringAttr
    value: Result[Any]

    def verify_invariants(self) -> bool:
        type_ = self.value.type
        if not self.key.value:
            self.location.emit_error("flow.parameter needs a name")
            return False
        if not isinstance(type_, mlir.RankedTensorType) or not type_.has_static_shape:
            self.location.emit_error(f"flow.parameter '{self.key.value}' must have a static tensor type, got {type_}")
            return False
        return True


class StateOp(Flow.Operation, name="state", traits=[Pure]):
    """What a state variable holds when the call begins. Its first value is the parameter `initial_key(key)`.

    Fails to verify when the name is empty or the type has a dynamic dimension.

        %0 = "flow.state"() {key = "cache.k"} : () -> tensor<1x8x128x64xf32>
    """

    key: mlir.StringAttr
    value: Result[Any]

    def verify_invariants(self) -> bool:
        return _check_state(self, self.value.type)


class SetStateOp(Flow.Operation, name="set_state"):
    """What a state variable holds when the call ends; once for each variable at most.

    "flow.set_state"(%1) {key = "cache.k"} : (tensor<1x8x128x64xf32>) -> ()
    """

    value: Operand[Any]
    key: mlir.StringAttr

    def verify_invariants(self) -> bool:
        return _check_state(self, self.value.type)


class ReshapeOp(Flow.Operation, name="reshape", traits=[Pure]):
    """The same elements in row-major order under another shape; never moves data.

    `dims` are the values of the result's dynamic dimensions, in order.
    """

    source: Operand[Any]
    dims: Sequence[Operand[mlir.IndexType]]
    result: Result[Any]

    def verify_invariants(self) -> bool:
        return _check_dims(self, [self.result], self.dims)


class TieShapeOp(Flow.Operation, name="tie_shape"):
    """States the values of a tensor's dynamic dimensions, in order, so that its buffer can be sized without it.

    "flow.tie_shape"(%0, %batch) : (tensor<?x4xf32>, index) -> ()
    """

    source: Operand[Any]
    dims: Sequence[Operand[mlir.IndexType]]

    def verify_invariants(self) -> bool:
        return _check_dims(self, [self.source], self.dims)


class SliceOp(Flow.Operation, name="slice", traits=[Pure]):
    """A contiguous part of a tensor that starts `offset` elements in; never moves data."""

    source: Operand[Any]
    offset: mlir.IntegerAttr
    result: Result[Any]


DISPATCH = "flow.dispatch"
"""Marks a `func.call` that runs its callee on the device: tensors and index scalars in, tensors out.

Upstream's call is used as it is because IRDL, in which Python dialects are declared, has no operand lists of mixed
types.
"""

LOOP = "flow.loop"
"""On a `func.call`: the function that each step of a loop runs. The call's operands are tensors whose rows are read,
states to begin with, and what all steps see; its results are tensors whose rows are written, and the last states. The
function takes the rows, the states and the rest, and gives what `ROWS` and `STATES` name."""

TRIPS = "flow.trips"
"""On a loop's call: how many steps it takes."""

READS = "flow.reads"
"""On a loop's call: (start, step) for each tensor whose rows are read: step t reads row start + step * t."""

ROWS = "flow.rows"
"""On a loop's call: (result of the function, start, step) for each tensor whose rows are written."""

STATES = "flow.states"
"""On a loop's call: the function's result that is the next value, for each state."""

BRANCHES = "flow.branches"
"""On a `func.call`: two functions, of which the host runs the first if the call's first operand is true, else the
second. Both take the other operands, which are tensors, and give what the call gives."""

WHILE = "flow.while"
"""On a `func.call`: the function that each step of a loop runs. The call's operands are whether there is a first step,
states to begin with, and what all steps see; its results are the last states. The function takes the states and the
rest, and gives whether there is another step, and the next states."""

EXECUTABLE = "flow.executable"
"""Marks a private function that dispatches call."""

IN_PLACE = "flow.in_place"
"""On an executable: (tensor argument, result) pairs that are one buffer. What the result has in common with the
argument stays where it is and is not written."""

GROUP = "flow.group"
"""On ops: those with the same number become one dispatch, and no other op joins it."""

WITHIN = "flow.within"
"""On a `tensor.extract`: whoever made the positions knows that they lie inside of the tensor, so that they need not be
clamped."""

NOT_FUSED = "flow.not_fused"
"""On an op: why it did not join the dispatch of its producer."""


def initial_key(state: str) -> str:
    """The key of the parameter that holds a state variable's first value."""
    return f"{state}@initial"


def is_dispatch(op: mlir.Operation | mlir.OpView) -> bool:
    return op.operation.name == "func.call" and DISPATCH in op.operation.attributes


def is_loop(op: mlir.Operation | mlir.OpView) -> bool:
    return op.operation.name == "func.call" and LOOP in op.operation.attributes


def is_branch(op: mlir.Operation | mlir.OpView) -> bool:
    return op.operation.name == "func.call" and BRANCHES in op.operation.attributes


def is_while(op: mlir.Operation | mlir.OpView) -> bool:
    return op.operation.name == "func.call" and WHILE in op.operation.attributes


def is_host_call(op: mlir.Operation | mlir.OpView) -> bool:
    """Whether the host program runs functions of the program here."""
    return is_loop(op) or is_branch(op) or is_while(op)


def is_executable(op: mlir.Operation | mlir.OpView) -> bool:
    return op.operation.name == "func.func" and EXECUTABLE in op.operation.attributes


def dynamic_dims(values: Sequence[mlir.Value]) -> list[tuple[mlir.Value, int]]:
    """(value, dimension) of each dynamic dimension, in the order that `dims` operands follow."""
    found = []
    for value in values:
        type_ = mlir.ShapedType(value.type)
        found += [(value, index) for index in range(type_.rank) if type_.is_dynamic_dim(index)]
    return found


def _check_state(op: mlir.OpView, type_: mlir.Type) -> bool:
    key = mlir.StringAttr(op.attributes["key"]).value
    if key and isinstance(type_, mlir.RankedTensorType) and type_.has_static_shape:
        return True
    op.location.emit_error(f"'{op.name}' '{key}' must have a name and a static tensor type, got {type_}")
    return False


def _check_dims(op: mlir.OpView, results: Sequence[mlir.Value], dims: Sequence[mlir.Value]) -> bool:
    expected, given = len(dynamic_dims(results)), len(list(dims))
    if expected == given:
        return True
    op.location.emit_error(f"'{op.name}' needs {expected} values for dynamic dimensions, got {given}")
    return False
