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
        return (
            torch.allclose(x, y),
            x.equal(y),
            total,
            2.5 * total,
            x.long().sum().item(),
            torch.equal(x, y[:1]),
            total > 0,
        )

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


def test_covariances() -> None:
    x, y = torch.randn(3, 7), torch.randn(5)
    counts, weights = torch.tensor([1, 2, 1, 0, 3, 1, 1]), torch.rand(7)

    def found(x, y, counts, weights):
        return (
            *(torch.cov(x), torch.cov(y, correction=0), x.cov(fweights=counts), x.cov(aweights=weights)),
            torch.cov(x, correction=2, fweights=counts, aweights=weights),
            torch.cov(x, correction=20),
            *(torch.corrcoef(x), y.corrcoef()),
        )

    module = compiled(found, x, y, counts, weights)
    torch.testing.assert_close(module(x, y, counts, weights), found(x, y, counts, weights))


def test_combinations_and_parts_from_a_place() -> None:
    x, start = torch.randn(5), torch.tensor(-3)

    def chosen(x, start):
        return (
            *(
                torch.combinations(x),
                torch.combinations(x, 3, True),
                torch.combinations(x, 1),
                torch.combinations(x, 6),
            ),
            *(torch.narrow(x, 0, start, 2), x.narrow(-1, 1, 2), torch.narrow(x, 0, start, 0)),
        )

    module = compiled(chosen, x, start)
    for place in (-5, -3, 0, 3):
        start = torch.tensor(place)
        torch.testing.assert_close(module(x, start), chosen(x, start))


def test_ctc_loss() -> None:
    torch.manual_seed(0)
    probs = torch.randn(9, 4, 6).log_softmax(-1)
    targets = torch.randint(1, 6, (4, 5))
    targets[1, :3] = 2
    times, lengths = torch.tensor([9, 7, 3, 0]), torch.tensor([5, 3, 4, 0])

    def loss(probs, targets, times, lengths):
        behind = targets.reshape(-1)[:12]
        return (
            F.ctc_loss(probs, targets, times, lengths, reduction="none"),
            F.ctc_loss(probs, targets, times, lengths, zero_infinity=True),
            F.ctc_loss(probs, behind, times, lengths, blank=5, reduction="sum"),
            F.ctc_loss(probs[:, 0], targets[0], (9,), (5,), reduction="none"),
            F.ctc_loss(probs, targets, [9, 9, 9, 8], [1, 2, 3, 0], reduction="none"),
        )

    module = compiled(loss, probs, targets, times, lengths)
    other = torch.tensor([8, 9, 9, 4]), torch.tensor([0, 4, 5, 3])
    for given in ((times, lengths), other):
        torch.testing.assert_close(module(probs, targets, *given), loss(probs, targets, *given), rtol=1e-4, atol=1e-5)
    with pytest.raises(CallError, match="a length is greater"):
        module(probs, targets, times + 1, lengths)


def test_sizes_that_vary() -> None:
    size = torch.export.Dim("size", min=2)
    lengths = torch.tensor([2, 3, 1])

    def found(x, probs, targets):
        return (
            *(torch.combinations(x), torch.combinations(x, 3, True), torch.combinations(x, 1)),
            *(torch.cov(probs[:, 0]), torch.corrcoef(x), torch.narrow(x, 0, lengths[0], 1)),
            F.ctc_loss(probs, targets, lengths + 3, lengths, reduction="none"),
        )

    def given(count):
        return torch.randn(count), torch.randn(count, 3, 6).log_softmax(-1), torch.randint(1, 6, (3, 4))

    module = eyas.compile(found, given(7), dynamic_shapes=({0: size}, {0: size}, None), progress=False)
    for count in (7, 11):
        inputs = given(count)
        torch.testing.assert_close(module(*inputs), found(*inputs), rtol=1e-4, atol=1e-5, equal_nan=True)
