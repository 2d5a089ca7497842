"""Plain kernels: any dispatch function, through upstream bufferisation, in one workgroup."""

from __future__ import annotations

from collections.abc import Sequence

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, func, memref, scf

from eyas.codegen.common.bufferize import bufferize_for_many, inline_body
from eyas.codegen.common.emission.values import BAD_DATA
from eyas.codegen.gpu import flat_control, flat_tables, flat_views
from eyas.codegen.gpu.flatten import Flattener, Rule
from eyas.codegen.gpu.interface import Interface
from eyas.ir.walk import constant_int, find_ops


def emit_plain_kernel(function: mlir.OpView, interface: Interface) -> None:
    """Writes the body of the kernel for a dispatch function on tensors."""
    staged = _Staged(function)
    flat = Flattener(interface, staged.constants, RULES)
    with interface.body:
        for value, ordinal, dims in staged.bindings:
            flat.bind(value, ordinal, dims)
        flat.block(staged.block)
    interface.need_scratch(flat.spans.terms)


class _Staged:
    """The dispatch function on memrefs: push constants, then bindings, are its arguments. An `Interface` of
    `bufferize`."""

    def __init__(self, function: mlir.OpView):
        scalars = [one for one in function.regions[0].blocks[0].arguments if not _is_tensor(one)]
        self._module = mlir.Module.create(function.operation.location)
        with mlir.InsertionPoint(self._module.body), function.operation.location:
            made = func.FuncOp("staged", ([], []))
            self.block = made.add_entry_block()
            self.constants: list[mlir.Value] = [
                self.block.add_argument(mlir.IndexType.get(), one.location) for one in scalars
            ]
            self._dims: list[list[int | None]] = []
            with mlir.InsertionPoint(self.block):
                inline_body(function, self)
                func.ReturnOp([])
            types = [argument.type for argument in self.block.arguments]
            made.attributes["function_type"] = mlir.TypeAttr.get(mlir.FunctionType.get(types, []))
        bufferize_for_many(self._module)
        (made,) = find_ops(self._module, "func.func")  # tables of constants are beside it by now
        self.block = made.regions[0].blocks[0]
        self.constants = list(self.block.arguments)[: len(scalars)]

    @property
    def bindings(self) -> list[tuple[mlir.Value, int, list[int | None]]]:
        """Each memref, which binding it is, and which push constants its dynamic sizes are."""
        memories = list(self.block.arguments)[len(self.constants) :]
        return [(value, ordinal, self._dims[ordinal]) for ordinal, value in enumerate(memories)]

    def index(self, value: int) -> mlir.Value:
        return arith.constant(mlir.IndexType.get(), value)

    def binding(
        self, ordinal: int, type_: mlir.MemRefType, sizes: Sequence[mlir.Value], strides: Sequence[mlir.Value]
    ) -> mlir.Value:
        del strides
        assert ordinal == len(self._dims)
        self._dims.append([None if constant_int(one) is not None else self.constants.index(one) for one in sizes])
        return self.block.add_argument(type_, mlir.Location.current)


def _is_tensor(value: mlir.Value) -> bool:
    return isinstance(value.type, mlir.RankedTensorType)


def _ignore(flat: Flattener, op: mlir.Operation) -> None:
    """Memory is given back when the dispatch ends."""


def _assert(flat: Flattener, op: mlir.Operation) -> None:
    i1, i32 = mlir.IntegerType.get_signless(1), mlir.IntegerType.get_signless(32)
    status = flat.at.status
    branch = scf.IfOp(arith.xori(flat.value(op.operands[0]), arith.constant(i1, 1)))
    with mlir.InsertionPoint(branch.then_block):
        memref.store(arith.constant(i32, BAD_DATA), status, [flat.at.index(0)])
        scf.YieldOp([])


RULES: dict[str, Rule] = {
    "memref.load": Flattener.load,
    "memref.store": Flattener.store,
    "memref.copy": Flattener.copy,
    "memref.alloc": Flattener.allocate,
    "memref.alloca": Flattener.allocate,
    "memref.dealloc": _ignore,
    "memref.get_global": flat_tables.get_global,
    "memref.cast": flat_views.same,
    "memref.dim": flat_views.dim,
    "memref.subview": flat_views.subview,
    "memref.reinterpret_cast": flat_views.reinterpret_cast,
    "memref.collapse_shape": flat_views.collapse_shape,
    "memref.expand_shape": flat_views.expand_shape,
    "memref.transpose": flat_views.transpose,
    "scf.for": flat_control.for_,
    "scf.while": flat_control.while_,
    "scf.if": flat_control.if_,
    "scf.parallel": flat_control.parallel,
    "cf.assert": _assert,
}
