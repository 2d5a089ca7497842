"""Several entry points in one program: each model is imported by itself, then their functions share one module.

Weights that two entries give the same name are one parameter when their values are equal; otherwise the later one gets
the entry's name in front. What is equal under different names is found when the module is written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eyas.dialects import flow
from eyas.errors import UsageError
from eyas.frontends import frontend_of, importer_of
from eyas.frontends.states import carry_state, check_same_start, read_as_state, state_names
from eyas.ir import clone_into, mlir
from eyas.ir.walk import find_ops, functions
from eyas.program.parameters import Parameter
from eyas.program.program import ImportedProgram, Source


@dataclass(frozen=True)
class Entry:
    """One entry point: a model with one call's arguments, as `eyas.compile` takes them."""

    model: Any
    inputs: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    dynamic_shapes: Any = None
    carry: Mapping[int, int] | None = None

    @staticmethod
    def of(name: str, given: Any) -> Entry:
        """What a user gave for an entry: an `Entry`, a pair of model and inputs, or a model that needs none."""
        entry = given if isinstance(given, Entry) else Entry(*given) if isinstance(given, tuple) else Entry(given)
        if not isinstance(entry.inputs, (tuple, list)):
            raise UsageError(
                f"entry '{name}': inputs must be a tuple of the call's arguments, got a {type(entry.inputs).__name__};"
                " for one tensor write (x,)"
            )
        return entry


def import_entries(given: Mapping[str, Any]) -> ImportedProgram:
    """Imports every entry and puts them into one program."""
    if not given:
        raise UsageError("a module needs at least one entry point: {'name': (model, inputs)}")
    for name in given:
        if not isinstance(name, str) or not name.isidentifier() or name.startswith("_") or "_dispatch_" in name:
            raise UsageError(
                f"{name!r} cannot name an entry point; a name is a Python identifier that does not start with '_' and"
                " does not contain '_dispatch_'"
            )
    entries = {name: Entry.of(name, one) for name, one in given.items()}
    programs = {name: import_entry(entry) for name, entry in entries.items()}
    states = {name: state_names(program) for name, program in programs.items()}
    shared = frozenset().union(*states.values())
    for name, entry in entries.items():
        # Small buffers have become constants where they are only read; now they are known to change.
        if shared - states[name] and frontend_of(entry.model, (entry.inputs, entry.kwargs)) == "torch":
            programs[name] = import_entry(entry, shared)
    return merge(programs)


def import_entry(entry: Entry, states: frozenset[str] = frozenset()) -> ImportedProgram:
    """Imports one model. `states` names variables that other entry points change."""
    frontend = importer_of(entry.model, (entry.inputs, entry.kwargs))
    known = {"states": states} if states else {}
    program = frontend.import_model(entry.model, entry.inputs, entry.kwargs, entry.dynamic_shapes, **known)
    return carry_state(program, entry.carry, entry.inputs) if entry.carry else program


def merge(programs: Mapping[str, ImportedProgram]) -> ImportedProgram:
    """One program with a function for each of several; takes their modules over."""
    first = next(iter(programs.values()))
    context = first.module.context
    parameters: dict[str, Parameter] = {}
    states = set().union(*map(state_names, programs.values()))
    with context:
        module = mlir.Module.create(mlir.Location.unknown())
        for name, program in programs.items():
            own = program.module if program is first else clone_into(program.module.operation, context)
            read_as_state(own, states)
            keys = {key: _share(parameters, name, one) for key, one in program.parameters.items() if key not in states}
            for op in find_ops(own, "flow.parameter"):
                op.attributes["key"] = mlir.StringAttr.get(keys[op.key.value])
            (function,) = functions(own)
            with mlir.InsertionPoint(module.body):
                copy = function.operation.clone()
            copy.attributes["sym_name"] = mlir.StringAttr.get(name)
    texts = {name: program.early_text for name, program in programs.items()}

    def early_text(limit: int) -> str:
        return "\n".join(
            f"// entry point {name}\n{programs[name].as_text(limit) if text is None else text(limit)}"
            for name, text in texts.items()
        )

    kinds = sorted({program.source.kind for program in programs.values()})
    source = Source("+".join(kinds), ", ".join(f"{name}: {p.source.description}" for name, p in programs.items()))
    digest = hashlib.sha256("".join(f"{name}={one.digest};" for name, one in programs.items()).encode()).hexdigest()
    entries = {name: one.entries["main"] for name, one in programs.items()}
    call = (first.signature, first.in_tree, first.out_tree)
    return ImportedProgram(module, parameters, *call, source, early_text, digest, entries)


def _share(known: dict[str, Parameter], entry: str, parameter: Parameter) -> str:
    """The key of a weight in the common table, which gets it unless it is there."""
    state = parameter.name.removesuffix(flow.initial_key(""))
    if state != parameter.name and (before := known.get(parameter.name)) is not None:
        check_same_start(state, entry, before, parameter, _equal(before, parameter))
    for key in (parameter.name, f"{entry}.{parameter.name}"):
        if key not in known:
            known[key] = Parameter(key, parameter.dtype, parameter.shape, parameter.read)
            return key
        if _equal(known[key], parameter):
            return key
    raise UsageError(f"entry '{entry}': the weight '{parameter.name}' has the name of another entry's; rename one")


def _equal(left: Parameter, right: Parameter) -> bool:
    if (left.dtype, left.shape) != (right.dtype, right.shape):
        return False
    a, b = left.array(), right.array()
    if a.__array_interface__["data"] == b.__array_interface__["data"] and a.strides == b.strides:
        return True
    left_bytes, right_bytes = (np.ascontiguousarray(one).reshape(-1).view(np.uint8) for one in (a, b))
    return np.array_equal(left_bytes, right_bytes)
