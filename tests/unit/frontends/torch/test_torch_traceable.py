"""Functions that `torch.export` stops at: their answers are part of the program."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import CallError  # noqa: E402


def compiled(function, *inputs):
    return eyas.compile(function, inputs, device="local-sync", progress=False)


def test_numbers_of_tensors_are_results() -> None:
    x = torch.randn(4, 5)

    def numbers(x, y):
        total = x.sum().item()
        return torch.allclose(x, y), x.equal(y), total, 2.5 * total, x.long().sum().item(), torch.equal(x, y[:1])

    module = compiled(numbers, x, x.clone())
    for other in (x.clone(), x + 1e-9, x + 1):
        want = numbers(x, other)
        for one, number in zip(module(x, other), want, strict=True):
            assert float(one) == pytest.approx(float(number), rel=1e-5)


def test_classes_are_counted() -> None:
    module = compiled(F.one_hot, torch.tensor([[0, 3], [1, 1]]))
    for given in ([[0, 3], [1, 1]], [[6, 0], [2, 5]], [[0, 0], [0, 0]]):
        given = torch.tensor(given)
        assert torch.equal(module(given), F.one_hot(given))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("sizes", [(4, 5), (4, 1), (4,)])
def test_gaussian_loss_complains_of_the_data(reduction: str, sizes: tuple[int, ...]) -> None:
    x, target, var = torch.randn(4, 5), torch.randn(4, 5), torch.rand(sizes)
    var.view(-1)[0] = 0

    def loss(x, target, var):
        return F.gaussian_nll_loss(x, target, var, full=True, eps=1e-2, reduction=reduction)

    module = compiled(loss, x, target, var)
    torch.testing.assert_close(module(x, target, var), loss(x, target, var), rtol=1e-4, atol=1e-5)
    with pytest.raises(CallError, match="var has negative entries"):
        module(x, target, var - 2)
