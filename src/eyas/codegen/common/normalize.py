"""Fewer, longer loops: unit loops vanish and neighbours that every access walks through evenly become one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from eyas.codegen.common.blocks import locals_of
from eyas.codegen.common.kernel import Access, Guard, Kernel, Nest, Statement, Storage, Unsupported
from eyas.codegen.common.sizes import ONE, ZERO, Size, product
from eyas.codegen.common.traffic import element_bytes

_MAX_LOCAL_BYTES = 1 << 20
"""Of all locals together: a workgroup keeps them on a worker's stack."""


def normalize(kernel: Kernel, is_kept: bool = True) -> Kernel:
    """The same kernel with simpler loops. Raises Unsupported when what nests hand to each other does not fit where it
    `is_kept`."""
    nests = shrink_locals(kernel, is_kept).nests
    shared = kernel.shared
    for loop in reversed(range(shared)):
        if all(nest.loops[loop] == ONE for nest in nests):
            nests = tuple(_remove_loop(nest, loop) for nest in nests)
            shared -= 1
    nests = tuple(_without_unit_loops(nest, shared) for nest in nests)
    for loop in reversed(range(shared - 1)):
        if all(_can_collapse(nest, loop) for nest in nests):
            nests = tuple(_collapse(nest, loop) for nest in nests)
            shared -= 1
    kernel = replace(kernel, nests=nests, shared=shared)
    collapsed = (_collapse_own(nest, kernel.common_of(number)) for number, nest in enumerate(nests))
    return replace(kernel, nests=tuple(collapsed))


def _without_unit_loops(nest: Nest, shared: int) -> Nest:
    for loop in reversed(range(shared, len(nest.loops))):
        if nest.loops[loop] == ONE:
            nest = _remove_loop(nest, loop)
    return nest


def _collapse_own(nest: Nest, common: int) -> Nest:
    for loop in reversed(range(common, len(nest.loops) - 1)):
        if loop + 1 < len(nest.loops) and _can_collapse(nest, loop):
            nest = _collapse(nest, loop)
    return nest


def shrink_locals(kernel: Kernel, is_kept: bool = True) -> Kernel:
    """Memory local to a workgroup holds one iteration of the shared loops, or one block. Where it `is_kept`, the stack
    must hold it."""
    storages = {id(access.storage): access.storage for nest in kernel.nests for access in nest.accesses}
    blocked = {id(storage) for storage in locals_of(kernel.nests[kernel.first :])} if kernel.block else set()
    smaller: dict[int, Storage] = {}
    for key, storage in storages.items():
        if storage.binding is not None or storage.values is not None:
            continue
        if key in blocked:
            shape = (Size(kernel.block), *storage.shape[kernel.common :])
        else:
            shape = storage.shape[kernel.shared :]
        smaller[key] = replace(storage, shape=shape, in_blocks=key in blocked)
    if is_kept:
        check_locals(smaller.values())

    def change(access: Access) -> Access:
        if id(access.storage) not in smaller:
            return access
        strides = (ZERO,) * kernel.shared + access.strides[kernel.shared :]
        return replace(access, storage=smaller[id(access.storage)], strides=strides)

    return replace(kernel, nests=tuple(nest.map_accesses(change) for nest in kernel.nests))


def in_blocks(kernel: Kernel, rows: int) -> Kernel:
    """The kernel with the last loop that all nests share run in blocks of so many points."""
    if not kernel.shared or len(kernel.nests) < 2:
        raise Unsupported("its loop nests have no loop in common that could run in blocks")
    loop = kernel.shared - 1
    blocked = {
        id(storage): replace(storage, shape=(Size(rows), *storage.shape), in_blocks=True)
        for storage in locals_of(kernel.nests)
    }
    check_locals(blocked.values())

    def change(access: Access) -> Access:
        if id(access.storage) not in blocked:
            return access
        strides = list(access.strides)
        strides[loop] = product(access.storage.shape)
        return replace(access, storage=blocked[id(access.storage)], strides=tuple(strides))

    nests = tuple(nest.map_accesses(change) for nest in kernel.nests)
    return replace(kernel, nests=nests, shared=loop, block=rows)


def check_locals(storages: Iterable[Storage]) -> None:
    """Refuses locals that a workgroup's stack does not hold."""
    total = 0
    for storage in storages:
        elements = product(storage.shape).static
        if elements is None:
            raise Unsupported("an intermediate of a workgroup has a size that is known at run time only")
        total += elements * element_bytes(storage.element)
    if total > _MAX_LOCAL_BYTES:
        raise Unsupported("intermediates are too large for a workgroup's stack")


def _can_collapse(nest: Nest, loop: int) -> bool:
    reductions = nest.reductions
    if (loop in reductions) != (loop + 1 in reductions):
        return False
    for statement in nest.statements:
        if _reads_index(statement, {loop, loop + 1}):
            return False
    if any(guard.coefficients[loop] or guard.coefficients[loop + 1] for guard in nest.guards):
        return False
    inner = nest.loops[loop + 1]
    return all(
        access.strides[loop] == access.strides[loop + 1] * inner
        and not any(guard.coefficients[loop] or guard.coefficients[loop + 1] for guard in access.guards)
        for access in nest.all_accesses
    )


def _reads_index(statement: Statement, loops: set[int]) -> bool:
    if statement.body is None:
        return False
    return any(
        op.operation.name == "linalg.index" and statement.loop_of_index[op.attributes["dim"].value] in loops
        for op in statement.body.operations
    )


def _remove_loop(nest: Nest, loop: int) -> Nest:
    loops = nest.loops[:loop] + nest.loops[loop + 1 :]
    return _renumber(_drop(nest, loop, loops), lambda old: None if old == loop else old - (old > loop))


def _collapse(nest: Nest, loop: int) -> Nest:
    """Loops `loop` and `loop + 1` become one; accesses keep the inner stride."""
    loops = (*nest.loops[:loop], nest.loops[loop] * nest.loops[loop + 1], *nest.loops[loop + 2 :])
    return _renumber(_drop(nest, loop, loops), lambda old: old - (old > loop))


def _drop(nest: Nest, loop: int, loops: tuple[Size, ...]) -> Nest:
    """A nest whose accesses and guards no longer know a loop."""
    changed = nest.map_accesses(lambda access: _without(access, loop))
    return replace(changed, loops=loops, guards=_guards_without(nest.guards, loop))


def _without(access: Access, loop: int) -> Access:
    otherwise = access.otherwise
    return replace(
        access,
        strides=access.strides[:loop] + access.strides[loop + 1 :],
        guards=_guards_without(access.guards, loop),
        otherwise=_without(otherwise, loop) if isinstance(otherwise, Access) else otherwise,
    )


def _guards_without(guards: tuple[Guard, ...], loop: int) -> tuple[Guard, ...]:
    return tuple(
        replace(guard, coefficients=guard.coefficients[:loop] + guard.coefficients[loop + 1 :]) for guard in guards
    )


def _renumber(nest: Nest, new: Callable[[int], int | None]) -> Nest:
    def change(statement: Statement) -> Statement:
        kept = (new(loop) for loop in statement.reductions)
        reductions = tuple(dict.fromkeys(loop for loop in kept if loop is not None))
        loops = {dim: new(loop) if loop is not None else None for dim, loop in statement.loop_of_index.items()}
        return replace(statement, reductions=reductions, loop_of_index=loops)

    return replace(nest, statements=tuple(change(statement) for statement in nest.statements))
