"""The entry function of a GPU kernel: bindings as flat memrefs, push constants as indices, who and where a thread is.

    gpu.func @name(%0: memref<?xf32> {eyas.role = "binding", eyas.binding = 0}, ..., %n: i32 {eyas.role = "constant"})

Arguments are added when they are asked for. A binding may be seen with several element types, as scalars and as
vectors: these are arguments of their own that name the same binding. What they become is the last step's to say.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, gpu, memref, scf

from eyas.codegen.common.sizes import Size

ROLE, BINDING = "eyas.role", "eyas.binding"
"""Attributes of arguments: what one is, and which binding it shows."""
BINDINGS, UNALIGNED = "eyas.bindings", "eyas.unaligned"
"""Attributes of the function: how many bindings its dispatches have, and which of them may begin anywhere, so that they
are not read in vectors."""

MATRIX_ELEMENT = "eyas.matrix_element"
"""On the function: the type of what matrix instructions multiply. The GPU dialect has no fragments of bf16; they are
f16 there, and become what they are in the last step."""

SCRATCH = "eyas.scratch"
"""On the function: terms of the bytes of scratch memory, each a factor and the ordinals of push constants."""


class Interface:
    """Builds the entry function and hands out what its body needs. Use inside `with interface.body:`."""

    def __init__(
        self, name: str, bindings: int, constant_count: int, threads: int, unaligned: frozenset[int] = frozenset()
    ):
        i32, i64 = mlir.IntegerType.get_signless(32), mlir.IntegerType.get_signless(64)
        self.threads, self.unaligned = threads, unaligned
        with mlir.InsertionPoint(_kernels()):
            type_ = mlir.FunctionType.get([], [])
            self.function = gpu.GPUFuncOp(type_, sym_name=name, kernel=True, known_block_size=[threads, 1, 1])
        self.function.attributes[BINDINGS] = mlir.IntegerAttr.get(i64, bindings)
        self.block = self.function.add_entry_block()
        self._arguments: list[dict[str, mlir.Attribute]] = []
        self._views: dict[tuple[int, str], mlir.Value] = {}
        self._constants: dict[tuple[str, object], mlir.Value] = {}
        self._status: mlir.Value | None = None
        words = [self._argument(i32, "constant") for _ in range(constant_count)]
        with mlir.InsertionPoint(self.block):
            # Constants and memory that bodies ask for later are inserted before this (dead) op, so that they dominate.
            self.top = mlir.InsertionPoint(arith.ConstantOp(i32, mlir.IntegerAttr.get(i32, 0)))
            self.constants = [arith.IndexCastOp(mlir.IndexType.get(), word).result for word in words]
            self.thread = gpu.thread_id(gpu.Dimension.x)
            self.ids = [gpu.block_id(axis) for axis in (gpu.Dimension.x, gpu.Dimension.y, gpu.Dimension.z)]
            # Scalars that depend on push constants are inserted before this (dead) op.
            self.prologue = mlir.InsertionPoint(arith.ConstantOp(i32, mlir.IntegerAttr.get(i32, 0)))
        self.body = mlir.InsertionPoint(self.block)

    @property
    def status(self) -> mlir.Value:
        """Where asserts of this thread note an error code."""
        if self._status is None:
            with self.top, mlir.Location.unknown():
                i32 = mlir.IntegerType.get_signless(32)
                self._status = memref.AllocaOp(mlir.MemRefType.get([1], i32), [], []).result
                memref.StoreOp(self.constant(i32, 0), self._status, [self.index(0)])
        return self._status

    def finish(self) -> None:
        """Reports the error that asserts may have noted, and returns."""
        with self.body:
            if self._status is not None:
                self._report(self._status)
            gpu.ReturnOp([])
        types = [argument.type for argument in self.block.arguments]
        self.function.attributes["function_type"] = mlir.TypeAttr.get(mlir.FunctionType.get(types, []))
        attributes = [mlir.DictAttr.get(one) for one in self._arguments]
        self.function.attributes["arg_attrs"] = mlir.ArrayAttr.get(attributes)
        if self.unaligned:
            self.function.attributes[UNALIGNED] = mlir.DenseI64ArrayAttr.get(sorted(self.unaligned))

    def index(self, value: int) -> mlir.Value:
        """An index constant at the top of the function."""
        return self.constant(mlir.IndexType.get(), value)

    def constant(self, type_: mlir.Type, value: object) -> mlir.Value:
        """A scalar constant at the top of the function, made once."""
        key = (str(type_), value)
        if key not in self._constants:
            is_float = isinstance(type_, mlir.FloatType)
            with self.top, mlir.Location.unknown():
                attribute = mlir.FloatAttr.get(type_, value) if is_float else mlir.IntegerAttr.get(type_, value)
                self._constants[key] = arith.ConstantOp(type_, attribute).result
        return self._constants[key]

    def view(self, ordinal: int, element: mlir.Type) -> mlir.Value:
        """A binding as a flat memref of an element type: a scalar, or a vector of some."""
        key = (ordinal, str(element))
        if key not in self._views:
            number = mlir.IntegerAttr.get(mlir.IntegerType.get_signless(32), ordinal)
            self._views[key] = self._argument(_flat(element), "binding", {BINDING: number})
        return self._views[key]

    def scratch(self, element: mlir.Type) -> mlir.Value:
        """Memory that the dispatch is given, as a flat memref. How much it is, is for `SCRATCH` to say."""
        key = (-1, str(element))
        if key not in self._views:
            self._views[key] = self._argument(_flat(element), "scratch")
        return self._views[key]

    def need_scratch(self, terms: Sequence[Size]) -> None:
        """Notes how many bytes of scratch memory the kernel needs: a sum of products of push constants."""
        arrays = [mlir.DenseI64ArrayAttr.get([term.factor, *term.symbols]) for term in terms]
        self.function.attributes[SCRATCH] = mlir.ArrayAttr.get(arrays)

    def shared(self, element: mlir.Type, count: int) -> mlir.Value:
        """Memory that the threads of a workgroup share."""
        space = mlir.Attribute.parse("#gpu.address_space<workgroup>")
        with self.top, mlir.Location.unknown():
            return memref.AllocOp(mlir.MemRefType.get([count], element, memory_space=space), [], []).result

    def private(self, element: mlir.Type, count: int) -> mlir.Value:
        """Memory of one thread."""
        with self.top, mlir.Location.unknown():
            return memref.AllocaOp(mlir.MemRefType.get([count], element), [], []).result

    def _argument(self, type_: mlir.Type, role: str, more: dict[str, mlir.Attribute] | None = None) -> mlir.Value:
        self._arguments.append({ROLE: mlir.StringAttr.get(role), **(more or {})})
        return self.block.add_argument(type_, mlir.Location.unknown())

    def _report(self, status: mlir.Value) -> None:
        """Sets the submission's error word to the code in `status`, unless that is none or somebody was first."""
        i32 = mlir.IntegerType.get_signless(32)
        word, tag = self._argument(_flat(i32), "error"), self._argument(i32, "error_tag")
        code, zero = memref.LoadOp(status, [self.index(0)]).result, self.constant(i32, 0)
        failed = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ne, code, zero).result)
        with mlir.InsertionPoint(failed.then_block):
            seen = memref.LoadOp(word, [self.index(0)]).result
            first = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.eq, seen, zero).result)
            with mlir.InsertionPoint(first.then_block):
                memref.StoreOp(arith.OrIOp(tag, code).result, word, [self.index(0)])
                scf.YieldOp([])
            scf.YieldOp([])


def _flat(element: mlir.Type) -> mlir.MemRefType:
    return mlir.MemRefType.get([mlir.ShapedType.get_dynamic_size()], element)


def _kernels() -> mlir.Block:
    """The block of a new module of kernels at the insertion point."""
    region = gpu.GPUModuleOp("kernels").bodyRegion
    return region.blocks[0] if len(region.blocks) else region.blocks.append()
