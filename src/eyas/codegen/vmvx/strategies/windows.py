"""Depthwise convolutions and pooling: columns are channels, rows are neighbours in the image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.distribute import distribute
from eyas.codegen.common.kernel import Kernel
from eyas.codegen.common.schedule import Schedule, Tile
from eyas.codegen.common.sizes import ONE
from eyas.codegen.common.strategies.nests import NO_NESTS
from eyas.codegen.vmvx.emit import NestEmitter
from eyas.codegen.vmvx.emit_sum import why_no_rows, without_padding
from eyas.codegen.vmvx.emit_window import LEVELS, WindowEmitter, pooled_of
from eyas.codegen.vmvx.strategies.nests import NestStrategy
from eyas.module.vmvx_isa import PANEL, UNIT_ROWS
from eyas.targets import Target


@dataclass(frozen=True)
class Windows(NestStrategy):
    name: ClassVar[str] = "windows"

    @classmethod
    def choose(cls, found: Analysis, target: Target) -> Windows | str:
        kernel = found.default
        if isinstance(kernel, str):
            return NO_NESTS
        if len(kernel.nests) != 1 or not kernel.nests[0].statements[0].reductions:
            return "no window that is summed up"
        stripped = without_padding(kernel.nests[0])
        if isinstance(stripped, str):
            return stripped
        nest, windows = stripped
        reason = "no channels that are neighbours"
        for lane in reversed(nest.parallel):
            pooled = pooled_of(nest, lane, None)
            if isinstance(pooled, str):
                reason = pooled
                continue
            rows = [
                loop
                for loop in nest.parallel
                if loop != lane
                and nest.loops[loop] != ONE
                and not isinstance(pooled_of(nest, lane, loop), str)
                and why_no_rows(windows, lane, loop) is None
            ]
            if len(nest.statements[0].reductions) < LEVELS and not windows:
                return "no window of two dimensions"
            tile = Tile(PANEL, lane, 1, rows[-1] if rows else None, UNIT_ROWS if rows else 1)
            return cls(kernel, Schedule((tile,), distribute(kernel, [tile], target))).tried()
        return reason

    @classmethod
    def check(cls, schedule: Schedule, kernel: Kernel) -> str | None:
        if len(kernel.nests) != 1 or not kernel.nests[0].statements[0].reductions:
            return "tiles: the dispatch has no window that is summed up"
        return super().check(schedule, kernel)

    @property
    def emitters(self) -> list[type[NestEmitter]]:
        return [WindowEmitter]
