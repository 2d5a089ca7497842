"""Calls that take NumPy's 64-bit numbers for arguments of 32 bits, as JAX does while x64 is off: the high bits go.

NumPy makes 64-bit integers and floats unless told otherwise. What calls with the right types pays nothing for this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from eyas.errors import CallError
from eyas.module.signature import Signature

# The signature's type -> what is taken for it, and what it becomes.
_NARROWED = {
    "i32": (np.dtype(np.int64), np.dtype(np.int32)),
    "u32": (np.dtype(np.uint64), np.dtype(np.uint32)),
    "f32": (np.dtype(np.float64), np.dtype(np.float32)),
    "c64": (np.dtype(np.complex128), np.dtype(np.complex64)),
}


def narrowing(call: Callable[..., Any], signature: Signature) -> Callable[..., Any]:
    """The same call; when it is refused for arguments that can be narrowed, they are, and it is made again."""
    pairs = [_NARROWED.get(spec.dtype) for spec in signature.args]

    def narrow(value: Any, pair: tuple[np.dtype, np.dtype] | None) -> Any:
        is_wide = pair is not None and isinstance(value, (np.ndarray, np.generic)) and value.dtype == pair[0]
        return value.astype(pair[1]) if pair is not None and is_wide else value

    def narrowed(*args: Any) -> Any:
        try:
            return call(*args)
        except CallError:
            taken = [narrow(value, pair) for value, pair in zip(args, pairs, strict=False)]
            if len(args) != len(pairs) or all(new is old for new, old in zip(taken, args, strict=True)):
                raise
        return call(*taken)

    return narrowed
