"""Positions whose number depends on data: as many as `nonzero` finds, none included."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import eyas  # noqa: E402


class Chosen(nn.Module):
    """Reads and writes at the places where `choice` is 1."""

    def forward(self, x, choice):
        row, column = torch.nonzero(choice == 1, as_tuple=True)
        read = x[row, column]
        written = x.index_put((row, column - x.shape[1]), read * 2)
        added = x.index_put((row, torch.zeros_like(row)), read, accumulate=True)
        return read, written, added


def test_reads_and_writes():
    torch.manual_seed(0)
    x = torch.randn(4, 3, 2)
    model = Chosen()
    module = eyas.compile(model, (x, torch.randint(0, 2, (4, 3))))
    for choice in (torch.randint(0, 2, (4, 3)), torch.ones(4, 3, dtype=torch.int64), torch.zeros(4, 3).long()):
        for ours, theirs in zip(module(x, choice), model(x, choice), strict=True):
            torch.testing.assert_close(ours, theirs)


class Filled(nn.Module):
    """One value for all places, rows of values, values of their own."""

    def forward(self, x, choice):
        mask = choice == 1
        one = x.clone()
        one[mask] = 7.0
        row = x.clone()
        row[mask.any(1)] = x[0]
        own = x.clone()
        own[mask] = x[mask] * 2
        (places,) = torch.nonzero(mask.any(1), as_tuple=True)
        first, second = torch.nonzero(mask, as_tuple=True)
        put = x.index_put((places,), torch.tensor(3.0)), x.index_put((first, second), torch.tensor(4.0))
        return one, row, own, *put, x.index_put((mask,), torch.tensor(5.0), accumulate=True)


def test_values_for_masks_that_may_be_empty():
    torch.manual_seed(0)
    x = torch.randn(4, 3, 2)
    model = Filled()
    module = eyas.compile(model, (x, torch.randint(0, 2, (4, 3))))
    for choice in (torch.randint(0, 2, (4, 3)), torch.ones(4, 3, dtype=torch.int64), torch.zeros(4, 3).long()):
        for ours, theirs in zip(module(x, choice), model(x, choice), strict=True):
            torch.testing.assert_close(ours, theirs)


def test_positions_of_32_bits():
    """The gradient of `unfold` adds windows at such positions, beside a dimension that is taken whole."""

    def model(x, places):
        windows = torch.ops.aten.unfold_backward(x, [2, 9], 1, 4, 2)
        added = torch.ops.aten.index_put(x, [None, places], x[:, :2], True)
        return windows, added, x.index_put((places,), x[:1])

    x, places = torch.randn(2, 3, 4), torch.tensor([1, 1], dtype=torch.int32)
    for ours, theirs in zip(eyas.compile(model, (x, places))(x, places), model(x, places.long()), strict=True):
        torch.testing.assert_close(ours, theirs)
