"""Products with constant matrices: few operations, and the right ones."""

from __future__ import annotations

import numpy as np
import pytest
from torch_mlir import ir as mlir

from eyas.codegen.common.emission.linear_map import LinearMap
from eyas.codegen.common.kernel import Kernel
from eyas.codegen.llvm_cpu.interface import Interface
from eyas.codegen.llvm_cpu.memory import Memory
from eyas.ir import make_context
from eyas.passes.optimize.toom_cook import matrices


def apply(matrix: np.ndarray, values: list[float]) -> tuple[list[float], int]:
    """The results, by evaluating the ops that were built on constants; and how many add or subtract."""
    with make_context(), mlir.Location.unknown():
        module = mlir.Module.create()
        with mlir.InsertionPoint(module.body):
            interface = Interface("main", 0)
        memory = Memory(Kernel([], [], 0, [], {}), interface)
        f64 = mlir.F64Type.get()
        with interface.body:
            inputs = [interface.constant(f64, value) for value in values]
            results = LinearMap(matrix, memory).apply(inputs)
        additions = 0

        def evaluate(op: mlir.Operation) -> float:
            if op.name == "arith.constant":
                return op.attributes["value"].value
            left, right = (known[value.owner] for value in op.operands)
            return {"arith.addf": left + right, "arith.subf": left - right, "arith.mulf": left * right}[op.name]

        known: dict[mlir.Operation, float] = {}
        for view in interface.block.operations:
            op = view.operation
            if op.results and isinstance(op.results[0].type, mlir.FloatType):
                known[op] = evaluate(op)
                additions += op.name in ("arith.addf", "arith.subf")
        return [known[result.owner] for result in results], additions


@pytest.mark.parametrize(
    "outputs, part, most", [(2, "input", 4), (2, "output", 4), (4, "input", 12), (4, "output", 12)]
)
def test_matrices_of_winograd(outputs, part, most):
    matrix = getattr(matrices(outputs), part)
    values = np.random.default_rng(0).standard_normal(matrix.shape[1])
    given, additions = apply(matrix, list(values))
    np.testing.assert_allclose(given, matrix @ values, rtol=0, atol=1e-14)
    assert additions <= most


@pytest.mark.parametrize("seed", range(20))
def test_random_matrices_with_equal_rows_and_columns(seed):
    """Signs and zeros at random, so that pairs of rows and of columns differ in signs, in all ways."""
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-1, 2, (4, 5)) * rng.choice([1.0, 0.5], (1, 5))
    matrix[:, 0] = 1.0  # no row of zeros
    values = rng.standard_normal(5)
    given, _ = apply(matrix, list(values))
    np.testing.assert_allclose(given, matrix @ values, rtol=0, atol=1e-14)
