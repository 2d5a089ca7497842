"""Loads and stores of vectors on the storages of a kernel: bindings, the stack, the worker's scratch memory."""

from __future__ import annotations

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, memref, vector

from eyas.codegen.common.emission import values
from eyas.codegen.common.emission.values import stored_type
from eyas.codegen.common.kernel import Kernel, Storage
from eyas.codegen.common.sizes import Size, product
from eyas.codegen.llvm_cpu.interface import Interface


class Memory(values.Memory):
    def __init__(self, kernel: Kernel, interface: Interface):
        super().__init__(kernel, interface)
        self.at: Interface = interface
        self.buffers: dict[int, mlir.Value] = {}
        self.zero_lines: dict[tuple[str, int], mlir.Value] = {}
        for storage in kernel.storages:
            self._buffer(storage)

    # Storages

    def _buffer(self, storage: Storage) -> mlir.Value:
        if id(storage) not in self.buffers:
            element = stored_type(storage.element)
            if storage.binding is not None:
                count = product(storage.shape)
                type_ = mlir.MemRefType.get([mlir.ShapedType.get_dynamic_size()], element)
                value = self.at.binding(storage.binding, type_, [self.size(count)], [self.at.index(1)])
            elif storage.in_scratch:
                type_ = mlir.MemRefType.get([mlir.ShapedType.get_dynamic_size()], element)
                with self.at.prologue:
                    value = self.at.scratch(type_, self.size(product(storage.shape)))
            else:
                count = product(storage.shape).static
                assert count is not None, "dispatch formation gives dynamic intermediates a binding"
                with self.at.top:
                    alignment = mlir.IntegerAttr.get(mlir.IntegerType.get_signless(64), 64)
                    type_ = mlir.MemRefType.get([max(count, 1)], element)
                    value = memref.AllocaOp(type_, [], [], alignment=alignment).result
            self.buffers[id(storage)] = value
        return self.buffers[id(storage)]

    def load(self, storage: Storage, address: mlir.Value, width: int, stride: Size, mask: mlir.Value | None):
        """`width` elements from `address` on, `stride` apart; lanes that are off give zero."""
        return self._load(self._buffer(storage), storage, address, width, stride, mask)

    def _load(self, buffer, storage: Storage, address, width: int, stride: Size, mask: mlir.Value | None) -> mlir.Value:
        element = stored_type(storage.element)
        if width == 1:
            value = memref.LoadOp(buffer, [address]).result
        elif stride == Size(1):
            type_ = mlir.VectorType.get([width], element)
            if mask is None:
                value = vector.LoadOp(type_, buffer, [address]).result
            else:
                value = vector.MaskedLoadOp(type_, buffer, [address], mask, self.zeros(element, width)).result
        else:
            lanes = self.multiply_sizes(self.iota(self.at.index(0), width), stride)
            value = self.gather(buffer, element, address, lanes, width, mask)
        return self._from_memory(value, storage.element)

    def load_guarded(
        self,
        storage: Storage,
        address: mlir.Value,
        width: int,
        stride: Size,
        mask: mlir.Value | None,
        inside: mlir.Value,
        fallback: mlir.Value,
    ) -> mlir.Value:
        """Loads where `inside` holds and takes `fallback` elsewhere, without touching memory outside; one condition for
        all lanes is for contiguous ones."""
        if width == 1:
            safe = arith.SelectOp(inside, address, self.at.index(0)).result
            value = self.load(storage, safe, 1, stride, None)
            return arith.SelectOp(inside, value, fallback).result
        if not isinstance(inside.type, mlir.VectorType):
            value = self.load_or_zeros(storage, address, width, mask, inside)
            return arith.SelectOp(inside, value, self.as_width(fallback, storage.element, width)).result
        on = inside if mask is None else arith.AndIOp(inside, mask).result
        value = self.load(storage, address, width, stride, on)
        return arith.SelectOp(inside, value, self.as_width(fallback, storage.element, width)).result

    def load_or_zeros(self, storage: Storage, address, width: int, mask: mlir.Value | None, inside: mlir.Value):
        """Contiguous lanes when `inside` (one condition) holds, else zeros, which are read from memory as well."""
        buffer = arith.SelectOp(inside, self._buffer(storage), self._zero_line(storage.element, width)).result
        address = arith.SelectOp(inside, address, self.at.index(0)).result
        return self._load(buffer, storage, address, width, Size(1), mask)

    def prefetch(self, storage: Storage, address: mlir.Value) -> None:
        """Asks for the line with an element to be brought into the second-level cache; any address will do."""
        memref.PrefetchOp(self._buffer(storage), [address], False, 2, True)

    def _zero_line(self, element: mlir.Type, width: int) -> mlir.Value:
        key = (str(element), width)
        if key not in self.zero_lines:
            with self.at.top:
                stored = stored_type(element)
                alignment = mlir.IntegerAttr.get(mlir.IntegerType.get_signless(64), 64)
                line = memref.AllocaOp(mlir.MemRefType.get([width], stored), [], [], alignment=alignment).result
                vector.StoreOp(self.zeros(stored, width), line, [self.at.index(0)])
                type_ = mlir.MemRefType.get([mlir.ShapedType.get_dynamic_size()], stored)
                self.zero_lines[key] = memref.CastOp(type_, line).result
        return self.zero_lines[key]

    def gather(self, buffer, element, address, lanes, width: int, mask: mlir.Value | None) -> mlir.Value:
        type_ = mlir.VectorType.get([width], element)
        on = mask if mask is not None else self.ones_mask(width)
        return vector.GatherOp(type_, buffer, [address], lanes, on, self.zeros(element, width)).result

    def gather_tensor(self, storage: Storage, lanes: mlir.Value, width: int, mask: mlir.Value | None) -> mlir.Value:
        """Elements of a storage at a vector of addresses."""
        element = stored_type(storage.element)
        value = self.gather(self._buffer(storage), element, self.at.index(0), lanes, width, mask)
        return self._from_memory(value, storage.element)

    def store(self, storage: Storage, address, value, width: int, stride: Size, mask: mlir.Value | None) -> None:
        buffer, element = self._buffer(storage), stored_type(storage.element)
        value = self.as_width(value, storage.element, width)
        if element != storage.element:
            type_ = mlir.VectorType.get([width], element) if width > 1 else element
            value = arith.ExtUIOp(type_, value).result
        if width == 1:
            memref.StoreOp(value, buffer, [address])
        elif stride == Size(1) and mask is None:
            vector.StoreOp(value, buffer, [address])
        elif stride == Size(1):
            vector.MaskedStoreOp(buffer, [address], mask, value)
        else:
            lanes = self.multiply_sizes(self.iota(self.at.index(0), width), stride)
            on = mask if mask is not None else self.ones_mask(width)
            vector.ScatterOp(None, buffer, [address], lanes, on, value)

    def _from_memory(self, value: mlir.Value, element: mlir.Type) -> mlir.Value:
        if stored_type(element) == element:
            return value
        return arith.CmpIOp(arith.CmpIPredicate.ne, value, self.zero_like(value)).result
