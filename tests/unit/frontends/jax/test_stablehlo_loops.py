"""StableHLO ops that become loops: dynamic sizes, and text that comes without JAX."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

from eyas.frontends import import_model  # noqa: E402
from eyas.verification.oracle import evaluate  # noqa: E402

struct = jax.ShapeDtypeStruct


def test_scatter_with_a_symbolic_batch():
    shape = jax.export.symbolic_shape("b, 4")
    program = import_model(lambda x, i: x.at[i].add(1.0), struct(shape, jnp.float32), struct((3,), jnp.int32))
    x = np.arange(20, dtype=np.float32).reshape(5, 4)
    rows = np.int32([1, 1, 7])
    expected = x.copy()
    expected[1] += 2
    np.testing.assert_array_equal(evaluate(program, x, rows)[0], expected)


def test_sort_of_rows_with_a_symbolic_batch():
    shape = jax.export.symbolic_shape("b, 7")
    program = import_model(lambda x: jnp.sort(x, axis=1), struct(shape, jnp.float32))
    x = np.random.default_rng(0).standard_normal((3, 7)).astype(np.float32)
    np.testing.assert_array_equal(evaluate(program, x)[0], np.sort(x, axis=1))


@pytest.mark.parametrize("size", [0, 1, 2, 13])
def test_sort_along_a_symbolic_dimension(size):
    program = import_model(lambda x: jnp.sort(x, axis=0), struct(jax.export.symbolic_shape("b, 3"), jnp.float32))
    x = np.random.default_rng(0).standard_normal((size, 3)).astype(np.float32)
    np.testing.assert_array_equal(evaluate(program, x)[0], np.sort(x, axis=0))
