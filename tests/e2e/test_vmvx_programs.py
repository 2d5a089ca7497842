"""Programs of odd kinds as bytecode and as machine code: the same numbers, and no machine code in the file.

Integers and truths must be equal; floats may differ by a few roundings of the narrowest type on their way.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

import eyas  # noqa: E402

ROUNDINGS = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-6, "complex64": 4e-6, "float64": 1e-14}
SHAPES = [(), (1,), (0,), (3, 0, 5), (17,), (129,), (2, 1, 3, 1, 2, 5, 3), (1, 1, 1, 1, 1, 1, 1)]
DTYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.complex64, np.bool_]
DTYPES += [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64]


@dataclass(frozen=True)
class Program:
    function: Callable
    inputs: tuple[np.ndarray, ...]


def random_array(shape: tuple[int, ...], dtype: type = np.float32, seed: int = 0) -> np.ndarray:
    """Values of both signs where there are any; integers from the whole range of the type."""
    rng, dtype = np.random.default_rng([seed, *shape]), np.dtype(dtype)
    if dtype.kind in "iu":
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def of_any_shape(x, y):
    """Elementwise ops, reductions, sorting, and moves, whatever the rank; one result each."""
    results = [jnp.where(x == y, x, y), x.astype(jnp.complex64), x != y]
    results += [x ^ y, x & ~y] if x.dtype == bool else [x * y + x, x - y, -x]
    ordered = not jnp.iscomplexobj(x)
    if ordered:
        results += [jnp.maximum(x, y), x < y]
    if jnp.issubdtype(x.dtype, jnp.floating):
        results += [jnp.exp(x), jnp.tanh(y), x.astype(jnp.int32), x.astype(jnp.float64)]
    if jnp.issubdtype(x.dtype, jnp.integer):
        results += [x.astype(jnp.float32), x.astype(jnp.int8), x >> 1, x // jnp.where(y == 0, 1, y).astype(x.dtype)]
    if x.ndim:
        results += [jnp.sum(x, axis=-1), jnp.transpose(x), jnp.flip(x, 0), jnp.concatenate([x, y], -1)]
        results += [jnp.pad(x, [(1, 2)] * x.ndim), jnp.cumsum(x, axis=0)]
    if x.ndim and x.size and ordered:
        results += [jnp.max(x, axis=0), jnp.argmax(x, axis=-1), jnp.sort(x, axis=-1)]
    return results


def loops_with_state(x, w):
    """A `while` whose end depends on data, a scan, and a branch."""
    grown, steps = lax.while_loop(
        lambda carried: jnp.sum(carried[0]) < 1e3,
        lambda carried: (carried[0] * 1.5 + 1, carried[1] + 1),
        (jnp.abs(x[0]), 0),
    )
    state, seen = lax.scan(lambda h, row: (jnp.tanh(h @ w + row), h.sum()), jnp.zeros_like(x[0]), x)
    return grown, steps, state, seen, lax.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, x)


def training_step(w, b, x, y):
    def loss(w, b):
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(jnp.tanh(x @ w) @ b), y[:, None], 1))

    value, (dw, db) = jax.value_and_grad(loss, (0, 1))(w, b)
    return value, w - 0.1 * dw, b - 0.1 * db


def four_bits(x):
    return [x.astype(kind).astype(as_) for kind in (jnp.int4, jnp.uint4) for as_ in (jnp.int32, jnp.float32)]


# One shape for each type, and all shapes in turn.
PROGRAMS = {
    f"{np.dtype(dtype).name}-{'x'.join(map(str, shape)) or 'scalar'}": Program(
        of_any_shape, (random_array(shape, dtype), random_array(shape, dtype, 1))
    )
    for number, dtype in enumerate(DTYPES)
    for shape in [SHAPES[number * 3 % len(SHAPES)]]
}
PROGRAMS |= {
    "rank 8": Program(
        lambda x: jnp.transpose(x, (7, 1, 5, 3, 0, 2, 6, 4)).sum(axis=(0, 3)), (random_array((2, 3, 2, 1, 2, 3, 2, 2)),)
    ),
    "products without terms": Program(jnp.matmul, (random_array((3, 0)), random_array((0, 5)))),
    "complex products": Program(jnp.matmul, (random_array((5, 7), np.complex64), random_array((7, 3), np.complex64))),
    "complex convolution": Program(
        lambda x, w: lax.conv_general_dilated(x, w, (2,), [(1, 2)], rhs_dilation=(2,)),
        (random_array((1, 3, 11), np.complex64), random_array((5, 3, 2), np.complex64)),
    ),
    "i64 products": Program(jnp.matmul, (random_array((17, 33), np.int64), random_array((33, 65), np.int64))),
    "four bits": Program(four_bits, (random_array((7, 5), np.int8),)),
    "loops with state": Program(loops_with_state, (random_array((4, 3, 5)), random_array((5, 5)))),
    "training step": Program(
        training_step,
        (random_array((9, 17)), random_array((17, 4)), random_array((11, 9)), np.arange(11) % 4),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_numbers(name, tmp_path):
    program = PROGRAMS[name]
    with jax.enable_x64(True):
        expected = compiled(program, "llvm-cpu")(*program.inputs)
        for disable in ((), ("microkernels",)):
            module = compiled(program, "vmvx", disable)
            assert_close(module(*program.inputs), expected)
            module.save(tmp_path / "module.eyas")
            with zipfile.ZipFile(tmp_path / "module.eyas") as file:
                assert not [name for name in file.namelist() if b"\x7fELF" == file.read(name)[:4]]


def test_entry_points_and_sizes_of_the_call():
    def total(x):
        return jnp.sum(x * x, axis=0), x.T

    def scores(x, y):
        return jax.nn.softmax(x @ y.T, axis=-1)

    def dynamic(name):
        return jax.ShapeDtypeStruct(jax.export.symbolic_shape(f"{name}, 33", scope=scope), np.float32)

    scope = jax.export.SymbolicScope()
    entries = {"total": (total, (dynamic("n"),)), "scores": (scores, (dynamic("n"), dynamic("m")))}
    native, portable = (eyas.compile(entries, target=target, threads=1) for target in ("llvm-cpu", "vmvx"))
    for rows, columns in ((5, 7), (1, 1), (130, 19)):
        x, y = random_array((rows, 33)), random_array((columns, 33), seed=1)
        assert_close(portable.total(x), native.total(x))
        assert_close(portable.scores(x, y), native.scores(x, y))


def compiled(program: Program, target: str, disable: tuple[str, ...] = ()) -> eyas.Module:
    return eyas.compile(program.function, program.inputs, target=target, disable=disable, threads=1, cache=False)


def assert_close(got, expected) -> None:
    got, expected = jax.tree.leaves(got), jax.tree.leaves(expected)
    assert len(got) == len(expected)
    for one, other in zip(map(np.asarray, got), map(np.asarray, expected), strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        if one.dtype.kind in "iub":
            np.testing.assert_array_equal(one, other)
        else:
            wide = np.complex128 if one.dtype.kind == "c" else np.float64
            scale = max(1.0, np.abs(other.astype(wide)).max(initial=0.0))
            tolerance = 8 * ROUNDINGS[one.dtype.name]
            np.testing.assert_allclose(one.astype(wide), other.astype(wide), rtol=tolerance, atol=tolerance * scale)
