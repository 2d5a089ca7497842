"""Plain loops through upstream bufferisation: the strategy that any op of the input contract has.

One workgroup, no vectors of ours (LLVM finds some). Slow is allowed here; failing is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, bufferization, memref, scf, tensor

from eyas.codegen.common.kernel import Kernel, constant_int
from eyas.codegen.common.places import DIM_ARGS
from eyas.codegen.llvm_cpu.interface import Interface
from eyas.codegen.llvm_cpu.schedule import GridAxis
from eyas.codegen.llvm_cpu.strategies.base import Strategy
from eyas.dialects import flow
from eyas.ir import run_upstream
from eyas.ir.structured import index_constant
from eyas.ir.walk import find_ops, remap_operands
from eyas.targets import Target

_BUFFERIZE = (
    "eliminate-empty-tensors,empty-tensor-to-alloc-tensor,"
    # tm_tensor (scan, scatter, sort) does not know one-shot bufferisation; its own pass takes what is left.
    "one-shot-bufferize{allow-unknown-ops allow-return-allocs-from-loops},func.func(tm-tensor-bufferize),canonicalize,"
    "func.func(tm-tensor-to-loops),convert-linalg-to-loops,"
    "buffer-deallocation-pipeline,convert-bufferization-to-memref,canonicalize,cse"
)


@dataclass(frozen=True)
class Loops(Strategy):
    name: ClassVar[str] = "loops"
    takes_matrices: ClassVar[bool] = True

    @classmethod
    def choose(cls, kernel: Kernel | None, target: Target) -> Loops:
        return cls()

    @property
    def grid(self) -> tuple[GridAxis, ...]:
        return ()

    def lower(self, function: mlir.OpView, module: mlir.Module) -> None:
        block = function.regions[0].blocks[0]
        name = mlir.StringAttr(function.attributes["sym_name"]).value
        scalars = [argument for argument in block.arguments if not isinstance(argument.type, mlir.RankedTensorType)]
        with mlir.InsertionPoint(module.body), function.operation.location:
            interface = Interface(name, len(scalars))
            with interface.body:
                _inline(function, interface)
            interface.finish()
        _lower_asserts_after(module)


def _inline(function: mlir.OpView, interface: Interface) -> None:
    """Clones the dispatch function's body between tensors read from, and written to, the bindings.

    A result that shares its buffer with an argument is written there; bufferisation then leaves alone what is the same.
    """
    block = function.regions[0].blocks[0]
    dims = iter(list(mlir.DenseI64ArrayAttr(function.attributes[DIM_ARGS])) if DIM_ARGS in function.attributes else [])
    in_place: dict[int, int] = {}  # result -> tensor argument
    if flow.IN_PLACE in function.attributes:
        pairs = list(mlir.DenseI64ArrayAttr(function.attributes[flow.IN_PLACE]))
        in_place = dict(zip(pairs[1::2], pairs[::2], strict=True))
    values: dict[mlir.Value, mlir.Value] = {}
    buffers: list[mlir.Value] = []
    ordinal, constant = 0, 0

    def bind(type_: mlir.RankedTensorType) -> mlir.Value:
        nonlocal ordinal
        shape = list(type_.shape) if type_.rank else []
        dynamic = mlir.ShapedType.get_dynamic_size()
        sizes = [interface.constants[next(dims)] if d == dynamic else interface.index(d) for d in shape]
        strides, running = [], interface.index(1)
        for size in reversed(sizes):
            strides.append(running)
            running = arith.MulIOp(running, size).result
        buffer = interface.binding(ordinal, mlir.MemRefType.get(shape, type_.element_type), sizes, strides[::-1])
        ordinal += 1
        return buffer

    for argument in block.arguments:
        if isinstance(argument.type, mlir.RankedTensorType):
            buffer = bind(argument.type)
            writable = len(buffers) in in_place.values()
            values[argument] = bufferization.ToTensorOp(
                argument.type, buffer, restrict=True, writable=writable or None
            ).result
            buffers.append(buffer)
        else:
            values[argument] = interface.constants[constant]
            constant += 1
    for op in block.operations:
        if op.operation.name == "func.return":
            for position, operand in enumerate(op.operands):
                destination = bind(operand.type)
                if position in in_place:
                    destination = buffers[in_place[position]]
                bufferization.MaterializeInDestinationOp(
                    None, values[operand], destination, restrict=True, writable=True
                )
            return
        clone = op.operation.clone().operation
        remap_operands(clone, values)
        _clamp_extracts(clone)
        values.update(zip(op.results, clone.results, strict=True))


def _clamp_extracts(op: mlir.Operation) -> None:
    """Reads at computed positions stay inside their tensor, as in the other strategies."""
    for extract in find_ops(op, "tensor.extract"):
        source = extract.operands[0]
        with mlir.InsertionPoint(extract), extract.operation.location:
            for position, index in enumerate(list(extract.operands)[1:]):
                if constant_int(index) is not None:
                    continue
                zero, one = index_constant(0), index_constant(1)
                size = tensor.DimOp(source, index_constant(position)).result
                last = arith.MaxSIOp(arith.SubIOp(size, one).result, zero).result
                clamped = arith.MaxSIOp(arith.MinSIOp(index, last).result, zero).result
                extract.operation.operands[1 + position] = clamped


def _lower_asserts_after(module: mlir.Module) -> None:
    """Bufferises, then turns each assert into a store to the status that the function returns."""
    run_upstream(module, _BUFFERIZE)
    asserts: list[mlir.Operation] = []

    def visit(op: mlir.Operation) -> mlir.WalkResult:
        if op.name == "cf.assert":
            asserts.append(op)
        return mlir.WalkResult.ADVANCE

    module.operation.walk(visit)
    i1, i32 = mlir.IntegerType.get_signless(1), mlir.IntegerType.get_signless(32)
    for op in asserts:
        function = op.parent
        while function.operation.name != "func.func":
            function = function.operation.parent
        status = next(o.result for o in function.regions[0].blocks[0].operations if o.operation.name == "memref.alloca")
        with mlir.InsertionPoint(op), op.location:
            failed = arith.XOrIOp(op.operands[0], arith.ConstantOp(i1, mlir.BoolAttr.get(True)).result).result
            branch = scf.IfOp(failed)
            with mlir.InsertionPoint(branch.then_block):
                one = arith.ConstantOp(i32, mlir.IntegerAttr.get(i32, 1)).result
                zero = arith.ConstantOp(mlir.IndexType.get(), mlir.IntegerAttr.get(mlir.IndexType.get(), 0)).result
                memref.StoreOp(one, status, [zero])
                scf.YieldOp([])
        op.erase()
