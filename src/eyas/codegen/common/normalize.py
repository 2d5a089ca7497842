"""Fewer, longer loops: unit loops vanish and neighbours that every access walks through evenly become one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from eyas.codegen.common.blocks import locals_of
from eyas.codegen.common.kernel import Access, Guard, Kernel, Nest, Statement, Unsupported
from eyas.codegen.common.sizes import ONE, ZERO, Size, product

_MAX_LOCAL_ELEMENTS = 16_384


def normalize(kernel: Kernel) -> None:
    """Simplifies the loops of a kernel in place; the meaning stays the same."""
    _shrink_locals(kernel)
    for loop in reversed(range(kernel.shared)):
        if all(nest.loops[loop] == ONE for nest in kernel.nests):
            for nest in kernel.nests:
                _remove_loop(nest, loop)
            kernel.shared -= 1
    for nest in kernel.nests:
        for loop in reversed(range(kernel.shared, len(nest.loops))):
            if nest.loops[loop] == ONE:
                _remove_loop(nest, loop)
    for loop in reversed(range(kernel.shared - 1)):
        if all(_can_collapse(nest, loop) for nest in kernel.nests):
            for nest in kernel.nests:
                _collapse(nest, loop)
            kernel.shared -= 1
    for number, nest in enumerate(kernel.nests):
        for loop in reversed(range(kernel.common_of(number), len(nest.loops) - 1)):
            if loop + 1 < len(nest.loops) and _can_collapse(nest, loop):
                _collapse(nest, loop)


def _shrink_locals(kernel: Kernel) -> None:
    """Memory local to a workgroup holds one iteration of the shared loops, or one block."""
    storages = {id(access.storage): access.storage for nest in kernel.nests for access in nest.accesses}
    blocked = {id(storage) for storage in locals_of(kernel.nests[kernel.first :])} if kernel.block else set()
    for storage in storages.values():
        if storage.binding is not None or storage.values is not None:
            continue
        if id(storage) in blocked:
            storage.in_blocks = True
            storage.shape = (Size(kernel.block), *storage.shape[kernel.common :])
        else:
            storage.shape = storage.shape[kernel.shared :]
        elements = product(storage.shape).static
        if elements is None or elements > _MAX_LOCAL_ELEMENTS:
            raise Unsupported("an intermediate is too large for a workgroup's stack")
    for nest in kernel.nests:
        _map_accesses(
            nest,
            lambda access: (
                access
                if access.storage.binding is not None or access.storage.values is not None
                else replace(access, strides=(ZERO,) * kernel.shared + access.strides[kernel.shared :])
            ),
        )


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


def _remove_loop(nest: Nest, loop: int) -> None:
    del nest.loops[loop]
    nest.guards = _guards_without(nest.guards, loop)
    _map_accesses(nest, lambda access: _without(access, loop))
    _renumber(nest, lambda old: None if old == loop else old - (old > loop))


def _collapse(nest: Nest, loop: int) -> None:
    """Loops `loop` and `loop + 1` become one; accesses keep the inner stride."""
    nest.loops[loop : loop + 2] = [nest.loops[loop] * nest.loops[loop + 1]]
    nest.guards = _guards_without(nest.guards, loop)
    _map_accesses(nest, lambda access: _without(access, loop))
    _renumber(nest, lambda old: old - (old > loop))


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


def _map_accesses(nest: Nest, change: Callable[[Access], Access]) -> None:
    def apply(items: list) -> list:
        return [change(item) if isinstance(item, Access) else item for item in items]

    for statement in nest.statements:
        statement.inputs = apply(statement.inputs)
        statement.outputs = apply(statement.outputs)
        statement.inits = apply(statement.inits)


def _renumber(nest: Nest, new: Callable[[int], int | None]) -> None:
    for statement in nest.statements:
        kept = (new(loop) for loop in statement.reductions)
        statement.reductions = tuple(dict.fromkeys(loop for loop in kept if loop is not None))
        statement.loop_of_index = {
            dim: new(loop) if loop is not None else None for dim, loop in statement.loop_of_index.items()
        }
