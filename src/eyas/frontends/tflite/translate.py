"""Walks a TFLite graph and writes each operator as ONNX operators.

A rule is a function of a `Call`. How its tensors of integers are given to it is where it is registered:

- `MOVES`: as stored; what moves elements does not care. Inputs of another scale than the output's come rescaled.
- `REALS`: as the real numbers that they stand for; the result is rounded to the output's scale.
- `EXACT`: as stored; the rule knows about scales itself.
"""

from __future__ import annotations

import importlib
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from eyas.errors import FrontendError, UnsupportedOpError
from eyas.frontends.tensorflow.elementwise import OPERATORS
from eyas.frontends.tensorflow.graph import Complex, Graph, Value
from eyas.frontends.tflite.file import OperatorRecord, SubgraphRecord, TensorRecord, TfliteFile
from eyas.frontends.tflite.quantize import dequantize, is_quantized, quantize, requantize

if TYPE_CHECKING:
    from eyas.frontends.tflite.variables import Variables

Rule = Callable[["Call"], Any]
_ACTIVATIONS = {0: "NONE", 1: "RELU", 2: "RELU_N1_TO_1", 3: "RELU6", 4: "TANH", 5: "SIGN_BIT"}
_RULE_ERRORS = (
    *(IndexError, ValueError, TypeError, AttributeError, KeyError, ArithmeticError, AssertionError),
    struct.error,
)
_RULES = ("contractions", "moves", "reals", "control", "recurrent", "custom")


@dataclass(frozen=True)
class Call:
    """One operator with its operands; `types` and `results` are what the file says of inputs and outputs."""

    g: Graph
    record: OperatorRecord
    inputs: Sequence[Any]
    types: Sequence[TensorRecord | None]
    results: Sequence[TensorRecord]
    translation: Translation

    def input(self, index: int) -> Any:
        """An operand, or None when it is left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def type(self, index: int) -> TensorRecord:
        found = self.types[index] if index < len(self.types) else None
        if found is None:
            raise FrontendError(f"{self.g.description}: {self.g.where} lacks input {index}")
        return found

    def real(self, index: int) -> Any:
        """An operand as real numbers."""
        x, record = self.input(index), self.types[index] if index < len(self.types) else None
        return dequantize(self.g, x, record) if x is not None and record is not None and is_quantized(record) else x

    @property
    def result(self) -> TensorRecord:
        return self.results[0]

    @property
    def activation(self) -> str:
        return _ACTIVATIONS.get(self.record.get("FusedActivationFunction", 0), "unknown")

    def get(self, name: str, default: Any = 0) -> Any:
        return self.record.get(name, default)

    def refuse(self, why: str) -> UnsupportedOpError:
        return UnsupportedOpError(f"{self.g.description}: {self.g.where} is not supported: {why}")


@dataclass
class Translation:
    """A file that is becoming a graph."""

    file: TfliteFile
    g: Graph
    variables: Variables
    _rules: Mapping[str, tuple[str, Rule]] = field(default_factory=lambda: _load_rules())

    def run(self, index: int, given: Sequence[Any]) -> list[Any]:
        """The results of a subgraph for given inputs."""
        if not 0 <= index < len(self.file.subgraphs):
            raise FrontendError(f"{self.g.description}: {self.g.where} runs graph {index}, which is not there")
        graph = self.file.subgraphs[index]
        if len(given) != len(graph.inputs):
            raise FrontendError(
                f"{self.g.description}: graph {index} takes {len(graph.inputs)} inputs, not {len(given)}"
            )
        values: dict[int, Any] = dict(zip(graph.inputs, given, strict=True))
        outer = self.g.where
        for record in graph.operators:
            self.g.where = f"{record.name.removeprefix('CUSTOM:')}_{record.index}" + (f"_{index}" if index else "")
            self._operator(graph, record, values)
        self.g.where = outer
        return [self._tensor(graph, output, values) for output in graph.outputs]

    def _tensor(self, graph: SubgraphRecord, index: int, values: dict[int, Any]) -> Any:
        if index < 0:
            return None
        if index not in values:
            record = graph.tensors[index]
            if record.read is not None:
                array = record.read()
                values[index] = Complex(array.real, array.imag) if array.dtype.kind == "c" else array
            elif record.is_variable:
                values[index] = self.variables.of_tensor(self, record)
            elif 0 in record.shape:
                values[index] = np.zeros(record.shape, record.dtype)  # nothing has no bytes
            else:
                raise FrontendError(f"{self.g.description}: {self.g.where} takes '{record.name}', which nothing makes")
        return values[index]

    def _operator(self, graph: SubgraphRecord, record: OperatorRecord, values: dict[int, Any]) -> None:
        if record.name not in self._rules:
            raise UnsupportedOpError(f"{self.g.description}: {self.g.where} is not supported: {_unknown(record.name)}")
        kind, rule = self._rules[record.name]
        inputs = [self._tensor(graph, one, values) for one in record.inputs]
        types = [None if one < 0 else graph.tensors[one] for one in record.inputs]
        results = [graph.tensors[one] for one in record.outputs]
        call = Call(self.g, record, inputs, types, results, self)
        try:
            made = _apply(kind, rule, call)
        except _RULE_ERRORS as error:
            # A rule took for granted what the file does not keep.
            what = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise FrontendError(f"{self.g.description}: {self.g.where} is not valid: {what}") from error
        for output, declared, value in zip(record.outputs, results, made, strict=False):
            values[output] = _known_better(value, declared)


def _apply(kind: str, rule: Rule, call: Call) -> list[Any]:
    g = call.g
    if kind == "EXACT":
        found = rule(call)
        return found if isinstance(found, list) else [found]
    if kind == "MOVES":
        if any(isinstance(one, Complex) for one in call.inputs):
            return _each_part(rule, call)
        target = call.results[0]
        given = [
            requantize(g, one, type_, target) if type_ is not None and one is not None else one
            for one, type_ in zip(call.inputs, call.types, strict=True)
        ]
        found = rule(replace(call, inputs=given))
        return found if isinstance(found, list) else [found]
    found = rule(replace(call, inputs=[call.real(index) for index in range(len(call.inputs))]))
    found = found if isinstance(found, list) else [found]
    found[0] = activate(g, found[0], call.activation) if call.activation != "NONE" else found[0]
    return [
        quantize(g, one, record) if is_quantized(record) and _is_float(one) else one
        for one, record in zip(found, call.results, strict=False)
    ]


def _each_part(rule: Rule, call: Call) -> list[Any]:
    """A move of complex numbers moves both parts."""
    parts = []
    for part in ("real", "imaginary"):
        given = [getattr(one, part) if isinstance(one, Complex) else one for one in call.inputs]
        found = rule(replace(call, inputs=given))
        parts.append(found if isinstance(found, list) else [found])
    return [Complex(real, imaginary) for real, imaginary in zip(*parts, strict=True)]


def activate(g: Graph, x: Any, activation: str) -> Any:
    """A fused activation on real numbers."""
    names = {"RELU": "Relu", "RELU_N1_TO_1": "ReluN1To1", "RELU6": "Relu6", "TANH": "Tanh", "NONE": "Identity"}
    if activation not in names:
        raise UnsupportedOpError(f"{g.description}: {g.where} is not supported: it has activation {activation}")
    return OPERATORS[names[activation]](g, x)


def _is_float(x: Any) -> bool:
    return not isinstance(x, Complex) and np.dtype(x.dtype).kind == "f"


def _known_better(value: Any, record: TensorRecord) -> Any:
    """Sizes that inference did not find are those of the file, where it fixes them."""
    if not isinstance(value, Value) or value.is_static or len(record.signature) != value.ndim:
        return value
    dims = [
        dim if isinstance(dim, int) or size < 0 else size
        for dim, size in zip(value.dims, record.signature, strict=True)
    ]
    return Value(value.name, value.dtype, tuple(dims))


def _unknown(name: str) -> str:
    if name.startswith("CUSTOM:Flex"):
        return "it is an operator of TensorFlow ('Flex'), which the file leaves to TensorFlow itself"
    return "no translation for it"


def _load_rules() -> dict[str, tuple[str, Rule]]:
    """All rules by operator."""
    rules: dict[str, tuple[str, Rule]] = {}
    for name in _RULES:
        module = importlib.import_module(f"eyas.frontends.tflite.{name}")
        for kind in ("MOVES", "REALS", "EXACT"):
            rules |= {op: (kind, rule) for op, rule in getattr(module, kind, {}).items()}
    return rules
