"""Products that hand rows to each other through softmax or other row-wise ops: attention.

A block of query rows goes through all nests before the next one, so that its scores stay in the first-level cache.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.distribute import distribute_heads
from eyas.codegen.common.kernel import Kernel
from eyas.codegen.common.schedule import Schedule, Tile
from eyas.codegen.common.strategies.nests import NO_NESTS, NestStrategy
from eyas.targets import Target

Attentive = TypeVar("Attentive", bound="BlocksOfRows")


@dataclass(frozen=True)
class BlocksOfRows(NestStrategy):
    """Attention for any target: which tile each nest has is the target's to say."""

    name: ClassVar[str] = "attention"

    @classmethod
    @abstractmethod
    def tile(cls, kernel: Kernel, number: int, target: Target) -> Tile:
        """The tile of one nest."""

    @classmethod
    def choose(cls: type[Attentive], found: Analysis, target: Target) -> Attentive | str:
        block = found.block_of_products
        kernel = found.kernel(block)
        if isinstance(kernel, str):
            return NO_NESTS
        if block is None:
            return "no rows that go through several nests in blocks"
        tiles = tuple(cls.tile(kernel, number, target) for number in range(len(kernel.nests)))
        return cls(kernel, Schedule(tiles, distribute_heads(kernel, tiles, target), block=block)).tried()
