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
