"""Operators that onnx's shape inference must not see before the type of what they take is known.

Their inference reads that type without looking whether there is one, and the process ends. A node of another domain, or
an operator without an inference of its own such as a regression's trees, gives values that have none.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from eyas.frontends.onnx.subgraphs import all_graphs, all_nodes

_READS_TYPE = frozenset({"DictVectorizer", "LabelEncoder", "RegexFullMatch"})
_HIDDEN = "untyped "


def hide_untyped(graph: onnx.GraphProto, values: Mapping[str, onnx.ValueInfoProto]) -> int:
    """Gives them a name that no inference knows; says how many there were."""
    nodes = [node for node in all_nodes(graph) if node.op_type in _READS_TYPE]
    if not nodes:
        return 0
    typed = {name for name, value in values.items() if value.type.WhichOneof("value")}
    typed |= {tensor.name for each in all_graphs(graph) for tensor in each.initializer}
    untyped = [node for node in nodes if not typed.issuperset(node.input)]
    for node in untyped:
        node.op_type = _HIDDEN + node.op_type
    return len(untyped)


def show_untyped(graph: onnx.GraphProto) -> None:
    for node in all_nodes(graph):
        node.op_type = node.op_type.removeprefix(_HIDDEN)
