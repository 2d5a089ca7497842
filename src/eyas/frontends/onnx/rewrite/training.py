"""Rules for the optimisers of the training domain: Adagrad, Adam and Momentum, for any number of tensors at once."""

from __future__ import annotations

import onnx

from eyas.frontends.onnx.rewrite.rules import Builder, attribute


class _Update:
    """Arithmetic in the tensors' type; the rate is a scalar of it, the count of updates an integer."""

    def __init__(self, node: onnx.NodeProto, b: Builder, states: int):
        self.node, self.b = node, b
        self.dtype = b.dtype_of(node.input[2])
        self.rate = b.reshape(node.input[0], [])
        self.steps = b.reshape(b.cast(node.input[1], b.type_of(node.input[2])), [])
        count = (len(node.input) - 2) // (2 + states)
        rest = list(node.input[2:])
        self.groups = [rest[k * count : (k + 1) * count] for k in range(2 + states)]

    def number(self, name: str, default: float) -> float:
        return attribute(self.node, name, default)

    def op(self, op: str, left: str | float, right: str | float) -> str:
        names = [value if isinstance(value, str) else self.b.constant(value, self.dtype) for value in (left, right)]
        return self.b.add(op, *names)

    def gradient(self, x: str, g: str) -> str:
        return self.op("Add", self.op("Mul", self.number("norm_coefficient", 0.0), x), g)

    def later(self, then: str, first: str | float) -> str:
        """A value that holds after the first update, and another for it."""
        other = first if isinstance(first, str) else self.b.constant(first, self.dtype)
        return self.b.add("Where", self.op("Greater", self.steps, 0.0), then, other)


def adagrad(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    u = _Update(node, b, states=1)
    rate = u.op("Div", u.rate, u.op("Add", u.op("Mul", u.steps, u.number("decay_factor", 0.0)), 1.0))
    values, squares = [], []
    for x, g, h in zip(*u.groups, strict=True):
        gradient = u.gradient(x, g)
        squares.append(u.op("Add", h, u.op("Mul", gradient, gradient)))
        scale = u.op("Add", b.add("Sqrt", squares[-1]), u.number("epsilon", 0.0))
        values.append(u.op("Sub", x, u.op("Div", u.op("Mul", rate, gradient), scale)))
    return [*values, *squares]


def momentum(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    u = _Update(node, b, states=1)
    alpha = u.number("alpha", 0.0)
    beta = u.later(b.constant(u.number("beta", 0.0), u.dtype), 1.0)
    values, velocities = [], []
    for x, g, v in zip(*u.groups, strict=True):
        gradient = u.gradient(x, g)
        velocities.append(u.op("Add", u.op("Mul", alpha, v), u.op("Mul", beta, gradient)))
        step = velocities[-1]
        if attribute(node, "mode", "standard") == "nesterov":
            step = u.op("Add", gradient, u.op("Mul", alpha, step))
        values.append(u.op("Sub", x, u.op("Mul", u.rate, step)))
    return [*values, *velocities]


def adam(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    u = _Update(node, b, states=2)
    alpha, beta = u.number("alpha", 0.9), u.number("beta", 0.999)
    # Both averages start at zero; the rate makes up for that.
    late = u.op(
        "Div",
        b.add("Sqrt", u.op("Sub", 1.0, u.op("Pow", beta, u.steps))),
        u.op("Sub", 1.0, u.op("Pow", alpha, u.steps)),
    )
    rate = u.later(u.op("Mul", u.rate, late), u.rate)
    values, means, squares = [], [], []
    for x, g, v, h in zip(*u.groups, strict=True):
        gradient = u.gradient(x, g)
        means.append(u.op("Add", u.op("Mul", alpha, v), u.op("Mul", 1 - alpha, gradient)))
        squares.append(u.op("Add", u.op("Mul", beta, h), u.op("Mul", 1 - beta, u.op("Mul", gradient, gradient))))
        scale = u.op("Add", b.add("Sqrt", squares[-1]), u.number("epsilon", 0.0))
        updated = u.op("Sub", x, u.op("Div", u.op("Mul", rate, means[-1]), scale))
        values.append(u.op("Mul", 1 - u.number("norm_coefficient_post", 0.0), updated))
    return [*values, *means, *squares]
