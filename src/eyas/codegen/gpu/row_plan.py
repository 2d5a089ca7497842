"""Rows that threads can have in registers: every nest goes through the same elements, or is about the row as a whole.

Then element number `i` of a row is the same thread's in all nests. What nests hand to each other is either a row of
elements, each made and read by the same thread, or a number of the row that all threads of a team know.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from eyas.codegen.common.joint import placed_joint_of
from eyas.codegen.common.kernel import Access, Kernel, Nest, Storage
from eyas.codegen.common.sizes import ONE, ZERO, Size, product, row_major_strides
from eyas.codegen.gpu.team import why_not_together
from eyas.codegen.gpu.thread_tile import VECTORS


class Role(Enum):
    """What a nest does with a row."""

    POINTS = "each of its elements by itself"
    SUM = "all of its elements together"
    ROW = "nothing with its elements"


@dataclass(frozen=True)
class RowPlan:
    """`shared` loops count rows of `elements` each, which threads take in groups of `points` neighbours."""

    shared: int
    elements: Size
    points: int
    roles: tuple[Role, ...]
    in_order: bool
    """Whether a share of some sum must be joined to the share before it."""
    live: int
    """Rows that a thread has to remember while it sums one up, at the most."""
    feeds: tuple[tuple[int, ...], ...]
    """For each nest: those that make elements which it reads, in order, and those that these need."""
    waits: bool
    """Whether a number of a row may be written where one lies that all threads of a team read."""

    @property
    def groups(self) -> Size:
        return Size(self.elements.factor // self.points, self.elements.symbols)


def plan_of(kernel: Kernel) -> RowPlan | str:
    """How threads go through the rows of a kernel, or why they cannot keep them to themselves."""
    if kernel.steps is not None or not kernel.nests:
        return "it runs in steps"
    roles = [_role(nest, kernel.shared) for nest in kernel.nests]
    found = tuple(role for role in roles if role is not None)
    if len(found) != len(roles):
        return "a nest sums up a part of a row"
    passing = [nest for nest, role in zip(kernel.nests, found, strict=True) if role is not Role.ROW]
    sizes = {product(nest.loops[kernel.shared :]) for nest in passing}
    if len(sizes) != 1:
        return "nests go through rows of different lengths"
    makers = _makers(kernel)
    if makers is None:
        return "a nest reads elements that another thread has made"
    points = next((count for count in VECTORS if all(_counts_in(nest, count) for nest in passing)), 1)
    joints = [
        placed_joint_of(nest.statements[0]) for nest, role in zip(kernel.nests, found, strict=True) if role is Role.SUM
    ]
    in_order = any(joint is not None and joint.in_order for joint in joints)
    live = _live(kernel, found, makers)
    return RowPlan(
        kernel.shared, sizes.pop(), points, found, in_order, live, _feeds(kernel, found, makers), _waits(kernel)
    )


def _role(nest: Nest, shared: int) -> Role | None:
    own = tuple(range(shared, len(nest.loops)))
    if not nest.reductions:
        return Role.POINTS if own else Role.ROW
    is_whole = sorted(nest.statements[0].reductions) == list(own) and why_not_together(nest) is None
    return Role.SUM if is_whole else None


def _counts_in(nest: Nest, count: int) -> bool:
    last = nest.loops[-1]
    return last.factor > 0 and last.factor % count == 0


def _makers(kernel: Kernel) -> dict[Storage, int] | None:
    """The nest that writes each storage; None where one reads another element of it than the thread has."""
    written: dict[Storage, tuple[int, Nest, Access]] = {}
    for number, nest in enumerate(kernel.nests):
        for access in _reads(nest):
            if access.storage in written:
                _, maker, made = written[access.storage]
                if not _is_same(kernel.shared, nest, access, maker, made):
                    return None
            elif access.storage.binding is None:
                return None
        for output in (one for statement in nest.statements for one in statement.outputs if one is not None):
            if output.storage in written or (
                output.storage.binding is None and not _is_near(kernel.shared, nest, output)
            ):
                return None
            over = [(other, access) for other, access in _bound_reads(kernel) if _may_lie_over(output, access)]
            if not all(_is_same(kernel.shared, other, access, nest, output) for other, access in over):
                return None
            written[output.storage] = (number, nest, output)
    return {storage: number for storage, (number, _, _) in written.items()}


def _reads(nest: Nest) -> list[Access]:
    outputs = {id(one) for statement in nest.statements for one in statement.outputs}
    return [access for access in nest.all_accesses if id(access) not in outputs]


def _bound_reads(kernel: Kernel) -> list[tuple[Nest, Access]]:
    reads = [(nest, access) for nest in kernel.nests for access in _reads(nest)]
    return [(nest, access) for nest, access in reads if access.storage.binding is not None]


def _may_lie_over(output: Access, access: Access) -> bool:
    """Whether a result may be written where an operand lies; `reuse-in-place` counts on nests in order."""
    alike = access.storage.shape == output.storage.shape and access.storage.element == output.storage.element
    return output.storage.binding is not None and access.storage is not output.storage and alike


def _is_same(shared: int, nest: Nest, access: Access, maker: Nest, made: Access) -> bool:
    """Whether an access reads what another one wrote, each element at its own point."""
    if access.guards or made.guards or access.offset != made.offset:
        return False
    if access.strides[:shared] != made.strides[:shared]:
        return False
    mine, other = access.strides[shared:], made.strides[shared:]
    if not any(stride != ZERO for stride in other):
        return not any(stride != ZERO for stride in mine)
    if nest.loops == maker.loops:
        return mine == other
    return _is_row(shared, nest, access) and _is_row(shared, maker, made)


def _is_near(shared: int, nest: Nest, access: Access) -> bool:
    """Whether a local has an element for each of a row, or one for all of them."""
    if any(stride != ZERO for stride in access.strides[:shared]) or access.offset or access.guards:
        return False
    own = access.strides[shared:]
    return not any(stride != ZERO for stride in own) or _is_row(shared, nest, access)


def _is_row(shared: int, nest: Nest, access: Access) -> bool:
    own = access.strides[shared:]
    return bool(own) and own == row_major_strides(nest.loops[shared:]) and own[-1] == ONE


def _feeds(kernel: Kernel, roles: Sequence[Role], makers: dict[Storage, int]) -> tuple[tuple[int, ...], ...]:
    found: list[tuple[int, ...]] = []
    for nest in kernel.nests:
        near = {makers[one.storage] for one in _reads(nest) if one.storage in makers}
        elements = {number for number in near if roles[number] is Role.POINTS}
        found.append(tuple(sorted(elements.union(*(found[number] for number in elements)))))
    return tuple(found)


def _live(kernel: Kernel, roles: Sequence[Role], makers: dict[Storage, int]) -> int:
    """Rows that were read or made before a sum, that sum among them, and are read after it."""
    first: dict[Storage, int] = {}
    last: dict[Storage, int] = {}
    for number, nest in enumerate(kernel.nests):
        for access in _reads(nest):
            passes = any(stride != ZERO for stride in access.strides[kernel.shared :])
            if passes and any(stride != ZERO for stride in access.strides[: kernel.shared]) or access.storage in makers:
                key = access.storage
                first.setdefault(key, makers.get(key, number))
                last[key] = number
    sums = [number for number, role in enumerate(roles) if role is Role.SUM]
    rows = [key for key in last if key not in makers or roles[makers[key]] is Role.POINTS]
    return max([sum(first[key] <= number < last[key] for key in rows) for number in sums] + [1])


def _waits(kernel: Kernel) -> bool:
    outputs = [one for nest in kernel.nests for statement in nest.statements for one in statement.outputs if one]
    numbers = [one for one in outputs if not any(stride != ZERO for stride in one.strides[kernel.shared :])]
    return any(_may_lie_over(output, access) for output in numbers for _, access in _bound_reads(kernel))
