"""Rules for RNN, GRU and LSTM in all their forms: directions, layouts, lengths, peepholes, activations, clipping.

What depends on the input alone, X times W with the biases, is one product over all steps; an operator of ours takes the
steps of one direction (see `convert-recurrences`). Gates are in the standard's order: GRU z, r, h; LSTM i, o, f, c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper

from eyas.frontends.onnx.rewrite.rules import Builder, attribute, operand
from eyas.frontends.onnx.types import DOMAIN
from eyas.passes.input.recurrent_cells import ACTIVATIONS, Cell, with_defaults

_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16)
_GATES = {"RNN": "h", "GRU": "zrh", "LSTM": "iofc"}
_ACTIVATIONS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}


def recurrent(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Any RNN, GRU or LSTM of static weights whose activations are known."""
    x, (w, r) = b.dims_of(node.input[0]), (b.shape_of(name) for name in node.input[1:3])
    kind = b.type_of(node.input[0])
    if x is None or w is None or r is None or kind not in _FLOATS or b.opset < 7:
        return None
    given = [name.decode() if isinstance(name, bytes) else name for name in attribute(node, "activations", [])]
    activations = _activations(node, given or _ACTIVATIONS[node.op_type] * w[0])
    if activations is None:
        return None
    by_batch = attribute(node, "layout", 0) == 1
    steps, batch = (1, 0) if by_batch else (0, 1)
    sizes = _Sizes(b, node.input[0], steps, batch, w[2], r[2], w[0])
    weights = [_Weights(node, b, sizes, node.op_type, direction) for direction in range(w[0])]
    return _Layer(node, b, sizes, kind, activations, by_batch).build(weights)


def _activations(node: onnx.NodeProto, names: Sequence[str]) -> list[tuple[str, float, float]] | None:
    """All activations of a node; alphas and betas go to those that take them, in order."""
    if not all(name.lower() in ACTIVATIONS for name in names):
        return None
    alphas, betas = (list(attribute(node, f"activation_{which}", [])) for which in ("alpha", "beta"))
    return [with_defaults(name, alphas, betas) for name in names]


class _Sizes:
    """Numbers of steps and rows, which are vectors of one element where they are open, and how types call them."""

    def __init__(self, b: Builder, x: str, steps: int, batch: int, inputs: int, hidden: int, directions: int):
        self.steps, self.batch = b.size(x, steps), b.size(x, batch)
        self.steps_type, self.batch_type = b.name_of(x, steps), b.name_of(x, batch)
        self.inputs, self.hidden, self.directions = inputs, hidden, directions


@dataclass(frozen=True)
class _Weights:
    """The weights of one direction, transposed: from inputs to gates, and from states to gates."""

    node: onnx.NodeProto
    b: Builder
    sizes: _Sizes
    kind: str
    direction: int

    def part(self, place: int, shape: Sequence[int]) -> str:
        chosen = self.b.add("Gather", operand(self.node, place), self.b.constant(self.direction, np.int64), axis=0)
        return self.b.reshape(chosen, shape)

    def rows(self, value: str, first: int, last: int) -> str:
        """Some gates of a tensor whose first dimension is all of them."""
        hidden, b = self.sizes.hidden, self.b
        if b.opset < 10:
            return b.add("Slice", value, starts=[first * hidden], ends=[last * hidden], axes=[0])
        return b.add("Slice", value, *(b.constant([n], np.int64) for n in (first * hidden, last * hidden, 0)))

    @property
    def from_inputs(self) -> str:
        gates = len(_GATES[self.kind]) * self.sizes.hidden
        return self.b.transpose(self.part(1, [gates, self.sizes.inputs]), [1, 0])

    def from_states(self, first: int, last: int) -> str:
        gates, hidden = len(_GATES[self.kind]), self.sizes.hidden
        whole = self.part(2, [gates * hidden, hidden])
        return self.b.transpose(whole if last - first == gates else self.rows(whole, first, last), [1, 0])

    def biases(self) -> tuple[str, str]:
        """Of inputs and of states."""
        both = self.part(3, [2, len(_GATES[self.kind]) * self.sizes.hidden])
        first, second = (self.b.add("Gather", both, self.b.constant(n, np.int64), axis=0) for n in (0, 1))
        return first, second


class _Layer:
    def __init__(
        self,
        node: onnx.NodeProto,
        b: Builder,
        sizes: _Sizes,
        kind: int,
        activations: Sequence[tuple[str, float, float]],
        by_batch: bool,
    ):
        self.node, self.b, self.sizes, self.kind, self.by_batch = node, b, sizes, kind, by_batch
        self.dtype = helper.tensor_dtype_to_np_dtype(kind)
        count = len(activations) // sizes.directions
        self.activations = [tuple(activations[d * count : (d + 1) * count]) for d in range(sizes.directions)]
        self.resets_after = bool(attribute(node, "linear_before_reset", 0))

    def build(self, weights: Sequence[_Weights]) -> list[str]:
        b = self.b
        x = b.transpose(self.node.input[0], [1, 0, 2]) if self.by_batch else self.node.input[0]
        x = b.reshape(x, [-1, self.sizes.inputs])
        direction = attribute(self.node, "direction", "forward")
        # First all products, so that both directions can run at the same time.
        prepared = [self._prepare(x, one, direction == "reverse" or one.direction == 1) for one in weights]
        runs = [self._run(*one) for one in prepared]
        rows = b.add("Concat", *(run[0] for run in runs), axis=1)
        last = [b.add("Concat", *(run[1 + k] for run in runs), axis=0) for k in range(len(runs[0]) - 1)]
        if self.by_batch:
            rows = b.transpose(rows, [2, 0, 1, 3])
            last = [b.transpose(value, [1, 0, 2]) for value in last]
        return [value for name, value in zip(self.node.output, [rows, *last], strict=False) if name]

    def _prepare(self, x: str, weights: _Weights, backward: bool) -> tuple[list[str], Cell]:
        """The operands of one direction, and what it computes."""
        b, s, op = self.b, self.sizes, self.node.op_type
        gates = _GATES[op]
        given = b.add("MatMul", x, weights.from_inputs)
        operands: dict[str, str] = {}
        if operand(self.node, 3):
            of_inputs, of_states = weights.biases()
            if op == "GRU" and self.resets_after:
                # The candidate's share of the state has its bias before it is reset.
                operands["bias"] = weights.rows(of_states, 2, 3)
                zeros = b.constant(np.zeros(s.hidden, self.dtype))
                of_states = b.add("Concat", weights.rows(of_states, 0, 2), zeros, axis=0)
            given = b.add("Add", given, b.add("Add", of_inputs, of_states))
        given = b.reshape(given, [s.steps, s.batch, len(gates) * s.hidden])
        recurrence = weights.from_states(0, len(gates))
        if op == "GRU" and not self.resets_after:
            recurrence, operands["candidate"] = weights.from_states(0, 2), weights.from_states(2, 3)
        if operand(self.node, 4):
            lengths = b.cast(operand(self.node, 4), onnx.TensorProto.INT64)
            operands["lengths"] = b.reshape(lengths, [s.batch])
        if op == "LSTM" and operand(self.node, 7):
            operands["peepholes"] = weights.part(7, [3 * s.hidden])
        states = [self._initial(place, weights.direction) for place in ((5, 6) if op == "LSTM" else (5,))]
        cell = Cell(
            op.lower(),
            gates,
            self.activations[weights.direction],
            tuple(operands),
            backward,
            attribute(self.node, "clip", None),
            self.resets_after,
            bool(attribute(self.node, "input_forget", 0)),
        )
        return [given, recurrence, *states, *operands.values()], cell

    def _run(self, operands: list[str], cell: Cell) -> list[str]:
        """One direction: [steps, 1, batch, hidden] rows and the last states as [1, batch, hidden]."""
        b, s = self.b, self.sizes
        results = b.add_many("EyasRecurrence", 1 + cell.states, *operands, domain=DOMAIN, cell=cell.as_text())
        shapes = [[s.steps_type, s.batch_type, s.hidden], *[[s.batch_type, s.hidden]] * cell.states]
        for name, shape in zip(results, shapes, strict=True):
            b.declare_type(name, helper.make_tensor_type_proto(self.kind, shape))
        rows, *last = results
        rows = b.reshape(rows, [s.steps, 1, s.batch, s.hidden])
        return [rows, *(b.reshape(name, [1, s.batch, s.hidden]) for name in last)]

    def _initial(self, place: int, direction: int) -> str:
        shape = [self.sizes.batch, self.sizes.hidden]
        if not operand(self.node, place):
            if isinstance(self.sizes.batch, int):
                return self.b.constant(np.zeros([self.sizes.batch, self.sizes.hidden], self.dtype))
            zero = onnx.numpy_helper.from_array(np.zeros(1, self.dtype))
            return self.b.add("ConstantOfShape", self.b.vector(shape), value=zero)
        axis = 1 if self.by_batch else 0
        chosen = self.b.add("Gather", operand(self.node, place), self.b.constant(direction, np.int64), axis=axis)
        return self.b.reshape(chosen, shape)
