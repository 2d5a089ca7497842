"""How torch's Fourier transforms are taken apart: into real products, as `fourier.py` says."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from eyas.frontends.fourier import Fourier

aten = torch.ops.aten
Tensor = torch.Tensor

# Transforms that torch itself writes with the three that follow.
_COMPOSITE = (
    "fft_fft fft_ifft fft_rfft fft_irfft fft_hfft fft_ihfft fft_fftshift fft_ifftshift"
    " fft_fft2 fft_ifft2 fft_rfft2 fft_irfft2 fft_hfft2 fft_ihfft2"
    " fft_fftn fft_ifftn fft_rfftn fft_irfftn fft_hfftn fft_ihfftn"
).split()


def decompositions() -> dict[Any, Callable[..., Any]]:
    """These, by op."""
    composite = {
        overload: functools.partial(_as_torch_does, overload)
        for name in _COMPOSITE
        for overload in (getattr(aten, name).default,)
    }
    return {
        **composite,
        aten.istft.default: inverse_short_time,
        aten.stft.default: spectra,
        aten.stft.center: short_time,
        aten._fft_c2c.default: complex_to_complex,
        aten._fft_c2r.default: complex_to_real,
        aten._fft_r2c.default: real_to_complex,
    }


def _as_torch_does(overload: Any, *args: Any, **kwargs: Any) -> Any:
    return overload._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)


def short_time(
    x: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    *choices: Any,
    **named: Any,
) -> Tensor:
    """Spectra of stretches of a signal, which is continued at both ends so that the first has its begin in the
    middle."""
    if center:
        sizes = [1] * (3 - x.dim()) + list(x.shape)
        x = torch.nn.functional.pad(x.reshape(sizes), [n_fft // 2] * 2, pad_mode).reshape([*x.shape[:-1], -1])
    return spectra(x, n_fft, hop_length, win_length, window, *choices, **named)


def spectra(
    x: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Of stretches of `n_fft` samples, each with the window's weights. torch's own way fixes sizes that vary."""
    step, length = hop_length or n_fft // 4, win_length or n_fft
    if align_to_window or return_complex is None:
        return NotImplemented
    count: Any = torch.sym_int((x.shape[-1] - n_fft) // step + 1)
    begins = torch.arange(count, device=x.device) * step
    parts = x[..., begins.unsqueeze(-1) + torch.arange(n_fft, device=x.device)]
    if window is not None or length < n_fft:
        weights = torch.ones(length, dtype=x.dtype, device=x.device) if window is None else window
        before = (n_fft - length) // 2
        parts = parts * torch.nn.functional.pad(weights, [before, n_fft - length - before])
    norm = "ortho" if normalized else "backward"
    is_half = onesided is not False and not parts.is_complex()
    found = torch.fft.rfft(parts, norm=norm) if is_half else torch.fft.fft(parts, norm=norm)
    found = found.transpose(-1, -2)
    return found if return_complex else torch.view_as_real(found)


class _TorchFourier(Fourier[Tensor]):
    def shape(self, value: Tensor) -> list[int]:
        return list(value.shape)

    def roots(self, rows: int, columns: int, length: int, sign: int, like: Tensor) -> tuple[Tensor, Tensor]:
        # Exact for every length: the angle is reduced as an integer, and computed once, when the model is compiled.
        row = torch.arange(rows, device=like.device).unsqueeze(1)
        turns = torch.remainder(row * torch.arange(columns, device=like.device), length)
        angle = turns.to(torch.float64) * (sign * 2 * math.pi / _number(length))
        return torch.cos(angle).to(like.dtype), torch.sin(angle).to(like.dtype)

    def half_roots(self, length: int, like: Tensor) -> tuple[Tensor, Tensor]:
        cosines, sines = self.roots(length // 2 + 1, length, length, 1, like)
        row = torch.arange(length // 2 + 1, device=like.device).unsqueeze(1)
        weight = torch.where((row == 0) | (2 * row == length), 1.0, 2.0).to(like.dtype)
        return cosines * weight, sines * weight

    def dot(self, value: Tensor, table: Tensor) -> Tensor:
        return torch.matmul(value, table)

    def add(self, one: Tensor, other: Tensor) -> Tensor:
        return one + other

    def subtract(self, one: Tensor, other: Tensor) -> Tensor:
        return one - other

    def multiply_table(self, value: Tensor, table: Tensor) -> Tensor:
        return value * table

    def reshape(self, value: Tensor, shape: Sequence[int]) -> Tensor:
        return value.reshape(list(shape))

    def transpose(self, value: Tensor, order: Sequence[int]) -> Tensor:
        return value.permute(list(order))


_FOURIER = _TorchFourier()


def complex_to_complex(x: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Tensor:
    """A transform of complex values along several dimensions."""
    parts = _parts(x)
    for axis in dim:
        parts = _FOURIER.transform(parts, axis % x.dim(), -1 if forward else 1)
    return _scaled_complex(parts, _factor([x.shape[axis] for axis in dim], normalization))


def real_to_complex(x: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Tensor:
    """A transform of real values; `onesided` keeps the half of the last dimension from which the rest follows."""
    lengths = [x.shape[axis] for axis in dim]
    last = dim[-1] % x.dim()
    if onesided and not _FOURIER.is_split(x.shape[last]):
        parts = _FOURIER.transform_real(x, last)
    else:
        parts = _FOURIER.transform((x, torch.zeros_like(x)), last, -1)
        if onesided:
            parts = _first(parts, last, x.shape[last] // 2 + 1)
    for axis in dim[:-1]:
        parts = _FOURIER.transform(parts, axis % x.dim(), -1)
    return _scaled_complex(parts, _factor(lengths, normalization))


def complex_to_real(x: Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> Tensor:
    """The inverse of the onesided transform."""
    parts = _parts(x)
    for axis in dim[:-1]:
        parts = _FOURIER.transform(parts, axis % x.dim(), 1)
    last = dim[-1] % x.dim()
    half = last_dim_size // 2 + 1
    result = _FOURIER.real_from_half(_first(parts, last, half), last, last_dim_size)
    factor = _factor([*(x.shape[axis] for axis in dim[:-1]), last_dim_size], normalization)
    return _scaled(result, factor)


def inverse_short_time(
    x: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Frames are transformed back, added where they overlap, and divided by the sum of the squared windows.

    torch also checks that this sum is nowhere 0, which depends on the window's values; here such samples become NaN.
    """
    hop, width = hop_length or n_fft // 4, win_length or n_fft
    frames = x.transpose(-1, -2)
    norm = "ortho" if normalized else "backward"
    if return_complex:
        pieces = torch.fft.ifft(frames, n_fft, norm=norm)
    elif onesided is False:
        pieces = torch.fft.irfft(frames[..., : n_fft // 2 + 1], n_fft, norm=norm)
    else:
        pieces = torch.fft.irfft(frames, n_fft, norm=norm)
    if window is None:
        window = torch.ones(width, dtype=x.real.dtype, device=x.device)
    left = (n_fft - width) // 2
    window = torch.nn.functional.pad(window, (left, n_fft - width - left))
    count = frames.shape[-2]
    total = n_fft + hop * (count - 1)
    start = torch.arange(count, device=x.device).unsqueeze(1) * hop
    places = (start + torch.arange(n_fft, device=x.device)).reshape(-1)
    signal = _overlap(pieces * window, places, total)
    weight = _overlap((window * window).expand(count, n_fft), places, total)
    first = n_fft // 2 if center else 0
    if length is not None:
        last = min(first + length, total)
    else:
        last = total - n_fft // 2 if center else total
    result = signal[..., first:last] / weight[first:last]
    missing = 0 if length is None else length - (last - first)
    return torch.nn.functional.pad(result, (0, missing)) if missing else result


def _overlap(pieces: Tensor, places: Tensor, total: int) -> Tensor:
    """The last two dimensions as one, added up by place."""
    flat = pieces.reshape(*pieces.shape[:-2], -1)
    return flat.new_zeros((*flat.shape[:-1], total)).index_add(-1, places, flat)


def _parts(x: Tensor) -> tuple[Tensor, Tensor]:
    pairs = torch.view_as_real(x)
    return pairs.select(-1, 0), pairs.select(-1, 1)


def _first(parts: tuple[Tensor, Tensor], dim: int, count: int) -> tuple[Tensor, Tensor]:
    return parts[0].narrow(dim, 0, count), parts[1].narrow(dim, 0, count)


def _number(size: int) -> Any:
    """A size to compute with: one that varies as a tensor."""
    return size if isinstance(size, int) else torch.full((), size, dtype=torch.float64)


def _factor(lengths: Sequence[int], normalization: int) -> Any:
    """torch's codes: 0 none, 1 by the root of the count, 2 by the count."""
    count = _number(math.prod(lengths))
    return 1.0 if normalization == 0 else count**-0.5 if normalization == 1 else 1.0 / count


def _scaled(x: Tensor, factor: Any) -> Tensor:
    if isinstance(factor, Tensor):
        return x * factor.to(x.dtype)
    return x if factor == 1.0 else x * factor


def _scaled_complex(parts: Sequence[Tensor], factor: Any) -> Tensor:
    return torch.view_as_complex(torch.stack([_scaled(part, factor) for part in parts], -1))
