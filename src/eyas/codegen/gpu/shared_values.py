"""An array in the memory that the threads of a workgroup share, of elements as they are in registers."""

from __future__ import annotations

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, memref

from eyas.codegen.common.emission.values import stored_type
from eyas.codegen.gpu.interface import Interface


class SharedValues:
    """`count` elements; truths are kept as bytes."""

    def __init__(self, interface: Interface, element: mlir.Type, count: int):
        self.at, self.element = interface, element
        self.memory = interface.shared(stored_type(element), count)

    def load(self, index: mlir.Value) -> mlir.Value:
        value = memref.LoadOp(self.memory, [index]).result
        return value if value.type == self.element else arith.TruncIOp(self.element, value).result

    def store(self, value: mlir.Value, index: mlir.Value) -> None:
        stored = stored_type(self.element)
        value = value if stored == self.element else arith.ExtUIOp(stored, value).result
        memref.StoreOp(value, self.memory, [index])
