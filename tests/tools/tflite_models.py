"""Writes small TFLite files: tensors, operators, subgraphs. Tests compile them and compare with LiteRT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

KINDS = {
    "FLOAT32": np.float32,
    "FLOAT16": np.float16,
    "FLOAT64": np.float64,
    "INT4": np.int8,
    "INT8": np.int8,
    "UINT8": np.uint8,
    "INT16": np.int16,
    "UINT16": np.uint16,
    "INT32": np.int32,
    "UINT32": np.uint32,
    "INT64": np.int64,
    "BOOL": np.bool_,
    "COMPLEX64": np.complex64,
}
# Operators whose options do not have their name.
_TABLES = {
    "ATAN2": "ATan2",
    "AVERAGE_POOL_2D": "Pool2D",
    "BATCH_MATMUL": "BatchMatMul",
    "BATCH_TO_SPACE_ND": "BatchToSpaceND",
    "CONV_3D_TRANSPOSE": "Conv3D",
    "L2_NORMALIZATION": "L2Norm",
    "L2_POOL_2D": "Pool2D",
    "LSTM": "LSTM",
    "MAXIMUM": "MaximumMinimum",
    "MAX_POOL_2D": "Pool2D",
    "MEAN": "Reducer",
    "MINIMUM": "MaximumMinimum",
    "REDUCE_ALL": "Reducer",
    "REDUCE_ANY": "Reducer",
    "REDUCE_MAX": "Reducer",
    "REDUCE_MIN": "Reducer",
    "REDUCE_PROD": "Reducer",
    "RNN": "RNN",
    "SPACE_TO_BATCH_ND": "SpaceToBatchND",
    "SUM": "Reducer",
    "SVDF": "SVDF",
    "TOPK_V2": "TopKV2",
    "BIDIRECTIONAL_SEQUENCE_LSTM": "BidirectionalSequenceLSTM",
    "BIDIRECTIONAL_SEQUENCE_RNN": "BidirectionalSequenceRNN",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "UnidirectionalSequenceLSTM",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNN",
}
_VERSIONS = {"BROADCAST_TO": 2}
_NAMES = {np.dtype(value): key for key, value in KINDS.items()}  # of int8 the later one, INT8


@dataclass(frozen=True)
class Tensor:
    """`scale` and `zero` are numbers, or vectors along `axis`."""

    shape: tuple[int, ...]
    kind: str = "FLOAT32"
    data: np.ndarray | None = None
    scale: Any = None
    zero: Any = 0
    axis: int = 0
    variable: bool = False
    signature: tuple[int, ...] | None = None

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(KINDS[self.kind])


@dataclass
class Graph:
    """One subgraph: tensors by index, operators in order."""

    tensors: list[Tensor] = field(default_factory=list)
    operators: list[tuple[str, Sequence[int], Sequence[int], Mapping[str, Any], bytes]] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)

    def tensor(self, shape: Sequence[int], kind: str = "FLOAT32", **more: Any) -> int:
        self.tensors.append(Tensor(tuple(shape), kind, **more))
        return len(self.tensors) - 1

    def input(self, shape: Sequence[int], kind: str = "FLOAT32", **more: Any) -> int:
        self.inputs.append(self.tensor(shape, kind, **more))
        return self.inputs[-1]

    def constant(self, array: Any, kind: str | None = None, **more: Any) -> int:
        array = np.asarray(array)
        return self.tensor(array.shape, kind or _NAMES[array.dtype], data=array, **more)

    def op(self, name: str, inputs: Sequence[int], outputs: Sequence[int], custom: bytes = b"", **options: Any) -> None:
        self.operators.append((name, list(inputs), list(outputs), options, custom))

    def output(self, *indices: int) -> None:
        self.outputs += indices


def write(*graphs: Graph, signatures: Mapping[str, int] | None = None) -> bytes:
    """The bytes of a file with these subgraphs; `signatures` gives some of them names."""
    import flatbuffers
    import tflite

    builder = flatbuffers.Builder(1024)
    codes: dict[str, int] = {}
    buffers: list[bytes] = [b""]
    made = [_graph(builder, graph, codes, buffers) for graph in graphs]
    offsets = []
    for data in buffers:
        vector = builder.CreateNumpyVector(np.frombuffer(data, np.uint8)) if data else None
        offsets.append(_table(builder, "Buffer", {"Data": vector} if data else {}))
    code_tables = []
    for name in codes:
        is_custom = name.startswith("CUSTOM:")
        number = getattr(tflite.BuiltinOperator, "CUSTOM" if is_custom else name)
        custom = builder.CreateString(name.removeprefix("CUSTOM:")) if is_custom else None
        fields = {"DeprecatedBuiltinCode": min(number, 127), "BuiltinCode": number, "Version": _VERSIONS.get(name, 1)}
        code_tables.append(_table(builder, "OperatorCode", fields | ({"CustomCode": custom} if is_custom else {})))
    entries = []
    for key, index in (signatures or {}).items():
        maps = []
        for what, chosen in (("in", graphs[index].inputs), ("out", graphs[index].outputs)):
            pairs = []
            for place, tensor in enumerate(chosen):
                name = builder.CreateString(f"{what}{place}")
                pairs.append(_table(builder, "TensorMap", {"Name": name, "TensorIndex": tensor}))
            maps.append(_offsets(builder, pairs))
        label = builder.CreateString(key)
        fields = {"Inputs": maps[0], "Outputs": maps[1], "SignatureKey": label, "SubgraphIndex": index}
        entries.append(_table(builder, "SignatureDef", fields))
    fields = {
        "Version": 3,
        "OperatorCodes": _offsets(builder, code_tables),
        "Subgraphs": _offsets(builder, made),
        "Buffers": _offsets(builder, offsets),
    }
    if entries:
        fields["SignatureDefs"] = _offsets(builder, entries)
    builder.Finish(_table(builder, "Model", fields), b"TFL3")
    return bytes(builder.Output())


def _graph(builder: Any, graph: Graph, codes: dict[str, int], buffers: list[bytes]) -> int:
    import tflite

    tensors = [_tensor(builder, index, tensor, buffers) for index, tensor in enumerate(graph.tensors)]
    operators = []
    for name, inputs, outputs, options, custom in graph.operators:
        options = dict(options)
        inside = options.pop("Intermediates", [])
        table = _options_of(name)
        fields: dict[str, Any] = {
            "OpcodeIndex": codes.setdefault(name, len(codes)),
            "Inputs": builder.CreateNumpyVector(np.array(inputs, np.int32)),
            "Outputs": builder.CreateNumpyVector(np.array(outputs, np.int32)),
        }
        if table:
            fields["BuiltinOptions"] = _table(builder, table, _with_vectors(builder, options))
            if hasattr(tflite.BuiltinOptions, table):
                fields["BuiltinOptionsType"] = getattr(tflite.BuiltinOptions, table)
            else:
                fields["BuiltinOptions2"] = fields.pop("BuiltinOptions")
                fields["BuiltinOptions2Type"] = getattr(tflite.BuiltinOptions2, table)
        if inside:
            fields["Intermediates"] = builder.CreateNumpyVector(np.array(inside, np.int32))
        if custom:
            fields["CustomOptions"] = builder.CreateNumpyVector(np.frombuffer(custom, np.uint8))
        operators.append(_table(builder, "Operator", fields))
    fields = {
        "Tensors": _offsets(builder, tensors),
        "Inputs": builder.CreateNumpyVector(np.array(graph.inputs, np.int32)),
        "Outputs": builder.CreateNumpyVector(np.array(graph.outputs, np.int32)),
        "Operators": _offsets(builder, operators),
    }
    return _table(builder, "SubGraph", fields)


def _options_of(name: str) -> str:
    """The table of an operator's options; empty where it has none."""
    import tflite

    table = _TABLES.get(name, "".join(part.title() for part in name.split("_"))) + "Options"
    return table if hasattr(tflite, table) else ""


def _tensor(builder: Any, index: int, tensor: Tensor, buffers: list[bytes]) -> int:
    import tflite

    fields: dict[str, Any] = {
        "Shape": builder.CreateNumpyVector(np.array(tensor.shape, np.int32)),
        "Type": getattr(tflite.TensorType, tensor.kind),
        "Buffer": 0,
        "Name": builder.CreateString(f"t{index}"),
    }
    if tensor.data is not None:
        fields["Buffer"] = len(buffers)
        data = np.ascontiguousarray(tensor.data, tensor.dtype).reshape(-1)
        if tensor.kind == "INT4":
            pairs = np.resize(data, -(-data.size // 2) * 2).view(np.uint8).reshape(-1, 2)
            data = (pairs[:, 0] & 15) | (pairs[:, 1] << 4)
        buffers.append(data.tobytes())
    if tensor.scale is not None:
        scale = np.atleast_1d(np.asarray(tensor.scale, np.float32))
        zero = np.broadcast_to(np.asarray(tensor.zero, np.int64), scale.shape)
        parts = {
            "Scale": builder.CreateNumpyVector(scale),
            "ZeroPoint": builder.CreateNumpyVector(np.ascontiguousarray(zero)),
            "QuantizedDimension": tensor.axis,
        }
        fields["Quantization"] = _table(builder, "QuantizationParameters", parts)
    if tensor.variable:
        fields["IsVariable"] = True
    if tensor.signature is not None:
        fields["ShapeSignature"] = builder.CreateNumpyVector(np.array(tensor.signature, np.int32))
    return _table(builder, "Tensor", fields)


def _with_vectors(builder: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: builder.CreateNumpyVector(np.array(value, np.int32))
        if isinstance(value, (list, tuple))
        else builder.CreateString(value)
        if isinstance(value, str)
        else value
        for name, value in options.items()
    }


def _table(builder: Any, name: str, fields: Mapping[str, Any]) -> int:
    import tflite

    module = getattr(tflite, name)
    find = (
        (lambda key: getattr(tflite, key))
        if not hasattr(module, f"{name}Start")
        else (lambda key: getattr(module, key))
    )
    find(f"{name}Start")(builder)
    for key, value in fields.items():
        find(f"{name}Add{key}")(builder, value)
    return find(f"{name}End")(builder)


def _offsets(builder: Any, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()
