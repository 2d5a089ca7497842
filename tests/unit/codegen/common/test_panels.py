"""Weights in panels: the order of elements, and products of many shapes that read them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
import cpus  # noqa: E402

import eyas  # noqa: E402
from eyas.codegen.common.panels import pack  # noqa: E402


def test_panels_are_contiguous_and_the_rest_follows():
    matrix = np.arange(12).reshape(2, 6)
    assert pack(matrix, 4).reshape(-1).tolist() == [0, 1, 2, 3, 6, 7, 8, 9, 4, 5, 10, 11]
    assert pack(matrix, 6).tolist() == matrix.tolist() == pack(matrix, 8).tolist()
    assert pack(matrix, 4).shape == (2, 6)


def test_all_dimensions_but_the_last_are_rows():
    filter_ = np.arange(2 * 3 * 4).reshape(2, 3, 4)
    assert pack(filter_, 2).reshape(2, 6, 2)[1].tolist() == filter_.reshape(6, 4)[:, 2:].tolist()


class Product(torch.nn.Module):
    def __init__(self, depth: int, columns: int):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(depth, columns, generator=torch.Generator().manual_seed(1)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x @ self.weight)


# What is packed follows from the registers: with half of them, some of these products are not.
CPU = "llvm-cpu:x86_64:x86-64-v4"


def compiled(model: torch.nn.Module, x: torch.Tensor, disable: tuple[str, ...] = ()) -> list[str]:
    """The knobs of each kernel for that CPU. The numbers are checked with its code, or with that for this machine."""
    module = eyas.compile(model, (x,), target=CPU, disable=disable)
    here = module if cpus.runs_here(CPU) else eyas.compile(model, (x,), disable=disable)
    with torch.no_grad():
        np.testing.assert_allclose(np.asarray(here(x.numpy())), model(x).numpy(), rtol=1e-4, atol=1e-4)
    return [kernel["knobs"] for kernel in module.manifest["kernels"]]


def check(model: torch.nn.Module, x: torch.Tensor, disable: tuple[str, ...] = ()) -> str:
    return compiled(model, x, disable)[0]


@pytest.mark.parametrize("columns", [16, 17, 48, 64, 96, 100, 129, 130, 257, 500])
@pytest.mark.parametrize("rows", [1, 2, 7, 33])
def test_products_of_any_shape_read_panels(rows: int, columns: int):
    x = torch.randn(rows, 200, generator=torch.Generator().manual_seed(rows))
    assert "panels" in check(Product(200, columns), x)


def test_packing_can_be_switched_off():
    assert "panels" not in check(Product(200, 96), torch.randn(9, 200), ("pack-weights",))


def test_weights_that_are_read_in_two_ways_stay():
    class Tied(Product):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x @ self.weight) + self.weight[x[:, 0].long().abs()]

    assert "panels" not in check(Tied(200, 96), torch.randn(9, 200))


@pytest.mark.parametrize(
    ("kernel", "stride", "groups", "channels"), [(3, 1, 1, 40), (3, 2, 1, 33), (5, 1, 2, 48), (1, 1, 1, 70)]
)
def test_convolutions_read_panels(kernel: int, stride: int, groups: int, channels: int):
    torch.manual_seed(kernel)
    model = torch.nn.Conv2d(32, 2 * channels, kernel, stride, kernel // 2, groups=groups)
    x = torch.randn(2, 32, 11, 13)
    knobs = compiled(model, x, ("winograd",))
    if groups == 1 and kernel > 1:  # the weights of the last case are few
        assert any("panels" in one for one in knobs)


def test_two_dispatches_share_one_kernel_with_weights_of_their_own():
    class Twice(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.first, self.second = torch.nn.Linear(128, 128), torch.nn.Linear(128, 128)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.second(self.first(x))

    assert "panels" in check(Twice(), torch.randn(20, 128))


class Inputs(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.relu(a @ b)


@pytest.mark.parametrize("shape", [(512, 200, 512), (500, 129, 500), (700, 257, 330), (3, 300, 130, 200)])
def test_products_of_two_inputs_copy_their_panels(shape: tuple[int, ...]):
    *batch, rows, depth, columns = shape
    torch.manual_seed(rows)
    a, b = torch.randn(*batch, rows, depth), torch.randn(*batch, depth, columns)
    module = eyas.compile(Inputs(), (a, b))
    np.testing.assert_allclose(
        np.asarray(module(a.numpy(), b.numpy())), torch.relu(a @ b).numpy(), rtol=1e-4, atol=1e-4
    )
    assert "staged" in module.manifest["kernels"][-1]["knobs"]


def test_staged_dtypes():
    class Integers(torch.nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return a @ b

    generator = torch.Generator().manual_seed(3)
    for dtype in (torch.int32, torch.float64):
        a = torch.randint(-9, 9, (70, 150), generator=generator).to(dtype)
        b = torch.randint(-9, 9, (150, 190), generator=generator).to(dtype)
        np.testing.assert_array_equal(
            np.asarray(eyas.compile(Integers(), (a, b))(a.numpy(), b.numpy())), (a @ b).numpy()
        )
