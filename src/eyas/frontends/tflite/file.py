"""Reads a `.tflite` file into plain records; weights stay in the file, mapped.

Nothing in the file is trusted: offsets, sizes and indices are checked here, and what does not fit is an error that says
what is wrong with the file.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import ml_dtypes
import numpy as np

from eyas.errors import FrontendError

IDENTIFIER = b"TFL3"
"""What a file has at byte 4."""

# Names of the schema's TensorType -> NumPy's.
_DTYPES = {
    "FLOAT32": np.float32,
    "FLOAT16": np.float16,
    "FLOAT64": np.float64,
    "BFLOAT16": ml_dtypes.bfloat16,
    "INT4": np.int8,  # packed in the file, a byte each here
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "BOOL": np.bool_,
    "COMPLEX64": np.complex64,
}
_LONGEST_REASON = 300  # characters: what is in a damaged file can be anything
_READ_ERRORS = (struct.error, IndexError, ValueError, TypeError, AttributeError, OverflowError, KeyError, MemoryError)


@dataclass(frozen=True)
class Quantization:
    """real = scale * (stored - zero), per tensor (one scale) or per channel of `axis`."""

    scale: np.ndarray
    zero: np.ndarray
    axis: int

    @property
    def is_per_tensor(self) -> bool:
        return self.scale.size == 1

    def equals(self, other: Quantization | None) -> bool:
        return (
            other is not None
            and np.array_equal(self.scale, other.scale)
            and np.array_equal(self.zero, other.zero)
            and (self.is_per_tensor or self.axis == other.axis)
        )


@dataclass(frozen=True)
class TensorRecord:
    """A tensor as the file describes it. `signature` has -1 where a size is open; `read` is None without data."""

    name: str
    kind: str
    shape: tuple[int, ...]
    signature: tuple[int, ...]
    quantization: Quantization | None
    is_variable: bool
    read: Callable[[], np.ndarray] | None

    @property
    def dtype(self) -> np.dtype:
        if self.kind not in _DTYPES:
            raise FrontendError(f"tensor '{self.name}' has element type {self.kind}, which is not supported")
        return np.dtype(_DTYPES[self.kind])


@dataclass(frozen=True)
class OperatorRecord:
    """An operator: its name, of a custom one `CUSTOM:Name`; tensors by index, -1 for one that is left out."""

    index: int
    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Any = None
    custom_options: bytes = b""

    def get(self, name: str, default: Any) -> Any:
        """An option by its name in the schema; the default where the operator has no such one."""
        return getattr(self.options, name)() if hasattr(self.options, name) else default

    def numbers(self, name: str) -> list[int] | None:
        """An option that is a vector; None when it is left out."""
        if self.options is None or getattr(self.options, f"{name}IsNone")():
            return None
        return [int(number) for number in getattr(self.options, f"{name}AsNumpy")()]


@dataclass(frozen=True)
class SubgraphRecord:
    """A graph of operators in an order in which they can run."""

    name: str
    tensors: tuple[TensorRecord, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[OperatorRecord, ...]


@dataclass(frozen=True)
class SignatureRecord:
    """An entry point: a name, a subgraph, and names for its inputs and outputs, by tensor index."""

    key: str
    subgraph: int
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]


@dataclass(frozen=True)
class TfliteFile:
    """A whole model."""

    description: str
    subgraphs: tuple[SubgraphRecord, ...]
    signatures: tuple[SignatureRecord, ...] = field(default=())


def open_file(path: str | os.PathLike[str]) -> TfliteFile:
    """Reads a file; raises FrontendError for one that is no TFLite model."""
    path = os.fspath(path)
    if not os.path.isfile(path):
        raise FrontendError(f"no such file: '{path}'")
    if os.path.getsize(path) < 8:
        raise FrontendError(f"'{path}' is not a TFLite model: it has {os.path.getsize(path)} bytes")
    return read(np.memmap(path, np.uint8, "r"), os.path.basename(path))


def read(data: np.ndarray, description: str) -> TfliteFile:
    """Reads a model from bytes."""
    if bytes(data[4:8]) != IDENTIFIER:
        raise FrontendError(f"{description} is not a TFLite model: it has no '{IDENTIFIER.decode()}' at byte 4")
    try:
        return _Reader(data, description).model()
    except FrontendError:
        raise
    except _READ_ERRORS as error:
        detail = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FrontendError(f"{description} is not a TFLite model, or is damaged: {detail}") from None


def _schema() -> Any:
    try:
        import tflite  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise FrontendError("TFLite models need the schema package: pip install 'eyas[tflite]'") from None
    return tflite


class _Reader:
    """Walks the flatbuffer once."""

    def __init__(self, data: np.ndarray, description: str):
        self._schema = _schema()
        self._data, self._description = data, description
        self._model = self._schema.Model.GetRootAsModel(memoryview(cast(Any, data)), 0)

    def model(self) -> TfliteFile:
        model = self._model
        if model.Version() != 3:
            raise self._wrong(f"it has version {model.Version()} of the format; 3 is known")
        subgraphs = tuple(self._subgraph(model.Subgraphs(i)) for i in range(self._count(model.SubgraphsLength())))
        if not subgraphs:
            raise self._wrong("it has no graph")
        found = [model.SignatureDefs(i) for i in range(self._count(model.SignatureDefsLength()))]
        return TfliteFile(self._description, subgraphs, tuple(self._signature(one, subgraphs) for one in found))

    def _wrong(self, what: str) -> FrontendError:
        shown = what if len(what) <= _LONGEST_REASON else f"{what[:_LONGEST_REASON]}…"
        return FrontendError(f"{self._description} is not a TFLite model, or is damaged: {shown}")

    def _count(self, count: int) -> int:
        """A length of a vector of tables: each takes at least four bytes."""
        if not 0 <= count <= len(self._data) // 4:
            raise self._wrong(f"a list has {count} entries, more than the file has room for")
        return count

    @cached_property
    def _operator_names(self) -> list[str]:
        codes = {value: key for key, value in vars(self._schema.BuiltinOperator).items() if isinstance(value, int)}
        names = []
        for i in range(self._count(self._model.OperatorCodesLength())):
            code = self._model.OperatorCodes(i)
            number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
            name = codes.get(number, f"operator number {number}")
            names.append(f"CUSTOM:{_text(code.CustomCode())}" if name == "CUSTOM" else name)
        return names

    @cached_property
    def _kinds(self) -> dict[int, str]:
        return {value: key for key, value in vars(self._schema.TensorType).items() if isinstance(value, int)}

    def _subgraph(self, graph: Any) -> SubgraphRecord:
        tensors = tuple(self._tensor(graph.Tensors(i)) for i in range(self._count(graph.TensorsLength())))
        operators = tuple(
            self._operator(i, graph.Operators(i), len(tensors)) for i in range(self._count(graph.OperatorsLength()))
        )
        inputs = self._indices(graph.InputsAsNumpy(), graph.InputsLength(), len(tensors), 0)
        outputs = self._indices(graph.OutputsAsNumpy(), graph.OutputsLength(), len(tensors), 0)
        return SubgraphRecord(_text(graph.Name()), _signed_weights(tensors, operators), inputs, outputs, operators)

    def _indices(self, numbers: Any, count: int, tensors: int, least: int) -> tuple[int, ...]:
        found = tuple(int(number) for number in numbers) if count else ()
        for index in found:
            if not least <= index < tensors:
                raise self._wrong(f"tensor {index} is named, but there are {tensors}")
        return found

    def _operator(self, index: int, op: Any, tensors: int) -> OperatorRecord:
        names = self._operator_names
        if not 0 <= op.OpcodeIndex() < len(names):
            raise self._wrong(f"operator {index} has code {op.OpcodeIndex()}, but there are {len(names)}")
        inputs = self._indices(op.InputsAsNumpy(), op.InputsLength(), tensors, -1)
        outputs = self._indices(op.OutputsAsNumpy(), op.OutputsLength(), tensors, 0)
        options = self._options(op.BuiltinOptionsType(), op.BuiltinOptions(), "BuiltinOptions")
        if options is None:
            options = self._options(op.BuiltinOptions2Type(), op.BuiltinOptions2(), "BuiltinOptions2")
        custom = bytes(op.CustomOptionsAsNumpy()) if op.CustomOptionsLength() else b""
        if op.LargeCustomOptionsOffset() > 1:
            custom = bytes(self._bytes(op.LargeCustomOptionsOffset(), op.LargeCustomOptionsSize(), f"operator {index}"))
        return OperatorRecord(index, names[op.OpcodeIndex()], inputs, outputs, options, custom)

    def _options(self, kind: int, table: Any, union: str) -> Any:
        """The table of an operator's options, as the class of the schema that reads it."""
        if not kind or table is None:
            return None
        kinds = {value: key for key, value in vars(getattr(self._schema, union)).items() if isinstance(value, int)}
        if kind not in kinds or not hasattr(self._schema, kinds[kind]):
            return None
        options = getattr(self._schema, kinds[kind])()
        options.Init(table.Bytes, table.Pos)
        return options

    def _tensor(self, tensor: Any) -> TensorRecord:
        name = _text(tensor.Name())
        shape = tuple(int(size) for size in tensor.ShapeAsNumpy()) if tensor.ShapeLength() else ()
        signature = (
            tuple(int(size) for size in tensor.ShapeSignatureAsNumpy()) if tensor.ShapeSignatureLength() else shape
        )
        if len(signature) != len(shape) or min(shape, default=0) < -1 or min(signature, default=0) < -1:
            raise self._wrong(f"tensor '{name}' has shape {shape} and signature {signature}")
        kind = self._kinds.get(tensor.Type(), f"number {tensor.Type()}")
        quantization = self._quantization(name, tensor.Quantization(), shape)
        return TensorRecord(
            name,
            kind,
            shape,
            signature,
            quantization,
            bool(tensor.IsVariable()),
            self._values(name, kind, shape, tensor),
        )

    def _quantization(self, name: str, found: Any, shape: tuple[int, ...]) -> Quantization | None:
        if found is None or not found.ScaleLength():
            return None
        scale = np.array(found.ScaleAsNumpy(), np.float32)
        zero = np.array(found.ZeroPointAsNumpy(), np.int64) if found.ZeroPointLength() else np.zeros(1, np.int64)
        axis = found.QuantizedDimension()
        if scale.size > 1 and not (0 <= axis < len(shape) and scale.size == shape[axis]):
            raise self._wrong(f"tensor '{name}' of shape {shape} has {scale.size} scales on axis {axis}")
        if zero.size not in (1, scale.size) or not np.isfinite(scale).all() or (scale < 0).any():
            raise self._wrong(f"tensor '{name}' has bad scales or {zero.size} zero points for {scale.size} scales")
        return Quantization(scale, np.broadcast_to(zero, scale.shape), axis)

    def _values(self, name: str, kind: str, shape: tuple[int, ...], tensor: Any) -> Callable[[], np.ndarray] | None:
        """A reader of a constant; its bytes are checked now."""
        if not 0 <= tensor.Buffer() < self._model.BuffersLength():
            raise self._wrong(
                f"tensor '{name}' is in buffer {tensor.Buffer()}; there are {self._model.BuffersLength()}"
            )
        buffer = self._model.Buffers(tensor.Buffer())
        if buffer.Offset() > 1:
            # Files of more than 2 GiB have weights behind the flatbuffer.
            data = self._bytes(buffer.Offset(), buffer.Size(), f"tensor '{name}'")
        elif buffer.DataLength():
            data = np.asarray(buffer.DataAsNumpy())
            if len(data) != buffer.DataLength():
                raise self._wrong(f"the data of tensor '{name}' ends after the file does")
        else:
            return None
        if kind not in _DTYPES:
            return None
        if min(shape, default=0) < 0:
            raise self._wrong(f"constant '{name}' has shape {shape}")
        if (sparsity := tensor.Sparsity()) is not None:
            from eyas.frontends.tflite.sparse import densify

            return lambda: densify(name, _unpack(data, kind, -1), shape, sparsity, self._schema)
        dtype = np.dtype(_DTYPES[kind])
        count = int(np.prod([int(size) for size in shape], dtype=object)) if shape else 1
        size = -(-count // 2) if kind == "INT4" else count * dtype.itemsize
        if len(data) < size:
            raise self._wrong(f"tensor '{name}' of shape {shape} needs {size} bytes and has {len(data)}")
        return lambda: _unpack(data[:size], kind, count).reshape(shape)

    def _bytes(self, offset: int, size: int, what: str) -> np.ndarray:
        if offset < 0 or size < 0 or offset + size > len(self._data):
            raise self._wrong(f"{what} has {size} bytes at {offset}, but the file has {len(self._data)}")
        return self._data[offset : offset + size]

    def _signature(self, found: Any, subgraphs: tuple[SubgraphRecord, ...]) -> SignatureRecord:
        key, index = _text(found.SignatureKey()), found.SubgraphIndex()
        if not 0 <= index < len(subgraphs):
            raise self._wrong(f"signature '{key}' is of graph {index}, but there are {len(subgraphs)}")
        maps = []
        for at, count in ((found.Inputs, found.InputsLength()), (found.Outputs, found.OutputsLength())):
            pairs = [at(i) for i in range(self._count(count))]
            maps.append({_text(pair.Name()): int(pair.TensorIndex()) for pair in pairs})
            self._indices(list(maps[-1].values()), len(maps[-1]), len(subgraphs[index].tensors), 0)
        return SignatureRecord(key, index, *maps)


# Operators whose weights may be bytes beside inputs that are real.
_WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")


def _signed_weights(
    tensors: tuple[TensorRecord, ...], operators: tuple[OperatorRecord, ...]
) -> tuple[TensorRecord, ...]:
    """Weights beside real inputs are signed: converters of old wrote uint8 with a zero point of 0 for them."""
    made = list(tensors)
    for op in operators:
        if op.name not in _WEIGHTED or min(op.inputs[:2], default=-1) < 0 or len(op.inputs) < 2:
            continue
        given, weights = tensors[op.inputs[0]], tensors[op.inputs[1]]
        found, read = weights.quantization, weights.read
        if given.kind == "FLOAT32" and weights.kind == "UINT8" and found is not None and read is not None:
            if not np.any(found.zero):
                made[op.inputs[1]] = replace(weights, kind="INT8", read=lambda read=read: read().view(np.int8))
    return tuple(made)


def _unpack(data: np.ndarray, kind: str, count: int) -> np.ndarray:
    """Bytes of the file as numbers; two of four bits are in a byte, the first in its low half."""
    if kind != "INT4":
        return np.frombuffer(data, np.dtype(_DTYPES[kind]))
    both = np.stack([data & 15, data >> 4], 1).reshape(-1).astype(np.int8)
    return (((both + 8) & 15) - 8)[: count if count >= 0 else None]


def _text(raw: bytes | None) -> str:
    return (raw or b"").decode("utf-8", "replace")
