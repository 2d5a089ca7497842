"""Vectors of lanes times a constant matrix."""

from __future__ import annotations

import numpy as np
from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

from eyas.codegen.common import linear_map
from eyas.codegen.common.emission.values import Memory


class LinearMap(linear_map.LinearMap[mlir.Value]):
    def __init__(self, matrix: np.ndarray, memory: Memory):
        super().__init__(matrix)
        self.memory = memory

    def add(self, total: mlir.Value, factor: float, value: mlir.Value) -> mlir.Value:
        if abs(factor) == 1.0:
            return _contracted((arith.AddFOp if factor > 0 else arith.SubFOp)(total, value))
        return _contracted(arith.AddFOp(total, self.times(factor, value)))

    def times(self, factor: float, value: mlir.Value) -> mlir.Value:
        vector = isinstance(value.type, mlir.VectorType)
        element = value.type.element_type if vector else value.type
        width = value.type.shape[0] if vector else 1
        return _contracted(arith.MulFOp(value, self.memory.splat(self.memory.at.constant(element, factor), width)))


def _contracted(op: mlir.OpView) -> mlir.Value:
    op.operation.attributes["fastmath"] = mlir.Attribute.parse("#arith.fastmath<contract>")
    return op.operation.results[0]
