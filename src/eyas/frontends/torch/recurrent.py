"""Recurrent layers as loops: `nn.LSTM`, `nn.GRU` and `nn.RNN` in all their forms.

torch's own decompositions write out every step, so that a layer of 300 steps is a program of thousands of ops. Here
what depends on the input alone, `x W_ih^T + b`, is one product over all steps, and a `scan` takes the steps: its body
is `h W_hh^T` and the gates. Products are kept as [gates, batch, hidden], so that each gate lies by itself in memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._higher_order_ops.scan import scan_op

aten = torch.ops.aten
Tensor = torch.Tensor
# One step: the input's share of the gates, the state, and the rest of the operands, to the new state (h first).
_Cell = Callable[[Tensor, Sequence[Tensor], Sequence[Tensor]], list[Tensor]]


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
    """Gates in torch's order: input, forget, cell, output."""
    layers = _Layers(params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
    rows, (h, c) = layers.run(x, list(hx), 4, _lstm_cell, folds_biases=True)
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
    """Gates in torch's order: reset, update, new; the reset gate also scales the hidden bias of the last."""
    layers = _Layers(params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
    rows, (h,) = layers.run(x, [hx], 3, _gru_cell, folds_biases=False)
    return rows, h


def rnn_tanh(x: Tensor, hx: Tensor, params: Sequence[Tensor], *options: Any) -> tuple[Tensor, Tensor]:
    """A plain layer whose activation is tanh."""
    rows, (h,) = _Layers(params, *options).run(x, [hx], 1, _rnn_cell(torch.tanh), folds_biases=True)
    return rows, h


def rnn_relu(x: Tensor, hx: Tensor, params: Sequence[Tensor], *options: Any) -> tuple[Tensor, Tensor]:
    """A plain layer whose activation is relu."""
    rows, (h,) = _Layers(params, *options).run(x, [hx], 1, _rnn_cell(torch.relu), folds_biases=True)
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

    def run(
        self, x: Tensor, states: list[Tensor], gates: int, cell: _Cell, folds_biases: bool
    ) -> tuple[Tensor, list[Tensor]]:
        """Rows of the last layer, and the last states of all layers and directions."""
        x = x.transpose(0, 1) if self.batch_first else x
        last: list[list[Tensor]] = [[] for _ in states]
        for layer in range(self.num_layers):
            runs = []
            for d in range(self.directions):
                place = layer * self.directions + d
                first = [state[place] for state in states]
                runs.append(self._direction(x, first, self.params[place], gates, cell, folds_biases, d == 1))
                for kept, state in zip(last, runs[-1][1:], strict=True):
                    kept.append(state)
            x = runs[0][0] if len(runs) == 1 else torch.cat([run[0] for run in runs], -1)
            if self.dropout and layer < self.num_layers - 1:
                x = torch.dropout(x, self.dropout, True)
        rows = x.transpose(0, 1) if self.batch_first else x
        return rows, [torch.stack(kept) for kept in last]

    def _direction(
        self,
        x: Tensor,
        states: list[Tensor],
        params: list[Tensor],
        gates: int,
        cell: _Cell,
        folds_biases: bool,
        backward: bool,
    ) -> list[Tensor]:
        w_ih, w_hh, *rest = params
        biases, projection = (rest[:2], rest[2:]) if self.has_biases else ([], rest)
        hidden = w_hh.shape[0] // gates
        x = x.flip(0) if backward else x
        given = torch.matmul(x, w_ih.t())
        if biases:
            given = given + (biases[0] + biases[1] if folds_biases else biases[0])
        # [steps, gates, batch, hidden]
        given = given.view(x.shape[0], x.shape[1], gates, hidden).transpose(1, 2)
        extra = [w_hh.view(gates, hidden, w_hh.shape[1]).transpose(1, 2)]
        extra += [] if folds_biases or not biases else [biases[1].view(gates, 1, hidden)]
        extra += [weight.t() for weight in projection]

        def step(*operands: Tensor) -> list[Tensor]:
            old, (now, *fixed) = operands[: len(states)], operands[len(states) :]
            new = cell(now, old, fixed)
            return [*new, new[0].clone()]

        # A scan may not return what it was given.
        first = [state.clone() for state in states]
        *last, rows = scan_op(step, first, [given.contiguous()], tuple(weight.contiguous() for weight in extra))
        return [rows.flip(0) if backward else rows, *last]


def _hidden_share(h: Tensor, weights: Tensor) -> Tensor:
    """h W_hh^T for each gate: [gates, batch, hidden]."""
    return torch.matmul(h, weights)


def _lstm_cell(x: Tensor, states: Sequence[Tensor], fixed: Sequence[Tensor]) -> list[Tensor]:
    h, c = states
    total = x + _hidden_share(h, fixed[0])
    inward, forget, outward = torch.sigmoid(total[0]), torch.sigmoid(total[1]), torch.sigmoid(total[3])
    cell = forget * c + inward * torch.tanh(total[2])
    new = outward * torch.tanh(cell)
    return [torch.matmul(new, fixed[1]) if len(fixed) > 1 else new, cell]


def _gru_cell(x: Tensor, states: Sequence[Tensor], fixed: Sequence[Tensor]) -> list[Tensor]:
    (h,) = states
    share = _hidden_share(h, fixed[0])
    share = share + fixed[1] if len(fixed) > 1 else share
    reset, update = torch.sigmoid(x[0] + share[0]), torch.sigmoid(x[1] + share[1])
    new = torch.tanh(x[2] + reset * share[2])
    return [new + update * (h - new)]


def _rnn_cell(activation: Callable[[Tensor], Tensor]) -> _Cell:
    def cell(x: Tensor, states: Sequence[Tensor], fixed: Sequence[Tensor]) -> list[Tensor]:
        return [activation((x + _hidden_share(states[0], fixed[0]))[0])]

    return cell
