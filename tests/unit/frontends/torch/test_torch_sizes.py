"""Sizes that vary: taking a program apart does not fix them."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import CallError, FrontendError  # noqa: E402
from eyas.frontends.torch.sizes import FixedSizeError, keep_sizes  # noqa: E402

SIZE = torch.export.Dim("size", min=2)


def same_for_all(function, *calls, dims) -> None:
    module = eyas.compile(function, calls[0], dynamic_shapes=dims, progress=False)
    for call in calls:
        torch.testing.assert_close(module(*call), function(*call), rtol=1e-4, atol=1e-5, equal_nan=True)


def test_a_question_that_fixes_a_size_fails() -> None:
    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.square(x)

    def nosy(x):
        return x * x if x.shape[0] == 3 else x

    program = torch.export.export(Model(), (torch.randn(3, 4),), dynamic_shapes=({0: SIZE},))
    with keep_sizes(program), pytest.raises(FixedSizeError, match="dimension 0 of 'x' may vary"):
        program.run_decompositions({torch.ops.aten.square.default: nosy})
    with keep_sizes(program):
        made = program.run_decompositions({torch.ops.aten.square.default: lambda x: x * x})
    (placeholder,) = [node for node in made.graph.nodes if node.op == "placeholder"]
    assert isinstance(placeholder.meta["val"].shape[0], torch.SymInt)


def test_a_question_of_ours_which_size_is_larger_is_refused() -> None:
    rows = torch.export.Dim("rows", min=3, max=1000)
    with pytest.raises(FrontendError, match="'svd'"):
        eyas.compile(lambda x: torch.svd(x), (torch.randn(3, 5),), dynamic_shapes=({0: rows},), progress=False)


def test_where_the_ranges_answer_which_size_is_larger() -> None:
    columns = torch.export.Dim("columns", min=5, max=1000)

    def spectrum(x):
        return torch.linalg.qr(x)[1].abs()

    same_for_all(spectrum, (torch.randn(4, 6),), (torch.randn(4, 9),), dims=({1: columns},))


def test_any_number_of_empty_matrices() -> None:
    def factors(x, square):
        return *torch.svd(x), torch.linalg.svdvals(x.mT), torch.linalg.det(square), torch.linalg.inv(square)

    def given(count):
        return torch.randn(count, 3, 0), torch.randn(count, 0, 0)

    same_for_all(factors, given(3), given(5), dims=({0: SIZE}, {0: SIZE}))


def test_spectra_of_several_signals() -> None:
    def spectra(x, window):
        return (
            torch.stft(x, 16, window=window, win_length=12, return_complex=True),
            torch.stft(x, 10, 3, center=False, normalized=True, return_complex=True),
            torch.stft(x, 10, window=window[:10], onesided=False, return_complex=True, pad_mode="constant"),
        )

    window = torch.rand(12)
    same_for_all(spectra, (torch.randn(3, 100), window), (torch.randn(6, 100), window), dims=({0: SIZE}, None))
    same_for_all(spectra, (torch.randn(50), window), dims=None)


def test_deviations() -> None:
    def deviations(x):
        return (
            *(torch.std_mean(x), torch.std_mean(x, 0), torch.var_mean(x, 0, correction=0.5)),
            *(torch.std(x, 0, correction=6), x.std(1, keepdim=True)),
        )

    same_for_all(deviations, (torch.randn(5, 4),), (torch.randn(7, 4),), dims=({0: SIZE},))
    same_for_all(deviations, (torch.randn(5, 4),), dims=None)


def test_regular_places_of_memory() -> None:
    def places(x):
        return (
            *(torch.as_strided(x, (2, 2), (1, 2)), torch.as_strided(x, (2, 2), (1, 2), 1)),
            torch.as_strided_scatter(x, x[:2, :2], (2, 2), (1, 2), 0),
            torch.as_strided(x, (x.shape[0],), (x.shape[1],)),
            F.group_norm(x.unsqueeze(-1), 2, x[0], x[1]),
        )

    same_for_all(places, (torch.randn(5, 4),), (torch.randn(7, 4),), dims=({0: SIZE},))
    module = eyas.compile(
        lambda x: torch.as_strided(x, (10,), (1,)), (torch.randn(12),), dynamic_shapes=({0: SIZE},), progress=False
    )
    with pytest.raises(CallError, match="outside of the tensor's memory"):
        module(torch.randn(5))


def test_spectra_as_long_as_a_size_that_varies() -> None:
    size = torch.export.Dim("size", min=9, max=100)

    def spectra(x):
        return torch.fft.fft(x, dim=0), torch.fft.rfft2(x, norm="ortho"), torch.fft.irfft(x + 0j, dim=0)

    same_for_all(spectra, (torch.randn(9, 5),), (torch.randn(12, 5),), dims=({0: size},))
