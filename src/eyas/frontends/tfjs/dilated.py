"""Dilated convolutions that TensorFlow wrote as convolutions of blocks: SpaceToBatchND, a convolution, BatchToSpaceND.

Each is one convolution with dilations, between a pad and a crop. That takes images of open sizes too, which blocks do
not: how many there are would be known only when the model runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from eyas.frontends.tensorflow.graph import Graph
from eyas.frontends.tfjs.node import decode

_CONVOLUTIONS = frozenset(("Conv2D", "_FusedConv2D", "DepthwiseConv2dNative", "FusedDepthwiseConv2dNative"))
CROP = "_Crop"


def fold_dilations(
    nodes: dict[str, dict[str, Any]], weights: dict[str, np.ndarray]
) -> tuple[dict[str, dict[str, Any]], dict[str, np.ndarray]]:
    """The nodes and weights with such three nodes written as a pad, a convolution and a crop."""
    readers: dict[str, int] = {}
    for node in nodes.values():
        for one in node.get("input", []):
            readers[one.partition(":")[0]] = readers.get(one.partition(":")[0], 0) + 1
    nodes, weights = dict(nodes), dict(weights)
    for last in [node for node in nodes.values() if node["op"] == "BatchToSpaceND"]:
        middle = nodes.get(last["input"][0], {})
        first = nodes.get(middle["input"][0], {}) if middle.get("op") in _CONVOLUTIONS else {}
        if first.get("op") != "SpaceToBatchND" or readers[middle["name"]] > 1 or readers[first["name"]] > 1:
            continue
        blocks = [weights.get(node["input"][1]) for node in (first, last)]
        pads, crops = (weights.get(node["input"][2]) for node in (first, last))
        if pads is None or crops is None or not _matches(middle, blocks) or np.shape(pads) != (2, 2):
            continue
        block = np.asarray(blocks[0]).reshape(-1).tolist()
        amounts = f"{first['name']}/eyas_pads"
        weights[amounts] = np.array([[0, 0], *np.asarray(pads).tolist(), [0, 0]], np.int32)
        nodes[amounts] = {"name": amounts, "op": "Const"}
        nodes[first["name"]] = {**first, "op": "Pad", "input": [first["input"][0], amounts]}
        dilations = {"list": {"i": [1, *block, 1]}}
        nodes[middle["name"]] = {**middle, "attr": {**middle.get("attr", {}), "dilations": dilations}}
        nodes[last["name"]] = {**last, "op": CROP, "input": [last["input"][0], last["input"][2]]}
    return nodes, weights


def _matches(convolution: Mapping[str, Any], blocks: list[Any]) -> bool:
    """Whether both ends have one block, and the convolution moves by single steps within it and adds nothing."""
    if any(block is None or np.size(block) != 2 for block in blocks) or not np.array_equal(*blocks):
        return False
    options = {name: decode(value) for name, value in convolution.get("attr", {}).items()}
    ones = all(set(options.get(name) or [1]) == {1} for name in ("strides", "dilations"))
    return ones and options.get("padding") == "VALID" and options.get("data_format", "NHWC") == "NHWC"


def crop(g: Graph, x: Any, amounts: np.ndarray) -> Any:
    """Without so many rows and columns at either end."""
    if not amounts.any():
        return x
    ends = np.array([-after if after else np.iinfo(np.int64).max for _, after in amounts.tolist()], np.int64)
    return g.add("Slice", x, amounts[:, 0].astype(np.int64), ends, np.array([1, 2], np.int64))
