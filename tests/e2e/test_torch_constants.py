"""Constants that are compared or computed with inside a torch program: the importer's folding of them ended the process
or came out wrong."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch

import eyas

X = torch.tensor([1.5, -2.0, 0.25])


class Program(torch.nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


def filled(x: torch.Tensor, value: Any, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.full_like(x, value, dtype=dtype)


def compared(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Of every type, with numbers of both kinds."""
    comparisons = (operator.lt, operator.gt, operator.eq, operator.ge)
    made = [filled(x, 1, dtype) for dtype in (torch.bool, torch.int8, torch.int64, torch.float16, torch.float32)]
    made += [torch.tensor([1, 2, 3]), torch.tensor([1.0, 2.5, 3.0]), torch.arange(3) < 1]
    return tuple(compare(one, number) for one in made for compare in comparisons for number in (0, 1, -2, 2.5, -0.5))


def computed(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    whole = filled(x, -7, torch.int32)
    two = filled(x, 2.5)
    return (
        *(two + -1, two * -1, two - -1, -1 - two, torch.add(two, two, alpha=-2)),
        *(torch.div(whole, 2, rounding_mode="trunc"), whole // 2, torch.remainder(whole, 3), 5 - whole),
        *(torch.remainder(-two, 2), torch.frac(two), torch.sign(-two), torch.count_nonzero(two)),
        torch.nn.functional.threshold(two, 1, 0),
    )


def cut(x: torch.Tensor) -> torch.Tensor:
    """The largest of one is itself, so the importer cuts a constant, and compared it with a whole zero."""
    return torch.trunc(torch.topk(torch.full_like(x[:, None], -2.5), 1, 1)[0])


def chosen(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Values with their places, of bytes that the importer cannot make a literal of."""
    bytes_ = torch.tensor([200, 3, 250], dtype=torch.uint8)
    one = torch.tensor(200, dtype=torch.uint8)
    values, places = torch.sort(bytes_)
    return torch.topk(one, 1, 0)[0], torch.topk(bytes_, 2)[1], values, places, *torch.split(bytes_, 2), x


@pytest.mark.parametrize("function", [compared, computed, cut, chosen, lambda x: torch.trunc(x * 3)])
def test_constants_are_what_torch_says(function: Callable[[torch.Tensor], Any]) -> None:
    model = Program(function).eval()
    torch.testing.assert_close(eyas.compile(model, (X,))(X), model(X))
