"""Products and convolutions through shared memory: which are, and that they are right in every shape of tile.

The device of the tests may be a CPU that plays one; code for a GPU runs there all the same.
"""

from __future__ import annotations

import numpy as np
import pytest
from torch_mlir import ir as mlir

import eyas
from eyas.codegen.gpu.strategies import products
from eyas.codegen.gpu.strategies.products import Products, TileKnobs
from eyas.codegen.spirv.compile import BACKEND
from eyas.ir import make_context
from eyas.targets import Target

torch = pytest.importorskip("torch")
nn = torch.nn

HOPPER = "vulkan:hopper"
GOOD = TileKnobs(threads=64, columns=8, row_points=4, column_points=4, depth=16, slices=1, buffers=2)


class Product(nn.Module):
    def forward(self, a, b, bias, residual):
        return torch.relu(a @ b + bias) + residual


class Turned(nn.Module):
    def forward(self, a, b):
        return a @ b.transpose(-1, -2)


def block(*layers):
    return nn.Sequential(*layers, nn.ReLU6())


def product(m, n, k):
    return Product(), (torch.randn(m, k), torch.randn(k, n), torch.randn(n), torch.randn(m, n))


PROGRAMS = {
    "whole": lambda: product(64, 64, 64),
    "odd": lambda: product(33, 19, 47),
    "one group of columns": lambda: product(70, 16, 20),
    "batches of products": lambda: (Turned(), (torch.randn(3, 40, 24), torch.randn(3, 17, 24))),
    "one weight for a batch": lambda: (nn.Linear(36, 40), (torch.randn(3, 19, 36),)),
    "window": lambda: (block(nn.Conv2d(16, 32, 3, 1, 1)), (torch.randn(2, 16, 9, 7),)),
    "window, odd channels": lambda: (block(nn.Conv2d(3, 18, 5, 2, 2)), (torch.randn(2, 3, 15, 15),)),
    "dilated": lambda: (block(nn.Conv2d(20, 17, 3, 1, 2, 2)), (torch.randn(1, 20, 9, 9),)),
    "point, stride": lambda: (block(nn.Conv2d(24, 40, 1, 2)), (torch.randn(2, 24, 9, 9),)),
}
KNOBS = {
    "small": GOOD,
    "wide": TileKnobs(64, 8, 8, 8, 16, 1, 2),
    "one buffer": TileKnobs(128, 16, 4, 8, 8, 1, 1),
    "slices": TileKnobs(128, 8, 4, 4, 16, 4, 2),
    "short": TileKnobs(32, 4, 8, 4, 4, 2, 1),
}


def right(model, inputs, target=HOPPER, **options) -> None:
    with torch.no_grad():
        want = model.double()(*(one.double() for one in inputs)).numpy()
    module = eyas.compile(model.float().eval(), tuple(inputs), target=target, device="vulkan", **options)
    assert "products" in {kernel["strategy"] for kernel in module.manifest["kernels"]}
    np.testing.assert_allclose(module(*inputs).numpy(), want, rtol=1e-4, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize("knobs", KNOBS.values(), ids=KNOBS)
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_numbers_are_those_of_torch(program, knobs, monkeypatch, vulkan_device):
    monkeypatch.setattr(products, "choose_knobs", lambda factors, target: knobs)
    torch.manual_seed(0)
    right(*program())


def test_rows_may_vary(monkeypatch, vulkan_device):
    monkeypatch.setattr(products, "choose_knobs", lambda factors, target: KNOBS["slices"])
    torch.manual_seed(0)
    model = nn.Linear(24, 32).eval()
    shapes = ({0: torch.export.Dim("rows", min=2, max=500)},)
    module = eyas.compile(model, (torch.randn(40, 24),), target=HOPPER, device="vulkan", dynamic_shapes=shapes)
    assert "products" in {kernel["strategy"] for kernel in module.manifest["kernels"]}
    for rows in (3, 32, 77):
        x = torch.randn(rows, 24)
        torch.testing.assert_close(module(x), model(x).detach(), rtol=1e-4, atol=1e-5)


def test_what_is_not_finite_stays_where_it_is(monkeypatch, vulkan_device):
    """Steps behind the end of a sum and pixels beyond the image are zeros, whatever lies there."""
    monkeypatch.setattr(products, "choose_knobs", lambda factors, target: KNOBS["slices"])
    model, x = nn.Conv2d(5, 20, 3, 1, 1).eval(), torch.randn(1, 5, 6, 6)
    x[0, 0, 5, 5], x[0, 4, 0, 0] = float("inf"), float("nan")
    module = eyas.compile(model, (x,), target=HOPPER, device="vulkan")
    torch.testing.assert_close(module(x), model(x).detach(), rtol=1e-4, atol=1e-5, equal_nan=True)


def strategy_of(m: int, n: int, k: int, target: str) -> str:
    a, b, c = f"tensor<{m}x{k}xf32>", f"tensor<{k}x{n}xf32>", f"tensor<{m}x{n}xf32>"
    text = f"""
func.func @product(%a: {a}, %b: {b}) -> {c} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {c}
  %f = linalg.fill ins(%zero : f32) outs(%e : {c}) -> {c}
  %m = linalg.matmul ins(%a, %b : {a}, {b}) outs(%f : {c}) -> {c}
  return %m : {c}
}}"""
    with make_context():
        return BACKEND.compile(mlir.Module.parse(text), Target.parse(target), frozenset()).strategy


def test_only_where_shared_memory_is_near_and_rows_are_many():
    assert strategy_of(64, 64, 64, HOPPER) == "products"
    assert strategy_of(64, 64, 64, "vulkan:lavapipe") == "contraction"
    assert strategy_of(4, 64, 64, HOPPER) == "contraction"
    assert strategy_of(64, 8, 64, HOPPER) == "contraction"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({}, None),
        ({"threads": 48}, "threads is 48; it must be a power of two"),
        ({"row_points": 6}, "row_points is 6; it must be a multiple of 4, and at most 64"),
        ({"depth": 0}, "depth is 0; it must be a multiple of 4, and at most 64"),
        ({"slices": 3}, "slices is 3; it must divide threads / columns = 8"),
        ({"columns": 128}, "slices is 1; it must divide threads / columns = 0"),
        ({"buffers": 3}, "buffers is 3; it must be 1 or 2"),
    ],
)
def test_knobs_are_checked(change, problem):
    from dataclasses import replace

    assert Products.check(None, replace(GOOD, **change)) == problem
