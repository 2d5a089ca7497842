"""JAX functions reach the input contract; what they close over becomes parameters."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

from eyas.errors import FrontendError, UnsupportedOpError, UsageError  # noqa: E402
from eyas.frontends import import_model  # noqa: E402
from eyas.verification.oracle import evaluate  # noqa: E402

RNG = np.random.default_rng(3)
WEIGHT = RNG.standard_normal((64, 32)).astype(np.float32)
struct = jax.ShapeDtypeStruct


def mlp(params, x):
    for weight, bias in params:
        x = jax.nn.gelu(x @ weight + bias)
    return {"logits": x, "unused": None}


def cnn(weight, x):
    x = jax.lax.conv_general_dilated(x, weight, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return jax.nn.softmax(x.mean((1, 2)))


def check(function, *arguments, rtol=1e-5, atol=1e-5):
    program = import_model(function, *arguments)
    leaves = [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(arguments)]
    expected = jax.tree_util.tree_leaves(function(*arguments))
    for got, want in zip(evaluate(program, *leaves), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)
    return program


def random(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def test_mlp_with_tree_of_parameters_as_argument():
    params = [(random(16, 32), random(32)), (random(32, 8), random(8))]
    program = check(mlp, params, random(4, 16))
    names = [argument.name for argument in program.signature.arguments]
    assert names == ["arg0.0.0", "arg0.0.1", "arg0.1.0", "arg0.1.1", "arg1"]
    assert not program.parameters
    assert program.out_tree.unflatten([1]) == {"logits": 1, "unused": None}
    assert program.in_tree.flatten(([("a", "b"), ("c", "d")], "x"), {}) == list("abcdx")


def test_cnn():
    check(cnn, random(3, 3, 3, 8), random(2, 8, 8, 3))


@pytest.mark.parametrize(
    "wrap", [lambda f: f, jax.jit, lambda f: lambda x: jax.jit(f)(x) * 2], ids=["plain", "jit", "inner"]
)
def test_closed_over_arrays_are_parameters(wrap):
    weight = jnp.asarray(WEIGHT)
    program = check(wrap(lambda x: x @ weight), random(4, 64))
    assert list(program.parameters) == ["closure_0_f32_64x32"]
    np.testing.assert_array_equal(program.parameters["closure_0_f32_64x32"].array(), WEIGHT)
    assert WEIGHT.tobytes().hex()[:64] not in program.as_text(level="source").lower()


def test_partial_application():
    params = [(random(16, 32), random(32))]
    program = import_model(functools.partial(mlp, params), struct((4, 16), jnp.float32))
    assert [parameter.shape for parameter in program.parameters.values()] == [(16, 32)]


def test_symbolic_batch():
    (batch,) = jax.export.symbolic_shape("batch")

    def function(x):
        return jax.nn.softmax(x.reshape(-1, 8) @ WEIGHT[:8])

    program = import_model(function, struct((batch, 64), jnp.float32))
    assert str(program.signature) == "(arg0: f32[batch, 64]) -> (output: f32[8*batch, 32])"
    for size in (1, 3):
        x = random(size, 64)
        np.testing.assert_allclose(evaluate(program, x)[0], function(x), rtol=1e-5)


def test_control_flow():
    check(lambda x: jax.lax.scan(lambda h, v: (h * 0.5 + v, h), jnp.zeros(4), x), random(5, 4))
    check(lambda x: jax.lax.fori_loop(0, 10, lambda i, a: a * 1.1 + i, x), random(4))
    switch = import_model(lambda i, x: jax.lax.switch(i, [jnp.sin, jnp.cos, lambda v: v], x), np.int32(0), random(4))
    x = random(4)
    for index, expected in enumerate([np.sin(x), np.cos(x), x]):
        np.testing.assert_allclose(evaluate(switch, np.array(index, np.int32), x)[0], expected, rtol=1e-6)


def test_unsigned_integers_keep_their_meaning():
    x, y = np.array([200, 3, 255], np.uint8), np.array([100, 200, 7], np.uint8)
    program = check(lambda a, b: (a.astype(jnp.float32), jnp.maximum(a, b), a // b, a < b), x, y)
    assert program.signature.arguments[0].dtype == "u8"


def test_random_bits_match():
    check(lambda key: jax.random.bits(jax.random.wrap_key_data(key), (5,)), np.array([1, 0xFFFFFFF0], np.uint32))


def test_small_types():
    program = import_model(lambda a, b: a @ b, struct((8, 16), jnp.bfloat16), struct((16, 8), jnp.bfloat16))
    assert program.signature.results[0].dtype == "bf16"
    left, right = RNG.integers(-9, 9, (4, 8), np.int8), RNG.integers(-9, 9, (8, 4), np.int8)
    check(lambda a, b: jax.lax.dot(a, b, preferred_element_type=jnp.int32), left, right)


def test_exported_function():
    exported = jax.export.export(jax.jit(lambda x: x @ WEIGHT))(struct((4, 64), jnp.float32))
    program = import_model(exported)
    x = random(4, 64)
    np.testing.assert_allclose(evaluate(program, x)[0], x @ WEIGHT, rtol=1e-4, atol=1e-5)
    assert [parameter.shape for parameter in program.parameters.values()] == [(64, 32)]
    with pytest.raises(UsageError, match="pass it alone"):
        import_model(exported, x)


def fails_with(kind, pattern, function, *arguments):
    with pytest.raises(kind) as caught:
        import_model(function, *arguments)
    assert re.search(pattern, str(caught.value)), str(caught.value)
    assert "\n" not in str(caught.value)


def test_primitives_without_a_portable_rule_are_unsupported():
    fails_with(UnsupportedOpError, "'schur' not found", lambda x: jax.scipy.linalg.schur(x)[0], random(4, 4))
    fails_with(UnsupportedOpError, "left eigenvectors", lambda x: jax.lax.linalg.eig(x)[1].real, random(4, 4))


def test_unsupported_ops_name_the_users_line():
    fails_with(
        UnsupportedOpError,
        r"'stablehlo\.custom_call' at .*test_import_jax\.py:\d+",
        lambda x: jax.ffi.ffi_call("unknown", struct((4,), jnp.float32))(x),
        random(4),
    )


def test_what_jax_has_between_the_user_and_the_op_is_not_where_it_is():
    unknown = jax.jit(jax.ffi.ffi_call("unknown", struct((4,), jnp.float32)))
    fails_with(UnsupportedOpError, r"at .*test_import_jax\.py:\d+", unknown, random(4))


def test_functions_that_do_not_trace():
    fails_with(FrontendError, r"jax could not trace", lambda x: x + "text", random(4))
    with pytest.raises(UsageError, match="symbolic_shape"):
        import_model(jnp.sin, random(4), dynamic_shapes={"x": 1})
