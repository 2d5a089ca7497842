"""ONNX models reach the input contract; their weights stay in files; what cannot be imported is named."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from tests.tools.onnx_texts import text_model  # noqa: E402

from eyas.errors import FrontendError, UnsupportedOpError, UsageError  # noqa: E402
from eyas.frontends import import_model  # noqa: E402
from eyas.verification.oracle import evaluate  # noqa: E402

RNG = np.random.default_rng(7)


def model_of(nodes, inputs, outputs, weights=None, opset=20, domains=()):
    """A model from (op, inputs, outputs, attributes) tuples; inputs and outputs map names to (type, shape)."""
    made = [
        helper.make_node(op, ins, outs, name=f"{op.lower()}_node_{index}", **attributes)
        for index, (op, ins, outs, attributes) in enumerate(nodes)
    ]
    graph = helper.make_graph(
        made,
        "graph",
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


FLOAT = TensorProto.FLOAT
WEIGHT = RNG.standard_normal((64, 32)).astype(np.float32)


def mlp(batch="batch", **options):
    return model_of(
        [("Gemm", ["x", "w", "b"], ["h"], {}), ("Relu", ["h"], ["y"], {})],
        {"x": (FLOAT, [batch, 64])},
        {"y": (FLOAT, [batch, 32])},
        {"w": WEIGHT, "b": np.ones(32, np.float32)},
        **options,
    )


def run_onnx(model, **inputs):
    runtime = pytest.importorskip("onnxruntime")
    return runtime.InferenceSession(model.SerializeToString()).run(None, inputs)


def test_symbolic_batch():
    program = import_model(mlp())
    assert str(program.signature) == "(x: f32[batch, 64]) -> (y: f32[batch, 32])"
    assert list(program.parameters) == ["w"]
    for size in (1, 3):
        x = RNG.standard_normal((size, 64)).astype(np.float32)
        (expected,) = run_onnx(mlp(), x=x)
        np.testing.assert_allclose(evaluate(program, x)[0], expected, rtol=1e-5, atol=1e-5)


def squeezing(rank, shape=("batch", 1, 4)):
    """Squeezes whatever is 1, then computes with numbers."""
    return model_of(
        [("Squeeze", ["x"], ["s"], {}), ("Sigmoid", ["s"], ["t"], {}), ("Mul", ["t", "two"], ["y"], {})],
        {"x": (FLOAT, shape)},
        {"y": (FLOAT, [None] * rank)},
        {"two": np.float32(2)},
    )


@pytest.mark.parametrize(
    ("model", "signature"),
    [
        (squeezing(1), "(x: f32[1, 1, 4]) -> (y: f32[4])"),
        (squeezing(2), "(x: f32[batch, 1, 4]) -> (y: f32[batch, 4])"),
        (squeezing(0, ("batch", "more")), "(x: f32[1, 1]) -> (y: f32[])"),
        (
            model_of(
                [("GRU", ["x", "w", "r", "", "", "h"], ["", "y"], {"hidden_size": 2})],
                {"x": (FLOAT, ["steps", "batch", 3]), "h": (FLOAT, [1, 5, 2])},
                {"y": (FLOAT, [1, None, 2])},
                {"w": np.ones((1, 6, 3), np.float32), "r": np.ones((1, 6, 2), np.float32)},
            ),
            "(x: f32[steps, 5, 3], h: f32[1, 5, 2]) -> (y: f32[1, 5, 2])",
        ),
        (
            model_of(
                [("MatMul", ["x", "w"], ["y"], {})],
                {"x": (FLOAT, ["rows", None])},
                {"y": (FLOAT, ["rows", 32])},
                {"w": WEIGHT},
            ),
            "(x: f32[rows, 64]) -> (y: f32[rows, 32])",
        ),
    ],
)
def test_open_sizes_that_can_be_one_number_only(model, signature):
    assert str(import_model(model).signature) == signature


def test_convolution_matches_onnxruntime():
    model = model_of(
        [
            ("Conv", ["x", "w"], ["c"], {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
            ("MaxPool", ["c"], ["p"], {"kernel_shape": [2, 2], "strides": [2, 2]}),
            ("Flatten", ["p"], ["y"], {}),
        ],
        {"x": (FLOAT, [1, 3, 16, 16])},
        {"y": (FLOAT, [1, 256])},
        {"w": RNG.standard_normal((16, 3, 3, 3)).astype(np.float32)},
    )
    x = RNG.standard_normal((1, 3, 16, 16)).astype(np.float32)
    np.testing.assert_allclose(evaluate(import_model(model), x)[0], run_onnx(model, x=x)[0], rtol=1e-4, atol=1e-5)


def test_shapes_stay_constants():
    model = model_of(
        [("Reshape", ["x", "shape"], ["y"], {})],
        {"x": (FLOAT, [2, 6])},
        {"y": (FLOAT, [3, 4])},
        {"shape": np.array([3, 4], np.int64)},
    )
    program = import_model(model)
    assert not program.parameters
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    np.testing.assert_array_equal(evaluate(program, x)[0], x.reshape(3, 4))


def test_weights_of_a_file_are_mapped_not_parsed(tmp_path):
    onnx.save(mlp(), tmp_path / "mlp.onnx")
    program = import_model(tmp_path / "mlp.onnx")
    array = program.parameters["w"].array()
    np.testing.assert_array_equal(array, WEIGHT)
    base = array
    while isinstance(base, np.ndarray):
        base = base.base
    assert type(base.obj if isinstance(base, memoryview) else base).__name__ == "mmap"


def test_external_data(tmp_path):
    path = tmp_path / "mlp.onnx"
    onnx.save_model(mlp(), path, save_as_external_data=True, location="mlp.data", size_threshold=0)
    program = import_model(str(path))
    np.testing.assert_array_equal(program.parameters["w"].array(), WEIGHT)
    (tmp_path / "mlp.data").write_bytes((tmp_path / "mlp.data").read_bytes()[:100])
    fails_with(FrontendError, r"tensor '\w+' needs \d+ bytes at \d+, but 'mlp\.data' has 100", path)
    (tmp_path / "mlp.data").unlink()
    fails_with(FrontendError, r"'mlp\.data', which is not beside the model: '[^']*'$", path)


def test_external_data_outside_the_folder_is_refused(tmp_path):
    model = mlp()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../secret")
    onnx.save(model, tmp_path / "m.onnx")
    fails_with(FrontendError, r"outside the model's folder", tmp_path / "m.onnx")


def test_weights_in_constant_nodes_and_old_style_inputs():
    model = mlp()
    weight = model.graph.initializer[0]
    model.graph.node.insert(0, helper.make_node("Constant", [], ["w"], value=weight))
    del model.graph.initializer[0]
    program = import_model(model)
    np.testing.assert_array_equal(program.parameters["w"].array(), WEIGHT)

    model = mlp()
    model.graph.input.append(helper.make_tensor_value_info("w", FLOAT, [64, 32]))
    assert [argument.name for argument in import_model(model).signature.arguments] == ["x"]


def test_typed_data_fields():
    model = mlp()
    model.graph.initializer[0].CopyFrom(helper.make_tensor("w", FLOAT, [64, 32], WEIGHT.reshape(-1)))
    np.testing.assert_array_equal(import_model(model).parameters["w"].array(), WEIGHT)


def test_shapes_can_be_overridden():
    assert import_model(mlp(), dynamic_shapes={"batch": 4}).signature.arguments[0].dims == (4, 64)
    assert import_model(mlp(), dynamic_shapes={"x": [5, 64]}).signature.results[0].dims == (5, 32)
    assert import_model(mlp(), dynamic_shapes={"x": {0: "n"}}).signature.arguments[0].dims == ("n", 64)
    assert import_model(mlp(), np.ones((3, 64), np.float32)).signature.arguments[0].dims == (3, 64)
    fails_with(UsageError, r"'nope' is neither an input nor a symbolic dimension.*symbols: batch", mlp(), nope=None)
    with pytest.raises(UsageError, match="is 64 in the model and cannot become 65"):
        import_model(mlp(), dynamic_shapes={"x": [1, 65]})


def test_an_example_fixes_a_symbol_wherever_it_stands():
    nodes = [("Add", ["a", "b"], ["y"], {})]
    inputs = {"a": (FLOAT, ["n", 2]), "b": (FLOAT, ["n", "m"])}
    model = model_of(nodes, inputs, {"y": (FLOAT, ["n", 2])})
    program = import_model(model, np.ones((3, 2), np.float32))
    assert [argument.dims for argument in program.signature.arguments] == [(3, 2), (3, "m")]


def test_an_example_gives_an_input_its_rank():
    model = model_of([("Relu", ["x"], ["y"], {})], {"x": (FLOAT, None)}, {"y": (FLOAT, None)})
    assert import_model(model, np.ones((3, 2), np.float32)).signature.results[0].dims == (3, 2)
    assert import_model(model, dynamic_shapes={"x": ["n", 2]}).signature.results[0].dims == ("n", 2)
    message = r"'x' has an unknown rank.*--input x=NxNxf32, or .*dynamic_shapes=\{'x': \[N, N\]\}"
    fails_with(FrontendError, message, model)


def test_errors_say_which_sizes_are_open():
    nodes = [("Relu", ["z"], ["w"], {}), ("Reshape", ["x", "s"], ["y"], {})]
    inputs = {"x": (FLOAT, [2, "width"]), "s": (TensorProto.INT64, ["rank"]), "z": (FLOAT, ["other"])}
    model = model_of(nodes, inputs, {"y": (FLOAT, None), "w": (FLOAT, ["other"])})
    message = r"unknown rank; .*\(Reshape, .*dimension 1 \('width'\) of input 'x', dimension 0 \('rank'\) of input 's'"
    message += r".*--input x=2xNxf32 --input s=Nxi64,.*\{'x': \{1: N\}, 's': \{0: N\}\}"
    fails_with(FrontendError, message, model)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32, np.uint8, np.bool_], ids=lambda t: t.__name__)
def test_element_types(dtype):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    table = (RNG.standard_normal(2000) * 3).astype(dtype)
    model = model_of(
        [("Gather", ["t", "i"], ["y"], {})], {"i": (TensorProto.INT64, [3])}, {"y": (kind, [3])}, {"t": table}
    )
    program = import_model(model)
    held = np.int8 if dtype == np.uint8 else dtype  # bytes are held as their bits
    assert program.parameters["t"].array().dtype == held
    if dtype != np.float16:
        index = np.array([5, 0, 1999])
        np.testing.assert_array_equal(evaluate(program, index)[0], table[index])


def test_function_body_stands_in_for_an_op_without_lowering():
    model = model_of(
        [("MeanVarianceNormalization", ["x"], ["n"], {"axes": [1]}), ("Mish", ["n"], ["y"], {})],
        {"x": (FLOAT, [4, 8])},
        {"y": (FLOAT, [4, 8])},
    )
    x = RNG.standard_normal((4, 8)).astype(np.float32)
    np.testing.assert_allclose(evaluate(import_model(model), x)[0], run_onnx(model, x=x)[0], rtol=1e-4, atol=1e-5)


def test_quantization_along_an_axis():
    scale, zero = np.array([0.5, 0.25, 2.0], np.float32), np.array([1, 128, 200], np.uint8)
    byte = TensorProto.UINT8
    model = model_of(
        [
            ("QuantizeLinear", ["x", "s", "z"], ["q"], {"axis": 1}),
            ("DequantizeLinear", ["q", "s", "z"], ["y"], {"axis": 1}),
        ],
        {"x": (FLOAT, [2, 3, 4])},
        {"q": (byte, [2, 3, 4]), "y": (FLOAT, [2, 3, 4])},
        {"s": scale, "z": zero},
    )
    x = (RNG.standard_normal((2, 3, 4)) * 40).astype(np.float32)
    for got, want in zip(evaluate(import_model(model), x), run_onnx(model, x=x), strict=True):
        np.testing.assert_array_equal(got, want)


def test_tanh_gelu_is_exact():
    model = model_of([("Gelu", ["x"], ["y"], {"approximate": "tanh"})], {"x": (FLOAT, [64])}, {"y": (FLOAT, [64])})
    x = np.linspace(-4, 4, 64, dtype=np.float32)
    np.testing.assert_allclose(evaluate(import_model(model), x)[0], run_onnx(model, x=x)[0], rtol=1e-5, atol=2e-6)


def test_operators_with_wrong_lowerings_are_refused():
    model = model_of([("Det", ["x"], ["y"], {})], {"x": (FLOAT, [5, 5])}, {"y": (FLOAT, [])})
    fails_with(UnsupportedOpError, r"\(Det, .*no pivoting", model)


def test_small_determinants_need_no_pivot():
    model = model_of([("Det", ["x"], ["y"], {})], {"x": (FLOAT, [3, 3])}, {"y": (FLOAT, [])})
    x = np.array([[0, 2, 1], [3, 0, 4], [5, 6, 0]], np.float32)
    np.testing.assert_allclose(evaluate(import_model(model), x)[0], np.linalg.det(x), rtol=1e-5)


def test_shapes_computed_from_known_sizes_are_folded():
    nodes = [
        ("Shape", ["x"], ["s"], {}),
        ("Gather", ["s", "first"], ["n"], {}),
        ("Concat", ["n", "rest"], ["t"], {"axis": 0}),
        ("Reshape", ["x", "t"], ["y"], {}),
    ]
    weights = {"first": np.array([0]), "rest": np.array([-1])}
    program = import_model(model_of(nodes, {"x": (FLOAT, [4, 2, 3])}, {"y": (FLOAT, None)}, weights))
    assert str(program.signature) == "(x: f32[4, 2, 3]) -> (y: f32[4, 6])"


def test_slices_with_unknown_steps_are_refused():
    inputs = {"x": (FLOAT, [9]), "i": (TensorProto.INT64, [1])}
    model = model_of([("Slice", ["x", "i", "i", "i", "i"], ["y"], {})], inputs, {"y": (FLOAT, ["n"])})
    fails_with(UnsupportedOpError, r"\(Slice, .*steps are not known", model)


def test_model_local_functions_are_inlined():
    body = helper.make_function(
        "mine", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 20)]
    )
    model = model_of(
        [("Twice", ["x"], ["y"], {"domain": "mine"})], {"x": (FLOAT, [3])}, {"y": (FLOAT, [3])}, domains=["mine"]
    )
    model.functions.append(body)
    np.testing.assert_array_equal(evaluate(import_model(model), np.ones(3, np.float32))[0], [2, 2, 2])


@pytest.mark.parametrize("opset", [16, 20, 21])
@pytest.mark.parametrize("inner", [11, 16, 18, 21])
def test_model_local_functions_have_opsets_of_their_own(opset, inner):
    """Sums, means and halves, in the words of the function's opset; the version of its own domain means nothing."""
    node = helper.make_node
    axes = helper.make_tensor("axes", TensorProto.INT64, [1], [1])
    sum_takes, mean_takes = inner >= 13, inner >= 18
    steps = [
        node("Constant", [], ["axes"], value=axes),
        node("ReduceSum", ["a", "axes"], ["s"]) if sum_takes else node("ReduceSum", ["a"], ["s"], axes=[1]),
        node("ReduceMean", ["a", "axes"], ["m"]) if mean_takes else node("ReduceMean", ["a"], ["m"], axes=[1]),
        node("Sub", ["s", "m"], ["d"]),
        node("Mul", ["a", "d"], ["c"]),
        node("Split", ["c"], ["left", "right"], axis=1, **({"num_outputs": 2} if inner >= 18 else {})),
        node("Add", ["left", "right"], ["b"]),
    ]
    calls = [(x, y, {"domain": "mine"}) for x, y in ((["x"], ["h"]), (["h"], ["y"]))]
    model = model_of(
        [("Halves", *call) for call in calls],
        {"x": (FLOAT, [3, 8])},
        {"y": (FLOAT, [3, 2])},
        opset=opset,
        domains=["mine"],
    )
    model.functions.append(
        helper.make_function("mine", "Halves", ["a"], ["b"], steps, [helper.make_opsetid("", inner)])
    )
    model.opset_import[1].version = 3

    def halves(a):
        c = a * (a.sum(1, keepdims=True) - a.mean(1, keepdims=True))
        return c[:, : c.shape[1] // 2] + c[:, c.shape[1] // 2 :]

    x = np.arange(24, dtype=np.float32).reshape(3, 8) / 7 - 0.6
    np.testing.assert_allclose(evaluate(import_model(model), x)[0], halves(halves(x)), rtol=1e-5)


def test_functions_whose_words_are_not_known_are_refused_at_their_call():
    body = helper.make_function(
        "mine",
        "Sums",
        ["a"],
        ["b"],
        [helper.make_node("ReduceMean", ["a"], ["b"])],
        [helper.make_opsetid("", 13)],
        attributes=["axes"],
    )
    body.node[0].attribute.append(onnx.AttributeProto(name="axes", ref_attr_name="axes", type=onnx.AttributeProto.INTS))
    call = ("Sums", ["x"], ["y"], {"domain": "mine", "axes": [1]})
    model = model_of([call], {"x": (FLOAT, [2, 3])}, {"y": (FLOAT, [2, 1])}, domains=["mine"])
    model.functions.append(body)
    fails_with(UnsupportedOpError, r"\(Sums, mine", model)


def test_torch_is_not_imported():
    program = (
        "import sys; from eyas.frontends import import_model; import onnx; from onnx import helper as h;"
        "g = h.make_graph([h.make_node('Relu', ['x'], ['y'])], 'g', [h.make_tensor_value_info('x', 1, [2])],"
        " [h.make_tensor_value_info('y', 1, [2])]); import_model(h.make_model(g));"
        "assert 'torch' not in sys.modules and 'jax' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def fails_with(kind, pattern, model, **shapes):
    with pytest.raises(kind) as caught:
        import_model(model, dynamic_shapes=shapes or None)
    message = str(caught.value)
    assert re.search(pattern, message), message
    assert "\n" not in message


def test_unsupported_op_names_node_op_and_opset():
    model = model_of([("Det", ["x"], ["y"], {})], {"x": (FLOAT, [5, 5])}, {"y": (FLOAT, [])})
    fails_with(UnsupportedOpError, r"node 'det_node_0' \(Det, ai\.onnx opset 20\).*pivoting", model)


def test_unknown_operators_and_domains_are_refused():
    model = model_of([("Frobnicate", ["x"], ["y"], {})], {"x": (FLOAT, [4])}, {"y": (FLOAT, [4])})
    fails_with(UnsupportedOpError, r"\(Frobnicate, ai\.onnx opset 20\).*not a standard operator", model)
    model = model_of(
        [("FusedThing", ["x"], ["y"], {"domain": "com.acme"})],
        {"x": (FLOAT, [4])},
        {"y": (FLOAT, [4])},
        domains=["com.acme"],
    )
    fails_with(UnsupportedOpError, r"\(FusedThing, com\.acme opset 1\)", model)


def test_types_that_are_no_numbers_are_refused():
    strings = (TensorProto.STRING, [3])
    model = model_of([("Identity", ["x"], ["y"], {})], {"x": strings}, {"y": strings})
    fails_with(FrontendError, r"input 'x' has element type STRING", model)
    six = (TensorProto.FLOAT6E2M3, [4])
    model = model_of([("Cast", ["x"], ["y"], {"to": TensorProto.FLOAT6E2M3})], {"x": (FLOAT, [4])}, {"y": six})
    fails_with(FrontendError, r"FLOAT6E2M3", model)


def test_types_that_abort_the_importer_do_not_end_the_process():
    wide = (TensorProto.UINT64, [4])
    model = model_of([("Add", ["x", "x"], ["y"], {})], {"x": wide}, {"y": wide})
    try:
        program = import_model(model)
    except UnsupportedOpError as error:
        assert "aborts" in str(error)
    else:
        np.testing.assert_array_equal(evaluate(program, np.arange(4, dtype=np.uint64))[0], [0, 2, 4, 6])


def test_files_that_are_no_models(tmp_path):
    fails_with(FrontendError, "no such file", tmp_path / "none.onnx")
    for name, data in {
        "empty": b"",
        "garbage": b"garbage" * 999,
        "zeros": bytes(4096),
        "html": b"<html>" * 100,
    }.items():
        (tmp_path / f"{name}.onnx").write_bytes(data)
        fails_with(FrontendError, rf"{name}\.onnx' is (empty|not an ONNX model)", tmp_path / f"{name}.onnx")
    whole = mlp().SerializeToString()
    for size in (len(whole) // 3, len(whole) - 40):
        (tmp_path / "cut.onnx").write_bytes(whole[:size])
        fails_with(FrontendError, r"cut\.onnx' is not an ONNX model", tmp_path / "cut.onnx")


@pytest.mark.parametrize(
    "text",
    [
        "main (float[b, 4] x) => (seq(float[b, 2]) y) { y = SplitToSequence <axis = 1> (x) }",
        "main (string[b] x) => (int64[1] y) { y = Shape (x) }",
    ],
)
def test_sizes_are_not_offered_where_they_do_not_help(text):
    with pytest.raises(FrontendError) as error:
        import_model(text_model(text, 17))
    assert "may compile when" not in str(error.value)
