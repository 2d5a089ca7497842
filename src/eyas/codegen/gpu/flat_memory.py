"""Memory of plain kernels: views of bindings, of scratch memory and of a thread's own, each as flat elements.

A kernel has neither pointers nor shapes. A memref of the dispatch becomes a `View`, which says where its elements are
in which buffer; what was allocated lies in the dispatch's scratch buffer, one span for each place in the code that
allocates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, complex, memref

from eyas.codegen.common.emission.values import stored_type
from eyas.codegen.common.sizes import ONE, Size, product
from eyas.codegen.gpu.interface import Interface
from eyas.ir.values import element_bytes
from eyas.ir.walk import constant_int

Bound = tuple[Size, ...]
"""A sum of products of push constants that is not below what it bounds."""

_ALIGNMENT = 16
"""Bytes that a span begins at a multiple of: that of the widest element."""


@dataclass(frozen=True)
class View:
    """Elements in a buffer: which one, where the first is, how many there are along each axis and how far apart."""

    buffer: Buffer
    element: mlir.Type
    origin: mlir.Value
    """Where what was allocated begins; the view may begin behind it."""
    offset: mlir.Value
    sizes: tuple[mlir.Value, ...]
    strides: tuple[mlir.Value, ...]
    bounds: tuple[Bound, ...]
    """Of the sizes."""

    def address(self, indices: Sequence[mlir.Value]) -> mlir.Value:
        at = self.offset
        for index, stride in zip(indices, self.strides, strict=True):
            at = arith.addi(at, arith.muli(index, stride))
        return at

    def load(self, indices: Sequence[mlir.Value]) -> mlir.Value:
        at = self.address(indices)
        if isinstance(self.element, mlir.ComplexType):
            part = self.element.element_type
            return complex.CreateOp(self.element, *(self._load(part, one) for one in _parts(at))).result
        stored = _in_memory(self.element)
        value = self._load(stored, at)
        if stored == self.element:
            return value
        if isinstance(self.element, mlir.IndexType):
            return arith.index_cast(self.element, value)
        return arith.cmpi(arith.CmpIPredicate.ne, value, arith.constant(stored, 0))

    def store(self, value: mlir.Value, indices: Sequence[mlir.Value]) -> None:
        at = self.address(indices)
        if isinstance(self.element, mlir.ComplexType):
            for part, one in zip((complex.ReOp(value).result, complex.ImOp(value).result), _parts(at), strict=True):
                self._store(part, one)
            return
        stored = _in_memory(self.element)
        if isinstance(self.element, mlir.IndexType):
            value = arith.index_cast(stored, value)
        elif stored != self.element:
            value = arith.extui(stored, value)
        self._store(value, at)

    def _load(self, element: mlir.Type, at: mlir.Value) -> mlir.Value:
        return memref.load(self.buffer.of(element), [at])

    def _store(self, value: mlir.Value, at: mlir.Value) -> None:
        memref.store(value, self.buffer.of(value.type), [at])


class Buffer:
    """Something that is seen as a flat memref of any element type."""

    def of(self, element: mlir.Type) -> mlir.Value:
        raise NotImplementedError


@dataclass(frozen=True)
class Binding(Buffer):
    interface: Interface
    ordinal: int

    def of(self, element: mlir.Type) -> mlir.Value:
        return self.interface.view(self.ordinal, element)


@dataclass(frozen=True)
class Private(Buffer):
    """Memory of one thread, for one element type."""

    memory: mlir.Value

    def of(self, element: mlir.Type) -> mlir.Value:
        assert mlir.MemRefType(self.memory.type).element_type == element
        return self.memory


@dataclass(frozen=True)
class _Scratch(Buffer):
    interface: Interface

    def of(self, element: mlir.Type) -> mlir.Value:
        return self.interface.scratch(element)


class Spans:
    """Hands out the scratch buffer. Offsets are known where the kernel begins: a span is as long as its elements are
    bounded to be, whatever their number turns out to be."""

    def __init__(self, interface: Interface):
        self._interface = interface
        self._buffer = _Scratch(interface)
        self._end: mlir.Value | None = None
        self._terms: list[Size] = []

    @property
    def terms(self) -> tuple[Size, ...]:
        """Their sum is how many bytes a dispatch needs."""
        return tuple(self._terms)

    def allocate(self, element: mlir.Type, sizes: Sequence[mlir.Value], bounds: Sequence[Bound]) -> View:
        """A new span for elements in row-major order."""
        at, unit = self._interface, element_bytes(element)
        begin = self._claim(tuple(size * unit for size in reduce(times, bounds, (ONE,))))
        with at.prologue, mlir.Location.unknown():
            offset = arith.divui(begin, at.index(unit))
            # Numbers that are known as early are made as early: the span may be used outside of where it is allocated.
            sizes = [size if (known := constant_int(size)) is None else at.index(known) for size in sizes]
            strides = row_major(sizes, at) if self._are_settled(sizes) else ()
        strides = strides or row_major(sizes, at)
        return View(self._buffer, element, offset, offset, tuple(sizes), strides, tuple(bounds))

    def is_settled(self, view: View) -> bool:
        """Whether a span of this kernel is known wherever the kernel is."""
        return self._are_settled(view.sizes)

    def _are_settled(self, sizes: Sequence[mlir.Value]) -> bool:
        return all(constant_int(size) is not None or size in self._interface.constants for size in sizes)

    def at_offset(self, view: View, offset: mlir.Value) -> View:
        """A view of scratch memory that begins elsewhere."""
        return replace(view, buffer=self._buffer, origin=offset, offset=offset)

    def has(self, view: View) -> bool:
        return view.buffer is self._buffer

    def _claim(self, size: Bound) -> mlir.Value:
        """The byte at which a span of `size` begins."""
        at = self._interface
        with at.prologue, mlir.Location.unknown():
            begin = self._end if self._end is not None else at.index(0)
            terms = [reduce(arith.muli, (at.constants[s] for s in one.symbols), at.index(one.factor)) for one in size]
            length = reduce(arith.addi, terms, at.index(_ALIGNMENT - 1))
            self._end = arith.addi(begin, arith.andi(length, at.index(-_ALIGNMENT)))
        self._terms += [*size, Size(_ALIGNMENT)]
        return begin


def row_major(sizes: Sequence[mlir.Value], interface: Interface) -> tuple[mlir.Value, ...]:
    """Strides of elements that lie one behind the other."""
    strides, running = [], interface.index(1)
    for size in reversed(sizes):
        strides.append(running)
        running = arith.muli(running, size)
    return tuple(reversed(strides))


def plus(left: Bound, right: Bound) -> Bound:
    """The bound of a sum: terms, with terms of the same symbols in one."""
    factors: dict[tuple[int, ...], int] = {}
    for one in (*left, *right):
        factors[one.symbols] = factors.get(one.symbols, 0) + one.factor
    return tuple(Size(factor, symbols) for symbols, factor in factors.items() if factor)


def times(left: Bound, right: Bound) -> Bound:
    result: Bound = ()
    for one in left:
        for other in right:
            result = plus(result, (product([one, other]),))
    return result


def stored_in(type_: mlir.MemRefType) -> mlir.MemRefType:
    """Flat memory for the elements of a memref of static shape."""
    parts = 2 if isinstance(type_.element_type, mlir.ComplexType) else 1
    element = type_.element_type.element_type if parts == 2 else _in_memory(type_.element_type)
    count = parts * math.prod(type_.shape if type_.rank else [])
    return mlir.MemRefType.get([max(count, 1)], element)


def _in_memory(element: mlir.Type) -> mlir.Type:
    return mlir.IntegerType.get_signless(64) if isinstance(element, mlir.IndexType) else stored_type(element)


def _parts(at: mlir.Value) -> tuple[mlir.Value, mlir.Value]:
    """Where the real and the imaginary part of complex number `at` are."""
    index = mlir.IndexType.get()
    real = arith.muli(at, arith.constant(index, 2))
    return real, arith.addi(real, arith.constant(index, 1))
