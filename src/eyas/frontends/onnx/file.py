"""ONNX models without their weights: large tensors stay in the file, mapped, and the rest is a small ModelProto.

Parsing a 500 MB file with protobuf would hold it twice. Here the wire format is walked once and every large `raw_data`
is left out; the tensor that loses it says where in which file the bytes are, as ONNX's external data does.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError, Message
from onnx import numpy_helper

from eyas.errors import FrontendError
from eyas.program.dtypes import numpy_dtype
from eyas.program.literals import LARGEST_INLINE_BYTES

# Names of TensorProto.DataType values -> ours.
DTYPES = {
    "FLOAT": "f32",
    "DOUBLE": "f64",
    "FLOAT16": "f16",
    "BFLOAT16": "bf16",
    "BOOL": "bool",
    "COMPLEX64": "c64",
    "COMPLEX128": "c128",
    "FLOAT8E4M3FN": "f8e4m3fn",
    "FLOAT8E4M3FNUZ": "f8e4m3fnuz",
    "FLOAT8E5M2": "f8e5m2",
    "FLOAT8E5M2FNUZ": "f8e5m2fnuz",
    "FLOAT8E8M0": "f8e8m0",
    "FLOAT4E2M1": "f4e2m1",
    **{f"{'U' if sign == 'u' else ''}INT{bits}": f"{sign}{bits}" for sign in "iu" for bits in (2, 4, 8, 16, 32, 64)},
}

# Types that files pack; in memory each element has a byte.
_ELEMENTS_PER_BYTE = {"float4_e2m1fn": 2, "int4": 2, "uint4": 2, "int2": 4, "uint2": 4}

# Marks a tensor whose bytes are inside the model's own file.
_EMBEDDED = "<the model's own file>"

# Message -> field number -> message of that field, on the ways that lead to tensors (onnx.proto).
_MESSAGES = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor"},
    "function": {7: "node"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph"},
}
_RAW_DATA = 9


@dataclass
class OnnxModel:
    """A model whose large tensors hold no data; `reader` gives the bytes of one of them by name.

    A graph of an older opset is rewritten for a newer one; `written_opset` is the one that it came with, or 0.
    Where the graph was rewritten to hold other types, `true_types` has those of inputs and outputs, and `readers` reads
    what a large tensor holds now. `memory` is what walks of the graph share (`symbolic/memory.py`).
    """

    proto: onnx.ModelProto
    description: str
    directory: str | None = None
    file: mmap.mmap | None = None
    in_memory: dict[str, onnx.TensorProto] = field(default_factory=dict)
    true_types: dict[str, int] = field(default_factory=dict)
    readers: dict[str, Callable[[], np.ndarray]] = field(default_factory=dict)
    written_opset: int = 0
    memory: Any = None
    _maps: dict[str, mmap.mmap] = field(default_factory=dict)

    def check_data(self) -> None:
        """Looks whether all weights are there: nothing else that is said of a model without them would help."""
        for tensor in self.proto.graph.initializer:
            if tensor.data_location == onnx.TensorProto.EXTERNAL:
                self.reader(tensor)

    def reader(self, tensor: onnx.TensorProto) -> Callable[[], np.ndarray]:
        """A function that reads one tensor; checks now that the bytes exist."""
        dtype, shape = numpy_dtype(dtype_of(tensor.data_type)), tuple(tensor.dims)
        if tensor.name in self.readers:
            return self.readers[tensor.name]
        if tensor.name in self.in_memory:
            original = self.in_memory[tensor.name]
            return lambda: numpy_helper.to_array(original)
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            return lambda: numpy_helper.to_array(tensor)
        entries = {entry.key: entry.value for entry in tensor.external_data}
        data = self._map(tensor.name, entries.get("location", ""))
        offset, count = int(entries.get("offset", 0)), int(np.prod(shape, dtype=np.int64))
        packed = _ELEMENTS_PER_BYTE.get(dtype.name, 1)
        size = -(-count * dtype.itemsize // packed)
        if offset < 0 or offset + size > len(data):
            raise FrontendError(
                f"tensor '{tensor.name}' needs {size} bytes at {offset}, but '{entries['location']}' has {len(data)}"
            )
        if packed > 1:
            return lambda: numpy_helper.to_array(
                onnx.TensorProto(
                    dims=tensor.dims, data_type=tensor.data_type, raw_data=bytes(data[offset : offset + size])
                )
            )
        return lambda: np.frombuffer(data, dtype, count, offset).reshape(shape)

    def _map(self, tensor: str, location: str) -> mmap.mmap:
        if location == _EMBEDDED and self.file is not None:
            return self.file
        if location not in self._maps:
            if self.directory is None:
                raise FrontendError(f"tensor '{tensor}' is in the file '{location}'; pass the model's path instead")
            if os.path.isabs(location) or ".." in location.replace("\\", "/").split("/"):
                raise FrontendError(f"tensor '{tensor}' is in '{location}', which is outside the model's folder")
            path = os.path.join(self.directory, location)
            if not os.path.isfile(path):
                raise FrontendError(f"tensor '{tensor}' is in '{location}', which is not beside the model: '{path}'")
            self._maps[location] = map_file(path)
        return self._maps[location]


def open_model(model: str | os.PathLike[str] | onnx.ModelProto) -> OnnxModel:
    """A model from a path or a proto, without its large tensors' data."""
    if isinstance(model, onnx.ModelProto):
        return _from_proto(model)
    path = os.fspath(model)
    if not os.path.isfile(path):
        raise FrontendError(f"no such file: '{path}'")
    if os.path.getsize(path) == 0:
        raise FrontendError(f"'{path}' is empty")
    data = map_file(path)
    proto = onnx.ModelProto()
    try:
        with memoryview(data) as view:
            proto.ParseFromString(b"".join(_without_data(view, 0, len(view), "model")))
    except (DecodeError, ValueError, IndexError) as error:
        raise FrontendError(f"'{path}' is not an ONNX model: {_first_line(error)}") from None
    if not proto.HasField("graph") or not proto.opset_import:
        raise FrontendError(f"'{path}' is not an ONNX model: it has no graph or no opset")
    return OnnxModel(proto, os.path.basename(path), os.path.dirname(os.path.abspath(path)), data)


def dtype_of(data_type: int) -> str | None:
    """Our name of a TensorProto.DataType, or None when the type is not supported."""
    if data_type not in onnx.TensorProto.DataType.values():
        return None
    return DTYPES.get(onnx.TensorProto.DataType.Name(data_type))


def is_large(tensor: onnx.TensorProto) -> bool:
    """Whether the tensor is a parameter: known by name, not by value."""
    dtype = dtype_of(tensor.data_type)
    if dtype is None:
        return False
    return int(np.prod(tensor.dims, dtype=np.int64)) * numpy_dtype(dtype).itemsize > LARGEST_INLINE_BYTES


def map_file(path: str) -> mmap.mmap:
    """A file's bytes, read only when touched."""
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _from_proto(model: onnx.ModelProto) -> OnnxModel:
    proto = onnx.ModelProto()
    _copy_fields(model, proto, skip="graph")
    _copy_fields(model.graph, proto.graph, skip="initializer")
    in_memory: dict[str, onnx.TensorProto] = {}
    for tensor in model.graph.initializer:
        if is_large(tensor) and tensor.data_location != onnx.TensorProto.EXTERNAL:
            in_memory[tensor.name] = tensor
            proto.graph.initializer.add(name=tensor.name, dims=tensor.dims, data_type=tensor.data_type)
        else:
            proto.graph.initializer.add().CopyFrom(tensor)
    return OnnxModel(proto, model.graph.name or "ModelProto", in_memory=in_memory)


def _copy_fields(source: Message, target: Message, skip: str) -> None:
    for descriptor, value in source.ListFields():
        if descriptor.name == skip:
            continue
        if descriptor.is_repeated:
            getattr(target, descriptor.name).extend(value)
        elif descriptor.message_type:
            getattr(target, descriptor.name).CopyFrom(value)
        else:
            setattr(target, descriptor.name, value)


def _without_data(view: memoryview, start: int, end: int, message: str) -> list[bytes]:
    """The message's bytes without large raw data."""
    pieces: list[bytes] = []
    where = b""
    nested = _MESSAGES.get(message, {})
    for number, begin, body, stop in _fields(view, start, end):
        if message == "tensor" and number == _RAW_DATA and stop - body > LARGEST_INLINE_BYTES:
            where = _where(body, stop - body)
        elif number in nested and stop - body > LARGEST_INLINE_BYTES:
            inner = _without_data(view, body, stop, nested[number])
            pieces += [_varint(number << 3 | 2), _varint(sum(map(len, inner))), *inner]
        else:
            pieces.append(bytes(view[begin:stop]))
    # Of a field that is there twice the last counts: some files say of each tensor that it is in the file itself.
    return [*pieces, where] if where else pieces


def _fields(view: memoryview, position: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """(number, where the field begins, where its body begins, where it ends) of each field of a message."""
    while position < end:
        begin = position
        tag, position = _read_varint(view, position)
        kind = tag & 7
        body = position
        if kind == 0:
            _, position = _read_varint(view, position)
        elif kind == 1:
            position += 8
        elif kind == 2:
            size, body = _read_varint(view, position)
            position = body + size
        elif kind == 5:
            position += 4
        else:
            raise ValueError(f"wire type {kind} at byte {begin}")
        if position > end:
            raise ValueError(f"a field at byte {begin} ends after the file does")
        yield tag >> 3, begin, body, position


def _where(offset: int, size: int) -> bytes:
    """TensorProto fields that point at bytes of the model's own file: external_data (13), data_location (14)."""
    pieces = []
    for key, value in {"location": _EMBEDDED, "offset": str(offset), "length": str(size)}.items():
        entry = onnx.StringStringEntryProto(key=key, value=value).SerializeToString()
        pieces += [_varint(13 << 3 | 2), _varint(len(entry)), entry]
    return b"".join([*pieces, _varint(14 << 3), _varint(onnx.TensorProto.EXTERNAL)])


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(view: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = view[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 63:
            raise ValueError(f"a number at byte {position} does not end")


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
