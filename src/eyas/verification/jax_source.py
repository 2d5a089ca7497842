"""JAX as the reference: the function's jaxpr, evaluated equation by equation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend import core as jax_core
from jax.extend import source_info_util

from eyas.errors import UsageError
from eyas.frontends.jax.importer import evaluate, import_model, inline_jits
from eyas.program.program import ImportedProgram
from eyas.verification.source import Layer, Reference, Source, Tapped


class JaxSource(Source):
    """Layers are the results of the jaxpr's equations, inner jits in line, named by primitive: `dot_general_3`."""

    framework = f"jax {jax.__version__}, op by op"

    def __init__(self, model: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        if isinstance(model, jax.export.Exported):
            raise UsageError("an exported JAX program has no layers to look at; pass the function and its arguments")
        leaves, self._in_tree = jax.tree_util.tree_flatten((tuple(args), dict(kwargs)))
        if any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in leaves):
            raise UsageError("verification runs the function: pass arrays as example arguments, not ShapeDtypeStructs")
        self._leaves = [jax.numpy.asarray(leaf) for leaf in leaves]
        self._name = getattr(model, "__name__", type(model).__name__)
        function = model.__wrapped__ if hasattr(model, "lower") and hasattr(model, "__wrapped__") else model

        def flat(*values: Any) -> list[Any]:
            call_args, call_kwargs = jax.tree_util.tree_unflatten(self._in_tree, values)
            return jax.tree_util.tree_leaves(function(*call_args, **call_kwargs))

        self._closed = inline_jits(jax.make_jaxpr(flat)(*self._leaves), self._leaves)
        self._variables: dict[str, Any] = {}
        for equation in self._closed.jaxpr.eqns:
            for variable in equation.outvars:
                if type(variable).__name__ != "DropVar":
                    self._variables[f"{equation.primitive.name}_{len(self._variables)}"] = variable
        names = {variable: name for name, variable in self._variables.items()}
        self.layers = tuple(
            _describe(names[variable], equation, names)
            for equation in self._closed.jaxpr.eqns
            for variable in equation.outvars
            if variable in names and _is_numeric(variable)
        )
        layers = {layer.name for layer in self.layers}
        found = [names.get(one, "") if not isinstance(one, jax_core.Literal) else "" for one in self._outvars]
        self._results = tuple(name if name in layers else "" for name in found)

    @property
    def _outvars(self) -> Sequence[Any]:
        return self._closed.jaxpr.outvars

    @property
    def results(self) -> Sequence[str]:
        return self._results

    def flatten(self, program: ImportedProgram, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        del program
        return jax.tree_util.tree_leaves((tuple(args), dict(kwargs)))

    def program(self, taps: Sequence[str] = ()) -> Tapped:
        variables = [self._variables[tap] for tap in taps]

        def tapped(*values: Any) -> list[Any]:
            seen: dict[Any, Any] = {}
            results = evaluate(self._closed.jaxpr, self._closed.consts, values, seen.__setitem__)
            return [*results, *(seen[variable] for variable in variables)]

        tapped.__name__ = self._name
        program = import_model(tapped, self._leaves, {}, None)
        positions = {name: index for index, name in enumerate(self._results) if name}
        return Tapped(program, positions | {tap: len(self._results) + index for index, tap in enumerate(taps)})

    def reference(self, inputs: Sequence[np.ndarray]) -> Reference:
        names = {variable: name for name, variable in self._variables.items()}
        wanted = {layer.name for layer in self.layers}
        values: dict[str, np.ndarray] = {}

        def keep(variable: Any, value: Any) -> None:
            if names.get(variable) in wanted:
                values[names[variable]] = np.asarray(value)

        arrays = [jax.numpy.asarray(array) for array in inputs]
        results = evaluate(self._closed.jaxpr, self._closed.consts, arrays, keep)
        return Reference([np.asarray(result) for result in results], values)


def _is_numeric(variable: Any) -> bool:
    """Random keys have a type of their own, which no array shows."""
    return not jax.numpy.issubdtype(variable.aval.dtype, jax.dtypes.extended)


def _describe(name: str, equation: Any, names: Mapping[Any, str]) -> Layer:
    reads = [names[one] for one in equation.invars if not isinstance(one, jax_core.Literal) and one in names]
    place = source_info_util.summarize(equation.source_info)
    return Layer(name, equation.primitive.name, "" if place == "unknown" else place, tuple(dict.fromkeys(reads)))
