"""PyTorch as the reference: the exported graph, run eagerly node by node."""

from __future__ import annotations

import dataclasses
import operator
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.export.exported_program import ModuleCallEntry
from torch.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.utils import _pytree as pytree

from eyas.frontends.torch.exported import export_model
from eyas.frontends.torch.importer import import_exported
from eyas.frontends.torch.tensors import as_numpy
from eyas.frontends.torch.weights import place_of
from eyas.verification.source import Layer, Reference, Source, Tapped


class TorchSource(Source):
    """Layers are the nodes of the exported graph that make a tensor, before any decomposition of ours."""

    framework = f"torch {torch.__version__}, eager"

    def __init__(self, model: Any, args: Sequence[Any], kwargs: Mapping[str, Any], dynamic_shapes: Any) -> None:
        self._original, self._description, self._names, self._dynamic_shapes, self._training = export_model(
            model, args, kwargs, dynamic_shapes
        )
        self._exported = _functional(self._original)
        nodes = [node for node in self._exported.graph.nodes if _is_layer(node)]
        names = {node.name for node in nodes}
        self.layers = tuple(_describe(node, names) for node in nodes)
        outputs = [spec for spec in self._exported.graph_signature.output_specs if spec.kind == OutputKind.USER_OUTPUT]
        returned = [spec.arg.name for spec in outputs if not isinstance(spec.arg, ConstantArgument)]
        self._results = tuple(name if name in names else "" for name in returned)

    @property
    def results(self) -> Sequence[str]:
        return self._results

    def program(self, taps: Sequence[str] = ()) -> Tapped:
        program = import_exported(
            self._with_outputs(taps) if taps else self._original,
            self._description,
            self._names,
            self._dynamic_shapes,
            self._training,
        )
        positions = {name: index for index, name in enumerate(self._results) if name}
        return Tapped(program, positions | {tap: len(self._results) + index for index, tap in enumerate(taps)})

    def reference(self, inputs: Sequence[np.ndarray]) -> Reference:
        recorder = _Recorder(self._exported.graph_module, {layer.name for layer in self.layers})
        with torch.no_grad():
            outputs = recorder.run(*self._placeholders(inputs))
        specs = self._exported.graph_signature.output_specs
        results = [
            _array(value)
            for value, spec in zip(outputs, specs, strict=True)
            if spec.kind == OutputKind.USER_OUTPUT and not isinstance(spec.arg, ConstantArgument)
        ]
        return Reference(results, recorder.values)

    def recompute(
        self, layer: Layer, values: Mapping[str, np.ndarray], inputs: Sequence[np.ndarray]
    ) -> Iterator[tuple[str, np.ndarray]]:
        nodes = list(self._exported.graph.nodes)
        arguments = [node for node in nodes if node.op == "placeholder"]
        known: dict[torch.fx.Node, Any] = dict(zip(arguments, self._placeholders(inputs), strict=True))
        known |= {node: _tensor(values[node.name]) for node in nodes if node.name in values}
        wanted = next(node for node in nodes if node.name == layer.name)
        try:
            with torch.no_grad():
                value = _run_one(wanted, known, self._exported.graph_module)
        except (RuntimeError, TypeError, ValueError):  # a value that torch does not take back: no opinion
            return
        yield self.framework, _array(value)

    def _placeholders(self, inputs: Sequence[np.ndarray]) -> list[Any]:
        """Weights and inputs in the order of the graph."""
        exported, flat, values = self._exported, iter(inputs), []
        for spec in exported.graph_signature.input_specs:
            if spec.kind == InputKind.USER_INPUT:
                constant = isinstance(spec.arg, ConstantArgument)
                values.append(spec.arg.value if constant else self._input(spec.arg.name, next(flat)))
            else:
                assert spec.target is not None, "weights have names"
                kept = exported.state_dict if spec.target in exported.state_dict else exported.constants
                values.append(kept[spec.target])
        return values

    def _input(self, name: str, array: np.ndarray) -> Any:
        node = next(node for node in self._exported.graph.nodes if node.name == name)
        if not isinstance(node.meta.get("val"), torch.Tensor):
            return array.item()
        return _tensor(array)

    def _with_outputs(self, taps: Sequence[str]) -> torch.export.ExportedProgram:
        """The exported program with nodes as further results, after its own."""
        exported = self._exported
        graph, copies = torch.fx.Graph(), {}
        returned = graph.graph_copy(exported.graph, copies)
        for node, copy in copies.items():
            copy.name = node.name  # a copied 'input' is named 'input_1', after the built-in function
        by_name = {node.name: copy for node, copy in copies.items()}
        nodes = [by_name[tap] for tap in taps]
        graph.output((*_sequence(returned), *nodes))
        extra = [OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(node.name), None) for node in nodes]
        old = exported.graph_signature
        signature = ExportGraphSignature(list(old.input_specs), [*old.output_specs, *extra])
        whole = exported.module_call_graph[0]
        assert whole.signature is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shape = pytree.TreeSpec(tuple, None, [whole.signature.out_spec, *[pytree.LeafSpec()] * len(nodes)])
        call = ModuleCallEntry(whole.fqn, dataclasses.replace(whole.signature, out_spec=shape))
        return torch.export.ExportedProgram(
            torch.fx.GraphModule(exported.graph_module, graph),
            graph,
            signature,
            exported.state_dict,
            exported.range_constraints,
            [call, *exported.module_call_graph[1:]],
            exported.example_inputs,
            exported.constants,
            verifiers=exported.verifiers,
        )


def _functional(exported: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The same program free of mutation, so that a node has one value."""
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        program = exported.run_decompositions({})
    for node in program.graph.nodes:
        # Which reshapes are views hangs on strides, which decompositions of the ops before them may change.
        if node.target in (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default):
            node.target = torch.ops.aten.reshape.default
    return program


class _Recorder(torch.fx.Interpreter):
    """Runs a graph and keeps the tensors that named nodes make."""

    def __init__(self, module: torch.fx.GraphModule, names: set[str]) -> None:
        super().__init__(module, garbage_collect_values=False)
        self._wanted = names
        self.values: dict[str, np.ndarray] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        value = super().run_node(n)
        if n.name in self._wanted:
            self.values[n.name] = _array(value)
        return value


def _run_one(node: torch.fx.Node, known: dict[torch.fx.Node, Any], module: torch.fx.GraphModule) -> Any:
    """The value of a node from those that are known; what is between them and it is computed too."""
    interpreter = torch.fx.Interpreter(module, garbage_collect_values=False)
    interpreter.env = known
    stack = [node]
    while stack:
        missing = [one for one in stack[-1].all_input_nodes if one not in known]
        if missing:
            stack += missing
        else:
            last = stack.pop()
            known[last] = interpreter.run_node(last)
    return known[node]


def _tensor(array: np.ndarray) -> torch.Tensor:
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(np.ascontiguousarray(array).view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(np.array(array))


def _array(value: Any) -> np.ndarray:
    return as_numpy(value) if isinstance(value, torch.Tensor) else np.asarray(value)


def _sequence(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (tuple, list)) else (value,)


def _is_layer(node: torch.fx.Node) -> bool:
    """A tensor that an op makes; what is not initialised has no value to compare."""
    if node.op != "call_function" or not isinstance(node.meta.get("val"), torch.Tensor):
        return False
    return "aten.empty" not in str(node.target) and "aten.new_empty" not in str(node.target)


def _describe(node: torch.fx.Node, names: set[str]) -> Layer:
    name, frame = place_of(node)
    path = name.rpartition("/")[0]
    places = [path, f"{frame[0]}:{frame[1]}" if frame else ""]
    target = node.target
    if target is operator.getitem and isinstance(source := node.args[0], torch.fx.Node):
        target = source.target  # one of several results: the op is what made them
    reads: list[str] = []
    stack = list(node.all_input_nodes)
    while stack:
        source = stack.pop()
        if source.name in names:
            reads.append(source.name)
        elif source.op == "call_function":
            stack += source.all_input_nodes
    return Layer(node.name, str(target), ", ".join(filter(None, places)), tuple(dict.fromkeys(reads)))
