"""Loads, stores, masks and index arithmetic on the storages of a kernel.

Booleans are one byte in memory and i1 in registers. A storage is a flat memref; addresses are element indices.
"""

from __future__ import annotations

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, memref, vector

from eyas.codegen.common.kernel import Kernel, Storage
from eyas.codegen.common.sizes import Size, product
from eyas.codegen.llvm_cpu.interface import Interface
from eyas.ir.walk import constant_int


class Memory:
    def __init__(self, kernel: Kernel, interface: Interface):
        self.at = interface
        self.buffers: dict[int, mlir.Value] = {}
        self.zero_lines: dict[tuple[str, int], mlir.Value] = {}
        self.scalars: dict[mlir.Value, mlir.Value] = dict(
            zip(kernel.scalar_arguments, interface.constants, strict=True)
        )
        self.tensors = kernel.tensors
        self.step: tuple[mlir.Value, mlir.Value, mlir.InsertionPoint] | None = None
        """The value that counts steps in the dispatch function and here, and where what depends on it begins."""
        self.block_start: tuple[int, mlir.Value] | None = None
        """The loop that runs in blocks, and where the block begins that locals hold."""
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

    def index_in(self, storage: Storage, loop: int, index: mlir.Value) -> mlir.Value:
        """A loop's index as a storage counts it: locals begin with the block."""
        if self.block_start is None or self.block_start[0] != loop or not storage.in_blocks:
            return index
        return arith.SubIOp(index, self.block_start[1]).result

    # Vectors and masks

    def mask(self, count: mlir.Value, width: int) -> mlir.Value:
        """The first `count` lanes are on."""
        return vector.CreateMaskOp(mlir.VectorType.get([width], mlir.IntegerType.get_signless(1)), [count]).result

    def ones_mask(self, width: int) -> mlir.Value:
        i1 = mlir.IntegerType.get_signless(1)
        return self._dense(mlir.VectorType.get([width], i1), mlir.BoolAttr.get(True))

    def zeros(self, element: mlir.Type, width: int) -> mlir.Value:
        zero = (
            mlir.FloatAttr.get(element, 0.0)
            if isinstance(element, mlir.FloatType)
            else mlir.IntegerAttr.get(element, 0)
        )
        return self._dense(mlir.VectorType.get([width], element), zero)

    def zero_like(self, value: mlir.Value) -> mlir.Value:
        if isinstance(value.type, mlir.VectorType):
            return self.zeros(value.type.element_type, value.type.shape[0])
        return self.at.constant(value.type, 0.0 if isinstance(value.type, mlir.FloatType) else 0)

    def _dense(self, type_: mlir.VectorType, attribute: mlir.Attribute) -> mlir.Value:
        return arith.ConstantOp(type_, mlir.DenseElementsAttr.get_splat(type_, attribute)).result

    def splat(self, value: mlir.Value, width: int) -> mlir.Value:
        if width == 1:
            return value
        return vector.BroadcastOp(mlir.VectorType.get([width], value.type), value).result

    def as_width(self, value: mlir.Value, element: mlir.Type, width: int) -> mlir.Value:
        """A scalar becomes a vector when vectors are meant."""
        if width == 1 or isinstance(value.type, mlir.VectorType):
            return value
        return self.splat(value, width)

    def iota(self, start: mlir.Value, width: int) -> mlir.Value:
        index = mlir.IndexType.get()
        step = vector.StepOp(mlir.VectorType.get([width], index)).result
        return arith.AddIOp(self.splat(start, width), step).result

    def in_range(self, position: mlir.Value, extent: Size) -> mlir.Value:
        """0 <= position < extent, by one unsigned comparison."""
        width = position.type.shape[0] if isinstance(position.type, mlir.VectorType) else 1
        return arith.CmpIOp(arith.CmpIPredicate.ult, position, self.splat(self.size(extent), width)).result

    def both(self, left: mlir.Value, right: mlir.Value) -> mlir.Value:
        width = max(_lanes(left), _lanes(right))
        return arith.AndIOp(*(self.as_width(v, v.type, width) for v in (left, right))).result

    # Index arithmetic

    def constant_index(self, value: int) -> mlir.Value:
        return self.at.index(value)

    def size(self, size: Size) -> mlir.Value:
        """A symbolic size as an index value."""
        value = None
        for symbol in size.symbols:
            factor = self.at.constants[symbol]
            value = factor if value is None else arith.MulIOp(value, factor).result
        if value is None:
            return self.at.index(size.factor)
        return value if size.factor == 1 else arith.MulIOp(value, self.at.index(size.factor)).result

    def scaled(self, index: mlir.Value, stride: Size) -> mlir.Value:
        return index if stride == Size(1) else arith.MulIOp(index, self.size(stride)).result

    def multiply(self, index: mlir.Value, factor: int) -> mlir.Value:
        if factor == 1:
            return index
        return arith.MulIOp(index, self.as_width(self.at.index(factor), index.type, _lanes(index))).result

    def multiply_sizes(self, lanes: mlir.Value, stride: Size) -> mlir.Value:
        if stride == Size(1):
            return lanes
        return arith.MulIOp(lanes, self.splat(self.size(stride), _lanes(lanes))).result

    def add(self, left: mlir.Value, right: mlir.Value) -> mlir.Value:
        if constant_int(left) == 0:
            return right
        if constant_int(right) == 0:
            return left
        width = max(_lanes(left), _lanes(right))
        return arith.AddIOp(*(self.as_width(v, v.type, width) for v in (left, right))).result

    def scalar(self, value: mlir.Value) -> mlir.Value:
        """A scalar of the dispatch function, cloned into the entry function with what it is computed from."""
        if self.step is not None and value == self.step[0]:
            return self.step[1]
        if value not in self.scalars:
            owner = value.owner
            operands = [self.scalar(operand) for operand in owner.operands]
            with self.step[2] if self.step is not None and self._counts(value) else self.at.prologue:
                clone = clone_op(owner, operands, [result.type for result in owner.results])
            for old, new in zip(owner.results, clone.results, strict=True):
                self.scalars[old] = new
        return self.scalars[value]

    def _counts(self, value: mlir.Value) -> bool:
        """Whether a scalar of the dispatch function depends on the number of the step."""
        if self.step is None or value == self.step[0]:
            return self.step is not None
        return not isinstance(value.owner, mlir.Block) and any(self._counts(one) for one in value.owner.operands)

    def leave_steps(self) -> None:
        """Forgets what depends on the number of the step."""
        self.scalars = {value: made for value, made in self.scalars.items() if not self._counts(value)}
        self.step = None

    def row_start(self, storage: Storage) -> list[mlir.Value]:
        """Terms of where the row of the current step begins; none for a storage that is the same in all steps."""
        terms = [self.size(size) for size in storage.start]
        if storage.step != Size(0):
            assert self.step is not None, "rows of steps outside of them"
            terms.append(self.scaled(self.step[1], storage.step))
        return terms


def clone_op(op: mlir.Operation, operands: list[mlir.Value], types: list[mlir.Type]) -> mlir.Operation:
    """The same operation on other operands."""
    attributes = {name: op.attributes[name] for name in op.attributes}
    return mlir.Operation.create(op.name, results=types, operands=operands, attributes=attributes)


def stored_type(element: mlir.Type) -> mlir.Type:
    """How an element type is kept in memory."""
    if isinstance(element, mlir.IntegerType) and element.width == 1:
        return mlir.IntegerType.get_signless(8)
    return element


def _lanes(value: mlir.Value) -> int:
    return value.type.shape[0] if isinstance(value.type, mlir.VectorType) else 1
