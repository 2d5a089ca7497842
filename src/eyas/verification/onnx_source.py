"""ONNX as the reference: ONNX Runtime without its optimisations where it is installed, else onnx's own evaluator."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from eyas.errors import FrontendError
from eyas.frontends.onnx.file import open_model
from eyas.frontends.onnx.importer import import_model
from eyas.frontends.onnx.prepare import real_inputs
from eyas.verification.source import Layer, Reference, Source, Tapped


class OnnxSource(Source):
    """Layers are the graph's tensors, named as the graph names them. `dynamic_shapes` is what `eyas.compile` takes."""

    def __init__(self, model: Any, dynamic_shapes: Any = None) -> None:
        self._model, self._dynamic_shapes = model, dynamic_shapes
        graph = open_model(model).proto.graph
        nodes = [node for node in graph.node if node.op_type != "Constant"]
        made = {name: node for node in nodes for name in node.output if name}
        self.layers = tuple(_describe(name, node, made) for name, node in made.items())
        self._results = tuple(value.name if value.name in made else "" for value in graph.output)
        self._result_names = [value.name for value in graph.output]
        self._types: dict[str, onnx.ValueInfoProto] = {}

    @property
    def results(self) -> Sequence[str]:
        return self._results

    def program(self, taps: Sequence[str] = ()) -> Tapped:
        source = open_model(self._model)
        source.proto.graph.output.extend(self._types[tap] for tap in taps)
        program = import_model(source, (), {}, self._dynamic_shapes)
        positions = {name: index for index, name in enumerate(self._results) if name}
        return Tapped(program, positions | {tap: len(self._results) + index for index, tap in enumerate(taps)})

    def reference(self, inputs: Sequence[np.ndarray]) -> Reference:
        proto = self._load()
        names = [value.name for value in real_inputs(proto)]
        feeds = dict(zip(names, inputs, strict=True))
        values = self._run(proto, feeds)
        arrays = {name: value for name, value in values.items() if _is_tensor(value)}
        self._types = {name: _value_info(name, array) for name, array in arrays.items()}
        # Sequences, maps and strings are no layers that could be compared.
        self.layers = tuple(layer for layer in self.layers if layer.name in arrays)
        return Reference([values[name] for name in self._result_names], arrays)

    def recompute(
        self, layer: Layer, values: Mapping[str, np.ndarray], inputs: Sequence[np.ndarray]
    ) -> Iterator[tuple[str, np.ndarray]]:
        """onnx's own evaluator has exact integers; ONNX Runtime has more ops."""
        proto = self._load()
        known = dict(values) | dict(zip([value.name for value in real_inputs(proto)], inputs, strict=True))
        alone = _alone(proto, layer.name, known)
        for runner in (_run_evaluator, _run_onnxruntime):
            try:
                who, (value,) = runner(alone, [layer.name], {one.name: known[one.name] for one in alone.graph.input})
            except Exception:  # neither has a common root for what it raises; then it has no opinion
                continue
            yield who, np.asarray(value)

    def _load(self) -> onnx.ModelProto:
        if isinstance(self._model, onnx.ModelProto):
            proto = onnx.ModelProto()
            proto.CopyFrom(self._model)
            return proto
        return onnx.load(os.fspath(self._model))

    def _run(self, proto: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> dict[str, Any]:
        given = {value.name for value in proto.graph.output}
        proto.graph.output.extend(
            onnx.ValueInfoProto(name=layer.name) for layer in self.layers if layer.name not in given
        )
        wanted = [value.name for value in proto.graph.output]
        problems = []
        for runner in (_run_onnxruntime, _run_evaluator):
            try:
                self.framework, results = runner(proto, wanted, feeds)
                if problems and "No module" not in problems[0]:
                    self.framework += " (onnxruntime cannot run it)"
                return dict(zip(wanted, results, strict=True))
            except Exception as error:  # neither has a common root for what it raises
                problems.append(f"{runner.__name__.removeprefix('_run_')}: {str(error).splitlines()[0][:200]}")
        raise FrontendError(f"nothing here can run the model for reference: {'; '.join(problems)}")


def _run_onnxruntime(proto: onnx.ModelProto, wanted: list[str], feeds: Mapping[str, Any]) -> tuple[str, list[Any]]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), sess_options=options, providers=["CPUExecutionProvider"]
    )
    return f"onnxruntime {onnxruntime.__version__}", list(session.run(wanted, dict(feeds)))


def _run_evaluator(proto: onnx.ModelProto, wanted: list[str], feeds: Mapping[str, Any]) -> tuple[str, list[Any]]:
    from onnx.reference import ReferenceEvaluator

    return f"onnx {onnx.__version__}, reference evaluator", list(ReferenceEvaluator(proto).run(wanted, dict(feeds)))


def _alone(proto: onnx.ModelProto, name: str, known: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    """A model of the node that makes a value, and of the constants that it reads; what is known are its inputs."""
    graph = proto.graph
    node = next(one for one in graph.node if name in one.output)
    constants = [one for one in graph.node if one.op_type == "Constant" and set(one.output) & set(node.input)]
    alone = onnx.helper.make_graph(
        [*constants, node],
        "alone",
        [_value_info(one, known[one]) for one in dict.fromkeys(node.input) if one in known],
        [onnx.ValueInfoProto(name=name)],
        [one for one in graph.initializer if one.name in node.input and one.name not in known],
    )
    model = onnx.helper.make_model(alone, opset_imports=proto.opset_import, functions=proto.functions)
    model.ir_version = proto.ir_version
    return model


def _is_tensor(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind not in "OUS"


def _value_info(name: str, array: np.ndarray) -> onnx.ValueInfoProto:
    """The type that the value turned out to have; sizes are left to shape inference."""
    kind = numpy_helper.from_array(array.reshape(-1)[:0]).data_type
    return onnx.helper.make_tensor_value_info(name, kind, [None] * array.ndim)


def _describe(name: str, node: onnx.NodeProto, made: Mapping[str, onnx.NodeProto]) -> Layer:
    reads = list(node.input)
    for attribute in node.attribute:  # bodies of If, Loop and Scan read values of the graph around them
        for graph in [attribute.g, *attribute.graphs]:
            reads += [one for inner in graph.node for one in inner.input]
    place = f"node '{node.name}'" if node.name else ""
    return Layer(name, node.op_type, place, tuple(dict.fromkeys(one for one in reads if one in made)))
