"""Walks of one model share what follows from what has not changed, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from eyas.frontends.onnx.file import open_model  # noqa: E402
from eyas.frontends.onnx.symbolic.interpret import interpret  # noqa: E402
from eyas.frontends.onnx.symbolic.memory import Memory  # noqa: E402
from eyas.frontends.onnx.symbolic.values import Value, elements_of  # noqa: E402


@pytest.fixture
def model():
    """x[n, 4] -> Reshape to [2, n, 2] -> Relu."""
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"]), helper.make_node("Relu", ["y"], ["z"])]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
    z = helper.make_tensor_value_info("z", TensorProto.FLOAT, None)
    shape = numpy_helper.from_array(np.array([2, -1, 2]), "shape")
    return open_model(helper.make_model(helper.make_graph(nodes, "g", [x], [z], [shape]), ir_version=8))


@pytest.fixture
def asked(monkeypatch):
    """The nodes that onnx is asked about."""
    found, original = [], onnx.shape_inference.infer_node_outputs

    def infer(schema, node, *args, **kwargs):
        found.append(node.op_type)
        return original(schema, node, *args, **kwargs)

    monkeypatch.setattr(onnx.shape_inference, "infer_node_outputs", infer)
    return found


def _shape(model, name):
    return [str(size) for size in interpret(model).values[name].shape]


def test_a_second_walk_asks_nothing(model, asked):
    first = interpret(model)
    assert asked == ["Reshape", "Relu"]
    again = interpret(model)
    assert asked == ["Reshape", "Relu"]
    assert again.values == first.values and again.places == first.places


def test_a_changed_constant_is_seen(model):
    assert _shape(model, "z") == ["2", "n", "2"]
    model.proto.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.array([1, -1, 4]), "shape"))
    assert _shape(model, "z") == ["1", "n", "4"]


def test_a_changed_node_and_input_are_seen(model):
    assert _shape(model, "z") == ["2", "n", "2"]
    model.proto.graph.node[1].CopyFrom(helper.make_node("Transpose", ["y"], ["z"], perm=[1, 0, 2]))
    assert _shape(model, "z") == ["n", "2", "2"]
    model.proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 6
    assert _shape(model, "z") == ["6", "2", "2"]


def test_names_of_sizes_are_found_again(model):
    """A node that is known gives the places of the sizes that it named."""
    model.proto.graph.node.append(helper.make_node("NonZero", ["z"], ["at"]))
    places = interpret(model).places
    assert places["at_dim1"] == ("at", 1)
    assert interpret(model).places == places


@pytest.mark.parametrize("pair", [(1, True), (0.0, -0.0), (1, 1.0)])
def test_what_python_holds_for_equal_is_told_apart(pair):
    memory = Memory()
    one, other = (memory.same(Value(TensorProto.FLOAT, (1,), elements_of(np.array([value], object)))) for value in pair)
    assert one is not other
    assert memory.same(Value(TensorProto.FLOAT, (1,), elements_of(np.array([pair[0]], object)))) is one
