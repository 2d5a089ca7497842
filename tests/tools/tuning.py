"""Small models for the tuner, and its parts without child processes."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from eyas.cli.common import make_inputs
from eyas.pipelines.request import Request
from eyas.targets import Target
from eyas.tune.bench import PLAIN
from eyas.tune.dispatches import Dispatch, Model, open_model
from eyas.tune.making import Maker, Small
from eyas.tune.running import Operands, Runner


def product(rows: int = 12, depth: int = 37, columns: int = 40, open_rows: bool = False) -> onnx.ModelProto:
    """relu(x @ w + b), then a softmax."""
    random = np.random.default_rng(0)
    arrays = {
        "w": random.standard_normal((depth, columns)).astype(np.float32),
        "b": random.standard_normal(columns).astype(np.float32),
    }
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"], "product"),
        helper.make_node("Relu", ["h"], ["r"], "relu"),
        helper.make_node("Softmax", ["r"], ["y"], "softmax", axis=-1),
    ]
    first = "n" if open_rows else rows
    graph = helper.make_graph(
        nodes,
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [first, depth])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [first, columns])],
        [numpy_helper.from_array(value, name) for name, value in arrays.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def opened(model: onnx.ModelProto, target: str = "llvm-cpu", inputs: tuple[str, ...] = (), device: str = "") -> Model:
    request = Request(model, targets=(Target.parse(target),))
    return open_model(request, lambda signature: make_inputs(inputs, signature), device or None, runs=1)


def ready(dispatch: Dispatch, device, cold: bool = False) -> tuple[Runner, Small]:
    """A runner that knows what is right, and the program to compile candidates of."""
    operands = Operands.of(dispatch, cold)
    runner = Runner(device)
    runner.open(operands)
    plain = Small.of(dispatch, operands.copies, target=Target.parse("llvm-cpu"))
    runner.learn(Maker().make(plain, PLAIN))
    return runner, Small.of(dispatch, operands.copies)


def drawn(space, seed: int, *, near=None):
    """Points of a space by chance: what the solver does, without Z3."""
    random, seen = np.random.default_rng(seed), set()
    for _ in range(20_000):
        point = {knob.name: int(random.choice(knob.domain)) for knob in space.knobs}
        if near is not None:
            kept = random.random(len(point)) < 0.7
            point |= {name: near[name] for name, stays in zip(point, kept, strict=True) if stays and name in near}
        key = tuple(point.values())
        if key not in seen and space.problem(point) is None:
            seen.add(key)
            yield point
