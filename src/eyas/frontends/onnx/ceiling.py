"""Pools that round up, and whose last window would begin in the padding behind the image: there is no such window.

Before opset 22 onnx infers one more element than there is, and everything behind the pool contradicts what is computed.
So those of a known size round down instead, and are padded behind as far as their last window goes.

    MaxPool <kernel_shape = [2], strides = [3], pads = [1, 1], ceil_mode = 1> (x)      # x: 5 long
  becomes
    MaxPool <kernel_shape = [2], strides = [3], pads = [1, 1]> (x)                     # 2 long, not 3
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx
from onnx import helper

from eyas.errors import UnsupportedOpError
from eyas.frontends.onnx.file import OnnxModel
from eyas.frontends.onnx.prepare import describe_node, opset_versions
from eyas.frontends.onnx.rewrite.rules import attribute
from eyas.frontends.onnx.subgraphs import all_nodes
from eyas.frontends.onnx.symbolic import expressions as ex
from eyas.frontends.onnx.symbolic.interpret import interpret

# Since this opset the sizes are inferred as they are.
_RIGHT = 22
_POOLS = ("AveragePool", "LpPool", "MaxPool")


def round_down(model: OnnxModel) -> None:
    """Writes such pools without `ceil_mode`. Names must be unique across subgraphs."""
    pools = [node for node in all_nodes(model.proto.graph) if _rounds_up(node)]
    if not pools:
        return
    values = interpret(model).values
    for node in pools:
        value = values.get(node.input[0])
        if value is not None and value.shape is not None:
            _write(node, value.shape[2:], model)


def _rounds_up(node: onnx.NodeProto) -> bool:
    is_pool = node.op_type in _POOLS and node.domain in ("", "ai.onnx") and attribute(node, "ceil_mode", 0)
    return bool(is_pool) and attribute(node, "auto_pad", "NOTSET") == "NOTSET"


def _write(node: onnx.NodeProto, sizes: Sequence[ex.Integer], model: OnnxModel) -> None:
    rank = len(sizes)
    window, pads = attribute(node, "kernel_shape", []), list(attribute(node, "pads", [0] * 2 * rank))
    strides, dilations = (attribute(node, name, [1] * rank) for name in ("strides", "dilations"))
    if len(window) != rank or len(pads) != 2 * rank:
        return
    is_wrong, behind = False, []
    for at, size in enumerate(sizes):
        if not isinstance(size, int):
            return
        reach, begin = dilations[at] * (window[at] - 1) + 1, pads[at]
        last = -(-(size + begin + pads[at + rank] - reach) // strides[at])
        inside = min(last, (size + begin - 1) // strides[at])
        is_wrong |= inside < last
        behind.append(max(pads[at + rank], inside * strides[at] + reach - size - begin))
    if not is_wrong:
        return
    if attribute(node, "count_include_pad", 0) and behind != pads[rank:]:
        # What is added behind does not count in an average where padding does.
        if opset_versions(model).get("", 0) < _RIGHT:
            what = "one window would begin behind the image and another one reach beyond its padding, which counts"
            raise UnsupportedOpError(
                f"{describe_node(node, model)} is not supported: with its ceil_mode {what}; write the model with opset"
                f" {_RIGHT} or newer, or without ceil_mode"
            )
        return
    kept = [one for one in node.attribute if one.name not in ("ceil_mode", "pads")]
    kept.append(helper.make_attribute("pads", [*pads[:rank], *behind]))
    del node.attribute[:]
    node.attribute.extend(kept)
