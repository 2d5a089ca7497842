"""Transforms of tiles by constant matrices, as before and after the products of Winograd convolutions.

Lanes along the channels, a tile in registers; bias, activation and addition follow on the values there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.constraints import TileNumbers
from eyas.codegen.common.distribute import distribute_transforms, transform_order
from eyas.codegen.common.kernel import Kernel
from eyas.codegen.common.schedule import Schedule, Tile
from eyas.codegen.common.space import Knob
from eyas.codegen.common.strategies.nests import NO_NESTS
from eyas.codegen.common.transform import check_transform, transform_of
from eyas.codegen.llvm_cpu.emit import NestEmitter
from eyas.codegen.llvm_cpu.emit_transform import TransformEmitter
from eyas.codegen.llvm_cpu.strategies.base import NestStrategy
from eyas.codegen.llvm_cpu.strategies.rows import choose_tile
from eyas.targets import Target


@dataclass(frozen=True)
class Transforms(NestStrategy):
    name: ClassVar[str] = "transforms"
    part_of: ClassVar[str] = "contraction"
    takes_matrices: ClassVar[bool] = True
    emitter: ClassVar[type[NestEmitter]] = TransformEmitter

    @classmethod
    def choose(cls, found: Analysis, target: Target) -> Transforms | str:
        kernel = found.default
        if isinstance(kernel, str):
            return NO_NESTS
        transform = transform_of(kernel.nests[0]) if len(kernel.nests) == 1 else None
        if transform is None:
            return "no transform of tiles"
        tile = choose_tile(kernel.nests[0], target)
        if tile.loop is None or tile.loop in (transform.p, transform.q, transform.i, transform.j):
            return "no contiguous loop outside of the tiles"
        tile = Tile(tile.width, tile.loop)
        return cls(kernel, Schedule((tile,), distribute_transforms(kernel, tile, transform, target)))

    @classmethod
    def check(cls, schedule: Schedule, kernel: Kernel) -> str | None:
        if (problem := check_transform(schedule, kernel) or super().check(schedule, kernel)) is not None:
            return problem
        tile = schedule.tiles[0]
        if tile.vectors != 1:
            return f"tiles[0].vectors is {tile.vectors}; a tile of a transform has one vector for each element"
        if tile.unroll_loop is not None or tile.inside:
            return "tiles[0].unroll_loop and tiles[0].inside must be left out: a transform has no rows"
        if schedule.staged:
            return f"staged is {list(schedule.staged)}; a transform stages nothing"
        return None

    def tile_knobs(self, number: int, target: Target) -> list[Knob]:
        """Lanes can be chosen, and nothing else."""
        default = TileNumbers.of(number).values(self.schedule.tiles[number])
        wide = TileNumbers.of(number).path + ".width"
        found = super().tile_knobs(number, target)
        return [one if one.name == wide else replace(one, domain=(default[one.name],)) for one in found]

    def cut_order(self, tiles: Sequence[Tile]) -> Sequence[int]:
        transform = transform_of(self.kernel.nests[0])
        assert transform is not None
        return transform_order(self.kernel.nests[0], tiles[0], transform)

    def may_cut(self, loop: int) -> bool:
        transform = transform_of(self.kernel.nests[0])
        return transform is not None and loop not in (transform.p, transform.q)
