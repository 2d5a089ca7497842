"""The entry function of a CPU executable: the dispatch ABI (runtime/include/eyas/executable.h) seen as memrefs and
indices.

func.func @name(%dispatch: !llvm.ptr, %workgroup: !llvm.ptr)
"""

from __future__ import annotations

from collections.abc import Sequence

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, func, llvm, memref, scf

from eyas.codegen.common.memrefs import descriptor

# Byte offsets of the ABI structs.
_DISPATCH_BINDINGS, _DISPATCH_CONSTANTS, _DISPATCH_ERROR_TAG, _DISPATCH_ERROR = 0, 16, 44, 48
_WORKGROUP_ID, _WORKGROUP_SCRATCH = 0, 16

SCRATCH_BYTES = 512 * 1024
"""What every worker has at least (EYAS_MIN_SCRATCH_BYTES of the ABI)."""


class Interface:
    """Builds the entry function and hands out what its body needs. Use inside `with interface.body:`."""

    def __init__(self, name: str, constant_count: int):
        pointer = mlir.Type.parse("!llvm.ptr")
        i32 = mlir.IntegerType.get_signless(32)
        self.function = func.FuncOp(name, ([pointer, pointer], []))
        self.block = self.function.add_entry_block()
        self.dispatch, self.workgroup = self.block.arguments
        self._constants: dict[tuple[str, object], mlir.Value] = {}
        self._status: mlir.Value | None = None
        with mlir.InsertionPoint(self.block):
            # Constants and stack memory that bodies ask for later are inserted before this (dead) op, so that they
            # dominate them.
            self.top = mlir.InsertionPoint(arith.ConstantOp(i32, mlir.IntegerAttr.get(i32, 0)))
            self.ids = [self._load_id(axis) for axis in range(3)]
            self.constants = [self._load_constant(ordinal) for ordinal in range(constant_count)]
            # Scalars that depend on push constants are inserted before this (dead) op.
            self.prologue = mlir.InsertionPoint(arith.ConstantOp(i32, mlir.IntegerAttr.get(i32, 0)))
        self.body = mlir.InsertionPoint(self.block)

    @property
    def status(self) -> mlir.Value:
        """Where asserts note an error code."""
        if self._status is None:
            with self.top, mlir.Location.unknown():
                self._status = new_status()
        return self._status

    def finish(self) -> None:
        """Reports the error that asserts may have noted, and returns."""
        with self.body:
            if self._status is not None:
                report(self.dispatch, self._status)
            func.ReturnOp([])

    def index(self, value: int) -> mlir.Value:
        """An index constant at the top of the function."""
        return self.constant(mlir.IndexType.get(), value)

    def constant(self, type_: mlir.Type, value: object) -> mlir.Value:
        """A scalar constant at the top of the function, made once."""
        key = (str(type_), value)
        if key not in self._constants:
            with self.top, mlir.Location.unknown():
                if isinstance(type_, mlir.FloatType):
                    attribute = mlir.FloatAttr.get(type_, value)
                else:
                    attribute = mlir.IntegerAttr.get(type_, value)
                self._constants[key] = arith.ConstantOp(type_, attribute).result
        return self._constants[key]

    def binding(self, ordinal: int, type_: mlir.MemRefType, sizes: Sequence[mlir.Value], strides: Sequence[mlir.Value]):
        """Binding `ordinal` as a memref whose descriptor says `sizes` and `strides` (index values)."""
        pointer = self._load_pointer(self._load_pointer(self.dispatch, _DISPATCH_BINDINGS), 8 * ordinal)
        return descriptor(pointer, type_, sizes, strides)

    def scratch(self, type_: mlir.MemRefType, size: mlir.Value) -> mlir.Value:
        """The worker's own memory, of SCRATCH_BYTES, as a flat memref."""
        return descriptor(self._load_pointer(self.workgroup, _WORKGROUP_SCRATCH), type_, [size], [self.index(1)])

    def _load_pointer(self, base: mlir.Value, offset: int) -> mlir.Value:
        return llvm.LoadOp(mlir.Type.parse("!llvm.ptr"), _at(base, offset)).result

    def _load_id(self, axis: int) -> mlir.Value:
        i32 = mlir.IntegerType.get_signless(32)
        loaded = llvm.LoadOp(i32, _at(self.workgroup, _WORKGROUP_ID + 4 * axis)).result
        return arith.IndexCastUIOp(mlir.IndexType.get(), loaded).result

    def _load_constant(self, ordinal: int) -> mlir.Value:
        i64 = mlir.IntegerType.get_signless(64)
        base = self._load_pointer(self.dispatch, _DISPATCH_CONSTANTS)
        return arith.IndexCastOp(mlir.IndexType.get(), llvm.LoadOp(i64, _at(base, 8 * ordinal)).result).result


def new_status() -> mlir.Value:
    """A word on the stack for the error code of a workgroup: none yet."""
    i32 = mlir.IntegerType.get_signless(32)
    status = memref.AllocaOp(mlir.MemRefType.get([1], i32), [], []).result
    memref.StoreOp(arith.constant(i32, 0), status, [arith.constant(mlir.IndexType.get(), 0)])
    return status


def report(dispatch: mlir.Value, status: mlir.Value) -> None:
    """Sets the submission's error word to the code in `status`, unless that is none or somebody was first."""
    i32 = mlir.IntegerType.get_signless(32)
    code = memref.LoadOp(status, [arith.constant(mlir.IndexType.get(), 0)]).result
    zero = arith.constant(i32, 0)
    branch = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ne, code, zero).result)
    with mlir.InsertionPoint(branch.then_block):
        tag = llvm.LoadOp(i32, _at(dispatch, _DISPATCH_ERROR_TAG)).result
        word = llvm.LoadOp(mlir.Type.parse("!llvm.ptr"), _at(dispatch, _DISPATCH_ERROR)).result
        relaxed = mlir.Attribute.parse("2 : i64")  # LLVM's "monotonic"
        llvm.AtomicCmpXchgOp(word, zero, arith.OrIOp(tag, code).result, relaxed, relaxed)
        scf.YieldOp([])


def _at(base: mlir.Value, offset: int) -> mlir.Value:
    if offset == 0:
        return base
    return llvm.GEPOp(
        mlir.Type.parse("!llvm.ptr"),
        base,
        [],
        mlir.DenseI32ArrayAttr.get([offset]),
        mlir.TypeAttr.get(mlir.IntegerType.get_signless(8)),
        mlir.Attribute.parse("0 : i32"),
    ).result
