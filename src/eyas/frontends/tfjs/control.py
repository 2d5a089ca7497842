"""Control flow of graph models: functions of the graph's library, and the loops and switches of TensorFlow 1.

TensorFlow 1 writes a loop as nodes that go round: `Enter` gives the first value of a variable, `Merge` takes that or
the one of `NextIteration`, `Switch` sends it into the body while `LoopCond` holds, else to `Exit`. All variables of a
loop are found by the name of its frame, and the nodes between are translated for the condition and for the body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from eyas.errors import FrontendError, UnsupportedOpError
from eyas.frontends.tensorflow.control import branch, while_loop
from eyas.frontends.tensorflow.elementwise import select

if TYPE_CHECKING:
    from eyas.frontends.tfjs.graph import GraphTranslation
    from eyas.frontends.tfjs.node import Node

# Results that are told apart by name inside functions; all others count from 0.
_RESULTS = {
    "MaxPoolWithArgmax": ("output", "argmax"),
    "NonMaxSuppressionV4": ("selected_indices", "valid_outputs"),
    "NonMaxSuppressionV5": ("selected_indices", "selected_scores", "valid_outputs"),
    "Switch": ("output_false", "output_true"),
    "TensorListPopBack": ("output_handle", "tensor"),
    "TensorArrayV3": ("handle", "flow"),
    "TopKV2": ("values", "indices"),
    "Unique": ("y", "idx"),
    "UniqueV2": ("y", "idx"),
}


def place_of(reference: str, nodes: Mapping[str, dict[str, Any]]) -> tuple[str, int]:
    """Node and number of the result that `name`, `name:1` or, inside functions, `name:result:0` refers to."""
    name, *rest = reference.split(":")
    if not rest:
        return name, 0
    index = int(rest[-1])
    if len(rest) == 2:
        named = _RESULTS.get(nodes.get(name, {}).get("op", ""), ())
        index += named.index(rest[0]) if rest[0] in named else 0
    return name, index


@dataclass(frozen=True)
class Loop:
    """The nodes of a loop, in one order: where its variables begin and meet, and where they leave for the body."""

    enters: tuple[str, ...]
    merges: tuple[str, ...]
    nexts: tuple[str, ...]
    switches: tuple[tuple[str, ...], ...]
    condition: str


def needs(node: dict[str, Any], translation: GraphTranslation) -> list[str]:
    """What must be translated before a node: for the end of a loop what enters the loop."""
    if node["op"] == "Exit":
        return [data_inputs(translation.nodes[one])[0] for one in loop_of(node, translation).enters]
    return data_inputs(node)


def data_inputs(node: dict[str, Any]) -> list[str]:
    return [one for one in node.get("input", []) if not one.startswith("^")]


def loop_of(leave: dict[str, Any], translation: GraphTranslation) -> Loop:
    """The loop that an Exit ends."""
    nodes = translation.nodes

    def node_at(reference: str, op: str) -> dict[str, Any]:
        found = nodes.get(place_of(reference, nodes)[0], {})
        if found.get("op") != op:
            raise FrontendError(f"{translation.g.description}: the loop that ends at '{leave['name']}' has no {op}")
        return found

    switch = node_at(data_inputs(leave)[0], "Switch")
    first, condition = data_inputs(switch)
    frame = _frame(nodes, node_at(first, "Merge"))
    enters, merges, nexts, switches = list[str](), list[str](), list[str](), list[tuple[str, ...]]()
    for name, merge in nodes.items():
        if merge["op"] != "Merge" or _frame(nodes, merge) != frame:
            continue
        begin, step = data_inputs(merge)
        readers = tuple(
            other["name"]
            for other in translation.readers(name)
            if other["op"] == "Switch" and place_of(data_inputs(other)[1], nodes) == place_of(condition, nodes)
        )
        enters.append(place_of(begin, nodes)[0])
        merges.append(name)
        nexts.append(data_inputs(node_at(step, "NextIteration"))[0])
        switches.append(readers)
    return Loop(tuple(enters), tuple(merges), tuple(nexts), tuple(switches), condition)


def _frame(nodes: Mapping[str, dict[str, Any]], merge: dict[str, Any]) -> str | None:
    """The name of the loop that a Merge begins; None for one where branches meet."""
    given = data_inputs(merge)
    begin = nodes.get(place_of(given[0], nodes)[0], {}) if given else {}
    return str(begin["attr"]["frame_name"]) if begin.get("op") == "Enter" else None


def run_loop(leave: dict[str, Any], translation: GraphTranslation) -> None:
    """Translates the whole loop that an Exit ends, and gives each of its Exits its value."""
    loop = loop_of(leave, translation)
    given = [translation.tensor(data_inputs(translation.nodes[one])[0]) for one in loop.enters]

    def inside(state: Sequence[Any]) -> GraphTranslation:
        inner = translation.inside()
        for merge, switches, value in zip(loop.merges, loop.switches, state, strict=True):
            inner.values[merge] = [value, np.array(0, np.int32)]
            inner.values.update({switch: [value, value] for switch in switches})
        return inner

    def check(state: list[Any]) -> list[Any]:
        return [inside(state).tensor(loop.condition)]

    def body(state: list[Any]) -> list[Any]:
        inner = inside(state)
        return [inner.tensor(one) for one in loop.nexts]

    translation.g.where = leave["name"]
    results = while_loop(translation.g, given, check, body)
    for switches, result in zip(loop.switches, results, strict=True):
        for switch in switches:
            for reader in translation.readers(switch):
                if reader["op"] == "Exit":
                    translation.values[reader["name"]] = [result]


# Rules.


def function(node: Node, name: str, given: Sequence[Any]) -> list[Any]:
    """The results of a function of the library."""
    translation = node.translation
    found = translation.functions.get(name)
    if found is None:
        raise FrontendError(f"{node.g.description}: {node.op} '{node.name}' runs '{name}', which is not in the library")
    signature = found["signature"]
    names = [one["name"] for one in signature.get("inputArg", [])]
    if len(names) != len(given):
        raise FrontendError(f"{node.g.description}: '{name}' takes {len(names)} inputs, not {len(given)}")
    inner = translation.inside({one["name"]: one for one in found.get("nodeDef", [])})
    inner.values = dict(zip(names, ([one] for one in given), strict=True))
    ret = found.get("ret", {})
    where = node.g.where
    results = [inner.tensor(ret.get(one["name"], one["name"])) for one in signature.get("outputArg", [])]
    node.g.where = where
    return results


def _name(node: Node, attribute: str) -> str:
    found = node.get(attribute)
    return str(found.get("name", "") if isinstance(found, dict) else found)


def if_(node: Node) -> list[Any]:
    condition, *given = node.inputs
    then, otherwise = _name(node, "then_branch"), _name(node, "else_branch")
    return branch(node.g, condition, lambda: function(node, then, given), lambda: function(node, otherwise, given))


def while_(node: Node) -> list[Any]:
    check, body = _name(node, "cond"), _name(node, "body")
    return while_loop(
        node.g,
        node.inputs,
        lambda given: function(node, check, given),
        lambda given: function(node, body, given),
    )


def call(node: Node) -> list[Any]:
    return function(node, _name(node, "f"), node.inputs)


def merge(node: Node) -> list[Any]:
    """Where branches meet, the second of which is taken when the condition holds: both are computed."""
    condition = _condition(node)
    no, yes = node.inputs[:2]
    if isinstance(condition, np.ndarray):
        taken = bool(condition.all())
        return [yes if taken else no, np.array(int(taken), np.int32)]
    if no.dtype != yes.dtype or len(no.shape if isinstance(no, np.ndarray) else no.dims) != len(
        yes.shape if isinstance(yes, np.ndarray) else yes.dims
    ):
        raise node.refuse("its branches give tensors of different kinds")
    return [select(node.g, condition, yes, no), node.g.cast(condition, np.int32)]


def _condition(node: Node) -> Any:
    """What decided between the branches: the condition of the nearest Switch that is not of branches inside."""
    nodes, waiting, seen = node.translation.nodes, [(node.name, 0)], set[tuple[str, int]]()
    while waiting:
        name, depth = waiting.pop(0)
        current = nodes.get(name, {})
        if (name, depth) in seen or not current:
            continue
        seen.add((name, depth))
        if current["op"] == "Switch":
            if depth == 1:
                return node.translation.tensor(data_inputs(current)[1])
            depth -= 1
        elif current["op"] == "Merge":
            depth += 1
        waiting += [(place_of(one.removeprefix("^"), nodes)[0], depth) for one in current.get("input", [])]
    raise node.refuse("nothing decides between its branches")


def refuse_outside(node: Node) -> Any:
    raise UnsupportedOpError(
        f"{node.g.description}: {node.op} '{node.name}' is not supported: it belongs to no loop that ends"
    )


RULES = {
    "Enter": lambda node: node.inputs[0],
    "If": if_,
    "LoopCond": lambda node: node.inputs[0],
    "Merge": merge,
    "NextIteration": refuse_outside,
    "PartitionedCall": call,
    "StatefulPartitionedCall": call,
    "StatelessIf": if_,
    "StatelessWhile": while_,
    "Switch": lambda node: [node.inputs[0], node.inputs[0]],
    "While": while_,
}
