"""float8 and 4-bit integers from PyTorch and JAX: arguments, results, weights, conversions, and simple arithmetic."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import torch

import eyas

RNG = np.random.default_rng(11)
X = (RNG.standard_normal((5, 33)) * np.exp2(RNG.integers(-12, 18, (5, 33)))).astype(np.float32)
X[0, :6] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40]
TORCH = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz]
JAX = [jnp.float8_e4m3fn, jnp.float8_e5m2, jnp.float8_e4m3fnuz, jnp.float8_e5m2fnuz, jnp.int4, jnp.uint4]


class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def same_numbers(got, want) -> None:
    np.testing.assert_array_equal(np.asarray(got).astype(np.float32), np.asarray(want).astype(np.float32))


@pytest.mark.parametrize("dtype", TORCH, ids=str)
def test_torch_converts(dtype: torch.dtype):
    x = torch.from_numpy(X)
    narrow = eyas.compile(Function(lambda x: x.to(dtype)), (x,), device="local-sync")
    small = narrow(x)
    assert small.dtype == dtype
    same_numbers(small.to(torch.float32), x.to(dtype).to(torch.float32))
    widen = eyas.compile(Function(lambda x: x.to(torch.float32) * 2), (small,), device="local-sync")
    same_numbers(widen(small), small.to(torch.float32) * 2)


def test_torch_weights_of_float8():
    class Linear(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("weight", torch.randn(64, 48).to(torch.float8_e4m3fn))
            self.register_buffer("scale", torch.rand(64))

        def forward(self, x):
            return x @ (self.weight.to(torch.float32) * self.scale[:, None]).T

    model, x = Linear(), torch.randn(3, 48)
    got = eyas.compile(model, (x,), device="local-sync")(x)
    torch.testing.assert_close(got, model(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", JAX, ids=lambda dtype: np.dtype(dtype).name)
def test_jax_converts(dtype):
    x = jnp.asarray(X) if jnp.issubdtype(dtype, jnp.floating) else jnp.arange(-7, 8, dtype=jnp.int32) % 16 - 4
    x = x if dtype != jnp.uint4 else jnp.abs(x)
    there = jax.jit(lambda x: x.astype(dtype))
    small = eyas.compile(there, (x,), device="local-sync")(x)
    assert np.asarray(small).dtype == np.dtype(dtype)
    same_numbers(small, there(x))
    back = jax.jit(lambda x: x.astype(jnp.float32) + 1)
    same_numbers(eyas.compile(back, (there(x),), device="local-sync")(there(x)), back(there(x)))


def test_jax_computes_with_float8():
    a = jnp.asarray(RNG.standard_normal((6, 16)), jnp.float8_e4m3fn)
    b = jnp.asarray(RNG.standard_normal((16, 8)), jnp.float8_e4m3fn)

    @jax.jit
    def function(a, b):
        product = jnp.dot(a, b, preferred_element_type=jnp.float32)
        shifted = a + jnp.float8_e4m3fn(1.5)
        return product, shifted, jnp.where(a > 0, a, -a), jnp.maximum(a, jnp.float8_e4m3fn(0))

    results = eyas.compile(function, (a, b), device="local-sync")(a, b)
    wanted = function(a, b)
    np.testing.assert_allclose(results[0], wanted[0], rtol=1e-5, atol=1e-5)
    for got, want in zip(results[1:], wanted[1:], strict=True):
        assert np.asarray(got).dtype == ml_dtypes.float8_e4m3fn
        same_numbers(got, want)


def test_jax_computes_with_four_bits():
    a = jnp.arange(-8, 8, dtype=jnp.int4)
    b = jnp.asarray(RNG.integers(-8, 8, 16), jnp.int4)

    @jax.jit
    def function(a, b):
        return a + b, a * b, jnp.maximum(a, b), (a < b), a.astype(jnp.int32) * b.astype(jnp.int32)

    for got, want in zip(eyas.compile(function, (a, b), device="local-sync")(a, b), function(a, b), strict=True):
        same_numbers(got, want)
