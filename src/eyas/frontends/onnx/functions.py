"""Function bodies of the standard's operators, for one node with its own types and the inputs that it has."""

from __future__ import annotations

from collections.abc import Mapping

import onnx


def function_of(node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto], opset: int) -> onnx.FunctionProto | None:
    """The body that the newest suitable version of the schema gives, or None when it has none for this node."""
    schema = onnx.defs.get_schema(node.op_type, opset)
    data = None
    if schema.has_context_dependent_function:
        versions = [v for v in schema.context_dependent_function_opset_versions if v <= opset]
        given = [types.get(name, onnx.TypeProto()).SerializeToString() for name in node.input]
        for version in sorted(versions, reverse=True):
            data = schema.get_context_dependent_function_with_opset_version(version, node.SerializeToString(), given)
            if data:
                break
    elif schema.has_function:
        versions = [v for v in schema.function_opset_versions if v <= opset]
        data = schema.get_function_with_opset_version(max(versions)) if versions else None
    if not data:
        return None
    function = onnx.FunctionProto()
    function.ParseFromString(data)
    # Formal parameters that the node leaves out are empty names in the body.
    given_inputs = {formal for formal, actual in zip(function.input, node.input, strict=False) if actual}
    missing = set(function.input) - given_inputs
    for inner in function.node:
        for place, name in enumerate(inner.input):
            if name in missing:
                inner.input[place] = ""
    return function
