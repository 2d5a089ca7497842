"""Rules for products and convolutions with what was fused into them: transposes, factors, sums, activations."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper

from eyas.frontends.onnx.contrib.activations import tanh_gelu
from eyas.frontends.onnx.contrib.common import Floats, activate, is_ready
from eyas.frontends.onnx.rewrite.rules import Builder, attribute, operand

_ACTIVATION_NUMBERS = ("activation_alpha", "activation_beta", "activation_gamma")


def fused_mat_mul(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """FusedMatMul, TransposeMatMul and FusedMatMulActivation."""
    if not is_ready(node, b):
        return None
    sides = []
    for name, side in zip(node.input, "AB", strict=False):
        rank = b.rank_of(name)
        assert rank is not None
        order = list(range(rank))
        if rank > 2 and attribute(node, f"transBatch{side}", 0):
            # The rows come first, before the batch.
            order = [*range(1, rank - 1), 0, rank - 1]
        if rank > 1 and attribute(node, f"trans{side}", 0):
            order[-2:] = order[:-3:-1]
        sides.append(b.transpose(name, order))
    product = b.add("MatMul", *sides)
    kind = b.type_of(node.input[0])
    alpha = attribute(node, "alpha", 1.0)
    if alpha != 1:
        product = b.add("Mul", product, b.constant(alpha, helper.tensor_dtype_to_np_dtype(kind)))
    return [activate(node, product, attribute(node, "activation", ""), _numbers(node), kind, b)]


def fused_gemm(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    if not is_ready(node, b):
        return None
    known = ("alpha", "beta", "transA", "transB")
    product = b.add("Gemm", *node.input, **_attributes(node, known))
    return [activate(node, product, attribute(node, "activation", ""), _numbers(node), b.type_of(node.input[0]), b)]


def gemm_fast_gelu(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    if not is_ready(node, b):
        return None
    floats = Floats(b.type_of(node.input[0]), b)
    product = floats.read(b.add("MatMul", *node.input[:2]))
    if operand(node, 2):
        product = b.add("Add", product, floats.read(node.input[2]))
    return [floats.write(tanh_gelu(product, floats))]


def fused_conv(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """FusedConv, NhwcConv and NhwcFusedConv; in the latter images and results have their channels last."""
    rank = b.rank_of(node.input[0])
    if rank is None or not is_ready(node, b):
        return None
    last = node.op_type.startswith("Nhwc")
    x, residual = node.input[0], operand(node, 3)
    if last:
        x = b.transpose(x, channels_first(rank))
        residual = residual and b.transpose(residual, channels_first(rank))
    known = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    total = b.add("Conv", x, *filter(None, node.input[1:3]), **_attributes(node, known))
    if residual:
        total = b.add("Add", total, residual)
    parameters = list(attribute(node, "activation_params", []))
    total = activate(node, total, attribute(node, "activation", ""), parameters, b.type_of(node.input[0]), b)
    return [b.transpose(total, channels_last(rank)) if last else total]


def channels_first(rank: int) -> list[int]:
    return [0, rank - 1, *range(1, rank - 1)]


def channels_last(rank: int) -> list[int]:
    return [0, *range(2, rank), 1]


def conv_transpose_with_dynamic_pads(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Pads are an input; here they must be constants."""
    if not is_ready(node, b, 0, 1):
        return None
    known = ("auto_pad", "dilations", "group", "kernel_shape", "output_padding", "strides")
    given = _attributes(node, known)
    if operand(node, 2):
        pads = b.value_of(node.input[2])
        if pads is None:
            return None
        given["pads"] = pads.astype(np.int64).tolist()
    return [b.add("ConvTranspose", *node.input[:2], *filter(None, node.input[3:4]), **given)]


def _numbers(node: onnx.NodeProto) -> list[float]:
    """Parameters of an activation as far as they are given."""
    found = [attribute(node, name, None) for name in _ACTIVATION_NUMBERS]
    return [value for value in found if value is not None]


def _attributes(node: onnx.NodeProto, names: tuple[str, ...]) -> dict[str, Any]:
    return {found.name: helper.get_attribute_value(found) for found in node.attribute if found.name in names}
