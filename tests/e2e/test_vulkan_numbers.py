"""Numbers whose last bit, type or size a Vulkan driver may take its liberties with, on the device that is there."""

from __future__ import annotations

import operator

import pytest
import torch
from tests.tools import vulkan

import eyas

BOUNDS = (-(2**33), -1, 0, 1, 4, 2**31 - 1, 2**31, 2**33)
COMPARISONS = (operator.le, operator.lt, operator.ge, operator.gt, operator.eq, operator.ne)


def _compiled(model, *args: torch.Tensor) -> eyas.Module:
    return eyas.compile(model, args, target=vulkan.target())


@pytest.mark.parametrize("compare", COMPARISONS)
def test_indices_in_64_bits_beside_constants(compare) -> None:
    """lavapipe 22.3 finds no widened index below a constant."""

    def model(x):
        places = torch.arange(x.shape[-1])
        sides = [compare(places, bound) for bound in BOUNDS] + [compare(bound, places) for bound in BOUNDS]
        return torch.stack([torch.where(side, x, 0) for side in sides])

    x = torch.arange(1, 16).reshape(3, 5)
    assert torch.equal(_compiled(model, x)(x), model(x))


def test_quotients_that_become_whole() -> None:
    """Vulkan allows 2.5 ULP, with which the floor of 6 / 3 may be 1."""

    def model(a, b):
        return torch.floor(a / b), torch.round(a / b * 4).clamp(-99, 99).to(torch.int32), torch.trunc(a / b)

    a = torch.arange(-60.0, 60).repeat(5)
    b = torch.cat([torch.roll(torch.arange(-60.0, 60), by) * 0.75 for by in range(5)])
    b[b == 0] = 1e-40
    for found, want in zip(_compiled(model, a, b)(a, b), model(a, b), strict=True):
        assert torch.equal(found, want)


def test_bf16_beside_f64() -> None:
    def model(x, y):
        return (x.double() + y).to(torch.bfloat16), x.double() * y

    x, y = torch.randn(37).to(torch.bfloat16), torch.randn(37, dtype=torch.float64)
    if not eyas.Target.parse(vulkan.target()).has("f64"):
        pytest.skip("the device has no f64")
    for found, want in zip(_compiled(model, x, y)(x, y), model(x, y), strict=True):
        assert torch.equal(found, want)


def test_halves_that_are_stored_and_summed_are_the_same() -> None:
    """A driver may leave out a rounding between registers, but not for one reader alone."""

    def model(x):
        powers = torch.exp(x - x.amax(-1, keepdim=True))
        return powers, powers.float().sum(-1, keepdim=True)

    x = torch.randn(64, 6).half()
    powers, sums = _compiled(model, x)(x)
    assert torch.allclose(powers.float(), model(x)[0].float(), rtol=2e-3)
    assert torch.allclose(sums, powers.float().sum(-1, keepdim=True), rtol=1e-6)
