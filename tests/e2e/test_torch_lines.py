"""Numbers at even distances in half types, which hold neither their number nor each place, against torch in doubles."""

from __future__ import annotations

import pytest
import torch

import eyas


class Line(torch.nn.Module):
    def __init__(self, name: str, *arguments: float, dtype: torch.dtype) -> None:
        super().__init__()
        self.name, self.arguments, self.dtype = name, arguments, dtype

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return getattr(torch, self.name)(*self.arguments, dtype=self.dtype) + x


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("arange", (10000,)),
        ("arange", (1, 10001, 3)),
        ("arange", (5.5, -300.25, -0.75)),
        ("arange", (3, 3)),
        ("logspace", (2.0, 4.3, 7)),
        ("logspace", (4.3, 1.0, 1)),
        ("linspace", (-3.0, 7.7, 129)),
    ],
)
def test_lines_of_half_types(name, arguments, dtype):
    zero = torch.zeros((), dtype=dtype)
    got = torch.as_tensor(eyas.compile(Line(name, *arguments, dtype=dtype), (zero,))(zero))
    want = Line(name, *arguments, dtype=torch.float64)(zero.double())
    assert got.shape == want.shape and got.dtype == dtype
    torch.testing.assert_close(got.double(), want, rtol=2 * torch.finfo(dtype).eps, atol=8 * torch.finfo(dtype).eps)
