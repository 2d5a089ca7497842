"""Recurrent layers as loops: `nn.LSTM`, `nn.GRU` and `nn.RNN` in all their forms.

torch's own decompositions write out every step, so that a layer of 300 steps is a program of thousands of ops. Here
what depends on the input alone, `x W_ih^T + b`, is one product over all steps, and an operator of ours takes the steps
of one direction, which `convert-recurrences` makes a loop of. torch runs it too, for what is constant.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from eyas.passes.input.recurrent_cells import Cell

aten = torch.ops.aten
Tensor = torch.Tensor

_LIBRARY = torch.library.Library("eyas", "FRAGMENT")
_SIGMOID, _TANH, _RELU = ("sigmoid", 0.0, 0.0), ("tanh", 0.0, 0.0), ("relu", 0.0, 0.0)
# Gates in torch's order. The reset gate of a GRU scales the hidden bias of its candidate, too.
_LSTM = Cell("lstm", "ifco", (_SIGMOID, _TANH, _TANH), ())
_GRU = Cell("gru", "rzh", (_SIGMOID, _TANH), (), linear_before_reset=True)


def _define(name: str, states: int) -> None:
    _LIBRARY.define(
        f"{name}(Tensor given, Tensor weights, Tensor[] rest, str cell) -> ({', '.join(['Tensor'] * (1 + states))})"
    )

    def shapes(given: Tensor, weights: Tensor, rest: Sequence[Tensor], cell: str) -> tuple[Tensor, ...]:
        rows = given.new_empty((*given.shape[:2], rest[0].shape[-1]))
        return (rows, *(given.new_empty(state.shape) for state in rest[:states]))

    _LIBRARY.impl(name, _eager, "CPU")
    torch.library.register_fake(f"eyas::{name}", shapes, lib=_LIBRARY)


def _eager(given: Tensor, weights: Tensor, rest: Sequence[Tensor], cell: str) -> tuple[Tensor, ...]:
    """Step by step, for what is constant."""
    spec = Cell.from_text(cell)
    states = list(rest[: spec.states])
    extra = dict(zip(spec.operands, rest[spec.states :], strict=True))
    rows: list[Tensor] = []
    for at in reversed(range(len(given))) if spec.reverse else range(len(given)):
        states = _eager_step(spec, given[at], states, states[0] @ weights, extra)
        rows.append(states[0])
    rows = rows[::-1] if spec.reverse else rows
    stacked = torch.stack(rows) if rows else given.new_empty((0, *states[0].shape))
    return (stacked, *(state.clone() for state in states))


def _eager_step(spec: Cell, x: Tensor, states: list[Tensor], product: Tensor, extra: dict[str, Tensor]) -> list[Tensor]:
    gates, shares = (dict(zip(spec.gates, v.chunk(len(spec.gates), -1), strict=True)) for v in (x, product))
    if spec.kind == "rnn":
        return [getattr(torch, spec.activations[0][0])(gates["h"] + shares["h"])]
    if spec.kind == "gru":
        reset, update = (torch.sigmoid(gates[gate] + shares[gate]) for gate in "rz")
        new = torch.tanh(gates["h"] + reset * (shares["h"] + extra.get("bias", 0.0)))
        return [(1 - update) * new + update * states[0]]
    inward, forget, outward = (torch.sigmoid(gates[gate] + shares[gate]) for gate in "ifo")
    cell = forget * states[1] + inward * torch.tanh(gates["c"] + shares["c"])
    h = outward * torch.tanh(cell)
    return [h @ extra["projection"] if "projection" in extra else h, cell]


_define("recurrence", 1)
_define("recurrence_of_two", 2)


def decompositions() -> dict[Any, Callable[..., Any]]:
    """What replaces torch's unrolled forms. Packed sequences (`.data`) keep theirs."""
    return {
        aten.lstm.input: lstm,
        aten.gru.input: gru,
        aten.rnn_tanh.input: rnn_tanh,
        aten.rnn_relu.input: rnn_relu,
    }


@contextlib.contextmanager
def keep_layers() -> Iterator[None]:
    """While it lasts, tracing learns the shapes of recurrent layers without walking through their steps: torch's own
    way takes seconds for each hundred of them, and fixes how many there are."""
    kept = {op: dict(op.py_kernels) for op in decompositions()}
    try:
        for op, kernels in kept.items():
            op.py_kernels.update(dict.fromkeys(kernels, _shapes_of))
            op._dispatch_cache.clear()
        yield
    finally:
        for op, kernels in kept.items():
            op.py_kernels.update(kernels)
            op._dispatch_cache.clear()


def _shapes_of(x: Tensor, hx: Any, params: Sequence[Tensor], *options: Any) -> tuple[Tensor, ...]:
    """Empty tensors of the shapes that a layer gives: rows of what it returns, and its states."""
    states = [hx] if isinstance(hx, Tensor) else list(hx)
    directions = 2 if options[4] else 1
    rows = x.new_empty([*x.shape[:-1], directions * states[0].shape[-1]])
    return (rows, *(torch.empty_like(state) for state in states))


def lstm(
    x: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Two states: h and the cell's."""
    layers = _Layers(params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
    rows, (h, c) = layers.run(x, list(hx), _LSTM)
    return rows, h, c


def gru(
    x: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor]:
    """One state."""
    layers = _Layers(params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
    rows, (h,) = layers.run(x, [hx], _GRU)
    return rows, h


def rnn_tanh(x: Tensor, hx: Tensor, params: Sequence[Tensor], *options: Any) -> tuple[Tensor, Tensor]:
    """A plain layer whose activation is tanh."""
    rows, (h,) = _Layers(params, *options).run(x, [hx], Cell("rnn", "h", (_TANH,), ()))
    return rows, h


def rnn_relu(x: Tensor, hx: Tensor, params: Sequence[Tensor], *options: Any) -> tuple[Tensor, Tensor]:
    """A plain layer whose activation is relu."""
    rows, (h,) = _Layers(params, *options).run(x, [hx], Cell("rnn", "h", (_RELU,), ()))
    return rows, h


class _Layers:
    """Layers and directions of one module: which weights belong to which, and how results go together."""

    def __init__(
        self,
        params: Sequence[Tensor],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ):
        self.num_layers, self.directions = num_layers, 2 if bidirectional else 1
        self.has_biases, self.batch_first = has_biases, batch_first
        self.dropout = dropout if train else 0.0
        count = len(params) // (num_layers * self.directions)
        self.params = [list(params[i : i + count]) for i in range(0, len(params), count)]

    def run(self, x: Tensor, states: list[Tensor], cell: Cell) -> tuple[Tensor, list[Tensor]]:
        """Rows of the last layer, and the last states of all layers and directions."""
        x = x.transpose(0, 1) if self.batch_first else x
        last: list[list[Tensor]] = [[] for _ in states]
        for layer in range(self.num_layers):
            places = range(layer * self.directions, (layer + 1) * self.directions)
            # First all products, so that both directions can run at the same time.
            prepared = [
                self._prepare(x, self.params[place], replace(cell, reverse=place % self.directions == 1))
                for place in places
            ]
            runs = []
            for place, (given, weights, extra, text) in zip(places, prepared, strict=True):
                first = [state[place] for state in states]
                op = torch.ops.eyas.recurrence if len(first) == 1 else torch.ops.eyas.recurrence_of_two
                runs.append(op(given, weights, [*first, *extra], text))
                for kept, state in zip(last, runs[-1][1:], strict=True):
                    kept.append(state)
            x = runs[0][0] if len(runs) == 1 else torch.cat([run[0] for run in runs], -1)
            if self.dropout and layer < self.num_layers - 1:
                x = torch.dropout(x, self.dropout, True)
        rows = x.transpose(0, 1) if self.batch_first else x
        return rows, [torch.stack(kept) for kept in last]

    def _prepare(self, x: Tensor, params: list[Tensor], cell: Cell) -> tuple[Tensor, Tensor, list[Tensor], str]:
        """What one direction of a layer takes beside its states."""
        w_ih, w_hh, *rest = params
        biases, projection = (rest[:2], rest[2:]) if self.has_biases else ([], rest)
        extra = {"projection": projection[0].t()} if projection else {}
        given = torch.matmul(x, w_ih.t())
        if biases and cell.kind == "gru":
            # The candidate's share of the state has its bias before it is reset.
            reset_and_update, extra["bias"] = biases[1].split([2 * w_hh.shape[1], w_hh.shape[1]])
            biases = [biases[0], torch.cat([reset_and_update, torch.zeros_like(extra["bias"])])]
        if biases:
            given = given + (biases[0] + biases[1])
        return given, w_hh.t(), list(extra.values()), replace(cell, operands=tuple(extra)).as_text()
