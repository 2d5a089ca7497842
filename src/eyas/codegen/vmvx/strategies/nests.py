"""Strategies that emit loop nests as tile instructions under a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from torch_mlir import ir as mlir

from eyas.codegen.common.constraints import NO_LOOP, TileNumbers
from eyas.codegen.common.kernel import Kernel, Unsupported
from eyas.codegen.common.schedule import Schedule
from eyas.codegen.common.sizes import ONE
from eyas.codegen.common.space import Constraint, Knob, domain
from eyas.codegen.common.strategies import nests
from eyas.codegen.vmvx.builder import Builder
from eyas.codegen.vmvx.emit import NestEmitter, emit_kernel
from eyas.codegen.vmvx.schedule import check_schedule, tile_laws
from eyas.codegen.vmvx.strategies.base import Strategy
from eyas.codegen.vmvx.writer import write
from eyas.errors import ModuleError
from eyas.module.vmvx_assembler import Assembler
from eyas.targets import Target

Nested = TypeVar("Nested", bound="NestStrategy")
# Rows of a tile that are worth trying.
_ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 16, 32)


@dataclass(frozen=True)
class NestStrategy(nests.NestStrategy, Strategy):
    """A strategy that emits loop nests under a schedule."""

    @classmethod
    def check(cls, schedule: Schedule, kernel: Kernel) -> str | None:
        return check_schedule(schedule, kernel)

    def tile_knobs(self, number: int, target: Target) -> list[Knob]:
        del target
        kernel, default = self.kernel, TileNumbers.of(number).values(self.schedule.tiles[number])
        nest, common = kernel.nests[number], kernel.common_of(number)
        own = [loop for loop in nest.parallel if loop >= common and nest.loops[loop] != ONE]
        own += [loop for loop in nest.statements[0].reductions if loop in nest.reductions]
        block = [kernel.shared] if kernel.block and number >= kernel.first else []
        values: dict[str, tuple[tuple[int, ...], str]] = {
            "loop": (domain([NO_LOOP, *own]), "the loop of a tile's columns; -1: none"),
            "width": ((), "columns of a panel: always the same"),
            "vectors": ((), "always 1"),
            "unroll_loop": (domain([NO_LOOP, *own, *block]), "the loop of a tile's rows; -1: none"),
            "unroll": (_ROWS, "rows of a tile: so many of a product, at least so many of all else"),
            "dot": ((), "always 1"),
        }
        path = TileNumbers.of(number).path
        names = ((f"{path}.{name}", one, meaning) for name, (one, meaning) in values.items())
        return [Knob(name, domain(one, default[name]), meaning) for name, one, meaning in names]

    def tile_constraints(self, number: int, target: Target) -> list[Constraint]:
        del target
        return tile_laws(self.kernel, number)

    @property
    def emitters(self) -> Sequence[type[NestEmitter]]:
        """How each nest is written."""
        return [NestEmitter] * len(self.kernel.nests)

    def lower(self, function: mlir.OpView, asm: Assembler) -> None:
        del function
        write(self._built(), asm)

    def _built(self) -> Builder:
        builder = Builder()
        emit_kernel(self.kernel, self.schedule, builder, self.emitters)
        return builder

    def tried(self: Nested) -> Nested | str:
        try:
            builder = self._built()
            trial = Assembler("trial", 64, max(len(self.kernel.scalar_arguments), 1), range(64))
            write(builder, trial)
            trial.finish()
        except (Unsupported, ModuleError) as reason:
            return str(reason)
        return self

    def describe(self) -> str:
        tile = self.schedule.tiles[0] if self.schedule.tiles else None
        if tile is None:
            return ""
        panels = " panels" if self.schedule.packed else " staged" if self.schedule.staged else ""
        return f"columns={_loop(tile.loop)} rows={_loop(tile.unroll_loop)} by={tile.unroll}{panels}"


def _loop(loop: int | None) -> str:
    return "none" if loop is None else f"loop{loop}"
