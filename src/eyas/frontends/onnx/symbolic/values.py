"""What operators make of small tensors of expressions: NumPy moves elements, `expressions` computes them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import TensorProto, helper

from eyas.frontends.onnx.symbolic import expressions as ex

Elements: TypeAlias = "np.ndarray[Any, np.dtype[np.object_]]"

# Values of more elements are data, not shapes.
LARGEST_ELEMENTS = 256

_INTEGERS = (TensorProto.INT64, TensorProto.INT32)
_FLOATS: dict[int, str] = {TensorProto.FLOAT: "f32", TensorProto.DOUBLE: "f64"}


@dataclass(frozen=True)
class Value:
    """What is known of a value: sizes are expressions, and so are the elements when there are few."""

    data_type: int
    shape: tuple[ex.Integer, ...] | None = None
    elements: Elements | None = None

    @property
    def is_constant(self) -> bool:
        return self.elements is not None and all(map(ex.is_known, self.elements.flat))


def kind_of(data_type: int) -> str | None:
    """The kind of scalars of a type: "i64", "bool", "f32" or "f64"; None for those that are not followed."""
    if data_type in _INTEGERS:
        return "i64"
    return "bool" if data_type == TensorProto.BOOL else _FLOATS.get(data_type)


def elements_of(array: np.ndarray) -> Elements:
    """Numbers as elements."""
    result = np.empty(array.shape, object)
    result.reshape(-1)[:] = array.reshape(-1).tolist()
    return result


def fits(elements: Elements, data_type: int) -> bool:
    """Whether the integers among the elements are numbers of the type: expressions have no largest one."""
    if data_type not in _INTEGERS:
        return True
    limits = np.iinfo(helper.tensor_dtype_to_np_dtype(data_type))
    return all(limits.min <= one <= limits.max for one in elements.flat if isinstance(one, int))


def array_of(elements: Elements, data_type: int) -> np.ndarray:
    """Elements that are numbers as an array of the type that the graph has."""
    return np.array(elements.tolist(), helper.tensor_dtype_to_np_dtype(data_type)).reshape(elements.shape)


def evaluate(node: onnx.NodeProto, inputs: Sequence[Value | None], opset: int) -> Sequence[Elements | None] | None:
    """The elements of a node's results, or None when they are not known."""
    if node.op_type in ("Shape", "Size"):
        return _shape(node, inputs)
    rule = _RULES.get(node.op_type)
    first = inputs[0] if inputs else None
    if rule is None or first is None:
        return None
    if any(value is not None and (value.elements is None or kind_of(value.data_type) is None) for value in inputs):
        return None
    try:
        made = rule(_Call(node, list(inputs), opset))
    except (IndexError, ValueError, TypeError, OverflowError, _Unknown):
        # What does not fit together is for others to say.
        return None
    results = made if isinstance(made, list) else [made]
    if any(result.size > LARGEST_ELEMENTS for result in results):
        return None
    return results


class _Unknown(Exception):
    """The elements are not known."""


@dataclass(frozen=True)
class _Call:
    node: onnx.NodeProto
    inputs: list[Value | None]
    opset: int

    def attribute(self, name: str, default: Any = None) -> Any:
        for found in self.node.attribute:
            if found.name == name:
                return helper.get_attribute_value(found)
        return default

    def has(self, index: int) -> bool:
        return index < len(self.inputs) and self.inputs[index] is not None

    def value(self, index: int) -> Value:
        value = self.inputs[index]
        assert value is not None
        return value

    def elements(self, index: int) -> Elements:
        elements = self.value(index).elements
        assert elements is not None
        return elements

    @property
    def kind(self) -> str:
        return kind_of(self.value(0).data_type) or ""

    def numbers(self, index: int, attribute: str) -> list[int] | None:
        """What newer opsets have as an input and older ones as an attribute; it must be known."""
        if not self.has(index):
            given = self.attribute(attribute)
            return None if given is None else [int(one) for one in np.atleast_1d(given)]
        elements = self.elements(index)
        if not all(map(ex.is_known, elements.flat)):
            raise _Unknown
        return [int(one) for one in elements.reshape(-1)]


def _shape(node: onnx.NodeProto, inputs: Sequence[Value | None]) -> list[Elements | None] | None:
    shape = inputs[0].shape if inputs and inputs[0] is not None else None
    if shape is None:
        return None
    result = np.empty(len(shape), object)
    result[:] = shape
    if node.op_type == "Size":
        return [_scalar(ex.product(shape))]
    given = {attribute.name: attribute.i for attribute in node.attribute}
    return [result[given.get("start", 0) : given.get("end", len(shape))]]


def _scalar(value: ex.Scalar) -> Elements:
    result = np.empty((), object)
    result[()] = value
    return result


def _each(function: Callable[..., Any], *arrays: Elements) -> Elements:
    """Applies a function to each tuple of elements, with broadcasting."""
    shapes = np.broadcast_shapes(*(array.shape for array in arrays))
    result = np.empty(shapes, object)
    sources = [np.broadcast_to(array, shapes) for array in arrays]
    for index in np.ndindex(*shapes):
        made = function(*(source[index] for source in sources))
        if made is None:
            raise _Unknown
        result[index] = made
    return result


def _arithmetic(op: str, call: _Call) -> Elements:
    integer: dict[str, Callable[..., Any]] = {"add": ex.add, "sub": ex.sub, "mul": ex.mul, "div": ex.divide}
    integer |= {name: partial(ex.extreme, name) for name in ("min", "max")}
    if call.kind == "bool":
        raise _Unknown
    function = integer[op] if call.kind == "i64" else partial(_calculate, op, call.kind)
    result = call.elements(0)
    for index in range(1, len(call.inputs)):
        result = _each(function, result, call.elements(index))
    return result


def _calculate(op: str, kind: str, a: Any, b: Any) -> ex.Scalar:
    return ex.calculate(op, a, b, kind)


def _function(op: str, call: _Call) -> Elements:
    if call.kind == "i64":
        if op == "neg":
            return _each(ex.neg, call.elements(0))
        if op == "abs":
            return _each(lambda a: a if ex.is_not_negative(a) else ex.extreme("max", a, ex.neg(a)), call.elements(0))
        raise _Unknown
    return _each(lambda a: ex.function(op, a, call.kind), call.elements(0))


def _power(call: _Call) -> Elements:
    """The root of a number of patches is the side of their square; exporters write it as a power."""
    kind = call.kind

    def power(a: Any, n: Any) -> Any:
        if not ex.is_known(n):
            return None
        if kind == "i64":
            return functools.reduce(ex.mul, [a] * int(n), 1) if 0 <= n <= 4 and n == int(n) else None
        if n == 0.5:
            return ex.function("sqrt", a, kind)
        if n in (1, 2):
            return a if n == 1 else ex.calculate("mul", a, a, kind)
        if not ex.is_known(a) or kind not in ("f32", "f64"):
            return None
        number = np.float32 if kind == "f32" else np.float64
        with np.errstate(all="ignore"):
            return float(np.power(number(a), number(n)))

    return _each(power, call.elements(0), call.elements(1))


def _compare(op: str, call: _Call) -> Elements:
    return _each(partial(ex.compare, op), call.elements(0), call.elements(1))


def _connect(op: str, call: _Call) -> Elements:
    return _each(partial(ex.connect, op), call.elements(0), call.elements(1))


def _negate(call: _Call) -> Elements:
    return _each(ex.negate, call.elements(0))


def _modulo(call: _Call) -> Elements:
    def remainder(a: Any, b: Any) -> Any:
        is_plain = ex.is_not_negative(a) and ex.is_not_negative(b)
        return ex.modulo(a, b) if is_plain or not call.attribute("fmod", 0) else None

    if call.kind != "i64":
        raise _Unknown
    return _each(remainder, call.elements(0), call.elements(1))


def _where(call: _Call) -> Elements:
    kind = kind_of(call.value(1).data_type) or ""
    return _each(lambda c, a, b: ex.select(c, a, b, kind), *(call.elements(index) for index in range(3)))


def _cast(call: _Call) -> Elements:
    kind = kind_of(call.attribute("to", 0))
    if kind is None:
        raise _Unknown
    convert = {"i64": ex.to_integer, "bool": ex.to_bool}.get(kind, lambda a: ex.to_float(a, kind))
    return _each(convert, call.elements(0))


def _clip(call: _Call) -> Elements:
    result = call.elements(0)
    for index, (name, op) in enumerate((("min", "max"), ("max", "min")), 1):
        limit = call.elements(index) if call.has(index) else None
        if limit is None and call.attribute(name) is not None:
            limit = _scalar(float(call.attribute(name)))
        if limit is not None:
            integer = partial(ex.extreme, op)
            result = _each(integer if call.kind == "i64" else partial(_calculate, op, call.kind), result, limit)
    return result


def _concat(call: _Call) -> Elements:
    return np.concatenate([call.elements(i) for i in range(len(call.inputs))], axis=call.attribute("axis", 1))


def _gather(call: _Call) -> Elements:
    indices = call.elements(1)
    if not all(map(ex.is_known, indices.flat)):
        raise _Unknown
    return np.asarray(np.take(call.elements(0), indices.astype(np.int64), axis=call.attribute("axis", 0)), object)


def _slice(call: _Call) -> Elements:
    data = call.elements(0)
    starts, ends = call.numbers(1, "starts") or [], call.numbers(2, "ends") or []
    axes = call.numbers(3, "axes") or list(range(len(starts)))
    steps = call.numbers(4, "steps") or [1] * len(starts)
    cut = [slice(None)] * data.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        # Python's slices go to the end backwards only with None.
        size = data.shape[axis]
        stop = None if step < 0 and end < -size else end
        cut[axis] = slice(start, stop, step)
    return data[tuple(cut)]


def _unsqueeze(call: _Call) -> Elements:
    axes = call.numbers(1, "axes") or []
    rank = call.elements(0).ndim + len(axes)
    return np.expand_dims(call.elements(0), tuple(axis % rank for axis in axes))


def _squeeze(call: _Call) -> Elements:
    axes = call.numbers(1, "axes")
    return np.asarray(np.squeeze(call.elements(0), None if axes is None else tuple(axes)), object)


def _reshape(call: _Call) -> Elements:
    data, wanted = call.elements(0), call.numbers(1, "shape") or []
    if not call.attribute("allowzero", 0):
        wanted = [data.shape[i] if size == 0 else size for i, size in enumerate(wanted)]
    return data.reshape(wanted)


def _expand(call: _Call) -> Elements:
    wanted = call.numbers(1, "shape") or []
    return np.broadcast_to(call.elements(0), np.broadcast_shapes(call.elements(0).shape, tuple(wanted))).copy()


def _tile(call: _Call) -> Elements:
    return np.tile(call.elements(0), call.numbers(1, "repeats") or [])


def _split(call: _Call) -> list[Elements]:
    data, axis = call.elements(0), call.attribute("axis", 0)
    sizes, count = call.numbers(1, "split"), len(call.node.output)
    if sizes is None:
        chunk = -(-data.shape[axis] // count)
        return np.split(data, range(chunk, chunk * count, chunk), axis)
    return np.split(data, np.cumsum(sizes)[:-1], axis)


def _transpose(call: _Call) -> Elements:
    return np.transpose(call.elements(0), call.attribute("perm"))


def _range(call: _Call) -> Elements:
    ends = [call.elements(index).reshape(()).item() for index in range(3)]
    if call.kind != "i64" or not all(map(ex.is_known, ends)) or abs(ends[1] - ends[0]) > LARGEST_ELEMENTS:
        raise _Unknown
    return elements_of(np.arange(*ends, dtype=np.int64))


def _constant_of_shape(call: _Call) -> Elements:
    dims = call.numbers(0, "") or []
    if int(np.prod(dims)) > LARGEST_ELEMENTS:
        raise _Unknown
    tensor = call.attribute("value")
    fill = np.zeros(1, np.float32) if tensor is None else onnx.numpy_helper.to_array(tensor)
    if kind_of(helper.np_dtype_to_tensor_dtype(fill.dtype)) is None:
        raise _Unknown
    return elements_of(np.full(dims, fill.reshape(-1)[0]))


def _reduce(op: str, call: _Call) -> Elements:
    data = call.elements(0)
    axes = call.numbers(1, "axes")
    if axes == [] or (axes is None and call.attribute("noop_with_empty_axes", 0)):
        axes = [] if call.attribute("noop_with_empty_axes", 0) else None
    along = tuple(range(data.ndim)) if axes is None else tuple(axis % data.ndim for axis in axes)
    integer: dict[str, Callable[..., Any]] = {"add": ex.add, "mul": ex.mul}
    integer |= {name: partial(ex.extreme, name) for name in ("min", "max")}
    combine = integer[op] if call.kind == "i64" else partial(_calculate, op, call.kind)
    result = data
    if 0 in data.shape:
        raise _Unknown
    for axis in along:
        parts = np.split(result, result.shape[axis], axis)
        total = parts[0]
        for part in parts[1:]:
            total = _each(combine, total, part)
        result = total
    return result if call.attribute("keepdims", 1) else np.asarray(np.squeeze(result, along), object)


def _cum_sum(call: _Call) -> Elements:
    if call.kind != "i64" or call.attribute("exclusive", 0) or call.attribute("reverse", 0):
        raise _Unknown
    (axis,) = call.numbers(1, "axis") or [0]
    rows = np.moveaxis(call.elements(0), axis, 0)
    result = rows.copy()
    for index in range(1, len(rows)):
        result[index, ...] = _each(  # an element is stored, not an array of none
            ex.add, *(np.asarray(one[at], object) for one, at in ((result, index - 1), (rows, index)))
        )
    return np.moveaxis(result, 0, axis)


def _scatter_nd(call: _Call) -> Elements:
    if call.attribute("reduction", b"none") != b"none" or not call.inputs[1].is_constant:  # type: ignore[union-attr]
        raise _Unknown
    result, indices = call.elements(0).copy(), call.elements(1).astype(np.int64)
    updates = call.elements(2)
    for place in np.ndindex(*indices.shape[:-1]):
        result[tuple(indices[place])] = updates[place]
    return result


def _scatter_elements(call: _Call) -> Elements:
    if call.attribute("reduction", b"none") != b"none" or not call.inputs[1].is_constant:  # type: ignore[union-attr]
        raise _Unknown
    result, indices, axis = call.elements(0).copy(), call.elements(1).astype(np.int64), call.attribute("axis", 0)
    for place in np.ndindex(*indices.shape):
        target = list(place)
        target[axis] = int(indices[place])
        result[tuple(target)] = call.elements(2)[place]
    return result


def _is_nan(call: _Call) -> Elements:
    def is_nan(a: Any) -> bool:
        if isinstance(a, ex.Apply):
            raise _Unknown
        return ex.is_known(a) and bool(np.isnan(a))

    return _each(is_nan, call.elements(0))


def _same(call: _Call) -> Elements:
    return call.elements(0)


_RULES: dict[str, Callable[[_Call], Elements | list[Elements]]] = {
    **{name.capitalize(): partial(_arithmetic, name) for name in ("add", "sub", "mul", "div", "min", "max")},
    **{name.capitalize(): partial(_function, name) for name in ("floor", "ceil", "round", "sqrt", "neg", "abs")},
    **{name: partial(_compare, op) for name, op in (("Equal", "eq"), ("Less", "lt"), ("LessOrEqual", "le"))},
    **{name: partial(_compare, op) for name, op in (("Greater", "gt"), ("GreaterOrEqual", "ge"))},
    "And": partial(_connect, "and"),
    "Cast": _cast,
    "Clip": _clip,
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "CumSum": _cum_sum,
    "Expand": _expand,
    "Gather": _gather,
    "Identity": _same,
    "IsNaN": _is_nan,
    "Mod": _modulo,
    "Not": _negate,
    "Or": partial(_connect, "or"),
    "Pow": _power,
    "Range": _range,
    "ReduceMax": partial(_reduce, "max"),
    "ReduceMin": partial(_reduce, "min"),
    "ReduceProd": partial(_reduce, "mul"),
    "ReduceSum": partial(_reduce, "add"),
    "Reshape": _reshape,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Sum": partial(_arithmetic, "add"),
    "Tile": _tile,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Where": _where,
}
