"""Rules for control flow and variables."""

from __future__ import annotations

from typing import Any

from eyas.frontends.tensorflow.control import branch, while_loop
from eyas.frontends.tflite.translate import Call


def if_(call: Call) -> Any:
    """Both branches are compiled; a known condition leaves one."""
    run, given = call.translation.run, list(call.inputs[1:])
    then, otherwise = call.get("ThenSubgraphIndex"), call.get("ElseSubgraphIndex")
    return branch(call.g, call.input(0), lambda: run(then, given), lambda: run(otherwise, given))


def while_(call: Call) -> Any:
    run = call.translation.run
    check, body = call.get("CondSubgraphIndex"), call.get("BodySubgraphIndex")
    # A step may write variables, so each is translated once.
    return while_loop(call.g, call.inputs, lambda given: run(check, given), lambda given: run(body, given), pure=False)


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
