"""Several loops of a nest that one number counts, the last of them fastest: pixels of a batch of images, steps of a sum
over windows and channels."""

from __future__ import annotations

from dataclasses import dataclass

from torch_mlir import ir as mlir

from eyas.codegen.common.emission.tile_loads import Indices
from eyas.codegen.common.kernel import Access, Nest
from eyas.codegen.common.sizes import ONE, Size, product
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.points import decode


@dataclass(frozen=True)
class Axis:
    nest: Nest
    loops: tuple[int, ...]

    @property
    def extent(self) -> Size:
        return product(self.sizes)

    @property
    def sizes(self) -> list[Size]:
        return [self.nest.loops[loop] for loop in self.loops]

    @property
    def inner(self) -> int:
        """The loop that counts fastest."""
        return self.loops[-1]

    def place(self, memory: Memory, indices: Indices, number: mlir.Value, access: Access | None = None) -> Indices:
        """The indices of a point; for an access alone they may be others that lead to the same address."""
        placed = list(indices)
        found = decode(memory, number, self.sizes)
        if access is not None and self._is_line(access):
            found = [memory.at.index(0)] * (len(self.loops) - 1) + [number]
        for loop, index in zip(self.loops, found, strict=True):
            placed[loop] = index
        return placed

    def _is_line(self, access: Access) -> bool:
        """Whether all points lie in memory as far apart as neighbours along the last loop do."""
        if any(guard.coefficients[loop] for guard in access.guards for loop in self.loops):
            return False
        if isinstance(access.otherwise, Access):
            return False
        pairs = zip(self.loops, self.loops[1:], strict=False)
        return all(
            self.nest.loops[one] == ONE or access.strides[one] == access.strides[other] * self.nest.loops[other]
            for one, other in pairs
        )
