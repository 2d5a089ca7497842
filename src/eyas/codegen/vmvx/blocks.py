"""Rows that go through several nests do so in blocks, so that each nest has tiles of many rows."""

from __future__ import annotations

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.blocks import locals_of
from eyas.codegen.common.kernel import Nest
from eyas.codegen.common.schedule import Block
from eyas.codegen.common.sizes import product
from eyas.codegen.common.traffic import held_bytes
from eyas.module.vmvx_isa import MAX_ELEMENTS

_MOST_ROWS = 64


def block_of_rows(found: Analysis) -> Block | None:
    """The blocks in which rows should go through the nests; None when they have no rows in common."""
    kernel = found.plain
    if found.block_of_products is not None or isinstance(kernel, str):
        return found.block_of_products
    if not kernel.shared or len(kernel.nests) < 2:
        return None
    loop = kernel.shared - 1
    # Half of what is near: tiles of operands are there as well.
    row = sum(held_bytes(product(one.shape).static or 1, one.element) for one in locals_of(kernel.nests))
    longest = max(_longest(nest, loop) for nest in kernel.nests)
    rows = max(1, min(_MOST_ROWS, found.near_bytes // 2 // max(1, row), MAX_ELEMENTS // min(longest, MAX_ELEMENTS)))
    extent = kernel.nests[0].loops[loop].static
    return Block(0, rows if extent is None else max(1, min(rows, extent)))


def _longest(nest: Nest, shared: int) -> int:
    return max([1, *(size.static or MAX_ELEMENTS for size in nest.loops[shared + 1 :])])
