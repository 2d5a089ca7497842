"""Cells of recurrent layers as arithmetic on scalars: what one unit makes of its gates and its state."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from torch_mlir.dialects import arith, math

from eyas.ir import mlir

Value = mlir.Value


@dataclass(frozen=True)
class Cell:
    """What an `eyas.recurrence` computes; frontends write it as text.

    `kind` is lstm, gru or rnn. `gates` are letters in the order in which the columns of the weights have them: i, o, f
    and c of an LSTM, z (update), r (reset) and h of a GRU, h of an RNN. `activations` are (name, alpha, beta): of
    gates, of the candidate, and for an LSTM of the cell's value. `operands` name what comes after inputs and weights.
    """

    kind: str
    gates: str
    activations: tuple[tuple[str, float, float], ...]
    operands: tuple[str, ...]
    reverse: bool = False
    clip: float | None = None
    linear_before_reset: bool = False
    input_forget: bool = False

    def as_text(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_text(text: str) -> Cell:
        given = json.loads(text)
        given["activations"] = tuple((str(name), a, b) for name, a, b in given["activations"])
        given["operands"] = tuple(given["operands"])
        return Cell(**given)

    @property
    def states(self) -> int:
        return 2 if self.kind == "lstm" else 1


class Scalars:
    """Arithmetic on floats of one type at the current insertion point."""

    def __init__(self, cell: Cell, type_: mlir.Type):
        self.cell, self.type = cell, type_

    def number(self, value: float) -> Value:
        return arith.constant(self.type, float(value))

    def activate(self, place: int, value: Value, clips: bool = True) -> Value:
        """An activation of the cell; what goes into it is clipped first."""
        if clips and self.cell.clip is not None:
            value = arith.minimumf(arith.maximumf(value, self.number(-self.cell.clip)), self.number(self.cell.clip))
        name, alpha, beta = self.cell.activations[place]
        return ACTIVATIONS[name](self, value, alpha, beta)

    def one_minus(self, value: Value) -> Value:
        return arith.subf(self.number(1.0), value)


def _sigmoid(s: Scalars, x: Value, alpha: float, beta: float) -> Value:
    return arith.divf(s.number(1.0), arith.addf(s.number(1.0), math.exp(arith.negf(x))))


def _affine(s: Scalars, x: Value, alpha: float, beta: float) -> Value:
    return arith.addf(arith.mulf(x, s.number(alpha)), s.number(beta))


def _hard_sigmoid(s: Scalars, x: Value, alpha: float, beta: float) -> Value:
    return arith.minimumf(arith.maximumf(_affine(s, x, alpha, beta), s.number(0.0)), s.number(1.0))


def _where_positive(s: Scalars, x: Value, otherwise: Value) -> Value:
    return arith.select(arith.cmpf(arith.CmpFPredicate.OGE, x, s.number(0.0)), x, otherwise)


def _elu(s: Scalars, x: Value, alpha: float, beta: float) -> Value:
    return _where_positive(s, x, arith.mulf(math.expm1(x), s.number(alpha)))


def _leaky_relu(s: Scalars, x: Value, alpha: float, beta: float) -> Value:
    return _where_positive(s, x, arith.mulf(x, s.number(alpha)))


def _thresholded_relu(s: Scalars, x: Value, alpha: float, beta: float) -> Value:
    return arith.select(arith.cmpf(arith.CmpFPredicate.OGT, x, s.number(alpha)), x, s.number(0.0))


def _softplus(s: Scalars, x: Value, alpha: float, beta: float) -> Value:
    below = math.log1p(math.exp(arith.negf(math.absf(x))))
    return arith.addf(arith.maximumf(x, s.number(0.0)), below)


def _softsign(s: Scalars, x: Value, alpha: float, beta: float) -> Value:
    return arith.divf(x, arith.addf(s.number(1.0), math.absf(x)))


ACTIVATIONS: Mapping[str, Callable[[Scalars, Value, float, float], Value]] = {
    "affine": _affine,
    "elu": _elu,
    "hardsigmoid": _hard_sigmoid,
    "leakyrelu": _leaky_relu,
    "relu": lambda s, x, alpha, beta: arith.maximumf(x, s.number(0.0)),
    "scaledtanh": lambda s, x, alpha, beta: arith.mulf(s.number(alpha), math.tanh(arith.mulf(s.number(beta), x))),
    "sigmoid": _sigmoid,
    "softplus": _softplus,
    "softsign": _softsign,
    "tanh": lambda s, x, alpha, beta: math.tanh(x),
    "thresholdedrelu": _thresholded_relu,
}


def lstm(s: Scalars, gate: Mapping[str, Value], c: Value, peepholes: Mapping[str, Value]) -> tuple[Value, Value]:
    """The new h (before any projection) and c."""

    def peep(name: str, cell: Value) -> Value:
        return arith.addf(gate[name], arith.mulf(peepholes[name], cell)) if peepholes else gate[name]

    inward = s.activate(0, peep("i", c))
    forget = s.one_minus(inward) if s.cell.input_forget else s.activate(0, peep("f", c))
    cell = arith.addf(arith.mulf(forget, c), arith.mulf(inward, s.activate(1, gate["c"])))
    outward = s.activate(0, peep("o", cell))
    return arith.mulf(outward, s.activate(2, cell, clips=False)), cell


def gru(s: Scalars, update: Value, candidate: Value, h: Value) -> Value:
    """The new h of a unit whose candidate, before its activation, is known."""
    new = s.activate(1, candidate)
    z = s.activate(0, update)
    return arith.addf(arith.mulf(s.one_minus(z), new), arith.mulf(z, h))


# What activations take, and what the ONNX standard says where nothing is given; None where they do not take it.
_DEFAULTS: Mapping[str, tuple[float | None, float | None]] = {
    "affine": (1.0, 0.0),
    "elu": (1.0, None),
    "hardsigmoid": (0.2, 0.5),
    "leakyrelu": (0.01, None),
    "scaledtanh": (1.0, 1.0),
    "thresholdedrelu": (1.0, None),
}


def with_defaults(name: str, alphas: list[float], betas: list[float]) -> tuple[str, float, float]:
    """An activation by its ONNX name; numbers that it takes are removed from the lists."""
    alpha, beta = _DEFAULTS.get(name.lower(), (None, None))
    first = 0.0 if alpha is None else alphas.pop(0) if alphas else alpha
    return name.lower(), first, 0.0 if beta is None else betas.pop(0) if betas else beta
