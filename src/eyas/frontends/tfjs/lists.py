"""Rules for lists of tensors. A TensorArray's entries travel with its flow; its handle is of no use then."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from eyas.frontends.tensorflow import moves
from eyas.frontends.tensorflow.graph import dims_of
from eyas.frontends.tensorflow.lists import TensorList, from_rows, reserve
from eyas.frontends.tfjs.node import Node, Rule, dtype_of


def _list(node: Node, index: int) -> TensorList:
    found = node.inputs[index]
    if not isinstance(found, TensorList):
        raise node.refuse("it is given no list that is known")
    return found


def _scattered(node: Node, rows: Any, indices: Any) -> TensorList:
    """A list whose entries are the rows of a tensor in another order."""
    places = moves.known(node.g, indices, "indices").reshape(-1)
    entries = moves.unpack(node.g, rows, 0, len(places)) if len(places) else []
    found = TensorList(np.dtype(rows.dtype), dims_of(rows)[1:])
    if np.array_equal(places, np.arange(len(places))):
        return from_rows(node.g, rows)
    for place, entry in zip(places, entries, strict=True):
        found = found.set(node.g, np.array(place), entry)
    return found


def _gathered(node: Node, entries: TensorList, indices: Any) -> Any:
    count = len(entries.items) if entries.items is not None else None
    if isinstance(indices, np.ndarray) and count is not None and np.array_equal(indices, np.arange(count)):
        return entries.stack(node.g)
    places = node.g.cast(indices, np.int64)
    return node.g.add("Gather", entries.stack(node.g), places, axis=0)


def _concatenated(node: Node, entries: TensorList) -> list[Any]:
    if entries.items is None:
        count, first, *rest = dims_of(entries.rows)
        joined = moves.reshape_to(node.g, entries.rows, [None, *rest])
        if not isinstance(count, int) or not isinstance(first, int):
            raise node.refuse("it joins entries whose number or length is only known when the model runs")
        return [joined, np.full(count, first, np.int32)]
    items = [item for item in entries.items if item is not None]
    if len(items) < len(entries.items) or not items:
        raise node.refuse("it joins entries of which some were never written")
    lengths = np.array([node.g.size(item, 0) for item in items], np.int32)
    return [moves.concatenate(node.g, items, 0), lengths]


def _split(node: Node, rows: Any, lengths: Any) -> TensorList:
    sizes = moves.known(node.g, lengths, "lengths").reshape(-1).tolist()
    items = moves.split(node.g, rows, 0, sizes)
    same = len(set(sizes)) == 1
    return TensorList(np.dtype(rows.dtype), (sizes[0] if same else None, *dims_of(rows)[1:]), tuple(items))


def _reserve(node: Node) -> TensorList:
    return reserve(node.g, dtype_of(node, "element_dtype"), *node.inputs[:2])


def _empty(node: Node) -> TensorList:
    return reserve(node.g, dtype_of(node, "element_dtype"), node.inputs[0], np.array(0))


def _scatter(node: Node) -> TensorList:
    found = _scattered(node, *node.inputs[:2])
    return _resized(node, found, node.inputs[3]) if len(node.inputs) > 3 else found


def _resized(node: Node, entries: TensorList, count: Any) -> TensorList:
    wanted = int(moves.known(node.g, count, "length").reshape(()))
    if entries.items is None or wanted < 0:
        return entries
    items = entries.items[:wanted] + (None,) * (wanted - len(entries.items))
    return replace(entries, items=items)


def _array(node: Node) -> list[Any]:
    shape = node.get("element_shape")
    known = np.array(shape) if isinstance(shape, list) and shape else np.array(-1)
    made = reserve(node.g, dtype_of(node, "dtype"), known, node.inputs[0])
    return [made, made]


def _stack(node: Node) -> Any:
    entries = _list(node, 0)
    if not entries.is_shaped and len(node.inputs) > 1 and isinstance(node.inputs[1], np.ndarray):
        entries = entries.shaped_like(reserve(node.g, entries.dtype, node.inputs[1], np.array(0)))
    return entries.stack(node.g)


RULES: dict[str, Rule] = {
    "EmptyTensorList": _empty,
    "TensorArrayCloseV3": lambda node: [],
    "TensorArrayConcatV3": lambda node: _concatenated(node, _list(node, 1)),
    "TensorArrayGatherV3": lambda node: _gathered(node, _list(node, 2), node.inputs[1]),
    "TensorArrayReadV3": lambda node: _list(node, 2).get(node.g, node.inputs[1]),
    "TensorArrayScatterV3": lambda node: _scattered(node, node.inputs[2], node.inputs[1]),
    "TensorArraySizeV3": lambda node: _list(node, 1).length(node.g),
    "TensorArraySplitV3": lambda node: _split(node, node.inputs[1], node.inputs[2]),
    "TensorArrayV3": _array,
    "TensorArrayWriteV3": lambda node: _list(node, 3).set(node.g, node.inputs[1], node.inputs[2]),
    "TensorListConcat": lambda node: _concatenated(node, _list(node, 0)),
    "TensorListConcatV2": lambda node: _concatenated(node, _list(node, 0)),
    "TensorListFromTensor": lambda node: from_rows(node.g, node.inputs[0]),
    "TensorListGather": lambda node: _gathered(node, _list(node, 0), node.inputs[1]),
    "TensorListGetItem": lambda node: _list(node, 0).get(node.g, node.inputs[1]),
    "TensorListLength": lambda node: _list(node, 0).length(node.g),
    "TensorListPopBack": lambda node: list(_list(node, 0).pop(node.g)),
    "TensorListPushBack": lambda node: _list(node, 0).push(node.g, node.inputs[1]),
    "TensorListReserve": _reserve,
    "TensorListResize": lambda node: _resized(node, _list(node, 0), node.inputs[1]),
    "TensorListScatter": _scatter,
    "TensorListScatterV2": _scatter,
    "TensorListSetItem": lambda node: _list(node, 0).set(node.g, node.inputs[1], node.inputs[2]),
    "TensorListSplit": lambda node: _split(node, node.inputs[0], node.inputs[2]),
    "TensorListStack": _stack,
}
