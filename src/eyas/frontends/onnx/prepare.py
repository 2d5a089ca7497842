"""What an ONNX graph needs before the importer sees it: names, shapes, known types, and newer or simpler ops."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnx.inliner
import onnx.shape_inference
import onnx.version_converter

from eyas.errors import FrontendError, UnsupportedOpError, UsageError
from eyas.frontends.onnx import upgrade
from eyas.frontends.onnx.file import OnnxModel, dtype_of, is_large
from eyas.frontends.onnx.functions import agree_on_opsets, function_of
from eyas.frontends.onnx.order import sort_nodes
from eyas.frontends.onnx.subgraphs import all_graphs, all_nodes, declare_loop_results, separate, subgraphs
from eyas.frontends.onnx.symbolic import settle
from eyas.frontends.onnx.symbolic.implied import implied_sizes
from eyas.frontends.onnx.untyped import hide_untyped, show_untyped

# The importer's lowerings are written against this opset; older operators can be raised to it.
BEST_OPSET = 21

# What exporters call sizes that they do not know: two that have such a name need not agree.
_UNKNOWN = frozenset("? -1 * none unk unknown dynamic".split())
_RISKY_OPS = frozenset({"Einsum", "Unique"})
_RANKS = {"Gemm": 2, "GRU": 3, "LSTM": 3, "RNN": 3}
_RISKY_TYPES = ("u16", "u32", "u64", "c64", "c128")


def normalize(model: OnnxModel) -> None:
    """Names every node, and turns constants into initializers, so that all weights are found in one place."""
    graph = model.proto.graph
    if model.proto.functions:
        agree_on_opsets(model)
        _update(model, onnx.inliner.inline_local_functions)
        graph = model.proto.graph
    sort_nodes(graph)
    for node in all_nodes(graph):
        _write_constant_as_tensor(node)
        _write_default(node)
    separate(model)
    if "" not in opset_versions(model):
        model.proto.opset_import.append(onnx.helper.make_opsetid("", BEST_OPSET))
    # Before, all initializers had to be inputs; the constants that are added are not.
    model.proto.ir_version = max(model.proto.ir_version, 4)
    _forget_doubtful_shapes(graph)
    seen: set[str] = set()
    for index, node in enumerate(all_nodes(graph)):
        if not node.name or node.name in seen:
            node.name = f"{node.name or node.op_type}_{index}"
        seen.add(node.name)
    for node in [node for node in graph.node if node.op_type == "Constant"]:
        if not node.attribute or node.attribute[0].name != "value":
            continue
        tensor = node.attribute[0].t
        if tensor.data_type != onnx.TensorProto.STRING:
            graph.initializer.add().CopyFrom(tensor)
            graph.initializer[-1].name = node.output[0]
            graph.node.remove(node)


def _write_constant_as_tensor(node: onnx.NodeProto) -> None:
    """`Constant` may hold numbers in other attributes than `value`."""
    kinds = {"value_int": np.int64, "value_ints": np.int64, "value_float": np.float32, "value_floats": np.float32}
    if node.op_type == "Constant" and len(node.attribute) == 1 and node.attribute[0].name in kinds:
        name = node.attribute[0].name
        values = np.array(onnx.helper.get_attribute_value(node.attribute[0]), kinds[name])
        tensor = onnx.numpy_helper.from_array(values)
        node.attribute[0].CopyFrom(onnx.helper.make_attribute("value", tensor))


def _write_default(node: onnx.NodeProto) -> None:
    """`STFT` gives half a spectrum unless it is told otherwise, which onnx's inference takes the other way round."""
    if node.op_type == "STFT" and all(attribute.name != "onesided" for attribute in node.attribute):
        node.attribute.append(onnx.helper.make_attribute("onesided", 1))


def _forget_doubtful_shapes(graph: onnx.GraphProto) -> None:
    """Exporters write -1 or a word for a size that they do not know, in the bodies of loops too, and tell of results
    twice."""
    for one in all_graphs(graph):
        for value in [*one.input, *one.output, *one.value_info]:
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_value < 0 or dim.dim_param.lower() in _UNKNOWN:
                    dim.Clear()
    outputs = {value.name for value in graph.output}
    _keep(graph.value_info, lambda value: value.name not in outputs)


def check_operators(model: OnnxModel, is_known: Callable[[onnx.NodeProto], bool]) -> None:
    """Every op must be of a known domain, with a schema that this onnx package has, or one that `is_known`."""
    opsets = opset_versions(model)
    for node in all_nodes(model.proto.graph):
        domain = node.domain if node.domain != "ai.onnx" else ""
        if domain not in opsets:
            raise UnsupportedOpError(f"{describe_node(node, model)} is not supported: the model imports no such domain")
        if is_known(node):
            continue
        if not onnx.defs.has(node.op_type, domain=domain, max_inclusive_version=opsets[domain]):
            raise UnsupportedOpError(f"{describe_node(node, model)} is not supported: it is not a standard operator")


def set_shapes(model: OnnxModel, shapes: Mapping[str, Any], examples: Mapping[str, Any]) -> None:
    """Fixes or names input dimensions: by input (`{"x": [1, 3, "h", "w"]}`, `{"x": {0: 1}}`), by symbol
    (`{"batch": 1}`), or from example inputs. What `shapes` names as a string stays dynamic."""
    inputs = {value.name: value for value in real_inputs(model.proto)}
    changed = False
    symbols = {key: value for key, value in shapes.items() if key not in inputs}
    known = {dim.dim_param for value in inputs.values() for dim in value.type.tensor_type.shape.dim if dim.dim_param}
    for key in symbols:
        if key not in known:
            raise UsageError(
                f"'{key}' is neither an input nor a symbolic dimension; inputs: {', '.join(inputs)};"
                f" symbols: {', '.join(sorted(known)) or 'none'}"
            )
    for name, value in inputs.items():
        tensor = value.type.tensor_type
        if value.type.WhichOneof("value") == "tensor_type" and not tensor.HasField("shape"):
            _set_rank(tensor, shapes.get(name), examples.get(name))
    symbols = {**_seen_symbols(inputs, examples, set(shapes)), **symbols}
    for name, value in inputs.items():
        dims = value.type.tensor_type.shape.dim
        wanted: dict[int, Any] = {}
        if name in examples:
            given = np.shape(examples[name])
            if len(given) != len(dims):
                raise UsageError(f"input '{name}' has {len(dims)} dimensions, the example has {len(given)}")
            wanted.update(enumerate(given))
        wanted.update({i: symbols[dim.dim_param] for i, dim in enumerate(dims) if dim.dim_param in symbols})
        override = shapes.get(name, {})
        wanted.update(override.items() if isinstance(override, Mapping) else enumerate(override))
        for index, size in wanted.items():
            if not 0 <= index < len(dims):
                raise UsageError(f"input '{name}' has {len(dims)} dimensions, there is no dimension {index}")
            changed |= _set_dim(dims[index], size, name, index)
    if changed:
        # What was inferred for the old shapes may contradict the new ones.
        del model.proto.graph.value_info[:]
        for output in model.proto.graph.output:
            for dim in output.type.tensor_type.shape.dim:
                dim.Clear()


def fix_implied(model: OnnxModel) -> None:
    """Fixes the dimensions of inputs that can have one size only."""
    while settle.is_open(model) and (sizes := implied_sizes(model)):
        set_shapes(model, sizes, {})


def _set_rank(tensor: onnx.TypeProto.Tensor, shape: Any, example: Any) -> None:
    """Gives an input without a shape the rank that an example or a full shape tells."""
    if shape is not None and not isinstance(shape, Mapping):
        rank = len(shape)
    elif example is not None:
        rank = np.ndim(example)
    else:
        return
    tensor.shape.SetInParent()
    for _ in range(rank):
        tensor.shape.dim.add()


def _seen_symbols(
    inputs: Mapping[str, onnx.ValueInfoProto], examples: Mapping[str, Any], kept: set[str]
) -> dict[str, int]:
    """Sizes of symbols in the examples: they hold for inputs without an example too. Some exporters give dimensions
    that differ one name, which then says nothing."""
    found: dict[str, set[int]] = {}
    for name, example in examples.items():
        for dim, size in zip(inputs[name].type.tensor_type.shape.dim, np.shape(example), strict=False):
            if dim.dim_param and dim.dim_param not in kept:
                found.setdefault(dim.dim_param, set()).add(size)
    return {symbol: sizes.pop() for symbol, sizes in found.items() if len(sizes) == 1}


def modernize(model: OnnxModel, wanted: int = upgrade.COMMON) -> None:
    """Writes operators of older opsets, from 7 on, as a newer one has them."""
    if not upgrade.OLDEST <= opset_versions(model).get("", 0) < max(wanted, upgrade.SAME):
        return
    known = replace(model)
    with contextlib.suppress(FrontendError):
        # Ranks and types tell forms apart; what they are not known for gets the general one.
        _infer_shapes(known)
    upgrade.upgrade(model, {name: value.type for name, value in values_of(known.proto.graph).items()}, wanted)


def values_of(graph: onnx.GraphProto) -> dict[str, onnx.ValueInfoProto]:
    """Values by name, those of subgraphs too, as far as they have types."""
    graphs = list(all_graphs(graph))
    return {value.name: value for each in graphs for value in [*each.value_info, *each.input, *each.output]}


def infer_shapes(model: OnnxModel) -> None:
    """Gives every value a type and a rank."""
    _infer_shapes(model)
    # A loop's results may be carried by the next one.
    while declare_loop_results(model.proto.graph):
        _infer_shapes(model)
    if settle.is_open(model):
        settle.write_types(model)


def _infer_shapes(model: OnnxModel) -> None:
    """As often as it takes until nodes that must be hidden are seen with the types that a pass gives them."""
    left = None
    while left != (left := hide_untyped(model.proto.graph, values_of(model.proto.graph))):
        try:
            _infer_shapes_of_others(model)
        finally:
            show_untyped(model.proto.graph)
        if not left:
            break


def _infer_shapes_of_others(model: OnnxModel) -> None:
    try:
        _update(model, lambda proto: onnx.shape_inference.infer_shapes(proto, data_prop=True))
    except Exception:
        # Data propagation gives up on some legal models; plain inference says what is really wrong.
        try:
            _update(model, onnx.shape_inference.infer_shapes)
        except Exception as error:
            raise FrontendError(f"{model.description}: the graph is not valid: {str(error).splitlines()[0]}") from None


def contradiction(model: OnnxModel) -> str | None:
    """What is wrong with a graph whose shapes cannot be: running it would fail."""
    try:
        _update(replace(model), lambda proto: onnx.shape_inference.infer_shapes(proto, strict_mode=True))
    except onnx.shape_inference.InferenceError as error:
        return str(error).splitlines()[0]
    return _wrong_rank(model)


def _wrong_rank(model: OnnxModel) -> str | None:
    """What onnx does not look at."""
    values = values_of(model.proto.graph)
    for node in model.proto.graph.node:
        rank = _RANKS.get(node.op_type)
        type_ = values[node.input[0]].type.tensor_type if rank and node.input[0] in values else None
        if type_ is not None and type_.HasField("shape") and len(type_.shape.dim) != rank:
            return f"{describe_node(node, model)} takes {rank} dimensions, and gets {len(type_.shape.dim)}"
    return None


def check_types(model: OnnxModel) -> None:
    """Refuses types that the importer does not know: it would abort the process on some of them."""
    graph = model.proto.graph
    types = {value.name: value.type for value in [*graph.value_info, *graph.input, *graph.output]}
    for tensor in graph.initializer:
        if dtype_of(tensor.data_type) is None:
            raise FrontendError(f"initializer '{tensor.name}' {_bad_type(tensor.data_type)}")
    for value in [*real_inputs(model.proto), *graph.output]:
        if problem := _problem(value.type):
            what = "output" if value in list(graph.output) else "input"
            raise FrontendError(f"{what} '{value.name}' {problem}{_user_of(value.name, model)}")
    for node in graph.node:
        for name in filter(None, node.output):
            problem = _problem(types[name]) if name in types else "has no type that can be inferred"
            if problem:
                raise UnsupportedOpError(f"{describe_node(node, model)} is not supported: its result {problem}")


def _user_of(name: str, model: OnnxModel) -> str:
    """Which node takes or gives a value, as the end of a message."""
    for node in model.proto.graph.node:
        if name in node.output or name in node.input:
            return f"; {describe_node(node, model)} {'gives' if name in node.output else 'takes'} it"
    return ""


def find_risk(model: OnnxModel) -> str | None:
    """What in the model may make the importer abort the process, found by running it on the standard's own tests."""
    graph = model.proto.graph
    values = [*graph.value_info, *graph.input, *graph.output]
    for value in values:
        dtype = dtype_of(value.type.tensor_type.elem_type)
        if dtype in _RISKY_TYPES:
            return f"element type {dtype} of '{value.name}'"
        if any(dim.HasField("dim_value") and not dim.dim_value for dim in value.type.tensor_type.shape.dim):
            return f"the empty tensor '{value.name}'"
    for node in graph.node:
        if node.op_type in _RISKY_OPS or any(subgraphs(node)):
            return describe_node(node, model)
    return None


def expand_functions(model: OnnxModel, op_types: set[str]) -> bool:
    """Replaces ops by the function bodies that the standard gives for them; says whether there were any."""
    chosen = []
    for domain, opset in sorted(opset_versions(model).items()):
        for op_type in sorted(op_types):
            if not onnx.defs.has(op_type, domain=domain, max_inclusive_version=opset):
                continue
            schema = onnx.defs.get_schema(op_type, opset, domain)
            if getattr(schema, "has_function", False) or getattr(schema, "has_context_dependent_function", False):
                chosen.append((domain, op_type))
    if not chosen:
        return False
    before = len(model.proto.graph.node)
    try:
        _update(
            model, lambda proto: onnx.inliner.inline_selected_functions(proto, chosen, inline_schema_functions=True)
        )
    except RuntimeError:
        # The inliner stumbles over optional inputs that a node leaves out in the middle.
        return expand_nodes(model, {op_type for _, op_type in chosen})
    return len(model.proto.graph.node) != before


def expand_nodes(model: OnnxModel, op_types: set[str]) -> bool:
    """Like `expand_functions`, one node at a time, each with the body that the standard gives for its own types."""
    infer_shapes(model)
    proto = model.proto
    graph = proto.graph
    types = {value.name: value.type for value in [*graph.value_info, *graph.input, *graph.output]}
    for tensor in graph.initializer:
        types[tensor.name] = onnx.helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
    opset = opset_versions(model).get("", 0)
    found = False
    for index, node in enumerate(graph.node):
        if node.op_type in op_types and (function := function_of(node, types, opset)) is not None:
            function.name = f"{node.op_type}_{index}"
            function.domain = node.domain = "eyas.expanded"
            node.op_type = function.name
            proto.functions.append(function)
            found = True
    if found:
        proto.opset_import.append(onnx.helper.make_opsetid("eyas.expanded", 1))
        _update(model, onnx.inliner.inline_local_functions)
        _keep(model.proto.opset_import, lambda opset: opset.domain != "eyas.expanded")
    return found


def raise_opset(model: OnnxModel) -> bool:
    """Rewrites an older model for `BEST_OPSET`; says whether that was possible and needed."""
    opset = opset_versions(model).get("", BEST_OPSET)
    if opset >= BEST_OPSET:
        return False
    if opset < 9 and any(node.op_type == "Scan" for node in model.proto.graph.node):
        # Scan lost its batch dimension in opset 9; the converter keeps the node as it is.
        return False
    try:
        _update(model, lambda proto: onnx.version_converter.convert_version(proto, BEST_OPSET))
    except Exception:
        # The converter lacks adapters for some ops; the model then stays as it is.
        return False
    return True


def real_inputs(proto: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """Inputs that a caller gives: old models list their weights as inputs too."""
    weights = {tensor.name for tensor in proto.graph.initializer}
    return [value for value in proto.graph.input if value.name not in weights]


def opset_versions(model: OnnxModel) -> dict[str, int]:
    return {("" if opset.domain == "ai.onnx" else opset.domain): opset.version for opset in model.proto.opset_import}


def describe_node(node: onnx.NodeProto, model: OnnxModel) -> str:
    """`node 'conv1' (Conv, ai.onnx opset 17)`."""
    domain = node.domain or "ai.onnx"
    version = opset_versions(model).get("" if domain == "ai.onnx" else domain, "?")
    if domain == "ai.onnx" and model.written_opset:
        version = model.written_opset
    return f"node '{node.name}' ({node.op_type}, {domain} opset {version})"


def dims_of(value: onnx.ValueInfoProto) -> list[int | str]:
    """Sizes and symbols of a value; a dimension without a name is called after its value."""
    return [
        dim.dim_value if dim.HasField("dim_value") else dim.dim_param or f"{value.name}_dim{index}"
        for index, dim in enumerate(value.type.tensor_type.shape.dim)
    ]


def _update(model: OnnxModel, transform: Callable[[onnx.ModelProto], onnx.ModelProto]) -> None:
    """Applies one of onnx's own transformations while the large tensors, which have no data, stand as inputs."""
    before = model.proto
    large = [tensor for tensor in before.graph.initializer if is_large(tensor)]
    listed = {value.name for value in before.graph.input}
    bare = onnx.ModelProto()
    bare.CopyFrom(before)
    _keep(bare.graph.initializer, lambda tensor: not is_large(tensor))
    for tensor in large:
        if tensor.name not in listed:
            bare.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    after = transform(bare)
    away = {tensor.name for tensor in large} - listed
    _keep(after.graph.input, lambda value: value.name not in away)
    after.graph.initializer.extend(large)
    model.proto = after


def _keep(items: Any, wanted: Callable[[Any], bool]) -> None:
    for index in reversed(range(len(items))):
        if not wanted(items[index]):
            del items[index]


def _set_dim(dim: onnx.TensorShapeProto.Dimension, size: Any, name: str, index: int) -> bool:
    if isinstance(size, str):
        dim.dim_param = size
        return True
    size = int(size)
    if dim.HasField("dim_value") and dim.dim_value != size:
        raise UsageError(f"input '{name}' dimension {index} is {dim.dim_value} in the model and cannot become {size}")
    dim.dim_value = size
    return True


def _problem(type_: onnx.TypeProto) -> str | None:
    kind = type_.WhichOneof("value")
    if kind != "tensor_type":
        return f"is a {(kind or 'value without a type').removesuffix('_type')}; only tensors are supported"
    if dtype_of(type_.tensor_type.elem_type) is None:
        return _bad_type(type_.tensor_type.elem_type)
    if not type_.tensor_type.HasField("shape"):
        return "has an unknown rank"
    return None


def _bad_type(data_type: int) -> str:
    names = onnx.TensorProto.DataType
    name = names.Name(data_type) if data_type in names.values() else str(data_type)
    return f"has element type {name}, which is not supported"


def example_inputs(model: OnnxModel, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Example inputs by name."""
    names = [value.name for value in real_inputs(model.proto)]
    if len(args) > len(names) or any(key not in names for key in kwargs):
        raise UsageError(f"{model.description} takes the inputs {', '.join(names)}")
    return {**dict(zip(names, args, strict=False)), **kwargs}
