"""Our forms of torch's ops that count, search and route give torch's numbers."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

from eyas.frontends.torch import routing  # noqa: E402

torch.manual_seed(0)
X = torch.randn(5, 7)
SORTED = torch.sort(torch.randn(9)).values
MANY = torch.sort(torch.randn(100)).values
ROWS = torch.sort(torch.randn(5, 70), -1).values


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("boundaries", [SORTED, MANY, ROWS, torch.tensor([0.5]), torch.arange(6)], ids=str)
def test_search(boundaries, right):
    values = torch.cat([X, torch.full((5, 1), math.nan), torch.full((5, 1), math.inf)], 1)
    # Values that are among the boundaries.
    values[:, 0] = boundaries.flatten()[0]
    want = torch.searchsorted(boundaries.float(), values, right=right)
    assert torch.equal(routing.search_sorted(boundaries, values, right=right), want)


def test_search_with_a_sorter_and_narrow_results():
    mixed = torch.randn(20)
    sorter = mixed.argsort()
    got = routing.search_sorted(mixed, X, sorter=sorter, side="right", out_int32=True)
    assert torch.equal(got, torch.searchsorted(mixed, X, sorter=sorter, side="right", out_int32=True))
    assert torch.equal(routing.search_sorted(SORTED, 0.25), torch.searchsorted(SORTED, 0.25))


@pytest.mark.parametrize("limits", [(-1.0, 2.0), (0, 0), (0.5, 0.5), (-10, 10)], ids=str)
def test_histogram(limits):
    x = torch.cat([X.flatten(), torch.tensor([math.nan, 2.0, -1.0])]) if limits[0] != limits[1] else X
    assert torch.equal(routing.histogram(x, 6, *limits), torch.histc(x, 6, *limits))


def test_bincount():
    numbers = torch.tensor([1, 4, 4, 0])
    weights = torch.randn(4)
    for least in (0, 9):
        assert torch.equal(routing.bincount(numbers, None, least), torch.bincount(numbers, None, least))
        assert torch.equal(routing.bincount(numbers, weights, least), torch.bincount(numbers, weights, least))
    assert routing.bincount(torch.zeros(0, dtype=torch.int64)).shape == (0,)


def test_repeat_interleave():
    for repeats in (torch.tensor([1, 0, 2, 3]), torch.tensor([0, 0]), torch.tensor([2], dtype=torch.int32)):
        got, want = routing.repeat_interleave(repeats), torch.repeat_interleave(repeats)
        assert torch.equal(got, want) and got.dtype == want.dtype


@pytest.mark.parametrize("ends", [[2, 2, 7, 10], [0, 10, 10, 10], [3, 4, 5, 6]], ids=str)
def test_grouped_products(ends):
    offsets = torch.tensor(ends, dtype=torch.int32)
    x, weights = torch.randn(10, 6), torch.randn(4, 6, 5)
    pieces = list(zip([0, *ends[:-1]], ends, strict=True))
    want = torch.zeros(10, 5)
    for expert, (begin, end) in enumerate(pieces):
        want[begin:end] = x[begin:end] @ weights[expert]
    torch.testing.assert_close(routing.grouped_mm(x, weights, offsets), want)
    columns = routing.grouped_mm(weights.transpose(1, 2), x.t(), offsets)
    torch.testing.assert_close(columns, want.t())
    y = torch.randn(10, 3)
    summed = torch.stack([x[begin:end].t() @ y[begin:end] for begin, end in pieces])
    torch.testing.assert_close(routing.grouped_mm(x.t(), y, offsets), summed)
    torch.testing.assert_close(routing.grouped_mm(weights, torch.ones(4, 5, 2)), weights @ torch.ones(4, 5, 2))


BAGS = {
    "empty": (torch.tensor([0, 3, 3]), {}),
    "last": (torch.tensor([0, 3, 3, 9]), {"include_last_offset": True}),
    "padding": (torch.tensor([0, 3]), {"padding_idx": 2}),
    "weights": (torch.tensor([0, 3, 3]), {"per_sample_weights": torch.randn(9)}),
}


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("name", BAGS)
def test_bags(name, mode):
    offsets, options = BAGS[name]
    if "per_sample_weights" in options and mode != "sum":
        pytest.skip("torch weighs sums only")
    indices, table = torch.tensor([2, 0, 4, 2, 2, 1, 3, 3, 0]), torch.randn(5, 7)
    want = F.embedding_bag(indices, table, offsets, mode=mode, **options)
    code = ["sum", "mean", "max"].index(mode)
    got = routing.embedding_bag(table, indices, offsets, mode=code, **options)[0]
    torch.testing.assert_close(got, want)
