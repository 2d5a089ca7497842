"""Rows that go through several nests do so in blocks, so that each nest has tiles of many rows."""

from __future__ import annotations

from dataclasses import replace

from eyas.codegen.common.blocks import locals_of
from eyas.codegen.common.kernel import Access, Kernel, Nest
from eyas.codegen.common.sizes import Size, product
from eyas.module.vmvx_isa import MAX_ELEMENTS

# What nests hand to each other should stay in the first-level cache.
_LOCAL_ELEMENTS = 4096
_MOST_ROWS = 64


def in_blocks(kernel: Kernel) -> None:
    """Makes the last loop that all nests share one that runs in blocks; changes nothing when there is none, or when
    one runs so already."""
    if kernel.block or not kernel.shared or len(kernel.nests) < 2:
        return
    loop = kernel.shared - 1
    storages = locals_of(kernel.nests)
    sizes = [product(storage.shape).static or 1 for storage in storages]
    longest = max(_longest(nest, loop) for nest in kernel.nests)
    rows = max(1, min(_MOST_ROWS, _LOCAL_ELEMENTS // max(1, sum(sizes)), MAX_ELEMENTS // min(longest, MAX_ELEMENTS)))
    extent = kernel.nests[0].loops[loop].static
    rows = rows if extent is None else max(1, min(rows, extent))
    steps = {id(storage): product(storage.shape) for storage in storages}
    for storage in storages:
        storage.shape, storage.in_blocks = (Size(rows), *storage.shape), True

    def change(item: object) -> object:
        if not isinstance(item, Access) or id(item.storage) not in steps:
            return item
        strides = list(item.strides)
        strides[loop] = steps[id(item.storage)]
        return replace(item, strides=tuple(strides))

    for nest in kernel.nests:
        for statement in nest.statements:
            statement.inputs = [change(item) for item in statement.inputs]  # type: ignore[misc]
            statement.outputs = [change(item) for item in statement.outputs]  # type: ignore[misc]
            statement.inits = [change(item) for item in statement.inits]  # type: ignore[misc]
    kernel.shared, kernel.block = loop, rows


def _longest(nest: Nest, shared: int) -> int:
    return max([1, *(size.static or MAX_ELEMENTS for size in nest.loops[shared + 1 :])])
