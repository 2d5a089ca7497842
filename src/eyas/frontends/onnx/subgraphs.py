"""Subgraphs of `If`, `Loop` and `Scan`: every value gets a name of its own, and constants move to the main graph.

ONNX lets the two branches of an `If` use the same names, and exporters write weights as constants inside of them. With
unique names, values can move between the graphs: constants to the initializers, where weights are looked for, and the
nodes of a branch that is always taken to where the `If` was. And a subgraph can be a model for a while, so that all
that is done to models is done to it: what it captures becomes inputs and initializers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import onnx

from eyas.frontends.onnx.file import OnnxModel, is_large

FINAL_LOOP = "while"
"""The name of a loop's body that carries all that it needs and keeps its shapes."""
REPEATED = "repeated"
"""The name of the branches of an operand that is repeated where it meets a larger one."""


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def all_graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """The graph and those inside it, outer ones first."""
    yield graph
    for node in graph.node:
        for inner in subgraphs(node):
            yield from all_graphs(inner)


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for each in all_graphs(graph):
        yield from each.node


def separate(model: OnnxModel) -> None:
    """Makes the names of all subgraphs' values unique and moves their constants to the main graph."""
    main = model.proto.graph
    taken = {name for graph in (main,) for name in _defined(graph)}
    for node in main.node:
        for graph in subgraphs(node):
            _rename(graph, {}, taken)
            for inner in all_graphs(graph):
                # What was inferred for other input shapes would contradict what will be; of operators of ours, nothing
                # can be inferred again.
                own = set(own_results(inner.node))
                for index in reversed(range(len(inner.value_info))):
                    if inner.value_info[index].name not in own:
                        del inner.value_info[index]
                _move_constants(model, inner)


def own_results(nodes: Iterable[onnx.NodeProto]) -> Iterator[str]:
    """Results of operators of ours, whose types onnx cannot infer."""
    for node in nodes:
        if node.domain == "eyas":
            yield from filter(None, node.output)


def own_values(graph: onnx.GraphProto) -> set[str]:
    """Names of all values that are made in a graph and those inside it."""
    return {name for each in all_graphs(graph) for name in _defined(each)}


def inline(graph: onnx.GraphProto, results: list[str], name: str) -> list[onnx.NodeProto]:
    """The nodes of a branch, to stand where its `If` was; `results` are the names of the `If`'s results."""
    nodes = list(graph.node)
    for index, (value, result) in enumerate(zip(graph.output, results, strict=True)):
        if result:
            nodes.append(onnx.helper.make_node("Identity", [value.name], [result], name=f"{name}_result_{index}"))
    return nodes


def replace_nodes(graph: onnx.GraphProto, nodes: Iterable[onnx.NodeProto]) -> None:
    """Sets the nodes of a graph; they may live in the list that is replaced."""
    copies = []
    for node in nodes:
        copies.append(onnx.NodeProto())
        copies[-1].CopyFrom(node)
    del graph.node[:]
    graph.node.extend(copies)


def transform_subgraphs(model: OnnxModel, transform: Callable[[OnnxModel], object]) -> bool:
    """Applies a transformation of models to each subgraph of the main graph; says whether there were any."""
    found = False
    for node in model.proto.graph.node:
        for graph in subgraphs(node):
            inner = as_model(model, graph)
            if inner is not None:
                transform(inner)
                _put_back(model, graph, inner)
                found = True
    return found


def as_model(model: OnnxModel, graph: onnx.GraphProto) -> OnnxModel | None:
    """The subgraph as a model: captured values are inputs, captured constants initializers. None without types."""
    captured = {name for each in all_graphs(graph) for node in each.node for name in node.input if name}
    captured |= {value.name for each in all_graphs(graph) for value in each.output}
    captured -= {name for each in all_graphs(graph) for name in _defined(each)}
    main = model.proto.graph
    types = {value.name: value.type for value in [*main.value_info, *main.input, *main.output]}
    tensors = {tensor.name: tensor for tensor in main.initializer}
    proto = onnx.ModelProto()
    proto.ir_version = model.proto.ir_version
    proto.opset_import.extend(model.proto.opset_import)
    proto.graph.CopyFrom(graph)
    proto.graph.name = graph.name or "subgraph"
    for name in sorted(captured):
        if name in tensors:
            proto.graph.initializer.add().CopyFrom(tensors[name])
        elif name in types:
            proto.graph.input.add(name=name).type.CopyFrom(types[name])
        else:
            return None
    if any(not value.type.tensor_type.elem_type for value in proto.graph.input):
        return None
    return replace(model, proto=proto)


def _put_back(model: OnnxModel, graph: onnx.GraphProto, inner: OnnxModel) -> None:
    result = inner.proto.graph
    replace_nodes(graph, result.node)
    del graph.value_info[:]
    graph.value_info.extend(result.value_info)
    for value, inferred in zip(graph.output, result.output, strict=True):
        value.CopyFrom(inferred)
    import_domains(model, (opset.domain for opset in inner.proto.opset_import))
    known = {tensor.name for tensor in model.proto.graph.initializer}
    model.proto.graph.initializer.extend(tensor for tensor in result.initializer if tensor.name not in known)


def declare_loop_results(graph: onnx.GraphProto) -> bool:
    """Gives the results of loops in their final form the shapes that they carry; says whether any had none.

    onnx infers no shapes for what a loop carries, because it may change them; these do not.
    """
    changed = False
    for each in all_graphs(graph):
        known = {value.name: value for value in [*each.value_info, *each.output]}
        for node in each.node:
            body = next(subgraphs(node), None)
            if node.op_type != "Loop" or body is None or body.name != FINAL_LOOP:
                continue
            for name, carried in zip(node.output, body.input[2:], strict=True):
                if name not in known:
                    each.value_info.add(name=name)
                    known[name] = each.value_info[-1]
                if not known[name].type.tensor_type.HasField("shape"):
                    known[name].type.CopyFrom(carried.type)
                    changed = True
    return changed


def import_domains(model: OnnxModel, domains: Iterable[str]) -> None:
    """Lets the model use operators of these domains."""
    known = {opset.domain for opset in model.proto.opset_import}
    for domain in domains:
        if domain not in known:
            model.proto.opset_import.append(onnx.helper.make_opsetid(domain, 1))


def _defined(graph: onnx.GraphProto) -> Iterator[str]:
    yield from (value.name for value in graph.input)
    yield from (tensor.name for tensor in graph.initializer)
    for node in graph.node:
        yield from filter(None, node.output)


def _rename(graph: onnx.GraphProto, outer: Mapping[str, str], taken: set[str], prefix: str = "") -> None:
    names = dict(outer)
    for name in dict.fromkeys(_defined(graph)):
        new, count = f"{prefix}{name}", 0
        while new in taken:
            count += 1
            new = f"{prefix}{name}_{count}"
        taken.add(new)
        names[name] = new
    for value in [*graph.input, *graph.output, *graph.initializer]:
        value.name = names.get(value.name, value.name)
    for node in graph.node:
        for field in (node.input, node.output):
            field[:] = [names.get(name, name) for name in field]
        for inner in subgraphs(node):
            _rename(inner, names, taken, prefix)


def rename_values(graph: onnx.GraphProto, prefix: str) -> None:
    """Gives all values of a copied subgraph, and its nodes, names of their own."""
    _rename(graph, {}, {name for each in all_graphs(graph) for name in _defined(each)}, f"{prefix}_")
    for index, node in enumerate(all_nodes(graph)):
        node.name = f"{prefix}_{index}"


def _move_constants(model: OnnxModel, graph: onnx.GraphProto) -> None:
    main = model.proto.graph
    outputs = {value.name for value in graph.output}
    moved: list[onnx.TensorProto] = [tensor for tensor in graph.initializer if tensor.name not in outputs]
    kept = [tensor for tensor in graph.initializer if tensor.name in outputs]
    del graph.initializer[:]
    # A result must be made inside: a constant one is made by a node.
    for tensor in kept:
        source = onnx.TensorProto()
        source.CopyFrom(tensor)
        source.name = f"{tensor.name}_value"
        moved.append(source)
        graph.node.insert(0, onnx.helper.make_node("Identity", [source.name], [tensor.name], name=source.name))
    for node in [node for node in graph.node if node.op_type == "Constant" and node.attribute[0].name == "value"]:
        tensor = onnx.TensorProto()
        tensor.CopyFrom(node.attribute[0].t)
        if tensor.data_type == onnx.TensorProto.STRING:
            continue
        if node.output[0] in outputs:
            tensor.name = f"{node.output[0]}_value"
            position = list(graph.node).index(node)
            identity = onnx.helper.make_node("Identity", [tensor.name], list(node.output), name=node.name)
            graph.node[position].CopyFrom(identity)
        else:
            tensor.name = node.output[0]
            graph.node.remove(node)
        moved.append(tensor)
    for tensor in moved:
        if is_large(tensor) and tensor.data_location != onnx.TensorProto.EXTERNAL:
            model.in_memory[tensor.name] = tensor
            main.initializer.add(name=tensor.name, dims=tensor.dims, data_type=tensor.data_type)
        else:
            main.initializer.add().CopyFrom(tensor)
