"""Bytes and halves of words in memory that has words only: for targets without buffers of 8 or 16 bits."""

from __future__ import annotations

from collections.abc import Collection

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, memref, vector

from eyas.codegen.common.passes.lanes import element_type
from eyas.errors import CompileError
from eyas.ir.locations import describe_location
from eyas.ir.walk import find_ops


def keep_in_words(module: mlir.Module, widths: Collection[int]) -> None:
    """Integers of `widths` bits lie in memory of i32: a load takes its part of a word; a store clears and sets it, so
    that threads which write its other parts at the same time do not lose theirs.

        memref.store %v, %m[%i] : memref<?xi8>
          ->
        %s = (%i & 3) * 8 ; memref.atomic_rmw andi ~(255 << %s), %m[%i >> 2] ; memref.atomic_rmw ori %v << %s, ...
    """
    memories = [op.results[0] for op in find_ops(module, "memref.alloc", "memref.alloca")]
    for kernel in find_ops(module, "gpu.func"):
        memories += [one for one in kernel.regions[0].blocks[0].arguments if isinstance(one.type, mlir.MemRefType)]
    for memory in memories:
        element = mlir.MemRefType(memory.type).element_type
        if isinstance(element, mlir.IntegerType) and element.width in widths:
            _keep(memory, element.width)
    for kernel in find_ops(module, "gpu.func"):
        types = [argument.type for argument in kernel.regions[0].blocks[0].arguments]
        kernel.attributes["function_type"] = mlir.TypeAttr.get(mlir.FunctionType.get(types, []))


def split_vectors(module: mlir.Module, widths: Collection[int]) -> None:
    """Vectors of integers of `widths` bits in memory become scalars, which are loaded and stored one by one."""
    for kernel in find_ops(module, "gpu.func"):
        block = kernel.regions[0].blocks[0]
        owned = [op.results[0] for op in find_ops(kernel, "memref.alloc", "memref.alloca")]
        for memory in [*(one for one in block.arguments if isinstance(one.type, mlir.MemRefType)), *owned]:
            type_ = mlir.MemRefType(memory.type)
            element = element_type(type_.element_type)
            if isinstance(type_.element_type, mlir.VectorType) and getattr(element, "width", 0) in widths:
                _split(memory, type_)
        types = [argument.type for argument in block.arguments]
        kernel.attributes["function_type"] = mlir.TypeAttr.get(mlir.FunctionType.get(types, []))


def _keep(memory: mlir.Value, width: int) -> None:
    type_ = mlir.MemRefType(memory.type)
    owner = memory.owner
    private = not isinstance(owner, mlir.Block) and owner.name == "memref.alloca"
    parts, i32 = 32 // width, mlir.IntegerType.get_signless(32)
    dynamic = mlir.ShapedType.get_dynamic_size()
    shape = [size if size == dynamic else -(-size // parts) for size in type_.shape]
    memory.set_type(mlir.MemRefType.get(shape, i32, memory_space=type_.memory_space))
    for use in list(memory.uses):
        op = use.owner.operation
        with mlir.InsertionPoint(op), op.location:
            index = op.operands[len(op.operands) - 1]
            word = arith.divui(index, _index(parts))
            shift = arith.index_cast(i32, arith.muli(arith.remui(index, _index(parts)), _index(width)))
            if op.name == "memref.load":
                part = arith.trunci(op.results[0].type, arith.shrui(memref.load(memory, [word]), shift))
                op.results[0].replace_all_uses_with(part)
            elif op.name == "memref.store":
                _store(memory, word, shift, op.operands[0], private)
            else:
                where = describe_location(op.location)
                raise CompileError(f"{op.name} at {where}: the target has no memory of {width} bits for it")
        op.erase()


def _store(memory: mlir.Value, word: mlir.Value, shift: mlir.Value, value: mlir.Value, private: bool) -> None:
    i32 = mlir.IntegerType.get_signless(32)
    ones = (1 << mlir.IntegerType(value.type).width) - 1
    rest = arith.xori(arith.shli(arith.constant(i32, ones), shift), arith.constant(i32, -1))
    bits = arith.shli(arith.extui(i32, value), shift)
    if private:
        kept = arith.andi(memref.load(memory, [word]), rest)
        memref.store(arith.ori(kept, bits), memory, [word])
        return
    memref.atomic_rmw(arith.AtomicRMWKind.andi, rest, memory, [word])
    memref.atomic_rmw(arith.AtomicRMWKind.ori, bits, memory, [word])


def _split(memory: mlir.Value, type_: mlir.MemRefType) -> None:
    kind = mlir.VectorType(type_.element_type)
    lanes = kind.shape[0]
    dynamic = mlir.ShapedType.get_dynamic_size()
    shape = [size if size == dynamic else size * lanes for size in type_.shape]
    memory.set_type(mlir.MemRefType.get(shape, kind.element_type, memory_space=type_.memory_space))
    for use in list(memory.uses):
        op = use.owner.operation
        with mlir.InsertionPoint(op), op.location:
            first = arith.muli(op.operands[len(op.operands) - 1], _index(lanes))
            places = [arith.addi(first, _index(lane)) for lane in range(lanes)]
            if op.name == "memref.load":
                loaded = [memref.load(memory, [place]) for place in places]
                op.results[0].replace_all_uses_with(vector.from_elements(kind, loaded))
            else:
                for lane, place in enumerate(places):
                    memref.store(vector.extract(op.operands[0], [], [lane]), memory, [place])
        op.erase()


def _index(value: int) -> mlir.Value:
    return arith.constant(mlir.IndexType.get(), value)
