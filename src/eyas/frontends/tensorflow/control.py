"""Control flow: subgraphs of a file become those of ONNX's If and Loop.

Lists of tensors (`TensorList`, `TensorArray`) are values too, which each step gives anew. What a loop of ONNX carries
has one shape, so a list enters it as one tensor with a row for each entry (`lists.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import helper

from eyas.errors import UnsupportedOpError
from eyas.frontends.tensorflow.graph import Graph, dims_of
from eyas.frontends.tensorflow.lists import TensorList

Body = Callable[[list[Any]], list[Any]]

_MOST_STEPS, _MOST_NODES = 8, 2000
"""A loop whose condition is known before each step is written out while it is no longer than this: a map over a batch
of one is no loop."""


def branch(g: Graph, condition: Any, then: Callable[[], list[Any]], otherwise: Callable[[], list[Any]]) -> list[Any]:
    """Both branches are compiled; a known condition leaves one."""
    if isinstance(condition, np.ndarray):
        return then() if condition.all() else otherwise()
    graphs, found = {}, list[list[Any]]()
    for name, run in (("then_branch", then), ("else_branch", otherwise)):
        with g.subgraph() as graph:
            results = run()
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


def while_loop(g: Graph, given: Sequence[Any], check: Body, body: Body, pure: bool = True) -> list[Any]:
    """The condition is computed before the first trip and after each. Both are translated more than once if they are
    `pure`: a few known steps are written out, and what no step changes is not carried."""
    given = list(given)
    if pure and (done := _written_out(g, given, check, body)) is not None:
        return done
    stays = [False] * len(given)
    if pure:
        given, stays = _tried(g, given, body)

    def all_of(moving: Sequence[Any]) -> list[Any]:
        rest = iter(moving)
        return [one if fixed else next(rest) for one, fixed in zip(given, stays, strict=True)]

    moved = [one for one, fixed in zip(given, stays, strict=True) if not fixed]
    made = _loop(g, moved, lambda state: check(all_of(state)), lambda state: _without(body(all_of(state)), stays))
    return all_of(made)


def _loop(g: Graph, given: list[Any], check: Body, body: Body) -> list[Any]:
    (first,) = check(given)
    with g.subgraph() as graph:
        trip = g.fresh(f"{g.where}/trip", np.int64, ())
        before = g.fresh(f"{g.where}/condition", np.bool_, ())
        carried = [_fresh_like(g, one) for one in given]
        graph.input.extend(helper.make_value_info(one.name, one.type) for one in (trip, before, *map(_rows, carried)))
        results = body(carried)
        (again,) = check(results)
        _set_outputs(g, graph, [g.reshape(again, []), *(_rows(one, g) for one in results)])
    made = [g.fresh(f"{g.where}/Loop", _rows(one).dtype, dims_of(_rows(one))) for one in given]
    names = ["", g.name_of(g.reshape(first, [])), *(g.name_of(_rows(one)) for one in given)]
    g.add_node(helper.make_node("Loop", names, [one.name for one in made], name=g.where, body=graph))
    return [
        replace(one, rows=result, items=None) if isinstance(one, TensorList) else result
        for one, result in zip(given, made, strict=True)
    ]


def _without(values: list[Any], stays: list[bool]) -> list[Any]:
    return [one for one, fixed in zip(values, stays, strict=True) if not fixed]


def _written_out(g: Graph, given: list[Any], check: Body, body: Body) -> list[Any] | None:
    """The results of a loop of a few known steps; None, and no trace of the attempt, when it is another."""
    state = given
    with g.attempt() as attempt:
        for _ in range(_MOST_STEPS + 1):
            (again,) = check(state)
            if not isinstance(again, np.ndarray) or attempt.nodes > _MOST_NODES:
                return None
            if not again.all():
                attempt.keep()
                return state
            state = body(state)
    return None


def _tried(g: Graph, given: list[Any], body: Body) -> tuple[list[Any], list[bool]]:
    """What a step shows: what it leaves as it is, and what entries of lists are like, which become tensors."""
    with g.attempt():
        before = [_unknown(g, one) for one in given]
        after = body(before)
    stays = [one is other for one, other in zip(before, after, strict=True)]
    made = list[Any]()
    for one, other, fixed in zip(given, after, stays, strict=True):
        if isinstance(one, TensorList) and not fixed:
            one = one.shaped_like(other)
            one = replace(one, rows=one.stack(g), items=None)
        made.append(one)
    return made, stays


def _unknown(g: Graph, value: Any) -> Any:
    """A value of the same kind whose number is not known, as in a step that is not the first."""
    if isinstance(value, TensorList):
        return replace(value)
    return g.fresh(f"{g.where}/tried", value.dtype, dims_of(value))


def _fresh_like(g: Graph, value: Any) -> Any:
    tensor = _rows(value)
    made = g.fresh(f"{g.where}/carried", tensor.dtype, dims_of(tensor))
    return replace(value, rows=made) if isinstance(value, TensorList) else made


def _rows(value: Any, g: Graph | None = None) -> Any:
    if not isinstance(value, TensorList):
        return value
    if value.rows is not None:
        return value.rows
    if g is None:
        raise AssertionError("a list that a loop carries has rows")
    raise UnsupportedOpError(f"{g.description}: {g.where} is not supported: a list that it carries changes its length")


def _set_outputs(g: Graph, graph: Any, results: list[Any]) -> None:
    """Results of a subgraph are made by its own nodes."""
    for one in results:
        named = g.fresh(f"{g.where}/result", one.dtype, dims_of(one))
        g.add_node(helper.make_node("Identity", [g.name_of(one)], [named.name], name=named.name))
        graph.output.append(helper.make_value_info(named.name, named.type))


def _common(one: Any, other: Any) -> list[Any]:
    return [a if a == b else None for a, b in zip(dims_of(one), dims_of(other), strict=True)]
