"""What a dispatch is, in numbers: its loops and how operands move along them. Plain data that a database keeps, so that
trials of years ago have features that were thought of today."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from math import prod
from typing import Any

from torch_mlir import ir as mlir

from eyas.codegen.common.analysis import Analysis, analysis_of
from eyas.codegen.common.flops import count_flops
from eyas.codegen.common.kernel import Kernel, Nest
from eyas.codegen.common.sizes import Size
from eyas.codegen.common.traffic import count_bytes
from eyas.ir.values import element_bytes
from eyas.targets import Target

UNKNOWN = 64
"""The extent of a loop that is known only at run time, where a number is needed."""


@dataclass(frozen=True)
class Operand:
    """An access of a nest: elements that neighbours along each loop are apart, 0 where it stays."""

    element_bytes: int
    strides: tuple[int, ...]
    is_written: bool

    def moves(self, loop: int | None) -> bool:
        return loop is not None and loop < len(self.strides) and self.strides[loop] != 0

    def elements(self, pieces: tuple[int, ...]) -> int:
        """How many of its elements so many points of each loop touch."""
        return prod(piece for stride, piece in zip(self.strides, pieces, strict=True) if stride)


@dataclass(frozen=True)
class LoopNest:
    loops: tuple[int, ...]
    reductions: tuple[int, ...]
    operands: tuple[Operand, ...]

    @cached_property
    def points(self) -> int:
        return prod(self.loops)

    @cached_property
    def depth(self) -> int:
        """Points of all sums together."""
        return prod(self.loops[loop] for loop in self.reductions)


@dataclass(frozen=True)
class Facts:
    """Loop nests as they are by default (`nests`) and when rows go one by one (`plain`), which number loops otherwise;
    multiply-adds counted as two, and the bytes that must be moved."""

    nests: tuple[LoopNest, ...]
    plain: tuple[LoopNest, ...]
    flops: int
    bytes: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: Any) -> Facts:
        """Raises KeyError, TypeError or ValueError for what `to_json` did not make."""

        def nests(given: Any) -> tuple[LoopNest, ...]:
            return tuple(
                LoopNest(
                    tuple(map(int, one["loops"])),
                    tuple(map(int, one["reductions"])),
                    tuple(
                        Operand(int(two["element_bytes"]), tuple(map(int, two["strides"])), bool(two["is_written"]))
                        for two in one["operands"]
                    ),
                )
                for one in given
            )

        return Facts(nests(data["nests"]), nests(data["plain"]), int(data["flops"]), int(data["bytes"]))


def facts_of(function: mlir.OpView, target: Target, found: Analysis | None = None) -> Facts:
    """The facts of a dispatch function, in any form that it has before code is made of it."""
    found = analysis_of(function, {}, target.near_bytes) if found is None else found
    nests = _nests(found.default)
    plain = nests if found.block_of_products is None else _nests(found.plain)
    return Facts(nests, plain, count_flops(function) or 0, count_bytes(function) or 0)


def _nests(kernel: Kernel | str) -> tuple[LoopNest, ...]:
    return () if isinstance(kernel, str) else tuple(map(_nest, kernel.nests))


def _nest(nest: Nest) -> LoopNest:
    written = {id(one) for statement in nest.statements for one in statement.outputs}
    operands = [
        Operand(element_bytes(one.storage.element), tuple(map(_number, one.strides)), id(one) in written)
        for one in nest.accesses
    ]
    return LoopNest(tuple(map(_number, nest.loops)), tuple(sorted(nest.reductions)), tuple(operands))


def _number(size: Size) -> int:
    return size.static if size.static is not None else size.factor * UNKNOWN ** len(size.symbols)
