"""Functions: bodies of the standard's operators, for one node with its own types and the inputs that it has, and those
of the model itself.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx import helper

from eyas.frontends.onnx.file import OnnxModel
from eyas.frontends.onnx.upgrade import COMMON, write_as

_STANDARD = ("", "ai.onnx")


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


def agree_on_opsets(model: OnnxModel) -> None:
    """Writes the graph and the bodies of its own functions in the newest opset of them all. Libraries of functions have
    opsets of their own, and only a function of the graph's opset can be put in place of its calls. A body that cannot
    be written so stays as it is, and its call is refused."""
    proto = model.proto
    holders = [proto, *proto.functions]
    _forget_versions(holders, {function.domain for function in proto.functions})
    versions = [_standard(holder) for holder in holders]
    known = {opset.version for opset in versions if opset is not None}
    if len(known) < 2:
        return
    newest = max(COMMON, *known)
    if (opset := versions[0]) is not None and opset.version < newest:
        before, types = (
            opset.version,
            {value.name: value.type for value in [*proto.graph.value_info, *proto.graph.input]},
        )
        if not write_as(proto.graph, before, newest, types):
            newest = before
        else:
            model.written_opset = model.written_opset or before
            opset.version = newest
    for function, opset in zip(proto.functions, versions[1:], strict=True):
        if opset is not None and opset.version < newest and _rewritten(function, opset.version, newest):
            opset.version = newest


def _rewritten(function: onnx.FunctionProto, version: int, wanted: int) -> bool:
    """As a graph, whose constants become nodes: a function has no initializers."""
    body = onnx.GraphProto(node=function.node)
    # Names that new ones must not take.
    body.node.extend(helper.make_node("Identity", [name], [name]) for name in function.input)
    if not write_as(body, version, wanted, {}):
        return False
    del body.node[len(body.node) - len(function.input) :]
    constants = [helper.make_node("Constant", [], [one.name], value=one) for one in body.initializer]
    del function.node[:]
    function.node.extend([*constants, *body.node])
    return True


def _standard(holder: onnx.ModelProto | onnx.FunctionProto) -> onnx.OperatorSetIdProto | None:
    return next((opset for opset in holder.opset_import if opset.domain in _STANDARD), None)


def _forget_versions(holders: list[onnx.ModelProto | onnx.FunctionProto], domains: set[str]) -> None:
    """Domains of the model's own functions have one version: what is in the file."""
    for holder in holders:
        for opset in holder.opset_import:
            if opset.domain in domains - set(_STANDARD):
                opset.version = 1
