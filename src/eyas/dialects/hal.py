"""`hal`: a program in the terms of the hardware abstraction layer: executables, command buffers, bindings, submissions.

The ops map one to one onto the runtime's HAL (runtime/include/eyas/hal.h), which is shaped like Vulkan: work is
recorded into command buffers whose bindings are direct (a buffer) or slots of a table given at submission, so that a
recording can be replayed with other buffers.
"""

from collections.abc import Sequence

from torch_mlir import ir as mlir

from eyas.ir.dialect import Dialect, IntegersAttr, IsTerminatorTrait, Operand, Pure, Region, Result


class Hal(Dialect, name="hal"):
    pass


class BufferType(Hal.Type, name="buffer"):
    """A span of device memory."""


class CommandBufferType(Hal.Type, name="command_buffer"):
    """Recorded work."""


IMAGE = "hal.image"
"""Not a field of the op below: IRDL has no constraint for dense elements."""
SEGMENTS = "segments"
"""Of an export, where it is not 1 for each: how many bindings each tensor of the dispatch takes."""


class ExecutableOp(Hal.Operation, name="executable"):
    """One image with all kernels of the program for one target.

    `exports` is a list of dictionaries: name, bindings, constants, grid (per axis: factor, push-constant ordinals,
    piece), strategy, knobs, rejected, needs where it uses what not every device has, and segments where a tensor takes
    several bindings. `features` are what a device
    must have for all of them, separated by commas. The attribute `hal.image` has the bytes of the code, as a tensor of
    i8.
    """

    sym_name: mlir.StringAttr
    target: mlir.StringAttr
    format: mlir.StringAttr
    features: mlir.StringAttr
    exports: mlir.ArrayAttr


class ArgumentOp(Hal.Operation, name="argument", traits=[Pure]):
    """The buffer of the program's argument `index`."""

    index: mlir.IntegerAttr
    result: Result[BufferType]


class ArgumentDimOp(Hal.Operation, name="argument_dim", traits=[Pure]):
    """The size of one dimension of an argument."""

    index: mlir.IntegerAttr
    dim: mlir.IntegerAttr
    result: Result[mlir.IndexType]


class ParameterOp(Hal.Operation, name="parameter", traits=[Pure]):
    """The buffer of a weight."""

    key: mlir.StringAttr
    result: Result[BufferType]


class StateOp(Hal.Operation, name="state", traits=[Pure]):
    """The buffer of a state variable."""

    key: mlir.StringAttr
    result: Result[BufferType]


class AllocateOp(Hal.Operation, name="allocate"):
    """A new buffer. `kind` is "transient" or "result"."""

    bytes: Operand[mlir.IndexType]
    kind: mlir.StringAttr
    result: Result[BufferType]


class PackOp(Hal.Operation, name="pack", traits=[Pure]):
    """Offsets in an arena, computed at run time; see `stream.pack`."""

    sizes: Sequence[Operand[mlir.IndexType]]
    lifetimes: IntegersAttr
    max_bytes: mlir.IntegerAttr
    results_: Sequence[Result[mlir.IndexType]]


class RecordOp(Hal.Operation, name="record"):
    """Records a command buffer in its region, ended by `hal.end`. With `memo` >= 0 that happens once per context and
    the recording is kept in that global slot: legal only when nothing in the region depends on the call."""

    memo: mlir.IntegerAttr
    slots: mlir.IntegerAttr
    result: Result[CommandBufferType]
    body: Region


class EndOp(Hal.Operation, name="end", traits=[IsTerminatorTrait]):
    """Closes a recording."""


class DispatchOp(Hal.Operation, name="dispatch"):
    """Records a grid of workgroups of an export.

    Binding i is slot `slots[i]` of the submission's table, or, when that is -1, the next of `buffers`; its range is
    `offsets[i]`, `lengths[i]`. The grid follows from the export and the push constants.
    """

    constants: Sequence[Operand[mlir.IndexType]]
    buffers: Sequence[Operand[BufferType]]
    offsets: Sequence[Operand[mlir.IndexType]]
    lengths: Sequence[Operand[mlir.IndexType]]
    callee: mlir.FlatSymbolRefAttr
    slots: IntegersAttr
    access: IntegersAttr

    def verify_invariants(self) -> bool:
        slots = list(self.slots)
        if len(list(self.buffers)) == slots.count(-1) and len(list(self.offsets)) == len(slots):
            return True
        self.location.emit_error("hal.dispatch: bindings, buffers and ranges do not match")
        return False


class CopyOp(Hal.Operation, name="copy"):
    """Records a copy between two bindings of one length, described as in `hal.dispatch`."""

    buffers: Sequence[Operand[BufferType]]
    offsets: Sequence[Operand[mlir.IndexType]]
    lengths: Sequence[Operand[mlir.IndexType]]
    slots: IntegersAttr


class BarrierOp(Hal.Operation, name="barrier"):
    """Records an execution barrier."""


class SubmitOp(Hal.Operation, name="submit"):
    """Runs a command buffer with a table of buffers for its slots, after all that the call has submitted before. The
    host goes on meanwhile; `hal.load` and the end of the call wait."""

    command_buffer: Operand[CommandBufferType]
    table: Sequence[Operand[BufferType]]


class LoopOp(Hal.Operation, name="loop"):
    """Runs a function of the program `trips` times, on rows of buffers and on state that it hands on.

    Buffers: tensors whose rows are read, first states, what all steps see, tensors whose rows are written, then two
    buffers for each state that is not a written row as well, which take turns. `counts` says how many there are of
    each of the first four. `reads` holds (start, step, bytes of a row) for each of the first, `rows` (result of the
    function, start, step, bytes of a row) for each of the fourth, `states` the result that is the next value.
    """

    buffers: Sequence[Operand[BufferType]]
    offsets: Sequence[Operand[mlir.IndexType]]
    lengths: Sequence[Operand[mlir.IndexType]]
    body: mlir.FlatSymbolRefAttr
    trips: mlir.IntegerAttr
    counts: IntegersAttr
    reads: IntegersAttr
    rows: IntegersAttr
    states: IntegersAttr


class BranchOp(Hal.Operation, name="branch"):
    """Runs one function of the program if the condition holds, and else another.

    Buffers: what the functions take, then what they give, of which there are `made`. `dims` are sizes of the former
    that vary, and `places` say which: (argument, dimension) for each.
    """

    condition: Operand[mlir.IntegerType[1]]  # pyright: ignore[reportGeneralTypeIssues]
    dims: Sequence[Operand[mlir.IndexType]]
    buffers: Sequence[Operand[BufferType]]
    offsets: Sequence[Operand[mlir.IndexType]]
    lengths: Sequence[Operand[mlir.IndexType]]
    then: mlir.FlatSymbolRefAttr
    otherwise: mlir.FlatSymbolRefAttr
    made: mlir.IntegerAttr
    places: IntegersAttr


class WhileOp(Hal.Operation, name="while"):
    """Runs a function of the program as long as the condition holds, which is its first result from then on.

    Buffers: first states, what all steps see, a byte for the condition, two buffers for each state, which take turns,
    then one for each state that is needed at the end; `kept` says which these are. `states` is how many there are.
    `dims` are sizes of what the function takes that vary, and `places` say which: (argument, dimension) for each.
    """

    condition: Operand[mlir.IntegerType[1]]  # pyright: ignore[reportGeneralTypeIssues]
    dims: Sequence[Operand[mlir.IndexType]]
    buffers: Sequence[Operand[BufferType]]
    offsets: Sequence[Operand[mlir.IndexType]]
    lengths: Sequence[Operand[mlir.IndexType]]
    body: mlir.FlatSymbolRefAttr
    states: mlir.IntegerAttr
    kept: IntegersAttr
    places: IntegersAttr


class LoadOp(Hal.Operation, name="load"):
    """Reads one integer of a buffer on the host."""

    source: Operand[BufferType]
    offset: Operand[mlir.IndexType]
    element: mlir.StringAttr
    result: Result[mlir.IntegerType[64]]  # pyright: ignore[reportGeneralTypeIssues]


class ResultOp(Hal.Operation, name="result"):
    """Gives the program's result `index`."""

    source: Operand[BufferType]
    dims: Sequence[Operand[mlir.IndexType]]
    index: mlir.IntegerAttr
