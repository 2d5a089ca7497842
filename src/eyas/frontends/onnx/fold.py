"""Folds what is known in an ONNX graph: sizes of static shapes, tensors without elements, small nodes of constants.

Exporters and function bodies compute shapes with nodes; the importer wants to see the numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from eyas.frontends.onnx.file import OnnxModel, dtype_of, is_large
from eyas.frontends.onnx.subgraphs import inline, replace_nodes
from eyas.frontends.onnx.symbolic.interpret import interpret
from eyas.frontends.onnx.symbolic.settle import is_open
from eyas.frontends.onnx.symbolic.values import Value, array_of

_LARGEST_ELEMENTS = 1024

# Only operators whose reference implementation is plain: the rest is compiled, not interpreted.
_FOLDED = frozenset(
    "Add And Cast Concat ConstantOfShape Div Equal Expand Gather Greater GreaterOrEqual Identity Less LessOrEqual Max"
    " Min Mod Mul Neg Not Or Range ReduceProd Reshape Size Slice Softplus Split Sqrt Squeeze Sub Tile Transpose"
    " Unsqueeze Where".split()
)


def fold(model: OnnxModel) -> bool:
    """Replaces known nodes by initializers and an `If` that always goes one way by that branch; says whether there
    were any. Shapes must have been inferred."""
    graph = model.proto.graph
    values = {
        tensor.name: onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        for tensor in graph.initializer
    }
    values.update({value.name: value for value in [*graph.value_info, *graph.input, *graph.output]})
    known = {
        tensor.name: numpy_helper.to_array(tensor)
        for tensor in graph.initializer
        if not is_large(tensor) and dtype_of(tensor.data_type) and tensor.data_location != onnx.TensorProto.EXTERNAL
    }
    facts = interpret(model).values if is_open(model) else {}
    opsets = {opset.domain: opset.version for opset in model.proto.opset_import}
    outputs = {value.name for value in graph.output}
    kept: list[onnx.NodeProto] = []
    changed = False
    for node in graph.node:
        if (branch := _taken_branch(node, known)) is not None:
            kept.extend(inline(branch, list(node.output), node.name))
            changed = True
            continue
        # Results of the model are named by nodes; an Identity is one that may stay.
        is_result = bool(outputs.intersection(node.output))
        results = None
        if not (is_result and node.op_type == "Identity"):
            results = _evaluate(node, values, known, opsets) or _followed(node, facts)
        if results is None or any(result.size > _LARGEST_ELEMENTS for result in results):
            kept.append(node)
            continue
        changed = True
        for name, result in zip(node.output, results, strict=True):
            known[name] = result
            stored = f"{name}/folded" if is_result else name
            graph.initializer.append(numpy_helper.from_array(result, stored))
            if is_result:
                kept.append(onnx.helper.make_node("Identity", [stored], [name], name=node.name))
    if changed:
        replace_nodes(graph, kept)
    return changed


def _taken_branch(node: onnx.NodeProto, known: dict[str, np.ndarray]) -> onnx.GraphProto | None:
    """The branch of an `If` whose condition is known."""
    if node.op_type != "If" or node.domain not in ("", "ai.onnx") or node.input[0] not in known:
        return None
    wanted = "then_branch" if known[node.input[0]].all() else "else_branch"
    return next(attribute.g for attribute in node.attribute if attribute.name == wanted)


def _evaluate(
    node: onnx.NodeProto, values: dict[str, onnx.ValueInfoProto], known: dict[str, np.ndarray], opsets: dict[str, int]
) -> list[np.ndarray] | None:
    if node.domain not in ("", "ai.onnx"):
        return None
    if node.op_type in ("Shape", "Size") and node.input[0] in values:
        return _sizes(node, values[node.input[0]])
    if (results := _empty(node, values)) is not None:
        return results
    if node.op_type not in _FOLDED or any(name and name not in known for name in node.input):
        return None
    given = {name: known[name] for name in node.input if name}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            results = ReferenceEvaluator(node, opsets=opsets).run(None, given)
        except Exception:
            # What the reference cannot do is for the compiler to do.
            return None
    return [np.asarray(result) for result in results]


def _followed(node: onnx.NodeProto, facts: Mapping[str, Value]) -> list[np.ndarray] | None:
    """Results that do not depend on the sizes that are open, though their operands may."""
    values = [facts.get(name) for name in node.output]
    if not values or any(value is None or not value.is_constant for value in values):
        return None
    return [
        array_of(value.elements, value.data_type)
        for value in values
        if value is not None and value.elements is not None
    ]


def _empty(node: onnx.NodeProto, values: dict[str, onnx.ValueInfoProto]) -> list[np.ndarray] | None:
    """The results of a node that makes tensors without elements: the importer has trouble with many of them."""
    results = []
    for name in node.output:
        tensor = values[name].type.tensor_type if name in values else None
        if tensor is None or dtype_of(tensor.elem_type) is None or not tensor.HasField("shape"):
            return None
        if not all(dim.HasField("dim_value") for dim in tensor.shape.dim):
            return None
        dims = [dim.dim_value for dim in tensor.shape.dim]
        if 0 not in dims:
            return None
        results.append(np.empty(dims, onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)))
    return results or None


def _sizes(node: onnx.NodeProto, value: onnx.ValueInfoProto) -> list[np.ndarray] | None:
    tensor = value.type.tensor_type
    if not tensor.HasField("shape") or not all(dim.HasField("dim_value") for dim in tensor.shape.dim):
        return None
    dims = np.array([dim.dim_value for dim in tensor.shape.dim], np.int64)
    if node.op_type == "Size":
        return [np.array(dims.prod(dtype=np.int64))]
    given = {attribute.name: attribute.i for attribute in node.attribute}
    return [dims[given.get("start", 0) : given.get("end", len(dims))]]
