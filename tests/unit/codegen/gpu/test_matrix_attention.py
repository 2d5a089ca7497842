"""Attention by matrix instructions, run thread by thread: right, inside of its memory, and without races."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tools import workgroups
from torch_mlir import ir as mlir

from eyas.codegen.gpu.matrix_softmax import MatrixAttentionKnobs
from eyas.codegen.spirv.compile import BACKEND
from eyas.dialects import codegen
from eyas.ir import make_context
from eyas.targets import Target

TARGET = "vulkan:hopper"
WIDE = MatrixAttentionKnobs(64, 32, 2, 32)
LONG = MatrixAttentionKnobs(128, 32, 1, 64)
LONE = MatrixAttentionKnobs(32, 32, 1, 32)


def text_of(heads: int, rows: int, keys: int, depth: int, width: int, element: str, turned: bool = False) -> str:
    """A dispatch: scores with a bias, their softmax, and weights times values."""
    score, row = f"tensor<{heads}x{rows}x{keys}xf32>", f"tensor<{heads}x{rows}xf32>"
    key = f"tensor<{heads}x{depth}x{keys}x{element}>" if turned else f"tensor<{heads}x{keys}x{depth}x{element}>"
    query, value = f"tensor<{heads}x{rows}x{depth}x{element}>", f"tensor<{heads}x{keys}x{width}x{element}>"
    weight, wide = f"tensor<{heads}x{rows}x{keys}x{element}>", f"tensor<{heads}x{rows}x{width}xf32>"
    result = f"tensor<{heads}x{rows}x{width}x{element}>"
    point, line = "affine_map<(h, r, k) -> (h, r, k)>", "affine_map<(h, r, k) -> (h, r)>"
    key_map = "(h, d, k)" if turned else "(h, k, d)"
    parallel = 'iterator_types = ["parallel", "parallel", "parallel"]'
    reduced = 'iterator_types = ["parallel", "parallel", "reduction"]'
    summed = 'iterator_types = ["parallel", "parallel", "parallel", "reduction"]'
    product = f"""
    %x = arith.extf %a : {element} to f32
    %y = arith.extf %b : {element} to f32
    %z = arith.mulf %x, %y : f32
    %u = arith.addf %o, %z : f32
    linalg.yield %u : f32"""
    return f"""
func.func @attention(%q: {query}, %k: {key}, %v: {value}, %bias: {score}) -> {result} {{
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %e0 = tensor.empty() : {score}
  %e1 = tensor.empty() : {row}
  %e2 = tensor.empty() : {weight}
  %e3 = tensor.empty() : {wide}
  %e4 = tensor.empty() : {result}
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : {score}) -> {score}
  %f1 = linalg.fill ins(%lowest : f32) outs(%e1 : {row}) -> {row}
  %f2 = linalg.fill ins(%zero : f32) outs(%e1 : {row}) -> {row}
  %f3 = linalg.fill ins(%zero : f32) outs(%e3 : {wide}) -> {wide}
  %s = linalg.generic {{indexing_maps = [affine_map<(h, r, k, d) -> (h, r, d)>, affine_map<(h, r, k, d) -> {key_map}>,
      affine_map<(h, r, k, d) -> (h, r, k)>], {summed}}} ins(%q, %k : {query}, {key}) outs(%f0 : {score}) {{
  ^bb0(%a: {element}, %b: {element}, %o: f32):{product}
  }} -> {score}
  %t = linalg.generic {{indexing_maps = [{point}, {point}, {point}], {parallel}}}
      ins(%s, %bias : {score}, {score}) outs(%e0 : {score}) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %x = arith.addf %a, %b : f32
    linalg.yield %x : f32
  }} -> {score}
  %m = linalg.generic {{indexing_maps = [{point}, {line}], {reduced}}} ins(%t : {score}) outs(%f1 : {row}) {{
  ^bb0(%a: f32, %o: f32):
    %x = arith.maximumf %a, %o : f32
    linalg.yield %x : f32
  }} -> {row}
  %w = linalg.generic {{indexing_maps = [{point}, {line}, {point}], {parallel}}}
      ins(%t, %m : {score}, {row}) outs(%e0 : {score}) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %x = arith.subf %a, %b : f32
    %y = math.exp %x : f32
    linalg.yield %y : f32
  }} -> {score}
  %n = linalg.generic {{indexing_maps = [{point}, {point}], {parallel}}} ins(%w : {score}) outs(%e2 : {weight}) {{
  ^bb0(%a: f32, %o: {element}):
    %x = arith.truncf %a : f32 to {element}
    linalg.yield %x : {element}
  }} -> {weight}
  %d = linalg.generic {{indexing_maps = [{point}, {line}], {reduced}}} ins(%w : {score}) outs(%f2 : {row}) {{
  ^bb0(%a: f32, %o: f32):
    %x = arith.addf %a, %o : f32
    linalg.yield %x : f32
  }} -> {row}
  %p = linalg.generic {{indexing_maps = [affine_map<(h, r, w, k) -> (h, r, k)>, affine_map<(h, r, w, k) -> (h, k, w)>,
      affine_map<(h, r, w, k) -> (h, r, w)>], {summed}}} ins(%n, %v : {weight}, {value}) outs(%f3 : {wide}) {{
  ^bb0(%a: {element}, %b: {element}, %o: f32):{product}
  }} -> {wide}
  %r = linalg.generic {{indexing_maps = [{point}, {line}, {point}], {parallel}}}
      ins(%p, %d : {wide}, {row}) outs(%e4 : {result}) {{
  ^bb0(%a: f32, %b: f32, %o: {element}):
    %x = arith.divf %a, %b : f32
    %y = arith.truncf %x : f32 to {element}
    linalg.yield %y : {element}
  }} -> {result}
  return %r : {result}
}}"""


def bits_of(values: np.ndarray, element: str) -> np.ndarray:
    if element == "f16":
        return values.astype(np.float16)
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def wide(bits: np.ndarray) -> np.ndarray:
    if bits.dtype == np.uint16:
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return bits.astype(np.float32)


def lowered(text: str, knobs: MatrixAttentionKnobs | None):
    module = mlir.Module.parse(text)
    if knobs is not None:
        fields = ", ".join(f"{name} = {value} : i64" for name, value in vars(knobs).items())
        (function,) = module.body.operations
        attribute = f'#codegen.strategy<"matrix-attention", {{{fields}}}>'
        function.attributes[codegen.STRATEGY] = mlir.Attribute.parse(attribute)
    _, kernel, strategy, rejected = BACKEND._kernel(module, Target.parse(TARGET), frozenset())
    return kernel, strategy, rejected


@pytest.mark.parametrize("knobs", [WIDE, LONG, LONE])
@pytest.mark.parametrize(
    ("sizes", "element", "turned"),
    [
        ((1, 64, 64, 32, 32), "f16", False),
        ((2, 70, 75, 40, 64), "f16", False),
        ((1, 70, 130, 16, 32), "bf16", False),
        ((1, 64, 100, 24, 32), "f16", True),
    ],
)
def test_attention_of_halves(sizes, element, turned, knobs):
    heads, rows, keys, depth, width = sizes
    random = np.random.default_rng(0)
    shapes = (heads, rows, depth), (heads, keys, depth), (heads, keys, width)
    q, k, v = (bits_of(random.standard_normal(shape), element) for shape in shapes)
    bias = random.standard_normal((heads, rows, keys)).astype(np.float32) * 4
    bias[:, ::3, : keys // 2] = -np.inf  # maxima grow late, and blocks have nothing to see
    scores = wide(q) @ wide(k).transpose(0, 2, 1) + bias
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = weights @ wide(v) / weights.sum(-1, keepdims=True)
    result = np.full((heads, rows, width), 0x7F7F, np.uint16)  # NaN in f16
    given = q, k.transpose(0, 2, 1) if turned else k, v, bias, result
    buffers = [np.ascontiguousarray(one).reshape(-1).view(np.uint8).copy() for one in given]
    with make_context():
        kernel, strategy, rejected = lowered(text_of(*sizes, element, turned), knobs)
        assert strategy.name == "matrix-attention", rejected
        workgroups.run(str(kernel), buffers, (heads, -(-rows // knobs.row_block), 1), 32)
    got = wide(buffers[4].view(np.float16 if element == "f16" else np.uint16).reshape(want.shape))
    np.testing.assert_allclose(got, want, rtol=2e-2, atol=(2e-3 if element == "f16" else 2e-2) * np.abs(want).max())


@pytest.mark.parametrize(
    ("sizes", "threads", "row_fragments"),
    [((96, 1500, 1500, 64, 64), 128, 1), ((12, 128, 128, 32, 32), 32, 1), ((1, 16, 64, 128, 128), 32, 1)],
)
def test_blocks_leave_each_processor_some(sizes, threads, row_fragments):
    with make_context():
        _, strategy, _ = lowered(text_of(*sizes, "f16"), None)
    assert (strategy.knobs.threads, strategy.knobs.row_fragments) == (threads, row_fragments)


@pytest.mark.parametrize(
    ("sizes", "why"),
    [((1, 64, 64, 32, 24), "24 columns fill no fragments"), ((1, 1, 64, 32, 32), "no block of rows and keys fits")],
)
def test_what_is_left_to_threads(sizes, why):
    with make_context():
        _, strategy, rejected = lowered(text_of(*sizes, "f16"), None)
    assert strategy.name == "attention" and f"matrix-attention: {why}" in rejected
