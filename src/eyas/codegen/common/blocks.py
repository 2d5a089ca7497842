"""Rows that go through several nests in blocks, so that what nests hand to each other stays near."""

from __future__ import annotations

from collections.abc import Sequence

from eyas.codegen.common.kernel import Nest, Storage
from eyas.codegen.common.sizes import product
from eyas.codegen.common.traffic import held_bytes

# Sizes that register tiles of 4, 6, 8 or 12 rows divide.
_SIZES = (24, 16, 12, 8, 4)


def rows_of_block(nests: Sequence[Nest], shared: int, near_bytes: int) -> int:
    """Points of the last of the `shared` loops that should form a block, or 0: then rows go one by one.

    Only products gain from blocks, and only while what is handed on is near."""
    if not shared or not any(nest.reductions and len(nest.parallel) > shared for nest in nests):
        return 0
    rows = nests[0].loops[shared - 1].static
    sizes = [(product(storage.shape[shared:]).static, storage.element) for storage in locals_of(nests)]
    if rows is None or any(size is None for size, _ in sizes):
        return 0
    row = max((held_bytes(size, element) for size, element in sizes if size), default=1)
    fitting = [size for size in _SIZES if size <= rows and size * row <= near_bytes]
    return fitting[0] if fitting else 0


def locals_of(nests: Sequence[Nest]) -> list[Storage]:
    """Storages local to the workgroup that the nests write."""
    outputs = [output for nest in nests for statement in nest.statements for output in statement.outputs]
    found = {id(output.storage): output.storage for output in outputs if output is not None}
    return [storage for storage in found.values() if storage.binding is None]
