"""The scalar types of tensors, as files number them."""

from __future__ import annotations

MAX_RANK = 16

# The scalar types of tensors: name -> (number in files, bytes per element). Permanent, like opcodes.
DTYPES: dict[str, tuple[int, int]] = {
    "f64": (1, 8),
    "f32": (2, 4),
    "f16": (3, 2),
    "bf16": (4, 2),
    "i1": (5, 1),
    "i8": (6, 1),
    "u8": (7, 1),
    "i16": (8, 2),
    "u16": (9, 2),
    "i32": (10, 4),
    "u32": (11, 4),
    "i64": (12, 8),
    "u64": (13, 8),
    "c64": (14, 8),
    "c128": (15, 16),
    # One element per byte; what is narrower than a byte is in its low bits.
    "f8e4m3fn": (16, 1),
    "f8e4m3fnuz": (17, 1),
    "f8e5m2": (18, 1),
    "f8e5m2fnuz": (19, 1),
    "f8e8m0": (20, 1),
    "f4e2m1": (21, 1),
    "i4": (22, 1),
    "u4": (23, 1),
    "i2": (24, 1),
    "u2": (25, 1),
}
DTYPE_NAMES = {number: name for name, (number, _) in DTYPES.items()}
