"""Derives the polynomial coefficients of `eyas/codegen/common/passes/float_formats.py`. Run it to print them all.

Each fit minimises the largest weighted error on an interval (Lawson's iteration: least squares whose weights grow where
the error is large), then rounds the coefficients to f32 from the lowest order up, refitting the others after each.
Rare functions, and those of f64, take the nearest polynomial as mpmath finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mpmath
import numpy as np

mpmath.mp.dps = 40

Function = Callable[[mpmath.mpf], mpmath.mpf]


def fit(function: Function, low: float, high: float, degree: int, weight: Function | None = None) -> list[float]:
    """Coefficients c0..cn (as f32 values) of the polynomial nearest to `function` under `weight(x) * |error|`."""
    count = 60 * (degree + 1)
    nodes = np.cos(np.pi * (np.arange(count) + 0.5) / count)
    points = [mpmath.mpf(low) + (mpmath.mpf(float(node)) + 1) / 2 * (mpmath.mpf(high) - low) for node in nodes]
    x = np.array([float(point) for point in points], dtype=np.longdouble)
    y = np.array([np.longdouble(mpmath.nstr(function(point), 25)) for point in points])
    scale = np.array([float(weight(point)) if weight else 1.0 for point in points])
    fixed: list[float] = []
    for order in range(degree + 1):
        target = y - sum((np.longdouble(c) * x**k for k, c in enumerate(fixed)), np.longdouble(0))
        free = _lawson(x, target, scale, range(order, degree + 1))
        fixed.append(float(np.float32(free[0])))
    error = np.abs(sum(np.longdouble(c) * x**k for k, c in enumerate(fixed)) - y) * scale
    print(f"    # largest weighted error 2^{float(np.log2(error.max())):.1f}")
    return fixed


def _lawson(x: np.ndarray, y: np.ndarray, scale: np.ndarray, powers: Sequence[int]) -> np.ndarray:
    basis = np.stack([x**k for k in powers], axis=1).astype(np.float64)
    columns = np.abs(basis).max(axis=0)
    weights = np.ones(len(x)) / len(x)
    solution = np.zeros(len(powers))
    for _ in range(200):
        root = np.sqrt(weights) * scale
        solution, *_ = np.linalg.lstsq(basis / columns * root[:, None], (y.astype(np.float64) * root), rcond=None)
        error = np.abs(basis / columns @ solution - y.astype(np.float64)) * scale
        weights = weights * (error + 1e-300)
        weights /= weights.sum()
    return solution / columns


def show(name: str, coefficients: Sequence[float]) -> None:
    # The shortest decimals that are these f32 values.
    print(f"{name} = ({', '.join(str(np.float32(one)) for one in coefficients)})")


def main() -> None:
    m = mpmath
    half_ln2 = float(m.log(2) / 2) * 1.01

    def near_zero(full: Function, series: Function) -> Function:
        return lambda x: series(x) if abs(x) < 1e-9 else full(x)

    exp_tail = near_zero(lambda r: (m.exp(r) - 1 - r) / r**2, lambda r: m.mpf(1) / 2 + r / 6)
    show("EXP", fit(exp_tail, -half_ln2, half_ln2, 4, lambda r: r**2))
    exp2_tail = near_zero(lambda r: (m.power(2, r) - 1) / r, lambda r: m.log(2))
    show("EXP2", fit(exp2_tail, -0.505, 0.505, 6, lambda r: abs(r)))
    show("EXPM1", fit(exp_tail, -half_ln2, half_ln2, 5, lambda r: abs(r)))
    log_tail = near_zero(lambda f: (m.log1p(f) - f + f**2 / 2) / f**3, lambda f: m.mpf(1) / 3 - f / 4)
    low, high = float(m.sqrt(0.5)) - 1, float(m.sqrt(2)) - 1
    show("LOG", fit(log_tail, low, high, 8, lambda f: f**2))
    tanh_tail = near_zero(lambda s: (m.tanh(m.sqrt(s)) / m.sqrt(s) - 1) / s, lambda s: -m.mpf(1) / 3 + 2 * s / 15)
    show("TANH", fit(tanh_tail, 0.0, 0.625**2, 4, lambda s: s))
    erf_small = near_zero(lambda s: m.erf(m.sqrt(s)) / m.sqrt(s) - 1, lambda s: 2 / m.sqrt(m.pi) - 1)
    show("ERF_SMALL", fit(erf_small, 0.0, 0.93**2, 6))
    show("ERF_LARGE", fit(lambda t: m.log(m.erfc(t)) + t, 0.92, 3.95, 8, lambda t: m.erfc(t)))
    show("ERF_ANY", fit(lambda t: m.log(m.erfc(t)) + t, 0.0, 3.95, 8, lambda t: m.erfc(t)))
    sin_tail = near_zero(lambda s: (m.sin(m.sqrt(s)) / m.sqrt(s) - 1) / s, lambda s: -m.mpf(1) / 6 + s / 120)
    show("SIN", fit(sin_tail, 0.0, 0.8**2, 2, lambda s: s))
    cos_tail = near_zero(lambda s: (m.cos(m.sqrt(s)) - 1 + s / 2) / s**2, lambda s: m.mpf(1) / 24 - s / 720)
    show("COS", fit(cos_tail, 0.0, 0.8**2, 2, lambda s: s**2))
    atan_tail = near_zero(lambda s: (m.atan(m.sqrt(s)) / m.sqrt(s) - 1) / s, lambda s: -m.mpf(1) / 3 + s / 5)
    widest = float(m.tan(m.pi / 8) ** 2) * 1.001
    for bits, degree in ((32, 4), (64, 10)):
        print(f"ATAN of f{bits} = {nearest(atan_tail, 0.0, widest, degree)}")

    def erfc_tail(center: float) -> Function:
        def of(u: mpmath.mpf) -> mpmath.mpf:
            a = center * (1 + u) / (1 - u)
            return m.exp(a * a) * m.erfc(a) * (1 + 2 * a)

        return of

    for bits, center, largest, degree in ((32, 2.5, 10.2, 8), (64, 3.75, 27.5, 19)):
        low, high = ((a - center) / (a + center) for a in (0.9, largest))
        print(f"ERFC of f{bits} = {nearest(erfc_tail(center), low, high, degree)}")


def nearest(function: Function, low: float, high: float, degree: int) -> list[float]:
    """Coefficients of the Chebyshev fit, with no thought of their own rounding."""
    with mpmath.workprec(200):
        found = mpmath.chebyfit(function, [mpmath.mpf(low), mpmath.mpf(high)], degree + 1)
    return [float(one) for one in reversed(found)]


if __name__ == "__main__":
    main()
