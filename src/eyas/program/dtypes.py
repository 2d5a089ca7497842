"""Element types by their short names, as signatures and parameters use them.

The IR has signless integers; the name keeps what the framework said: `u8` and `i8` are both `i8` in the IR, `bool` is
`i1`, held as one byte per element. Types of 8 bits and fewer that no arithmetic exists for (`f8e4m3fn`, `i4`, ...) are
`i8` in the IR: their bits, one element per byte, in the low bits of it.
"""

from __future__ import annotations

import functools

import numpy as np

from eyas.errors import FrontendError

# name -> (NumPy dtype name, element type in the IR)
TABLE = {
    "bool": ("bool", "i1"),
    "i8": ("int8", "i8"),
    "i16": ("int16", "i16"),
    "i32": ("int32", "i32"),
    "i64": ("int64", "i64"),
    "u8": ("uint8", "i8"),
    "u16": ("uint16", "i16"),
    "u32": ("uint32", "i32"),
    "u64": ("uint64", "i64"),
    "f16": ("float16", "f16"),
    "bf16": ("bfloat16", "bf16"),
    "f32": ("float32", "f32"),
    "f64": ("float64", "f64"),
    "c64": ("complex64", "complex<f32>"),
    "c128": ("complex128", "complex<f64>"),
    "f8e4m3fn": ("float8_e4m3fn", "i8"),
    "f8e4m3fnuz": ("float8_e4m3fnuz", "i8"),
    "f8e5m2": ("float8_e5m2", "i8"),
    "f8e5m2fnuz": ("float8_e5m2fnuz", "i8"),
    "f8e8m0": ("float8_e8m0fnu", "i8"),
    "f4e2m1": ("float4_e2m1fn", "i8"),
    "i4": ("int4", "i8"),
    "u4": ("uint4", "i8"),
    "i2": ("int2", "i8"),
    "u2": ("uint2", "i8"),
}

# What is only stored: a program holds the bits.
STORAGE = frozenset(tuple(TABLE)[tuple(TABLE).index("f8e4m3fn") :])

# What a value may hold inside the program.
ELEMENT_TYPES = frozenset({"index", *(ir for _, ir in TABLE.values())})

_BY_NUMPY_NAME = {numpy_name: name for name, (numpy_name, _) in TABLE.items()}


@functools.cache
def numpy_dtype(name: str) -> np.dtype:
    """The NumPy dtype of a short name; ml_dtypes has `bf16` and what is narrower."""
    if name == "bf16" or name in STORAGE:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, TABLE[name][0]))
    return np.dtype(TABLE[name][0])


def short_name(framework_name: str, what: str) -> str:
    """The short name of a framework's dtype name (`torch.float32`, `float32`); `what` says where it was seen."""
    name = _BY_NUMPY_NAME.get(framework_name.rpartition(".")[2])
    if name is None:
        raise FrontendError(f"{what} has element type {framework_name}; supported: {', '.join(TABLE)}")
    return name


# The element types that `hold-small-types` replaces; the IR's integers have no sign.
SMALL_IN_IR = {
    "f8E4M3FN": "f8e4m3fn",
    "f8E4M3FNUZ": "f8e4m3fnuz",
    "f8E5M2": "f8e5m2",
    "f8E5M2FNUZ": "f8e5m2fnuz",
    "f8E8M0FNU": "f8e8m0",
    "f4E2M1FN": "f4e2m1",
    "i4": "i4",
    "i2": "i2",
}

# What upstream prints for signed, unsigned and signless integers, for text that arrives with types only.
_BY_IR_NAME = {
    **{ir: name for name, (_, ir) in TABLE.items() if not name.startswith("u") and name not in STORAGE},
    **{f"si{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
    **dict(SMALL_IN_IR),
    **{f"{prefix}{bits}": f"{sign}{bits}" for prefix, sign in (("si", "i"), ("ui", "u")) for bits in (2, 4)},
    "index": "i64",
}


def short_name_of_ir(element_type: str, what: str) -> str:
    """The short name of an IR element type; signless integers count as signed."""
    name = _BY_IR_NAME.get(element_type)
    if name is None:
        raise FrontendError(f"{what} has element type {element_type}; supported: {', '.join(sorted(_BY_IR_NAME))}")
    return name
