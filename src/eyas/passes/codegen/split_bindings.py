"""`split-bindings`: dispatches bind tensors that are larger than a binding of the target shows as several segments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

from eyas.dialects import hal
from eyas.ir.values import index_constant
from eyas.ir.walk import constant_int, find_ops
from eyas.passes.targeted import TargetedPass

_REST = -1
"""The length of a binding that goes to the end of its buffer."""


@dataclass(frozen=True)
class SplitBindings(TargetedPass):
    """Many devices show a kernel 128 MiB of a buffer through one binding; an embedding may be larger.

    Kernels are compiled for bindings that follow each other without a gap (`codegen/gpu/segments.py`), and their
    exports say how many there are for each tensor. The last one goes as far as the tensor does.

        hal.dispatch(%w at %c0, 150 MiB)   =>   hal.dispatch(%w at %c0, 128 MiB - 16; %w at 128 MiB - 16, the rest)
    """

    name: ClassVar[str] = "split-bindings"

    def run(self, module: mlir.Module) -> None:
        segments = {
            mlir.StringAttr(one["name"]).value: list(mlir.DenseI64ArrayAttr(one[hal.SEGMENTS]))
            for executable in find_ops(module, "hal.executable")
            for one in map(mlir.DictAttr, executable.exports)
            if hal.SEGMENTS in one
        }
        for dispatch in find_ops(module, "hal.dispatch") if segments else ():
            if wanted := segments.get(dispatch.callee.value):
                _split(dispatch, wanted, self.target.limits.segment_bytes)


def _split(dispatch: mlir.OpView, segments: list[int], segment_bytes: int) -> None:
    direct = iter(dispatch.buffers)
    buffers, offsets, lengths, slots, access = [], [], [], [], []
    bindings = zip(dispatch.offsets, dispatch.lengths, dispatch.slots, dispatch.access, segments, strict=True)
    # Places are computed before the recording, in which there is nothing but commands.
    with mlir.InsertionPoint(dispatch.operation.parent), dispatch.operation.location:
        for offset, length, slot, kind, count in bindings:
            buffers += [next(direct)] * count if slot < 0 else []
            slots += [slot] * count
            access += [kind] * count
            before = [segment * segment_bytes for segment in range(count)]
            offsets += [_plus(offset, bytes_) for bytes_ in before]
            lengths += [index_constant(segment_bytes) for _ in before[1:]]
            lengths.append(length if constant_int(length) == _REST else _plus(length, -before[-1]))
    with mlir.InsertionPoint(dispatch), dispatch.operation.location:
        hal.DispatchOp(
            list(dispatch.constants),
            buffers,
            offsets,
            lengths,
            dispatch.callee,
            mlir.DenseI64ArrayAttr.get(slots),
            mlir.DenseI64ArrayAttr.get(access),
        )
    dispatch.operation.erase()


def _plus(value: mlir.Value, bytes_: int) -> mlir.Value:
    """Known places stay known: recordings are kept where all of them are."""
    if bytes_ == 0:
        return value
    known = constant_int(value)
    return index_constant(known + bytes_) if known is not None else arith.addi(value, index_constant(bytes_))
