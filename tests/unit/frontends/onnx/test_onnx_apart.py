"""Lowering in a child process gives the program that lowering here gives, or says that the child died."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, shape_inference
from torch_mlir.extras import onnx_importer

from eyas.errors import FrontendError
from eyas.frontends.contract import prepare_context
from eyas.frontends.onnx import apart
from eyas.frontends.onnx.apart import LoweringDied, lower_apart
from eyas.frontends.onnx.lowering import lower_graph
from eyas.ir import mlir


def imported(operator: str = "Tanh") -> mlir.Module:
    weights = numpy_helper.from_array(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3), "w")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, size]) for name, size in (("x", 4), ("y", 3))]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node(operator, ["p"], ["y"])]
    graph = helper.make_graph(nodes, "main", values[:1], values[1:], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    info = onnx_importer.ModelInfo(shape_inference.infer_shapes(model))
    module = info.create_module(context=prepare_context())
    onnx_importer.NodeImporter.define_function(info.main_graph, module.operation).import_all()
    return module


def test_the_program_is_the_same_with_its_locations():
    here = imported()
    lower_graph(here)
    there = lower_apart(imported())
    assert there.operation.get_asm(enable_debug_info=True) == here.operation.get_asm(enable_debug_info=True)
    assert "linalg.matmul" in str(there)


def test_what_cannot_be_lowered_fails_with_the_message_that_it_has_here():
    with pytest.raises(FrontendError) as here:
        lower_graph(imported("Det"))
    with pytest.raises(FrontendError) as there:
        lower_apart(imported("Det"))
    assert "lowering failed" in str(there.value) and str(there.value) == str(here.value)


def test_a_child_that_dies_is_said_and_replaced():
    lower_apart(imported())
    child = apart._only._child
    assert child is not None
    os.kill(child.process.pid, signal.SIGKILL)
    with pytest.raises(LoweringDied, match="aborts on it"):
        lower_apart(imported())
    assert "linalg.matmul" in str(lower_apart(imported()))
