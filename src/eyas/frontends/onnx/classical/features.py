"""Rules for what stands before and after classical models: scalers, encoders, normalisers and choices of columns."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from eyas.errors import UnsupportedOpError
from eyas.frontends.onnx.rewrite.rules import Builder, attribute

_FLOAT, _DOUBLE, _INT64 = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64


def array_feature_extractor(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Columns by number. Of a list of text the numbers themselves are the result."""
    data, numbers = node.input
    if b.rank_of(data) is None:
        return None
    places = b.reshape(b.cast(numbers, _INT64), [-1])
    if b.type_of(data) == TensorProto.STRING:
        return [b.reshape(places, [1, -1])]
    if b.rank_of(data) == 1:
        data = b.reshape(data, [1, -1])
    return [b.add("Gather", data, places, axis=-1)]


def binarizer(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    if not (kind := b.type_of(node.input[0])):
        return None
    threshold = b.constant(attribute(node, "threshold", 0.0), np.float32)
    above = b.add("Greater", _as(node.input[0], _FLOAT, b), threshold)
    return [b.cast(above, kind)]


def feature_vectorizer(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Inputs side by side, each cut or filled up with zeros to the length that it is said to have."""
    lengths = list(attribute(node, "inputdimensions", []))
    parts = []
    for name, length in zip(node.input, lengths, strict=True):
        dims = b.dims_of(name)
        if dims is None or dims[-1] is None:
            return None
        value = b.reshape(_as(name, _FLOAT, b), [1, -1]) if len(dims) == 1 else _as(name, _FLOAT, b)
        if dims[-1] > length:
            value = b.add("Gather", value, b.constant(np.arange(length), np.int64), axis=1)
        elif dims[-1] < length:
            value = b.add("Pad", value, b.constant([0, 0, 0, length - dims[-1]], np.int64))
        parts.append(value)
    return [b.add("Concat", *parts, axis=1)]


def imputer(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Puts other numbers in the place of one that stands for a gap."""
    if not (kind := b.type_of(node.input[0])):
        return None
    whole = attribute(node, "imputed_value_int64s", None)
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    values = np.array(whole if whole else attribute(node, "imputed_value_floats", []), dtype)
    gap = attribute(node, "replaced_value_int64" if whole else "replaced_value_float", 0)
    found = b.add("IsNaN", node.input[0]) if gap != gap else b.add("Equal", node.input[0], b.constant(gap, dtype))
    return [b.add("Where", found, b.constant(values if values.size > 1 else values.reshape(())), node.input[0])]


def label_encoder(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Numbers to numbers; to text, the place in the list of texts, and -1 for what is not there."""
    kind = b.type_of(node.input[0])
    if not kind or b.rank_of(node.input[0]) is None:
        return None
    given = {found.name: helper.get_attribute_value(found) for found in node.attribute}
    if kind == TensorProto.STRING:
        raise _text(node, b)
    keys, values = (_list(given, part, b) for part in ("keys", "values"))
    if keys is None or values is None or keys.dtype.kind in "OSU":
        raise _text(node, b)
    if values.dtype.kind in "OSU":
        values, default = np.arange(len(values), dtype=np.int64), np.array(-1, np.int64)
    else:
        default = _default(given, values.dtype, b)
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    column = b.add("Unsqueeze", node.input[0], b.constant([-1], np.int64))
    equal = b.add("Equal", column, b.constant(keys.astype(dtype)))
    if np.dtype(dtype).kind == "f" and np.isnan(keys.astype(dtype)).any():
        missing = b.add("And", b.add("IsNaN", column), b.constant(np.isnan(keys.astype(dtype))))
        equal = b.add("Or", equal, missing)
    equal = b.cast(equal, TensorProto.INT32)
    place = b.add("ArgMax", equal, axis=-1, keepdims=0)
    known = b.cast(b.add("ReduceMax", equal, b.constant([-1], np.int64), keepdims=0), TensorProto.BOOL)
    return [b.add("Where", known, b.add("Gather", b.constant(values), place, axis=0), b.constant(default))]


def normalizer(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Divides rows by their norm; rows without one stay."""
    if not b.type_of(node.input[0]):
        return None
    x, how, axis = _as(node.input[0], _FLOAT, b), attribute(node, "norm", "MAX"), b.constant([-1], np.int64)
    if how == "MAX":
        norm = b.add("ReduceMax", x, axis, keepdims=1)
    elif how == "L1":
        norm = b.add("ReduceSum", b.add("Abs", x), axis, keepdims=1)
    else:
        norm = b.add("Sqrt", b.add("ReduceSum", b.add("Mul", x, x), axis, keepdims=1))
    nothing = b.add("Equal", norm, b.constant(0, np.float32))
    return [b.add("Div", x, b.add("Where", nothing, b.constant(1, np.float32), norm))]


def one_hot_encoder(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    kind = b.type_of(node.input[0])
    categories = attribute(node, "cats_int64s", None)
    if not kind:
        return None
    if kind == TensorProto.STRING or not categories:
        raise _text(node, b)
    whole = _as(node.input[0], _INT64, b)
    column = b.add("Unsqueeze", whole, b.constant([-1], np.int64))
    return [b.cast(b.add("Equal", column, b.constant(categories, np.int64)), _FLOAT)]


def scaler(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """(x - offset) * scale, of each column or of all."""
    if not b.type_of(node.input[0]):
        return None
    value = _as(node.input[0], _FLOAT, b)
    if offset := attribute(node, "offset", []):
        value = b.add("Sub", value, b.constant(offset, np.float32))
    if scale := attribute(node, "scale", []):
        value = b.add("Mul", value, b.constant(scale, np.float32))
    return [value]


def zip_map(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """A list of maps from class to score becomes the matrix of scores: its columns are the classes in their order."""
    return [b.add("Identity", node.input[0])]


def _as(name: str, kind: int, b: Builder) -> str:
    return name if b.type_of(name) == kind else b.cast(name, kind)


def _list(given: dict, part: str, b: Builder) -> np.ndarray | None:
    """The keys or values of an encoder, whatever attribute has them."""
    for name, dtype in (("int64s", np.int64), ("floats", np.float32), ("strings", object)):
        if given.get(f"{part}_{name}"):
            return np.array(given[f"{part}_{name}"], dtype)
    return b.read(given[f"{part}_tensor"]) if f"{part}_tensor" in given else None


def _default(given: dict, dtype: np.dtype, b: Builder) -> np.ndarray:
    if "default_tensor" in given:
        return b.read(given["default_tensor"]).astype(dtype).reshape(())
    name, other = ("default_float", -0.0) if dtype.kind == "f" else ("default_int64", -1)
    return np.array(given.get(name, other), dtype)


def _text(node: onnx.NodeProto, b: Builder) -> UnsupportedOpError:
    why = "it takes text; encode text as numbers before the model and compile what follows"
    return UnsupportedOpError(f"{b.describe(node)} is not supported: {why}")
