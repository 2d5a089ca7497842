"""Arg-reductions, scans, scatters, sorts and recurrent layers on a Vulkan device: odd sizes, ties, NaN, duplicates."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest
from tests.tools import vulkan

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import eyas  # noqa: E402
from eyas.module.spirv_executable import read_executable  # noqa: E402

NAN, INF = float("nan"), float("inf")


class Function(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


@pytest.fixture(autouse=True)
def same_numbers():
    torch.manual_seed(0)


def check(function, *inputs: torch.Tensor, strategy: str, tolerance: float = 0) -> None:
    """Compares with torch, and looks for a dispatch of the strategy that it is about."""
    model = function if isinstance(function, nn.Module) else Function(function)
    module = eyas.compile(model, inputs, target=vulkan.target())
    with torch.no_grad():
        expected = torch.utils._pytree.tree_leaves(model(*inputs))
    for got, want in zip(torch.utils._pytree.tree_leaves(module(*inputs)), expected, strict=True):
        np.testing.assert_allclose(np.asarray(got), want.numpy(), rtol=tolerance, atol=tolerance)
    assert strategy in [kernel["strategy"] for kernel in module.manifest["kernels"]]


@pytest.mark.parametrize("length", [2, 100, 1021])
def test_the_first_of_equals_and_the_first_nan(length):
    x = torch.randint(0, 5, (6, length)).float()
    x[0, length // 2 :] = NAN
    x[1] = -INF
    x[2] = 1.0
    x[3, -1] = NAN

    def found(x):
        return x.argmax(-1), x.argmin(-1), x.max(-1), x.min(-1)

    check(found, x, strategy="rows" if length > 2 else "points")


def test_arg_reductions_of_integers_and_of_all():
    x = torch.randint(-9, 9, (7, 500), dtype=torch.int32)
    check(lambda x: (x.argmax(-1), x.argmin(), x.max(0)), x, strategy="rows")


@pytest.mark.parametrize("shape", [(3, 1), (2, 17), (3, 1025), (2, 5000), (1000, 9)], ids=str)
def test_running_sums(shape):
    x = torch.randn(shape)
    check(lambda x: (x.cumsum(-1), (x > 0).cumsum(-1)), x, strategy="scan", tolerance=2e-4)


def test_running_sums_of_other_dimensions_and_kinds():
    x = torch.rand(3, 70, 5) + 0.5
    check(lambda x: (x.cumsum(0), x.cumsum(1), x.cumprod(1)), x, strategy="scan", tolerance=1e-3)


def test_where_something_is():
    check(lambda x: (torch.nonzero(x > 0), torch.masked_select(x, x > 0)), torch.randn(5, 40), strategy="scan")


@pytest.mark.parametrize("sizes", [(10, 20, 8), (300, 1000, 3), (5, 1, 1), (3000, 700, 2)], ids=str)
def test_updates_of_elements(sizes):
    rows, updates, columns = sizes
    x, values = torch.randn(rows, columns), torch.randn(updates, columns)
    index = torch.randint(0, rows, (updates, columns))
    apart = torch.rand(rows, columns).argsort(0)[: min(rows, updates)]

    def changed(x, index, values, apart):
        added = x.scatter_add(0, index, values)
        largest = x.scatter_reduce(0, index, values, "amax")
        return added, largest, x.scatter(0, apart, values[: apart.shape[0]])

    check(changed, x, index, values, apart, strategy="scatter", tolerance=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64], ids=str)
def test_updates_of_rows(dtype):
    """Of several rows that go to the same place the last one stays, of which torch promises nothing."""
    x, values = (torch.randint(-9, 9, (count, 77)).to(dtype) for count in (10, 300))
    index = torch.randint(0, 10, (300,))
    added = Function(lambda x, i, v: (x.index_put((i,), v, accumulate=True), x.index_add(0, i, v)))
    check(added, x, index, values, strategy="scatter")
    module = eyas.compile(Function(lambda x, i, v: x.index_put((i,), v)), (x, index, values), target=vulkan.target())
    wanted = x.numpy().copy()
    for row, value in zip(index.tolist(), values.numpy(), strict=True):
        wanted[row] = value
    np.testing.assert_array_equal(np.asarray(module(x, index, values)), wanted)


def test_everything_in_one_place():
    x = torch.full((500,), 3)
    check(lambda x: torch.bincount(x, minlength=10), x, strategy="scatter")


@pytest.mark.parametrize("length", [2, 3, 100, 1025, 9001])
def test_sorts_are_stable(length):
    x = torch.randint(0, 40, (3, length)).float()
    x[0, length // 2], x[1, -1], x[2, 0] = NAN, INF, -INF

    def both(x):
        return [*torch.sort(x, dim=-1, stable=True), *torch.sort(x, dim=-1, stable=True, descending=True)]

    check(both, x, strategy="sort")


@pytest.mark.parametrize("dtype", [torch.float16, torch.int64, torch.uint8, torch.bool], ids=str)
def test_sorts_of_types(dtype):
    x = torch.randint(0, 9, (4, 50, 3)).to(dtype)
    check(lambda x: torch.sort(x, dim=1, stable=True), x, strategy="sort")


def test_the_largest():
    check(lambda x: (*torch.topk(x, 5), *x.median(-1)), torch.randn(8, 301), strategy="sort")


def test_sorts_of_an_open_length():
    length = torch.export.Dim("length", min=2, max=5000)
    model, x = Function(lambda x: torch.sort(x, dim=-1, stable=True)), torch.randn(2, 100)
    module = eyas.compile(model, (x,), target=vulkan.target(), dynamic_shapes={"inputs": ({1: length},)})
    for count in (2, 77, 3000):
        x = torch.randint(0, 50, (2, count)).float()
        for got, want in zip(module(x), model(x), strict=True):
            np.testing.assert_array_equal(np.asarray(got), want.numpy())


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers(kind):
    model = kind(9, 13, batch_first=True).eval()
    check(model, torch.randn(5, 6, 9), strategy="rows", tolerance=1e-5)


def test_the_code_is_valid(tmp_path):
    def everything(x, i):
        first, order = torch.sort(x, dim=-1, stable=True)
        return first, order, x.argmax(-1), x.cumsum(-1), x.index_put((i,), x[:2], accumulate=True)

    path = tmp_path / "everything.eyas"
    inputs = (torch.randn(4, 100), torch.tensor([1, 1]))
    eyas.compile(Function(everything), inputs, target=vulkan.target()).save(path)
    with zipfile.ZipFile(path) as file:
        (name,) = [one for one in file.namelist() if one.endswith(".spirv")]
        kernels = read_executable(file.read(name))
    assert len(kernels) >= 4
    assert [problem for kernel in kernels if (problem := vulkan.validate(kernel.code))] == []


def test_sorts_of_jax():
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp

    def both(x):
        return jnp.sort(x, 1), jax.lax.top_k(x, 3), jax.lax.sort((x, 2 * x), num_keys=1), jnp.sort(x[:, :1], 1)

    x = np.random.default_rng(0).integers(0, 40, (3, 101)).astype(np.float32)
    x[0, 5] = NAN
    module = eyas.compile(jax.jit(both), (x,), target=vulkan.target())
    for got, want in zip(jax.tree.leaves(module(x)), jax.tree.leaves(both(x)), strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))
    assert "loops" not in [kernel["strategy"] for kernel in module.manifest["kernels"]]
