"""Sequences and optionals of tensors whose contents are known when the model is compiled: they leave the graph.

A sequence is followed from where it is made to where a tensor is taken out of it, as a list of the tensors' names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from eyas.frontends.onnx.file import OnnxModel, is_large
from eyas.frontends.onnx.subgraphs import replace_nodes


def resolve_sequences(model: OnnxModel) -> bool:
    """Replaces operators on sequences and optionals by operators on tensors; says whether there were any. Shapes must
    have been inferred and sizes folded. What depends on data stays, for others to refuse."""
    walk = _Walk(model)
    if not any(node.op_type in _RULES for node in model.proto.graph.node):
        return False
    changed = False
    for node in model.proto.graph.node:
        rule = _RULES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        if rule is not None and (made := rule(walk, node)) is not None:
            walk.nodes.extend(made)
            changed = True
        else:
            walk.nodes.append(node)
    if changed:
        used = {name for node in walk.nodes for name in node.input} | {v.name for v in model.proto.graph.output}
        replace_nodes(model.proto.graph, walk.nodes)
        names = set(walk.sequences) - used
        infos = model.proto.graph.value_info
        for index in reversed(range(len(infos))):
            if infos[index].name in names:
                del infos[index]
    return changed


class _Walk:
    def __init__(self, model: OnnxModel):
        graph = model.proto.graph
        self.graph = graph
        self.nodes: list[onnx.NodeProto] = []
        self.sequences: dict[str, list[str]] = {}
        """The tensors of each sequence, or of each optional, which has one or none."""
        self.types = {value.name: value.type for value in [*graph.value_info, *graph.input, *graph.output]}
        self.tensors = {tensor.name: tensor for tensor in graph.initializer}
        self.opset = next((o.version for o in model.proto.opset_import if o.domain in ("", "ai.onnx")), 0)

    def number(self, node: onnx.NodeProto, index: int) -> int | None:
        values = self.numbers(node, index)
        return int(values.reshape(-1)[0]) if values is not None and values.size == 1 else None

    def numbers(self, node: onnx.NodeProto, index: int) -> np.ndarray | None:
        tensor = self.tensors.get(node.input[index]) if index < len(node.input) else None
        return None if tensor is None or is_large(tensor) else numpy_helper.to_array(tensor)

    def constant(self, name: str, values: Any, dtype: Any = np.int64) -> str:
        self.graph.initializer.append(numpy_helper.from_array(np.array(values, dtype), name))
        self.tensors[name] = self.graph.initializer[-1]
        return name

    def size(self, name: str, axis: int) -> int | None:
        if name in self.tensors:
            return self.tensors[name].dims[axis]
        type_ = self.types.get(name)
        dims = type_.tensor_type.shape.dim if type_ is not None else []
        return dims[axis].dim_value if len(dims) and dims[axis].HasField("dim_value") else None

    def rank(self, name: str) -> int | None:
        if name in self.tensors:
            return len(self.tensors[name].dims)
        type_ = self.types.get(name)
        if type_ is None or not type_.tensor_type.HasField("shape"):
            return None
        return len(type_.tensor_type.shape.dim)

    # Sequences.

    def construct(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        self.sequences[node.output[0]] = list(node.input)
        return []

    def insert(self, node: onnx.NodeProto) -> list[onnx.NodeProto] | None:
        items = self.sequences.get(node.input[0])
        has_place = len(node.input) > 2 and node.input[2]
        place = self.number(node, 2) if has_place else len(items or [])
        if items is None or place is None or not -len(items) <= place <= len(items):
            return None
        place += len(items) if place < 0 else 0
        self.sequences[node.output[0]] = [*items[:place], node.input[1], *items[place:]]
        return []

    def erase(self, node: onnx.NodeProto) -> list[onnx.NodeProto] | None:
        items = self.sequences.get(node.input[0])
        place = self.number(node, 1) if len(node.input) > 1 and node.input[1] else -1
        if not items or place is None or not -len(items) <= place < len(items):
            return None
        place %= len(items)
        self.sequences[node.output[0]] = [*items[:place], *items[place + 1 :]]
        return []

    def at(self, node: onnx.NodeProto) -> list[onnx.NodeProto] | None:
        items, place = self.sequences.get(node.input[0]), self.number(node, 1)
        if items is None or place is None or not -len(items) <= place < len(items):
            return None
        return [helper.make_node("Identity", [items[place]], list(node.output), name=node.name)]

    def length(self, node: onnx.NodeProto) -> list[onnx.NodeProto] | None:
        items = self.sequences.get(node.input[0])
        return None if items is None else self.known(node, len(items), np.int64)

    def known(self, node: onnx.NodeProto, value: Any, dtype: Any) -> list[onnx.NodeProto]:
        source = self.constant(f"{node.output[0]}_known", value, dtype)
        return [helper.make_node("Identity", [source], list(node.output), name=node.name)]

    def concat(self, node: onnx.NodeProto) -> list[onnx.NodeProto] | None:
        items = self.sequences.get(node.input[0])
        if not items:
            return None
        given = {attribute.name: attribute.i for attribute in node.attribute}
        nodes, parts = [], list(items)
        if given.get("new_axis", 0):
            axes = self.constant(f"{node.name}_axes", [given["axis"]])
            parts = [f"{node.name}_part_{at}" for at in range(len(items))]
            nodes = [helper.make_node("Unsqueeze", [a, axes], [b], name=b) for a, b in zip(items, parts, strict=True)]
        return [*nodes, helper.make_node("Concat", parts, list(node.output), name=node.name, axis=given["axis"])]

    def split(self, node: onnx.NodeProto) -> list[onnx.NodeProto] | None:
        given = {attribute.name: attribute.i for attribute in node.attribute}
        axis, rank = given.get("axis", 0), self.rank(node.input[0])
        has_split = len(node.input) > 1 and bool(node.input[1])
        wanted = self.numbers(node, 1) if has_split else np.array(1)
        size = None if rank is None else self.size(node.input[0], axis)
        if wanted is None:
            return None
        if wanted.ndim == 0:
            if size is None:
                return None
            step = int(wanted)
            sizes = [min(step, size - start) for start in range(0, size, step)]
        else:
            sizes = [int(one) for one in wanted]
        parts = [f"{node.output[0]}_item_{at}" for at in range(len(sizes))]
        split = self.constant(f"{node.name}_sizes", sizes)
        nodes = [helper.make_node("Split", [node.input[0], split], parts, name=node.name, axis=axis)]
        if not has_split and not given.get("keepdims", 1):
            axes = self.constant(f"{node.name}_axes", [axis])
            items = [f"{part}_squeezed" for part in parts]
            nodes += [helper.make_node("Squeeze", [a, axes], [b], name=b) for a, b in zip(parts, items, strict=True)]
            parts = items
        self.sequences[node.output[0]] = parts
        return nodes

    def same(self, node: onnx.NodeProto) -> list[onnx.NodeProto] | None:
        if node.input[0] not in self.sequences:
            return None
        self.sequences[node.output[0]] = self.sequences[node.input[0]]
        return []

    # Optionals.

    def optional(self, node: onnx.NodeProto) -> list[onnx.NodeProto] | None:
        if node.input and node.input[0] in self.sequences:
            return None
        self.sequences[node.output[0]] = [name for name in node.input if name]
        return []

    def get_element(self, node: onnx.NodeProto) -> list[onnx.NodeProto] | None:
        items = self.sequences.get(node.input[0])
        kind = self.types[node.input[0]].WhichOneof("value") if node.input[0] in self.types else None
        if items is None and kind == "tensor_type":
            items = [node.input[0]]
        if items is None or len(items) != 1:
            return None
        return [helper.make_node("Identity", items, list(node.output), name=node.name)]

    def has_element(self, node: onnx.NodeProto) -> list[onnx.NodeProto] | None:
        if not node.input or not node.input[0]:
            return self.known(node, False, np.bool_)
        items = self.sequences.get(node.input[0])
        kind = self.types[node.input[0]].WhichOneof("value") if node.input[0] in self.types else None
        if items is None and kind in ("tensor_type", "sequence_type"):
            return self.known(node, True, np.bool_)
        return None if items is None else self.known(node, bool(items), np.bool_)


_RULES: dict[str, Callable[[_Walk, onnx.NodeProto], list[onnx.NodeProto] | None]] = {
    "ConcatFromSequence": _Walk.concat,
    "Identity": _Walk.same,
    "Optional": _Walk.optional,
    "OptionalGetElement": _Walk.get_element,
    "OptionalHasElement": _Walk.has_element,
    "SequenceAt": _Walk.at,
    "SequenceConstruct": _Walk.construct,
    "SequenceEmpty": _Walk.construct,
    "SequenceErase": _Walk.erase,
    "SequenceInsert": _Walk.insert,
    "SequenceLength": _Walk.length,
    "SplitToSequence": _Walk.split,
}
