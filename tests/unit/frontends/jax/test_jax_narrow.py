"""NumPy's 64-bit arrays are taken as JAX takes them while x64 is off; other frontends refuse them."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import eyas  # noqa: E402

WIDE = {
    "i32": np.array([[1, -2, 2**40 + 7], [5, 2**31, -(2**31) - 1]]),
    "f32": np.array([[0.1, -1e-9, 3.5], [1 / 3, 2.0, -0.0]]),
    "u32": np.array([[1, 2, 2**40 + 7], [5, 2**31, 3]], np.uint64),
    "c64": np.array([[0.1 + 1j, 2, 3], [1 / 3, 2j, 4]], np.complex128),
}


@pytest.mark.parametrize("kind", list(WIDE))
@pytest.mark.parametrize("saved", [False, True])
def test_wide_arrays(kind: str, saved: bool, tmp_path) -> None:
    x = WIDE[kind]

    def function(x, y):
        return x + y, x * y

    module = eyas.compile(function, (x, x[0]))
    assert module.signature.args[0].dtype == kind
    if saved:
        module.save(tmp_path / "wide.eyas")
        module = eyas.load(tmp_path / "wide.eyas")
    for mine, expected in zip(module(x, x[1]), jax.jit(function)(x, x[1]), strict=True):
        np.testing.assert_array_equal(mine, expected)
    narrow = x.astype(np.asarray(jax.jit(function)(x, x[1])[0]).dtype)
    np.testing.assert_array_equal(module(narrow, x[1])[0], module(x, x[1])[0])


def test_nested_named_and_flat_calls() -> None:
    def function(tree, *, scale):
        return {"sum": tree["a"] * scale + tree["b"]}

    tree, scale = {"a": np.arange(6), "b": np.arange(6)}, np.float64(0.5)
    module = eyas.compile(function, (tree,), kwargs={"scale": scale})
    expected = jax.jit(function)(tree, scale=scale)["sum"]
    np.testing.assert_array_equal(module(tree, scale=scale)["sum"], expected)
    np.testing.assert_array_equal(module.functions["main"](tree["a"], tree["b"], scale), expected)


def test_carried_state() -> None:
    module = eyas.compile(lambda state, x: (state + x, state), (np.int32(0), np.int64(1)), carry={0: 0})
    module(np.int64(4))
    assert module(np.int64(2)) == 4 and module.state["arg0"] == 6


def test_what_is_wrong_stays_an_error() -> None:
    module = eyas.compile(lambda x: x + 1, (np.arange(4),))
    for bad in (np.arange(5), np.arange(4.0), np.arange(4, dtype=np.uint64), np.arange(4, dtype=np.int16)):
        with pytest.raises(eyas.EyasError, match="argument 0"):
            module(bad)


def test_x64_and_other_frontends_are_exact() -> None:
    with jax.enable_x64(True):
        module = eyas.compile(lambda x: x + 1, (np.arange(4),))
    assert module.signature.args[0].dtype == "i64" and module(np.arange(4) + 2**40)[0] == 2**40 + 1
    text = "func.func @main(%x: tensor<4xi32>) -> tensor<4xi32> {\n  return %x : tensor<4xi32>\n}"
    with pytest.raises(eyas.EyasError, match="argument 0"):
        eyas.compile(text)(np.arange(4))
