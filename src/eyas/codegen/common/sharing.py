"""Loops that several nests run together, so that what they hand to each other need hold only one iteration."""

from __future__ import annotations

from collections.abc import Sequence

from eyas.codegen.common.kernel import Nest
from eyas.codegen.common.sizes import row_major_strides


def shared_loops(nests: Sequence[Nest]) -> int:
    """How many leading loops all of the nests can run together."""
    if len(nests) <= 1:
        return 0
    limit = min(len(nest.parallel) for nest in nests)
    shared = 0
    between = _storages_between(nests)
    while shared < limit and _can_share(nests, shared, between):
        shared += 1
    return shared


def _storages_between(nests: Sequence[Nest]) -> set[int]:
    """Storages that one nest writes and another reads or writes."""
    written: set[int] = set()
    touched: dict[int, set[int]] = {}
    for index, nest in enumerate(nests):
        outputs = [output for statement in nest.statements for output in statement.outputs]
        written |= {id(output.storage) for output in outputs if output is not None}
        for access in nest.accesses:
            touched.setdefault(id(access.storage), set()).add(index)
    return {storage for storage in written if len(touched[storage]) > 1}


def _can_share(nests: Sequence[Nest], loop: int, between: set[int]) -> bool:
    first = nests[0].loops[loop]
    for nest in nests:
        if nest.loops[loop] != first or loop in nest.reductions or nest.parallel[loop] != loop:
            return False
        for access in nest.accesses:
            if id(access.storage) not in between:
                continue
            strides = row_major_strides(access.storage.shape)
            if len(strides) <= loop or access.strides[loop] != strides[loop] or access.guards:
                return False
            if access.storage.shape[loop] != first:
                return False
    return True
