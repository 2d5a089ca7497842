"""Sorts and the k largest elements, whose order among equals is that of PyTorch's stable sort."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import eyas  # noqa: E402

TARGETS = ("llvm-cpu", "vmvx")
TYPES = (torch.float32, torch.float16, torch.int64, torch.uint8, torch.bool)


class Sorts(nn.Module):
    def __init__(self, counts: tuple[int, ...], dim: int) -> None:
        super().__init__()
        self.counts, self.dim = counts, dim

    def forward(self, x):
        found = [torch.sort(x, dim=self.dim, descending=descending, stable=True) for descending in (False, True)]
        return [*(part for one in found for part in one), *(self.first(x, count)[0] for count in self.counts)]

    def first(self, x, count: int):
        return torch.topk(x, count, self.dim)


def compare(model: nn.Module, x: torch.Tensor, **options) -> None:
    for got, wanted in zip(eyas.compile(model, (x,), **options)(x), model(x), strict=True):
        np.testing.assert_array_equal(np.asarray(got), wanted.numpy())


def values(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """With many equal ones, and NaN and infinities where there are any."""
    torch.manual_seed(0)
    x = torch.randint(0, 40, shape).to(dtype) if dtype != torch.bool else torch.randint(0, 2, shape) > 0
    if dtype.is_floating_point and x.numel() > 9:
        x.view(-1)[:7] = torch.tensor([np.nan, np.inf, -np.inf, -0.0, 0.0, np.nan, -3.0])
    return x


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_types(dtype, target):
    compare(Sorts(() if dtype == torch.bool else (5, 1), 1), values((4, 53), dtype), target=target)


@pytest.mark.parametrize(
    ("shape", "dim", "counts"),
    [
        ((53, 4), 0, (3, 13)),
        ((2, 33, 3), 1, (1, 8)),
        ((1000,), 0, (48, 49)),
        ((1,), 0, (1,)),
        ((3, 0), 1, ()),
        ((), 0, ()),
    ],
)
def test_shapes(shape, dim, counts):
    compare(Sorts(counts, dim), values(shape, torch.float32))


@pytest.mark.parametrize("sizes", [(3, 40), (0, 40), (7, 41), (2, 1), (1, 300)])
def test_open_sizes(sizes, open_sorts):
    x = values(sizes, torch.float32)
    for got, wanted in zip(open_sorts(x), Sorts((), 1)(x), strict=True):
        np.testing.assert_array_equal(np.asarray(got), wanted.numpy())


@pytest.fixture(scope="module")
def open_sorts():
    rows, columns = torch.export.Dim("rows", min=0), torch.export.Dim("columns", min=1)
    return eyas.compile(Sorts((), 1), (values((3, 40), torch.float32),), dynamic_shapes=({0: rows, 1: columns},))


def test_few_of_an_open_number_of_rows():
    model = Sorts((5,), 1)
    module = eyas.compile(
        model, (values((3, 40), torch.float32),), dynamic_shapes=({0: torch.export.Dim("rows", min=0)},)
    )
    for rows in (3, 0, 7):
        x = values((rows, 40), torch.float32)
        np.testing.assert_array_equal(np.asarray(module(x)[-1]), model(x)[-1].numpy())


@pytest.mark.parametrize("target", TARGETS)
def test_places_of_the_largest_among_different_ones(target):
    torch.manual_seed(1)

    class Places(nn.Module):
        def forward(self, x):
            largest, smallest = torch.topk(x, 5, -1), torch.topk(x, 5, -1, largest=False)
            return largest[0], largest[1], smallest[1], torch.topk(x, 20, -1)[1]

    rows = torch.stack([torch.randperm(101), torch.arange(101), torch.arange(101).flip(0)]).float()
    compare(Places(), rows, target=target)
