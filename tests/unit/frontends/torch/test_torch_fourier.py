"""Transforms as products give torch's numbers, for lengths that split, that are prime, and that are short."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from eyas.frontends.torch import fourier  # noqa: E402

torch.manual_seed(0)


@pytest.mark.parametrize("length", [1, 2, 7, 32, 36, 97, 210])
@pytest.mark.parametrize("normalization", [0, 1, 2])
def test_complex(length, normalization):
    x = torch.randn(3, length, dtype=torch.complex128)
    for dims in ([1], [0, 1]):
        for forward in (True, False):
            want = torch._fft_c2c(x, dims, normalization, forward)
            torch.testing.assert_close(fourier.complex_to_complex(x, dims, normalization, forward), want)


@pytest.mark.parametrize("length", [1, 2, 7, 32, 36, 97, 210])
def test_real(length):
    x = torch.randn(3, length, 4, dtype=torch.float64)
    for dims in ([1], [0, 1], [2, 1]):
        half = torch._fft_r2c(x, dims, 0, True)
        torch.testing.assert_close(fourier.real_to_complex(x, dims, 0, True), half)
        torch.testing.assert_close(fourier.real_to_complex(x, dims, 0, False), torch._fft_r2c(x, dims, 0, False))
        torch.testing.assert_close(
            fourier.complex_to_real(half, dims, 2, length), torch._fft_c2r(half, dims, 2, length)
        )


@pytest.mark.parametrize("options", [{}, {"center": False}, {"length": 200}, {"length": 300}, {"normalized": True}])
def test_short_time(options):
    window = torch.hamming_window(48, dtype=torch.float64)
    shared = {"window": window, "win_length": 48, **{k: v for k, v in options.items() if k != "length"}}
    spectrum = torch.stft(torch.randn(2, 256, dtype=torch.float64), 64, 16, return_complex=True, **shared)
    if options.get("center") is False or options.get("length") == 300:
        # torch refuses samples that no window reaches.
        shared |= {"window": torch.ones(64, dtype=torch.float64), "win_length": 64}
    got = fourier.inverse_short_time(spectrum, 64, 16, **shared, length=options.get("length"))
    torch.testing.assert_close(got, torch.istft(spectrum, 64, 16, **shared, length=options.get("length")))
