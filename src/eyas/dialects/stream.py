"""`stream`: a program as an ordered list of work on buffers with lifetimes.

Every value is a `!stream.resource`, a span of bytes. Order is program order; `stream.barrier` separates waves of
dispatches that may run at the same time. Sizes and offsets are index values, constant when shapes are.
"""

from collections.abc import Sequence

from torch_mlir import ir as mlir

from eyas.ir.dialect import Dialect, IntegersAttr, Operand, Pure, Result


class Stream(Dialect, name="stream"):
    pass


class ResourceType(Stream.Type, name="resource"):
    """A span of bytes: an argument, a parameter, a result, or a part of the arena."""


READ, WRITE = 1, 2

HOST_CALLS = ("stream.loop", "stream.branch", "stream.while")
"""Ops that run functions of the program."""


class ArgumentOp(Stream.Operation, name="argument", traits=[Pure]):
    """The bytes of the program's argument `index`; read-only."""

    index: mlir.IntegerAttr
    result: Result[ResourceType]


class ArgumentDimOp(Stream.Operation, name="argument_dim", traits=[Pure]):
    """The size of one dimension of an argument."""

    index: mlir.IntegerAttr
    dim: mlir.IntegerAttr
    result: Result[mlir.IndexType]


class ParameterOp(Stream.Operation, name="parameter", traits=[Pure]):
    """The bytes of a weight; read-only."""

    key: mlir.StringAttr
    result: Result[ResourceType]


class StateOp(Stream.Operation, name="state", traits=[Pure]):
    """The bytes of a state variable, which stay between calls; read and written."""

    bytes: Operand[mlir.IndexType]
    key: mlir.StringAttr
    result: Result[ResourceType]


class AllocOp(Stream.Operation, name="alloc"):
    """Memory of its own. `kind` is "transient" (lives inside a call) or "result" (handed to the caller)."""

    bytes: Operand[mlir.IndexType]
    kind: mlir.StringAttr
    result: Result[ResourceType]

    def verify_invariants(self) -> bool:
        if self.kind.value in ("transient", "result"):
            return True
        self.location.emit_error(f"stream.alloc kind must be 'transient' or 'result', got '{self.kind.value}'")
        return False


class ViewOp(Stream.Operation, name="view", traits=[Pure]):
    """A part of a resource."""

    source: Operand[ResourceType]
    offset: Operand[mlir.IndexType]
    bytes: Operand[mlir.IndexType]
    result: Result[ResourceType]


class PackOp(Stream.Operation, name="pack", traits=[Pure]):
    """Offsets for buffers of these sizes in one arena, computed at run time because some size is dynamic.

    `lifetimes` holds (first, last) per buffer; buffers whose lifetimes meet do not overlap. The first result is the
    arena's size, the others are the offsets. The call fails when the arena is larger than `max_bytes`;
    0 sets no limit.
    """

    sizes: Sequence[Operand[mlir.IndexType]]
    lifetimes: IntegersAttr
    max_bytes: mlir.IntegerAttr
    results_: Sequence[Result[mlir.IndexType]]

    def verify_invariants(self) -> bool:
        sizes, lifetimes = len(list(self.sizes)), len(list(self.lifetimes))
        if lifetimes == 2 * sizes and len(self.operation.results) == sizes + 1:
            return True
        self.location.emit_error(f"stream.pack of {sizes} buffers needs {2 * sizes} lifetimes and {sizes + 1} results")
        return False


class DispatchOp(Stream.Operation, name="dispatch"):
    """Runs an executable on resources. `access` says per resource: 1 read, 2 written, 3 both.

    "stream.dispatch"(%n, %a, %b) {callee = @main_dispatch_0_relu, access = array<i64: 1, 2>}
    """

    constants: Sequence[Operand[mlir.IndexType]]
    resources: Sequence[Operand[ResourceType]]
    callee: mlir.FlatSymbolRefAttr
    access: IntegersAttr

    def verify_invariants(self) -> bool:
        if len(list(self.access)) == len(list(self.resources)):
            return True
        self.location.emit_error("stream.dispatch needs one access mode for each resource")
        return False


class LoopOp(Stream.Operation, name="loop"):
    """Runs a function of the program `trips` times, on rows of resources and on state that it hands on.

    Resources: tensors whose rows are read, first states, what all steps see, tensors whose rows are written, then two
    buffers for each state that is not a written row as well, which take turns. `counts` says how many there are of
    each of the first four. `reads` holds (start, step, bytes of a row) for each of the first, `rows` (result of the
    function, start, step, bytes of a row) for each of the fourth, `states` the result that is the next value.
    """

    resources: Sequence[Operand[ResourceType]]
    body: mlir.FlatSymbolRefAttr
    trips: mlir.IntegerAttr
    counts: IntegersAttr
    reads: IntegersAttr
    rows: IntegersAttr
    states: IntegersAttr
    access: IntegersAttr


class BranchOp(Stream.Operation, name="branch"):
    """Runs one function of the program if the condition holds, and else another.

    Resources: what the functions take, then what they give, of which there are `made`. `dims` are sizes of the
    former that vary, and `places` say which: (argument, dimension) for each.
    """

    condition: Operand[mlir.IntegerType[1]]  # pyright: ignore[reportGeneralTypeIssues]
    dims: Sequence[Operand[mlir.IndexType]]
    resources: Sequence[Operand[ResourceType]]
    then: mlir.FlatSymbolRefAttr
    otherwise: mlir.FlatSymbolRefAttr
    made: mlir.IntegerAttr
    places: IntegersAttr
    access: IntegersAttr


class WhileOp(Stream.Operation, name="while"):
    """Runs a function of the program as long as the condition holds, which is its first result from then on.

    Resources: first states, what all steps see, a byte for the condition, two buffers for each state, which take turns,
    then one for each state that is needed at the end; `kept` says which these are. `states` is how many there are.
    `dims` are sizes of what the function takes that vary, and `places` say which: (argument, dimension) for each.
    """

    condition: Operand[mlir.IntegerType[1]]  # pyright: ignore[reportGeneralTypeIssues]
    dims: Sequence[Operand[mlir.IndexType]]
    resources: Sequence[Operand[ResourceType]]
    body: mlir.FlatSymbolRefAttr
    states: mlir.IntegerAttr
    kept: IntegersAttr
    places: IntegersAttr
    access: IntegersAttr


class CopyOp(Stream.Operation, name="copy"):
    """Copies all bytes of one resource to another of the same size."""

    source: Operand[ResourceType]
    target: Operand[ResourceType]


class BarrierOp(Stream.Operation, name="barrier"):
    """What comes later starts after all before has finished."""


class LoadOp(Stream.Operation, name="load"):
    """Reads one integer of a resource into the host program; waits for all work before it."""

    source: Operand[ResourceType]
    offset: mlir.IntegerAttr
    element: mlir.StringAttr
    result: Result[mlir.IntegerType[64]]  # pyright: ignore[reportGeneralTypeIssues]


class ResultOp(Stream.Operation, name="result"):
    """Gives the program's result `index`, with its dimensions."""

    source: Operand[ResourceType]
    dims: Sequence[Operand[mlir.IndexType]]
    index: mlir.IntegerAttr
