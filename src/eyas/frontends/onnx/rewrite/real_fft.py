"""The Fourier transform of real rows as two products with small tables (Cooley and Tukey, 1965).

A length of n = m * k takes about n * (2k + m) multiply-adds in place of n * n, all of them in ordinary products; a
chain of passes would take fewer, but each of them moves all of the data. Sums are short, so f32 is as exact as in FFT
libraries.
"""

from __future__ import annotations

import math

import numpy as np

from eyas.frontends.onnx.rewrite.rules import Builder
from eyas.frontends.onnx.rewrite.sizes import Size

# Shorter transforms are one product, in f64; so are those that have no factor near the square root.
_SHORTEST = 128
_MOST_UNEVEN = 8


def factors(length: int) -> tuple[int, int] | None:
    """Two factors of a length, the smaller one first; None when the transform is better one product."""
    if length < _SHORTEST:
        return None
    first = max(factor for factor in range(1, math.isqrt(length) + 1) if length % factor == 0)
    second = length // first
    return (first, second) if second <= _MOST_UNEVEN * first else None


def real_transform(value: str, rows: Size, length: int, b: Builder) -> str:
    """The first half of the spectrum of each row of [rows, length], and the point in the middle: [rows, half, 2]."""
    found = factors(length)
    assert found is not None
    first, second = found
    half = length // 2 + 1
    # Sample i + first * j, frequency q + second * p: sums over j, a turn by i * q, sums over i.
    samples = b.transpose(b.reshape(value, [rows, second, first]), [0, 2, 1])
    cos, sin = _table(np.arange(second), np.arange(second), second)
    re, im = (b.add("MatMul", samples, b.constant(table, np.float32)) for table in (cos, -sin))
    turn = [b.constant(table, np.float32) for table in _table(np.arange(first), np.arange(second), length)]
    turned = [
        b.add("Add", b.add("Mul", re, turn[0]), b.add("Mul", im, turn[1])),
        b.add("Sub", b.add("Mul", im, turn[0]), b.add("Mul", re, turn[1])),
    ]
    blocks = (half - 1) // second + 1
    cos, sin = _table(np.arange(blocks), np.arange(first), first)
    table = np.block([[cos, sin], [-sin, cos]])
    product = b.add("MatMul", b.constant(table, np.float32), b.add("Concat", *turned, axis=1))
    spectrum = b.reshape(product, [rows, 2, blocks * second])
    if blocks * second > half:
        spectrum = b.add("Slice", spectrum, *(b.constant([at], np.int64) for at in (0, half, 2)))
    return b.transpose(spectrum, [0, 2, 1])


def _table(one: np.ndarray, other: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    angles = np.outer(one, other) % length * (2 * math.pi / length)
    return np.cos(angles), np.sin(angles)
