"""Spaces as JSON: what is handed to another process, and what a record of a session can keep."""

from __future__ import annotations

import dataclasses
from typing import Any

from eyas.codegen.common import expressions as ex
from eyas.codegen.common.space import Constraint, Knob, Space

_NODES = {
    node.__name__: node
    for node in (ex.Const, ex.Var, ex.Arithmetic, ex.Select, ex.Compare, ex.OneOf, ex.All, ex.Any, ex.Not, ex.Implies)
}


def space_to_json(space: Space) -> dict[str, Any]:
    return {
        "strategy": space.strategy,
        "knobs": [[knob.name, list(knob.domain), knob.meaning] for knob in space.knobs],
        "constraints": [
            [_pack(one.condition), one.message, [[name, _pack(shown)] for name, shown in one.shown], one.is_law]
            for one in space.constraints
        ],
    }


def space_from_json(text: dict[str, Any]) -> Space:
    knobs = tuple(Knob(name, tuple(domain), meaning) for name, domain, meaning in text["knobs"])
    constraints = tuple(
        Constraint(_unpack(condition), message, tuple((name, _unpack(node)) for name, node in shown), is_law)
        for condition, message, shown, is_law in text["constraints"]
    )
    return Space(text["strategy"], knobs, constraints)


def _pack(value: Any) -> Any:
    """A node is a list of its kind and its fields; tuples are marked, since nodes are lists."""
    if isinstance(value, ex.Int | ex.Bool):
        return [type(value).__name__, *(_pack(getattr(value, field.name)) for field in dataclasses.fields(value))]  # type: ignore[arg-type]
    return {"items": [_pack(item) for item in value]} if isinstance(value, tuple) else value


def _unpack(value: Any) -> Any:
    if isinstance(value, list):
        return _NODES[value[0]](*(_unpack(field) for field in value[1:]))
    return tuple(_unpack(item) for item in value["items"]) if isinstance(value, dict) else value
