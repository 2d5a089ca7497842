"""Special functions by fits: computed eagerly, against mpmath with many digits, and torch at the edges."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
mpmath = pytest.importorskip("mpmath")

from eyas.frontends.torch import special  # noqa: E402
from eyas.frontends.torch.special import bessel, gamma, gaussian, incomplete, modified  # noqa: E402

TYPES = (torch.float32, torch.float64)
INF, NAN = math.inf, math.nan
EDGES = [0.0, NAN, INF, -INF, 1.0, -1.0, 0.5, -0.5, 1e-20, 1e30, -1e30, 2.0, 3.0, 5.0, 8.0, -2.0, -3.0, 27.0, -27.0]


@pytest.fixture(autouse=True)
def digits():
    with mpmath.workdps(40):
        yield


def spread(low: float, high: float, count: int = 60) -> list[float]:
    return np.random.default_rng(0).uniform(low, high, count).tolist()


def scales(low: float, high: float, count: int = 30) -> list[float]:
    return (10.0 ** np.random.default_rng(1).uniform(low, high, count)).tolist()


def scaled_tail(x):
    return mpmath.exp(x * x) * mpmath.erfc(x)


# The function, its definition, where it is tried, and its largest error in units of the last place.
FUNCTIONS = {
    "erfc": (gaussian.erfc, mpmath.erfc, spread(-6, 9), 5),
    "erfcx": (gaussian.erfcx, scaled_tail, spread(-5, 40), 6),
    "erfinv": (gaussian.erfinv, mpmath.erfinv, spread(-0.999, 0.999), 4),
    "ndtr": (gaussian.ndtr, mpmath.ncdf, spread(-3, 9), 8),
    "lgamma": (gamma.lgamma, mpmath.loggamma, spread(0, 3) + spread(3, 50) + scales(-30, 30) + [1 + 1e-5, 2 - 1e-5], 4),
    "digamma": (gamma.digamma, mpmath.digamma, spread(0, 20) + scales(-30, 30) + [1.46, 1.4617], 4),
    "trigamma": (lambda x: gamma.polygamma(1, x), lambda x: mpmath.psi(1, x), spread(-20, 20) + scales(-9, 9), 8),
    "third": (lambda x: gamma.polygamma(3, x), lambda x: mpmath.psi(3, x), spread(-20, 20) + scales(-6, 6), 10),
    "i0": (modified.i0, lambda x: mpmath.besseli(0, x), spread(-50, 50), 6),
    "i1": (modified.i1, lambda x: mpmath.besseli(1, x), spread(-50, 50), 12),
    "k0": (lambda x: modified._k0(x, False), lambda x: mpmath.besselk(0, x), spread(0, 3, 12) + spread(2, 60, 12), 9),
    "k1": (lambda x: modified._k1(x, False), lambda x: mpmath.besselk(1, x), spread(0, 3, 12) + spread(2, 60, 12), 9),
    "airy": (bessel.airy_ai, mpmath.airyai, spread(-2.3, 6) + [-2.338], 20),
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_last_places(name, dtype):
    function, definition, arguments, most = FUNCTIONS[name]
    x = torch.tensor(arguments, dtype=torch.float64).to(dtype)
    want = np.array([float(mpmath.re(definition(mpmath.mpf(one)))) for one in x.tolist()])
    got = function(x).double().numpy()
    epsilon, tiny = torch.finfo(dtype).eps, torch.finfo(dtype).tiny
    normal = (np.abs(want) > tiny) & (np.abs(want) < torch.finfo(dtype).max)
    errors = np.abs(got - want)[normal] / np.abs(want[normal]) / epsilon
    assert errors.max() < most, (x[torch.from_numpy(normal)][errors.argmax()], errors.max())


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ["bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"])
def test_waves(name, dtype):
    # Zeros of the far part are where the argument's own rounding is as large as the result.
    x = torch.tensor(spread(0, 5) + spread(5, 200) + scales(-20, 0), dtype=torch.float64).to(dtype)
    function = mpmath.besselj if "j" in name[-2:] else mpmath.bessely
    want = [float(function(int(name[-1]), one)) for one in x.tolist()]
    got = getattr(bessel, name[-2:])(x).double()
    epsilon = torch.finfo(dtype).eps
    torch.testing.assert_close(got, torch.tensor(want, dtype=torch.float64), rtol=16 * epsilon, atol=8 * epsilon)


def _unary() -> list:
    return [op for op in special.decompositions() if len(op._schema.arguments) == 1]


@pytest.mark.parametrize("op", _unary(), ids=str)
def test_edges_are_those_of_torch(op):
    x = torch.tensor(EDGES)
    got, want = special.decompositions()[op](x), op(x)
    wide = op(x.double()).float()
    # Waves of huge arguments are noise in both.
    near = torch.isclose(got, want, 1e-4, 1e-5, equal_nan=True) | torch.isclose(got, wide, 1e-4, 1e-5, equal_nan=True)
    assert near.all(), (x[~near], got[~near], want[~near])


@pytest.mark.parametrize("dtype", TYPES)
def test_inverse_distribution(dtype):
    """Also where the probability is hardly a number, or hardly below 1."""
    tiny = [1e-300, 1e-40, 1e-44] if dtype == torch.float64 else [1e-30, 1e-38, 1e-44]
    p = torch.tensor([*tiny, *scales(-25, 0), *spread(0, 1), 1 - 2.0**-20], dtype=torch.float64).to(dtype)
    back = [float(mpmath.log(mpmath.ncdf(mpmath.mpf(one)))) for one in gaussian.ndtri(p).tolist()]
    want = torch.log(p.double())
    torch.testing.assert_close(
        torch.tensor(back, dtype=torch.float64), want, rtol=20 * torch.finfo(dtype).eps, atol=1e-6
    )


def test_log_ndtr_far_left():
    x = torch.tensor([-1.0, -1.1, -5.0, -30.0, -1e4, -1e18, 3.0, 9.0, NAN])
    torch.testing.assert_close(gaussian.log_ndtr(x), torch.special.log_ndtr(x), equal_nan=True)


@pytest.mark.parametrize("dtype", TYPES)
def test_zeta(dtype):
    q = torch.tensor(spread(0.01, 30, 40) + scales(-3, 4, 20) + spread(-9, 0, 40), dtype=torch.float64).to(dtype)
    x = torch.tensor([1 + one for one in scales(-2, 1.3, 60)] + [2.0, 3.0, 8.0, 9.0] * 10).to(dtype)
    got = gamma.zeta(x, q)
    for mine, a, b in zip(got.tolist(), x.tolist(), q.tolist(), strict=True):
        steps = 0 if b > 0 else 10
        head = sum((mpmath.mpf(b) + k) ** (-int(a)) for k in range(steps))
        want = head + mpmath.zeta(mpmath.mpf(a), mpmath.mpf(b) + steps)
        assert abs(mine - want) < 100 * torch.finfo(dtype).eps * abs(want), (a, b)


@pytest.mark.parametrize("dtype", TYPES)
def test_zeta_where_terms_cancel(dtype):
    x, q = torch.meshgrid(torch.tensor([3.0, 9.0, 15.0]), torch.tensor([-0.5, -1.5, -7.5]), indexing="ij")
    want = torch.special.zeta(x.double(), q.double()).to(dtype)
    torch.testing.assert_close(gamma.zeta(x.to(dtype), q.to(dtype)), want)


@pytest.mark.parametrize("dtype", TYPES)
def test_incomplete_gamma(dtype):
    a = scales(-5, 1.3, 60) + spread(0.1, 60, 60) + [500.0, 500.0, 500.0]
    x = scales(-5, 1.3, 60)[::-1] + spread(0.1, 60, 60)[::-1] + [440.0, 500.0, 570.0]
    a, x = (torch.tensor(one, dtype=torch.float64).to(dtype) for one in (a, x))
    lower, upper = incomplete._parts(a, x)
    epsilon = torch.finfo(dtype).eps
    for low, high, one, other in zip(lower.tolist(), upper.tolist(), a.tolist(), x.tolist(), strict=True):
        want = mpmath.gammainc(one, 0, other, regularized=True)
        rest = mpmath.gammainc(one, other, mpmath.inf, regularized=True)
        assert abs(low - want) < 16 * epsilon + 400 * epsilon * want * (want < 0.1), (one, other, low)
        if rest > 1e-30:
            assert abs(high - rest) < 400 * epsilon * rest or abs(high - rest) < 4 * epsilon, (one, other, high)


def test_incomplete_gamma_far_out():
    """Near the middle of a distribution that is nearly normal, and beyond all numbers."""
    a = torch.tensor([1e6, 1e6, 1e6, 1e12, 1e30, 1e30, 1e38, 1e-30], dtype=torch.float32)
    x = torch.tensor([1e6, 1.001e6, 0.998e6, 1e12, 1e30, 1.1e30, 1e10, 1e-30], dtype=torch.float32)
    want = torch.tensor([0.500133, 0.841431, 0.022691, 0.5, 0.5, 1.0, 0.0, 1.0])
    torch.testing.assert_close(incomplete._parts(a, x)[0], want, rtol=1e-4, atol=1e-5)


def test_incomplete_gamma_edges():
    edges = torch.tensor([0.0, INF, -1.0, 0.5, 20.0])
    a, x = torch.meshgrid(edges, edges, indexing="ij")
    for got, want in zip(incomplete._parts(a, x), (torch.igamma(a, x), torch.igammac(a, x)), strict=True):
        torch.testing.assert_close(got, want, equal_nan=True)
