"""What every strategy of every target offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir

from eyas.codegen.common.kernel import Kernel
from eyas.codegen.common.sizes import Size
from eyas.targets import Target


@dataclass(frozen=True)
class GridAxis:
    """One axis of the workgroup grid: `loop` in pieces of `tile`."""

    loop: int
    extent: Size
    tile: int


@dataclass(frozen=True)
class Strategy(ABC):
    """One way to lower a dispatch. Instances are a choice: the kernel and the knobs for it. How it lowers is for the
    target's own base class to say."""

    name: ClassVar[str]
    part_of: ClassVar[str] = ""
    """The strategy, or group of strategies, that it is a form of, with which it is switched off."""
    takes_matrices: ClassVar[bool] = False
    """Whether kernels that read constant matrices are for it."""
    works_in_place: ClassVar[bool] = True
    """Whether a result may lie where an operand does that the loop nests read only before they write there."""

    @classmethod
    @abstractmethod
    def choose(cls, kernel: Kernel | None, target: Target) -> Strategy | str:
        """The strategy with its default knobs for this kernel, or the reason why it does not apply. What is chosen here
        must lower: buffers are shared and weights are packed on the strength of it."""

    @property
    @abstractmethod
    def grid(self) -> tuple[GridAxis, ...]:
        """How many workgroups the dispatch has, per axis."""

    @classmethod
    def from_attribute(cls, schedule: mlir.DictAttr, kernel: Kernel | None) -> Strategy | str:
        """The strategy with knobs that were noted on the function, or why they do not fit the kernel."""
        del schedule, kernel
        return cls()

    def schedule_attribute(self) -> mlir.DictAttr:
        """The knobs, to be noted on the function."""
        return mlir.DictAttr.get({})

    @property
    def packable(self) -> tuple[int, ...]:
        """Bindings that would be read faster in panels (see `panels`), when they are weights."""
        return ()

    def describe(self) -> str:
        """Knobs in words, for `eyas explain`."""
        return ""

    def remarks(self, target: Target) -> list[str]:
        """What keeps the code from being as fast as the machine, for `eyas explain`."""
        del target
        return []
