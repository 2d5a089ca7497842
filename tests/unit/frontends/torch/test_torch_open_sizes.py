"""Functions of torch that would fix a size that varies: one module serves several sizes."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

import eyas  # noqa: E402
from eyas.frontends.torch.open_sizes import parts  # noqa: E402


def same_for_all(function, *calls, varying=(0,)) -> None:
    """The tensors at these places have a first size that varies, from that of the first call on."""
    dim = torch.export.Dim("size", min=calls[0][varying[0]].shape[0], max=1000)
    dims = tuple({0: dim} if place in varying else None for place in range(len(calls[0])))
    module = eyas.compile(function, calls[0], dynamic_shapes=dims, device="local-sync", progress=False)
    for call in calls:
        torch.testing.assert_close(module(*call), function(*call), rtol=1e-4, atol=1e-5, equal_nan=True)


def rows(*counts, width=4):
    return [(torch.randn(count, width),) for count in counts]


@pytest.mark.parametrize("chunks", [2, 3])
def test_chunks(chunks) -> None:
    same_for_all(lambda x: torch.chunk(x, chunks), *rows(5, 6, 8, 9, 100))
    same_for_all(lambda x: x.chunk(chunks, 1), *rows(5, 8))


def test_how_many_chunks_there_are_must_not_depend_on_the_size() -> None:
    for chunks in range(1, 8):
        for least in range(1, 60):
            counts = {len(torch.zeros(size).chunk(chunks)) for size in range(least, 80)}
            assert parts._always_gives(chunks, least) == (counts == {chunks}), (chunks, least)


def test_splits() -> None:
    same_for_all(lambda x: torch.tensor_split(x, 3), *rows(7, 8, 9, 20))
    same_for_all(lambda x: x.tensor_split((2, 4)), *rows(7, 9))


@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradients_along_dimensions(edge_order) -> None:
    def slopes(x):
        return torch.gradient(x, edge_order=edge_order), torch.gradient(x, spacing=0.5, dim=0, edge_order=edge_order)

    same_for_all(slopes, *rows(5, 9))
    places = [torch.tensor([0.0, 1.0, 1.5, 4.0, 4.5, 7.0, 9.0][:count]) for count in (5, 7)]
    calls = [(torch.randn(len(one), 4), one) for one in places]
    same_for_all(lambda x, at: torch.gradient(x, spacing=(at,), dim=0, edge_order=edge_order), *calls, varying=(0, 1))


def test_elements_along_a_dimension() -> None:
    calls = [(torch.randn(count, 4), torch.randint(0, 5, (count, 4))) for count in (5, 8)]
    same_for_all(lambda x, at: torch.take_along_dim(x, at, 0), *calls, varying=(0, 1))
    calls = [(torch.randn(count, 4), torch.randint(0, 4, (1, 3))) for count in (5, 8)]
    same_for_all(lambda x, at: torch.take_along_dim(x, at, 1), *calls)
    same_for_all(lambda x, at: torch.take_along_dim(x, at), *calls)


def test_products() -> None:
    other, last = torch.randn(10, 3), torch.randn(3)
    same_for_all(lambda x: torch.kron(x, other), *rows(4, 7))
    same_for_all(lambda x: torch.linalg.multi_dot([x, other, other.mT]), *rows(10, 12, width=10))
    same_for_all(lambda x: torch.linalg.multi_dot([x, other, last]), *rows(10, 12, width=10))
    weight = torch.randn(6, 4, 4)
    same_for_all(lambda x: F.bilinear(x, x * 2, weight, torch.ones(6)), *rows(4, 7))


@pytest.mark.parametrize("order", [1, -1, float("inf"), float("-inf"), "nuc", 2, "fro"])
def test_norms_of_matrices(order) -> None:
    same_for_all(lambda x: torch.linalg.matrix_norm(x, order), *rows(4, 6, 9))
    same_for_all(lambda x: torch.linalg.matrix_norm(x, order, keepdim=True), *rows(4, 9))


def test_bags_with_a_row_that_does_not_count() -> None:
    places = torch.tensor([[0, 2, 1], [2, 2, 3]])
    same_for_all(lambda w: F.embedding_bag(places, w, padding_idx=2, mode="sum"), *rows(5, 8))


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"])
def test_transforms_along_several_dimensions(name) -> None:
    transform, in_two = getattr(torch.fft, name), getattr(torch.fft, name[:-1] + "2")
    calls = [(torch.randn(count, 6, 7),) for count in (5, 6, 7)]
    same_for_all(lambda x: transform(x, norm="ortho"), *calls)
    same_for_all(lambda x: in_two(x, dim=(0, -1)), *calls)
    same_for_all(lambda x: transform(x, s=(6, 8), dim=(1, 2)), *calls)


@pytest.mark.parametrize("shape", [(5,), (4, 5), (1, 5)])
def test_masks(shape) -> None:
    mask = torch.rand(shape) > 0.4
    calls = [(torch.randn(count, 4, 5),) for count in (4, 5, 8)]
    same_for_all(lambda x: torch.masked.sum(x, 0, mask=mask), *calls)
    same_for_all(lambda x: torch.masked.softmax(x, 2, mask=mask), *calls)


def test_ops_that_torch_knows_no_shapes_of() -> None:
    bounds = torch.linspace(-2, 2, 6)
    same_for_all(lambda x: torch.histogram(x, bounds), *rows(4, 7))
    same_for_all(lambda x: torch.histogramdd(x, [3, 2], range=[-2.0, 2.0, -2.0, 2.0]), *rows(4, 7, width=2))

    def factors(x):
        packed, taus = torch.geqrf(x)
        return torch.linalg.householder_product(packed, taus) @ packed[:4].triu()

    same_for_all(factors, *rows(4, 7))


def test_factors_of_matrices() -> None:
    def factors(x):
        return torch.linalg.lu(x), torch.linalg.qr(x)[1].abs(), torch.linalg.svdvals(x)

    same_for_all(factors, *rows(4, 5, 9))
    same_for_all(lambda x: torch.linalg.pinv(x), *rows(5, 9))


def test_numbers_beside_tensors() -> None:
    def numbers(x):
        places = torch.arange(5)
        return (x.shape[0] - places, torch.quantile(x, 0.3), x.shape[0] / 3 - places, torch.linalg.cond(x))

    same_for_all(numbers, *rows(4, 7))
    signal = [(torch.randn(count),) for count in (100, 131)]
    same_for_all(lambda x: torch.view_as_real(torch.stft(x, 10, return_complex=True)), *signal)


def test_indices_of_several_shapes() -> None:
    def corners(x):
        count = x.shape[0]
        return x[torch.arange(count).reshape(-1, 1), torch.tensor([[0, 2, 1]])]

    same_for_all(corners, *rows(4, 7))


def test_pairs_and_unique_columns() -> None:
    same_for_all(lambda x: F.pdist(x), *rows(4, 7, 50))
    calls = [(torch.randint(0, 2, (count, 6)),) for count in (2, 3, 5)]
    same_for_all(lambda x: torch.unique(x, dim=1, return_inverse=True, return_counts=True), *calls)
