"""Loops that carry what grows: caches of keys and values, and tokens that a decoder appends, in room for all steps.

What programs carry from step to step keeps its size. So a tensor that is longer by the same size after each step gets
room for as many steps as there can be before the loop begins, and the body takes from it what is there by then: that
follows from the number of the step. The results are cut to the steps that were taken.

    y = Loop (n, , x) { s : [a + i * k] => t = Concat (s, row) }
  becomes
    room = Pad (x, n * k)
    all, taken = Loop (n, , room, 0) { r, _ => s = Slice (r, 0, a + i * k), t = Concat (s, row), Pad (t, ...), i + 1 }
    y = Slice (all, 0, a + taken * k)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx
from onnx import helper

from eyas.frontends.onnx.file import OnnxModel
from eyas.frontends.onnx.prepare import describe_node
from eyas.frontends.onnx.rewrite.rules import Builder, operand
from eyas.frontends.onnx.rewrite.sizes import Size
from eyas.frontends.onnx.rewrite.steps import FOR_EVER, MOST_STEPS, Types, bound_of, given_count, orders
from eyas.frontends.onnx.room import BeforeLoop, Grown, LoopWithRoom
from eyas.frontends.onnx.step_slices import over_steps
from eyas.frontends.onnx.subgraphs import (
    FINAL_LOOP,
    all_graphs,
    all_nodes,
    import_domains,
    replace_nodes,
    subgraphs,
)
from eyas.frontends.onnx.symbolic import expressions as ex
from eyas.frontends.onnx.symbolic.interpret import Facts, interpret


def give_room(model: OnnxModel) -> bool:
    """Says whether something changed and needs inference again. Names must be unique across subgraphs."""
    if not any(_is_loop(node) for node in all_nodes(model.proto.graph)):
        return False
    changed = False
    facts = interpret(model)
    for graph in list(all_graphs(model.proto.graph)):
        nodes: list[onnx.NodeProto] = []
        for node in graph.node:
            builder = Builder(model, node)
            # The loop's name is for what the rules make of it.
            builder.prefix = f"{node.name}_grown"
            after = _change(node, model, facts, builder) if _is_loop(node) else None
            model.proto.graph.initializer.extend(builder.initializers if after is not None else [])
            nodes += [*(builder.nodes if after is not None else []), node, *(after or [])]
        if len(nodes) != len(graph.node):
            replace_nodes(graph, nodes)
            changed = True
    return changed


def _is_loop(node: onnx.NodeProto) -> bool:
    return node.op_type == "Loop" and next(subgraphs(node)).name != FINAL_LOOP


def _change(node: onnx.NodeProto, model: OnnxModel, facts: Facts, b: Builder) -> list[onnx.NodeProto] | None:
    """Nodes to stand after the loop; the builder has those before it. None where nothing grows, or not so that room
    can be made: what then changes its shape is refused later."""
    body = next(subgraphs(node))
    outer = BeforeLoop(node, body, facts, b)
    grown, filled = _grown(node, body, outer)
    steps = _most_steps(node, body, grown, outer) if grown else None
    if steps is None:
        return None
    for size in filled:
        _require_some(size, outer, model)
    room = LoopWithRoom(node, body, outer)
    for one in grown:
        room.widen(one, steps)
    return room.finish()


def _grown(node: onnx.NodeProto, body: onnx.GraphProto, outer: BeforeLoop) -> tuple[list[Grown], list[ex.Integer]]:
    """What grows, and sizes that must not be 0 for that: the last of the tokens is one only if there are some."""
    changes, entered = [], {}
    for place in range(len(node.input) - 2):
        first, before, after = (
            value.shape if (value := outer.facts.values.get(name)) is not None else None
            for name in (node.input[2 + place], body.input[2 + place].name, body.output[1 + place].name)
        )
        if first is None or before is None or after is None or not len(first) == len(before) == len(after):
            continue
        added = {at: ex.sub(new, old) for at, (old, new) in enumerate(zip(before, after, strict=True)) if old != new}
        if added and all(map(outer.knows, first)):
            changes.append((place, added))
            entered |= {str(before[at]): first[at] for at in added}
    grown, filled = [], {}
    more = {name: ex.add(ex.dim(name), 1) for name, first in entered.items() if first != 0}
    for place, added in changes:
        for at, size in added.items():
            if not outer.knows(size):
                filled |= {name: entered[name] for name in ex.dims_in(size) & set(more)}
                added[at] = ex.with_sizes(size, more)
        if all(_is_size(size) and outer.knows(size) for size in added.values()):
            grown.append(Grown(place, added))
    return grown, [size for size in filled.values() if not isinstance(size, int)]


def _is_size(size: ex.Integer) -> bool:
    return ex.is_not_negative(size) and not ex.has_elements(size)


def _require_some(size: ex.Integer, outer: BeforeLoop, model: OnnxModel) -> None:
    b, there = outer.b, outer.size(size)
    assert isinstance(there, str)
    some = b.add("Greater", b.reshape(there, []), b.constant(0, np.int64))
    where = describe_node(outer.node, model)
    message = f"{where} takes the last of what it carries in each step; that must not be empty before the first one"
    b.add_many("EyasCheck", 0, some, domain="eyas", wanted=1, message=message)
    import_domains(model, ["eyas"])


def _most_steps(node: onnx.NodeProto, body: onnx.GraphProto, grown: Sequence[Grown], outer: BeforeLoop) -> Size | None:
    """A number of steps that the loop does not go beyond: its count, or what its condition allows."""
    b, types = outer.b, {}
    for name, value in outer.facts.values.items():
        if value.shape is not None and value.data_type:
            dims = [size if isinstance(size, int) else None for size in value.shape]
            types[name] = helper.make_tensor_type_proto(value.data_type, dims)
    bounds = [bound_of(node, body, types, b), *_bounds_of_sizes(node, body, types, grown, outer)]
    count = given_count(node, MOST_STEPS, b)
    if count is None:
        bounds.append(b.reshape(operand(node, 0), []))
    elif count != FOR_EVER:
        if not any(bounds):
            return count
        bounds.append(b.constant(count, np.int64))
    found = [bound for bound in bounds if bound]
    return b.add("Max", b.reshape(_least(found, b), [1]), b.constant([0], np.int64)) if found else None


def _bounds_of_sizes(
    node: onnx.NodeProto, body: onnx.GraphProto, types: Types, grown: Sequence[Grown], outer: BeforeLoop
) -> Iterator[str]:
    """Bounds where the condition compares how long something is by now: a decoder stops at so many tokens."""
    growth: dict[str, tuple[ex.Integer, ex.Integer]] = {}
    for one in grown:
        first = outer.facts.values[node.input[2 + one.place]].shape or ()
        before = outer.facts.values[body.input[2 + one.place].name].shape or ()
        growth |= {str(before[axis]): (first[axis], added) for axis, added in one.added.items()}
    for low, high, extra in orders(body, types, outer.b):
        sizes = [outer.number(name) for name in (low, high)]
        if sizes[0] is None or sizes[1] is None:
            continue
        # It goes on while this is below 0; with the step it grows by the slope.
        base, slope = over_steps(ex.sub(ex.sub(sizes[0], sizes[1]), extra), growth)
        if isinstance(slope, int) and slope > 0 and outer.knows(base):
            b, room = outer.b, outer.size(ex.add(ex.neg(base), slope - 1))
            room = b.constant([room], np.int64) if isinstance(room, int) else room
            more = b.add("Max", b.add("Div", room, b.constant([slope], np.int64)), b.constant([0], np.int64))
            yield b.reshape(b.add("Add", more, b.constant([1], np.int64)), [])


def _least(values: list[str], b: Builder) -> str:
    return values[0] if len(values) == 1 else b.add("Min", *values)
