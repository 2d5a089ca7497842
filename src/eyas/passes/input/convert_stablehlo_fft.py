"""`convert-stablehlo-fft`: Fourier transforms become small real matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from eyas.ir import Pass, mlir
from eyas.ir.walk import find_ops

# A longer transform is split into two shorter ones, when its length has factors.
_LARGEST_DENSE = 32

Parts = tuple[mlir.Value, mlir.Value]


@dataclass(frozen=True)
class ConvertStablehloFft(Pass):
    """Turns `stablehlo.fft` of static shape into Cooley and Tukey's steps, each a product with a table of roots.

    Real and imaginary parts are kept apart, so that the products are ordinary matmuls. Lengths with only large prime
    factors are one product: O(n^2), but exact and rare.

        %r = stablehlo.fft %x, type = FFT, length = [16] : tensor<3x16xcomplex<f32>>
    becomes
        %re = real %x; %im = imag %x
        %a = dot %re, cos; %b = dot %im, sin; %c = dot %re, sin; %d = dot %im, cos
        %r = complex(%a - %b, %c + %d)
    """

    name: ClassVar[str] = "convert-stablehlo-fft"

    def run(self, module: mlir.Module) -> None:
        for op in find_ops(module, "stablehlo.fft"):
            if not mlir.RankedTensorType(op.operation.operands[0].type).has_static_shape:
                continue
            with mlir.InsertionPoint(op), op.location:
                op.operation.results[0].replace_all_uses_with(_convert(op.operation))
            op.operation.erase()


def _convert(op: mlir.Operation) -> mlir.Value:
    kind = str(op.attributes["fft_type"]).rstrip(">").split()[-1]
    lengths = [int(length) for length in mlir.DenseI64ArrayAttr(op.attributes["fft_length"])]
    value = op.operands[0]
    rank = mlir.RankedTensorType(value.type).rank
    axes = list(range(rank - len(lengths), rank))
    if kind == "RFFT":
        parts = (value, _constant(np.zeros(_shape(value)), value))
        parts = _transform(parts, axes[-1], -1)
        kept = [*_shape(value)[:-1], lengths[-1] // 2 + 1]
        parts = (_slice(parts[0], kept), _slice(parts[1], kept))
        for axis in axes[:-1]:
            parts = _transform(parts, axis, -1)
        return _complex(parts)
    parts = (_part(value, "real"), _part(value, "imag"))
    if kind == "FFT":
        for axis in axes:
            parts = _transform(parts, axis, -1)
        return _complex(parts)
    scale = 1.0 / math.prod(lengths)
    for axis in axes if kind == "IFFT" else axes[:-1]:
        parts = _transform(parts, axis, 1)
    if kind == "IFFT":
        return _complex((_scale(parts[0], scale), _scale(parts[1], scale)))
    return _scale(_real_from_half(parts, axes[-1], lengths[-1]), scale)


def _real_from_half(parts: Parts, axis: int, length: int) -> mlir.Value:
    """The real result of a transform whose input is the first half of a Hermitian spectrum."""
    half = _shape(parts[0])[axis]
    k, n = np.arange(half)[:, None], np.arange(length)[None]
    # Frequencies other than the first, and the last of an even length, stand for two.
    weight = np.where((k == 0) | (2 * k == length), 1.0, 2.0)
    angle = 2 * np.pi * ((k * n) % length) / length
    cosines, sines = weight * np.cos(angle), weight * np.sin(angle)
    return _binary("subtract", _dot(parts[0], cosines), _dot(parts[1], sines))


def _transform(parts: Parts, axis: int, sign: int) -> Parts:
    """A transform along one axis, without scaling."""
    rank = len(_shape(parts[0]))
    order = [dim for dim in range(rank) if dim != axis] + [axis]
    back = [order.index(dim) for dim in range(rank)]
    moved = (_transpose(parts[0], order), _transpose(parts[1], order))
    done = _transform_last(moved, sign)
    return _transpose(done[0], back), _transpose(done[1], back)


def _transform_last(parts: Parts, sign: int) -> Parts:
    shape = _shape(parts[0])
    *batch, length = shape
    first = split_length(length)
    if first == 1:
        k = np.arange(length)
        angle = sign * 2 * np.pi * (np.outer(k, k) % length) / length
        return _product(parts, np.cos(angle), np.sin(angle))
    second = length // first
    rank = len(batch)
    swap = [*range(rank), rank + 1, rank]
    # x[second * i + j] -> [j, i]; transform over i; roots; transform over j; out[p + first * q] <- [q, p].
    parts = _map(parts, lambda value: _transpose(_reshape(value, [*batch, first, second]), swap))
    parts = _transform_last(parts, sign)
    angle = sign * 2 * np.pi * np.outer(np.arange(second), np.arange(first)) / length
    parts = _rotate(
        parts,
        np.broadcast_to(np.cos(angle), [*batch, second, first]),
        np.broadcast_to(np.sin(angle), [*batch, second, first]),
    )
    parts = _map(parts, lambda value: _transpose(value, swap))
    parts = _transform_last(parts, sign)
    return _map(parts, lambda value: _reshape(_transpose(value, swap), shape))


def split_length(length: int) -> int:
    """The factor nearest to the square root, or 1 when the transform is to be one product."""
    if length <= _LARGEST_DENSE:
        return 1
    return max(factor for factor in range(1, math.isqrt(length) + 1) if length % factor == 0)


def _product(parts: Parts, cosines: np.ndarray, sines: np.ndarray) -> Parts:
    real, imag = parts
    return (
        _binary("subtract", _dot(real, cosines), _dot(imag, sines)),
        _binary("add", _dot(real, sines), _dot(imag, cosines)),
    )


def _rotate(parts: Parts, cosines: np.ndarray, sines: np.ndarray) -> Parts:
    real, imag = parts
    c, s = _constant(cosines, real), _constant(sines, real)
    return (
        _binary("subtract", _binary("multiply", real, c), _binary("multiply", imag, s)),
        _binary("add", _binary("multiply", real, s), _binary("multiply", imag, c)),
    )


def _map(parts: Parts, function: Any) -> Parts:
    return function(parts[0]), function(parts[1])


def _shape(value: mlir.Value) -> list[int]:
    return list(mlir.RankedTensorType(value.type).shape)


def _build(name: str, type_: mlir.Type, operands: Sequence[mlir.Value], **attributes: mlir.Attribute) -> mlir.Value:
    op = mlir.Operation.create(f"stablehlo.{name}", results=[type_], operands=list(operands), attributes=attributes)
    return op.results[0]


def _like(value: mlir.Value, shape: Sequence[int]) -> mlir.Type:
    return mlir.RankedTensorType.get(list(shape), mlir.RankedTensorType(value.type).element_type)


def _constant(array: np.ndarray, like: mlir.Value) -> mlir.Value:
    element = mlir.RankedTensorType(like.type).element_type
    dtype = np.float64 if isinstance(element, mlir.F64Type) else np.float32
    attribute = mlir.DenseElementsAttr.get(np.ascontiguousarray(array, dtype), type=element)
    return _build("constant", _like(like, array.shape), [], value=attribute)


def _binary(name: str, one: mlir.Value, other: mlir.Value) -> mlir.Value:
    return _build(name, one.type, [one, other])


def _scale(value: mlir.Value, factor: float) -> mlir.Value:
    return _binary("multiply", value, _constant(np.full(_shape(value), factor), value))


def _dot(value: mlir.Value, table: np.ndarray) -> mlir.Value:
    """Contracts the last dimension with a table's first."""
    *batch, length = _shape(value)
    rows = _reshape(value, [math.prod(batch), length])
    numbers = mlir.Attribute.parse("#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>")
    type_ = _like(value, [math.prod(batch), table.shape[1]])
    result = _build("dot_general", type_, [rows, _constant(table, value)], dot_dimension_numbers=numbers)
    return _reshape(result, [*batch, table.shape[1]])


def _reshape(value: mlir.Value, shape: Sequence[int]) -> mlir.Value:
    return value if _shape(value) == list(shape) else _build("reshape", _like(value, shape), [value])


def _transpose(value: mlir.Value, order: Sequence[int]) -> mlir.Value:
    if list(order) == sorted(order):
        return value
    shape = _shape(value)
    type_ = _like(value, [shape[dim] for dim in order])
    return _build("transpose", type_, [value], permutation=mlir.DenseI64ArrayAttr.get(list(order)))


def _slice(value: mlir.Value, limits: Sequence[int]) -> mlir.Value:
    array = mlir.DenseI64ArrayAttr.get
    ones, zeros = [1] * len(limits), [0] * len(limits)
    return _build(
        "slice",
        _like(value, limits),
        [value],
        start_indices=array(zeros),
        limit_indices=array(list(limits)),
        strides=array(ones),
    )


def _part(value: mlir.Value, name: str) -> mlir.Value:
    type_ = mlir.RankedTensorType(value.type)
    element = mlir.ComplexType(type_.element_type).element_type
    return _build(name, mlir.RankedTensorType.get(type_.shape, element), [value])


def _complex(parts: Parts) -> mlir.Value:
    type_ = mlir.RankedTensorType(parts[0].type)
    element = mlir.ComplexType.get(type_.element_type)
    return _build("complex", mlir.RankedTensorType.get(type_.shape, element), parts)
