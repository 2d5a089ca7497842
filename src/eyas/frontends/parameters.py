"""Parameters: weights by name, read from wherever they live (a torch tensor, a mapped file) only when asked."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from eyas.frontends.dtypes import numpy_dtype, short_name


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
