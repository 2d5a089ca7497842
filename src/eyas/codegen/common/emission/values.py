"""Values that the code of any target is made of: sizes, addresses, scalars of the dispatch function, vectors, masks.

Booleans are one byte in memory and i1 in registers. A storage is a flat memref; addresses are element indices. Where
storages are, and how they are read, is for each target's `Memory` to say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, vector

from eyas.codegen.common.kernel import Kernel, Storage
from eyas.codegen.common.sizes import Size
from eyas.ir.walk import constant_int, ops_behind

BAD_DATA = 1
"""The error code of a value in the data that is not allowed (EYAS_ERROR_BAD_DATA of the ABI)."""


class Entry(Protocol):
    """The function that is being written, as its target has it."""

    constants: list[mlir.Value]
    """Push constants, as indices."""
    prologue: mlir.InsertionPoint
    """Where scalars that depend on push constants go."""

    @property
    def status(self) -> mlir.Value:
        """Memory of one word where asserts note an error code."""
        ...

    def index(self, value: int) -> mlir.Value:
        """An index constant at the top of the function."""
        ...

    def constant(self, type_: mlir.Type, value: object) -> mlir.Value:
        """A scalar constant at the top of the function."""
        ...


class Memory(ABC):
    """What emitters ask for: loads and stores, which each target has in its own way, and arithmetic."""

    def __init__(self, kernel: Kernel, entry: Entry):
        self.at = entry
        self.scalars: dict[mlir.Value, mlir.Value] = dict(zip(kernel.scalar_arguments, entry.constants, strict=True))
        self.tensors = kernel.tensors
        self.step: tuple[mlir.Value, mlir.Value, mlir.InsertionPoint] | None = None
        """The value that counts steps in the dispatch function and here, and where what depends on it begins."""
        self.block_start: tuple[int, mlir.Value] | None = None
        """The loop that runs in blocks, and where the block begins that locals hold."""

    # Storages

    @abstractmethod
    def load(
        self, storage: Storage, address: mlir.Value, width: int, stride: Size, mask: mlir.Value | None
    ) -> mlir.Value:
        """`width` elements from `address` on, `stride` apart; lanes that are off give zero."""

    @abstractmethod
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

    @abstractmethod
    def gather_tensor(self, storage: Storage, lanes: mlir.Value, width: int, mask: mlir.Value | None) -> mlir.Value:
        """Elements of a storage at a vector of addresses."""

    @abstractmethod
    def store(
        self,
        storage: Storage,
        address: mlir.Value,
        value: mlir.Value,
        width: int,
        stride: Size,
        mask: mlir.Value | None,
    ) -> None:
        """The inverse of `load`."""

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
        return any(self.step[0] in op.operands for op in ops_behind(value))

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
