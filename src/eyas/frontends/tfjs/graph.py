"""Graph models: nodes of a TensorFlow GraphDef, each written as ONNX operators.

Nodes are visited after those that they need. What an operator takes is in the order of TensorFlow's definition of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from eyas.errors import FrontendError, UnsupportedOpError
from eyas.frontends.tensorflow import elementwise, moves, reductions, windows
from eyas.frontends.tensorflow.elementwise import OPERATORS
from eyas.frontends.tensorflow.graph import Graph, dims_of
from eyas.frontends.tensorflow.moves import Masks, known
from eyas.frontends.tensorflow.windows import Window
from eyas.frontends.tfjs import control, detection, lists, rare
from eyas.frontends.tfjs.dilated import CROP, crop
from eyas.frontends.tfjs.node import Node, Rule, decode, dtype_of

_ERRORS = (IndexError, ValueError, TypeError, AttributeError, KeyError, ArithmeticError)


@dataclass
class GraphTranslation:
    """A GraphDef that is becoming an ONNX graph. `values` has the results of the nodes that are done, `functions` those
    of the library by name."""

    g: Graph
    nodes: Mapping[str, dict[str, Any]]
    weights: Mapping[str, np.ndarray]
    functions: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    values: dict[str, list[Any]] = field(default_factory=dict)
    _readers: dict[str, list[dict[str, Any]]] | None = None

    def inside(self, nodes: Mapping[str, dict[str, Any]] | None = None) -> GraphTranslation:
        """The translation of a part whose results nobody else sees: of a function's nodes, or a loop's among these."""
        if nodes is None:
            return replace(self, values=dict(self.values))
        return replace(self, nodes=nodes, values={}, _readers=None)

    def readers(self, name: str) -> list[dict[str, Any]]:
        """The nodes that take results of a node."""
        if self._readers is None:
            self._readers = {}
            for node in self.nodes.values():
                for one in control.data_inputs(node):
                    self._readers.setdefault(one.partition(":")[0], []).append(node)
        return self._readers.get(name, [])

    def tensor(self, reference: str) -> Any:
        """The tensor that `name:1` refers to, with all that it needs."""
        name, index = control.place_of(reference, self.nodes)
        self._visit(name)
        found = self.values[name]
        if index >= len(found):
            raise FrontendError(f"{self.g.description}: '{reference}' refers to a result that '{name}' does not have")
        return found[index]

    def _visit(self, wanted: str) -> None:
        """Without recursion but into loops and functions: graphs are deeper than Python's stack."""
        waiting, open_ = [wanted], set[str]()
        while waiting:
            name = waiting[-1]
            if name in self.values:
                waiting.pop()
                continue
            if name not in self.nodes:
                raise FrontendError(f"{self.g.description}: nothing makes '{name}'")
            node = self.nodes[name]
            needed = [control.place_of(one, self.nodes)[0] for one in control.needs(node, self)]
            missing = [one for one in needed if one not in self.values]
            if not missing:
                self._translate(node)
                waiting.pop()
            elif name in open_:
                raise UnsupportedOpError(f"{self.g.description}: the graph has nodes in a circle at '{name}'")
            else:
                open_.add(name)
                waiting += missing

    def _translate(self, node: dict[str, Any]) -> None:
        op, name = node["op"], node["name"]
        self.g.where = name
        if op == "Exit":
            control.run_loop(node, self)
        elif op != "Const":
            self.values[name] = self._results(node)
        elif name in self.weights:
            self.values[name] = [self.weights[name]]
        else:
            raise FrontendError(f"{self.g.description}: constant '{name}' has no weight")

    def _results(self, node: dict[str, Any]) -> list[Any]:
        op, name = node["op"], node["name"]
        given = [self.tensor(one) for one in control.data_inputs(node)]
        attributes = {key: decode(value) for key, value in node.get("attr", {}).items()}
        made = Node(self, op, name, given, attributes)
        self.g.where = name
        rule = RULES.get(op)
        if rule is None and op not in OPERATORS:
            raise made.refuse(_REFUSED.get(op, "no translation for it"))
        try:
            found = rule(made) if rule else OPERATORS[op](self.g, *given)
        except _ERRORS as error:
            what = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise FrontendError(f"{self.g.description}: {op} '{name}' is not valid: {what}") from error
        return found if isinstance(found, list) else [found]


_TEXT = "TensorFlow.js computes it with text, which tensors here do not hold"
_REFUSED = {
    **dict.fromkeys(("StaticRegexReplace", "StringNGrams", "StringSplit", "StringToHashBucketFast"), _TEXT),
    **dict.fromkeys(("HashTable", "HashTableV2", "LookupTableFind", "LookupTableFindV2"), "it is a hash table"),
}


# Convolutions and pools.


def _spatial(node: Node, name: str) -> tuple[int, ...]:
    numbers = node.get(name) or [1, 1, 1, 1]
    return tuple(numbers[2:4] if node.get("data_format", "NHWC").startswith("NC") else numbers[1:-1])


def _window(node: Node, strides: str = "strides", dilations: str | None = "dilations") -> Window:
    padding: Any = node.get("padding", "VALID")
    if padding == "EXPLICIT":
        pairs = np.reshape(node.get("explicit_paddings"), (-1, 2)).tolist()
        chosen = pairs[2:] if node.get("data_format", "NHWC").startswith("NC") else pairs[1:-1]
        padding = tuple((int(a), int(b)) for a, b in chosen)
    moved = _spatial(node, strides)
    return Window(moved, _spatial(node, dilations) if dilations else (1,) * len(moved), padding)


def _last(node: Node, x: Any, compute: Callable[[Any], Any]) -> Any:
    """Computes on channels last, whatever the node's order."""
    if not node.get("data_format", "NHWC").startswith("NC"):
        return compute(x)
    rank = len(dims_of(x))
    found = compute(node.g.transpose(x, windows.channels_last(rank)))
    return node.g.transpose(found, windows.channels_first(rank))


def conv(node: Node) -> Any:
    g, (x, kernel) = node.g, node.inputs[:2]
    rank = len(dims_of(kernel))
    kernel = g.transpose(kernel, [rank - 1, rank - 2, *range(rank - 2)])

    def compute(x: Any) -> Any:
        groups = g.size(x, -1) // g.size(kernel, 1)
        return windows.convolve(g, x, kernel, _fused_bias(node), _window(node), groups)

    return _last(node, x, lambda x: _fused(node, compute(x)))


def depthwise_conv(node: Node) -> Any:
    g, (x, kernel) = node.g, node.inputs[:2]
    height, width, channels, several = (g.size(kernel, axis) for axis in range(4))
    kernel = g.reshape(g.transpose(kernel, [2, 3, 0, 1]), [channels * several, 1, height, width])

    def compute(x: Any) -> Any:
        return windows.convolve(g, x, kernel, _fused_bias(node), _window(node), channels)

    return _last(node, x, lambda x: _fused(node, compute(x)))


def _fused_bias(node: Node) -> Any:
    return node.inputs[2] if "BiasAdd" in (node.get("fused_ops") or []) else None


def _fused(node: Node, x: Any) -> Any:
    """What follows a fused product: activations, of which PReLU takes the last operand."""
    for name in node.get("fused_ops") or []:
        if name == "Prelu":
            x = elementwise.prelu(node.g, x, node.inputs[-1])
        elif name == "LeakyRelu":
            x = elementwise.leaky_relu(node.g, x, node.get("leakyrelu_alpha", 0.2))
        elif name == "FusedBatchNorm":
            raise node.refuse("it is fused with a batch norm")
        elif name != "BiasAdd":
            x = OPERATORS[name](node.g, x)
    return x


def conv_transposed(node: Node) -> Any:
    """Operands: the result's shape, filters [H, W, outputs, inputs], the image."""
    g, (shape, kernel, x) = node.g, node.inputs[:3]
    kernel, window, sizes = g.transpose(kernel, [3, 2, 0, 1]), _window(node), []
    for axis, size in enumerate(g.entries(shape)[1:3]):
        if not isinstance(size, int):
            # Computed from sizes that are open, but with padding "SAME" there is one that is meant.
            reach = g.size(kernel, axis + 2) if window.padding == "VALID" else window.strides[axis]
            size = (g.size(x, axis + 1) - 1) * window.strides[axis] + reach
        sizes.append(size)
    return windows.convolve_transposed(g, x, kernel, None, window, sizes)


def matmul(node: Node) -> Any:
    x, y = node.inputs[:2]
    made = reductions.matrix_multiply(node.g, x, y, bool(node.get("transpose_a")), bool(node.get("transpose_b")))
    bias = _fused_bias(node)
    return _fused(node, made if bias is None else node.g.add("Add", made, bias))


def batch_matmul(node: Node) -> Any:
    x, y = node.inputs[:2]
    return reductions.matrix_multiply(node.g, x, y, bool(node.get("adj_x")), bool(node.get("adj_y")))


def _pool(kind: str) -> Rule:
    def rule(node: Node) -> Any:
        window = _window(node, dilations=None)
        return _last(node, node.inputs[0], lambda x: windows.pool(node.g, kind, x, _spatial(node, "ksize"), window))

    return rule


def batch_norm(node: Node) -> Any:
    x, scale, offset, mean, variance = node.inputs[:5]
    g = node.g
    epsilon = np.array(node.get("epsilon", 1e-3), np.float32)
    factor = g.add("Mul", scale, elementwise.rsqrt(g, g.add("Add", variance, epsilon)))
    shift = g.add("Sub", offset, g.add("Mul", mean, factor))
    return _last(node, x, lambda x: g.add("Add", g.add("Mul", x, factor), shift))


def _resize(mode: str) -> Rule:
    def rule(node: Node) -> Any:
        options = bool(node.get("align_corners")), bool(node.get("half_pixel_centers"))
        return windows.resize(node.g, node.inputs[0], node.inputs[1], mode, *options)

    return rule


# Moves.


def reshape(node: Node) -> Any:
    return node.g.reshape(*node.inputs[:2])


def strided_slice(node: Node) -> Any:
    bits = {name: node.get(f"{name}_mask") or 0 for name in ("begin", "end", "ellipsis", "new_axis")}
    masks = Masks(**bits, shrink=node.get("shrink_axis_mask") or 0)
    x, begin, end, strides = node.inputs[:4]
    return moves.strided_slice(node.g, x, begin, end, strides, masks)


def squeeze(node: Node) -> Any:
    return moves.squeeze(node.g, node.inputs[0], node.get("squeeze_dims") or node.get("axis") or [])


def split(node: Node) -> Any:
    axis, x, count = node.numbers(0, "axis")[0], node.inputs[1], node.get("num_split", 1)
    return moves.split(node.g, x, axis, [node.g.size(x, axis) // count] * count)


def pad(node: Node) -> Any:
    return moves.pad(node.g, node.inputs[0], node.inputs[1], node.inputs[2] if len(node.inputs) > 2 else None)


def space_to_batch(node: Node) -> Any:
    x, block, pairs = node.inputs[:3]
    return moves.space_to_batch(node.g, x, known(node.g, block, "block"), known(node.g, pairs, "padding"))


def batch_to_space(node: Node) -> Any:
    x, block, crops = node.inputs[:3]
    return moves.batch_to_space(node.g, x, known(node.g, block, "block"), known(node.g, crops, "crops"))


def gather(node: Node) -> Any:
    axis = node.numbers(2, "axis")[0] if len(node.inputs) > 2 else 0
    return moves.gather(node.g, node.inputs[0], node.inputs[1], axis, node.get("batch_dims") or 0)


def one_hot(node: Node) -> Any:
    indices, _, on, off = node.inputs[:4]
    axis = node.get("axis")
    return moves.one_hot(node.g, indices, node.numbers(1, "depth")[0], on, off, -1 if axis is None else axis)


def shape(node: Node) -> Any:
    dtype = dtype_of(node, "out_type") if node.get("out_type") else np.int32
    return node.g.cast(node.g.shape_of(node.inputs[0]), dtype)


def fill(node: Node) -> Any:
    return moves.broadcast_to(node.g, node.g.reshape(node.inputs[1], []), node.inputs[0])


def select(node: Node) -> Any:
    g, (condition, yes, no) = node.g, node.inputs[:3]
    less = len(dims_of(yes)) - len(dims_of(condition))
    if node.op == "Select" and less > 0 and dims_of(condition):
        condition = g.reshape(condition, [-1, *[1] * less])
    return elementwise.select(g, condition, yes, no)


def sparse_to_dense(node: Node) -> Any:
    g, (indices, _, values, default) = node.g, node.inputs[:4]
    sizes = node.numbers(1, "shape")
    start = np.full(sizes, known(g, default, "default").reshape(()), values.dtype)
    places = g.reshape(g.cast(indices, np.int64), [-1, len(sizes)])
    spread = moves.broadcast_to(g, values, np.array([g.size(places, 0)], np.int64))
    return g.add("ScatterND", start, places, spread)


def _reduction(kind: str) -> Rule:
    def rule(node: Node) -> Any:
        x, axes = node.inputs[:2]
        return reductions.reduce(node.g, kind, x, axes, bool(node.get("keep_dims")))

    return rule


def _extreme(kind: str) -> Rule:
    def rule(node: Node) -> Any:
        x, axis = node.inputs[:2]
        dtype = dtype_of(node, "output_type") if node.get("output_type") else np.int32
        return reductions.arg_extreme(node.g, kind, x, axis, dtype)

    return rule


def cumsum(node: Node) -> Any:
    x, axis = node.inputs[:2]
    return reductions.cumulative(node.g, x, axis, bool(node.get("exclusive")), bool(node.get("reverse")))


def mirror_pad(node: Node) -> Any:
    x, amounts = node.inputs[:2]
    return moves.mirror_pad(node.g, x, amounts, node.get("mode") == "SYMMETRIC")


def scatter_nd(node: Node) -> Any:
    g, (indices, updates, shape) = node.g, node.inputs[:3]
    return moves.scatter_nd(g, indices, updates, known(g, shape, "shape"))


def placeholder(node: Node) -> Any:
    raise node.refuse("it is an input that the model's signature does not have")


RULES: dict[str, Rule] = {
    **control.RULES,
    **detection.RULES,
    **lists.RULES,
    **rare.RULES,
    "All": _reduction("All"),
    "Any": _reduction("Any"),
    "ArgMax": _extreme("ArgMax"),
    "ArgMin": _extreme("ArgMin"),
    "AvgPool": _pool("Average"),
    "AvgPool3D": _pool("Average"),
    "BatchMatMul": batch_matmul,
    "BatchMatMulV2": batch_matmul,
    "BatchToSpaceND": batch_to_space,
    "BroadcastTo": lambda node: moves.broadcast_to(node.g, *node.inputs[:2]),
    "Cast": lambda node: node.g.cast(node.inputs[0], dtype_of(node, "DstT")),
    "ConcatV2": lambda node: moves.concatenate(node.g, node.inputs[:-1], node.numbers(-1, "axis")[0]),
    "Concat": lambda node: moves.concatenate(node.g, node.inputs[1:], node.numbers(0, "axis")[0]),
    "Conv1D": conv,
    "Conv2D": conv,
    "Conv2DBackpropInput": conv_transposed,
    "Conv3D": conv,
    "Cumsum": cumsum,
    "DepthToSpace": lambda node: moves.depth_to_space(node.g, node.inputs[0], node.get("block_size", 1)),
    "DepthwiseConv2d": depthwise_conv,
    "DepthwiseConv2dNative": depthwise_conv,
    "ExpandDims": lambda node: moves.expand_dims(node.g, node.inputs[0], node.numbers(1, "axis")[0]),
    "Fill": fill,
    "FusedBatchNorm": batch_norm,
    "FusedBatchNormV2": batch_norm,
    "FusedBatchNormV3": batch_norm,
    "FusedDepthwiseConv2dNative": depthwise_conv,
    "Gather": gather,
    "GatherNd": lambda node: node.g.add("GatherND", node.inputs[0], node.g.cast(node.inputs[1], np.int64)),
    "GatherV2": gather,
    "IdentityN": lambda node: list(node.inputs),
    "LeakyRelu": lambda node: elementwise.leaky_relu(node.g, node.inputs[0], node.get("alpha", 0.2)),
    "LogSoftmax": lambda node: reductions.log_softmax(node.g, node.inputs[0]),
    "MatMul": matmul,
    "Max": _reduction("Max"),
    "MaxPool": _pool("Max"),
    "MaxPool3D": _pool("Max"),
    "Mean": _reduction("Mean"),
    "Min": _reduction("Min"),
    "MirrorPad": mirror_pad,
    "OneHot": one_hot,
    "Pack": lambda node: moves.pack(node.g, node.inputs, node.get("axis") or 0),
    "Pad": pad,
    "PadV2": pad,
    "Placeholder": placeholder,
    "PlaceholderWithDefault": lambda node: node.inputs[0],
    "PreventGradient": lambda node: node.inputs[0],
    "Prelu": lambda node: elementwise.prelu(node.g, *node.inputs[:2]),
    "Prod": _reduction("Prod"),
    "Range": lambda node: node.g.add("Range", *(node.g.reshape(one, []) for one in node.inputs[:3])),
    "Rank": lambda node: np.array(len(dims_of(node.inputs[0])), np.int32),
    "Reshape": reshape,
    "ResizeBilinear": _resize("linear"),
    "ResizeNearestNeighbor": _resize("nearest"),
    "ReverseV2": lambda node: moves.reverse(node.g, node.inputs[0], node.numbers(1, "axes")),
    "ScatterNd": scatter_nd,
    "Select": select,
    "SelectV2": select,
    "Shape": shape,
    "Size": lambda node: node.g.cast(node.g.add("Size", node.inputs[0]), np.int32),
    "Slice": lambda node: moves.slice_(node.g, *node.inputs[:3]),
    "Softmax": lambda node: reductions.softmax(node.g, node.inputs[0]),
    "SpaceToBatchND": space_to_batch,
    "SpaceToDepth": lambda node: moves.space_to_depth(node.g, node.inputs[0], node.get("block_size", 1)),
    "SparseToDense": sparse_to_dense,
    "Split": split,
    "SplitV": lambda node: moves.split(node.g, node.inputs[0], node.numbers(2, "axis")[0], node.numbers(1, "sizes")),
    "Squeeze": squeeze,
    "StopGradient": lambda node: node.inputs[0],
    "StridedSlice": strided_slice,
    "Sum": _reduction("Sum"),
    "Tile": lambda node: node.g.add("Tile", node.inputs[0], node.g.cast(node.inputs[1], np.int64)),
    "TopKV2": lambda node: reductions.top_k(node.g, *node.inputs[:2]),
    "Transpose": lambda node: node.g.transpose(node.inputs[0], node.numbers(1, "order")),
    "Unpack": lambda node: moves.unpack(node.g, node.inputs[0], node.get("axis") or 0, node.get("num", 1)),
    "Where": lambda node: node.g.transpose(node.g.add("NonZero", node.inputs[0]), [1, 0]),
    "ZerosLike": lambda node: moves.broadcast_to(
        node.g, np.zeros((), node.inputs[0].dtype), node.g.shape_of(node.inputs[0])
    ),
    CROP: lambda node: crop(node.g, node.inputs[0], moves.known(node.g, node.inputs[1], "crops")),
    "_FusedConv2D": conv,
    "_FusedMatMul": matmul,
}
