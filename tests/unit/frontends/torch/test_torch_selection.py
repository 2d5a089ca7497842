"""Our forms of torch's ops that choose elements give torch's."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from eyas.frontends.torch import selection  # noqa: E402

torch.manual_seed(0)
X = torch.randn(5, 7)
INTEGERS = torch.randint(0, 4, (5, 6))
WITH_NAN = torch.tensor([[1.0, math.nan, -2.0, math.inf, 3.0], [5.0, 4.0, 4.0, 0.0, 1.0]])


def equal(got, want):
    for one, other in zip(got, want, strict=True):
        torch.testing.assert_close(one, other, equal_nan=True)


def test_masks():
    assert torch.equal(selection.masked_select(X, X[0] > 0), torch.masked_select(X, X[0] > 0))
    assert torch.equal(selection.index_by_mask(X, [X > 0]), X[X > 0])
    assert torch.equal(selection.index_by_mask(X, [None, X[0] > 0]), X[:, X[0] > 0])
    assert selection.index_by_mask(X, [torch.tensor([1])]) is NotImplemented


def test_unique():
    equal(selection.unique(INTEGERS, True, True, True), torch.unique(INTEGERS, True, True, True))
    nothing = torch.empty(0, 3, dtype=torch.uint8)
    equal(selection.unique(nothing, True, True, True), torch.unique(nothing, True, True, True))
    flat = torch.tensor([1, 1, 2, 1, 3, 3])
    equal(selection.unique_consecutive(flat, True, True), torch.unique_consecutive(flat, True, True))
    slices = torch.randint(0, 2, (3, 9))
    for dim in (0, 1):
        equal(
            selection.unique_slices(slices, dim, True, True, True),
            torch.unique(slices, return_inverse=True, return_counts=True, dim=dim),
        )


def test_order_statistics():
    for x in (X, WITH_NAN, INTEGERS):
        for keepdim in (False, True):
            equal(selection.median(x, 1, keepdim)[:1], torch.median(x, 1, keepdim)[:1])
            equal(selection.median(x, 1, keepdim, True)[:1], torch.nanmedian(x, 1, keepdim)[:1])
    values, indices = selection.median(X, 0)
    assert torch.equal(X.gather(0, indices.unsqueeze(0))[0], values)
    got, where = selection.mode(INTEGERS, 1)
    assert torch.equal(got, torch.mode(INTEGERS, 1).values)
    assert torch.equal(INTEGERS.gather(1, where.unsqueeze(1))[:, 0], got)


def test_running_extremes():
    for x in (X, WITH_NAN, INTEGERS):
        for dim in (0, 1):
            equal(selection.running_extreme(x, dim, torch.ge), torch.cummax(x, dim))
            equal(selection.running_extreme(x, dim, torch.le), torch.cummin(x, dim))


def test_writes():
    places, values = torch.tensor([3, -1, 8]), torch.tensor([1.0, 2.0, 3.0])
    assert torch.equal(selection.put(X, places, values), X.clone().put_(places, values))
    rows = torch.tensor([0, 4, 0])
    equal([selection.index_reduce(X, 0, rows, X[:3], "amax")], [X.index_reduce(0, rows, X[:3], "amax")])
    cube = torch.randn(3, 4, 5)
    for offset, one, other in ((0, 0, 1), (2, 1, 2), (-1, 2, 0)):
        source = torch.ones_like(cube.diagonal(offset, one, other))
        want = torch.diagonal_scatter(cube, source, offset, one, other)
        assert torch.equal(selection.diagonal_scatter(cube, source, offset, one, other), want)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, math.inf])
def test_distances(p):
    y = torch.randn(2, 4, 7)
    torch.testing.assert_close(selection.distances(X, y, p), torch.cdist(X, y, p), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(selection.pairwise_distances(X, p), torch.nn.functional.pdist(X, p))


def test_running_extremes_along_a_dynamic_dimension():
    import eyas

    def extremes(x):
        return torch.cummax(x, 0), torch.cummin(x, 0), torch.cummax(x.nan_to_num().long(), 0)

    x = torch.tensor([[1, 3, 3, float("nan"), 2, float("nan"), 5], [5, 4, 5, 6, 6, 1, 7]]).T.contiguous()
    shapes = ({0: torch.export.Dim("n")},)
    module = eyas.compile(extremes, (x,), dynamic_shapes=shapes, device="local-sync", progress=False)
    for given in (x, x[:3], torch.randn(20, 2).round()):
        for pair, wanted in zip(module(given), extremes(given), strict=True):
            torch.testing.assert_close(tuple(pair), tuple(wanted), equal_nan=True)


def test_medians_along_a_dynamic_dimension():
    import eyas

    def medians(x):
        whole = x.nan_to_num().long()
        return torch.median(x), *torch.median(x, 0), *torch.nanmedian(x, 0), *torch.median(whole, 0)

    x = torch.randn(5, 3)
    x[2, 1] = float("nan")
    shapes = ({0: torch.export.Dim("n")},)
    module = eyas.compile(medians, (x,), dynamic_shapes=shapes, device="local-sync", progress=False)
    for given in (x, torch.randn(8, 3), torch.randn(1, 3)):
        torch.testing.assert_close(tuple(module(given)), medians(given), equal_nan=True)
