"""Operators of `com.microsoft` in ONNX files: products, activations and normalisations, against ONNX Runtime."""

from __future__ import annotations

import math

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper  # noqa: E402
from tests.tools.onnx_nodes import check_model, check_node, node_model, run_model  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import UnsupportedOpError  # noqa: E402

RNG = np.random.default_rng(5)
MS, FLOAT = "com.microsoft", TensorProto.FLOAT


def normal(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def check(op, inputs, results=1, outputs=None, **options):
    """`results` f32 results, or as `outputs` says."""
    outputs = outputs or {f"y{index}": FLOAT for index in range(results)}
    check_node(op, inputs, outputs, MS, **options)


@pytest.mark.parametrize("op, bias", [("Gelu", 0), ("BiasGelu", 1), ("FastGelu", 0), ("FastGelu", 1), ("QuickGelu", 0)])
def test_gelu(op, bias):
    x = normal(3, 5, 7) * 3
    x[0, 0, :3] = 0, 20, -20
    check(op, {"x": x} | ({"b": normal(7)} if bias else {}), dynamic=["x"])


def test_quick_gelu_with_a_factor():
    check("QuickGelu", {"x": normal(4, 9)}, alpha=0.5)


@pytest.mark.parametrize(
    "left, right, options",
    [
        ((3, 4), (4, 5), {"alpha": 0.25}),
        ((2, 3, 4), (2, 5, 4), {"transB": 1}),
        ((2, 4, 3), (4, 5), {"transA": 1, "alpha": 2.0}),
        ((4,), (5, 4), {"transB": 1}),
        ((3, 2, 4), (2, 4, 5), {"transBatchA": 1}),
        ((2, 3, 4), (5, 2, 4), {"transBatchB": 1, "transB": 1, "alpha": 0.5}),
    ],
)
def test_fused_mat_mul(left, right, options):
    check("FusedMatMul", {"a": normal(*left), "b": normal(*right)}, **options)


def test_transpose_mat_mul():
    check("TransposeMatMul", {"a": normal(4, 3), "b": normal(4, 5)}, transA=1, alpha=3.0)


@pytest.mark.parametrize(
    "activation, options",
    [("Relu", {}), ("LeakyRelu", {"activation_alpha": 0.2}), ("Tanh", {"transB": 1, "alpha": 0.5, "beta": 2.0})],
)
def test_fused_gemm(activation, options):
    b = normal(5, 4) if options.get("transB") else normal(4, 5)
    check("FusedGemm", {"a": normal(3, 4), "b": b, "c": normal(5)}, activation=activation, **options)


@pytest.mark.parametrize(
    "activation, parameters, add",
    [("Relu", [], True), ("LeakyRelu", [0.1], False), ("Clip", [-0.5, 1.0], False), ("HardSigmoid", [0.3, 0.4], False)],
)
def test_fused_conv(activation, parameters, add):
    inputs = {
        "x": normal(1, 4, 9, 7),
        "w": normal(6, 2, 3, 3),
        "b": normal(6),
        "z": normal(1, 6, 9, 7) if add else None,
    }
    options = {"activation_params": parameters} if parameters else {}
    check("FusedConv", inputs, group=2, pads=[1, 1, 1, 1], activation=activation, constants=["w", "b"], **options)


def test_conv_transpose_with_pads_as_an_input():
    inputs = {"x": normal(1, 3, 5, 5), "w": normal(3, 2, 3, 3), "pads": np.int64([1, 0, 1, 0]), "b": normal(2)}
    check("ConvTransposeWithDynamicPads", inputs, constants=["w", "pads"], strides=[2, 2])


@pytest.mark.parametrize("beta, bias, results", [(True, True, 4), (True, False, 1), (False, True, 1)])
def test_skip_layer_normalization(beta, bias, results):
    x = normal(2, 5, 16)
    inputs = {"x": x, "skip": normal(2, 5, 16) if results == 4 else normal(5, 16), "gamma": normal(16)}
    inputs |= {"beta": normal(16) if beta else None} | ({"bias": normal(16)} if bias else {})
    outputs = {"y": FLOAT, "": 0, " ": 0, "sum": FLOAT} if results == 4 else {"y": FLOAT}
    _check_with_gaps("SkipLayerNormalization", inputs, outputs, epsilon=1e-5)


@pytest.mark.parametrize("bias", [False, True])
def test_skip_simplified_layer_normalization(bias):
    inputs = {"x": normal(2, 5, 16), "skip": normal(2, 5, 16), "gamma": normal(16)} | (
        {"b": normal(16)} if bias else {}
    )
    outputs = {"y": FLOAT, "": 0, " ": 0, "sum": FLOAT} if bias else {"y": FLOAT}
    _check_with_gaps("SkipSimplifiedLayerNormalization", inputs, outputs, epsilon=1e-6)


def _check_with_gaps(op, inputs, outputs, **options):
    """Results without a name are left out."""
    model, given = node_model(op, inputs, outputs, MS, dynamic=["x"], **options)
    model.graph.node[0].output[:] = [name.strip() for name in outputs]
    for value in [value for value in model.graph.output if not value.name.strip()]:
        model.graph.output.remove(value)
    check_model(model, given)


@pytest.mark.parametrize("op, opset", [("SimplifiedLayerNormalization", 17), ("LayerNormalization", 12)])
def test_normalizations_in_the_domain_of_the_standard(op, opset):
    """ONNX Runtime writes them there, also in opsets that do not have them."""
    inputs = {"x": normal(2, 5, 16), "scale": normal(16)} | ({"b": normal(16)} if op == "LayerNormalization" else {})
    check_node(op, inputs, {"y": FLOAT}, opset=opset, axis=-1, epsilon=1e-5)


@pytest.mark.parametrize("full", [False, True])
def test_embed_layer_normalization(full):
    ids = RNG.integers(0, 30, (2, 6)).astype(np.int32)
    mask = np.int32([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]])
    inputs = {"ids": ids, "segments": RNG.integers(0, 2, (2, 6)).astype(np.int32) if full else None}
    inputs |= {"words": normal(30, 8), "places": normal(10, 8), "kinds": normal(2, 8) if full else None}
    inputs |= {"gamma": normal(8), "beta": normal(8), "mask": mask if full else None}
    outputs = {"y": FLOAT, "counts": TensorProto.INT32, **({"sum": FLOAT} if full else {})}
    if full:
        inputs["positions"] = RNG.integers(0, 10, (2, 6)).astype(np.int32)
    check("EmbedLayerNormalization", inputs, outputs=outputs, epsilon=1e-5, dynamic=["ids"])


def test_quantised_embeddings():
    table = lambda *shape: RNG.integers(0, 255, shape).astype(np.uint8)  # noqa: E731
    inputs = {"ids": RNG.integers(0, 30, (2, 6)).astype(np.int32), "segments": RNG.integers(0, 2, (2, 6), np.int32)}
    inputs |= {"words": table(30, 8), "places": table(10, 8), "kinds": table(2, 8), "gamma": table(8), "beta": table(8)}
    inputs |= {"mask": np.ones((2, 6), np.int32)} | {f"scale{k}": np.float32(0.02 + 0.01 * k) for k in range(5)}
    inputs |= {f"zero{k}": np.uint8(120 + k) for k in range(5)}
    constants = [name for name in inputs if name not in ("ids", "segments", "mask")]
    outputs = {"y": FLOAT, "counts": TensorProto.INT32}
    check("QEmbedLayerNormalization", inputs, outputs=outputs, constants=constants, epsilon=1e-5)


@pytest.mark.parametrize("last, skip", [(1, False), (0, False), (1, True)])
def test_group_norm(last, skip):
    """ONNX Runtime has no kernel for CPUs: compared with NumPy."""
    x, gamma, beta = normal(2, 3, 4, 6) if last else normal(2, 6, 3, 4), normal(6), normal(6)
    inputs = {"x": x, "gamma": gamma, "beta": beta}
    total = x
    if skip:
        inputs |= {"skip": normal(2, 6), "bias": normal(6)}
        total = x + inputs["skip"][:, None, None, :] + inputs["bias"]
    images = np.moveaxis(total, -1, 1) if last else total
    rows = images.reshape(2, 3, -1)
    rows = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + 1e-5)
    want = rows.reshape(images.shape) * gamma[:, None, None] + beta[:, None, None]
    want = want / (1 + np.exp(-want))
    want = np.moveaxis(want, 1, -1) if last else want
    outputs = {"y": FLOAT, "sum": FLOAT} if skip else {"y": FLOAT}
    op = "SkipGroupNorm" if skip else "GroupNorm"
    model, given = node_model(op, inputs, outputs, MS, groups=3, activation=1, channels_last=last)
    got = run_model(model, given)
    np.testing.assert_allclose(got[0], want, rtol=1e-4, atol=1e-5)
    if skip:
        np.testing.assert_allclose(got[1], total, rtol=1e-6, atol=1e-6)


def test_operators_without_a_kernel_for_cpus():
    """Compared with NumPy."""
    x, bias, skip = normal(2, 3, 8), normal(8), normal(2, 3, 8)
    erf = np.vectorize(math.erf)

    def run(op, inputs, **options):
        return run_model(*node_model(op, inputs, {"y": FLOAT}, MS, **options))[0]

    np.testing.assert_allclose(run("BiasAdd", {"x": x, "b": bias, "s": skip}), x + bias + skip, rtol=1e-6)
    left, right = np.split(x + bias, 2, -1)
    want = left * right * 0.5 * (1 + erf(right / np.sqrt(2)))
    np.testing.assert_allclose(run("BiasSplitGelu", {"x": x, "b": bias}), want, rtol=1e-4, atol=1e-5)
    powers = np.exp(x + skip[:1])
    got = run("BiasSoftmax", {"x": x, "b": skip[:1]}, axis=1, is_inner_broadcast=0)
    np.testing.assert_allclose(got, powers / powers.sum((1, 2), keepdims=True), rtol=1e-4, atol=1e-6)
    got = run("BiasDropout", {"x": x, "b": bias, "r": skip})
    np.testing.assert_allclose(got, x + bias + skip, rtol=1e-6)
    np.testing.assert_allclose(
        run("NhwcConv", {"x": normal(1, 5, 5, 3) * 0, "w": normal(4, 3, 3, 3), "b": bias[:4]}),
        np.broadcast_to(bias[:4], (1, 3, 3, 4)),
        rtol=1e-6,
    )


def test_older_opsets_are_raised_around_foreign_operators():
    """Split, ReduceMean and RoiAlign changed before the opset that the rules write."""
    nodes = [
        helper.make_node("Split", ["x"], ["a", "b"], axis=1),
        helper.make_node("FastGelu", ["a"], ["c"], domain=MS),
        helper.make_node("ReduceMean", ["c"], ["d"], axes=[-1], keepdims=0),
        helper.make_node("RoiAlign", ["b", "r", "i"], ["e"], output_height=2, output_width=2, sampling_ratio=2),
    ]
    x, rois, index = normal(1, 4, 6, 6), np.float32([[0, 0, 4, 5]]), np.int64([0])
    infos = [helper.make_tensor_value_info("x", FLOAT, x.shape), helper.make_tensor_value_info("r", FLOAT, [1, 4])]
    infos.append(helper.make_tensor_value_info("i", TensorProto.INT64, [1]))
    results = [helper.make_tensor_value_info(name, FLOAT, None) for name in "de"]
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid(MS, 1)]
    model = helper.make_model(helper.make_graph(nodes, "g", infos, results), opset_imports=opsets, ir_version=8)
    check_model(model, {"x": x, "r": rois, "i": index})


def test_refusals_name_what_is_missing():
    model, _ = node_model("FusedGemm", {"a": normal(2, 3), "b": normal(3, 2)}, {"y": FLOAT}, MS, activation="Wave")
    with pytest.raises(UnsupportedOpError, match=r"FusedGemm, com.microsoft.*its activation is Wave"):
        eyas.compile(model)
    model, _ = node_model("LongformerAttention", {"x": normal(2, 3)}, {"y": FLOAT}, MS)
    with pytest.raises(UnsupportedOpError, match="LongformerAttention, com.microsoft"):
        eyas.compile(model)
