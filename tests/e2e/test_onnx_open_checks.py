"""Files that leave open what can be one size only, or that rely on sizes to agree, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
from tests.tools.onnx_texts import check_text, text_model  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import CallError, FrontendError  # noqa: E402

RNG = np.random.default_rng(7)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("sizes", [(2, 900), (900, 2)])
def test_parts_of_a_concatenation_agree_across_its_axis(sizes):
    """More rows than the first operand has would be written outside of the result."""
    text = "main (float[b, n] x, float[c, m] y) => (float[d, k] z) { z = Concat <axis = 1> (x, y) }"
    module = check_text(text, (floats(3, 2), floats(3, 5)))
    with pytest.raises(CallError, match="two sizes must be equal for tensor.concat at node"):
        module(*(floats(rows, 30) for rows in sizes))


@pytest.mark.parametrize("target", ["llvm-cpu", "vmvx"])
@pytest.mark.parametrize("rows", [(3, 2), (2, 3), (900, 3), (3, 900)])
def test_sizes_agree_inside_of_loops(rows, target):
    """Steps that choose their rows are no loops over them: a row of each that is longer was read outside of memory."""
    text = """main (int64 n, float[4] s0, float[m, 8, 4] x, float[k, 8, 4] w) => (float[4] s)
    {
      s = Loop (n, , s0) <body = step (int64 i, bool c, float[4] t) => (bool on, float[4] u) {
        on = Identity (c)
        a = Gather <axis = 1> (x, i)
        b = Gather <axis = 1> (w, i)
        p = Mul (a, b)
        q = Add (p, t)
        u = ReduceMean <keepdims = 0, axes = [0]> (q)
      }>
    }"""
    module = eyas.compile(text_model(text, 17), target=target)
    x, w, s = floats(5, 8, 4), floats(5, 8, 4), floats(4)
    want = s
    for step in range(6):
        want = (x[:, step] * w[:, step] + want).mean(0)
    np.testing.assert_allclose(module(np.int64(6), s, x, w), want, rtol=1e-5, atol=1e-5)
    x, w = floats(rows[0], 8, 4), floats(rows[1], 8, 4)
    np.testing.assert_array_equal(module(np.int64(0), s, x, w), s)  # what takes no step needs nothing
    with pytest.raises(CallError, match="two sizes must be equal for .* at node 'Mul"):
        module(np.int64(6), s, x, w)


@pytest.mark.parametrize("operator, gates", [("GRU", 3), ("LSTM", 4), ("RNN", 1)])
def test_first_states_have_the_batch_of_the_inputs(operator, gates):
    text = f"""main (float[s, b, 3] x, float[1, c, 4] h) => (float[s, 1, b, 4] y)
    {{
      w = Constant <value = float[1, {4 * gates}, 3] {{{", ".join(["0.5"] * 12 * gates)}}}> ()
      r = Constant <value = float[1, {4 * gates}, 4] {{{", ".join(["0.25"] * 16 * gates)}}}> ()
      y = {operator} <hidden_size = 4> (x, w, r, , , h)
    }}"""
    module = check_text(text, (floats(5, 2, 3), floats(1, 2, 4)), (floats(1, 7, 3), floats(1, 7, 4)))
    with pytest.raises(CallError, match="the first state at node .* must have as many rows as the inputs"):
        module(floats(5, 20, 3), floats(1, 900, 4))


@pytest.mark.parametrize(
    "body",
    [
        "w = Constant <value = float[1] {2.0}> () y = InstanceNormalization (x, w, w)",
        "w = Constant <value = float[2, 1, 1] {2.0, 3.0}> () y = Conv (x, w)",
        "w = Constant <value = float[1, 2, 1] {2.0, 3.0}> () y = ConvTranspose (x, w)",
        "w = Constant <value = float[1] {2.0}> () y = BatchNormalization (x, w, w, w, w)",
        "w = Constant <value = float[5, 1, 2] {1, 2, 3, 4, 5, 6, 7, 8, 9, 0}> () y = Concat <axis = 2> (x, w)",
    ],
)
def test_weights_tell_sizes_that_are_open(body):
    """As voices' segmentation has it: `C` channels, normalised by one scale, decide which branch is taken."""
    module = check_text(f"main (float[b, c, t] x) => (float[b, d, e] y) {{ {body} }}", (floats(5, 1, 2),), atol=1e-5)
    assert module.signature.args[0].dims[1] == 1


@pytest.mark.parametrize("options", ["", "<onesided = 1>", "<onesided = 0>"])
@pytest.mark.parametrize("sizes", ["b, t", "2, 400"])
def test_ranks_that_follow_from_spectra(options, sizes):
    """onnx says nothing of a spectrum of open length, and that a static one has both sides where it has one."""
    text = f"""main (float[{sizes}] x) => (float[m, k, f] y)
    {{
      hop = Constant <value = int64 {{16}}> ()
      length = Constant <value = int64 {{64}}> ()
      one = Constant <value = int64[1] {{1}}> ()
      three = Constant <value = int64[1] {{3}}> ()
      s = STFT {options} (x, hop, , length)
      p = ReduceL2 <keepdims = 0> (s, three)
      rows = Unsqueeze (p, one)
      all = Shape (rows)
      ch = Gather (all, one)
      mono = Equal (ch, one)
      y = If (mono) <
        then_branch = squeezed () => (float[d, e, g] a) {{ a = Squeeze (rows, one) }},
        else_branch = kept () => (float[d, h, e, g] b) {{ b = Identity (rows) }}>
    }}"""
    calls = [(floats(2, 400),)] if sizes == "2, 400" else [(floats(2, 400),), (floats(1, 70),)]
    check_text(text, *calls, atol=1e-4)


@pytest.mark.parametrize("shape", ["1", "1, 1"])
def test_a_condition_is_one_element_of_any_rank(shape):
    text = f"""main (float[{shape}] c, float[n] x) => (float[n] y)
    {{
      half = Constant <value = float {{0.5}}> ()
      go = Greater (c, half)
      y = If (go) <
        then_branch = yes () => (float[n] a) {{ a = Neg (x) }},
        else_branch = no () => (float[n] b) {{ b = Exp (x) }}>
    }}"""
    one = np.ones([1] * len(shape.split(",")), np.float32)
    check_text(text, (one, floats(4)), (0 * one, floats(3)))


def test_nodes_in_any_order():
    """Quantisers leave branches that capture what is computed further down."""
    text = """main (bool go, float[n] x) => (float[n] y)
    {
      y = If (go) <
        then_branch = yes () => (float[n] a) { a = Identity (late) },
        else_branch = no () => (float[n] b) { b = Add (late, x) }>
      late = Exp (early)
      early = Neg (x)
    }"""
    check_text(text, (True, floats(4)), (False, floats(3)))


def test_nodes_that_need_each_other_are_refused():
    text = "main (float[4] x) => (float[4] y) { y = Add (x, z) z = Neg (y) }"
    with pytest.raises(FrontendError, match="needs a result that depends on it"):
        eyas.compile(text_model(text))


def test_normalisation_of_groups_with_their_own_scales():
    """Until opset 21 scale and bias were those of groups, not of channels."""
    text = """main (float[b, 4, n] x) => (float[b, 4, n] z)
    {
      scale = Constant <value = float[2] {2.0, 3.0}> ()
      bias = Constant <value = float[2] {0.5, -1.0}> ()
      y = GroupNormalization <num_groups = 2> (x, scale, bias)
      z = Relu (y)
    }"""
    check_text(text, (floats(2, 4, 5),), (floats(1, 4, 9),), atol=1e-5)
