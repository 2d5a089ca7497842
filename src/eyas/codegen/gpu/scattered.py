"""What a scatter writes where: its target as slots, and the slot of each update.

    tm_tensor.scatter {dimension_map = [0]} ins(%updates : 20x1x8, %indices : 20x1) outs(%original : 10x8)

A slot is a run of neighbours that an update writes as a whole (rows of 8 above), or a single element where windows are
small or are not whole runs. Updates are numbered in the order in which they take effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

from eyas.codegen.common.lone import SCATTER, LoneOp, apply_body, read_place
from eyas.codegen.common.places import Filled, Window
from eyas.codegen.common.sizes import ONE, ZERO, Size, product, row_major_strides
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.points import decode

# Runs of fewer elements are not worth a workgroup's attention as a whole.
_LEAST_RUN = 32


@dataclass(frozen=True, eq=False)
class Scattered:
    """A scatter; `run` is the number of elements of a slot."""

    kernel: LoneOp
    run: Size

    @staticmethod
    def of(kernel: LoneOp | None) -> Scattered | str:
        """Reads a scatter, or says why it cannot."""
        if kernel is None or kernel.op.name != SCATTER:
            return "it is no scatter"
        original, result = kernel.operands[2], kernel.results[0]
        if isinstance(original, Window) and (original.offset or original.strides != row_major_strides(original.shape)):
            return "what it changes is a slice"
        if isinstance(original, Filled) and original.scalar is None:
            return "what it changes is undefined"
        if result is None or isinstance(result.element, mlir.ComplexType):
            return "it is of complex numbers"
        return Scattered(kernel, _run(kernel))

    @property
    def updates(self) -> Size:
        """How many there are."""
        shape = self.kernel.operands[0].shape
        return shape[0] if self.run != ONE else product(shape)

    @property
    def slots(self) -> Size:
        shape = self.kernel.operands[2].shape
        return product(shape[: len(shape) - _whole_dims(self.kernel)]) if self.run != ONE else product(shape)

    @property
    def assigns(self) -> bool:
        """Whether a new value does not depend on the old one."""
        return not list(self.kernel.body.arguments[1].uses)

    def slot(self, memory: Memory, update: mlir.Value) -> tuple[mlir.Value, mlir.Value]:
        """Where an update goes, and whether that is inside of the tensor."""
        updates, indices, original = self.kernel.operands
        rank, shape = len(original.shape), original.shape
        number, window = self._window(memory, update)
        position = [memory.at.index(0)] * (rank - len(window)) + window
        for depth, dim in enumerate(mlir.DenseI64ArrayAttr(self.kernel.op.attributes["dimension_map"])):
            index = read_place(memory, indices, [number, memory.at.index(depth)])
            position[dim] = memory.add(position[dim], arith.IndexCastOp(mlir.IndexType.get(), index).result)
        kept = rank - _whole_dims(self.kernel) if self.run != ONE else rank
        inside = memory.at.constant(mlir.IntegerType.get_signless(1), 1)
        slot = memory.at.index(0)
        for index, size, stride in zip(position, shape, row_major_strides(shape[:kept]), strict=False):
            inside = arith.AndIOp(inside, memory.in_range(index, size)).result
            slot = memory.add(slot, memory.scaled(index, stride))
        del updates
        return slot, inside

    def value(self, memory: Memory, update: mlir.Value, element: mlir.Value, old: mlir.Value | None) -> mlir.Value:
        """What an update makes of an element of its slot."""
        updates = self.kernel.operands[0]
        number, window = self._window(memory, update)
        if self.run != ONE:
            whole = _whole_dims(self.kernel)
            window[len(window) - whole :] = decode(memory, element, updates.shape[len(updates.shape) - whole :])
        new = read_place(memory, updates, [number, *window])
        return apply_body(memory, self.kernel.body, [new, old])[0]

    def old(self, memory: Memory, address: mlir.Value) -> mlir.Value:
        """An element of what is changed, before."""
        original = self.kernel.operands[2]
        if isinstance(original, Filled):
            return read_place(memory, original, [])
        return memory.load(original.storage, address, 1, ZERO, None)

    def _window(self, memory: Memory, update: mlir.Value) -> tuple[mlir.Value, list[mlir.Value]]:
        """The row of the indices that an update belongs to, and where in its window it is (its start, for a run)."""
        shape = self.kernel.operands[0].shape
        if self.run != ONE:
            return update, [memory.at.index(0)] * (len(shape) - 1)
        number, *window = decode(memory, update, shape)
        return number, window


def _run(kernel: LoneOp) -> Size:
    """Elements that updates write as wholes: those of trailing dimensions that windows have in full."""
    window, whole = kernel.operands[0].shape[1:], _whole_dims(kernel)
    run = product(window[len(window) - whole :])
    rest: Sequence[Size] = window[: len(window) - whole]
    is_short = run.static is not None and run.static < _LEAST_RUN
    return ONE if is_short or any(size != ONE for size in rest) else run


def _whole_dims(kernel: LoneOp) -> int:
    """Trailing dimensions that no index moves and that windows have in full."""
    window, shape = kernel.operands[0].shape[1:], kernel.operands[2].shape
    moved = set(mlir.DenseI64ArrayAttr(kernel.op.attributes["dimension_map"]))
    count = 0
    while count < len(window) and len(shape) - 1 - count not in moved and window[-1 - count] == shape[-1 - count]:
        count += 1
    return count
