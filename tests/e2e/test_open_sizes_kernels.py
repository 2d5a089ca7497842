"""Programs whose sizes are open or depend on data: right, and in loop nests rather than plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tools.cpus import every_cpu

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
from tests.tools.onnx_texts import check_text  # noqa: E402

RNG = np.random.default_rng(6)
TARGETS = [*every_cpu(), pytest.param("vmvx", id="vmvx")]


def compiled(text: str, target: str, *calls):
    return check_text(text, *calls, target=target, rtol=1e-4, atol=1e-5)


def strategies(module) -> dict[str, str]:
    return {kernel["name"]: kernel["strategy"] for kernel in module.manifest["kernels"]}


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("target", TARGETS)
def test_transposed_convolutions(target):
    text = """main (float[n, 5, w] x, float[n, 6, h, w2] z) => (float[n, 7, a] y, float[n, 3, b, c] v)
    <float[5, 7, 16] f, float[7] g, float[6, 3, 3, 4] k>
    {
      y0 = ConvTranspose <strides = [8], pads = [4, 4]> (x, f, g)
      y = Relu(y0)
      v = ConvTranspose <strides = [2, 3], pads = [1, 0, 0, 2], output_padding = [1, 0]> (z, k)
    }"""
    weights = {"f": floats(5, 7, 16), "g": floats(7), "k": floats(6, 3, 3, 4)}
    for name, value in weights.items():
        shape = ", ".join(map(str, value.shape))
        numbers = ", ".join(f"{one:.6f}" for one in value.ravel())
        text = text.replace(f"float[{shape}] {name}", f"float[{shape}] {name} = {{{numbers}}}")
    sizes = ((1, 13, 5, 7), (2, 1, 1, 1), (1, 40, 9, 3))
    compiled(text, target, *((floats(n, 5, w), floats(n, 6, h, w2)) for n, w, h, w2 in sizes))


@pytest.mark.parametrize("target", TARGETS)
def test_sizes_that_depend_on_data_are_given_to_kernels(target):
    text = """main (float[3, 8] x, int64[2] shape, float[3, 3, 5] w) => (float[1, 3, m] y)
    <int64[1] front = {0}, float[1] zero = {0.0}, int64[6] more = {0, 0, 2, 0, 0, 3}>
    {
      wide = Expand(x, shape)
      image = Unsqueeze(wide, front)
      padded = Pad(image, more, zero)
      convolved = Conv(padded, w)
      y = Tanh(convolved)
    }"""
    x, w = floats(3, 8), floats(3, 3, 5)
    text = text.replace("float[3, 8] x", "float[3, 1] x")
    calls = [(x[:, :1], np.array([3, size]), w) for size in (1, 7, 33)]
    module = compiled(text, target, *calls)
    if target != "vmvx":
        assert "loops" not in strategies(module).values(), strategies(module)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("columns", [7, 24, 40, 100])
def test_rows_of_any_number_and_columns_that_fill_no_vector(target, columns):
    """Blocks of rows become smaller at the end, and the last vector of lanes has some that are off."""
    text = """main (float[n, m, 19] x) => (float[n, m, COLUMNS] y)
    <float[19, COLUMNS] w, float[COLUMNS] b>
    {
      product = MatMul(x, w)
      sum = Add(product, b)
      y = Tanh(sum)
    }""".replace("COLUMNS", str(columns))
    for name, value in {"w": floats(19, columns), "b": floats(columns)}.items():
        shape = ", ".join(map(str, value.shape))
        numbers = ", ".join(f"{one:.6f}" for one in value.ravel())
        text = text.replace(f"float[{shape}] {name}", f"float[{shape}] {name} = {{{numbers}}}")
    sizes = [(1, rows) for rows in range(1, 16)] + [(3, 29), (5, 64), (0, 4)]
    compiled(text, target, *((floats(n, rows, 19),) for n, rows in sizes))


@pytest.mark.parametrize("target", TARGETS)
def test_a_bias_of_one_number_is_no_loop_of_its_own(target):
    """As batch norms without shifts leave it, which nobody folds where the batch is open."""
    text = """main (float[n, 6, 5, 7] x, float[9, 6, 1, 1] w) => (float[n, 9, 5, 7] y)
    <float[9] b = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5}>
    {
      convolved = Conv(x, w, b)
      y = Relu(convolved)
    }"""
    module = compiled(text, target, *((floats(n, 6, 5, 7), floats(9, 6, 1, 1)) for n in (1, 2, 5)))
    assert "contraction" in strategies(module).values(), strategies(module)
