"""Recurrent layers: all steps in one dispatch, states and gates near.

Rows of a batch depend on nothing of each other, so they are shared out in blocks, each of which goes through all steps
by itself and uses each weight that it loads for all of its rows.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.kernel import Access, Kernel
from eyas.codegen.common.panels import why_not_packed
from eyas.codegen.common.schedule import Block, GridAxis, Panels, Schedule, Tile
from eyas.codegen.common.strategies.nests import NO_NESTS, NestStrategy
from eyas.targets import Target

# Rows of a block where it is not known how many there are, and at most: sums of them are kept in registers.
_ROWS_OF_UNKNOWN, _MOST_ROWS = 4, 12

Recurrent = TypeVar("Recurrent", bound="RowsInSteps")


@dataclass(frozen=True)
class RowsInSteps(NestStrategy):
    """Recurrent layers for any target: which tile each nest has is the target's to say."""

    name: ClassVar[str] = "recurrence"
    takes_steps: ClassVar[bool] = True
    works_in_place: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def tile(cls, kernel: Kernel, number: int, target: Target) -> Tile:
        """The tile of one nest."""

    @classmethod
    def choose(cls: type[Recurrent], found: Analysis, target: Target) -> Recurrent | str:
        if found.raw is None:
            return NO_NESTS
        if found.raw.steps is None:
            return "no steps that follow each other"
        block = _block(found, target)
        kernel = found.kernel(block)
        if isinstance(kernel, str):
            return kernel
        tiles = tuple(cls.tile(kernel, number, target) for number in range(len(kernel.nests)))
        grid = (GridAxis(0, max(kernel.block, 1)),) if kernel.common else ()
        return cls(kernel, Schedule(tiles, grid, block=block)).tried()

    @property
    def packable(self) -> tuple[Panels, ...]:
        """Weights of products, which every step reads in the same order."""
        found = []
        if not self.schedule.panels:
            return ()
        for nest, tile in zip(self.kernel.nests, self.schedule.tiles, strict=True):
            inputs = [source for source in nest.statements[0].inputs if isinstance(source, Access)]
            for binding in [source.storage.binding for source in inputs if nest.reductions]:
                if binding is None or binding in self.schedule.packed_bindings:
                    continue
                if why_not_packed(self.kernel, self.schedule.tiles, binding) is None:
                    found.append(Panels(binding, tile.lanes))
        return tuple(found)


def _block(found: Analysis, target: Target) -> Block | None:
    """Rows that go through the steps together: as many as each core gets."""
    assert found.raw is not None
    if not found.firsts:
        return None
    rows = found.raw.nests[-1].loops[found.raw.shared - 1].static
    size = _ROWS_OF_UNKNOWN if rows is None else min(_MOST_ROWS, -(-rows // max(target.cores, 1)))
    return Block(0, size) if size > 1 else None
