"""Weights in panels: the order in which a register tile reads them.

A matrix of `rows` x `columns` is cut into panels of as many columns as a block of lanes has; each panel is contiguous,
row after row, and so is the narrower one that is left at the end. No element is added. A block of lanes then reads its
weights as one stream, which prefetchers follow and which touches no page twice.

    rows x columns, panels of 4:   a b c d e f        a b c d g h i j | e f k l
                                   g h i j k l   =>   (first panel)     (what is left)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from eyas.codegen.common.kernel import Access, Kernel, Nest, Statement, Storage
from eyas.codegen.common.schedule import Tile
from eyas.codegen.common.sizes import Size, product


def pack(array: np.ndarray, lanes: int) -> np.ndarray:
    """The elements of an array in panels of `lanes` columns of its last dimension; the shape stays."""
    rows = np.ascontiguousarray(array).reshape(-1, array.shape[-1])
    whole = rows.shape[1] // lanes * lanes
    packed = np.empty(rows.size, array.dtype)
    panels = packed[: rows.shape[0] * whole].reshape(-1, rows.shape[0], lanes)
    panels[...] = rows[:, :whole].reshape(rows.shape[0], -1, lanes).transpose(1, 0, 2)
    packed[rows.shape[0] * whole :] = rows[:, whole:].reshape(-1)
    return packed.reshape(array.shape)


def why_not_packed(kernel: Kernel, tiles: Sequence[Tile], binding: int) -> str | None:
    """Why the tensor at a binding cannot lie in panels, or None."""
    if len(kernel.nests) != 1 and kernel.steps is None:
        return "there is more than one loop nest"
    readers = readers_of(kernel, binding)
    if len(readers) != 1:
        return f"it is accessed {len(readers)} times"
    ((number, access),) = readers
    nest, loop = kernel.nests[number], tiles[number].loop if tiles[number].width > 1 else None
    if any(storage.binding == binding for storage in kernel.tensors.values()):
        return "it is read at computed positions"
    if access.storage.is_output or access.guards or any(size != Size(0) for size in access.offset):
        return "it is written, or only a part of it is read"
    columns = access.storage.shape[-1].static if access.storage.shape else None
    if not product(access.storage.shape).static or not columns:
        return "its shape is dynamic, or it has no elements"
    if loop is None or loop in nest.reductions or access.strides[loop] != Size(1) or nest.loops[loop] != Size(columns):
        return "its last dimension is not the loop of the lanes"
    for other, stride in enumerate(access.strides):
        if other != loop and (stride.static is None or stride.static % columns):
            return "a loop steps within its last dimension"
    return None


def readers_of(kernel: Kernel, binding: int) -> list[tuple[int, Access]]:
    """Every access to the tensor at a binding, with the number of its nest."""
    return [
        (number, access)
        for number, nest in enumerate(kernel.nests)
        for access in nest.all_accesses
        if access.storage.binding == binding
    ]


def in_panels(nest: Nest, packed: Sequence[int], loop: int, lanes: int) -> tuple[Nest, Nest]:
    """The nest as it runs in whole blocks of `lanes`, and as it runs in what is left of the loop."""
    return _with_accesses(nest, packed, loop, lanes, True), _with_accesses(nest, packed, loop, lanes, False)


def _with_accesses(nest: Nest, packed: Sequence[int], loop: int, lanes: int, whole: bool) -> Nest:
    def change(item: object) -> object:
        if isinstance(item, Access) and item.storage.binding in packed:
            return _in_panel(item, loop, lanes, whole)
        return item

    def statement(one: Statement) -> Statement:
        inputs, inits = (tuple(change(item) for item in items) for items in (one.inputs, one.inits))
        return replace(one, inputs=inputs, inits=inits)

    return replace(nest, statements=tuple(statement(one) for one in nest.statements))


def _in_panel(access: Access, loop: int, lanes: int, whole: bool) -> Access:
    columns = _static(access.storage.shape[-1])
    rows = _count(access.storage) // columns
    left = columns % lanes
    width = lanes if whole else left
    strides = [Size(_static(stride) // columns * width) for stride in access.strides]
    if whole:  # a block starts at a multiple of the lanes, `rows` elements of panel per column; lanes are neighbours
        strides[loop] = Size(rows)
        return replace(access, strides=tuple(strides), lane_stride=Size(1))
    strides[loop] = Size(1)
    return replace(access, strides=tuple(strides), offset=(Size((columns - left) * (rows - 1)),))


def _static(size: Size) -> int:
    assert size.static is not None, "panels are of static shape"
    return size.static


def _count(storage: Storage) -> int:
    return _static(product(storage.shape))
