"""Converts graph models of TensorFlow.js to ONNX, for one input shape: what MobileNets for images are made of.

Sizes are computed here, so that only arithmetic on pixels is left. Tensors keep TensorFlow's order, channels last;
convolutions stand between transposes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

_TO_NCHW, _TO_NHWC = [0, 3, 1, 2], [0, 2, 3, 1]
_DTYPES = {"DT_FLOAT": np.float32, "DT_INT32": np.int32, "DT_INT64": np.int64, "DT_UINT8": np.uint8}
_ARITHMETIC = {
    "Add": ("Add", np.add),
    "AddV2": ("Add", np.add),
    "BiasAdd": ("Add", np.add),
    "Sub": ("Sub", np.subtract),
    "Mul": ("Mul", np.multiply),
    "Maximum": ("Max", np.maximum),
}


@dataclass(frozen=True)
class _Tensor:
    """A value of the ONNX graph."""

    name: str
    shape: tuple[int, ...]
    dtype: Any


def convert(topology: Path, shards: Sequence[Path], shape: Sequence[int], outputs: Sequence[str]) -> onnx.ModelProto:
    """`topology` is model.json, `shards` its files of weights in order, `shape` that of the one input."""
    description = json.loads(topology.read_text())
    conversion = _Conversion(_weights(description, b"".join(path.read_bytes() for path in shards)), tuple(shape))
    conversion.visit(description["modelTopology"]["node"])
    return conversion.model(outputs)


def _weights(description: dict, data: bytes) -> dict[str, np.ndarray]:
    weights, position = {}, 0
    for entry in (entry for group in description["weightsManifest"] for entry in group["weights"]):
        assert "quantization" not in entry, entry["name"]
        count = int(np.prod(entry["shape"], dtype=np.int64))
        array = np.frombuffer(data, entry["dtype"], count, position).reshape(entry["shape"])
        weights[entry["name"]] = array
        position += array.nbytes
    assert position == len(data), "the shards hold more than the weights"
    return weights


class _Conversion:
    def __init__(self, weights: dict[str, np.ndarray], shape: tuple[int, ...]):
        self.weights, self.input_shape = weights, shape
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.values: dict[str, _Tensor | np.ndarray] = {}

    def visit(self, nodes: list[dict]) -> None:
        """Visits nodes after those that they need, whatever their order in the file."""
        waiting = {node["name"]: node for node in nodes}
        while waiting:
            ready = [
                node for node in waiting.values() if all(_source(name) not in waiting for name in node.get("input", []))
            ]
            assert ready, "the graph has a cycle"
            for node in ready:
                del waiting[node["name"]]
                self._node(node)

    def model(self, outputs: Sequence[str]) -> onnx.ModelProto:
        results = []
        for name in outputs:
            value = self.values[name]
            assert isinstance(value, _Tensor), name
            self.nodes.append(helper.make_node("Identity", [value.name], [f"{name}:0"]))
            results.append(helper.make_tensor_value_info(f"{name}:0", _onnx_type(value.dtype), value.shape))
        graph = helper.make_graph(self.nodes, "converted", self.inputs, results, self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        onnx.checker.check_model(model)
        return model

    def _node(self, node: dict) -> None:
        op, name = node["op"], node["name"]
        given = [self.values[_source(one)] for one in node.get("input", [])]
        attributes = {key: _attribute(value) for key, value in node.get("attr", {}).items()}
        handler = getattr(self, f"_{op.lstrip('_').lower()}", None)
        if op in _ARITHMETIC:
            result = self._arithmetic(op, *given)
        elif handler is not None:
            result = handler(
                *given, **({"name": name} if op in ("Const", "Placeholder") else {}), attributes=attributes
            )
        else:
            raise NotImplementedError(f"{op} at {name}")
        self.values[name] = result

    # What makes nodes.

    def _emit(
        self, op: str, inputs: Sequence[Any], shape: Sequence[int], dtype: Any = None, **attributes: Any
    ) -> _Tensor:
        names = [self._name(value) for value in inputs]
        result = _Tensor(f"{op}_{len(self.nodes)}", tuple(int(size) for size in shape), dtype or inputs[0].dtype)
        self.nodes.append(helper.make_node(op, names, [result.name], name=result.name, **attributes))
        return result

    def _name(self, value: _Tensor | np.ndarray | None) -> str:
        if value is None:
            return ""
        if isinstance(value, _Tensor):
            return value.name
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(value), f"c_{len(self.initializers)}"))
        return self.initializers[-1].name

    def _reshape(self, x: _Tensor, shape: Sequence[int]) -> _Tensor:
        return self._emit("Reshape", [x, np.array(shape, np.int64)], shape)

    def _transpose(self, x: _Tensor, order: Sequence[int]) -> _Tensor:
        return self._emit("Transpose", [x], [x.shape[axis] for axis in order], perm=list(order))

    def _padded(self, x: _Tensor, pairs: np.ndarray) -> _Tensor:
        if not pairs.any():
            return x
        shape = [size + before + after for size, (before, after) in zip(x.shape, pairs, strict=True)]
        return self._emit("Pad", [x, pairs.T.reshape(-1).astype(np.int64)], shape)

    # One method for each op, by its name.

    def _placeholder(self, *, name: str, attributes: dict) -> _Tensor:
        dtype = _DTYPES[attributes["dtype"]]
        self.inputs.append(helper.make_tensor_value_info(f"{name}:0", _onnx_type(dtype), self.input_shape))
        return _Tensor(f"{name}:0", self.input_shape, np.dtype(dtype))

    def _const(self, *, name: str, attributes: dict) -> np.ndarray:
        return self.weights[name]

    def _shape(self, x: _Tensor, *, attributes: dict) -> np.ndarray:
        return np.array(x.shape, np.int32)

    def _cast(self, x: _Tensor | np.ndarray, *, attributes: dict) -> _Tensor | np.ndarray:
        dtype = np.dtype(_DTYPES[attributes["DstT"]])
        if isinstance(x, np.ndarray):
            return x.astype(dtype)
        return self._emit("Cast", [x], x.shape, dtype, to=_onnx_type(dtype))

    def _squeeze(self, x: _Tensor, *, attributes: dict) -> _Tensor:
        axes = [int(axis) for axis in attributes["squeeze_dims"]["i"]]
        return self._reshape(x, [size for axis, size in enumerate(x.shape) if axis not in axes])

    def _expanddims(self, x: _Tensor, axis: np.ndarray, *, attributes: dict) -> _Tensor:
        shape = list(x.shape)
        shape.insert(int(axis), 1)
        return self._reshape(x, shape)

    def _stridedslice(self, x: np.ndarray, begin, end, step, *, attributes: dict) -> np.ndarray:
        assert isinstance(x, np.ndarray) and x.ndim == 1
        piece = x[int(begin[0]) : int(end[0]) : int(step[0])]
        return piece[0] if int(attributes["shrink_axis_mask"]) else piece

    def _pack(self, *parts: np.ndarray, attributes: dict) -> np.ndarray:
        return np.stack(parts, int(attributes["axis"]))

    def _slice(self, x: _Tensor, begin: np.ndarray, size: np.ndarray, *, attributes: dict) -> _Tensor:
        limits = [
            length if count < 0 else start + count for start, count, length in zip(begin, size, x.shape, strict=True)
        ]
        shape = np.array(limits) - begin
        return self._emit("Slice", [x, begin.astype(np.int64), np.array(limits, np.int64)], shape)

    def _arithmetic(self, op: str, left: Any, right: Any) -> Any:
        name, compute = _ARITHMETIC[op]
        if isinstance(left, _Tensor) or isinstance(right, _Tensor):
            dtype = left.dtype if isinstance(left, _Tensor) else right.dtype
            return self._emit(name, [left, right], np.broadcast_shapes(left.shape, right.shape), dtype)
        return np.asarray(compute(left, right))

    def _addn(self, *parts: _Tensor, attributes: dict) -> _Tensor:
        return self._emit("Sum", parts, parts[0].shape)

    def _relu(self, x: _Tensor, *, attributes: dict) -> _Tensor:
        return self._emit("Relu", [x], x.shape)

    def _relu6(self, x: _Tensor, *, attributes: dict) -> _Tensor:
        return self._emit("Clip", [x, np.float32(0).reshape(()), np.float32(6).reshape(())], x.shape)

    def _pad(self, x: _Tensor, pairs: np.ndarray, *, attributes: dict) -> _Tensor:
        return self._padded(x, pairs)

    def _concatv2(self, *parts: Any, attributes: dict) -> _Tensor:
        *tensors, axis = parts
        shape = list(tensors[0].shape)
        shape[int(axis)] = sum(tensor.shape[int(axis)] for tensor in tensors)
        return self._emit("Concat", tensors, shape, axis=int(axis))

    def _argmax(self, x: _Tensor, axis: np.ndarray, *, attributes: dict) -> _Tensor:
        shape = [size for place, size in enumerate(x.shape) if place != int(axis) % len(x.shape)]
        return self._emit("ArgMax", [x], shape, np.dtype(np.int64), axis=int(axis), keepdims=0)

    def _resizebilinear(self, x: _Tensor, size: np.ndarray, *, attributes: dict) -> _Tensor:
        assert attributes["align_corners"]
        batch, height, width, channels = x.shape
        if tuple(size) == (height, width):
            return x
        image = self._transpose(x, _TO_NCHW)
        shape = [batch, channels, *size]
        options = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
        resized = self._emit("Resize", [image, None, None, np.array(shape, np.int64)], shape, **options)
        return self._transpose(resized, _TO_NHWC)

    def _avgpool(self, x: _Tensor, *, attributes: dict) -> _Tensor:
        assert attributes["padding"] == "VALID"
        window, strides = _spatial(attributes["ksize"]), _spatial(attributes["strides"])
        image = self._transpose(x, _TO_NCHW)
        sizes = [(size - w) // s + 1 for size, w, s in zip(x.shape[1:3], window, strides, strict=True)]
        pooled = self._emit("AveragePool", [image], [*image.shape[:2], *sizes], kernel_shape=window, strides=strides)
        return self._transpose(pooled, _TO_NHWC)

    def _conv2d(self, x: _Tensor, filters: np.ndarray, bias: Any = None, *, attributes: dict) -> _Tensor:
        return self._convolution(x, filters.transpose(3, 2, 0, 1), 1, bias, attributes)

    _fusedconv2d = _conv2d

    def _depthwiseconv2dnative(self, x: _Tensor, filters: np.ndarray, bias: Any = None, *, attributes: dict) -> _Tensor:
        height, width, channels, multiplier = filters.shape
        kernel = filters.transpose(2, 3, 0, 1).reshape(channels * multiplier, 1, height, width)
        return self._convolution(x, kernel, channels, bias, attributes)

    _fuseddepthwiseconv2dnative = _depthwiseconv2dnative

    def _convolution(self, x: _Tensor, kernel: np.ndarray, groups: int, bias: Any, attributes: dict) -> _Tensor:
        strides, dilations = _spatial(attributes["strides"]), _spatial(attributes.get("dilations", {"i": [1] * 4}))
        pads, sizes = [], []
        for size, window, stride, dilation in zip(x.shape[1:3], kernel.shape[2:], strides, dilations, strict=True):
            reach = (window - 1) * dilation + 1
            steps = -(-size // stride) if attributes["padding"] == "SAME" else (size - reach) // stride + 1
            pads.append(max(0, (steps - 1) * stride + reach - size) if attributes["padding"] == "SAME" else 0)
            sizes.append(steps)
        given = [self._transpose(x, _TO_NCHW), kernel, *([] if bias is None else [bias])]
        made = self._emit(
            "Conv",
            given,
            [x.shape[0], len(kernel), *sizes],
            group=groups,
            strides=strides,
            dilations=dilations,
            pads=[*(pad // 2 for pad in pads), *(pad - pad // 2 for pad in pads)],
        )
        result = self._transpose(made, _TO_NHWC)
        for fused in attributes.get("fused_ops", {}).get("s", [])[1:]:
            result = getattr(self, f"_{base64.b64decode(fused).decode().lower()}")(result, attributes={})
        return result

    def _spacetobatchnd(self, x: _Tensor, block: np.ndarray, paddings: np.ndarray, *, attributes: dict) -> _Tensor:
        x = self._padded(x, np.concatenate([[[0, 0]], paddings, [[0, 0]]]))
        (batch, height, width, channels), (rows, columns) = x.shape, map(int, block)
        split = self._reshape(x, [batch, height // rows, rows, width // columns, columns, channels])
        moved = self._transpose(split, [2, 4, 0, 1, 3, 5])
        return self._reshape(moved, [batch * rows * columns, height // rows, width // columns, channels])

    def _batchtospacend(self, x: _Tensor, block: np.ndarray, crops: np.ndarray, *, attributes: dict) -> _Tensor:
        (batch, height, width, channels), (rows, columns) = x.shape, map(int, block)
        batch //= rows * columns
        split = self._reshape(x, [rows, columns, batch, height, width, channels])
        joined = self._reshape(
            self._transpose(split, [2, 3, 0, 4, 1, 5]), [batch, height * rows, width * columns, channels]
        )
        begin = np.array([0, crops[0][0], crops[1][0], 0])
        size = np.array([batch, height * rows - crops[0].sum(), width * columns - crops[1].sum(), channels])
        return self._slice(joined, begin, size, attributes={})


def _source(name: str) -> str:
    assert not name.startswith("^"), name
    return name.partition(":")[0]


def _attribute(value: dict) -> Any:
    """An attribute as JSON has it; strings are in base64."""
    ((kind, content),) = value.items() if value else (("none", None),)
    return base64.b64decode(content).decode() if kind == "s" else content


def _spatial(numbers: dict) -> list[int]:
    batch, height, width, channels = (int(number) for number in numbers["i"])
    assert batch == channels == 1
    return [height, width]


def _onnx_type(dtype: Any) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
