"""Loops whose steps are independent of each other, from every frontend that has them: computed for all steps at once,
by kernels without a loop on tensors."""

from __future__ import annotations

import numpy as np
import pytest

import eyas

TARGETS = ("llvm-cpu", "vmvx")


def has_loop(module) -> bool:
    return any("_for_" in kernel["name"] or "_while_" in kernel["name"] for kernel in module.manifest["kernels"])


def check_onnx(text: str, *calls, batched: bool = True, **options) -> None:
    """Compiles once; every call must agree with ONNX Runtime."""
    pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    from tests.tools.onnx_texts import check_text

    assert has_loop(check_text(text, *calls, opset=17, **options)) != batched


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


DISTANCES = """main (float[{rows}, 5] x, float[{steps}, 5] w) => (float[{steps}, {rows}] y)
{{
  xs, y = Scan <num_scan_inputs = 1,
      body = step (float[{rows}, 5] s, float[5] v) => (float[{rows}, 5] t, float[{rows}] row) {{
    t = Identity (s)
    d = Sub (s, v)
    axes = Constant <value = int64[1] {{1}}> ()
    row = ReduceSumSquare <axes = [1], keepdims = 0> (d)
  }}> (x, w)
}}"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("steps", [65, 200])
def test_distances_of_known_sizes(steps, target):
    check_onnx(DISTANCES.format(rows=7, steps=steps), (normal(7, 5), normal(steps, 5)), target=target)


@pytest.mark.parametrize("target", TARGETS)
def test_distances_of_open_sizes(target):
    calls = [(normal(rows, 5), normal(77, 5)) for rows in (7, 1, 33)]
    check_onnx(DISTANCES.format(rows="n", steps=77), *calls, target=target)
    calls = [(normal(3, 5), normal(steps, 5)) for steps in (4, 1, 100)]
    check_onnx(DISTANCES.format(rows=3, steps="n"), *calls, target=target)
    calls = [(normal(rows, 5), normal(steps, 5)) for steps, rows in ((4, 3), (1, 1), (100, 9))]
    check_onnx(DISTANCES.format(rows="m", steps="n"), *calls, target=target)


@pytest.mark.parametrize("steps", [70, "n"])
def test_several_inputs_axes_and_directions(steps):
    text = f"""main (float[3, {steps}] x, float[{steps}, 2] w, float[{steps}] u) =>
        (float[3, {steps}] rows, float[{steps}, 3, 2] products, float[{steps}] sums)
    {{
      rows, products, sums = Scan <num_scan_inputs = 3, scan_input_axes = [1, 0, 0], scan_input_directions = [0, 1, 1],
          scan_output_axes = [1, 0, 0], scan_output_directions = [0, 1, 0],
          body = step (float[3] v, float[2] a, float b) => (float[3] row, float[3, 2] product, float sum) {{
        row = Mul (v, b)
        three = Constant <value = int64[2] {{3, 1}}> ()
        one = Constant <value = int64[2] {{1, 2}}> ()
        column = Reshape (row, three)
        line = Reshape (a, one)
        product = MatMul (column, line)
        sum = ReduceSum <keepdims = 0> (product)
      }}> (x, w, u)
    }}"""
    sizes = (70,) if steps == 70 else (5, 1, 80)
    check_onnx(text, *((normal(3, n), normal(n, 2), normal(n)) for n in sizes))


def test_a_loop_that_uses_its_number():
    text = """main (float[5, 3] x, int64[90] places) => (float[90, 3] y, float[90] z)
    {
      n = Constant <value = int64 {90}> ()
      t = Constant <value = bool {1}> ()
      y, z = Loop (n, t) <body = step (int64 i, bool c) => (bool d, float[3] row, float number) {
        d = Identity (c)
        number = Cast <to = 1> (i)
        five = Constant <value = int64 {5}> ()
        rest = Mod (i, five)
        own = Gather <axis = 0> (x, rest)
        place = Gather <axis = 0> (places, i)
        other = Gather <axis = 0> (x, place)
        both = Add (own, other)
        row = Mul (both, number)
      }>
    }"""
    check_onnx(text, (normal(5, 3), np.random.default_rng(1).integers(-5, 5, 90)))


def test_steps_that_need_the_one_before_stay_a_loop():
    text = """main (float[3] h, float[90, 3] x) => (float[3] last, float[90, 3] rows)
    {
      last, rows = Scan <num_scan_inputs = 1, body = step (float[3] s, float[3] v) => (float[3] t, float[3] row) {
        t = Add (s, v)
        row = Mul (t, v)
      }> (h, x)
    }"""
    check_onnx(text, (normal(3), normal(90, 3)), batched=False)


@pytest.mark.parametrize("target", TARGETS)
def test_map_of_jax(target):
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def softmax(x, w):
        def one(row):
            scores = row @ w
            top = jnp.sort(scores)[-3:]
            return jnp.exp(scores - scores.max()) / jnp.exp(scores - scores.max()).sum(), top

        forward = jax.lax.map(one, x)
        backward = jax.lax.scan(lambda carry, row: (carry, jnp.tanh(row) * carry), 2.0, x, reverse=True)[1]
        numbered = jax.lax.map(lambda i: x[i] * i, jnp.arange(x.shape[0]))
        return forward, backward, numbered

    x, w = normal(37, 11), normal(11, 9)
    module = eyas.compile(softmax, (x, w), target=target)
    for got, wanted in zip(jax.tree.leaves(module(x, w)), jax.tree.leaves(jax.jit(softmax)(x, w)), strict=True):
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=2e-6, atol=2e-6)


def test_map_of_images_in_jax():
    jax = pytest.importorskip("jax")

    def convolve(x, w):
        def one(image):
            made = jax.lax.conv_general_dilated(image[None], w, (2, 2), "VALID")
            return jax.nn.relu(made[0]).transpose(1, 2, 0)

        return jax.lax.map(one, x)

    x, w = normal(5, 3, 12, 13), normal(4, 3, 3, 3)
    module = eyas.compile(convolve, (x, w))
    np.testing.assert_allclose(np.asarray(module(x, w)), convolve(x, w), rtol=2e-5, atol=2e-5)
    assert not has_loop(module)


def test_map_of_torch():
    torch = pytest.importorskip("torch")
    from torch._higher_order_ops.map import map as torch_map

    class Map(torch.nn.Module):
        def forward(self, x, w):
            return torch_map(lambda row, w: (row @ w).relu() + row.sum(), x, w)

    x, w = torch.randn(21, 5, 7), torch.randn(7, 9)
    module = eyas.compile(Map(), (x, w))
    np.testing.assert_allclose(np.asarray(module(x, w)), Map()(x, w).numpy(), rtol=2e-6, atol=2e-6)
    assert not has_loop(module)


def test_scan_of_torch_without_a_state():
    torch = pytest.importorskip("torch")
    from torch._higher_order_ops.scan import scan

    class Scan(torch.nn.Module):
        def forward(self, x, h):
            return scan(lambda h, row: (h.clone(), row * h + row.mean()), h, x, dim=0)

    x, h = torch.randn(21, 5), torch.randn(5)
    module = eyas.compile(Scan(), (x, h))
    for got, wanted in zip(module(x, h), Scan()(x, h), strict=True):
        np.testing.assert_allclose(np.asarray(got), wanted.numpy(), rtol=2e-6, atol=2e-6)
    assert not has_loop(module)
