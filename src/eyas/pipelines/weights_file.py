"""Weights as a safetensors file: beside the dumps of phases, and beside a module that keeps its weights outside.

The format (https://github.com/huggingface/safetensors): a 64-bit length, a JSON header of that length that gives each
tensor's dtype, shape and byte range, then the bytes without holes. Tensors of wide elements come first, so that each is
aligned to its own element. Weights are streamed one after the other, and mapped when read.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from eyas.errors import UsageError
from eyas.program.dtypes import numpy_dtype
from eyas.program.parameters import Parameter

_NAMES = {
    "f64": "F64", "f32": "F32", "f16": "F16", "bf16": "BF16", "bool": "BOOL", "i8": "I8", "u8": "U8", "i16": "I16",
    "u16": "U16", "i32": "I32", "u32": "U32", "i64": "I64", "u64": "U64", "c64": "C64",
    "f8e4m3fn": "F8_E4M3", "f8e5m2": "F8_E5M2", "f8e8m0": "F8_E8M0",
    # The format has no name for these, or packs them: their bytes.
    "f8e4m3fnuz": "U8", "f8e5m2fnuz": "U8", "f4e2m1": "U8", "i4": "U8", "u4": "U8", "i2": "U8", "u2": "U8",
}  # fmt: skip
_SHORT = {name: short for short, name in reversed(_NAMES.items())}


def write(path: Path, parameters: Mapping[str, Parameter]) -> None:
    """Writes all parameters; the file is replaced only when the whole has been written."""
    ordered = sorted(parameters.items(), key=lambda item: -numpy_dtype(item[1].dtype).itemsize)
    header, at = {}, 0
    for name, parameter in ordered:
        if parameter.dtype not in _NAMES:
            raise UsageError(f"parameter '{name}': a safetensors file cannot hold {parameter.dtype}")
        span = [at, at + parameter.nbytes]
        header[name] = {"dtype": _NAMES[parameter.dtype], "shape": list(parameter.shape), "data_offsets": span}
        at = span[1]
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % 64)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for _, parameter in ordered:
                file.write(np.ascontiguousarray(parameter.array()).reshape(-1).view(np.uint8).data)
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def read(path: Path) -> dict[str, Parameter]:
    """The parameters of a file, as views of its mapping."""
    try:
        with open(path, "rb") as file:
            data = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot open the weights: {error}") from error
    try:
        (length,) = struct.unpack("<Q", bytes(data[:8]))
        header = json.loads(bytes(data[8 : 8 + length]))
        start = 8 + length
        return {name: _parameter(name, entry, data[start:]) for name, entry in header.items() if name != "__metadata__"}
    except (ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
        raise UsageError(f"{path} is not a safetensors file: {error}") from error


def _parameter(name: str, entry: dict, data: np.ndarray) -> Parameter:
    dtype, shape = _SHORT[entry["dtype"]], tuple(entry["shape"])
    first, last = entry["data_offsets"]
    if not 0 <= first <= last <= len(data) or last - first != math.prod(shape) * numpy_dtype(dtype).itemsize:
        raise ValueError(f"tensor '{name}' lies outside the file or has another size than its shape")
    values = data[first:last].view(numpy_dtype(dtype)).reshape(shape)
    return Parameter(name, dtype, shape, lambda: values)
