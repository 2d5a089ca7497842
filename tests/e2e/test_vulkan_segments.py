"""Tensors that are larger than a binding of the device shows: bound as several segments, and read and written in each.

The limit is set low, so that tensors of some kilobytes have several segments, the last of them not full.
"""

from __future__ import annotations

import pytest
import torch
from tests.tools import vulkan
from torch import nn

import eyas
from eyas.errors import TargetError

RANGE = 2048


def _target(range_bytes: int) -> str:
    device = eyas.Target.parse(vulkan.target())
    return f"vulkan:{device.profile}:range={range_bytes}"


def _compiled(model, *args: torch.Tensor, range_bytes: int = RANGE) -> eyas.Module:
    """A module with a kernel that has more bindings than any dispatch of these programs has tensors."""
    module = eyas.compile(model, args, target=_target(range_bytes))
    needs = [need.partition("=") for kernel in module.manifest["kernels"] for need in kernel["needs"]]
    assert max(int(number) for name, _, number in needs if name == "bindings") > 6
    return module


def _check(model, *args: torch.Tensor, atol: float = 1e-5) -> None:
    found, want = _compiled(model, *args)(*args), model(*args)
    assert found.shape == want.shape and torch.allclose(found, want, atol=atol)


def test_an_embedding_that_is_also_the_last_product() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(151, 24)

        def forward(self, places: torch.Tensor) -> torch.Tensor:
            return 2 * self.words(places) @ self.words.weight.t()

    torch.manual_seed(0)
    across = [end // 96 for end in range(RANGE, 151 * 96, RANGE)]  # the row that two segments share
    _check(Tied().eval(), torch.tensor([[0, *across, across[0] - 1, across[0] + 1, 150]]), atol=1e-4)


def test_results_and_what_is_between_kernels() -> None:
    x = torch.randn(31, 67)
    _check(lambda x: torch.softmax(x, -1).t().contiguous() * x.sum(), x)
    _check(lambda x: torch.cat([x.sort(-1).values, x.cumsum(0)]), x)


@pytest.mark.parametrize("dtype", [torch.int8, torch.float16, torch.int64, torch.bool, torch.complex64])
def test_elements_of_every_size(dtype: torch.dtype) -> None:
    x = (torch.randn(53, 187) * 50).to(dtype)
    found = _compiled(lambda x: (x.t().contiguous(), x[7:]), x, range_bytes=RANGE * x.element_size())(x)
    assert torch.equal(torch.as_tensor(found[0]), x.t()) and torch.equal(torch.as_tensor(found[1]), x[7:])


def test_parts_that_begin_anywhere() -> None:
    """An offset that is no multiple of what the device wants is that of each segment."""
    x = torch.randn(9, 11, 17)
    _check(lambda x: x[1:, 3:].exp() + x[:-1, 3:], x)
    lstm = nn.LSTM(17, 5).eval()
    assert torch.allclose(_compiled(lstm, x, range_bytes=1024)(x)[0], lstm(x)[0], atol=1e-5)


def test_rows_are_added_and_state_is_written_in_place() -> None:
    class Cache(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("rows", torch.zeros(100, 40))

        def forward(self, row: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
            self.rows.index_copy_(0, at, row)
            return self.rows.sum(0)

    model, other = Cache().eval(), Cache().eval()
    module = _compiled(model, torch.randn(1, 40), torch.tensor([0]))
    for at in (0, 12, 13, 25, 26, 50, 51, 99):
        row = torch.randn(1, 40)
        assert torch.allclose(module(row, torch.tensor([at])), other(row, torch.tensor([at])), atol=1e-5)
    places, rows = torch.randint(0, 60, (80,)), torch.randn(80, 33)
    _check(lambda places, rows: torch.zeros(60, 33).index_add(0, places, rows), places, rows)


def test_more_segments_than_a_dispatch_binds() -> None:
    x = torch.randn(300, 4)
    with pytest.raises(TargetError, match="its 2 tensors as 600 segments of 16 bytes.*at most 256"):
        eyas.compile(lambda x: 2 * x, (x,), target=_target(32))


def test_a_place_that_is_not_there_is_found() -> None:
    words = nn.Embedding(301, 24).eval()
    module = _compiled(words, torch.tensor([1, 2]))
    with pytest.raises(eyas.EyasError):
        module(torch.tensor([1, 301]))
