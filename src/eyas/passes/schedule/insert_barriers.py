"""`insert-barriers`: dispatches run together unless one touches what another writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir

from eyas.dialects import flow, stream
from eyas.ir import Pass
from eyas.ir.walk import constant_int, entry_block, functions


@dataclass(frozen=True)
class _Range:
    """Bytes of one base buffer; unknown offsets cover it all."""

    base: mlir.Value
    begin: int
    end: int
    writes: bool

    def conflicts(self, other: _Range) -> bool:
        if not (self.writes or other.writes) or self.base != other.base:
            return False
        return self.begin < other.end and other.begin < self.end


@dataclass(frozen=True)
class InsertBarriers(Pass):
    """Walks the work in order and starts a new wave where a byte range is written that the wave touches, or touched
    that the wave writes. Ranges are those of the packed arena, so memory that is reused separates waves as well.

    With `overlap=false` each piece of work is a wave of its own, for bisecting."""

    name: ClassVar[str] = "insert-barriers"
    overlap: bool = True

    def run(self, module: mlir.Module) -> None:
        for function in functions(module):
            if not flow.is_executable(function):
                _insert(entry_block(function), self.overlap)


def _insert(block: mlir.Block, overlap: bool) -> None:
    wave: list[_Range] = []
    for op in list(block.operations):
        ranges = _ranges(op)
        if ranges is None:
            if op.operation.name in ("stream.load", *stream.HOST_CALLS):
                wave = []  # the host waits
            continue
        if any(not overlap or one.conflicts(other) for one in ranges for other in wave):
            with mlir.InsertionPoint(op), op.operation.location:
                stream.BarrierOp()
            wave = []
        wave += ranges


def _ranges(op: mlir.OpView) -> list[_Range] | None:
    name = op.operation.name
    if name == "stream.dispatch":
        return [
            _range(resource, bool(access & stream.WRITE))
            for resource, access in zip(op.resources, op.access, strict=True)
        ]
    if name == "stream.copy":
        return [_range(op.source, False), _range(op.target, True)]
    return None


def _range(value: mlir.Value, writes: bool) -> _Range:
    begin, end, known = 0, 1 << 62, True
    offset = 0
    owner = value.owner
    while owner.name == "stream.view":
        start, size = constant_int(owner.operands[1]), constant_int(owner.operands[2])
        if start is None or size is None:
            known = False
        else:
            if end == 1 << 62:
                begin, end = 0, size
            offset += start
        value = owner.operands[0]
        owner = value.owner
    if not known:
        return _Range(value, 0, 1 << 62, writes)
    return _Range(value, begin + offset, end + offset, writes)
