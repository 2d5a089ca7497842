"""f16 and bf16 beside each other and beside numbers that they do not hold, against eager torch."""

from __future__ import annotations

import operator

import pytest

torch = pytest.importorskip("torch")

import eyas  # noqa: E402

HALVES = (torch.float16, torch.bfloat16)
COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)


@pytest.mark.parametrize("first", HALVES)
def test_halves_of_two_kinds_are_compared_as_f32(first):
    def compared(x, y):
        return [compare(x, y) for compare in COMPARISONS] + [torch.maximum(x, y), x + y]

    second = HALVES[first == torch.float16]
    x = torch.randn(7, 33).to(first)
    y = torch.where(torch.rand(7, 33) < 0.5, x.to(second), x.to(second) * 1.5)
    y[0, :2] = torch.nan
    for one, other in zip(eyas.compile(compared, (x, y), progress=False)(x, y), compared(x, y), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [*HALVES, torch.float32])
@pytest.mark.parametrize("exponent", [1e-9, 2.0001, 0.33, -1e-8])
def test_exponents_that_an_f16_does_not_hold(dtype, exponent):
    """torch rounds them to the type: of 1e-9 a 0 is left, and anything to the power of 0 is 1."""
    x = torch.randn(40).to(dtype)
    got = eyas.compile(lambda x: x**exponent, (x,), progress=False)(x)
    torch.testing.assert_close(got, x**exponent, equal_nan=True)


@pytest.mark.parametrize("dtype", [*HALVES, torch.float32, torch.float64])
def test_scales_that_alone_are_out_of_range(dtype):
    x = torch.cat([torch.randn(40), torch.tensor([0.0, 1e-4, 3e4, float("inf"), float("nan")])]).to(dtype)
    for exponents in (torch.arange(-22, 23), torch.arange(-220, 230, 10), torch.arange(-127, 8, 3, dtype=torch.int8)):
        got = eyas.compile(torch.ldexp, (x, exponents), progress=False)(x, exponents)
        torch.testing.assert_close(got, torch.ldexp(x, exponents), rtol=0, atol=0, equal_nan=True)


def test_sizes_that_torch_takes_for_equal_are_checked():
    """torch.export takes a size that data says for the other operand's; a kernel would read beyond what there is."""

    def least(x, places):
        return torch.minimum(torch.tensor_split(x, places)[0], x)

    x = torch.randn(4, 8)
    module = eyas.compile(least, (x, torch.tensor([4, 4])), progress=False)
    torch.testing.assert_close(module(x, torch.tensor([4, 4])), x)
    with pytest.raises(eyas.EyasError, match="Eq"):
        module(x, torch.tensor([1, 1]))
