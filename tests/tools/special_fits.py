"""Derives `eyas/frontends/torch/special/tables.py`: `python -m tests.tools.special_fits` writes it.

Each row is a smooth function on an interval, as the coefficients of its Chebyshev series up to those that f64 cannot
see. They come from values at the Chebyshev nodes, computed with many digits.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import mpmath as m

m.mp.dps = 60

Function = Callable[[m.mpf], m.mpf]
TABLE = Path(__file__).parents[2] / "src/eyas/frontends/torch/special/tables.py"
MOST, EPSILON = 64, 2.0**-56

HEADER = '''"""Smooth functions on intervals: low, high, and the coefficients of the Chebyshev series.

Written by `python -m tests.tools.special_fits`, which says what each of them is.
"""

# fmt: off
FITS: dict[str, tuple[float, float, tuple[float, ...]]] = {
'''


def chebyshev(function: Function, low: float, high: float) -> list[float]:
    """Coefficients c0..cn of the interpolating series, cut where the rest is below half a unit of f64."""
    low, high = m.mpf(low), m.mpf(high)
    angles = [m.pi * (k + m.mpf(1) / 2) / MOST for k in range(MOST)]
    values = [function((low + high) / 2 + (high - low) / 2 * m.cos(angle)) for angle in angles]
    series = []
    for order in range(MOST):
        total = m.fsum(value * m.cos(order * angle) for value, angle in zip(values, angles, strict=True))
        series.append(total * (1 if order == 0 else 2) / MOST)
    least = min(abs(value) for value in values) * EPSILON
    while len(series) > 1 and abs(series[-1]) < least:
        series.pop()
    return [float(one) for one in series]


def erf_inverse(w: m.mpf) -> m.mpf:
    """erfinv(x) / x where w = -log(1 - x^2): far out by Newton's steps for log erfc(y) = log(1 - x)."""
    if w == 0:
        return m.sqrt(m.pi) / 2
    x = m.sqrt(-m.expm1(-w))
    if w < 1:
        return m.erfinv(x) / x
    rest, y = -w - m.log1p(x), m.sqrt(w)
    for _ in range(10):
        tail = m.erfc(y)
        y += (m.log(tail) - rest) * tail * m.exp(y * y) * m.sqrt(m.pi) / 2
    return y / x


def stirling(x: m.mpf) -> m.mpf:
    return m.loggamma(x) - (x - m.mpf(1) / 2) * m.log(x) + x - m.log(2 * m.pi) / 2


def removable(function: Function, at: float, value: m.mpf | None = None) -> Function:
    """The function, and its limit at a point where it is 0 / 0."""

    def whole(x: m.mpf) -> m.mpf:
        if abs(x - at) > m.mpf(10) ** -25:
            return function(x)
        if value is not None:
            return value
        step = m.mpf(10) ** -15
        return (function(at + step) + function(at - step)) / 2

    return whole


def modulus(order: int) -> tuple[Function, Function]:
    """P and Q x of u = 1 / x^2, where J = sqrt(2 / (pi x)) (P cos t - Q sin t) and Y = ... (P sin t + Q cos t)."""

    def parts(u: m.mpf) -> tuple[m.mpf, m.mpf]:
        x = 1 / m.sqrt(u)
        angle = x - (2 * order + 1) * m.pi / 4
        j, y, scale = m.besselj(order, x), m.bessely(order, x), m.sqrt(m.pi * x / 2)
        return (
            scale * (j * m.cos(angle) + y * m.sin(angle)),
            scale * (y * m.cos(angle) - j * m.sin(angle)) * x,
        )

    return (lambda u: parts(u)[0]), (lambda u: parts(u)[1])


def airy_waves(u: m.mpf) -> tuple[m.mpf, m.mpf]:
    """f and g z of u = 1 / z^2, z = 2/3 x^(3/2): Ai(-x) = (f sin(z + pi/4) - g cos(z + pi/4)) / (sqrt(pi) x^(1/4))."""
    z = 1 / m.sqrt(u)
    x = (3 * z / 2) ** (m.mpf(2) / 3)
    a, b, scale, angle = m.airyai(-x), m.airybi(-x), m.sqrt(m.pi) * x ** (m.mpf(1) / 4), z + m.pi / 4
    return scale * (a * m.sin(angle) + b * m.cos(angle)), scale * (b * m.sin(angle) - a * m.cos(angle)) * z


def fits() -> dict[str, tuple[Function, float, float]]:
    root = m.findroot(m.digamma, m.mpf("1.46"))
    j0_roots = [m.besseljzero(0, k) for k in (1, 2)]
    j1_roots = [m.besseljzero(1, k) for k in (1, 2)]
    p0, q0 = modulus(0)
    p1, q1 = modulus(1)
    airy_root, half = m.airyaizero(1), m.mpf(1) / 2

    def in_square(function: Function) -> Function:
        return lambda u: function(m.sqrt(u))

    def without(x: m.mpf, roots: list[m.mpf]) -> m.mpf:
        return (x * x - roots[0] ** 2) * (x * x - roots[1] ** 2)

    def airy_decay(v: m.mpf) -> m.mpf:
        z = 1 / v
        x = (3 * z / 2) ** (m.mpf(2) / 3)
        return m.airyai(x) * m.exp(z) * 2 * m.sqrt(m.pi) * x ** (m.mpf(1) / 4)

    def erfcx(x: m.mpf) -> m.mpf:
        if x > 50:
            # Its asymptotic series, to more digits than f64 has.
            terms, term = m.mpf(1), m.mpf(1)
            for k in range(1, 30):
                term *= -(2 * k - 1) / (2 * x * x)
                terms += term
            return terms / (x * m.sqrt(m.pi))
        return m.exp(x * x) * m.erfc(x)

    inverse_square = 1.0 / 9.0
    return {
        # of 4 / (x + 4), x >= 0
        "erfcx": (lambda z: (8 / z - 7) * erfcx(4 / z - 4), 0.0, 1.0),
        # erfinv(x) / x: of w = -log(1 - x^2), and divided by sqrt(w) of 1 / sqrt(w)
        "erfinv_near": (erf_inverse, 0.0, 6.25),
        "erfinv_middle": (lambda v: erf_inverse(1 / v**2) * v, 1 / 5.0, 1 / 2.5),
        "erfinv_far": (lambda v: erf_inverse(1 / v**2) * v, 1 / 27.5, 1 / 5.0),
        # lgamma(x) / ((x - 1) (x - 2)), and what Stirling's formula lacks, times x, of 1 / x^2
        "lgamma_near": (
            removable(removable(lambda x: m.loggamma(x) / ((x - 1) * (x - 2)), 1.0), 2.0),
            1.0,
            3.0,
        ),
        "lgamma_far": (lambda u: stirling(1 / m.sqrt(u)) / m.sqrt(u), 0.0, inverse_square),
        # digamma(x) / (x - root), and (log x - 1 / (2 x) - digamma(x)) x^2 of 1 / x^2
        "digamma_near": (removable(lambda x: m.digamma(x) / (x - root), float(root)), 1.0, 3.0),
        "digamma_far": (
            lambda u: (-m.log(u) / 2 - m.sqrt(u) / 2 - m.digamma(1 / m.sqrt(u))) / u,
            0.0,
            inverse_square,
        ),
        # (atanh(r) / r - 1) / r^2 of r^2
        "atanh_tail": (in_square(lambda r: (m.atanh(r) / r - 1) / r**2), 0.0, inverse_square),
        # exp(-x) I0(x), exp(-x) I1(x) (1 + 1 / x), and times sqrt(x) of 1 / x
        "i0_near": (lambda x: m.exp(-x) * m.besseli(0, x), 0.0, 8.0),
        "i0_far": (lambda v: m.exp(-1 / v) * m.besseli(0, 1 / v) / m.sqrt(v), 0.0, 0.125),
        "i1_near": (lambda x: m.exp(-x) * m.besseli(1, x) * (1 + 1 / x), 0.0, 8.0),
        "i1_far": (lambda v: m.exp(-1 / v) * m.besseli(1, 1 / v) / m.sqrt(v), 0.0, 0.125),
        # K0(x) + log(x / 2) I0(x), (K1(x) - log(x / 2) I1(x)) x of x^2, and exp(x) sqrt(x) K(x) of 1 / x
        "k0_near": (in_square(lambda x: m.besselk(0, x) + m.log(x / 2) * m.besseli(0, x)), 0.0, 4.0),
        "k0_far": (lambda v: m.exp(1 / v) * m.besselk(0, 1 / v) / m.sqrt(v), 0.0, 0.5),
        "k1_near": (in_square(lambda x: (m.besselk(1, x) - m.log(x / 2) * m.besseli(1, x)) * x), 0.0, 4.0),
        "k1_far": (lambda v: m.exp(1 / v) * m.besselk(1, 1 / v) / m.sqrt(v), 0.0, 0.5),
        # J and Y of orders 0 and 1, of x^2, without their first two roots or their logarithm
        "j0_near": (in_square(lambda x: m.besselj(0, x) / without(x, j0_roots)), 0.0, 25.0),
        "j1_near": (in_square(lambda x: m.besselj(1, x) / (x * without(x, j1_roots))), 0.0, 25.0),
        "y0_near": (in_square(lambda x: m.bessely(0, x) - 2 / m.pi * m.log(x) * m.besselj(0, x)), 0.0, 25.0),
        "y1_near": (in_square(lambda x: (m.bessely(1, x) - 2 / m.pi * m.log(x) * m.besselj(1, x)) * x), 0.0, 25.0),
        # and of 1 / x^2 for x >= 5: see `modulus`
        "bessel0_p": (p0, 0.0, 0.04),
        "bessel0_q": (q0, 0.0, 0.04),
        "bessel1_p": (p1, 0.0, 0.04),
        "bessel1_q": (q1, 0.0, 0.04),
        # exp(x) Ai(x) near 0, without its first root; right of it the factor beside exp(-z) / (2 sqrt(pi) x^(1/4)), of
        # 1 / z; left of it see `airy_waves`
        "airy_near": (lambda x: m.airyai(x) * m.exp(x) / (x - airy_root), -3.25, 2.0),
        "airy_right": (airy_decay, 0.0, float(half * 3 / m.mpf(2) ** (half * 3)) * 1.0000001),
        "airy_left_f": (lambda u: airy_waves(u)[0], 0.0, 0.0656),
        "airy_left_g": (lambda u: airy_waves(u)[1], 0.0, 0.0656),
    }


def gauss(count: int) -> tuple[list[float], list[float]]:
    """Nodes and weights of Gauss's rule on [0, 1], from the zeros of Legendre's polynomial."""
    nodes, weights = [], []
    for k in range(count, 0, -1):
        x = m.cos(m.pi * (k - m.mpf(1) / 4) / (count + m.mpf(1) / 2))
        for _ in range(8):
            value, before = m.legendre(count, x), m.legendre(count - 1, x)
            slope = count * (x * value - before) / (x * x - 1)
            x -= value / slope
        nodes.append(float((x + 1) / 2))
        weights.append(float(1 / ((1 - x * x) * slope**2)))
    return nodes, weights


def rows(numbers: list[float]) -> str:
    return "".join(
        "        " + ", ".join(map(repr, numbers[start : start + 4])) + ",\n" for start in range(0, len(numbers), 4)
    )


def main() -> None:
    lines = [HEADER]
    for name, (function, low, high) in fits().items():
        series = chebyshev(function, low, high)
        print(f"{name}: {len(series)} coefficients, the last {series[-1]:.1e}", flush=True)
        lines.append(f'    "{name}": ({low!r}, {high!r}, (\n' + rows(series) + "    )),\n")
    lines.append("}\n\n# Gauss's rule on [0, 1] by the number of nodes: nodes, weights.\n")
    lines.append("RULES: dict[int, tuple[tuple[float, ...], tuple[float, ...]]] = {\n")
    for count in (16, 40):
        nodes, weights = gauss(count)
        lines.append(f"    {count}: ((\n" + rows(nodes) + "    ), (\n" + rows(weights) + "    )),\n")
    lines.append("}\n")
    TABLE.write_text("".join(lines))


if __name__ == "__main__":
    main()
