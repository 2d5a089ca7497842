"""Transforms of tiles by constant matrices, as before and after the products of Winograd convolutions.

A thread has a whole tile of one channel in registers, and its neighbours those of neighbouring channels; bias,
activation and addition follow on the values there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.emission.tile_loads import Block
from eyas.codegen.common.emission.transform_body import TransformBody
from eyas.codegen.common.kernel import Kernel
from eyas.codegen.common.sizes import Size
from eyas.codegen.common.space import Constraint, powers_of_two
from eyas.codegen.common.strategies.nests import NO_NESTS
from eyas.codegen.common.transform import transform_of
from eyas.codegen.gpu.axis import Axis
from eyas.codegen.gpu.interface import Interface
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.points import each, each_piece
from eyas.codegen.gpu.strategies.base import THREADS, KernelStrategy, knob, powers
from eyas.codegen.gpu.thread_tile import ThreadTile, contiguous_loop
from eyas.targets import Target
from eyas.targets.gpu import GpuTarget

_THREADS = 128


@dataclass(frozen=True)
class TransformKnobs:
    threads: int = knob(THREADS)


class TransformTile(TransformBody, ThreadTile):
    """One thread's tile."""


@dataclass(frozen=True)
class Transforms(KernelStrategy):
    name: ClassVar[str] = "transforms"
    part_of: ClassVar[str] = "contraction"
    takes_matrices: ClassVar[bool] = True
    knobs_type: ClassVar[type] = TransformKnobs
    knobs: TransformKnobs

    @classmethod
    def choose(cls, found: Analysis, target: Target) -> Transforms | str:
        assert isinstance(target, GpuTarget)
        kernel = cls.kernel_of(found)
        return kernel if isinstance(kernel, str) else cls(kernel, TransformKnobs(min(_THREADS, target.max_threads)))

    @classmethod
    def kernel_of(cls, found: Analysis) -> Kernel | str:
        kernel = found.plain
        if isinstance(kernel, str):
            return NO_NESTS
        if len(kernel.nests) != 1 or transform_of(kernel.nests[0]) is None:
            return "no transform of tiles"
        return kernel

    @classmethod
    def constraints(cls, kernel: Kernel, of: Any) -> list[Constraint]:
        return powers(of, "threads")

    @classmethod
    def domains(cls, kernel: Kernel, target: GpuTarget) -> dict[str, Sequence[int]]:
        return {"threads": powers_of_two(1, target.max_threads)}

    @property
    def tiles(self) -> Axis:
        """The loops around a tile; the one along which results are neighbours counts fastest."""
        nest = self.kernel.nests[0]
        transform = transform_of(nest)
        assert transform is not None
        around = [loop for loop in nest.parallel if loop not in (transform.p, transform.q)]
        lane = contiguous_loop(nest, around)
        return Axis(nest, (*(loop for loop in around if loop != lane), *([] if lane is None else [lane])))

    @property
    def workgroups(self) -> Sequence[tuple[Size, int]]:
        return [(self.tiles.extent, self.knobs.threads)]

    def emit(self, interface: Interface) -> None:
        memory, nest, tiles = Memory(self.kernel, interface), self.kernel.nests[0], self.tiles
        tile = TransformTile(memory, nest)
        nothing: list[mlir.Value | None] = [None] * len(nest.loops)

        def run(number: mlir.Value) -> None:
            tile.run(Block(tiles.place(memory, nothing, number), 1, 1, None))

        def run_piece(first: mlir.Value) -> None:
            number = arith.AddIOp(first, interface.thread).result
            each(number, memory.size(tiles.extent), interface.index(1), run, most_once=True)

        each_piece(memory, tiles.extent, self.knobs.threads, run_piece)
