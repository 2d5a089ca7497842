"""Squares of registers are turned around by shuffles."""

from __future__ import annotations

import numpy as np
import pytest
from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

from eyas.codegen.common.emission.transpose import transpose_registers
from eyas.ir import make_context


@pytest.mark.parametrize("width", [2, 4, 8, 16])
def test_shuffles(width):
    def evaluate(value: mlir.Value) -> np.ndarray:
        """The lanes of a value that is made of shuffles of constants."""
        op = value.owner
        if op.name == "arith.constant":
            return np.array(mlir.DenseIntElementsAttr(op.attributes["value"]))
        both = np.concatenate([evaluate(operand) for operand in op.operands])
        return both[list(mlir.DenseI64ArrayAttr(op.attributes["mask"]))]

    square = np.arange(width * width, dtype=np.int32).reshape(width, width)
    with make_context(), mlir.Location.unknown():
        module = mlir.Module.create()
        type_ = mlir.VectorType.get([width], mlir.IntegerType.get_signless(32))
        with mlir.InsertionPoint(module.body):
            rows = [arith.ConstantOp(type_, mlir.DenseElementsAttr.get(row, type=type_)).result for row in square]
            turned = transpose_registers(rows)
            shuffles = sum(op.operation.name == "vector.shuffle" for op in module.body.operations)
        assert shuffles == width * (width.bit_length() - 1)
        np.testing.assert_array_equal([evaluate(value) for value in turned], square.T)
