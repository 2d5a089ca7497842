"""Attention operators of `com.microsoft` in ONNX files, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper  # noqa: E402
from tests.tools.onnx_nodes import check_node, node_model, reference, run_model  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import UnsupportedOpError  # noqa: E402

RNG = np.random.default_rng(9)
MS, FLOAT = "com.microsoft", TensorProto.FLOAT
BATCH, ROWS, HEADS, DEPTH = 2, 6, 3, 8
WIDTH = HEADS * DEPTH
# Heads of GroupQueryAttention: ONNX Runtime wants a multiple of 16 when it turns them.
LONG = 16


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def projections(**more):
    """Inputs of Attention."""
    inputs = {"x": normal(BATCH, ROWS, 16), "w": normal(16, 3 * WIDTH) * 0.2, "b": normal(3 * WIDTH)}
    return inputs | {"mask": None, "past": None, "added": None} | more


MASKS = {
    "none": None,
    "lengths": np.int32([4, 6]),
    "ends and starts": np.int32([5, 6, 0, 2]),
    "2d": np.int32([[1, 1, 1, 0, 0, 1], [1, 1, 1, 1, 1, 1]]),
    "3d": np.int32(RNG.integers(0, 2, (BATCH, ROWS, ROWS)) | np.eye(ROWS, dtype=np.int32)),
}


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("mask", MASKS)
def test_attention(mask, causal):
    check_node("Attention", projections(mask=MASKS[mask]), {"y": FLOAT}, MS, num_heads=HEADS, unidirectional=causal)


@pytest.mark.parametrize("options", [{"scale": 0.3}, {"qkv_hidden_sizes": [24, 24, 48]}, {"mask_filter_value": -3.0}])
def test_attention_options(options):
    inputs = projections(mask=MASKS["2d"], added=normal(1, HEADS, ROWS, ROWS))
    if "qkv_hidden_sizes" in options:
        inputs |= {"w": normal(16, 96) * 0.2, "b": normal(96)}
    check_node("Attention", inputs, {"y": FLOAT}, MS, num_heads=HEADS, constants=["w", "b"], **options)


@pytest.mark.parametrize("causal", [0, 1])
def test_attention_with_a_past(causal):
    inputs = projections(past=normal(2, BATCH, HEADS, 5, DEPTH), mask=np.ones((BATCH, ROWS + 5), np.int32))
    inputs["mask"][0, :3] = 0
    check_node("Attention", inputs, {"y": FLOAT, "present": FLOAT}, MS, num_heads=HEADS, unidirectional=causal)


def test_attention_of_a_varying_length():
    inputs = projections(mask=MASKS["2d"])
    model, given = node_model("Attention", inputs, {"y": FLOAT}, MS, num_heads=HEADS, unidirectional=1)
    for value, dims in zip(model.graph.input, (["n", "s", 16], None, None, ["n", "s"]), strict=True):
        if dims:
            value.type.CopyFrom(helper.make_tensor_type_proto(value.type.tensor_type.elem_type, dims))
    module = eyas.compile(model)
    for rows in (6, 4):
        cut = given | {"x": given["x"][:, :rows], "mask": given["mask"][:, :rows]}
        np.testing.assert_allclose(module(**cut), reference(model, cut)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("past", [False, True])
def test_quantised_attention(past):
    inputs = {"x": RNG.integers(0, 256, (BATCH, ROWS, 16)).astype(np.uint8), "b": normal(3 * WIDTH)}
    inputs = {"x": inputs["x"], "w": RNG.integers(-60, 60, (16, 3 * WIDTH)).astype(np.int8), "b": inputs["b"]}
    inputs |= {"x_scale": np.float32(0.02), "w_scale": (0.001 + RNG.random(3 * WIDTH) * 0.01).astype(np.float32)}
    inputs |= {"mask": MASKS["lengths"] if not past else None, "x_zero": np.uint8(120)}
    inputs |= {"w_zero": np.zeros(3 * WIDTH, np.int8)}
    outputs = {"y": FLOAT}
    if past:
        inputs["past"], outputs["present"] = normal(2, BATCH, HEADS, 5, DEPTH), FLOAT
    constants = ["w", "b", "x_scale", "w_scale", "x_zero", "w_zero"]
    check_node("QAttention", inputs, outputs, MS, num_heads=HEADS, unidirectional=int(past), constants=constants)


def heads(rows=ROWS, keys=ROWS, **more):
    """Inputs of MultiHeadAttention."""
    inputs = {"q": normal(BATCH, rows, WIDTH), "k": normal(BATCH, keys, WIDTH), "v": normal(BATCH, keys, WIDTH)}
    names = ("bias", "mask", "added", "past_key", "past_value")
    inputs |= {name: None for name in names} | more
    return inputs


@pytest.mark.parametrize(
    "more, options",
    [
        ({}, {}),
        ({"bias": normal(3 * WIDTH), "mask": MASKS["2d"]}, {"scale": 0.2}),
        ({"mask": MASKS["lengths"]}, {"unidirectional": 1}),
        ({"added": normal(1, HEADS, ROWS, ROWS)}, {}),
        ({"k": normal(BATCH, 9, WIDTH), "v": normal(BATCH, 9, WIDTH), "bias": normal(3 * WIDTH)}, {}),
        ({"v": normal(BATCH, ROWS, 2 * WIDTH)}, {}),
        ({"k": normal(BATCH, HEADS, 9, DEPTH), "v": normal(BATCH, HEADS, 9, DEPTH)}, {}),
    ],
)
def test_multi_head_attention(more, options):
    check_node("MultiHeadAttention", heads(**more), {"y": FLOAT}, MS, num_heads=HEADS, **options)


def test_multi_head_attention_packed():
    """ONNX Runtime has no kernel for CPUs: compared with the same that is not packed."""
    plain = heads()
    parts = [plain[name].reshape(BATCH, ROWS, HEADS, DEPTH) for name in "qkv"]
    want = run_model(*node_model("MultiHeadAttention", plain, {"y": FLOAT}, MS, num_heads=HEADS))[0]
    for inputs in ({"q": np.stack(parts, 3)}, {"q": plain["q"], "k": np.stack(parts[1:], 3)}):
        got = run_model(*node_model("MultiHeadAttention", inputs, {"y": FLOAT}, MS, num_heads=HEADS))[0]
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rows", [1, 4])
def test_multi_head_attention_with_a_past(rows):
    past = {"past_key": normal(BATCH, HEADS, 7, DEPTH), "past_value": normal(BATCH, HEADS, 7, DEPTH)}
    outputs = {"y": FLOAT, "present_key": FLOAT, "present_value": FLOAT}
    check_node("MultiHeadAttention", heads(rows, rows, **past), outputs, MS, num_heads=HEADS, unidirectional=1)


def test_decoder_masked_multi_head_attention():
    """The past is a buffer of ten places, of which seven are full."""
    inputs = {"q": normal(BATCH, 1, WIDTH), "k": normal(BATCH, 1, WIDTH), "v": normal(BATCH, 1, WIDTH), "mask": None}
    inputs |= {
        "added": None,
        "past_key": normal(BATCH, HEADS, 10, DEPTH),
        "past_value": normal(BATCH, HEADS, 10, DEPTH),
    }
    inputs["held"] = np.int32([7])
    outputs = {"y": FLOAT, "present_key": FLOAT, "present_value": FLOAT}
    options = {"num_heads": HEADS, "past_present_share_buffer": 1}
    model, given = node_model("DecoderMaskedMultiHeadAttention", inputs, outputs, MS, **options)
    for got, want in zip(run_model(model, given), reference(model, given), strict=True):
        if got.ndim == 4:
            got, want = got[:, :, :8], want[:, :, :8]
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def turns(depth=DEPTH, count=32):
    angles = np.arange(count)[:, None] * 0.3 ** np.arange(depth // 2)
    return {"cos": np.cos(angles).astype(np.float32), "sin": np.sin(angles).astype(np.float32)}


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize(
    "shape, ids, options",
    [
        ((BATCH, ROWS, WIDTH), np.int64([3]), {}),
        ((BATCH, ROWS, WIDTH), RNG.integers(0, 32, (BATCH, ROWS)), {}),
        ((BATCH, HEADS, ROWS, DEPTH), RNG.integers(0, 32, (BATCH, ROWS)), {}),
        ((BATCH, ROWS, WIDTH), np.int64([0]), {"rotary_embedding_dim": 4, "num_heads": HEADS}),
    ],
)
def test_rotary_embedding(shape, ids, options, interleaved):
    inputs = {"x": normal(*shape), "ids": ids, **turns(options.get("rotary_embedding_dim", DEPTH))}
    check_node("RotaryEmbedding", inputs, {"y": FLOAT}, MS, interleaved=interleaved, dynamic=["x"], **options)


def grouped(rows, before, totals, batch=BATCH, groups=2, num_heads=4, buffer=0, packed=False, **more):
    """Inputs of GroupQueryAttention: a buffer of the past has `buffer` rows more than the past."""
    q, k, v = (normal(batch, rows, count * LONG) for count in (num_heads, groups, groups))
    inputs = {"q": np.concatenate([q, k, v], -1) if packed else q, "k": None if packed else k}
    inputs["v"] = None if packed else v
    held = before + buffer
    pasts = [normal(batch, groups, held, LONG) if held else None for _ in range(2)]
    inputs |= {"past_key": pasts[0], "past_value": pasts[1], "lengths": np.int32(totals) - 1}
    inputs["total"] = np.int32([max(totals)]).reshape(())
    names = ("cos", "sin", "ids", "added", "sink")
    return inputs | {name: None for name in names} | more


@pytest.mark.parametrize(
    "arguments, options",
    [
        ({"rows": 6, "before": 0, "totals": [6, 6]}, {}),
        ({"rows": 6, "before": 0, "totals": [6, 6], "packed": True}, {"do_rotary": 1}),
        ({"rows": 1, "before": 7, "totals": [8, 8]}, {"do_rotary": 1}),
        ({"rows": 1, "before": 7, "totals": [5, 8]}, {"do_rotary": 1, "rotary_interleaved": 1}),
        ({"rows": 3, "before": 4, "totals": [7], "batch": 1}, {"do_rotary": 1}),
        ({"rows": 1, "before": 7, "totals": [8, 8], "num_heads": 2}, {"local_window_size": 3}),
        ({"rows": 6, "before": 0, "totals": [6, 6]}, {"softcap": 2.0, "scale": 0.5, "local_window_size": 2}),
        ({"rows": 1, "before": 7, "totals": [8, 8]}, {"smooth_softmax": 1}),
        ({"rows": 1, "before": 7, "totals": [8, 8], "added": normal(1, 4, 1, 8)}, {}),
    ],
)
def test_group_query_attention(arguments, options):
    arguments = dict(arguments)
    more = turns(LONG) if options.get("do_rotary") else {}
    added = arguments.pop("added", None)
    inputs = grouped(**arguments, **more, **({} if added is None else {"added": added}))
    counts = {"num_heads": arguments.get("num_heads", 4), "kv_num_heads": 2}
    outputs = {"y": FLOAT, "present_key": FLOAT, "present_value": FLOAT}
    constants = ["total"]
    model, given = node_model("GroupQueryAttention", inputs, outputs, MS, constants=constants, **counts, **options)
    got, want = run_model(model, given), reference(model, given)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-4, atol=1e-5)
    for one, other in zip(got[1:], want[1:], strict=True):
        assert one.shape == other.shape
        for entry, total in enumerate(arguments["totals"]):
            np.testing.assert_allclose(one[entry, :, :total], other[entry, :, :total], rtol=1e-4, atol=1e-5)


def test_group_query_attention_of_varying_lengths():
    """As exporters write it: how long the past is, is known when the model runs."""
    outputs = {"y": FLOAT, "present_key": FLOAT, "present_value": FLOAT}
    options = {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1}

    def inputs(rows, before):
        return grouped(rows, before, [rows + before], batch=1, **turns(LONG))

    model, _ = node_model("GroupQueryAttention", inputs(1, 7), outputs, MS, constants=["cos", "sin"], **options)
    dims = {"q": [1, "s", 64], "k": [1, "s", 32], "v": [1, "s", 32], "past_key": [1, 2, "p", 16]}
    dims["past_value"] = dims["past_key"]
    for value in model.graph.input:
        if value.name in dims:
            value.type.CopyFrom(helper.make_tensor_type_proto(FLOAT, dims[value.name]))
    module = eyas.compile(model)
    for rows, before in ((1, 7), (1, 12), (3, 4)):
        given = {name: value for name, value in inputs(rows, before).items() if value is not None}
        given = {name: given[name] for name in given if name not in ("cos", "sin")}
        for got, want in zip(module(**given), reference(model, given), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_half_precision():
    inputs = {name: value.astype(np.float16) for name, value in heads().items() if value is not None}
    model, given = node_model("MultiHeadAttention", inputs, {"y": TensorProto.FLOAT16}, MS, num_heads=HEADS)
    wide, exact = node_model(
        "MultiHeadAttention", {n: v.astype(np.float32) for n, v in inputs.items()}, {"y": FLOAT}, MS, num_heads=HEADS
    )
    np.testing.assert_allclose(run_model(model, given)[0], reference(wide, exact)[0], rtol=2e-3, atol=2e-3)


def test_refusals_name_what_is_missing():
    model, _ = node_model("Attention", projections(), {"y": FLOAT}, MS, num_heads=HEADS, do_rotary=1)
    with pytest.raises(UnsupportedOpError, match=r"Attention, com.microsoft.*its attribute do_rotary is 1"):
        eyas.compile(model)
