"""Mixtures of experts in ONNX files (`com.microsoft`), against ONNX Runtime, or NumPy where that has no kernel."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import TensorProto  # noqa: E402
from tests.tools.onnx_nodes import check_node, node_model, run_model  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import UnsupportedOpError  # noqa: E402

RNG = np.random.default_rng(3)
MS, OUT = "com.microsoft", {"y": TensorProto.FLOAT}
EXPERTS, WIDTH, INNER = 5, 24, 14


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def experts(rows, factor=1, bias=True):
    """Inputs of MoE: rows, the router's scores, and two layers for each expert."""
    inputs = {"x": normal(*rows, WIDTH), "scores": normal(int(np.prod(rows)), EXPERTS)}
    inputs |= {"w1": normal(EXPERTS, factor * INNER, WIDTH), "b1": normal(EXPERTS, factor * INNER) if bias else None}
    return inputs | {"w2": normal(EXPERTS, WIDTH, INNER), "b2": normal(EXPERTS, WIDTH) if bias else None}


@pytest.mark.parametrize("kind", ["relu", "gelu", "silu", "identity"])
@pytest.mark.parametrize("normalize", [0, 1])
def test_mixture(kind, normalize):
    options = {"activation_type": kind, "normalize_routing_weights": normalize, "k": 2}
    check_node("MoE", experts((7,)), OUT, MS, dynamic=["x", "scores"], **options)


@pytest.mark.parametrize("rows", [(1,), (1, 1), (2, 3)])
def test_mixture_of_interleaved_halves(rows):
    options = {"activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 0.7, "swiglu_fusion": 1}
    inputs = experts(rows, factor=2, bias=False)
    check_node("MoE", inputs, OUT, MS, constants=["w1", "w2"], activation_type="swiglu", k=3, **options)


def in_numpy(inputs, k, inner):
    """`inner` gives an expert's inner row, of its number and the row that it gets."""
    x, scores, result = inputs["x"], inputs["scores"], np.zeros_like(inputs["x"])
    for row in range(len(x)):
        chosen = np.argsort(-scores[row], kind="stable")[:k]
        shares = np.exp(scores[row][chosen] - scores[row].max())
        for expert, share in zip(chosen, shares / shares.sum(), strict=True):
            result[row] += share * (inputs["w2"][expert] @ inner(expert, x[row]) + inputs["b2"][expert])
    return result


def silu(x):
    return x / (1 + np.exp(-x))


@pytest.mark.parametrize("kind, fusion", [("silu", 0), ("swiglu", 0), ("swiglu", 2)])
def test_mixture_with_two_inner_products(kind, fusion):
    """ONNX Runtime has these for GPUs only."""
    inputs = experts((6,), factor=2 if fusion else 1)
    if not fusion:
        inputs |= {"w3": normal(EXPERTS, INNER, WIDTH), "b3": normal(EXPERTS, INNER)}
    options = {"activation_type": kind, "swiglu_fusion": fusion, "k": 2, "normalize_routing_weights": 1}
    model, given = node_model("MoE", inputs, OUT, MS, **options)

    def inner(expert, row):
        first = inputs["w1"][expert] @ row + inputs["b1"][expert]
        if fusion:
            return silu(first[:INNER]) * first[INNER:]
        return silu(first) * (inputs["w3"][expert] @ row + inputs["b3"][expert])

    np.testing.assert_allclose(run_model(model, given)[0], in_numpy(inputs, 2, inner), rtol=1e-4, atol=1e-4)


def pack(numbers, bits):
    """Numbers of a few bits in bytes, low bits first; rows are filled up with zeros."""
    each = 8 // bits
    numbers = np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, -numbers.shape[-1] % each)])
    return sum((numbers[..., at::each] << np.uint8(bits * at) for at in range(each)), np.uint8(0)).astype(np.uint8)


def quantized(columns, rows, bits, block, zeros):
    """Weights, scales and zero points as QMoE has them."""
    blocks = (EXPERTS, columns, rows // block) if block else (EXPERTS, columns)
    weights = pack(RNG.integers(0, 1 << bits, (EXPERTS, columns, rows)).astype(np.uint8), bits)
    scales = (RNG.random(blocks) * 0.1 + 0.01).astype(np.float32)
    return weights, scales, pack(RNG.integers(0, 1 << bits, blocks).astype(np.uint8), bits) if zeros else None


@pytest.mark.parametrize(
    "bits, block, zeros", [(4, 0, False), (4, 16, True), (8, 0, True), (2, 32, False), (4, 0, True)]
)
@pytest.mark.parametrize("weights", ["softmax", "given", "normalized"])
def test_quantized_mixture(bits, block, zeros, weights):
    wide, inner = 64, 32
    first, last = quantized(2 * inner, wide, bits, block, zeros), quantized(wide, inner, bits, block, zeros)
    inputs = {"x": normal(5, wide), "scores": normal(5, EXPERTS)}
    inputs |= {"w1": first[0], "s1": first[1], "b1": normal(EXPERTS, 2 * inner)}
    inputs |= {"w2": last[0], "s2": last[1], "b2": None, "w3": None, "s3": None, "b3": None}
    inputs |= {"z1": first[2], "z2": last[2], "z3": None}
    inputs |= {"shares": None if weights == "softmax" else np.abs(normal(5, EXPERTS))}
    options = {"activation_type": "swiglu", "swiglu_fusion": 1, "k": 2, "weights_prepacked": 0}
    options |= {"expert_weight_bits": bits, "normalize_routing_weights": int(weights == "normalized")}
    constants = [name for name, value in inputs.items() if value is not None and name[0] in "wsz" and len(name) == 2]
    options |= {"block_size": block} if block else {}
    check_node("QMoE", inputs, OUT, MS, constants=constants, rtol=1e-3, atol=1e-2, **options)


@pytest.mark.parametrize("options, said", [({"activation_type": "tanh"}, "tanh"), ({"use_sparse_mixer": 1}, "sparse")])
def test_what_is_not_known_is_refused(options, said):
    model, _ = node_model("MoE", experts((3,)), OUT, MS, **options)
    with pytest.raises(UnsupportedOpError, match=said):
        eyas.compile(model)
