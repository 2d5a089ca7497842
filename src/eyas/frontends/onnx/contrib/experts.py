"""Rules for mixtures of experts: each row goes through the few experts that a router has chosen for it.

For few rows the matrices of the chosen experts are gathered for each row, so that no other is read; products read them
where they are (`fuse-gathers`). For many rows, which together choose them all, each matrix is read once for all rows,
and a row's share of an expert that it did not choose is 0. Weights of a few bits are dequantised at compile time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper

from eyas.frontends.onnx.contrib.activations import tanh_gelu
from eyas.frontends.onnx.contrib.common import Floats, is_ready, refuse, refuse_attributes, refuse_inputs, whole
from eyas.frontends.onnx.contrib.nbits import constant_input, unpack
from eyas.frontends.onnx.rewrite.rules import Builder, attribute, operand


@dataclass(frozen=True)
class _Layer:
    """Matrices (experts, columns, rows) of one product and its bias (experts, columns), which may be left out."""

    matrices: str
    bias: str = ""


def mixture(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """MoE: the shares of the experts are a softmax, over those that were chosen or over all."""
    if not is_ready(node, b):
        return None
    refuse_attributes(node, b, use_sparse_mixer=0)
    floats = Floats(b.type_of(node.input[0]), b)
    layers = [_Layer(operand(node, at) and floats.read(operand(node, at)), operand(node, at + 1)) for at in (2, 4, 6)]
    scores = floats.read(node.input[1])
    if attribute(node, "normalize_routing_weights", 0):
        shares, chosen = _best(scores, node, b)
        shares = b.add("Softmax", shares, axis=-1)
    else:
        shares, chosen = _best(b.add("Softmax", scores, axis=-1), node, b)
    return [_mixed(node, layers, shares, chosen, floats)]


def quantized_mixture(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """QMoE: another matrix may give the shares of the experts that the router's has chosen."""
    if not is_ready(node, b):
        return None
    refuse_attributes(node, b, use_sparse_mixer=0, quant_type="int")
    refuse_inputs(node, b, fc1_global_scale=15, fc2_global_scale=16, fc1_act_scale=17, fc2_act_scale=18)
    if attribute(node, "weights_prepacked", -1) == 1:
        refuse(node, b, "its attribute weights_prepacked is 1: weights in the order of one device; export them with 0")
    floats = Floats(b.type_of(node.input[0]), b)
    layers = [_quantized_layer(node, number, floats) for number in range(3)]
    shares, chosen = _best(floats.read(node.input[1]), node, b)
    if not operand(node, 14):
        shares = b.add("Softmax", shares, axis=-1)
    else:
        shares = b.add("GatherElements", floats.read(operand(node, 14)), chosen, axis=1)
        if attribute(node, "normalize_routing_weights", 0):
            shares = b.add("Div", shares, b.add("ReduceSum", shares, whole([1], b), keepdims=1))
    return [_mixed(node, layers, shares, chosen, floats)]


def _best(scores: str, node: onnx.NodeProto, b: Builder) -> tuple[str, str]:
    """The largest k of each row and which they are."""
    best, chosen = b.add_many("TopK", 2, scores, whole([attribute(node, "k", 1)], b), axis=-1)
    return best, chosen


def _quantized_layer(node: onnx.NodeProto, number: int, floats: Floats) -> _Layer:
    b, place = floats.b, 2 + 3 * number
    if not operand(node, place):
        return _Layer("")
    packed, scales = (constant_input(node, at, b) for at in (place, place + 1))
    zeros = constant_input(node, 11 + number, b)
    if packed is None or scales is None:
        refuse(node, b, f"weights at input {place} have no scales at input {place + 1}")
    bits = attribute(node, f"fc{number + 1}_expert_weight_bits", attribute(node, "expert_weight_bits", 4))
    if bits not in (2, 4, 8):
        refuse(node, b, f"its weights have {bits} bits; 2, 4 and 8 are what is known")
    experts, columns, _ = packed.shape
    rows = packed.shape[2] * 8 // bits
    blocks = scales.size // (experts * columns)

    def read() -> np.ndarray:
        numbers = unpack(packed.reshape(experts * columns, -1), bits).reshape(experts, columns, blocks, rows // blocks)
        zero = np.float32(1 << (bits - 1))
        if zeros is not None:
            # Rows of zero points are whole bytes: one for an expert's columns, or one for a column's blocks.
            flat = unpack(zeros.reshape(-1, zeros.shape[-1]), bits)
            zero = flat[:, : blocks if zeros.ndim == 3 else columns].reshape(experts, columns, blocks, 1)
        scale = scales.astype(np.float32).reshape(experts, columns, blocks, 1)
        return ((numbers - zero) * scale).reshape(experts, columns, rows).astype(floats.dtype)

    return _Layer(b.weight([experts, columns, rows], floats.computed, read), operand(node, place + 2))


@dataclass(frozen=True)
class _Form:
    """How products are made, of values with four dimensions: for each row with the matrices that were chosen for it, as
    (rows, chosen, columns, 1), or for all rows with every matrix, as (1, experts, columns, rows)."""

    chosen: str
    x: str
    shares: str

    def of(self, table: str, b: Builder) -> str:
        """The matrices or biases of a table that take part."""
        return b.add("Gather", table, self.chosen, axis=0) if self.chosen else table


def _mixed(node: onnx.NodeProto, layers: list[_Layer], shares: str, chosen: str, floats: Floats) -> str:
    """The results of the chosen experts, times their shares, added up; of the shape of the input."""
    b, x = floats.b, node.input[0]
    rows, experts = b.size(node.input[1], 0), b.size(node.input[1], 1)
    if not isinstance(experts, int):
        refuse(node, b, "the number of its experts is not known")
    flat = b.reshape(floats.read(x), [-1, b.size(x, -1)])
    few = experts // attribute(node, "k", 1)

    def for_each_row() -> str:
        form = _Form(chosen, b.add("Unsqueeze", flat, whole([1, 3], b)), b.add("Unsqueeze", shares, whole([2, 3], b)))
        return b.add("Squeeze", _sum(node, layers, form, floats), whole([-1], b))

    def for_all_rows() -> str:
        none = b.add("Expand", b.constant(0, floats.dtype), b.vector([rows, experts]))
        table = b.transpose(b.add("ScatterElements", none, chosen, shares, axis=1), [1, 0])
        columns = b.add("Unsqueeze", b.transpose(flat, [1, 0]), whole([0, 1], b))
        form = _Form("", columns, b.add("Unsqueeze", table, whole([0, 2], b)))
        return b.transpose(b.add("Squeeze", _sum(node, layers, form, floats), whole([0], b)), [1, 0])

    if isinstance(rows, int):
        result = for_each_row() if rows <= few else for_all_rows()
    else:
        # A matrix is read once for each row that chose it, or once for all: what reads less.
        is_few = b.reshape(b.add("LessOrEqual", rows, whole([few], b)), [])
        few_rows, many_rows = _branch(for_each_row, floats), _branch(for_all_rows, floats)
        result = b.add("If", is_few, then_branch=few_rows, else_branch=many_rows)
    return floats.write(b.add("Reshape", result, b.add("Shape", x)))


def _branch(build: Callable[[], str], floats: Floats) -> onnx.GraphProto:
    """What `build` adds, as a graph of its own."""
    b = floats.b
    before = len(b.nodes)
    result = build()
    nodes, b.nodes[before:] = b.nodes[before:], []
    return helper.make_graph(nodes, result, [], [helper.make_tensor_value_info(result, floats.computed, None)])


def _sum(node: onnx.NodeProto, layers: list[_Layer], form: _Form, floats: Floats) -> str:
    b, (first, last, gate) = floats.b, layers

    def product(layer: _Layer, value: str) -> str:
        result = b.add("MatMul", form.of(layer.matrices, b), value)
        if not layer.bias:
            return result
        return b.add("Add", result, b.add("Unsqueeze", form.of(floats.read(layer.bias), b), whole([-1], b)))

    inner = product(first, form.x)
    inner = _activated(node, inner, product(gate, form.x) if gate.matrices else "", floats)
    return b.add("ReduceSum", b.add("Mul", product(last, inner), form.shares), whole([1], b), keepdims=0)


def _activated(node: onnx.NodeProto, value: str, gate: str, floats: Floats) -> str:
    """`value` through the activation, times `gate` if there is one; both halves of SwiGLU may be in `value`."""
    b, kind = floats.b, attribute(node, "activation_type", "relu")
    if kind != "swiglu":
        result = _plain(node, kind, value, floats)
        return b.add("Mul", result, gate) if gate else result
    fusion = attribute(node, "swiglu_fusion", 0)
    if fusion == 1:
        end, along, step = (whole([n], b) for n in (1 << 30, 2, 2))
        value, gate = (b.add("Slice", value, whole([at], b), end, along, step) for at in (0, 1))
    elif fusion == 2:
        value, gate = b.add_many("Split", 2, value, axis=2, num_outputs=2)
    elif not gate:
        refuse(node, b, "its activation is swiglu with swiglu_fusion 0, and it has no third product")
    limit = attribute(node, "swiglu_limit", None)
    if limit is not None:
        value = b.add("Min", value, floats.number(limit))
        gate = b.add("Clip", gate, floats.number(-limit), floats.number(limit))
    alpha, beta = attribute(node, "activation_alpha", 1.0), attribute(node, "activation_beta", 0.0)
    scaled = value if alpha == 1 else b.add("Mul", value, floats.number(alpha))
    gate = gate if beta == 0 else b.add("Add", gate, floats.number(beta))
    return b.add("Mul", b.add("Mul", value, b.add("Sigmoid", scaled)), gate)


def _plain(node: onnx.NodeProto, kind: str, value: str, floats: Floats) -> str:
    b = floats.b
    match kind:
        case "identity":
            return value
        case "relu":
            return b.add("Relu", value)
        case "silu":
            return b.add("Mul", value, b.add("Sigmoid", value))
        case "gelu":
            return tanh_gelu(value, floats)
    refuse(node, b, f"its attribute activation_type is {kind}; identity, relu, silu, gelu and swiglu are what is known")
