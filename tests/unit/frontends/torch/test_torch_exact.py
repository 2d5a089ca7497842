"""Operands of different kinds, on which the importer crashes or is wrong."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import eyas  # noqa: E402

COMPARISONS = [torch.eq, torch.ge, torch.gt, torch.le, torch.lt, torch.ne]


class Compared(torch.nn.Module):
    """A constant that is one of several results of an op."""

    def __init__(self, value, number):
        super().__init__()
        self.register_buffer("value", value)
        self.number = number

    def forward(self, x):
        constant = torch.sort(self.value).values
        return *(compare(constant, self.number) for compare in COMPARISONS), torch.sign(constant), x + 1


@pytest.mark.parametrize("number", [0, 1, 0.5, 1.0, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "int32", "int8"])
def test_constant_and_number(dtype, number):
    model, x = Compared(torch.tensor([1], dtype=getattr(torch, dtype)), number), torch.zeros(2)
    results = eyas.compile(model, (x,), device="local-sync")(x)
    for got, want in zip(results, model(x), strict=True):
        got = got if isinstance(got, torch.Tensor) else torch.from_numpy(np.asarray(got))
        torch.testing.assert_close(got, want, rtol=0, atol=0)


class Mixed(torch.nn.Module):
    def forward(self, truths, number, other):
        results = [torch.where(truths, number, other), torch.cat([number, other]), torch.stack([other, number], 1)]
        results += [number * True, number + True, number.clamp(3, 99.5)]
        if not other.is_floating_point():
            results += [number & other, other | number, number ^ other]
        return tuple(results)


@pytest.mark.parametrize(
    ("one", "two"), [("uint8", "bool"), ("uint8", "int64"), ("int32", "bool"), ("uint8", "float32")]
)
def test_types_are_promoted(one, two):
    generator = torch.Generator().manual_seed(0)
    numbers = torch.randint(0, 256, (3, 4, 5), generator=generator)
    args = numbers[0] > 100, numbers[1].to(getattr(torch, one)), (numbers[2] - 128).to(getattr(torch, two))
    results = eyas.compile(Mixed(), args, device="local-sync")(*args)
    for got, want in zip(results, Mixed()(*args), strict=True):
        torch.testing.assert_close(got, want, rtol=0, atol=0)


class Norms(torch.nn.Module):
    def forward(self, x):
        norms = [torch.linalg.vector_norm(x, order, 0) for order in (2, 1, 3, 0, torch.inf, -torch.inf, 0.5)]
        return *norms, torch.nn.functional.normalize(x, dim=0), torch.linalg.vector_norm(x, 2, [0, -1], keepdim=True)


@pytest.mark.parametrize("rows", [1, 2])
def test_norm_of_one_element_makes_no_powers(rows):
    x = torch.tensor([[3e38, -1e-30, 0.0, -2e30, torch.inf, torch.nan]])[:, :, None].repeat(rows, 1, 1)
    for got, want in zip(eyas.compile(Norms(), (x,))(x), Norms()(x), strict=True):
        torch.testing.assert_close(got, want, equal_nan=True)


class Filled(torch.nn.Module):
    def forward(self, x, index):
        return torch.index_fill(torch.diagonal(x, -2, 0, 1) * 2, 0, index, 7)


def test_result_with_strides_of_a_diagonal():
    x, index = torch.randint(-9, 9, (5, 4, 3, 1), dtype=torch.int8), torch.tensor([1])
    torch.testing.assert_close(eyas.compile(Filled(), (x, index))(x, index), Filled()(x, index))
