"""Loads and stores of one thread: bindings, and what threads of a workgroup hand to each other in shared memory.

A thread has scalars. Neighbours that it has several of are loaded and stored as one vector of two or four where
their address is known to be a multiple of that.
"""

from __future__ import annotations

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, complex, memref, vector

from eyas.codegen.common.emission import values
from eyas.codegen.common.emission.values import stored_type
from eyas.codegen.common.kernel import Kernel, Storage
from eyas.codegen.common.sizes import Size, product
from eyas.codegen.gpu.interface import Interface


class Memory(values.Memory):
    """`slots` rows of locals lie side by side in shared memory, of which this thread's is number `slot`; without any,
    each thread has its own locals."""

    def __init__(self, kernel: Kernel, interface: Interface, slots: int = 1, slot: mlir.Value | None = None):
        super().__init__(kernel, interface)
        self.at: Interface = interface
        self.slots, self.slot = slots, slot
        self._locals: dict[int, mlir.Value] = {}
        self.starts: dict[int, dict[int, mlir.Value]] = {}
        """Of storages that hold a part of something: where it begins along some loops."""

    def index_in(self, storage: Storage, loop: int, index: mlir.Value) -> mlir.Value:
        start = self.starts.get(id(storage), {}).get(loop)
        return super().index_in(storage, loop, index) if start is None else arith.SubIOp(index, start).result

    def load(
        self, storage: Storage, address: mlir.Value, width: int, stride: Size, mask: mlir.Value | None
    ) -> mlir.Value:
        assert width == 1 and mask is None, "a thread has scalars"
        if isinstance(storage.element, mlir.ComplexType):
            parts = [self._load(storage, storage.element.element_type, at) for at in self._parts(storage, address)]
            return complex.CreateOp(storage.element, *parts).result
        return self._from_memory(self._load(storage, stored_type(storage.element), address), storage.element)

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
        safe = arith.SelectOp(inside, address, self.at.index(0)).result
        return arith.SelectOp(inside, self.load(storage, safe, width, stride, mask), fallback).result

    def gather_tensor(self, storage: Storage, lanes: mlir.Value, width: int, mask: mlir.Value | None) -> mlir.Value:
        raise AssertionError("a thread has scalars")

    def store(
        self,
        storage: Storage,
        address: mlir.Value,
        value: mlir.Value,
        width: int,
        stride: Size,
        mask: mlir.Value | None,
    ) -> None:
        assert width == 1 and mask is None, "a thread has scalars"
        if isinstance(storage.element, mlir.ComplexType):
            parts = [complex.ReOp(value).result, complex.ImOp(value).result]
            for part, at in zip(parts, self._parts(storage, address), strict=True):
                memref.StoreOp(part, self._scalars(storage, part.type), [at])
            return
        value = self._to_memory(value, storage.element)
        memref.StoreOp(value, self._scalars(storage, value.type), [self._in_slot(storage, address)])

    def load_vector(self, storage: Storage, address: mlir.Value, count: int) -> list[mlir.Value]:
        """`count` neighbours from `address` on, which is a multiple of `count`."""
        element = stored_type(storage.element)
        type_ = mlir.VectorType.get([count], element)
        whole = memref.LoadOp(self._vectors(storage, type_), [self._in_vectors(address, count)]).result
        lanes = [vector.ExtractOp(whole, [], [lane]).result for lane in range(count)]
        return [self._from_memory(lane, storage.element) for lane in lanes]

    def store_vector(self, storage: Storage, address: mlir.Value, lanes: list[mlir.Value]) -> None:
        """The inverse of `load_vector`."""
        stored = [self._to_memory(lane, storage.element) for lane in lanes]
        type_ = mlir.VectorType.get([len(lanes)], stored_type(storage.element))
        whole = vector.FromElementsOp(type_, stored).result
        memref.StoreOp(whole, self._vectors(storage, type_), [self._in_vectors(address, len(lanes))])

    def has_vectors(self, storage: Storage) -> bool:
        """Whether a storage may be read in vectors at all."""
        is_complex = isinstance(storage.element, mlir.ComplexType)
        return storage.binding is not None and storage.binding not in self.at.unaligned and not is_complex

    def _load(self, storage: Storage, element: mlir.Type, address: mlir.Value) -> mlir.Value:
        return memref.LoadOp(self._scalars(storage, element), [self._in_slot(storage, address)]).result

    def _parts(self, storage: Storage, address: mlir.Value) -> list[mlir.Value]:
        """Where the real and the imaginary part of a complex number are."""
        first = arith.MulIOp(self._in_slot(storage, address), self.at.index(2)).result
        return [first, arith.AddIOp(first, self.at.index(1)).result]

    def _scalars(self, storage: Storage, element: mlir.Type) -> mlir.Value:
        if storage.binding is not None:
            return self.at.view(storage.binding, element)
        if id(storage) not in self._locals:
            count = product(storage.shape).static
            assert count is not None, "dispatch formation gives dynamic intermediates a binding"
            parts = 2 if isinstance(storage.element, mlir.ComplexType) else 1
            elements = max(count, 1) * parts
            if self.slots:
                self._locals[id(storage)] = self.at.shared(element, elements * self.slots)
            else:
                self._locals[id(storage)] = self.at.private(element, elements)
        return self._locals[id(storage)]

    def _vectors(self, storage: Storage, type_: mlir.VectorType) -> mlir.Value:
        assert storage.binding is not None
        return self.at.view(storage.binding, type_)

    def _in_vectors(self, address: mlir.Value, count: int) -> mlir.Value:
        return arith.DivUIOp(address, self.at.index(count)).result

    def _in_slot(self, storage: Storage, address: mlir.Value) -> mlir.Value:
        if storage.binding is not None or self.slot is None:
            return address
        count = product(storage.shape).static
        assert count is not None
        return arith.AddIOp(arith.MulIOp(self.slot, self.at.index(max(count, 1))).result, address).result

    def _from_memory(self, value: mlir.Value, element: mlir.Type) -> mlir.Value:
        if stored_type(element) == element:
            return value
        return arith.CmpIOp(arith.CmpIPredicate.ne, value, self.at.constant(value.type, 0)).result

    def _to_memory(self, value: mlir.Value, element: mlir.Type) -> mlir.Value:
        stored = stored_type(element)
        return value if stored == element else arith.ExtUIOp(stored, value).result
