"""parameters.bin: which array of weights lies where, and one copy of those with equal bytes, also across variants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from eyas.errors import ModuleError
from eyas.module.dtypes import DTYPES
from eyas.module.program import Parameter, Program

ALIGNMENT = 64
"""Bytes that each array's place is a multiple of."""
CHUNK = 1 << 22
"""Bytes that are compared or written at a time."""
_COMPARED_FIRST = 256  # elements

# Something whose bytes are a parameter: an array or memoryview, in C order.
Data = Any


def dtype_name(array: Any) -> str:
    """Eyas's name for a NumPy (or ml_dtypes) array's element type."""
    names = {"bool": "i1", "bfloat16": "bf16", "complex64": "c64", "complex128": "c128"}
    names |= {"float8_e8m0fnu": "f8e8m0", "float4_e2m1fn": "f4e2m1"}
    name = str(array.dtype)
    short = names.get(name) or name.replace("uint", "u").replace("int", "i").replace("float", "f").replace("_", "")
    if short not in DTYPES:
        raise ModuleError(f"arrays of {name} cannot be stored; use one of {', '.join(DTYPES)}")
    return short


def layout_parameters(arrays: Mapping[str, Any]) -> tuple[tuple[Parameter, ...], list[tuple[int, Data]]]:
    """Gives each array its place in parameters.bin: the records for the Program, and (offset, array) for `write`.

    Arrays with the same bytes share one place.
    """
    records, data, offset = [], [], 0
    first = equal_arrays(arrays)
    places: dict[str, int] = {}
    for name, array in arrays.items():
        record = Parameter(name, dtype_name(array), tuple(int(d) for d in array.shape), places.get(first[name], offset))
        records.append(record)
        if first[name] == name:
            places[name] = offset
            data.append((offset, array))
            offset = -(-(offset + record.bytes) // ALIGNMENT) * ALIGNMENT
    return tuple(records), data


def equal_arrays(arrays: Mapping[Any, Any]) -> dict[Any, Any]:
    """For each array the key of the first one with the same bytes. Whole arrays are compared only when they begin
    alike, so that weights which differ are not read."""
    first: dict[Any, Any] = {}
    seen: dict[tuple[int, bytes], list[Any]] = {}
    for name, array in arrays.items():
        head = array.flat[:_COMPARED_FIRST].tobytes()
        same = seen.setdefault((array.nbytes, head), [])
        first[name] = next((other for other in same if _same_bytes(arrays[other], array)), name)
        if first[name] == name:
            same.append(name)
    return first


def _same_bytes(left: Any, right: Any) -> bool:
    a, b = bytes_view(left), bytes_view(right)
    return all(a[at : at + CHUNK] == b[at : at + CHUNK] for at in range(0, a.nbytes, CHUNK))


def share_parameters(
    variants: Sequence[tuple[Program, Sequence[tuple[int, Data]]]],
) -> tuple[list[Program], list[tuple[int, Data]]]:
    """One parameters.bin for several programs that were laid out each by itself: programs with new offsets, and what to
    write. Arrays that several of them have are stored once."""
    arrays = {(number, offset): array for number, (_, data) in enumerate(variants) for offset, array in data}
    first = equal_arrays(arrays)
    places: dict[Any, int] = {}
    stored, at = [], 0
    for key, array in arrays.items():
        if first[key] != key:
            continue
        places[key] = at
        stored.append((at, array))
        at = -(-(at + bytes_view(array).nbytes) // ALIGNMENT) * ALIGNMENT
    programs = []
    for number, (program, _) in enumerate(variants):
        moved = [
            one if one.external else replace(one, offset=places[first[number, one.offset]])
            for one in program.parameters
        ]
        programs.append(replace(program, parameters=tuple(moved)))
    return programs, stored


def stored_bytes(parameters: Iterable[Parameter]) -> int:
    """What weights take in their files, where equal ones are stored once."""
    return sum({(p.external, p.key, p.offset, p.bytes): p.bytes for p in parameters}.values())


def bytes_view(data: Data) -> memoryview:
    """The bytes of an array without a copy; of one that is not in C order, with a copy of that one only."""
    if hasattr(data, "dtype"):
        import numpy as np

        array = np.ascontiguousarray(data)
        if array.nbytes == 0:
            return memoryview(b"")
        data = array.reshape(-1).view(np.uint8)
    view = memoryview(data)
    return view.cast("B") if view.nbytes else memoryview(b"")
