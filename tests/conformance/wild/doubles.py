"""What a quantised ONNX file says, in exact integers and doubles.

Engines compute in floats and round to bytes in between. Where a value is so near the middle of two bytes that the order
of a sum decides, two of them take different bytes, and later layers make much of it. Neither is wrong then; who is
nearer to the file's own arithmetic can be told only by doing that, node by node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper
from torch.nn import functional

Values = list[Any]
Attributes = Mapping[str, Any]


def run(path: Path, call: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Results of a call: doubles for floats, int64 for integers."""
    model = onnx.load(path)
    values = evaluate(model, call)
    return [values[output.name].numpy() for output in model.graph.output]


def evaluate(model: onnx.ModelProto, call: Mapping[str, np.ndarray]) -> dict[str, torch.Tensor]:
    """All values of the graph by name. An operator that is not known here raises `KeyError`."""
    values: dict[str, Any] = {"": None}
    bytes_of = {}
    for weight in model.graph.initializer:
        array = numpy_helper.to_array(weight)
        values[weight.name], bytes_of[weight.name] = _wide(array), array.dtype
    values.update({name: _wide(array) for name, array in call.items()})
    for node in model.graph.node:
        attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
        if node.op_type == "QuantizeLinear":
            attributes["dtype"] = bytes_of[node.input[2]]
        results = _OPERATORS[node.op_type]([values[name] for name in node.input], attributes)
        for name, value in zip(node.output, results if isinstance(results, tuple) else (results,), strict=False):
            values[name] = value
    return values


def _wide(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.asarray(array).astype(np.float64 if array.dtype.kind == "f" else np.int64))


def _along(value: torch.Tensor | None, x: torch.Tensor, axis: int) -> torch.Tensor | int:
    """A scale or zero point, one or one for each index of an axis, to be computed with `x`."""
    if value is None:
        return 0
    return value.reshape([-1 if dim == axis % x.dim() else 1 for dim in range(x.dim())]) if value.dim() else value


def _dequantized(inputs: Values, attributes: Attributes) -> torch.Tensor:
    x, scale, zero = (*inputs, None)[:3]
    axis = attributes.get("axis", 1)
    scale, zero = (one.reshape(()) if one is not None and one.numel() == 1 else one for one in (scale, zero))
    return (x - _along(zero, x, axis)).double() * _along(scale, x, axis)


def _quantized(inputs: Values, attributes: Attributes) -> torch.Tensor:
    x, scale, zero = inputs
    axis, limits = attributes.get("axis", 1), np.iinfo(attributes["dtype"])
    scale, zero = (one.reshape(()) if one.numel() == 1 else one for one in (scale, zero))
    # The quotient is a float in the standard, and so is a tie.
    quotient = (x / _along(scale, x, axis)).float()
    return (torch.round(quotient).long() + _along(zero, x, axis)).clamp(limits.min, limits.max)


def _dynamically_quantized(inputs: Values, _: Attributes) -> tuple[torch.Tensor, ...]:
    (x,) = inputs
    low, high = min(float(x.min()), 0.0), max(float(x.max()), 0.0)
    scale = float(np.float32((high - low) / 255)) or 1.0
    zero = int(np.clip(np.round(-low / scale), 0, 255))
    number = (torch.round((x / scale).float()).long() + zero).clamp(0, 255)
    return number, torch.tensor(scale, dtype=torch.float64), torch.tensor(zero)


def _padded(x: torch.Tensor, pads: list[int], value: float = 0) -> torch.Tensor:
    """Padded behind the channels. Convolutions are over doubles, which hold the integers that occur exactly."""
    count = len(pads) // 2
    return functional.pad(x, [pads[at] for dim in reversed(range(count)) for at in (dim, dim + count)], value=value)


def _convolved(inputs: Values, attributes: Attributes) -> torch.Tensor:
    x, weight, bias = (*inputs, None)[:3]
    rank = x.dim() - 2
    function = {1: functional.conv1d, 2: functional.conv2d}[rank]
    return function(
        _padded(x, attributes.get("pads", [0] * 2 * rank)),
        weight,
        bias,
        attributes.get("strides", [1] * rank),
        0,
        attributes.get("dilations", [1] * rank),
        attributes.get("group", 1),
    )


def _without_zeros(inputs: Values, axis: int) -> Values:
    x, weight, x_zero, weight_zero = (*inputs, None, None)[:4]
    if weight_zero is not None and weight_zero.numel() == 1:
        weight_zero = weight_zero.reshape(())
    return [(x - (0 if x_zero is None else x_zero)).double(), (weight - _along(weight_zero, weight, axis)).double()]


def _pooled(inputs: Values, attributes: Attributes) -> torch.Tensor:
    padded = _padded(inputs[0].double(), attributes.get("pads", [0] * 4), -np.inf)
    return functional.max_pool2d(padded, attributes["kernel_shape"], attributes["strides"]).to(inputs[0].dtype)


def _normalized(inputs: Values, attributes: Attributes) -> torch.Tensor:
    x, scale, bias, mean, variance = inputs
    scale = scale / (variance + attributes.get("epsilon", 1e-5)).sqrt()
    return (x - _along(mean, x, 1)) * _along(scale, x, 1) + _along(bias, x, 1)


def _instances(inputs: Values, attributes: Attributes) -> torch.Tensor:
    """Each channel of each row by its own statistics; `functional.instance_norm` refuses channels of one element."""
    x, scale, bias = inputs
    dims = tuple(range(2, x.dim()))
    centered = x - x.mean(dims, keepdim=True)
    deviation = (centered.square().mean(dims, keepdim=True) + attributes.get("epsilon", 1e-5)).sqrt()
    return centered / deviation * _along(scale, x, 1) + _along(bias, x, 1)


def _over(inputs: Values, attributes: Attributes) -> dict[str, Any]:
    """The dimensions of a reduction, as torch names them."""
    axes = attributes["axes"] if "axes" in attributes else inputs[1].tolist() if len(inputs) > 1 else None
    return {"dim": range(inputs[0].dim()) if axes is None else axes, "keepdim": bool(attributes.get("keepdims", 1))}


def _reshaped(inputs: Values, _: Attributes) -> torch.Tensor:
    x, shape = inputs
    return x.reshape([x.shape[dim] if size == 0 else size for dim, size in enumerate(shape.tolist())])


def _sliced(inputs: Values, _: Attributes) -> torch.Tensor:
    x, starts, ends = (one.numpy() for one in inputs[:3])
    axes = inputs[3].tolist() if len(inputs) > 3 else range(len(starts))
    steps = inputs[4].tolist() if len(inputs) > 4 else [1] * len(starts)
    where = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        where[axis] = slice(start, end, step)
    return torch.from_numpy(x[tuple(where)].copy())


def _resized(inputs: Values, attributes: Attributes) -> torch.Tensor:
    """Nearest neighbours with whole factors, which is the same by all conventions."""
    x, _, scales, sizes = (*inputs, None)[:4]
    assert attributes["mode"] == b"nearest"
    for dim, size in enumerate((torch.tensor(x.shape) * scales).tolist() if sizes is None else sizes.tolist()):
        assert size % x.shape[dim] == 0
        x = x.repeat_interleave(int(size) // x.shape[dim], dim)
    return x


def _pad(inputs: Values, attributes: Attributes) -> torch.Tensor:
    pads, mode = inputs[1].tolist(), attributes.get("mode", b"constant").decode()
    return torch.from_numpy(np.pad(inputs[0].numpy(), list(zip(pads, pads[len(pads) // 2 :], strict=False)), mode))


def _gemm(inputs: Values, attributes: Attributes) -> torch.Tensor:
    left = inputs[0].T if attributes.get("transA") else inputs[0]
    right = inputs[1].T if attributes.get("transB") else inputs[1]
    product = left @ right * attributes.get("alpha", 1.0)
    return product + inputs[2] * attributes.get("beta", 1.0) if len(inputs) > 2 else product


def _lstm(inputs: Values, _: Attributes) -> tuple[torch.Tensor, ...]:
    """DynamicQuantizeLSTM, both directions, with inputs and states that are not rounded."""
    x, weights, states, biases, _, hidden, cells, _, scale, zero, state_scale, state_zero = inputs
    weights = (weights - zero.reshape(-1, 1, zero.numel() // 2)) * scale.reshape(-1, 1, scale.numel() // 2)
    states = (states - state_zero.reshape(-1, 1, state_zero.numel() // 2)) * state_scale.reshape(
        -1, 1, state_scale.numel() // 2
    )
    result = torch.zeros(len(x), 2, x.shape[1], hidden.shape[2], dtype=torch.float64)
    for direction in range(2):
        h, c = hidden[direction], cells[direction]
        bias = biases[direction].reshape(2, -1).sum(0)
        for step in range(len(x)) if direction == 0 else reversed(range(len(x))):
            gates = x[step] @ weights[direction] + h @ states[direction] + bias
            i, o, f, g = gates.chunk(4, -1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            result[step, direction] = h
    return (result,)


def _clipped(inputs: Values, _: Attributes) -> torch.Tensor:
    return inputs[0].clamp(*(None if one is None else float(one) for one in (*inputs[1:], None, None)[:2]))


def _constant(_: Values, attributes: Attributes) -> torch.Tensor:
    return _wide(numpy_helper.to_array(attributes["value"]))


_OPERATORS: dict[str, Callable[[Values, Attributes], Any]] = {
    "DequantizeLinear": _dequantized,
    "QuantizeLinear": _quantized,
    "DynamicQuantizeLinear": _dynamically_quantized,
    "DynamicQuantizeLSTM": _lstm,
    "Conv": _convolved,
    "ConvInteger": lambda i, a: _convolved(_without_zeros(i, 0), a).round().long(),
    "MatMul": lambda i, a: i[0] @ i[1],
    "MatMulInteger": lambda i, a: torch.matmul(*_without_zeros(i, 1)).round().long(),
    "Gemm": _gemm,
    "Add": lambda i, a: i[0] + i[1],
    "Sub": lambda i, a: i[0] - i[1],
    "Mul": lambda i, a: i[0] * i[1],
    "Div": lambda i, a: i[0] / i[1] if i[0].is_floating_point() else torch.div(i[0], i[1], rounding_mode="trunc"),
    "Abs": lambda i, a: i[0].abs(),
    "Neg": lambda i, a: -i[0],
    "Identity": lambda i, a: i[0],
    "Equal": lambda i, a: (i[0] == i[1]).long(),
    "Where": lambda i, a: torch.where(i[0] != 0, i[1], i[2]),
    "Cos": lambda i, a: i[0].cos(),
    "Sin": lambda i, a: i[0].sin(),
    "Pow": lambda i, a: i[0] ** i[1],
    "Sqrt": lambda i, a: i[0].sqrt(),
    "Reciprocal": lambda i, a: 1 / i[0],
    "Relu": lambda i, a: i[0].relu(),
    "Clip": _clipped,
    "Floor": lambda i, a: i[0].floor(),
    "Sigmoid": lambda i, a: i[0].sigmoid(),
    "Tanh": lambda i, a: i[0].tanh(),
    "Erf": lambda i, a: i[0].erf(),
    "Softmax": lambda i, a: i[0].softmax(a.get("axis", -1)),
    "LayerNormalization": lambda i, a: functional.layer_norm(
        i[0], i[0].shape[a.get("axis", -1) % i[0].dim() :], i[1], i[2], a.get("epsilon", 1e-5)
    ),
    "GlobalAveragePool": lambda i, a: i[0].mean(dim=tuple(range(2, i[0].dim())), keepdim=True),
    "ReduceSum": lambda i, a: i[0].sum(**_over(i, a)),
    "ReduceL2": lambda i, a: i[0].square().sum(**_over(i, a)).sqrt(),
    "ReduceMean": lambda i, a: i[0].mean(**_over(i, a)),
    "ReduceMax": lambda i, a: i[0].amax(**_over(i, a)),
    "ReduceMin": lambda i, a: i[0].amin(**_over(i, a)),
    "MaxPool": _pooled,
    "BatchNormalization": _normalized,
    "InstanceNormalization": _instances,
    "Cast": lambda i, a: i[0].double() if a["to"] in (1, 10, 11) else i[0].long(),
    "Constant": _constant,
    "ConstantOfShape": lambda i, a: torch.full(
        i[0].tolist(), float(numpy_helper.to_array(a["value"])[0]) if "value" in a else 0.0, dtype=torch.float64
    ),
    "Range": lambda i, a: torch.arange(*(one.item() for one in i), dtype=i[0].dtype),
    "Shape": lambda i, a: torch.tensor(i[0].shape)[a.get("start", 0) : a.get("end")],
    "Gather": lambda i, a: torch.from_numpy(np.asarray(np.take(i[0].numpy(), i[1].numpy(), axis=a.get("axis", 0)))),
    "Concat": lambda i, a: torch.cat(i, a["axis"]),
    "Reshape": _reshaped,
    "Flatten": lambda i, a: i[0].reshape(int(np.prod(i[0].shape[: a.get("axis", 1)])), -1),
    "Expand": lambda i, a: i[0] * torch.ones(i[1].tolist(), dtype=i[0].dtype),
    "Unsqueeze": lambda i, a: torch.from_numpy(
        np.expand_dims(i[0].numpy(), tuple(a["axes"] if "axes" in a else i[1].tolist()))
    ),
    "Squeeze": lambda i, a: torch.from_numpy(
        np.squeeze(i[0].numpy(), tuple(a["axes"] if "axes" in a else i[1].tolist()) if len(i) > 1 or a else None)
    ),
    "Transpose": lambda i, a: i[0].permute(a.get("perm", list(reversed(range(i[0].dim()))))),
    "Slice": _sliced,
    "Resize": _resized,
    "Pad": _pad,
}
