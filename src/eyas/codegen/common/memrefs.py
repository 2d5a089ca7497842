"""Memrefs on their way to addresses, on every target."""

from __future__ import annotations

from collections.abc import Sequence

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, builtin, llvm, memref, scf

from eyas.ir.walk import find_ops


def descriptor(
    pointer: mlir.Value, type_: mlir.MemRefType, sizes: Sequence[mlir.Value], strides: Sequence[mlir.Value]
) -> mlir.Value:
    """An address as a memref whose descriptor says `sizes` and `strides` (index values)."""
    i64 = mlir.IntegerType.get_signless(64)
    rank = len(sizes)
    fields = "ptr, ptr, i64" + (f", array<{rank} x i64>, array<{rank} x i64>" if rank else "")
    struct = mlir.Type.parse(f"!llvm.struct<({fields})>")
    value = llvm.PoisonOp(struct).result

    def insert(item: mlir.Value, *position: int) -> None:
        nonlocal value
        value = llvm.InsertValueOp(value, item, mlir.DenseI64ArrayAttr.get(list(position))).result

    insert(pointer, 0)
    insert(pointer, 1)
    insert(llvm.ConstantOp(i64, mlir.IntegerAttr.get(i64, 0)).result, 2)
    for position, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        insert(arith.IndexCastOp(i64, size).result, 3, position)
        insert(arith.IndexCastOp(i64, stride).result, 4, position)
    return builtin.UnrealizedConversionCastOp([type_], [value]).results[0]


def expand_strided_copies(module: mlir.Module) -> None:
    """Makes loops of the copies that upstream would turn into a call of its own runtime library (`memrefCopy`)."""
    for op in [view.operation for view in find_ops(module, "memref.copy")]:
        source, destination = op.operands
        types = [mlir.MemRefType(value.type) for value in (source, destination)]
        if all(kind.layout == mlir.AffineMapAttr.get(mlir.AffineMap.get_identity(kind.rank)) for kind in types):
            continue
        with mlir.InsertionPoint(op), op.location:
            zero, one = (arith.constant(mlir.IndexType.get(), value) for value in (0, 1))
            indices: list[mlir.Value] = []
            insertion = mlir.InsertionPoint(op)
            for dim in range(types[0].rank):
                with insertion:
                    size = memref.dim(source, arith.constant(mlir.IndexType.get(), dim))
                    loop = scf.ForOp(zero, size, one)
                indices.append(loop.induction_variable)
                with mlir.InsertionPoint(loop.body):
                    end = scf.YieldOp([])
                insertion = mlir.InsertionPoint(end)
            with insertion:
                memref.store(memref.load(source, indices), destination, indices)
        op.erase()
