"""ONNX programs with types of 8 bits and fewer: signatures keep them, weights and moves are bytes, errors name them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import eyas
from eyas.errors import UnsupportedOpError
from eyas.frontends import import_model

FLOAT, F8, INT4 = TensorProto.FLOAT, TensorProto.FLOAT8E4M3FN, TensorProto.INT4
RNG = np.random.default_rng(5)


def model_of(nodes, inputs, outputs, weights=(), opset=23) -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node(op, ins, outs, name=f"{op}_node", **attributes) for op, ins, outs, attributes in nodes],
        "small",
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs],
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in outputs],
        list(weights),
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11)


def test_signature_and_moves():
    """What only moves elements moves bytes: two tensors are joined, cut, turned and padded."""
    model = model_of(
        [
            ("Concat", ["x", "x"], ["c"], {"axis": 0}),
            ("Transpose", ["c"], ["t"], {"perm": [1, 0]}),
            ("Reshape", ["t", "shape"], ["r"], {}),
            ("Pad", ["r", "pads"], ["y"], {}),
        ],
        [("x", F8, ["n", 3])],
        [("y", F8, None)],
        [
            numpy_helper.from_array(np.int64([3, 2, -1]), "shape"),
            numpy_helper.from_array(np.int64([0, 0, 1, 0, 0, 0]), "pads"),
        ],
    )
    assert str(import_model(model).signature).startswith("(x: f8e4m3fn[n, 3]) -> (y: f8e4m3fn[")
    x = RNG.standard_normal((4, 3)).astype(ml_dtypes.float8_e4m3fn)
    got = eyas.compile(model, device="local-sync")(x)
    want = np.pad(np.concatenate([x, x]).T.reshape(3, 2, -1).view(np.uint8), [(0, 0), (0, 0), (1, 0)])
    assert got.dtype == x.dtype and np.array_equal(got.view(np.uint8), want)


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("rows", [8, 600])
def test_weights_of_four_bits(rows: int, external: bool, tmp_path):
    """Small and large ones, in the file and beside it, where two share a byte."""
    weight = RNG.integers(-8, 8, (rows, 7)).astype(ml_dtypes.int4)
    model = model_of(
        [("DequantizeLinear", ["w", "s"], ["d"], {"axis": 1}), ("Mul", ["x", "d"], ["y"], {})],
        [("x", FLOAT, [rows, 7])],
        [("y", FLOAT, [rows, 7])],
        [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(np.arange(1, 8, dtype=np.float32), "s")],
    )
    path = tmp_path / "model.onnx"
    onnx.save_model(model, path, save_as_external_data=external, size_threshold=0, location="weights.bin")
    x = RNG.standard_normal((rows, 7)).astype(np.float32)
    want = x * (weight.astype(np.float32) * np.arange(1, 8, dtype=np.float32))
    # Saving beside the file takes the data out of the proto.
    for source in (path,) if external else (path, model):
        np.testing.assert_allclose(eyas.compile(source, device="local-sync")(x), want, rtol=1e-6)


def test_blocks_of_weights():
    """One scale for each 32 rows of a column, as weight-only quantisation of language models has it."""
    weight = RNG.integers(0, 16, (96, 24)).astype(ml_dtypes.uint4)
    scale = RNG.uniform(0.01, 0.1, (3, 24)).astype(np.float32)
    zero = RNG.integers(0, 16, (3, 24)).astype(ml_dtypes.uint4)
    model = model_of(
        [
            ("DequantizeLinear", ["w", "s", "z"], ["d"], {"axis": 0, "block_size": 32}),
            ("MatMul", ["x", "d"], ["y"], {}),
        ],
        [("x", FLOAT, ["n", 96])],
        [("y", FLOAT, ["n", 24])],
        [numpy_helper.from_array(array, name) for name, array in (("w", weight), ("s", scale), ("z", zero))],
    )
    x = RNG.standard_normal((5, 96)).astype(np.float32)
    shifted = weight.astype(np.float32) - np.repeat(zero.astype(np.float32), 32, axis=0)
    want = x @ (shifted * np.repeat(scale, 32, axis=0))
    np.testing.assert_allclose(eyas.compile(model, device="local-sync")(x), want, rtol=1e-4, atol=1e-4)


def test_casts_between_small_types_and_integers():
    model = model_of(
        [
            ("Cast", ["x"], ["a"], {"to": TensorProto.FLOAT8E5M2}),
            ("Cast", ["a"], ["b"], {"to": TensorProto.INT64}),
            ("Cast", ["b"], ["y"], {"to": INT4}),
            ("Cast", ["a"], ["z"], {"to": TensorProto.BOOL}),
        ],
        [("x", TensorProto.UINT8, [256])],
        [("y", INT4, [256]), ("z", TensorProto.BOOL, [256])],
    )
    x = np.arange(256, dtype=np.uint8)
    small = x.astype(ml_dtypes.float8_e5m2)
    y, z = eyas.compile(model, device="local-sync")(x)
    assert np.array_equal(
        y.astype(np.int8), small.astype(np.int64).astype(np.int8).astype(ml_dtypes.int4).astype(np.int8)
    )
    assert np.array_equal(z, small.astype(np.float32) != 0)


def test_inside_branches():
    """A branch casts to float8 and back."""

    def branch(name: str, to: int) -> onnx.GraphProto:
        nodes = [
            helper.make_node("Cast", ["x"], [f"{name}_small"], to=to, name=f"{name}_to"),
            helper.make_node("Cast", [f"{name}_small"], [f"{name}_out"], to=FLOAT, name=f"{name}_back"),
        ]
        return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(f"{name}_out", FLOAT, [6])])

    branches = {"then_branch": branch("then", F8), "else_branch": branch("else", TensorProto.FLOAT8E5M2)}
    model = model_of(
        [("If", ["c"], ["y"], branches)],
        [("c", TensorProto.BOOL, []), ("x", FLOAT, [6])],
        [("y", FLOAT, [6])],
    )
    x = np.float32([0.1, 1.3, -2.7, 100.3, 1000, 3])
    module = eyas.compile(model, device="local-sync")
    for chosen, dtype in ((True, ml_dtypes.float8_e4m3fn), (False, ml_dtypes.float8_e5m2)):
        limit = float(ml_dtypes.finfo(dtype).max)
        want = np.clip(x, -limit, limit).astype(dtype).astype(np.float32)
        np.testing.assert_array_equal(module(np.bool_(chosen), x), want)


def test_arithmetic_is_refused_with_the_type():
    model = model_of([("Relu", ["x"], ["y"], {})], [("x", F8, [4])], [("y", F8, [4])])
    with pytest.raises(
        UnsupportedOpError, match=r"node 'Relu_node' \(Relu, .*f8e4m3fn can be moved and converted only"
    ):
        import_model(model)
