"""Special functions of torch programs, compiled: types, shapes, targets and gradients. Accuracy is a unit test."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

import eyas  # noqa: E402

LONG = pytest.mark.long
"""Programs of many functions each; a part of their types and orders shows what the others show."""
torch.manual_seed(0)
special = torch.special
UNARY = (
    *(special.erfc, special.erfcx, special.erfinv, special.ndtr, special.ndtri, special.log_ndtr, special.entr),
    *(special.gammaln, special.digamma, special.i0, special.i0e, special.i1, special.i1e, special.sinc, special.logit),
    *(special.bessel_j0, special.bessel_j1, special.bessel_y0, special.bessel_y1, special.spherical_bessel_j0),
    *(special.modified_bessel_k0, special.scaled_modified_bessel_k1, special.airy_ai),
)
HALVES = (special.erfc, special.erfinv, special.ndtr, special.gammaln, special.digamma, special.i0, special.i1e)
BINARY = (special.gammainc, special.gammaincc, special.zeta, special.xlogy, special.xlog1py)
BY_DEGREE = (
    *(special.chebyshev_polynomial_t, special.shifted_chebyshev_polynomial_w, special.hermite_polynomial_he),
    *(special.laguerre_polynomial_l, special.legendre_polynomial_p),
)
TOLERANCES = {torch.float16: (5e-3, 1e-3), torch.bfloat16: (2e-2, 1e-2), torch.float64: (1e-11, 1e-12)}


class All(torch.nn.Module):
    def __init__(self, functions, *rest):
        super().__init__()
        self.functions, self.rest = functions, rest

    def forward(self, *args):
        return [function(*args, *self.rest) for function in self.functions]


def check(functions, args, rest=(), module=None, **options):
    model = All(functions, *rest)
    compiled = module or eyas.compile(model, args, **options)
    for function, got, want in zip(functions, compiled(*args), model(*args), strict=True):
        relative, absolute = TOLERANCES.get(want.dtype, (1e-4, 1e-5))
        if function is special.airy_ai:
            absolute = max(absolute, 1e-6)  # torch's own error
        torch.testing.assert_close(
            got, want, rtol=relative, atol=absolute, equal_nan=True, msg=lambda text, name=function: f"{name}: {text}"
        )
    return compiled


ARGUMENTS = torch.cat([torch.linspace(-8, 8, 333), torch.tensor([0.0, math.nan, math.inf, -math.inf, 1.0, -1.0, 0.5])])


def test_one_argument():
    check(UNARY, (ARGUMENTS,))


def test_one_argument_f64():
    check(HALVES, (ARGUMENTS.double(),))


def test_bytecode():
    check(HALVES, (ARGUMENTS,), target="vmvx")


@pytest.mark.parametrize(
    "dtype",
    [torch.float16, torch.int32, *(pytest.param(one, marks=LONG) for one in (torch.bfloat16, torch.uint8, torch.bool))],
)
def test_other_types(dtype):
    numbers = torch.rand(3, 5) * 4 if dtype.is_floating_point else torch.randint(0, 5, (3, 5))
    check(HALVES, (numbers.to(dtype),))


@pytest.mark.parametrize("shape", [(), pytest.param((0,), marks=LONG), (2, 0, 3)])
def test_few_elements(shape):
    check(HALVES, (torch.rand(shape),))
    check(BINARY, (torch.rand(shape) + 2, torch.rand(shape) + 0.5))
    check(BY_DEGREE, (torch.rand(shape), torch.full(shape, 3.0)))


@pytest.mark.long
def test_any_size():
    rows = torch.export.Dim("rows")
    functions = (special.erfc, special.digamma, special.bessel_y0)
    compiled = eyas.compile(All(functions), (torch.rand(4, 3),), dynamic_shapes=(({0: rows},),))
    for count in (4, 7):
        check(functions, (torch.rand(count, 3),), module=compiled)
    functions = (special.gammainc, special.zeta, special.legendre_polynomial_p)
    compiled = eyas.compile(All(functions), (torch.rand(4, 3),) * 2, dynamic_shapes=(({0: rows}, {0: rows}),))
    for count in (4, 7):
        check(functions, (torch.rand(count, 3) + 1.5, torch.rand(count, 3) * 9), module=compiled)


def test_two_arguments():
    a, x = torch.meshgrid(
        torch.tensor([0.1, 1.0, 2.5, 9.0, 40.0]), torch.tensor([0.0, 0.3, 1.0, 2.0, 45.0]), indexing="ij"
    )
    check(BINARY, (a, x))
    check(BINARY[2:], (a, -1.3))
    check(BINARY[2:], (3.0, x))


@pytest.mark.parametrize("order", [0, pytest.param(1, marks=LONG), 2, pytest.param(5, marks=LONG)])
def test_derivatives_of_gamma(order):
    x = torch.cat([torch.linspace(-5.45, 5.55, 101), torch.tensor([1e4, 1e-3, math.nan])])
    check((lambda one: special.polygamma(order, one), lambda one: special.multigammaln(one + 6, 3)), (x,))


def test_degrees_that_are_data():
    x = torch.cat([torch.linspace(-2, 2, 41), torch.tensor([math.nan, 3.0])])
    n = torch.tensor([-1.0, 0, 1, 2, 5, 8, 9, 30, 2.7, math.nan])
    check(BY_DEGREE, tuple(one.contiguous() for one in torch.meshgrid(x, n, indexing="ij")))


@pytest.mark.parametrize("degree", [-1, *(pytest.param(one, marks=LONG) for one in (0, 1, 6)), 9, 40])
def test_degrees_that_are_known(degree):
    check(BY_DEGREE, (torch.linspace(-1.5, 1.5, 37),), (degree,))


def test_windows():
    class Windows(torch.nn.Module):
        def forward(self, x):
            window = torch.kaiser_window
            made = window(33), window(33, False), window(33, True, 8.0), window(4, False, 3.0, dtype=torch.float64)
            others = torch.hann_window(9), torch.blackman_window(9, False), torch.bartlett_window(9), window(1)
            return (
                *made,
                *others,
                torch.hamming_window(9),
                torch.hamming_window(9, False, 0.5, 0.4),
                x * window(0).sum(),
            )

    x = torch.rand(3)
    for got, want in zip(eyas.compile(Windows(), (x,))(x), Windows()(x), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.long
def test_gradients():
    functions = (special.erfc, special.erfinv, special.erfcx, special.gammaln, special.digamma, special.i0, special.i1e)

    def total(x):
        return sum(function(x).sum() for function in functions) + special.gammainc(2.0 * torch.ones(5), x).sum()

    x = torch.rand(5) * 0.8 + 0.1
    one, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    torch.compile(total, backend="eyas", fullgraph=True)(one).backward()
    total(other).backward()
    torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-5)
