"""Each backward op taken apart against torch's own kernel for it, in f64: the forward op is torch's, so are its saved
results."""

from __future__ import annotations

import itertools

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402, N812

from eyas.frontends.torch import gradients  # noqa: E402
from eyas.frontends.torch.gradients.autograd import gradients as differentiate  # noqa: E402
from eyas.frontends.torch.rare import trilinear  # noqa: E402
from eyas.frontends.torch.routing import embedding_bag  # noqa: E402
from eyas.frontends.torch.sampling import grid_sampler  # noqa: E402

aten = torch.ops.aten
TABLE = gradients.decompositions()


def compare(op, *args):
    want, got = op(*args), TABLE[op](*args)
    for one, other in zip(*((made if isinstance(made, tuple) else (made,)) for made in (want, got)), strict=True):
        if one is None or other is None:
            assert other is None
            continue
        assert one.dtype == other.dtype and one.shape == other.shape
        torch.testing.assert_close(other, one, rtol=1e-9, atol=1e-9, equal_nan=True)


def random(*shape):
    return torch.randn(shape, dtype=torch.float64)


@pytest.mark.parametrize(
    ("sizes", "kernel", "stride", "padding"),
    [
        ((7, 9), [3, 2], [2, 1], [1, 0]),
        ((8, 8), [2, 2], [], [0, 0]),
        ((5, 6), [3, 3], [2, 2], [1, 1]),
        ((5, 6), [3], [], [0]),
        ((4, 7, 5), [2, 3, 2], [2, 2, 1], [1, 1, 0]),
        ((4, 4, 4), [2], [2], [0]),
    ],
)
def test_average_pooling(sizes, kernel, stride, padding):
    pool = getattr(F, f"avg_pool{len(sizes)}d")
    backward = getattr(aten, f"avg_pool{len(sizes)}d_backward").default
    for lead, ceil, counts, divisor in itertools.product(((2, 3), (3,)), (False, True), (False, True), (None, 5)):
        x = random(*lead, *sizes)
        made = pool(x, kernel, stride or None, padding, ceil, counts, divisor)
        compare(backward, random(*made.shape), x, kernel, stride, padding, ceil, counts, divisor)


@pytest.mark.parametrize(("sizes", "wanted"), [((7, 9), (3, 4)), ((4, 4), (6, 1)), ((5, 6, 7), (2, 6, 3))])
def test_adaptive_average_pooling(sizes, wanted):
    backward = getattr(aten, f"_adaptive_avg_pool{len(sizes)}d_backward").default
    compare(backward, random(2, 3, *wanted), random(2, 3, *sizes))
    compare(backward, random(3, *wanted), random(3, *sizes))


@pytest.mark.parametrize("padding", [[2, 0], [-1, 3], [1, 2, 0, 3], [2, -1, 1, 1], [1, 0, 2, 2, 3, 1]])
def test_replicated_borders(padding):
    axes = len(padding) // 2
    x = random(2, 3, *(4, 5, 6)[:axes])
    made = F.pad(x, padding, mode="replicate")
    compare(getattr(aten, f"replication_pad{axes}d_backward").default, random(*made.shape), x, padding)


LINEAR = {
    1: aten.upsample_linear1d_backward,
    2: aten.upsample_bilinear2d_backward,
    3: aten.upsample_trilinear3d_backward,
}


@pytest.mark.parametrize(
    ("sizes", "wanted"), [((5,), (9,)), ((7,), (3,)), ((5, 6), (11, 4)), ((1, 4), (3, 1)), ((3, 4, 5), (6, 2, 7))]
)
def test_resizing(sizes, wanted):
    axes = len(sizes)
    gradient, before = random(2, 3, *wanted), [2, 3, *sizes]
    for factor in (None, 1.7):
        for align in (False, True):
            compare(LINEAR[axes].default, gradient, list(wanted), before, align, *[factor] * axes)
        for name in ("upsample_nearest", "_upsample_nearest_exact"):
            compare(getattr(aten, f"{name}{axes}d_backward").default, gradient, list(wanted), before, *[factor] * axes)
    if axes == 2:
        for align in (False, True):
            compare(aten.upsample_bicubic2d_backward.default, gradient, list(wanted), before, align, None, 1.7)
            for op in (aten._upsample_bilinear2d_aa_backward, aten._upsample_bicubic2d_aa_backward):
                compare(op.default, gradient, list(wanted), before, align, None, None)


@pytest.mark.parametrize("axes", [2, 3])
def test_largest_elements(axes):
    sizes = (7, 8, 6)[:axes]
    for lead in ((2, 3), (3,)):
        x = random(*lead, *sizes)
        made, places = getattr(F, f"max_pool{axes}d")(x, 3, 2, 1, return_indices=True)
        backward = getattr(aten, f"max_pool{axes}d_with_indices_backward").default
        window = ([3] * axes, [2] * axes, [1] * axes, [1] * axes, False)
        compare(backward, random(*made.shape), x, *window, places)
        made, places = getattr(F, f"adaptive_max_pool{axes}d")(x, 3, return_indices=True)
        compare(getattr(aten, f"adaptive_max_pool{axes}d_backward").default, random(*made.shape), x, places)


def test_places_of_a_mask():
    mask = torch.rand(4, 5) > 0.5
    compare(aten.masked_scatter_backward.default, random(4, 5), mask, [3, 7])
    compare(aten.masked_scatter_backward.default, random(4, 5), torch.zeros_like(mask), [2])


def test_one_row_of_a_table():
    gradient, place = random(6), torch.tensor(2)
    made = TABLE[aten.embedding_dense_backward.default](gradient, place, 4, -1, False)
    want = torch.zeros(4, 6, dtype=torch.float64)
    want[2] = gradient
    assert torch.equal(made, want)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")])
def test_distances(p):
    x, y = random(2, 5, 3), random(2, 4, 3)
    y[:, 0] = x[:, 1]
    y[:, 1, 2] = x[:, 2, 2]
    compare(aten._cdist_backward.default, random(2, 5, 4), x, y, p, torch.cdist(x, y, p))
    rows = random(6, 3)
    rows[1] = rows[4]
    compare(aten._pdist_backward.default, random(15), rows, p, F.pdist(rows, p))


@pytest.mark.parametrize(("sizes", "modes"), [((5, 6), (0, 1, 2)), ((4, 5, 3), (0, 1))])
def test_samples_of_images(sizes, modes):
    axes = len(sizes)
    x, grid = random(2, 3, *sizes), 1.3 * random(2, *(4, 3, 2)[:axes], axes)
    grid[0, 0] = -1.0
    grid[1, 1] = 1.0
    backward = getattr(aten, f"grid_sampler_{axes}d_backward").default
    for mode, padding, align in itertools.product(modes, (0, 1, 2), (False, True)):
        gradient = random(2, 3, *grid.shape[1:-1])
        forward = getattr(aten, f"grid_sampler_{axes}d")
        made = grid_sampler(x, grid, mode, padding, align)
        torch.testing.assert_close(made, forward(x, grid, mode, padding, align), rtol=1e-9, atol=1e-9)
        for wanted in ([True, True], [False, True]):
            got = TABLE[backward](gradient, x, grid, mode, padding, align, wanted)
            want = backward(gradient, x, grid, mode, padding, align, wanted)
            torch.testing.assert_close(got[1], want[1], rtol=1e-9, atol=1e-9)
            if wanted[0]:
                torch.testing.assert_close(got[0], want[0], rtol=1e-9, atol=1e-9)
            else:
                assert got[0] is None


@pytest.mark.parametrize(("causal", "masked", "scale"), [(False, False, None), (True, False, 0.3), (False, True, None)])
def test_attention(causal, masked, scale):
    query, key, value = random(2, 3, 5, 4), random(2, 3, 6, 4), random(2, 3, 6, 4)
    mask = random(5, 6) if masked else None
    options = {"attn_mask": mask, "scale": scale}
    out, sums = aten._scaled_dot_product_flash_attention_for_cpu(query, key, value, 0.0, causal, **options)
    op = aten._scaled_dot_product_flash_attention_for_cpu_backward.default
    args = (random(*out.shape), query, key, value, out, sums, 0.0, causal)
    for got, want in zip(TABLE[op](*args, **options), op(*args, **options), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-9)


def test_results_without_gradients_count_for_nothing():
    x, y = random(3), random(3)
    made = differentiate(lambda x, y: (x * y, x + y, x > 0), (x, y), (True, False), (None, torch.ones(3), None))
    assert torch.equal(made[0], torch.ones(3, dtype=torch.float64)) and made[1] is None
    (zeros,) = differentiate(lambda x: x.detach() * 1, (x,), (True,), (torch.ones(3),))
    assert torch.equal(zeros, torch.zeros_like(x))


@pytest.mark.parametrize("sums", [[2], [2, 3], [0], []])
def test_products_of_three(sums):
    given = (random(3, 4), random(5, 4, 2), random(3, 2), [1, 3], [0], [1, 2], sums)
    torch.testing.assert_close(trilinear(*given), aten._trilinear(*given))


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("padding_idx", [-1, 3])
@pytest.mark.parametrize("last", [False, True])
def test_bags(mode, padding_idx, last):
    indices, offsets = torch.tensor([4, 3, 3, 0, 4, 4, 3]), torch.tensor([0, 2, 2, 6, 7] if last else [0, 2, 2, 6])
    weight = random(6, 5)
    weights = random(7) if mode == 0 else None
    for by_frequency in (False, True) if mode != 2 else (False,):
        noted = (by_frequency, mode, False, weights, last, padding_idx)
        result, *saved = aten._embedding_bag(weight, indices, offsets, *noted)
        rest = (6, by_frequency, mode, False, weights, padding_idx)
        compare(aten._embedding_bag_backward.default, random(*result.shape), indices, offsets, *saved, *rest)
    if weights is not None:
        rest = (weight, indices, offsets, saved[0], mode, padding_idx)
        compare(aten._embedding_bag_per_sample_weights_backward.default, random(*result.shape), *rest)


def test_the_rows_of_largest_elements_are_noted():
    indices, offsets = torch.tensor([4, 3, 3, 0, 4]), torch.tensor([0, 2, 2])
    weight = torch.randn(6, 5)
    for padding_idx in (-1, 3):
        rest = (weight, indices, offsets, False, 2, False, None, False, padding_idx)
        want, got = aten._embedding_bag(*rest), embedding_bag(*rest)
        assert torch.equal(got[0], want[0]) and got[3].shape == want[3].shape
        nothing = want[2] == 0
        assert torch.equal(got[3][~nothing], want[3][~nothing]) and (got[3][nothing] == -1).all()


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_stretches(reduce):
    data, lengths = random(6, 3), torch.tensor([2, 0, 3, 1])
    for initial in (None, 0.5):
        options = {"lengths": lengths, "axis": 0, "initial": initial}
        output = aten.segment_reduce(data, reduce, unsafe=False, **options)
        gradient = random(*output.shape)
        want = aten._segment_reduce_backward(gradient, output, data, reduce, **options)
        got = TABLE[aten._segment_reduce_backward.default](gradient, output, data, reduce, **options)
        torch.testing.assert_close(got, want)
