"""Layers models: the topology of a Keras model, each layer written as ONNX operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from eyas.errors import FrontendError, UnsupportedOpError
from eyas.frontends.onnx.file import OnnxModel
from eyas.frontends.tensorflow import elementwise, moves, reductions, windows
from eyas.frontends.tensorflow.elementwise import OPERATORS
from eyas.frontends.tensorflow.graph import Graph, dims_of
from eyas.frontends.tensorflow.windows import Window
from eyas.frontends.tfjs.file import TfjsFile

if TYPE_CHECKING:
    from eyas.frontends.tfjs.importer import Examples

_ERRORS = (IndexError, ValueError, TypeError, AttributeError, KeyError, ArithmeticError)
_ACTIVATIONS = {
    "elu": "Elu",
    "exponential": "Exp",
    "linear": "Identity",
    "relu": "Relu",
    "relu6": "Relu6",
    "selu": "Selu",
    "sigmoid": "Sigmoid",
    "softplus": "Softplus",
    "softsign": "Softsign",
    "tanh": "Tanh",
}


@dataclass(frozen=True)
class Layer:
    """One layer at work: its settings, its weights by the last part of their names, and what it is applied to."""

    g: Graph
    kind: str
    name: str
    config: Mapping[str, Any]
    weights: Mapping[str, np.ndarray]
    inputs: Sequence[Any]

    @property
    def x(self) -> Any:
        return self.inputs[0]

    def get(self, name: str, default: Any = None) -> Any:
        found = self.config.get(name)
        return default if found is None else found

    def weight(self, name: str) -> np.ndarray | None:
        """A weight; None when the layer has no such one."""
        return self.weights.get(name)

    def refuse(self, why: str) -> UnsupportedOpError:
        return UnsupportedOpError(f"{self.g.description}: layer '{self.name}' ({self.kind}) is not supported: {why}")

    def activate(self, x: Any, key: str = "activation") -> Any:
        return _activation(self, self.get(key, "linear"), x)


def layers_to_onnx(file: TfjsFile, given: Examples) -> OnnxModel:
    """The ONNX model of a Sequential or functional model."""
    g = Graph(file.description)
    topology = file.topology.get("model_config", file.topology)
    layers, inputs, outputs = _network(g, topology)
    declared = [(name, np.float32, _input_shape(g, layers[name])) for name in inputs]
    values: dict[str, Any] = {}
    for name, value in zip(inputs, given.inputs(g, declared), strict=True):
        values[name] = value
    for name, layer in layers.items():
        if name not in values:
            values[name] = _apply(g, layer, file.weights, values)
    g.where = ""
    return g.model([(name, values[name]) for name in outputs])


def _network(g: Graph, topology: Mapping[str, Any]) -> tuple[dict[str, Any], list[str], list[str]]:
    """Layers by name, in an order in which they can run; the names of inputs and outputs."""
    config = topology["config"]
    listed = config["layers"] if isinstance(config, dict) else config
    if topology.get("class_name") == "Sequential":
        if listed[0]["class_name"] != "InputLayer":
            first = {"class_name": "InputLayer", "config": {**listed[0]["config"], "name": "input"}}
            listed = [first, *listed]
        names = [layer["config"]["name"] for layer in listed]
        layers = {
            name: {**layer, "inbound": [names[i - 1]] if i else []}
            for i, (name, layer) in enumerate(zip(names, listed, strict=True))
        }
        return layers, names[:1], names[-1:]
    layers = {}
    for layer in listed:
        nodes = layer.get("inbound_nodes") or [[]]
        if len(nodes) > 1:
            raise UnsupportedOpError(
                f"{g.description}: layer '{layer['name']}' is not supported: it is applied {len(nodes)} times"
            )
        layers[layer["name"]] = {**layer, "inbound": [one[0] for one in nodes[0]]}
    first, last = ([one[0] for one in _listed(config[key])] for key in ("input_layers", "output_layers"))
    return layers, first, last


def _listed(ends: Any) -> list[Any]:
    """Some converters write one end without a list around it."""
    return [ends] if ends and isinstance(ends[0], str) else list(ends)


def _input_shape(g: Graph, layer: Mapping[str, Any]) -> list[int] | None:
    config = layer["config"]
    shape = config.get("batch_input_shape") or config.get("batch_shape")
    return None if shape is None else [-1 if size is None else int(size) for size in shape]


def _apply(
    g: Graph, layer: Mapping[str, Any], weights: Mapping[str, np.ndarray], values: Mapping[str, list[Any]]
) -> Any:
    kind, config = layer["class_name"], layer["config"]
    name = g.where = config["name"]
    missing = [one for one in layer["inbound"] if one not in values]
    if missing:
        raise FrontendError(f"{g.description}: layer '{name}' takes from '{missing[0]}', which does not come before it")
    own = {key[len(name) + 1 :].rpartition("/")[2]: one for key, one in weights.items() if key.startswith(f"{name}/")}
    made = Layer(g, kind, name, config, own, [values[one] for one in layer["inbound"]])
    if config.get("data_format", "channels_last") not in ("channels_last", None):
        raise made.refuse("its channels are not last")
    if kind not in LAYERS:
        raise made.refuse("no translation for it")
    try:
        return LAYERS[kind](made)
    except _ERRORS as error:
        what = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FrontendError(f"{g.description}: layer '{name}' ({kind}) is not valid: {what}") from error


def _activation(layer: Layer, name: Any, x: Any) -> Any:
    g = layer.g
    name = name.get("class_name", "").lower() if isinstance(name, dict) else str(name)
    if name in _ACTIVATIONS:
        return OPERATORS[_ACTIVATIONS[name]](g, x)
    if name == "softmax":
        return reductions.softmax(g, x)
    if name in ("swish", "silu"):
        return g.add("Mul", x, g.add("Sigmoid", x))
    if name in ("gelu", "gelu_new"):
        return elementwise.gelu(g, x, name == "gelu_new")
    if name in ("hardSigmoid", "hard_sigmoid"):
        return g.add("HardSigmoid", x, alpha=0.2, beta=0.5)
    raise layer.refuse(f"its activation is '{name}'")


def _pair(value: Any, rank: int) -> tuple[int, ...]:
    return tuple(int(one) for one in value) if isinstance(value, (list, tuple)) else (int(value),) * rank


def _window(layer: Layer, rank: int, strides: Any = None) -> Window:
    padding = str(layer.get("padding", "valid")).upper()
    if padding not in ("SAME", "VALID"):
        raise layer.refuse(f"its padding is '{padding.lower()}'")
    strides = layer.get("strides", 1) if strides is None else strides
    return Window(_pair(strides, rank), _pair(layer.get("dilation_rate", 1), rank), padding)


def _conv(rank: int) -> Callable[[Layer], Any]:
    def rule(layer: Layer) -> Any:
        g, kernel = layer.g, layer.weights["kernel"]
        turned = g.transpose(kernel, [rank + 1, rank, *range(rank)])
        groups = int(layer.get("groups", 1))
        return layer.activate(windows.convolve(g, layer.x, turned, layer.weight("bias"), _window(layer, rank), groups))

    return rule


def _depthwise(layer: Layer, kernel: np.ndarray, bias: np.ndarray | None) -> Any:
    height, width, channels, several = kernel.shape
    turned = np.ascontiguousarray(kernel.transpose(2, 3, 0, 1)).reshape(channels * several, 1, height, width)
    return windows.convolve(layer.g, layer.x, turned, bias, _window(layer, 2), channels)


def depthwise_conv(layer: Layer) -> Any:
    kernel = layer.weights.get("depthwise_kernel", layer.weights.get("kernel"))
    assert kernel is not None
    return layer.activate(_depthwise(layer, kernel, layer.weight("bias")))


def separable_conv(layer: Layer) -> Any:
    x = _depthwise(layer, layer.weights["depthwise_kernel"], None)
    point = layer.g.transpose(layer.weights["pointwise_kernel"], [3, 2, 0, 1])
    made = windows.convolve(layer.g, x, point, layer.weight("bias"), Window((1, 1), (1, 1), "VALID"))
    return layer.activate(made)


def conv_transposed(layer: Layer) -> Any:
    """The kernel is [H, W, outputs, inputs]."""
    g, window = layer.g, _window(layer, 2)
    kernel = g.transpose(layer.weights["kernel"], [3, 2, 0, 1])
    sizes = []
    for axis, stride in enumerate(window.strides):
        had, reach = g.size(layer.x, axis + 1), g.size(kernel, axis + 2)
        sizes.append(had * stride if window.padding == "SAME" else had * stride + max(reach - stride, 0))
    return layer.activate(windows.convolve_transposed(g, layer.x, kernel, layer.weight("bias"), window, sizes))


def dense(layer: Layer) -> Any:
    made = layer.g.add("MatMul", layer.x, layer.weights["kernel"])
    bias = layer.weight("bias")
    return layer.activate(made if bias is None else layer.g.add("Add", made, bias))


def _pool(kind: str, rank: int) -> Callable[[Layer], Any]:
    def rule(layer: Layer) -> Any:
        size = _pair(layer.get("pool_size", 2), rank)
        window = _window(layer, rank, layer.get("strides", size))
        return windows.pool(layer.g, kind, layer.x, size, Window(window.strides, (1,) * rank, window.padding))

    return rule


def _global(kind: str) -> Callable[[Layer], Any]:
    def rule(layer: Layer) -> Any:
        axes = np.arange(1, len(dims_of(layer.x)) - 1)
        return reductions.reduce(layer.g, kind, layer.x, axes, bool(layer.get("keepdims", False)))

    return rule


def batch_norm(layer: Layer) -> Any:
    axis = layer.get("axis", -1)
    axis = axis[0] if isinstance(axis, list) else axis
    if axis not in (-1, len(dims_of(layer.x)) - 1):
        raise layer.refuse(f"it normalises axis {axis}")
    mean, variance = layer.weights["moving_mean"], layer.weights["moving_variance"]
    factor = 1 / np.sqrt(variance + np.float32(layer.get("epsilon", 1e-3)))
    factor = factor * layer.weights["gamma"] if "gamma" in layer.weights else factor
    shift = layer.weights.get("beta", np.float32(0)) - mean * factor
    return layer.g.add("Add", layer.g.add("Mul", layer.x, factor.astype(np.float32)), shift.astype(np.float32))


def layer_norm(layer: Layer) -> Any:
    g, x = layer.g, layer.x
    mean = g.add("ReduceMean", x, np.array([-1], np.int64), keepdims=1)
    centred = g.add("Sub", x, mean)
    variance = g.add("ReduceMean", g.add("Mul", centred, centred), np.array([-1], np.int64), keepdims=1)
    epsilon = np.array(layer.get("epsilon", 1e-3), np.float32)
    made = g.add("Div", centred, g.add("Sqrt", g.add("Add", variance, epsilon)))
    for name, op in (("gamma", "Mul"), ("beta", "Add")):
        made = g.add(op, made, layer.weights[name]) if name in layer.weights else made
    return made


def _merge(op: str) -> Callable[[Layer], Any]:
    def rule(layer: Layer) -> Any:
        total = layer.inputs[0]
        for other in layer.inputs[1:]:
            total = layer.g.add(op, total, other)
        return total

    return rule


def average(layer: Layer) -> Any:
    return layer.g.add("Mul", _merge("Add")(layer), np.array(1 / len(layer.inputs), np.float32))


def flatten(layer: Layer) -> Any:
    return layer.g.add("Flatten", layer.x, axis=1)


def reshape(layer: Layer) -> Any:
    wanted = [int(size) for size in layer.get("target_shape")]
    batch = dims_of(layer.x)[0]
    if isinstance(batch, int):
        return layer.g.reshape(layer.x, [batch, *wanted])
    return layer.g.add("Reshape", layer.x, np.array([0, *wanted], np.int64))


def zero_padding(layer: Layer) -> Any:
    rank = len(dims_of(layer.x)) - 2
    found = layer.get("padding", 1)
    pairs = found if isinstance(found, list) else [found] * rank
    if rank == 1 and isinstance(found, list):
        pairs = [found]
    pairs = [pair if isinstance(pair, list) else [pair, pair] for pair in pairs]
    return moves.pad(layer.g, layer.x, np.array([[0, 0], *pairs, [0, 0]]))


def cropping(layer: Layer) -> Any:
    pairs = [pair if isinstance(pair, list) else [pair, pair] for pair in layer.get("cropping")]
    starts = np.array([before for before, _ in pairs], np.int64)
    ends = np.array([-after if after else np.iinfo(np.int64).max for _, after in pairs], np.int64)
    return layer.g.add("Slice", layer.x, starts, ends, np.arange(1, len(pairs) + 1))


def up_sampling(layer: Layer) -> Any:
    """By whole factors, also where sizes are open."""
    g, x = layer.g, layer.x
    rank = len(dims_of(x)) - 2
    factors = _pair(layer.get("size", 2), rank)
    mode = layer.get("interpolation", "nearest")
    if mode not in ("nearest", "bilinear"):
        raise layer.refuse(f"its interpolation is '{mode}'")
    image = g.transpose(x, windows.channels_first(rank + 2))
    scales = np.array([1, 1, *factors], np.float32)
    places = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor", "mode": "nearest"}
    if mode == "bilinear":
        places = {"coordinate_transformation_mode": "half_pixel", "mode": "linear"}
    return g.transpose(g.add("Resize", image, None, scales, **places), windows.channels_last(rank + 2))


def embedding(layer: Layer) -> Any:
    return layer.g.add("Gather", layer.weights["embeddings"], layer.g.cast(layer.x, np.int64), axis=0)


def prelu(layer: Layer) -> Any:
    return elementwise.prelu(layer.g, layer.x, layer.weights["alpha"])


def relu(layer: Layer) -> Any:
    slope = float(layer.get("negative_slope", 0.0))
    if layer.get("threshold", 0.0):
        raise layer.refuse("it has a threshold")
    x = elementwise.leaky_relu(layer.g, layer.x, slope) if slope else elementwise.clip(layer.g, layer.x, 0, None)
    top = layer.get("max_value")
    return x if top is None else elementwise.clip(layer.g, x, None, float(top))


def _same(layer: Layer) -> Any:
    return layer.x


LAYERS: dict[str, Callable[[Layer], Any]] = {
    "Activation": lambda layer: layer.activate(layer.x),
    "ActivityRegularization": _same,
    "Add": _merge("Add"),
    "AlphaDropout": _same,
    "Average": average,
    "AveragePooling1D": _pool("Average", 1),
    "AveragePooling2D": _pool("Average", 2),
    "BatchNormalization": batch_norm,
    "BatchNormalizationV1": batch_norm,
    "Concatenate": lambda layer: moves.concatenate(layer.g, layer.inputs, int(layer.get("axis", -1))),
    "Conv1D": _conv(1),
    "Conv2D": _conv(2),
    "Conv2DTranspose": conv_transposed,
    "Conv3D": _conv(3),
    "Cropping2D": cropping,
    "Dense": dense,
    "DepthwiseConv2D": depthwise_conv,
    "Dropout": _same,
    "ELU": lambda layer: layer.g.add("Elu", layer.x, alpha=float(layer.get("alpha", 1.0))),
    "Embedding": embedding,
    "Flatten": flatten,
    "GaussianDropout": _same,
    "GaussianNoise": _same,
    "GlobalAveragePooling1D": _global("Mean"),
    "GlobalAveragePooling2D": _global("Mean"),
    "GlobalMaxPooling1D": _global("Max"),
    "GlobalMaxPooling2D": _global("Max"),
    "LayerNormalization": layer_norm,
    "LeakyReLU": lambda layer: elementwise.leaky_relu(
        layer.g, layer.x, layer.get("alpha", layer.get("negative_slope", 0.3))
    ),
    "MaxPooling1D": _pool("Max", 1),
    "MaxPooling2D": _pool("Max", 2),
    "Maximum": _merge("Max"),
    "Minimum": _merge("Min"),
    "Multiply": _merge("Mul"),
    "PReLU": prelu,
    "Permute": lambda layer: layer.g.transpose(layer.x, [0, *layer.get("dims")]),
    "ReLU": relu,
    "Rescaling": lambda layer: layer.g.add(
        "Add",
        layer.g.add("Mul", layer.x, np.array(layer.get("scale", 1.0), np.float32)),
        np.array(layer.get("offset", 0.0), np.float32),
    ),
    "Reshape": reshape,
    "SeparableConv2D": separable_conv,
    "Softmax": lambda layer: layer.g.add("Softmax", layer.x, axis=int(layer.get("axis", -1))),
    "SpatialDropout1D": _same,
    "SpatialDropout2D": _same,
    "Subtract": _merge("Sub"),
    "UpSampling1D": up_sampling,
    "UpSampling2D": up_sampling,
    "ZeroPadding1D": zero_padding,
    "ZeroPadding2D": zero_padding,
}
