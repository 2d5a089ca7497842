"""Rules for control flow: subgraphs of the file become those of ONNX's If and Loop."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from eyas.frontends.tensorflow.graph import Graph, dims_of
from eyas.frontends.tflite.translate import Call


def if_(call: Call) -> Any:
    """Both branches are compiled; a known condition leaves one."""
    g, condition, given = call.g, call.input(0), list(call.inputs[1:])
    branches = {"then_branch": call.get("ThenSubgraphIndex"), "else_branch": call.get("ElseSubgraphIndex")}
    if isinstance(condition, np.ndarray):
        return call.translation.run(branches["then_branch" if condition.all() else "else_branch"], given)
    graphs, found = {}, list[list[Any]]()
    for name, index in branches.items():
        with g.subgraph() as graph:
            results = call.translation.run(index, given)
            _set_outputs(g, graph, results)
        graphs[name] = graph
        found.append(results)
    made = [g.fresh(f"{g.where}/If", one.dtype, _common(one, other)) for one, other in zip(*found, strict=True)]
    g.add_node(
        helper.make_node(
            "If", [g.name_of(g.reshape(condition, []))], [one.name for one in made], name=g.where, **graphs
        )
    )
    return made


def while_(call: Call) -> Any:
    """The condition is computed before the first trip and after each."""
    g, run = call.g, call.translation.run
    check, body = call.get("CondSubgraphIndex"), call.get("BodySubgraphIndex")
    (first,) = run(check, call.inputs)
    with g.subgraph() as graph:
        trip = g.fresh(f"{g.where}/trip", np.int64, ())
        before = g.fresh(f"{g.where}/condition", np.bool_, ())
        carried = [g.fresh(f"{g.where}/carried", one.dtype, dims_of(one)) for one in call.inputs]
        graph.input.extend(helper.make_value_info(one.name, one.type) for one in (trip, before, *carried))
        results = run(body, carried)
        (again,) = run(check, results)
        _set_outputs(g, graph, [g.reshape(again, []), *results])
    made = [g.fresh(f"{g.where}/Loop", one.dtype, dims_of(one)) for one in call.inputs]
    given = ["", g.name_of(g.reshape(first, [])), *(g.name_of(one) for one in call.inputs)]
    g.add_node(helper.make_node("Loop", given, [one.name for one in made], name=g.where, body=graph))
    return made


def _set_outputs(g: Graph, graph: Any, results: list[Any]) -> None:
    """Results of a subgraph are made by its own nodes."""
    for one in results:
        named = g.fresh(f"{g.where}/result", one.dtype, dims_of(one))
        g.add_node(helper.make_node("Identity", [g.name_of(one)], [named.name], name=named.name))
        graph.output.append(helper.make_value_info(named.name, named.type))


def _common(one: Any, other: Any) -> list[Any]:
    return [a if a == b else None for a, b in zip(dims_of(one), dims_of(other), strict=True)]


def call_once(call: Call) -> Any:
    """Runs a graph that gives variables their first values."""
    call.translation.variables.initialize(call.translation, call.get("InitSubgraphIndex"))
    return []


def call_graph(call: Call) -> Any:
    return call.translation.run(call.get("Subgraph"), call.inputs)


def var_handle(call: Call) -> Any:
    name = (call.get("SharedName", b"") or b"").decode("utf-8", "replace")
    return call.translation.variables.handle(name)


def read_variable(call: Call) -> Any:
    return call.translation.variables.read(call, call.input(0), call.result)


def assign_variable(call: Call) -> Any:
    call.translation.variables.assign(call, call.input(0), call.input(1))
    return []


EXACT = {
    "ASSIGN_VARIABLE": assign_variable,
    "CALL": call_graph,
    "CALL_ONCE": call_once,
    "IF": if_,
    "READ_VARIABLE": read_variable,
    "VAR_HANDLE": var_handle,
    "WHILE": while_,
}
