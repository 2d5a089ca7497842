"""Rules for operators that move elements, or make tensors of indices and sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from eyas.frontends.tensorflow import moves
from eyas.frontends.tensorflow.elementwise import select
from eyas.frontends.tensorflow.graph import Complex, dims_of
from eyas.frontends.tensorflow.moves import Masks, known
from eyas.frontends.tflite.quantize import dequantize, is_quantized, quantize, zero_of
from eyas.frontends.tflite.translate import Call


def _numbers(call: Call, index: int, what: str) -> np.ndarray:
    return known(call.g, call.input(index), what)


def reshape(call: Call) -> Any:
    """The shape is an operand, or an option in old files; -1 is what is left."""
    shape = call.input(1)
    if shape is None:
        shape = np.array(call.record.numbers("NewShape") or call.result.shape, np.int64)
    if isinstance(shape, np.ndarray) and shape.size == 1 and shape.reshape(-1)[0] == 0 and not call.result.shape:
        shape = np.zeros(0, np.int64)  # old files say a scalar so
    return call.g.reshape(call.input(0), shape)


def transpose(call: Call) -> Any:
    order = _numbers(call, 1, "order").reshape(-1) % max(1, len(dims_of(call.input(0))))
    return call.g.transpose(call.input(0), order.tolist())


def pad(call: Call) -> Any:
    """PAD fills with zero, which is the zero point of integers; PADV2 with an operand."""
    fill = call.input(2)
    if fill is None and is_quantized(call.result):
        fill = zero_of(call.result)
    return moves.pad(call.g, call.input(0), call.input(1), fill)


def mirror_pad(call: Call) -> Any:
    return moves.mirror_pad(call.g, call.input(0), call.input(1), bool(call.get("Mode", 0)))


def squeeze(call: Call) -> Any:
    return moves.squeeze(call.g, call.input(0), call.record.numbers("SqueezeDims") or [])


def expand_dims(call: Call) -> Any:
    return moves.expand_dims(call.g, call.input(0), int(_numbers(call, 1, "axis").reshape(-1)[0]))


def split(call: Call) -> Any:
    axis, x = int(_numbers(call, 0, "axis").reshape(-1)[0]), call.input(1)
    count = len(call.results)
    return moves.split(call.g, x, axis, [call.g.size(x, axis) // count] * count)


def split_v(call: Call) -> Any:
    axis = int(_numbers(call, 2, "axis").reshape(-1)[0])
    return moves.split(call.g, call.input(0), axis, _numbers(call, 1, "sizes").reshape(-1).tolist())


def strided_slice(call: Call) -> Any:
    names = {"begin": "BeginMask", "end": "EndMask", "ellipsis": "EllipsisMask", "new_axis": "NewAxisMask"}
    masks = Masks(**{key: call.get(name) for key, name in names.items()}, shrink=call.get("ShrinkAxisMask"))
    begin, end, strides = call.inputs[1:4]
    if call.get("Offset", False):
        end = call.g.add("Add", begin, end)
    return moves.strided_slice(call.g, call.input(0), begin, end, strides, masks)


def space_to_batch(call: Call) -> Any:
    fill = zero_of(call.result) if is_quantized(call.result) else None
    block, pairs = _numbers(call, 1, "block"), _numbers(call, 2, "padding")
    return moves.space_to_batch(call.g, call.input(0), block, pairs, fill)


def batch_to_space(call: Call) -> Any:
    return moves.batch_to_space(call.g, call.input(0), _numbers(call, 1, "block"), _numbers(call, 2, "crops"))


def gather(call: Call) -> Any:
    return moves.gather(call.g, call.input(0), call.input(1), call.get("Axis"), call.get("BatchDims"))


def embedding_lookup(call: Call) -> Any:
    """Rows of a table, which may be of integers while the result is real."""
    g, table, record = call.g, call.input(1), call.type(1)
    rows = g.add("Gather", table, call.input(0), axis=0)
    if is_quantized(record) and not is_quantized(call.result):
        return dequantize(g, rows, record)
    return rows


def scatter_nd(call: Call) -> Any:
    return moves.scatter_nd(call.g, call.input(0), call.input(1), _numbers(call, 2, "shape"))


def sparse_to_dense(call: Call) -> Any:
    """Values at indices of a tensor that holds a default elsewhere."""
    g, indices, values = call.g, call.input(0), call.input(2)
    shape = [int(size) for size in _numbers(call, 1, "shape").reshape(-1)]
    rank = len(dims_of(indices))
    places = g.reshape(indices, [-1, len(shape)] if rank == 2 else [-1, 1] if rank == 1 else [1, 1])
    start = np.full(shape, _numbers(call, 3, "default").reshape(()), values.dtype)
    count = g.size(places, 0)
    spread = moves.broadcast_to(g, values, np.array([count], np.int64))
    return g.add("ScatterND", start, g.cast(places, np.int64), spread)


def dynamic_update_slice(call: Call) -> Any:
    """An update written into a tensor at an index that is kept inside."""
    g, x, update, start = call.g, *call.inputs[:3]
    sizes, parts = dims_of(x), dims_of(update)
    places = []
    for axis in range(len(sizes)):
        first = g.add("Gather", g.cast(start, np.int64), np.array(axis, np.int64))
        last = np.array(g.size(x, axis) - g.size(update, axis), np.int64)
        first = g.add("Min", g.add("Max", first, np.array(0, np.int64)), last)
        span = np.arange(g.size(update, axis)).reshape([-1 if i == axis else 1 for i in range(len(sizes))])
        places.append(moves.broadcast_to(g, g.add("Add", first, span), np.array(parts, np.int64)))
    return g.add("ScatterND", x, moves.pack(g, places, -1), update)


def one_hot(call: Call) -> Any:
    depth = int(_numbers(call, 1, "depth").reshape(-1)[0])
    return moves.one_hot(call.g, call.input(0), depth, call.input(2), call.input(3), call.get("Axis", -1))


def choose(call: Call) -> Any:
    """SELECT of rows: a condition of fewer dimensions is about the first ones."""
    g, condition, yes, no = call.g, *call.inputs[:3]
    less = len(dims_of(yes)) - len(dims_of(condition))
    if call.record.name == "SELECT" and less > 0 and dims_of(condition):
        condition = g.reshape(condition, [*(g.size(condition, i) for i in range(len(dims_of(condition)))), *[1] * less])
    return select(g, condition, yes, no)


def shape(call: Call) -> Any:
    return call.g.cast(call.g.shape_of(_real_part(call.input(0))), call.result.dtype)


def rank(call: Call) -> Any:
    return np.array(len(dims_of(call.input(0))), np.int32)


def _real_part(x: Any) -> Any:
    return x.real if isinstance(x, Complex) else x


def fill(call: Call) -> Any:
    return moves.broadcast_to(call.g, call.g.reshape(call.input(1), []), call.input(0))


def zeros_like(call: Call) -> Any:
    return moves.broadcast_to(call.g, np.zeros((), call.input(0).dtype), call.g.shape_of(call.input(0)))


def range_(call: Call) -> Any:
    return call.g.add("Range", *(call.g.reshape(one, []) for one in call.inputs[:3]))


def broadcast_args(call: Call) -> Any:
    x, y = (_numbers(call, i, "shape") for i in (0, 1))
    return np.array(np.broadcast_shapes(tuple(x), tuple(y)), x.dtype)


def tile(call: Call) -> Any:
    return call.g.add("Tile", call.input(0), call.g.cast(call.input(1), np.int64))


def where(call: Call) -> Any:
    """The indices of what is not zero, a row each."""
    return call.g.transpose(call.g.add("NonZero", call.input(0)), [1, 0])


def reverse_sequence(call: Call) -> Any:
    """The first elements along one axis backwards, as many as the batch's entry says."""
    g, x, lengths = call.g, *call.inputs[:2]
    time, batch = call.get("SeqDim"), call.get("BatchDim")
    order = [time, batch, *(i for i in range(len(dims_of(x))) if i not in (time, batch))]
    found = g.add("ReverseSequence", g.transpose(x, order), g.cast(lengths, np.int64), time_axis=0, batch_axis=1)
    return g.transpose(found, np.argsort(order).tolist())


def matrix_diag(call: Call) -> Any:
    """Vectors on diagonals of matrices that are zero elsewhere."""
    g, x = call.g, call.input(0)
    size = g.size(x, -1)
    return g.add("Where", np.eye(size, dtype=np.bool_), moves.expand_dims(g, x, -1), np.zeros((), x.dtype))


def matrix_set_diag(call: Call) -> Any:
    g, x, diagonal = call.g, *call.inputs[:2]
    rows, columns = g.size(x, -2), g.size(x, -1)
    lines = moves.expand_dims(g, diagonal, -1)  # rows of the diagonal, spread over columns
    if rows > columns:
        lines = moves.pad(g, lines, np.array([[0, 0]] * (len(dims_of(x)) - 2) + [[0, rows - columns], [0, 0]]))
    return g.add("Where", np.eye(rows, columns, dtype=np.bool_), lines, x)


def cast(call: Call) -> Any:
    """Of complex numbers the real part stays."""
    return call.g.cast(_real_part(call.input(0)), call.result.dtype)


def quantize_(call: Call) -> Any:
    if is_quantized(call.type(0)):
        return quantize(call.g, dequantize(call.g, call.input(0), call.type(0)), call.result)
    return quantize(call.g, call.g.cast(call.input(0), np.float32), call.result)


def dequantize_(call: Call) -> Any:
    if is_quantized(call.type(0)):
        return dequantize(call.g, call.input(0), call.type(0))
    return call.g.cast(call.input(0), call.result.dtype)


def bitcast(call: Call) -> Any:
    """Known bits as another type; ONNX has none for others."""
    return _numbers(call, 0, "input").view(call.result.dtype).reshape(call.result.shape)


def dilate(call: Call) -> Any:
    """Elements apart, with a value between them."""
    g, x = call.g, call.input(0)
    steps, fill_ = _numbers(call, 1, "dilations").reshape(-1), call.g.reshape(call.input(2), [])
    for axis, step in enumerate(int(one) for one in steps):
        if step > 1:
            sizes = [g.size(x, i) for i in range(len(dims_of(x)))]
            wide = moves.expand_dims(g, x, axis + 1)
            pairs = [[0, 0]] * len(dims_of(wide))
            pairs[axis + 1] = [0, step - 1]
            wide = moves.pad(g, wide, np.array(pairs), fill_)
            joined = g.reshape(wide, [*sizes[:axis], sizes[axis] * step, *sizes[axis + 1 :]])
            end = np.array([(sizes[axis] - 1) * step + 1], np.int64)
            x = g.add("Slice", joined, np.array([0], np.int64), end, np.array([axis], np.int64))
    return x


MOVES = {
    "BATCH_TO_SPACE_ND": batch_to_space,
    "BROADCAST_TO": lambda call: moves.broadcast_to(call.g, call.input(0), call.input(1)),
    "CONCATENATION": lambda call: moves.concatenate(call.g, call.inputs, call.get("Axis")),
    "DENSIFY": lambda call: call.input(0),
    "DEPTH_TO_SPACE": lambda call: moves.depth_to_space(call.g, call.input(0), call.get("BlockSize", 1)),
    "DILATE": dilate,
    "DYNAMIC_UPDATE_SLICE": dynamic_update_slice,
    "EXPAND_DIMS": expand_dims,
    "GATHER": gather,
    "GATHER_ND": lambda call: call.g.add("GatherND", call.input(0), call.g.cast(call.input(1), np.int64)),
    "MATRIX_DIAG": matrix_diag,
    "MATRIX_SET_DIAG": matrix_set_diag,
    "MIRROR_PAD": mirror_pad,
    "PACK": lambda call: moves.pack(call.g, call.inputs, call.get("Axis")),
    "PAD": pad,
    "PADV2": pad,
    "RESHAPE": reshape,
    "REVERSE_SEQUENCE": reverse_sequence,
    "REVERSE_V2": lambda call: moves.reverse(call.g, call.input(0), _numbers(call, 1, "axes").reshape(-1).tolist()),
    "SELECT": choose,
    "SELECT_V2": choose,
    "SLICE": lambda call: moves.slice_(call.g, call.input(0), call.input(1), call.input(2)),
    "SPACE_TO_BATCH_ND": space_to_batch,
    "SPACE_TO_DEPTH": lambda call: moves.space_to_depth(call.g, call.input(0), call.get("BlockSize", 1)),
    "SPLIT": split,
    "SPLIT_V": split_v,
    "SQUEEZE": squeeze,
    "STRIDED_SLICE": strided_slice,
    "TILE": tile,
    "TRANSPOSE": transpose,
    "UNPACK": lambda call: moves.unpack(call.g, call.input(0), call.get("Axis"), len(call.results)),
}

EXACT = {
    "BITCAST": bitcast,
    "BROADCAST_ARGS": broadcast_args,
    "CAST": cast,
    "DEQUANTIZE": dequantize_,
    "EMBEDDING_LOOKUP": embedding_lookup,
    "FILL": fill,
    "ONE_HOT": one_hot,
    "QUANTIZE": quantize_,
    "RANGE": range_,
    "RANK": rank,
    "SCATTER_ND": scatter_nd,
    "SHAPE": shape,
    "SPARSE_TO_DENSE": sparse_to_dense,
    "WHERE": where,
    "ZEROS_LIKE": zeros_like,
}
