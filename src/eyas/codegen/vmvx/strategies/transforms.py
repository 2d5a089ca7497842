"""Transforms of tiles by constant matrices: columns are channels, rows are tiles beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.distribute import distribute_transforms, transform_order
from eyas.codegen.common.kernel import Kernel
from eyas.codegen.common.schedule import Schedule, Tile
from eyas.codegen.common.sizes import ONE
from eyas.codegen.common.strategies.nests import NO_NESTS
from eyas.codegen.common.transform import TileTransform, check_transform, transform_of
from eyas.codegen.vmvx.emit import NestEmitter
from eyas.codegen.vmvx.emit_transform import TransformEmitter
from eyas.codegen.vmvx.strategies.nests import NestStrategy
from eyas.module.vmvx_isa import PANEL, UNIT_ROWS
from eyas.targets import Target


@dataclass(frozen=True)
class Transforms(NestStrategy):
    name: ClassVar[str] = "transforms"
    takes_matrices: ClassVar[bool] = True

    @classmethod
    def choose(cls, found: Analysis, target: Target) -> Transforms | str:
        kernel = found.default
        if isinstance(kernel, str):
            return NO_NESTS
        transform = transform_of(kernel.nests[0]) if len(kernel.nests) == 1 else None
        if transform is None:
            return "no transform of tiles"
        tile = _tile(kernel, transform)
        if tile is None:
            return "no contiguous loop outside of the tiles"
        grid = distribute_transforms(kernel, tile, transform, target)
        return cls(kernel, Schedule((tile,), grid)).tried()

    @classmethod
    def check(cls, schedule: Schedule, kernel: Kernel) -> str | None:
        return check_transform(schedule, kernel) or super().check(schedule, kernel)

    @property
    def emitters(self) -> list[type[NestEmitter]]:
        return [TransformEmitter]

    def cut_order(self, tiles: Sequence[Tile]) -> Sequence[int]:
        transform = transform_of(self.kernel.nests[0])
        assert transform is not None
        return transform_order(self.kernel.nests[0], tiles[0], transform)

    def may_cut(self, loop: int) -> bool:
        transform = transform_of(self.kernel.nests[0])
        return transform is not None and loop not in (transform.p, transform.q)


def _tile(kernel: Kernel, transform: TileTransform) -> Tile | None:
    nest = kernel.nests[0]
    outside = [loop for loop in nest.parallel if loop not in (transform.p, transform.q)]
    lanes = [loop for loop in outside if transform.source.strides[loop] == ONE and nest.loops[loop] != ONE]
    if not lanes:
        return None
    rows = [loop for loop in outside if loop not in lanes and nest.loops[loop] != ONE]
    # Rows run out evenly: 14 tiles are 7 and 7.
    count = min((rest for rest in (nest.loops[loop].static for loop in rows[-1:]) if rest), default=1)
    each = -(-count // -(-count // UNIT_ROWS))
    return Tile(PANEL, lanes[-1], 1, rows[-1] if rows else None, each if rows else 1)
