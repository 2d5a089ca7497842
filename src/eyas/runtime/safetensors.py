"""Weights in safetensors files beside a module: the file is mapped, and spans of it are handed to the runtime.

The format (https://github.com/huggingface/safetensors): a 64-bit length, a JSON header of that length that gives each
tensor's dtype, shape and byte range, then the bytes.
"""

from __future__ import annotations

import json
import math
import mmap
import struct
from pathlib import Path

import numpy as np

from eyas.errors import ModuleError
from eyas.module.dtypes import DTYPES

_DTYPES = {
    "F64": "f64", "F32": "f32", "F16": "f16", "BF16": "bf16", "BOOL": "i1", "I8": "i8", "U8": "u8", "I16": "i16",
    "U16": "u16", "I32": "i32", "U32": "u32", "I64": "i64", "U64": "u64", "F8_E4M3": "f8e4m3fn", "F8_E5M2": "f8e5m2",
    "F8_E8M0": "f8e8m0",
}  # fmt: skip


class File:
    """One mapped safetensors file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with open(path, "rb") as file:
                self._data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError) as error:
            raise ModuleError(f"{path}: cannot open the module's external weights: {error}") from error
        length = struct.unpack_from("<Q", self._data)[0] if len(self._data) >= 8 else 0
        if not 2 <= length <= len(self._data) - 8:
            raise ModuleError(f"{path}: not a safetensors file: its header cannot have {length} bytes")
        self._start = 8 + length
        try:
            self._header = json.loads(bytes(self._data[8 : self._start]))
        except ValueError as error:
            raise ModuleError(f"{path}: not a safetensors file: its header is not JSON: {error}") from error
        if not isinstance(self._header, dict):
            raise ModuleError(f"{path}: not a safetensors file: its header is not an object")

    def tensor(self, key: str, dtype: str, shape: tuple[int, ...]) -> memoryview:
        """The bytes of a tensor, checked to be of the wanted type."""
        entry = self._header.get(key)
        if not isinstance(entry, dict):
            raise ModuleError(f"{self.path}: no tensor {key!r}, which the module needs")
        seen = (_DTYPES.get(str(entry.get("dtype"))), entry.get("shape"))
        if seen[0] == "u8" and DTYPES[dtype][0] >= DTYPES["f8e4m3fn"][0]:
            seen = (dtype, seen[1])  # the format has no name for some types of one byte
        if seen != (dtype, list(shape)):
            raise ModuleError(
                f"{self.path}: tensor {key!r} is {seen[0]}{seen[1]}, the module needs {dtype}{list(shape)}"
            )
        size = math.prod(shape) * DTYPES[dtype][1]
        match entry.get("data_offsets"):
            case [int(first), int(last)] if (
                0 <= first and last - first == size and self._start + last <= len(self._data)
            ):
                view = self._data[self._start + first : self._start + last]
            case offsets:
                raise ModuleError(
                    f"{self.path}: tensor {key!r}: data_offsets {offsets} do not hold {size} bytes inside the file"
                )
        array = np.frombuffer(view, np.uint8)
        if array.ctypes.data % min(DTYPES[dtype][1], 8):
            array = _aligned_copy(array)  # compiled code may load whole elements only where they are aligned
        return array.data


def _aligned_copy(array: np.ndarray) -> np.ndarray:
    room = np.empty(array.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    room[start : start + array.nbytes] = array
    return room[start : start + array.nbytes]
