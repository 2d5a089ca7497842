"""Unsigned and narrow integers in ONNX operators: one program for each element type, against NumPy.

Values lie on both sides of the sign bit, so that a program that takes them for signed numbers is wrong somewhere.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import defs, helper, numpy_helper

import eyas

OPSET = 23
TYPES = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "bool")
FLOATS = ("float32", "float64", "float16")


def values(dtype: np.dtype, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype == np.bool_:
        return rng.random((4, 6)) < 0.5
    limits = np.iinfo(dtype)
    edges = np.array([limits.min, limits.max, limits.max // 2, limits.max // 2 + 1, 0, 1], dtype)
    return np.where(rng.random((4, 6)) < 0.5, rng.choice(edges, (4, 6)), rng.integers(0, 100, (4, 6))).astype(dtype)


def positive(x: np.ndarray) -> np.ndarray:
    return np.where(x == 0, np.ones_like(x), x)


def quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Toward zero; exact for 64 bits too."""
    return (
        np.array(
            [
                int(abs(int(a)) // abs(int(b))) * (1 if (a >= 0) == (b >= 0) else -1)
                for a, b in zip(x.flat, y.flat, strict=True)
            ],
            object,
        )
        .reshape(x.shape)
        .astype(x.dtype)
    )


# Operator, attributes, and what it is of x, y (never 0) and small numbers z.
CASES = [
    ("Add", {}, lambda x, y, z: (x, y), lambda x, y: x + y),
    ("Sub", {}, lambda x, y, z: (x, y), lambda x, y: x - y),
    ("Mul", {}, lambda x, y, z: (x, y), lambda x, y: x * y),
    ("Div", {}, lambda x, y, z: (x, z), quotient),
    ("Mod", {}, lambda x, y, z: (x, z), np.remainder),
    ("Less", {}, lambda x, y, z: (x, y), np.less),
    ("LessOrEqual", {}, lambda x, y, z: (x, y), np.less_equal),
    ("Greater", {}, lambda x, y, z: (x, y), np.greater),
    ("GreaterOrEqual", {}, lambda x, y, z: (x, y), np.greater_equal),
    ("Equal", {}, lambda x, y, z: (x, y), np.equal),
    ("Max", {}, lambda x, y, z: (x, y), np.maximum),
    ("Min", {}, lambda x, y, z: (x, y), np.minimum),
    ("Abs", {}, lambda x, y, z: (x,), np.abs),
    ("Sign", {}, lambda x, y, z: (x,), np.sign),
    ("BitwiseAnd", {}, lambda x, y, z: (x, y), np.bitwise_and),
    ("BitwiseNot", {}, lambda x, y, z: (x,), np.bitwise_not),
    ("BitShift", {"direction": "RIGHT"}, lambda x, y, z: (x, z), np.right_shift),
    ("BitShift", {"direction": "LEFT"}, lambda x, y, z: (x, z), np.left_shift),
    ("ReduceMax", {"keepdims": 0}, lambda x, y, z: (x, np.array([1])), lambda x, axes: x.max(1)),
    ("ReduceMin", {"keepdims": 0}, lambda x, y, z: (x, np.array([1])), lambda x, axes: x.min(1)),
    ("ReduceSum", {"keepdims": 0}, lambda x, y, z: (x, np.array([1])), lambda x, axes: x.sum(1, dtype=x.dtype)),
    ("ReduceProd", {"keepdims": 0}, lambda x, y, z: (x, np.array([1])), lambda x, axes: x.prod(1, dtype=x.dtype)),
    ("ArgMax", {"axis": 1, "keepdims": 0}, lambda x, y, z: (x,), lambda x: x.argmax(1)),
    ("ArgMin", {"axis": 1, "keepdims": 0}, lambda x, y, z: (x,), lambda x: x.argmin(1)),
    ("TopK", {"axis": 1}, lambda x, y, z: (x, np.array([3])), lambda x, k: np.sort(x, 1)[:, ::-1][:, :3]),
    ("TopK", {"axis": 1, "largest": 0}, lambda x, y, z: (x, np.array([3])), lambda x, k: np.sort(x, 1)[:, :3]),
    ("Clip", {}, lambda x, y, z: (x, z[0, 0], y[0, 0]), lambda x, low, high: np.clip(x, low, high)),
    ("MatMul", {}, lambda x, y, z: (x, np.ascontiguousarray(y.T)), lambda x, y: x @ y),
    ("CumSum", {}, lambda x, y, z: (x, np.array(1)), lambda x, axis: np.cumsum(x, 1, dtype=x.dtype)),
    ("Where", {}, lambda x, y, z: (x > y, x, y), lambda c, x, y: np.where(c, x, y)),
    ("Transpose", {}, lambda x, y, z: (x,), np.transpose),
    ("Slice", {}, lambda x, y, z: (x, np.array([0]), np.array([0])), lambda x, low, high: x[:0]),
    ("Gather", {}, lambda x, y, z: (x, np.array([2, 0])), lambda x, at: x[at]),
    ("Concat", {"axis": 0}, lambda x, y, z: (x, y), lambda x, y: np.concatenate((x, y))),
    ("Pad", {}, lambda x, y, z: (x, np.array([1, 0, 0, 2])), lambda x, pads: np.pad(x, ((1, 0), (0, 2)))),
    ("MaxPool", {"kernel_shape": [2]}, lambda x, y, z: (x[None],), lambda x: np.maximum(x[..., 1:], x[..., :-1])),
    *(
        (
            "ScatterElements",
            {"axis": 1, "reduction": how},
            lambda x, y, z: (x, np.zeros((4, 2), np.int64), y[:, :2]),
            to,
        )
        for how, to in (
            ("max", lambda x, at, y: np.concatenate((np.maximum(x[:, :1], y.max(1, keepdims=True)), x[:, 1:]), 1)),
            ("min", lambda x, at, y: np.concatenate((np.minimum(x[:, :1], y.min(1, keepdims=True)), x[:, 1:]), 1)),
            ("add", lambda x, at, y: np.concatenate((x[:, :1] + y.sum(1, keepdims=True, dtype=y.dtype), x[:, 1:]), 1)),
        )
    ),
    *(("Cast", {"to": to}, lambda x, y, z: (x,), lambda x, to=to: x.astype(to)) for to in (*TYPES, *FLOATS)),
]


def takes(op: str, place: int, dtype: np.dtype) -> bool:
    """Whether ONNX itself has the op for the type."""
    kind = {"float32": "float", "float64": "double"}.get(str(dtype), str(dtype))
    return f"tensor({kind})" in defs.get_schema(op, OPSET).inputs[place].types


def program(cases, given):
    """One result for each case; what is not `x`, `y` or `z` is a constant."""
    nodes, initializers, outputs = [], [], []
    names = {id(array): name for name, array in given.items()}
    for number, (op, attrs, operands, _) in enumerate(cases):
        inputs = []
        for place, array in enumerate(operands(*given.values())):
            array = np.asarray(array)
            if id(array) not in names:
                initializers.append(numpy_helper.from_array(array, f"c{number}_{place}"))
            inputs.append(names.get(id(array), f"c{number}_{place}"))
        attrs = {
            name: helper.np_dtype_to_tensor_dtype(np.dtype(to)) if name == "to" else to for name, to in attrs.items()
        }
        results = [f"r{number}"] + [f"unused{number}"] * (op == "TopK")
        nodes.append(helper.make_node(op, inputs, results, name=f"{op}_{number}", **attrs))
        outputs.append(helper.make_empty_tensor_value_info(f"r{number}"))
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in given.items()
    ]
    graph = helper.make_graph(nodes, "signs", inputs, outputs, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=11)
    return onnx.shape_inference.infer_shapes(model)


def cases_of(dtype: np.dtype):
    return [case for case in CASES if takes(case[0], 1 if case[0] == "Where" else 0, dtype)]


@pytest.mark.parametrize("target", ["llvm-cpu", "vmvx"])
@pytest.mark.parametrize("name", TYPES)
def test_integers(name, target):
    dtype = np.dtype(name)
    given = (
        {"x": values(dtype, 1), "y": positive(values(dtype, 2)), "z": positive(values(dtype, 3) % 5)}
        if name != "bool"
        else {"x": values(dtype, 1), "y": values(dtype, 2), "z": values(dtype, 3)}
    )
    cases = cases_of(dtype)
    results = eyas.compile(program(cases, given), target=target)(*given.values())
    for (op, attrs, operands, function), got in zip(cases, results, strict=True):
        with np.errstate(all="ignore"):
            want = function(*operands(*given.values()))
        assert got.dtype == want.dtype, (op, attrs)
        np.testing.assert_array_equal(got, want, f"{op} {attrs}")


@pytest.mark.parametrize("source", FLOATS)
def test_floats_become_integers(source):
    x = np.array([0.0, 0.5, 1.9, 100.2, 127.0, 128.0, 200.7, 255.0] * 3, source)
    larger = np.array([60000.0, 40000.0, 2.0**15] * 4, source)
    nodes = [
        helper.make_node("Cast", ["x"], [f"r{to}"], to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))
        for to in TYPES[:4]
    ]
    nodes += [
        helper.make_node("Cast", ["l"], [f"l{to}"], to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))
        for to in TYPES[1:4]
    ]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(source))
    infos = [helper.make_tensor_value_info(name, kind, array.shape) for name, array in (("x", x), ("l", larger))]
    outputs = [helper.make_empty_tensor_value_info(node.output[0]) for node in nodes]
    model = helper.make_model(
        helper.make_graph(nodes, "casts", infos, outputs), opset_imports=[helper.make_opsetid("", OPSET)]
    )
    results = eyas.compile(onnx.shape_inference.infer_shapes(model))(x, larger)
    wanted = [x.astype(to) for to in TYPES[:4]] + [larger.astype(to) for to in TYPES[1:4]]
    for got, want in zip(results, wanted, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("count", [3, 700])  # as values in the program, and as a parameter
@pytest.mark.parametrize(
    "source,to", [("int16", "uint16"), ("int32", "uint32"), ("uint8", "int8"), ("int64", "uint64")]
)
def test_constants_of_another_sign(count, source, to):
    bounds = np.iinfo(source)
    values = np.random.default_rng(count).integers(bounds.min, bounds.max, count, source, endpoint=True)
    kinds = [helper.np_dtype_to_tensor_dtype(np.dtype(kind)) for kind in (source, to)]
    nodes = [helper.make_node("Cast", ["c"], ["y"], to=kinds[1]), helper.make_node("Neg", ["x"], ["z"])]
    outputs = [helper.make_tensor_value_info("y", kinds[1], [count]), helper.make_tensor_value_info("z", 1, [2])]
    graph = helper.make_graph(
        nodes,
        "cast",
        [helper.make_tensor_value_info("x", 1, [2])],
        outputs,
        [onnx.numpy_helper.from_array(values, "c")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    got, _ = eyas.compile(model)(np.ones(2, np.float32))
    np.testing.assert_array_equal(got, values.astype(to))
