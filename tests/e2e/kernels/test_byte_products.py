"""Products of bytes with sums in i32, by the instructions that each CPU has for it; against NumPy, exactly."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tools.cpus import TARGETS, runs_here

import eyas
from eyas.pipelines import driver
from eyas.pipelines.request import Phase, Request
from eyas.targets import Target

VNNI = "llvm-cpu:x86_64:x86-64-v4:+avx512vnni"
CPUS = {**TARGETS, **({"vnni": VNNI} if TARGETS.get("avx512") and runs_here(VNNI) else {}), "vmvx": "vmvx"}

PRODUCT = """
func.func @main(%x: tensor<{m}x{k}xi8>, %y: tensor<{k}x{n}xi8>, %c: tensor<{m}x{n}xi32>) -> tensor<{m}x{n}xi32> {{
  %z = linalg.matmul ins(%x, %y : tensor<{m}x{k}xi8>, tensor<{k}x{n}xi8>) outs(%c : tensor<{m}x{n}xi32>)
    -> tensor<{m}x{n}xi32>
  return %z : tensor<{m}x{n}xi32>
}}
"""


def values(rng, *shape):
    """All bytes, the extreme ones often."""
    found = rng.integers(-128, 128, shape).astype(np.int8)
    found[rng.random(shape) < 0.2] = -128
    found[rng.random(shape) < 0.2] = 127
    return found


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("m, k, n", [(1, 64, 48), (7, 40, 33), (17, 36, 100), (5, 66, 16), (3, 35, 20), (40, 128, 96)])
def test_products_of_bytes(rng, cpu, m, k, n):
    x, y = values(rng, m, k), values(rng, k, n)
    c = rng.integers(-1000, 1000, (m, n)).astype(np.int32)
    module = eyas.compile(PRODUCT.format(m=m, k=k, n=n), target=CPUS[cpu])
    np.testing.assert_array_equal(module(x, y, c), x.astype(np.int32) @ y.astype(np.int32) + c)


@pytest.mark.parametrize("cpu, group", [("sse2", 2), ("avx2", 2), ("avx512", 2), ("vnni", 4)])
def test_groups_of_neighbours_are_chosen(cpu, group):
    target = VNNI if cpu == "vnni" else f"llvm-cpu:x86_64:x86-64{dict(avx2='-v3', avx512='-v4').get(cpu, '')}"
    request = Request(PRODUCT.format(m=40, k=128, n=96), targets=(Target.parse(target),), last=Phase.HAL)
    assert f"dot = {group}" in driver.run(request).as_text()
