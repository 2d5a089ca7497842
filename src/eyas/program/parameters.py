"""Parameters: weights by name, read from wherever they live (a torch tensor, a mapped file) only when asked."""

from __future__ import annotations

import hashlib
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from eyas.program.dtypes import numpy_dtype, short_name

_MIN_BYTES_ON_DISK = 1 << 18


@dataclass(frozen=True)
class Parameter:
    """One weight. `read()` gives a NumPy view of the source's memory, without a copy where the source allows it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    read: Callable[[], np.ndarray] = field(repr=False, compare=False)

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * numpy_dtype(self.dtype).itemsize

    def array(self) -> np.ndarray:
        """The values, read-only, in the declared type and shape; strides are the source's own."""
        array = self.read().view()
        assert array.shape == self.shape and array.dtype == numpy_dtype(self.dtype), (self, array.shape, array.dtype)
        array.flags.writeable = False
        return array

    def digest(self) -> str:
        """SHA-256 of the elements in row-major order."""
        return hashlib.sha256(np.ascontiguousarray(self.array()).reshape(-1).view(np.uint8).data).hexdigest()

    @staticmethod
    def of_array(name: str, array: np.ndarray) -> Parameter:
        """A parameter over an array that is already in memory."""
        return Parameter(name, short_name(array.dtype.name, f"parameter '{name}'"), array.shape, lambda: array)


class ParameterStore(Mapping[str, Parameter]):
    """The weights of one compilation by name. Passes read them, and add what they make of them; none is changed."""

    def __init__(self, weights: Mapping[str, Parameter] | None = None) -> None:
        self._weights = dict(weights or {})

    def __getitem__(self, name: str) -> Parameter:
        return self._weights[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._weights)

    def __len__(self) -> int:
        return len(self._weights)

    def add(self, name: str, array: np.ndarray) -> None:
        """Keeps an array under a name that is free."""
        assert name not in self._weights, name
        self._weights[name] = Parameter.of_array(name, array)

    def free_name(self, base: str) -> str:
        """`base`, or with the first number that makes a name of it which nothing has."""
        name, number = base, 1
        while name in self._weights:
            number += 1
            name = f"{base}{number}"
        return name


def on_disk(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The same arrays, the large ones mapped from an unnamed file: nobody reads them until the module is written."""
    with tempfile.TemporaryFile(prefix="eyas-weights-") as file:
        places = []
        for array in arrays:
            places.append(file.tell() if array.nbytes >= _MIN_BYTES_ON_DISK else None)
            if places[-1] is not None:
                file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        file.flush()
        return [
            array if place is None else np.memmap(file, array.dtype, "r", place, array.shape)
            for array, place in zip(arrays, places, strict=True)
        ]
