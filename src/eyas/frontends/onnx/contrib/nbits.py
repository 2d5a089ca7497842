"""Rules for weights of 2, 4 and 8 bits in blocks: MatMulNBits, MatMulBnb4, GatherBlockQuantized.

Weights of products are dequantised at compile time. Tables that rows are looked up in stay as they are stored: only
the rows that are asked for are dequantised.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from eyas.frontends.onnx.contrib.common import is_ready, refuse, refuse_attributes, whole
from eyas.frontends.onnx.rewrite.rules import Builder, attribute, operand

# The values of the two types of 4 bits that bitsandbytes has, by their bits.
_FP4 = np.array([0, 0.00520833333, 0.66666667, 1, 0.33333333, 0.5, 0.16666667, 0.25], np.float32)
_NF4 = np.array(
    [
        -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
        -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
        0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
    ],
    np.float32,
)  # fmt: skip


def mat_mul_n_bits(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """A times the transpose of (quantised - zero) * scale."""
    if not is_ready(node, b):
        return None
    refuse_attributes(node, b, weight_prepacked=0)
    a, bias = node.input[0], operand(node, 5)
    columns, rows, bits, block = (attribute(node, name, default) for name, default in _SIZES)
    if bits not in (2, 4, 8):
        refuse(node, b, f"its attribute bits is {bits}; 2, 4 and 8 are what is known")
    packed, scales, zeros, groups = (constant_input(node, place, b) for place in range(1, 5))
    assert packed is not None and scales is not None
    kind = b.type_of(a)
    dtype = helper.tensor_dtype_to_np_dtype(kind)

    def read() -> np.ndarray:
        numbers = unpack(packed.reshape(columns, -1), bits)[:, :rows]
        group = np.arange(rows) // block if groups is None else groups.reshape(-1)
        count = -(-rows // block)
        if zeros is None:
            zero: np.ndarray | float = float(1 << (bits - 1))
        elif zeros.dtype == np.uint8:
            zero = unpack(zeros.reshape(columns, -1), bits)[:, :count][:, group]
        else:
            zero = zeros.astype(np.float32).reshape(columns, -1)[:, group]
        scale = scales.astype(np.float32).reshape(columns, -1)[:, group]
        return np.ascontiguousarray(((numbers - zero) * scale).T.astype(dtype))

    product = b.add("MatMul", a, b.weight([rows, columns], kind, read))
    return [b.add("Add", product, bias) if bias else product]


_SIZES = (("N", 0), ("K", 0), ("bits", 4), ("block_size", 32))


def mat_mul_bnb4(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    if not is_ready(node, b):
        return None
    packed, largest = (constant_input(node, place, b) for place in (1, 2))
    assert packed is not None and largest is not None
    columns, rows, block = (attribute(node, name, 0) for name in ("N", "K", "block_size"))
    values = _NF4 if attribute(node, "quant_type", 1) else np.concatenate([_FP4, -_FP4])
    turned = bool(attribute(node, "transB", 1))
    kind = b.type_of(node.input[0])
    dtype = helper.tensor_dtype_to_np_dtype(kind)

    def read() -> np.ndarray:
        numbers = values[unpack(packed.reshape(1, -1), 4, high_first=True)[0, : rows * columns].astype(np.int64)]
        numbers = numbers * largest.astype(np.float32)[np.arange(rows * columns) // block]
        matrix = numbers.reshape(columns, rows).astype(dtype)
        return np.ascontiguousarray(matrix.T if turned else matrix)

    shape = [rows, columns] if turned else [columns, rows]
    return [b.add("MatMul", node.input[0], b.weight(shape, kind, read))]


def gather_block_quantized(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Rows of a table, which are dequantised when they have been found."""
    if not is_ready(node, b):
        return None
    data, ids, scales, zeros = (operand(node, place) for place in range(4))
    shape, kind = b.shape_of(data), b.type_of(data)
    if shape is None:
        return None
    rank, bits = len(shape), attribute(node, "bits", 4)
    gathered, along = (attribute(node, name, default) % rank for name, default in _AXES)
    if gathered != 0 or along != rank - 1:
        refuse(node, b, f"it gathers along {gathered} and has blocks along {along}; 0 and the last are what is known")
    block = attribute(node, "block_size", 128)
    if kind not in (TensorProto.UINT8, TensorProto.INT4, TensorProto.UINT4):
        refuse(node, b, f"its table is of type {TensorProto.DataType.Name(kind)}; UINT8, INT4 and UINT4 are known")
    per_byte = 8 // bits if kind == TensorProto.UINT8 else 1
    width = shape[-1] * per_byte
    if width % block:
        refuse(node, b, f"its rows of {width} are not whole blocks of {block}")
    to = b.type_of(scales)
    sizes = [-1, *shape[1:-1], width // block]
    rows = _widen(b.add("Gather", data, ids, axis=0), per_byte, bits, [*sizes, block], b)
    if zeros:
        zero = _widen(b.add("Gather", zeros, ids, axis=0), per_byte, bits, [*sizes, 1], b, width // block)
        rows = b.add("Sub", rows, zero)
    elif kind == TensorProto.UINT8:
        rows = b.add("Sub", rows, b.constant(float(1 << (bits - 1)), np.float32))
    scale = b.cast(b.add("Gather", scales, ids, axis=0), TensorProto.FLOAT)
    value = b.add("Mul", rows, b.reshape(scale, [*sizes, 1]))
    before = [0] * (b.rank_of(ids) or 0)
    value = b.reshape(value, [-1, *shape[1:-1], width])
    if len(before) != 1:
        ids_shape = b.add("Shape", ids)
        value = b.add("Reshape", value, b.add("Concat", ids_shape, whole([*shape[1:-1], width], b), axis=0))
    return [value if to == TensorProto.FLOAT else b.cast(value, to)]


_AXES = (("gather_axis", 0), ("quantize_axis", 1))


def _widen(value: str, per_byte: int, bits: int, shape: list[int], b: Builder, keep: int = 0) -> str:
    """Packed numbers as FLOAT, low bits first; `keep` is how many of each row count."""
    if per_byte == 1:
        return b.reshape(b.cast(value, TensorProto.FLOAT), shape)
    left = b.cast(value, TensorProto.INT32)
    base, parts = b.constant(1 << bits, np.int32), []
    for _ in range(per_byte):
        rest = b.add("Div", left, base)
        parts.append(b.add("Unsqueeze", b.add("Sub", left, b.add("Mul", rest, base)), whole([-1], b)))
        left = rest
    numbers = b.add("Concat", *parts, axis=-1)
    if keep and keep % per_byte:
        last = -(-keep // per_byte) * per_byte
        numbers = b.reshape(numbers, [*shape[:-2], last])
        numbers = b.add("Slice", numbers, whole([0], b), whole([keep], b), whole([-1], b))
    return b.cast(b.reshape(numbers, shape), TensorProto.FLOAT)


def constant_input(node: onnx.NodeProto, place: int, b: Builder) -> np.ndarray | None:
    """An input that must be known at compile time; None where it is left out."""
    name = operand(node, place)
    if not name:
        return None
    found = b.array_of(name)
    if found is None:
        refuse(node, b, f"its input '{name}' is not a constant")
    return found


def unpack(rows: np.ndarray, bits: int, high_first: bool = False) -> np.ndarray:
    """Numbers of a few bits as f32, those of the low bits of a byte first unless it is said."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    shifts = shifts[::-1] if high_first else shifts
    numbers = (rows.view(np.uint8)[..., None] >> shifts) & ((1 << bits) - 1)
    return numbers.reshape(len(rows), -1).astype(np.float32)
