"""Panels that a block of lanes copies into the worker's scratch memory before it reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeGuard

from torch_mlir import ir as mlir

from eyas.codegen.common.kernel import Access, Kernel, Nest, Statement, Storage
from eyas.codegen.common.schedule import Tile
from eyas.codegen.common.sizes import Size, product
from eyas.codegen.llvm_cpu.interface import SCRATCH_BYTES


def why_not_staged(kernel: Kernel, tiles: Sequence[Tile], binding: int) -> str | None:
    """Why a block of lanes cannot copy its panel of the tensor at a binding before it reads it, or None."""
    if len(kernel.nests) != 1 or len(tiles) != 1:
        return "there is more than one loop nest"
    nest, tile = kernel.nests[0], tiles[0]
    readers = [source for source in nest.statements[0].inputs if _reads(source, binding)]
    if len(readers) != 1 or sum(access.storage.binding == binding for access in nest.accesses) != 1:
        return "it is not read exactly once"
    (access,) = readers
    loop = tile.loop if tile.width > 1 else None
    if access.guards or loop is None or loop in nest.reductions or access.strides[loop] != Size(1):
        return "it is not read along the lanes"
    if any(access.strides[other] != Size(0) for other in (tile.unroll_loop, *tile.inside) if other is not None):
        return "it changes from row to row"
    if not isinstance(access.storage.element, mlir.FloatType | mlir.IntegerType):
        return "its elements are not numbers that vectors hold"
    depth = product([nest.loops[loop] for loop in staged_loops(nest, access)]).static
    if depth is None or depth * tile.lanes * max(1, access.storage.element.width // 8) > SCRATCH_BYTES:
        return "a panel is larger than the scratch memory"
    return None


def staged_loops(nest: Nest, access: Access) -> list[int]:
    """The reductions along which a staged panel advances, outermost first."""
    return [loop for loop in nest.statements[0].reductions if access.strides[loop] != Size(0)]


def in_scratch(nest: Nest, binding: int, tile: Tile) -> tuple[Access, Access, tuple[Statement, ...]]:
    """The access to a staged tensor, the one to the copy of its panel, and the statements that read the copy."""
    first = nest.statements[0]
    source = next(one for one in first.inputs if _reads(one, binding))
    loops = staged_loops(nest, source)
    shape = (*(nest.loops[loop] for loop in loops), Size(tile.lanes))
    storage = Storage("panel", source.storage.element, shape, in_scratch=True)
    strides = [Size(0)] * len(nest.loops)
    for loop, stride in zip(loops, storage.strides, strict=False):
        strides[loop] = stride
    copy = Access(storage, (), tuple(strides), lane_stride=Size(1))
    inputs = tuple(copy if _reads(one, binding) else one for one in first.inputs)
    return source, copy, (replace(first, inputs=inputs), *nest.statements[1:])


def _reads(source: object, binding: int) -> TypeGuard[Access]:
    return isinstance(source, Access) and source.storage.binding == binding
