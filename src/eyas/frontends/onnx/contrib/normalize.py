"""Rules for normalisations with the sums before them, and for the embeddings of BERT."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from eyas.frontends.onnx.contrib.common import Floats, is_ready, refuse, refuse_results, results, whole
from eyas.frontends.onnx.contrib.products import channels_first, channels_last
from eyas.frontends.onnx.rewrite.rules import Builder, attribute, operand


def skip_layer_normalization(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Normalises the sum of the input, what skipped a layer, and a bias. The sum is a result too."""
    if not is_ready(node, b):
        return None
    refuse_results(node, b, mean=1, inv_std_var=2)
    simplified = node.op_type == "SkipSimplifiedLayerNormalization"
    floats = Floats(b.type_of(node.input[0]), b)
    total = b.add("Add", *map(floats.read, node.input[:2]))
    beta, bias = ("", operand(node, 3)) if simplified else (operand(node, 3), operand(node, 4))
    if bias:
        total = b.add("Add", total, floats.read(bias))
    gamma, epsilon = floats.read(node.input[2]), attribute(node, "epsilon", 1e-12)
    if simplified:
        value = b.add("Mul", root_mean_square(total, floats, epsilon), gamma)
    else:
        scales = [gamma, *([floats.read(beta)] if beta else [])]
        value = b.add("LayerNormalization", total, *scales, axis=-1, epsilon=epsilon)
    summed = floats.write(total) if len(node.output) > 3 else ""
    return results(node, floats.write(value), "", "", summed)


def simplified_layer_normalization(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """The root of the mean square; no mean, no shift."""
    rank = b.rank_of(node.input[0])
    if rank is None or not is_ready(node, b):
        return None
    refuse_results(node, b, inv_std_var=1)
    axis = attribute(node, "axis", -1) % rank
    floats = Floats(b.type_of(node.input[0]), b)
    scale = floats.read(node.input[1]) if b.type_of(node.input[1]) == floats.kind else node.input[1]
    value = root_mean_square(floats.read(node.input[0]), floats, attribute(node, "epsilon", 1e-5), range(axis, rank))
    return [floats.write(b.add("Mul", value, scale))]


def layer_normalization(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """The standard's, in a model of an opset that did not have it yet."""
    known = ("axis", "epsilon", "stash_type")
    given = {found.name: onnx.helper.get_attribute_value(found) for found in node.attribute if found.name in known}
    return b.add_many("LayerNormalization", len(node.output), *node.input, **given)


def root_mean_square(value: str, floats: Floats, epsilon: float, axes: range = range(-1, 0)) -> str:
    b = floats.b
    mean = b.add("ReduceMean", b.add("Mul", value, value), whole(axes, b), keepdims=1)
    return b.add("Div", value, b.add("Sqrt", b.add("Add", mean, floats.number(epsilon))))


def embed_layer_normalization(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Embeddings of words, positions and segments, summed and normalised; how many words a mask leaves."""
    if not is_ready(node, b):
        return None
    ids, segments, words, places, kinds, gamma, beta = (operand(node, index) for index in range(7))
    total = _embed(ids, segments, words, places, kinds, operand(node, 8), b)
    value = b.add("LayerNormalization", total, gamma, beta, axis=-1, epsilon=attribute(node, "epsilon", 1e-12))
    return results(node, value, _counts(node, ids, operand(node, 7), b), total)


def q_embed_layer_normalization(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """The same of quantised tables."""
    if not is_ready(node, b):
        return None
    tables: list[str] = []
    for place, name in enumerate(("word", "position", "segment", "gamma", "beta")):
        index = place + 2
        if not operand(node, index):
            tables.append("")
            continue
        scale, zero = node.input[8 + place], operand(node, 13 + place)
        if b.type_of(scale) != TensorProto.FLOAT:
            refuse(node, b, f"its scale of {name} is not FLOAT")
        tables.append(b.add("DequantizeLinear", node.input[index], *_scalars([scale, zero], b)))
    words, places, kinds, gamma, beta = tables
    total = _embed(node.input[0], operand(node, 1), words, places, kinds, "", b)
    value = b.add("LayerNormalization", total, gamma, beta, axis=-1, epsilon=attribute(node, "epsilon", 1e-12))
    return results(node, value, _counts(node, node.input[0], operand(node, 7), b))


def group_norm(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """GroupNorm and SkipGroupNorm."""
    rank = b.rank_of(node.input[0])
    if rank is None or not is_ready(node, b):
        return None
    floats = Floats(b.type_of(node.input[0]), b)
    last = bool(attribute(node, "channels_last", 1))
    x = floats.read(node.input[0])
    if node.op_type == "SkipGroupNorm":
        x = _skipped(node, x, floats, rank, last, b)
    total = x
    if last:
        x = b.transpose(x, channels_first(rank))
    groups = attribute(node, "groups", 1)
    rows = b.reshape(x, [0, groups, -1])
    ones, zeros = b.constant(np.ones(groups), floats.dtype), b.constant(np.zeros(groups), floats.dtype)
    rows = b.add("InstanceNormalization", rows, ones, zeros, epsilon=attribute(node, "epsilon", 1e-5))
    value = b.add("Reshape", rows, b.add("Shape", x))
    for op, name in (("Mul", node.input[1]), ("Add", node.input[2])):
        given = name if b.type_of(name) == floats.computed else b.cast(name, floats.computed)
        value = b.add(op, value, b.reshape(given, [-1, *[1] * (rank - 2)]))
    if attribute(node, "activation", 0):
        value = b.add("Mul", value, b.add("Sigmoid", value))
    if last:
        value = b.transpose(value, channels_last(rank))
    return results(node, floats.write(value), floats.write(total) if len(node.output) > 1 else "")


def group_normalization(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """As the standard had it first: scale and bias are those of groups, which is a normalisation of instances."""
    groups = attribute(node, "num_groups", 1)
    rows = b.reshape(node.input[0], [0, groups, -1])
    epsilon = attribute(node, "epsilon", 1e-5)
    value = b.add("InstanceNormalization", rows, node.input[1], node.input[2], epsilon=epsilon)
    return [b.add("Reshape", value, b.add("Shape", node.input[0]))]


def _skipped(node: onnx.NodeProto, x: str, floats: Floats, rank: int, last: bool, b: Builder) -> str:
    skip, bias = node.input[3], operand(node, 4)
    other = floats.read(skip)
    if b.rank_of(skip) == 2:
        other = b.reshape(other, [0, *[1] * (rank - 2), -1] if last else [0, -1, *[1] * (rank - 2)])
    x = b.add("Add", x, other)
    if bias:
        x = b.add("Add", x, b.reshape(floats.read(bias), [-1] if last else [-1, *[1] * (rank - 2)]))
    return x


def _embed(ids: str, segments: str, words: str, places: str, kinds: str, positions: str, b: Builder) -> str:
    total = b.add("Gather", words, ids, axis=0)
    if positions:
        where = b.add("Gather", places, positions, axis=0)
    else:
        count = b.size(ids, 1)
        if isinstance(count, int):
            where = b.add("Gather", places, whole(range(count), b), axis=0)
        else:
            where = b.add("Slice", places, whole([0], b), count, whole([0], b))
    total = b.add("Add", total, where)
    return b.add("Add", total, b.add("Gather", kinds, segments, axis=0)) if segments else total


def _counts(node: onnx.NodeProto, ids: str, mask: str, b: Builder) -> str:
    """INT32: the words of each row that a mask leaves, or nothing without a mask."""
    if len(node.output) < 2 or not node.output[1]:
        return ""
    if mask:
        ones = b.cast(b.add("Equal", mask, b.constant(1, np.int32)), TensorProto.INT32)
        return b.add("ReduceSum", ones, whole([1], b), keepdims=0)
    batch = b.add("Slice", b.add("Shape", ids), whole([0], b), whole([1], b), whole([0], b))
    return b.add("ConstantOfShape", batch, value=onnx.numpy_helper.from_array(np.zeros(1, np.int32)))


def _scalars(names: list[str], b: Builder) -> list[str]:
    return [b.reshape(name, []) if b.rank_of(name) else name for name in names if name]
