"""The fast Fourier transform of complex rows: one pass for each factor of the length (Cooley and Tukey, 1965).

A pass of radix r combines r values at a distance of n/r; sums and differences of mirrored pairs share the products of
an odd radix. All in f32, as FFT libraries do it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from eyas.frontends.onnx.rewrite.rules import Builder

# Passes of larger radix cost more than the product with the whole matrix saves.
_LARGEST_RADIX = 13


def radices(length: int) -> list[int] | None:
    """The factors, twos first; None when one is too large for a pass."""
    found = []
    for radix in (4, 2, *range(3, _LARGEST_RADIX + 1, 2)):
        while length % radix == 0:
            found.append(radix)
            length //= radix
    return found if length == 1 and found else None


@dataclass(frozen=True)
class _Complex:
    """Real and imaginary parts by name."""

    re: str
    im: str


def transform(value: tuple[str, str], rows: int, length: int, inverse: bool, b: Builder) -> tuple[str, str]:
    """Real and imaginary parts of [rows, length], transformed along the rows; `length` must have `radices`."""
    current, done = _Complex(*value), 1
    for radix in radices(length) or []:
        current = _pass(current, rows, length, radix, done, inverse, b)
        done *= radix
    if inverse:
        scale = b.constant(1 / length, np.float32)
        current = _Complex(b.add("Mul", current.re, scale), b.add("Mul", current.im, scale))
    return current.re, current.im


def _pass(value: _Complex, rows: int, length: int, radix: int, done: int, inverse: bool, b: Builder) -> _Complex:
    left = length // (done * radix)
    grid = [rows, done, radix, left]
    parts = [b.reshape(part, grid) for part in (value.re, value.im)]
    terms = []
    for k in range(radix):
        place = b.constant(k, np.int64)
        terms.append(_Complex(*(b.add("Gather", part, place, axis=2) for part in parts)))
    results = {2: _two, 4: _four}.get(radix, _odd)(terms, inverse, b)
    if left > 1:
        results = [results[0], *(_turn(r, done * u, left, length, inverse, b) for u, r in enumerate(results[1:], 1))]
    stacked = []
    for part in ("re", "im"):
        layers = [b.reshape(getattr(result, part), [rows, 1, done, left]) for result in results]
        stacked.append(b.reshape(b.add("Concat", *layers, axis=1), [rows, length]))
    return _Complex(*stacked)


def _turn(value: _Complex, step: int, left: int, length: int, inverse: bool, b: Builder) -> _Complex:
    """Times the roots of unity exp(2 pi i k step / length), or their conjugates."""
    angles = np.arange(left) * step % length * (2 * math.pi / length)
    cos, sin = b.constant(np.cos(angles), np.float32), b.constant(np.sin(angles), np.float32)
    a, c = b.add("Mul", value.re, cos), b.add("Mul", value.im, sin)
    d, e = b.add("Mul", value.re, sin), b.add("Mul", value.im, cos)
    if inverse:
        return _Complex(b.add("Sub", a, c), b.add("Add", d, e))
    return _Complex(b.add("Add", a, c), b.add("Sub", e, d))


def _plus(x: _Complex, y: _Complex, b: Builder) -> _Complex:
    return _Complex(b.add("Add", x.re, y.re), b.add("Add", x.im, y.im))


def _minus(x: _Complex, y: _Complex, b: Builder) -> _Complex:
    return _Complex(b.add("Sub", x.re, y.re), b.add("Sub", x.im, y.im))


def _two(terms: list[_Complex], inverse: bool, b: Builder) -> list[_Complex]:
    first, second = terms
    return [_plus(first, second, b), _minus(first, second, b)]


def _four(terms: list[_Complex], inverse: bool, b: Builder) -> list[_Complex]:
    even, odd = _plus(terms[0], terms[2], b), _plus(terms[1], terms[3], b)
    rest, turned = _minus(terms[0], terms[2], b), _minus(terms[1], terms[3], b)
    # A quarter turn, i times (a + ib) = -b + ia, and back.
    up = _Complex(b.add("Sub", rest.re, turned.im), b.add("Add", rest.im, turned.re))
    down = _Complex(b.add("Add", rest.re, turned.im), b.add("Sub", rest.im, turned.re))
    first, third = (up, down) if inverse else (down, up)
    return [_plus(even, odd, b), first, _minus(even, odd, b), third]


def _odd(terms: list[_Complex], inverse: bool, b: Builder) -> list[_Complex]:
    radix = len(terms)
    half = range(1, radix // 2 + 1)
    sums = [_plus(terms[j], terms[radix - j], b) for j in half]
    differences = [_minus(terms[j], terms[radix - j], b) for j in half]
    total = terms[0]
    for term in sums:
        total = _plus(total, term, b)
    results = [total] * radix
    for u in half:
        angles = [2 * math.pi * (u * j % radix) / radix for j in half]
        cosines = [b.constant(math.cos(angle), np.float32) for angle in angles]
        sines = [b.constant(math.sin(angle) * (1 if inverse else -1), np.float32) for angle in angles]
        even = [_chain(getattr(terms[0], part), [getattr(s, part) for s in sums], cosines, b) for part in ("re", "im")]
        odd = [_chain("", [getattr(d, part) for d in differences], sines, b) for part in ("re", "im")]
        # i times the odd part: its imaginary half counts against the real one.
        results[u] = _Complex(b.add("Sub", even[0], odd[1]), b.add("Add", even[1], odd[0]))
        results[radix - u] = _Complex(b.add("Add", even[0], odd[1]), b.add("Sub", even[1], odd[0]))
    return results


def _chain(first: str, values: list[str], factors: list[str], b: Builder) -> str:
    for value, factor in zip(values, factors, strict=True):
        product = b.add("Mul", value, factor)
        first = b.add("Add", first, product) if first else product
    return first
