"""Hands a tree of loops to an assembler, with `shape` where the rows and columns of instructions change."""

from __future__ import annotations

from typing import Any

from eyas.codegen.vmvx.builder import Builder, Instruction, Loop, Scalar, Scope, Tile
from eyas.module.vmvx_assembler import Assembler

Shape = tuple[Scalar | None, Scalar | None]
_METHODS = {"and": "and_", "or": "or_"}


def write(builder: Builder, assembler: Assembler) -> None:
    """Writes everything that a builder holds."""
    assert len(builder.stack) == 1, "a loop is still open"
    _Writer(assembler).scope(builder.root)


class _Writer:
    def __init__(self, assembler: Assembler):
        self.asm = assembler
        self.registers: dict[int, Any] = {}
        self.shape: Shape = (None, None)
        """What `shape` has set; None where that is not known."""

    def scope(self, scope: Scope) -> None:
        for item in scope.items:
            if isinstance(item, Loop):
                self._loop(item)
            else:
                self._instruction(item)

    def _loop(self, loop: Loop) -> None:
        kept = _needs_only(loop.body, self.shape)
        if not kept:
            self.shape = (None, None)
        ends = self.asm.loop_over(
            self._register(loop.low), self._register(loop.limit), self._register(loop.step), loop.at_least_once
        )
        with ends as index:
            self.registers[id(loop.index)] = index
            self.scope(loop.body)
        if not kept:
            self.shape = (None, None)

    def _instruction(self, item: Instruction) -> None:
        if item.shape is not None and not _fits(item.shape, self.shape):
            rows, columns = item.shape
            self.shape = (rows or _one(self.asm), columns or _one(self.asm))
            self.asm.shape(*(self._register(one) for one in self.shape))
        if item.name == "data":
            self.registers[id(item.result)] = self.asm.data_address(item.operands[1])
            return
        operands = [self._register(one) if isinstance(one, Scalar | Tile) else one for one in item.operands]
        getattr(self.asm, _METHODS.get(item.name, item.name))(*operands)

    def _register(self, value: Any) -> Any:
        if not isinstance(value, Scalar | Tile):
            return value  # a register of the assembler's own
        if isinstance(value, Scalar) and value.constant is not None:
            return self.asm.const(value.constant)
        if id(value) not in self.registers:
            self.registers[id(value)] = self.asm.scalar() if isinstance(value, Scalar) else self.asm.tile()
        return self.registers[id(value)]


def _one(assembler: Assembler) -> Any:
    return assembler.const(1)


def _fits(needed: Shape, current: Shape) -> bool:
    def same(a: Any, b: Any) -> bool:
        if a is None or a is b:
            return True
        return isinstance(a, Scalar) and a.constant == 1 and b is not None and not isinstance(b, Scalar)

    return all(same(a, b) for a, b in zip(needed, current, strict=True))


def _needs_only(scope: Scope, shape: Shape) -> bool:
    """Whether nothing inside sets another shape."""
    return all(
        _needs_only(item.body, shape) if isinstance(item, Loop) else item.shape is None or _fits(item.shape, shape)
        for item in scope.items
    )
