"""Transforms of tiles by constant matrices, as before and after the products of Winograd convolutions.

Lanes along the channels, a tile in registers; bias, activation and addition follow on the values there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir

from eyas.codegen.common.kernel import Kernel
from eyas.codegen.common.schedule import Schedule, Tile
from eyas.codegen.common.strategy import GridAxis
from eyas.codegen.common.transform import TileTransform, transform_of
from eyas.codegen.llvm_cpu.emit import emit_kernel
from eyas.codegen.llvm_cpu.emit_transform import TransformEmitter
from eyas.codegen.llvm_cpu.interface import Interface
from eyas.codegen.llvm_cpu.strategies.base import NestStrategy
from eyas.codegen.llvm_cpu.strategies.rows import choose_tile
from eyas.targets import Target

# A tile takes some 100 cycles for each vector of channels; this many elements are worth a workgroup.
_MINIMUM_POINTS = 16_384
_WORKGROUPS = 16


@dataclass(frozen=True)
class Transforms(NestStrategy):
    name: ClassVar[str] = "transforms"
    part_of: ClassVar[str] = "contraction"
    takes_matrices: ClassVar[bool] = True

    @classmethod
    def choose(cls, kernel: Kernel | None, target: Target) -> Transforms | str:
        if kernel is None:
            return "not expressible as loop nests"
        transform = transform_of(kernel.nests[0]) if len(kernel.nests) == 1 else None
        if transform is None:
            return "no transform of tiles"
        tile = choose_tile(kernel.nests[0], target)
        if tile.vector_loop is None or tile.vector_loop in (transform.p, transform.q, transform.i, transform.j):
            return "no contiguous loop outside of the tiles"
        tile = Tile(tile.width, tile.vector_loop)
        return cls(kernel, Schedule((tile,), distribute_tiles(kernel, tile, transform)))

    def lower(self, function: mlir.OpView, module: mlir.Module) -> None:
        with mlir.InsertionPoint(module.body), function.operation.location:
            name = mlir.StringAttr(function.attributes["sym_name"]).value
            interface = Interface(name, len(self.kernel.scalar_arguments))
            emit_kernel(self.kernel, self.schedule, interface, TransformEmitter)
            interface.finish()


def distribute_tiles(
    kernel: Kernel, tile: Tile, transform: TileTransform, whole: int | None = None
) -> tuple[GridAxis, ...]:
    """Cuts the loops over tiles, but for one that stays `whole`, and then the channels."""
    nest = kernel.nests[0]
    assert tile.vector_loop is not None
    loops = [loop for loop in nest.parallel if loop not in (transform.p, transform.q, tile.vector_loop)]
    elements = nest.loops[transform.i] * nest.loops[transform.j]
    for loop in [*loops, tile.vector_loop]:
        elements = elements * nest.loops[loop]
    loops = [loop for loop in loops if loop != whole]
    wanted = min(_WORKGROUPS, (elements.static or _WORKGROUPS * _MINIMUM_POINTS) // _MINIMUM_POINTS)
    axes: list[GridAxis] = []
    count = 1
    for loop in [*loops, tile.vector_loop]:
        extent, step = nest.loops[loop], tile.width if loop == tile.vector_loop else 1
        if extent.static is None or len(axes) == 3 or count >= wanted:
            continue
        blocks = -(-extent.static // step)
        pieces = min(blocks, -(-wanted // count))
        if pieces > 1:
            axes.append(GridAxis(loop, extent, -(-blocks // pieces) * step))
            count *= -(-extent.static // axes[-1].tile)
    return tuple(reversed(axes))
