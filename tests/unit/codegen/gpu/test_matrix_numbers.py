"""Kernels with matrix instructions, run thread by thread: right, inside of their memory, and without races."""

from __future__ import annotations

import re

import numpy as np
import pytest
from benchmarks.gpu_products import Case
from tests.tools import workgroups
from torch_mlir import ir as mlir

from eyas.codegen.gpu.strategies.matrices import MatrixKnobs
from eyas.codegen.spirv.compile import BACKEND
from eyas.dialects import codegen
from eyas.ir import make_context
from eyas.targets import Target

TARGET = "vulkan:hopper"
LARGE = MatrixKnobs(256, 32, 1, 4, 4, 4, 32, 16, 16, 16, 1, 1, 8, 0, 1)
TWICE = MatrixKnobs(128, 32, 1, 2, 2, 4, 32, 16, 16, 16, 2, 2, 2, 0, 1)
SMALL = MatrixKnobs(64, 32, 1, 1, 1, 2, 64, 16, 8, 16, 2, 1, 1, 0, 1)
SHARED = MatrixKnobs(256, 32, 4, 2, 1, 2, 128, 16, 16, 16, 2, 1, 1, 0, 1)
SPREAD = MatrixKnobs(128, 32, 1, 2, 2, 2, 64, 16, 16, 16, 2, 2, 2, 1, 1)
LATE = MatrixKnobs(128, 32, 1, 2, 2, 2, 64, 16, 16, 16, 2, 1, 2, 1, 0)
BETWEEN = MatrixKnobs(128, 32, 1, 2, 2, 2, 64, 16, 16, 16, 2, 2, 2, 2, 1)
BETWEEN_ONE = MatrixKnobs(128, 32, 1, 2, 4, 2, 16, 16, 16, 16, 2, 1, 2, 2, 1)
LATE_ONE = MatrixKnobs(128, 32, 1, 2, 2, 2, 64, 16, 16, 16, 1, 1, 2, 0, 0)
BYTES = MatrixKnobs(128, 32, 1, 2, 2, 2, 64, 16, 16, 32, 2, 3, 1, 0, 1)


def bits_of(values: np.ndarray, element: str) -> np.ndarray:
    if element == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype({"f16": np.float16, "i8": np.int8}[element])


def wide(bits: np.ndarray) -> np.ndarray:
    if bits.dtype == np.uint16:
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return bits.astype(np.int32 if bits.dtype == np.int8 else np.float32)


def lowered(text: str, knobs: MatrixKnobs | None):
    """The kernel of a dispatch, and the strategy that made it."""
    module = mlir.Module.parse(text)
    if knobs is not None:
        fields = ", ".join(f"{name} = {value} : i64" for name, value in vars(knobs).items())
        (function,) = module.body.operations
        function.attributes[codegen.STRATEGY] = mlir.Attribute.parse(f'#codegen.strategy<"matrices", {{{fields}}}>')
    _, kernel, strategy, _ = BACKEND._kernel(module, Target.parse(TARGET), frozenset())
    return kernel, strategy


def kernel_of(case: Case, knobs: MatrixKnobs | None):
    kernel, strategy = lowered(case.text.replace("@main", "@product"), knobs)
    grid = [-(-extent.static // piece) for extent, piece in strategy.workgroups]
    return str(kernel), (grid[0], grid[1], grid[2])


def computed(case: Case, knobs: MatrixKnobs | None, change=lambda text: text) -> tuple[np.ndarray, np.ndarray]:
    """What a kernel gives, and what NumPy does."""
    random = np.random.default_rng(0)
    shapes = (case.rows, case.steps), (case.columns, case.steps) if case.turned else (case.steps, case.columns)
    a, b = (bits_of(random.integers(-100, 100, shape) / (1 if case.element == "i8" else 64), case.element)
            for shape in shapes)  # fmt: skip
    want = wide(a) @ (wide(b).T if case.turned else wide(b))
    result = np.full(want.shape, 0x7F7F, np.int32 if case.element == "i8" else np.uint16)  # NaN in f16
    buffers = [one.reshape(-1).view(np.uint8).copy() for one in (a, b, result)]
    with make_context():
        text, grid = kernel_of(case, knobs)
        workgroups.run(change(text), buffers, grid, 32)
    got = buffers[2].view(np.float16 if case.element == "f16" else result.dtype).reshape(want.shape)
    return wide(got) if case.element == "bf16" else got.astype(want.dtype), want


@pytest.mark.parametrize("shape", ["256x256x64", "130x270x72", "130x270x72t", "70x61x45", "70x61x45t", "16x9x200"])
@pytest.mark.parametrize("knobs", [LARGE, TWICE, SMALL, SHARED, SPREAD, LATE, LATE_ONE, BETWEEN, BETWEEN_ONE])
def test_products_of_halves(shape, knobs):
    got, want = computed(Case.parse(shape, "f16"), knobs)
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3 * np.abs(want).max())


@pytest.mark.parametrize("shape", ["64x96x128", "50x61x70", "50x61x67t"])
def test_products_of_bytes(shape):
    np.testing.assert_array_equal(*computed(Case.parse(shape, "i8"), BYTES))


@pytest.mark.parametrize("shape", ["130x70x72", "50x61x33t"])
def test_products_of_bfloats(shape):
    got, want = computed(Case.parse(shape, "bf16"), TWICE)
    np.testing.assert_allclose(got, want, rtol=2e-2, atol=1e-2 * np.abs(want).max())


def test_what_is_chosen_is_right():
    got, want = computed(Case.parse("300x200x90", "f16"), None)
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3 * np.abs(want).max())


@pytest.mark.parametrize("knobs", [LARGE, TWICE])
def test_a_missing_barrier_is_a_race(knobs):
    with pytest.raises(AssertionError, match="a race"):
        computed(Case.parse("256x256x64", "f16"), knobs, lambda text: re.sub(r"\n *gpu\.barrier.*", "", text))


@pytest.mark.parametrize(("images", "size", "inputs", "outputs", "stride"), [(2, 9, 16, 24, 1), (1, 12, 40, 16, 2)])
def test_convolutions_have_rows_across_lines_and_images(images, size, inputs, outputs, stride):
    """Places, lines and images are counted as one: 7 x 7 places would fill less than half of a tile's rows."""
    places = (size - 3) // stride + 1
    x, w = f"tensor<{images}x{size}x{size}x{inputs}xf16>", f"tensor<3x3x{inputs}x{outputs}xf16>"
    y = f"tensor<{images}x{places}x{places}x{outputs}xf32>"
    text = f"""
func.func @conv(%x: {x}, %w: {w}) -> {y} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {y}
  %f = linalg.fill ins(%zero : f32) outs(%e : {y}) -> {y}
  %c = linalg.conv_2d_nhwc_hwcf {{strides = dense<{stride}> : tensor<2xi64>}}
      ins(%x, %w : {x}, {w}) outs(%f : {y}) -> {y}
  return %c : {y}
}}"""
    random = np.random.default_rng(0)
    image = (random.integers(-20, 20, (images, size, size, inputs)) / 16).astype(np.float16)
    weights = (random.integers(-20, 20, (3, 3, inputs, outputs)) / 16).astype(np.float16)
    windows = np.lib.stride_tricks.sliding_window_view(wide(image), (3, 3), (1, 2))[:, ::stride, ::stride]
    want = np.einsum("nhwcij,ijco->nhwo", windows, wide(weights))
    buffers = [one.reshape(-1).view(np.uint8).copy() for one in (image, weights, np.full_like(want, np.nan))]
    with make_context():
        _, kernel, strategy, _ = BACKEND._kernel(mlir.Module.parse(text), Target.parse(TARGET), frozenset())
        assert strategy.name == "matrices"
        others, *_, (rows, height) = [(extent.static, piece) for extent, piece in strategy.workgroups]
        assert others == (1, 1) and rows == images * places * places
        grid = [-(-extent.static // piece) for extent, piece in strategy.workgroups]
        workgroups.run(str(kernel), buffers, (grid[0], grid[1], grid[2]), 32)
    got = buffers[2].view(np.float32).reshape(want.shape)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize("knobs", [LARGE, TWICE, SHARED])
@pytest.mark.parametrize(("rows", "steps"), [(33, 47), (150, 64)])
def test_open_sizes(knobs, rows, steps):
    text = """
func.func @product(%a: tensor<?x?xf16>, %b: tensor<?x40xf16>, %m: index, %k: index, %l: index) -> tensor<?x40xf32>
    attributes {dim_args = array<i64: 0, 1, 2, 0>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%m) : tensor<?x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x40xf32>) -> tensor<?x40xf32>
  %p = linalg.matmul ins(%a, %b : tensor<?x?xf16>, tensor<?x40xf16>) outs(%f : tensor<?x40xf32>) -> tensor<?x40xf32>
  return %p : tensor<?x40xf32>
}"""
    random = np.random.default_rng(0)
    a, b = ((random.integers(-50, 50, shape) / 16).astype(np.float16) for shape in ((rows, steps), (steps, 40)))
    buffers = [one.reshape(-1).view(np.uint8).copy() for one in (a, b, np.full((rows, 40), np.nan, np.float32))]
    with make_context():
        kernel, strategy = lowered(text, knobs)
        pieces = [piece for _, piece in strategy.workgroups]
        grid = 1, -(-40 // pieces[1]), -(-rows // pieces[2])
        workgroups.run(str(kernel), buffers, grid, 32, (rows, steps, steps))
    got = buffers[2].view(np.float32).reshape(rows, 40)
    np.testing.assert_allclose(got, wide(a) @ wide(b), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("knobs", [TWICE, SHARED])
@pytest.mark.parametrize("columns", [61, 64])
def test_what_follows_a_product_is_fused(knobs, columns):
    y, bias, rounded = f"tensor<50x{columns}xf32>", f"tensor<{columns}xf32>", f"tensor<50x{columns}xf16>"
    text = f"""
func.func @product(%a: tensor<50x40xf16>, %b: tensor<40x{columns}xf16>, %bias: {bias}, %more: {rounded}) -> {rounded} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {y}
  %f = linalg.fill ins(%zero : f32) outs(%e : {y}) -> {y}
  %p = linalg.matmul ins(%a, %b : tensor<50x40xf16>, tensor<40x{columns}xf16>) outs(%f : {y}) -> {y}
  %r = tensor.empty() : {rounded}
  %g = linalg.generic {{indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>,
      affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}}
      ins(%p, %bias, %more : {y}, {bias}, {rounded}) outs(%r : {rounded}) {{
  ^bb0(%x: f32, %w: f32, %v: f16, %o: f16):
    %s = arith.addf %x, %w : f32
    %t = arith.maximumf %s, %zero : f32
    %u = arith.truncf %t : f32 to f16
    %z = arith.addf %u, %v : f16
    linalg.yield %z : f16
  }} -> {rounded}
  return %g : {rounded}
}}"""
    random = np.random.default_rng(0)
    a, b, more = ((random.integers(-50, 50, shape) / 64).astype(np.float16)
                  for shape in ((50, 40), (40, columns), (50, columns)))  # fmt: skip
    biases = random.standard_normal(columns).astype(np.float32)
    result = np.full((50, columns), np.nan, np.float16)
    buffers = [one.reshape(-1).view(np.uint8).copy() for one in (a, b, biases, more, result)]
    with make_context():
        kernel, strategy = lowered(text, knobs)
        grid = [-(-extent.static // piece) for extent, piece in strategy.workgroups]
        workgroups.run(str(kernel), buffers, (grid[0], grid[1], grid[2]), 32)
    got = buffers[4].view(np.float16).reshape(50, columns)
    want = np.maximum(wide(a) @ wide(b) + biases, 0) + wide(more)
    np.testing.assert_allclose(wide(got), want, rtol=2e-3, atol=4e-3)
