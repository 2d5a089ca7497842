"""Photographs, speech and text in the forms that models take."""

from __future__ import annotations

import functools

import numpy as np
from tests.conformance.zoo.trained.audio import JFK, read_wave
from tests.conformance.zoo.trained.vision import photograph

# "the quick brown fox jumps over the lazy dog" and "a cat sat on the mat" for BERT's vocabulary of 30,522 pieces.
SENTENCES = (
    (101, 1996, 4248, 2829, 4419, 14523, 2058, 1996, 13971, 3899, 102),
    (101, 1037, 4937, 2938, 2006, 1996, 13523, 102),
)
_MEAN, _DEVIATION = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])


def picture(name: str, height: int, width: int, scale: str = "unit", layout: str = "nchw") -> np.ndarray:
    """A photograph as a batch of one: `unit` is 0 to 1, `signed` -1 to 1, `bytes` 0 to 255 in f32, `imagenet`
    normalised."""
    pixels = photograph(name, height, width).astype(np.float32)
    if scale == "unit":
        pixels = pixels / 255
    elif scale == "signed":
        pixels = pixels / 127.5 - 1
    elif scale == "imagenet":
        pixels = (pixels / 255 - _MEAN) / _DEVIATION
    if layout == "nchw":
        pixels = pixels.transpose(2, 0, 1)
    return np.ascontiguousarray(pixels[None], np.float32)


def gray(name: str, height: int, width: int, scale: str = "unit") -> np.ndarray:
    """The same with one channel."""
    return picture(name, height, width, scale).mean(1, keepdims=True)


@functools.cache
def speech() -> np.ndarray:
    """11 s of a speech with 16 kHz, between -1 and 1."""
    return read_wave(JFK.path())


def spectrum(start: float, frames: int, size: int, hop: int) -> np.ndarray:
    """Spectra of windows of `size` samples, complex [frames, size / 2 + 1]; the recording starts over at its end."""
    first = int(start * 16000)
    index = first + np.arange(frames)[:, None] * hop + np.arange(size)
    windows = speech()[index % len(speech())] * np.hanning(size)
    return np.fft.rfft(windows).astype(np.complex64)


def log_power(start: float, frames: int, size: int, hop: int) -> np.ndarray:
    return np.log10(np.abs(spectrum(start, frames, size, hop)) ** 2 + 1e-12).astype(np.float32)


def log_mel(start: float, frames: int, bands: int, size: int = 512, hop: int = 160) -> np.ndarray:
    """[frames, bands]: triangles of equal width on the mel scale."""
    power = np.abs(spectrum(start, frames, size, hop)) ** 2
    mel = np.linspace(0, 2595 * np.log10(1 + 8000 / 700), bands + 2)
    edges = (700 * (10 ** (mel / 2595) - 1) / 16000 * size)[:, None]
    bins = np.arange(size // 2 + 1)
    rising = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - bins) / (edges[2:] - edges[1:-1])
    bank = np.clip(np.minimum(rising, falling), 0, None)
    return np.log(power @ bank.T + 1e-6).astype(np.float32)


def sound(start: float, samples: int, scale: float = 1.0) -> np.ndarray:
    """A piece of the recording, repeated where it ends."""
    first = int(start * 16000)
    return (np.take(speech(), np.arange(first, first + samples), mode="wrap") * scale).astype(np.float32)


def tokens(length: int, batch: int = 1) -> np.ndarray:
    """Sentences of BERT's vocabulary, cut or repeated to a length."""
    return np.stack([np.resize(SENTENCES[row % 2], length) for row in range(batch)]).astype(np.int64)
