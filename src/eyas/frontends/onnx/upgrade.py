"""Models of older opsets in the words of opset 13 or 18: attributes that became inputs, meanings that changed.

All rules and the importer know one form of each operator then. Most operators only took more types in between; those
that did not are listed here. onnx's own converter lacks several of them and knows no operators of other domains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from eyas.frontends.onnx.file import OnnxModel
from eyas.frontends.onnx.subgraphs import all_graphs, all_nodes

OLDEST, COMMON, LATEST = 7, 13, 18
# From `COMMON` to this opset only types were added, but for two operators; the importer knows comparisons of this one.
SAME = 16
# What changed its meaning or its inputs after `LATEST`, and when.
_CHANGED_LATER = {"DFT": 20, "GridSample": 20, "GroupNormalization": 21}


def upgrade(model: OnnxModel, types: Mapping[str, onnx.TypeProto], wanted: int = COMMON) -> None:
    """Writes a model of an older opset as one of opset 13, or of 18 where that is wanted; others stay as they are.
    `types` are what is known."""
    for step in (COMMON, LATEST):
        if step <= wanted:
            _upgrade_to(model, types, step)
        _call_same(model)


def _call_same(model: OnnxModel) -> None:
    """Calls operators that are the same in a newer opset operators of that one."""
    for opset in model.proto.opset_import:
        if opset.domain not in ("", "ai.onnx") or not COMMON <= opset.version < SAME:
            continue
        nodes = all_nodes(model.proto.graph)
        if not any(node.op_type == "RoiAlign" or _is_training(node) for node in nodes):
            model.written_opset = model.written_opset or opset.version
            opset.version = SAME


def _is_training(node: onnx.NodeProto) -> bool:
    return node.op_type == "BatchNormalization" and len(node.output) > 1


def _upgrade_to(model: OnnxModel, types: Mapping[str, onnx.TypeProto], wanted: int) -> None:
    oldest = OLDEST if wanted == COMMON else COMMON
    for opset in model.proto.opset_import:
        if opset.domain not in ("", "ai.onnx") or not oldest <= opset.version < wanted:
            continue
        if opset.version < 9 and any(node.op_type == "Scan" for node in all_nodes(model.proto.graph)):
            # Scan lost its batch dimension in opset 9, for which there is a rule of its own.
            continue
        _rewrite(model.proto.graph, opset.version, wanted, types)
        model.written_opset = model.written_opset or opset.version
        opset.version = wanted


def write_as(main: onnx.GraphProto, version: int, wanted: int, types: Mapping[str, onnx.TypeProto]) -> bool:
    """Writes a graph of one opset in the words of any newer one from `COMMON` on; says whether that is known."""
    if not OLDEST <= version <= wanted or wanted < COMMON:
        return False
    for node in all_nodes(main):
        changed = _CHANGED_LATER.get(node.op_type, 0) if node.domain in ("", "ai.onnx") else 0
        if version < changed <= wanted or (version < 9 and node.op_type == "Scan") or _is_training(node):
            return False
        if node.op_type == "RoiAlign" and version < SAME <= wanted < LATEST:
            return False
    steps = [(step, rules) for step, rules in ((COMMON, _RULES), (LATEST, _LATER_RULES)) if version < step <= wanted]
    # Attributes that a function is called with have no value in its body.
    open_ = {node.op_type for node in all_nodes(main) if any(given.ref_attr_name for given in node.attribute)}
    if any(open_ & rules.keys() for _, rules in steps):
        return False
    for step, _ in steps:
        _rewrite(main, version, step, types)
        version = step
    return True


def _rewrite(main: onnx.GraphProto, version: int, step: int, types: Mapping[str, onnx.TypeProto]) -> None:
    for graph in all_graphs(main):
        _Upgrade(main, version, types).run(graph, _RULES if step == COMMON else _LATER_RULES)


class _Upgrade:
    def __init__(self, main: onnx.GraphProto, version: int, types: Mapping[str, onnx.TypeProto]):
        self.version, self.main, self.types = version, main, types
        self.names = {name for graph in all_graphs(self.main) for node in graph.node for name in node.output}
        self.names |= {tensor.name for tensor in self.main.initializer}
        self.added: list[onnx.NodeProto] = []

    def run(self, graph: onnx.GraphProto, rules: Mapping[str, UpgradeRule]) -> None:
        nodes: list[onnx.NodeProto] = []
        for node in graph.node:
            self.added, after = [], []
            rule = rules.get(node.op_type) if node.domain in ("", "ai.onnx") else None
            if rule is not None:
                after = rule(self, node) or []
            for one in (*self.added, node, *after):
                nodes.append(onnx.NodeProto())
                nodes[-1].CopyFrom(one)
        del graph.node[:]
        graph.node.extend(nodes)

    def name(self, hint: str) -> str:
        name, count = hint, 0
        while name in self.names:
            count += 1
            name = f"{hint}_{count}"
        self.names.add(name)
        return name

    def constant(self, node: onnx.NodeProto, what: str, values: Any, dtype: Any) -> str:
        name = self.name(f"{node.output[0] or node.name}_{what}")
        self.main.initializer.append(numpy_helper.from_array(np.array(values, dtype), name))
        return name

    def before(self, node: onnx.NodeProto, op: str, inputs: list[str], **attributes: Any) -> str:
        """A node in front of another one; returns its result's name."""
        result = self.name(f"{node.output[0]}_{op.lower()}")
        self.added.append(helper.make_node(op, inputs, [result], name=result, **attributes))
        return result


def take(node: onnx.NodeProto, name: str, default: Any = None) -> Any:
    """Removes an attribute and gives its value."""
    for index, attribute in enumerate(node.attribute):
        if attribute.name == name:
            value = helper.get_attribute_value(attribute)
            del node.attribute[index]
            return value
    return default


def put(node: onnx.NodeProto, index: int, name: str) -> None:
    """Sets an input, which may be behind the last one."""
    while len(node.input) <= index:
        node.input.append("")
    node.input[index] = name


def _axes(up: _Upgrade, node: onnx.NodeProto) -> None:
    axes = take(node, "axes")
    if axes is not None:
        put(node, 1, up.constant(node, "axes", axes, np.int64))


def _split(up: _Upgrade, node: onnx.NodeProto) -> None:
    sizes = take(node, "split")
    if sizes is not None:
        put(node, 1, up.constant(node, "split", sizes, np.int64))


def _softmax(up: _Upgrade, node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """Before, all dimensions from the axis on were one: flatten, normalise the rows, and back."""
    axis = take(node, "axis", 1)
    type_ = up.types.get(node.input[0])
    dims = type_.tensor_type.shape.dim if type_ is not None and type_.tensor_type.HasField("shape") else None
    if axis == -1 or (dims is not None and axis == len(dims) - 1):
        node.attribute.append(helper.make_attribute("axis", -1))
        return []
    source, result = node.input[0], node.output[0]
    node.input[0] = up.before(node, "Flatten", [source], axis=axis)
    shape = up.before(node, "Shape", [source])
    node.output[0] = up.name(f"{result}_rows")
    node.attribute.append(helper.make_attribute("axis", 1))
    return [helper.make_node("Reshape", [node.output[0], shape], [result], name=f"{result}_whole")]


def _slice(up: _Upgrade, node: onnx.NodeProto) -> None:
    for index, name in enumerate(("starts", "ends", "axes"), 1):
        values = take(node, name)
        if values is not None:
            put(node, index, up.constant(node, name, values, np.int64))


def _top_k(up: _Upgrade, node: onnx.NodeProto) -> None:
    k = take(node, "k")
    if k is not None:
        put(node, 1, up.constant(node, "k", [k], np.int64))


def _upsample(up: _Upgrade, node: onnx.NodeProto) -> None:
    """Upsample and Resize of opset 10 take pixels at multiples of the scale, the nearest one below."""
    scales = take(node, "scales")
    given = up.constant(node, "scales", scales, np.float32) if scales is not None else node.input[1]
    _write_resize(node, given)


def _resize(up: _Upgrade, node: onnx.NodeProto) -> None:
    if up.version == 10:
        _write_resize(node, node.input[1])


def _write_resize(node: onnx.NodeProto, scales: str) -> None:
    mode = take(node, "mode", b"nearest")
    mode = mode.decode() if isinstance(mode, bytes) else mode
    node.op_type = "Resize"
    node.input[:] = [node.input[0], "", scales]
    node.attribute.append(helper.make_attribute("mode", "linear" if mode == "bilinear" else mode))
    node.attribute.append(helper.make_attribute("coordinate_transformation_mode", "asymmetric"))
    if mode == "nearest":
        node.attribute.append(helper.make_attribute("nearest_mode", "floor"))


def _pad(up: _Upgrade, node: onnx.NodeProto) -> None:
    pads = take(node, "pads")
    if pads is not None:
        put(node, 1, up.constant(node, "pads", pads, np.int64))
        value = take(node, "value", 0.0)
        if value:
            put(node, 2, _like(up, node, "value", value))


def _clip(up: _Upgrade, node: onnx.NodeProto) -> None:
    for index, name in enumerate(("min", "max"), 1):
        limit = take(node, name)
        if limit is not None:
            put(node, index, _like(up, node, name, limit))


def _like(up: _Upgrade, node: onnx.NodeProto, what: str, value: float) -> str:
    """A number that an attribute had, as an input, which has the type of the node's own data."""
    type_ = up.types.get(node.input[0])
    kind = type_.tensor_type.elem_type if type_ is not None else TensorProto.FLOAT
    return up.constant(node, what, value, helper.tensor_dtype_to_np_dtype(kind or TensorProto.FLOAT))


def _dropout(up: _Upgrade, node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """Outside of training it is nothing, and the mask is all true; it was of the data's type before opset 10."""
    take(node, "ratio")
    if up.version >= 10 or len(node.output) < 2 or not node.output[1]:
        return []
    mask, type_ = node.output[1], up.types.get(node.input[0])
    node.output[1] = up.name(f"{mask}_bool")
    kind = type_.tensor_type.elem_type if type_ is not None else TensorProto.FLOAT
    return [helper.make_node("Cast", [node.output[1]], [mask], name=f"{mask}_cast", to=kind)]


def _batch_normalization(up: _Upgrade, node: onnx.NodeProto) -> None:
    take(node, "spatial")


def _scatter(up: _Upgrade, node: onnx.NodeProto) -> None:
    node.op_type = "ScatterElements"


def _even_split(up: _Upgrade, node: onnx.NodeProto) -> None:
    if len(node.input) < 2 or not node.input[1]:
        node.attribute.append(helper.make_attribute("num_outputs", len(node.output)))


def _roi_align(up: _Upgrade, node: onnx.NodeProto) -> None:
    """Pixels were at whole numbers before opset 16."""
    if up.version < 16:
        node.attribute.append(helper.make_attribute("coordinate_transformation_mode", "output_half_pixel"))


UpgradeRule = Callable[[_Upgrade, onnx.NodeProto], "list[onnx.NodeProto] | None"]
_RULES: dict[str, UpgradeRule] = {
    "BatchNormalization": _batch_normalization,
    "Clip": _clip,
    "Dropout": _dropout,
    "Hardmax": _softmax,
    "LogSoftmax": _softmax,
    "Pad": _pad,
    "ReduceSum": _axes,
    "Resize": _resize,
    "Scatter": _scatter,
    "Slice": _slice,
    "Softmax": _softmax,
    "Split": _split,
    "Squeeze": _axes,
    "TopK": _top_k,
    "Unsqueeze": _axes,
    "Upsample": _upsample,
}
_REDUCTIONS = "L1 L2 LogSum LogSumExp Max Mean Min Prod SumSquare".split()
_LATER_RULES: dict[str, UpgradeRule] = {
    **{f"Reduce{name}": _axes for name in _REDUCTIONS},
    "RoiAlign": _roi_align,
    "Split": _even_split,
}
