"""Recurrent layers: all steps in one dispatch, states and gates in memory of the workgroup."""

from __future__ import annotations

from dataclasses import dataclass

from eyas.codegen.common.kernel import Kernel
from eyas.codegen.common.schedule import Panels, Tile
from eyas.codegen.common.strategies.recurrence import RowsInSteps
from eyas.codegen.vmvx.emit import NestEmitter
from eyas.codegen.vmvx.emit_product import ProductEmitter
from eyas.codegen.vmvx.strategies.attention import is_product, tile_of_rows
from eyas.codegen.vmvx.strategies.nests import NestStrategy
from eyas.targets import Target


@dataclass(frozen=True)
class Recurrence(RowsInSteps, NestStrategy):
    @classmethod
    def tile(cls, kernel: Kernel, number: int, target: Target) -> Tile:
        del target
        return tile_of_rows(kernel, number)

    @property
    def emitters(self) -> list[type[NestEmitter]]:
        pairs = zip(self.kernel.nests, self.schedule.tiles, strict=True)
        return [ProductEmitter if is_product(nest, tile) else NestEmitter for nest, tile in pairs]

    @property
    def packable(self) -> tuple[Panels, ...]:
        """Only products read panels."""
        pairs = zip(self.kernel.nests, self.schedule.tiles, strict=True)
        products = [nest for nest, tile in pairs if is_product(nest, tile)]
        read = {access.storage.binding for nest in products for access in nest.accesses}
        return tuple(panels for panels in super().packable if panels.binding in read)
