"""Addresses and loads of a register tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch_mlir import ir as mlir

from eyas.codegen.common.emission.transpose import transpose_registers
from eyas.codegen.common.emission.values import Memory
from eyas.codegen.common.kernel import Access
from eyas.codegen.common.sizes import Size

Indices = list[mlir.Value | None]
"""The index of each loop of a nest; None for loops that are not entered yet."""


@dataclass(frozen=True)
class Block:
    """A register tile in flight: where it starts, how large it is, which lanes of its last vector are on."""

    indices: Indices
    rows: int
    vectors: int
    mask: mlir.Value | None

    def mask_of(self, vector: int) -> mlir.Value | None:
        """Which lanes of a vector are on; None: all of them."""
        return self.mask if vector == self.vectors - 1 else None


@dataclass(frozen=True)
class TileContext:
    """What all tiles of a nest have in common: which loop gives the rows, and which the lanes."""

    memory: Memory
    row_loop: int | None
    lane_loop: int | None


class TileLoads:
    """Addresses and loads of one tile; a load that does not depend on row or vector is made once."""

    def __init__(
        self, context: TileContext, block: Block, width: int, outer: TileLoads | None = None, lanes: int | None = None
    ):
        self.memory, self.block, self.width = context.memory, block, width
        self.lane_loop = lanes if lanes is not None else context.lane_loop
        self.row_loop = context.row_loop
        self.bases: dict[int, mlir.Value] = {}
        self.values: dict[tuple, mlir.Value] = {}
        self.outer = outer

    def prepare(self, accesses: Sequence[Access]) -> None:
        """Computes the addresses at which accesses start now, where the insertion point is."""
        for access in accesses:
            self._base(access)

    def get(self, access: Access, row: int, vector: int) -> mlir.Value:
        depends_on_row = self._depends(access, self.row_loop)
        depends_on_lane = self._depends(access, self.lane_loop)
        key = (id(access), row if depends_on_row else 0, vector if depends_on_lane else 0)
        if key not in self.values:
            if self._is_transposed(access, vector):
                self._load_transposed(access, vector)
            else:
                self.values[key] = self._load(access, key[1], key[2], depends_on_lane)
        return self.values[key]

    def _is_transposed(self, access: Access, vector: int) -> bool:
        """Whether rows are neighbours in memory and lanes are not, in a square of both."""
        if self.lane_loop is None or self.row_loop is None or self.block.mask_of(vector) is not None or access.guards:
            return False
        square = self.width > 1 and self.block.rows == self.width and access.lane_stride is None
        return square and access.strides[self.row_loop] == Size(1) and access.strides[self.lane_loop].factor > 1

    def _load_transposed(self, access: Access, vector: int) -> None:
        """Loads the rows of all lanes of a vector, and transposes them."""
        memory, lane_loop = self.memory, self.lane_loop
        assert lane_loop is not None
        start = self.address(access, 0, vector)
        columns = []
        for lane in range(self.width):
            address = memory.add(start, memory.size(access.strides[lane_loop] * lane))
            columns.append(memory.load(access.storage, address, self.width, Size(1), None))
        for row, value in enumerate(transpose_registers(columns)):
            self.values[id(access), row, vector] = value

    def _depends(self, access: Access, loop: int | None) -> bool:
        if loop is None:
            return False
        if loop == self.lane_loop and access.lane_stride is not None:
            return True
        if access.strides[loop] != Size(0) or any(guard.coefficients[loop] for guard in access.guards):
            return True
        return isinstance(access.otherwise, Access) and self._depends(access.otherwise, loop)

    def _load(self, access: Access, row: int, vector: int, depends_on_lane: bool) -> mlir.Value:
        memory = self.memory
        width = self.width if depends_on_lane else 1
        stride = access.stride_of_lanes(self.lane_loop) if depends_on_lane and self.lane_loop is not None else Size(0)
        mask = self.block.mask_of(vector) if depends_on_lane else None
        address = self.address(access, row, vector)
        if not access.guards:
            return memory.load(access.storage, address, width, stride, mask)
        # A condition for all lanes is not made a mask: CPUs are slow where masks keep loads from faulting.
        lane = self.lane_loop
        apart = lane is None or stride != Size(1) or any(guard.coefficients[lane] for guard in access.guards)
        inside = self._guard(access, row, vector, width if apart else 1)
        otherwise = access.otherwise
        if isinstance(otherwise, Access):
            fallback = self._load(otherwise, row, vector, depends_on_lane)
        else:
            fallback = memory.scalar(otherwise)
        return memory.load_guarded(access.storage, address, width, stride, mask, inside, fallback)

    def _guard(self, access: Access, row: int, vector: int, width: int) -> mlir.Value:
        memory, condition = self.memory, None
        for guard in access.guards:
            position = memory.constant_index(guard.shift)
            for loop, coefficient in enumerate(guard.coefficients):
                if coefficient:
                    index = self.index(loop, row, vector) if width > 1 else self.scalar_index(loop, row, vector)
                    position = memory.add(position, memory.multiply(index, coefficient))
            inside = memory.in_range(position, guard.extent)
            condition = inside if condition is None else memory.both(condition, inside)
        assert condition is not None, "an access without guards"
        return memory.as_width(condition, condition.type, width) if width > 1 else condition

    def address(self, access: Access, row: int, vector: int) -> mlir.Value:
        """Linear element index of the first lane."""
        memory = self.memory
        base = self._base(access)
        if self.row_loop is not None and row:
            base = memory.add(base, memory.size(access.strides[self.row_loop] * row))
        if self.lane_loop is not None and vector:
            base = memory.add(base, memory.size(access.stride_of_lanes(self.lane_loop) * (vector * self.width)))
        return base

    def _base(self, access: Access) -> mlir.Value:
        if id(access) in self.bases:
            return self.bases[id(access)]
        memory, start = self.memory, None
        known: Indices = [None] * len(access.strides)
        if self.outer is not None:
            start, known = self.outer._base(access), self.outer.block.indices
        terms = [memory.size(size) for size in access.offset] if start is None else []
        terms += memory.row_start(access.storage) if start is None else []
        for loop, stride in enumerate(access.strides):
            index = self.block.indices[loop]
            if stride != Size(0) and index is not None and known[loop] is None:
                terms.append(memory.scaled(memory.index_in(access.storage, loop, index), stride))
        total = start if start is not None else self.memory.constant_index(0)
        for term in terms:
            total = memory.add(total, term)
        self.bases[id(access)] = total
        return total

    def index(self, loop: int, row: int, vector: int) -> mlir.Value:
        """The loop's index at a row and vector: a scalar, or a vector along the lanes."""
        scalar = self.scalar_index(loop, row, vector)
        return self.memory.iota(scalar, self.width) if loop == self.lane_loop and self.width > 1 else scalar

    def scalar_index(self, loop: int, row: int, vector: int) -> mlir.Value:
        memory, index = self.memory, self.block.indices[loop]
        if loop == self.row_loop and row:
            index = memory.add(index, memory.constant_index(row))
        if loop == self.lane_loop and vector:
            index = memory.add(index, memory.constant_index(vector * self.width))
        return index
