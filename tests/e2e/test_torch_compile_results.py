"""What `torch.compile(backend="eyas")` returns beside plain tensors: views, numbers, conjugates; and where refusals of
gradients point to."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import eyas.errors  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


def x(dtype=torch.float32):
    generator = torch.Generator().manual_seed(3)
    return torch.randn(5, 4, generator=generator, dtype=dtype).requires_grad_()


def check(function, *others, of=None, dynamic=False):
    """Results, their strides and places, and the gradient, as eager torch has them."""
    given = x() if of is None else of
    compiled = torch.compile(function, backend="eyas", fullgraph=True, dynamic=dynamic)
    made, wanted = compiled(given, *others), function(given, *others)
    for one, other in zip(made, wanted, strict=True):
        torch.testing.assert_close(one, other)
        assert (one.stride(), one.storage_offset()) == (other.stride(), other.storage_offset())
    weights = [torch.randn(one.shape, dtype=one.dtype) for one in wanted]
    torch.testing.assert_close(
        torch.autograd.grad(made, [given], weights), torch.autograd.grad(wanted, [given], weights)
    )


PLACES = torch.tensor([1, 2, -1])


def test_views_of_arguments_that_begin_where_data_says():
    check(lambda x, places: torch.tensor_split(x, places), PLACES)
    check(lambda x, places: torch.tensor_split(x, places, 1), PLACES)


def test_views_of_computed_results_that_begin_where_data_says():
    check(lambda x, places: torch.tensor_split(x * 3, places), PLACES)


@pytest.mark.parametrize("dynamic", [False, True])
def test_views_of_arguments_and_results(dynamic):
    def function(x):
        y = x * 2
        views = y.t()[1:], y[2:], y.view(-1)[x.shape[1] :], y.diagonal()
        return *views, x[1:].t(), x.view(-1)[x.shape[0] :], x.expand(2, *x.shape), x.sum()

    check(function, dynamic=dynamic)


def test_a_view_shares_the_memory_of_its_base():
    whole, part = torch.compile(lambda x: (lambda y: (y, y[1:]))(x * 2), backend="eyas", fullgraph=True)(x())
    with torch.no_grad():
        part.zero_()
    assert not whole[1:].any()


@pytest.mark.parametrize("function", [torch.fft.ifft, torch.fft.ihfft, lambda x: torch.fft.fft(x).conj() * 3])
def test_gradients_of_conjugated_spectra(function):
    check(lambda x: (torch.view_as_real(function(x).resolve_conj()),))


@pytest.mark.parametrize("function", [torch.fft.irfft, torch.fft.hfft])
def test_gradients_of_real_signals_of_spectra(function):
    check(lambda x: (function(x).clone(),), of=x(torch.complex64))


def test_a_refusal_names_the_users_function_and_line(monkeypatch):
    from eyas.frontends.torch import decompositions

    kept = decompositions.decomposition_table

    def without():
        return {op: made for op, made in kept().items() if op is not torch.ops.aten.grid_sampler_2d_backward.default}

    monkeypatch.setattr("eyas.frontends.torch.dynamo.decomposition_table", without)
    monkeypatch.setattr("eyas.frontends.torch.importer.decomposition_table", without)

    def sample(image, places):
        return torch.nn.functional.grid_sample(image, places, align_corners=False)  # the line

    image = torch.randn(1, 1, 4, 4, requires_grad=True)
    made = torch.compile(sample, backend="eyas", fullgraph=True)(image, torch.randn(1, 3, 3, 2))
    with pytest.raises(eyas.errors.FrontendError) as refusal:
        made.sum().backward()
    line = next(number for number, text in enumerate(open(__file__), 1) if text.endswith("# the line\n"))
    assert "gradient of grid_sample" in str(refusal.value)
    assert f"test_torch_compile_results.py:{line}" in str(refusal.value)
