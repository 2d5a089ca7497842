"""Plain loops on a Vulkan device: every family of ops, with all other strategies switched off, against JAX or NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tools import vulkan

import eyas
from eyas.codegen.gpu.strategies import STRATEGIES

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

LONG = pytest.mark.long
OTHERS = tuple(strategy.name for strategy in STRATEGIES if strategy.name != "loops")
RNG = np.random.default_rng(0)
X = RNG.standard_normal((5, 7)).astype(np.float32)
POSITIVE = (X[:, :5] @ X[:, :5].T + 3 * np.eye(5)).astype(np.float32)
INTS = RNG.integers(-9, 9, (5, 7)).astype(np.int32)


def check(function, *inputs: np.ndarray, tolerance: float = 1e-5) -> None:
    module = eyas.compile(jax.jit(function), inputs, target=vulkan.target(), disable=OTHERS)
    expected, got = (jax.tree.leaves(run(*inputs)) for run in (function, module))
    for one, other in zip(expected, got, strict=True):
        np.testing.assert_allclose(np.asarray(other), np.asarray(one), rtol=tolerance, atol=tolerance)


FUNCTIONS = {
    "elementwise": lambda x: jnp.tanh(x) * 2 + jnp.where(x > 0, x, jnp.exp(x)),
    "product": lambda x: x @ x.T,
    "softmax": lambda x: jax.nn.softmax(x, 1),
    "sort": lambda x: jnp.sort(x, 1),
    "sort by key": lambda x: lax.sort((x, x * 2), num_keys=1),
    "top k": lambda x: lax.top_k(x, 3),
    "sum so far": lambda x: jnp.cumsum(x, 0),
    "gather": lambda x: x[jnp.array([4, 0, 2])],
    "scatter": lambda x: jnp.asarray(x).at[jnp.array([0, 2])].add(1.0),
    "pad": lambda x: jnp.pad(x, ((1, 2), (0, 3))),
    "windows": lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "SAME"),
    "join": lambda x: jnp.concatenate([x, x[:2] * 3]),
    "update": lambda x: lax.dynamic_update_slice(x, x[:2, :2], (1, 2)),
    "fixed loop": lambda x: lax.fori_loop(0, 3, lambda i, c: c @ c.T @ c * 0.1, x),
    "loop until": lambda x: lax.while_loop(lambda c: jnp.sum(c) < 300, lambda c: c * 1.5 + 1, x),
    "swap in a loop": lambda x: lax.fori_loop(0, 3, lambda i, c: (c[1], c[0] + 1.0), (x, x * 2)),
    "scan": lambda x: lax.scan(lambda c, row: (c + row, c * row), jnp.zeros(7), x),
    "branch": lambda x: lax.cond(jnp.sum(x) > 0, lambda x: jnp.sort(x, 1), lambda x: jnp.cumsum(x, 1), x),
    "fourier": lambda x: jnp.fft.fft(x),
    "complex": lambda x: jnp.abs((x + 1j * x[::-1]) * (2 - 1j) / (x + 3j)),
    "truths": lambda x: jnp.any(x > 1, 1) & jnp.all(x < 3, 1),
    "half": lambda x: (x.astype(jnp.float16) * 3 + 1).sum(1).astype(jnp.float32),
    "bfloat": lambda x: (x.astype(jnp.bfloat16) * 3 + 1).astype(jnp.float32),
    "bytes": lambda x: (x.astype(jnp.int8) * jnp.int8(50) + jnp.int8(100)).astype(jnp.int32),
}


SHORT = ("sort", "scatter", "pad", "join", "loop until", "swap in a loop", "branch", "complex", "half", "bytes")


@pytest.mark.parametrize("name", [name if name in SHORT else pytest.param(name, marks=LONG) for name in FUNCTIONS])
def test_family(name: str) -> None:
    check(FUNCTIONS[name], X, tolerance=2e-2 if name == "half" else 1e-4)


@pytest.mark.long
@pytest.mark.parametrize("name", ["cholesky", "inv", "qr"])
def test_factorisation(name: str) -> None:
    check(getattr(jnp.linalg, name), POSITIVE, tolerance=1e-3)


@pytest.mark.parametrize(
    "function",
    [lambda x: x // 3 + jnp.power(x, 3) ^ (x << 2) + lax.clz(x) + lax.population_count(x)],
)
def test_integers(function) -> None:
    check(function, INTS)


WIDE = """
#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<64x{kind}>) -> (tensor<64x{kind}>) {{
  %e = tensor.empty() : tensor<64x{kind}>
  %r = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel"]}}
      ins(%x : tensor<64x{kind}>) outs(%e : tensor<64x{kind}>) {{
    ^bb0(%a: {kind}, %o: {kind}):
      {body}
      linalg.yield %y : {kind}
  }} -> tensor<64x{kind}>
  return %r : tensor<64x{kind}>
}}"""


@pytest.mark.parametrize(
    ("kind", "body", "reference"),
    [
        ("f64", "%y = math.exp %a : f64", np.exp),
        ("i64", "%c = arith.constant 7 : i64\n%y = arith.floordivsi %a, %c : i64", lambda x: x // 7),
    ],
)
def test_wide_numbers(tmp_path, kind: str, body: str, reference) -> None:
    path = tmp_path / "wide.mlir"
    path.write_text(WIDE.format(kind=kind, body=body))
    x = np.linspace(-20, 20, 64) if kind == "f64" else np.arange(-32, 32) * 1234567
    module = eyas.compile(path, target=vulkan.target(), disable=OTHERS)
    np.testing.assert_allclose(module(x), reference(x), rtol=1e-14)


@pytest.mark.long
def test_sizes_that_vary() -> None:
    torch = pytest.importorskip("torch")

    class Padded(torch.nn.Module):
        def forward(self, x):
            padded = torch.nn.functional.pad(x, (1, 2))
            return torch.sort(padded, dim=1)[0], torch.cumsum(x, 0)

    sizes = {0: torch.export.Dim("rows", min=2, max=50), 1: torch.export.Dim("columns", min=2, max=50)}
    module = eyas.compile(
        Padded(), (torch.zeros(3, 4),), dynamic_shapes=(sizes,), target=vulkan.target(), disable=OTHERS
    )
    for shape in ((3, 4), (17, 5), (2, 33)):
        x = torch.randn(shape)
        for got, expected in zip(module(x), Padded()(x), strict=True):
            torch.testing.assert_close(got, expected)
