"""Rules for RNN, GRU and LSTM in all their forms: directions, layouts, lengths, peepholes, activations, clipping.

What depends on the input alone, X times W with the biases, is one product outside; a `Loop` takes the steps. The
standard's equations are followed literally. Gates are in the standard's order: GRU z, r, h; LSTM i, o, f, c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper

from eyas.frontends.onnx.rewrite.rules import Builder, attribute, operand

_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16)
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_ACTIVATIONS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
# Operators of the same name, with the attributes that take alpha and beta.
_PLAIN = {
    "elu": ("Elu", ("alpha",)),
    "hardsigmoid": ("HardSigmoid", ("alpha", "beta")),
    "leakyrelu": ("LeakyRelu", ("alpha",)),
    "relu": ("Relu", ()),
    "sigmoid": ("Sigmoid", ()),
    "softplus": ("Softplus", ()),
    "softsign": ("Softsign", ()),
    "tanh": ("Tanh", ()),
    "thresholdedrelu": ("ThresholdedRelu", ("alpha",)),
}


@dataclass(frozen=True)
class _Sizes:
    """Numbers of steps and rows are vectors of one element where they are open; `row` names the latter in types."""

    steps: int | str
    batch: int | str
    row: int | str | None
    inputs: int
    hidden: int
    directions: int


class _Step:
    """Collects the nodes of a loop's body."""

    def __init__(self, b: Builder, prefix: str):
        self.b, self.prefix = b, prefix
        self.nodes: list[onnx.NodeProto] = []

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{self.prefix}_{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        return name


def recurrent(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Any RNN, GRU or LSTM of static weights whose activations are known."""
    x, (w, r) = b.dims_of(node.input[0]), (b.shape_of(name) for name in node.input[1:3])
    kind = b.type_of(node.input[0])
    activations = attribute(node, "activations", [])
    activations = [name.decode() if isinstance(name, bytes) else name for name in activations]
    if x is None or w is None or r is None or 0 in x or kind not in _FLOATS or b.opset < 10:
        return None
    if not all(name.lower() in _PLAIN for name in activations):
        return None
    by_batch = attribute(node, "layout", 0) == 1
    steps, batch = (b.size(node.input[0], axis) for axis in ((1, 0) if by_batch else (0, 1)))
    row = b.name_of(node.input[0], 0 if by_batch else 1)
    sizes = _Sizes(steps, batch, row, w[2], r[2], w[0])
    cell = _Cell(node, b, sizes, kind, activations or _ACTIVATIONS[node.op_type] * w[0], by_batch)
    return cell.build()


class _Cell:
    def __init__(
        self, node: onnx.NodeProto, b: Builder, sizes: _Sizes, kind: int, activations: Sequence[str], by_batch: bool
    ):
        self.node, self.b, self.sizes, self.kind, self.by_batch = node, b, sizes, kind, by_batch
        self.dtype = helper.tensor_dtype_to_np_dtype(kind)
        self.gates = _GATES[node.op_type]
        count = len(activations) // sizes.directions
        self.activations = [activations[d * count : (d + 1) * count] for d in range(sizes.directions)]

    def build(self) -> list[str]:
        b, sizes = self.b, self.sizes
        x = b.transpose(self.node.input[0], [1, 0, 2]) if self.by_batch else self.node.input[0]
        direction = attribute(self.node, "direction", "forward")
        runs = [self._run(x, d, direction == "reverse" or d == 1) for d in range(sizes.directions)]
        rows = b.add("Concat", *(run[0] for run in runs), axis=1)
        last = [b.add("Concat", *(run[1 + k] for run in runs), axis=0) for k in range(len(runs[0]) - 1)]
        if self.by_batch:
            rows = b.transpose(rows, [2, 0, 1, 3])
            last = [b.transpose(value, [1, 0, 2]) for value in last]
        return [value for name, value in zip(self.node.output, [rows, *last], strict=False) if name]

    def _run(self, x: str, d: int, backward: bool) -> list[str]:
        """One direction: [steps, 1, batch, hidden] rows and the last states as [1, batch, hidden]."""
        b, s = self.b, self.sizes
        step = _Step(b, f"{b.prefix}_direction_{d}")
        w = b.transpose(self._part(self.node.input[1], d, [self.gates * s.hidden, s.inputs]), [1, 0])
        projected = b.add("MatMul", x, w)
        recurrence = b.transpose(self._part(self.node.input[2], d, [self.gates * s.hidden, s.hidden]), [1, 0])
        bias = ""
        if operand(self.node, 3):
            both = self._part(self.node.input[3], d, [2, self.gates * s.hidden])
            projected = b.add("Add", projected, b.add("Gather", both, b.constant(0, np.int64), axis=0))
            bias = b.add("Gather", both, b.constant(1, np.int64), axis=0)
        states = [self._initial(place, d) for place in ((5, 6) if self.node.op_type == "LSTM" else (5,))]
        names = [f"{step.prefix}_state_{k}" for k in range(len(states))]
        index, condition = f"{step.prefix}_index", f"{step.prefix}_condition"
        steps = b.constant(s.steps, np.int64) if isinstance(s.steps, int) else b.reshape(s.steps, [])
        at = step.add("Sub", b.add("Sub", steps, b.constant(1, np.int64)), index) if backward else index
        given = step.add("Gather", projected, at, axis=0)
        new = getattr(self, f"_{self.node.op_type.lower()}")(step, d, given, names, recurrence, bias)
        row = new[0]
        if operand(self.node, 4):
            lengths = b.reshape(b.cast(operand(self.node, 4), onnx.TensorProto.INT64), [s.batch, 1])
            alive = step.add("Less", at, lengths)
            row = step.add("Where", alive, new[0], b.constant(0, self.dtype))
            new = [step.add("Where", alive, value, old) for value, old in zip(new, names, strict=True)]
        shape = [s.row, s.hidden]
        inputs = [helper.make_tensor_value_info(index, onnx.TensorProto.INT64, [])]
        inputs.append(helper.make_tensor_value_info(condition, onnx.TensorProto.BOOL, []))
        inputs += [helper.make_tensor_value_info(name, self.kind, shape) for name in names]
        outputs = [helper.make_tensor_value_info(condition, onnx.TensorProto.BOOL, [])]
        outputs += [helper.make_tensor_value_info(name, self.kind, shape) for name in [*new, row]]
        body = helper.make_graph(step.nodes, f"{step.prefix}_body", inputs, outputs)
        results = b.add_many("Loop", len(outputs) - 1, steps, "", *states, body=body)
        rows = results[-1]
        if backward:
            rows = b.add("Gather", rows, self._downwards(steps), axis=0)
        rows = b.reshape(rows, [s.steps, 1, s.batch, s.hidden])
        return [rows, *(b.reshape(name, [1, s.batch, s.hidden]) for name in results[:-1])]

    def _downwards(self, steps: str) -> str:
        """The numbers of all steps, the last one first."""
        b, known = self.b, self.sizes.steps
        if isinstance(known, int):
            return b.constant(np.arange(known)[::-1], np.int64)
        down = b.constant(-1, np.int64)
        return b.add("Range", b.add("Sub", steps, b.constant(1, np.int64)), down, down)

    def _part(self, name: str, d: int, shape: Sequence[int]) -> str:
        """The share of one direction."""
        chosen = self.b.add("Gather", name, self.b.constant(d, np.int64), axis=0)
        return self.b.reshape(chosen, shape)

    def _initial(self, place: int, d: int) -> str:
        shape = [self.sizes.batch, self.sizes.hidden]
        if not operand(self.node, place):
            if isinstance(self.sizes.batch, int):
                return self.b.constant(np.zeros([self.sizes.batch, self.sizes.hidden], self.dtype))
            zero = onnx.numpy_helper.from_array(np.zeros(1, self.dtype))
            return self.b.add("ConstantOfShape", self.b.vector(shape), value=zero)
        axis = 1 if self.by_batch else 0
        chosen = self.b.add("Gather", operand(self.node, place), self.b.constant(d, np.int64), axis=axis)
        return self.b.reshape(chosen, shape)

    def _activate(self, step: _Step, d: int, place: int, value: str) -> str:
        limit = attribute(self.node, "clip", None)
        if limit is not None:
            low, high = (step.b.constant(sign * limit, self.dtype) for sign in (-1, 1))
            value = step.add("Min", step.add("Max", value, low), high)
        op, parameters = _PLAIN[self.activations[d][place].lower()]
        options = {}
        for parameter in parameters:
            given = attribute(self.node, f"activation_{parameter}", [])
            index = d * len(self.activations[d]) + place
            if index < len(given):
                options[parameter] = given[index]
        return self._apply(step, op, value, **options)

    def _apply(self, step: _Step, op: str, value: str, **options: float) -> str:
        """An activation; those without a lowering of their own as arithmetic."""
        number = lambda given: step.b.constant(given, self.dtype)  # noqa: E731
        if op == "Softsign":
            return step.add("Div", value, step.add("Add", step.add("Abs", value), number(1)))
        if op == "HardSigmoid":
            scaled = step.add("Mul", value, number(options.get("alpha", 0.2)))
            scaled = step.add("Add", scaled, number(options.get("beta", 0.5)))
            return step.add("Min", step.add("Max", scaled, number(0)), number(1))
        return step.add(op, value, **options)

    def _gate(self, step: _Step, value: str, gate: int, axis: int = 1) -> str:
        first, last = gate * self.sizes.hidden, (gate + 1) * self.sizes.hidden
        ends = [self.b.constant([n], np.int64) for n in (first, last, axis)]
        return step.add("Slice", value, *ends)

    def _rnn(self, step: _Step, d: int, x: str, states: list[str], r: str, bias: str) -> list[str]:
        total = step.add("Add", x, self._product(step, states[0], r, bias))
        return [self._activate(step, d, 0, total)]

    def _gru(self, step: _Step, d: int, x: str, states: list[str], r: str, bias: str) -> list[str]:
        h, add = states[0], step.add
        product = self._product(step, h, r, bias)
        z, reset = (
            self._activate(step, d, 0, add("Add", self._gate(step, x, k), self._gate(step, product, k)))
            for k in range(2)
        )
        if attribute(self.node, "linear_before_reset", 0):
            hidden = add("Mul", reset, self._gate(step, product, 2))
        else:
            hidden = add("MatMul", add("Mul", reset, h), self._gate(step, r, 2))
            hidden = add("Add", hidden, self._gate(step, bias, 2, 0)) if bias else hidden
        hidden = self._activate(step, d, 1, add("Add", self._gate(step, x, 2), hidden))
        one = self.b.constant(1, self.dtype)
        return [add("Add", add("Mul", add("Sub", one, z), hidden), add("Mul", z, h))]

    def _lstm(self, step: _Step, d: int, x: str, states: list[str], r: str, bias: str) -> list[str]:
        (h, c), add = states, step.add
        total = add("Add", x, self._product(step, h, r, bias))
        parts = [self._gate(step, total, k) for k in range(4)]
        if operand(self.node, 7):
            peepholes = self._part(operand(self.node, 7), d, [1, 3 * self.sizes.hidden])
            peep = [self._gate(step, peepholes, k) for k in range(3)]
            parts[0] = add("Add", parts[0], add("Mul", peep[0], c))
            parts[2] = add("Add", parts[2], add("Mul", peep[2], c))
        inward = self._activate(step, d, 0, parts[0])
        if attribute(self.node, "input_forget", 0):
            forget = add("Sub", self.b.constant(1, self.dtype), inward)
        else:
            forget = self._activate(step, d, 0, parts[2])
        cell = add("Add", add("Mul", forget, c), add("Mul", inward, self._activate(step, d, 1, parts[3])))
        if operand(self.node, 7):
            parts[1] = add("Add", parts[1], add("Mul", peep[1], cell))
        outward = self._activate(step, d, 0, parts[1])
        op, _ = _PLAIN[self.activations[d][2].lower()]
        return [add("Mul", outward, self._apply(step, op, cell)), cell]

    def _product(self, step: _Step, h: str, r: str, bias: str) -> str:
        product = step.add("MatMul", h, r)
        return step.add("Add", product, bias) if bias else product
