"""JAX: a plain or jitted function with example arguments (arrays or ShapeDtypeStructs), or a `jax.export.Exported`.

Arrays that the function closes over become parameters. Arguments with dimensions from `jax.export.symbolic_shape` stay
dynamic in those dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import export as jax_export
from jax.extend import core as jax_core
from jax.extend import source_info_util

from eyas.errors import FrontendError, UnsupportedOpError, UsageError
from eyas.frontends.contract import finish, keep_early_text
from eyas.frontends.functions import bind_parameters, select_main
from eyas.frontends.jax import lowerings as jax_lowerings
from eyas.frontends.stablehlo import lower_stablehlo, parse_stablehlo
from eyas.module import trees
from eyas.program.dtypes import short_name
from eyas.program.literals import LARGEST_INLINE_BYTES
from eyas.program.parameters import Parameter
from eyas.program.program import Argument, EntryPoint, ImportedProgram, Signature, Source

# An op comes from the user's line, also where nothing but JAX and this package is between it and that line.
source_info_util.register_exclusion(str(Path(__file__).parents[2]))

# JAX lowers for a platform that it does not know with its portable rules: StableHLO ops instead of calls to LAPACK.
PLATFORM = "eyas"


def import_model(model: Any, args: Sequence[Any], kwargs: Mapping[str, Any], dynamic_shapes: Any) -> ImportedProgram:
    """Traces, exports and lowers a JAX function."""
    if dynamic_shapes is not None:
        raise UsageError(
            "JAX arguments say themselves what is dynamic: pass jax.ShapeDtypeStruct(jax.export.symbolic_shape('b, 3'),"
            " dtype) as the example"
        )
    if isinstance(model, jax_export.Exported):
        if args or kwargs:
            raise UsageError("a jax.export.Exported already has its arguments; pass it alone")
        text = bytes(model.mlir_module_serialized)
        return _lower(text, [], model.in_tree, model.in_avals, model.out_tree, model.out_avals, model.fun_name)
    if not callable(model):
        raise FrontendError(f"cannot import a {type(model).__qualname__}; pass a function with example arguments")
    return _import_function(model, args, kwargs)


def _import_function(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> ImportedProgram:
    name = getattr(function, "__name__", type(function).__name__)
    if hasattr(function, "lower") and hasattr(function, "__wrapped__"):
        # The jit around the whole function would hide what it closes over.
        function = function.__wrapped__
    leaves, in_tree = jax.tree_util.tree_flatten((tuple(args), dict(kwargs)))
    structs = [_struct(leaf) for leaf in leaves]
    shape_of_result: list[Any] = []

    def flat(*values: Any) -> list[Any]:
        call_args, call_kwargs = jax.tree_util.tree_unflatten(in_tree, values)
        results, out_tree = jax.tree_util.tree_flatten(function(*call_args, **call_kwargs))
        shape_of_result.append(out_tree)
        return results

    try:
        closed = jax.make_jaxpr(flat)(*structs)
        if _hides_weights(closed.jaxpr):
            closed = inline_jits(closed, structs)
    except Exception as error:
        raise FrontendError(f"jax could not trace '{name}': {str(error).splitlines()[0]}") from error
    weights = [(index, const) for index, const in enumerate(closed.consts) if _nbytes(const) > LARGEST_INLINE_BYTES]

    def with_weights(large: Sequence[Any], *values: Any) -> list[Any]:
        consts = list(closed.consts)
        for (index, _), value in zip(weights, large, strict=True):
            consts[index] = value
        return jax_core.jaxpr_as_fun(jax_core.ClosedJaxpr(closed.jaxpr, consts))(*values)

    jax_lowerings.register()
    jitted = jax.jit(with_weights, keep_unused=True)
    large = [jax.ShapeDtypeStruct(const.shape, const.dtype) for _, const in weights]
    text = _lower_for_eyas(jitted, large, structs, name)
    parameters = [_parameter(index, const) for index, const in weights]
    return _lower(text, parameters, in_tree, structs, shape_of_result[0], closed.out_avals, name)


def _lower_for_eyas(jitted: Any, large: Sequence[Any], structs: Sequence[Any], name: str) -> str | bytes:
    try:
        if any(not isinstance(dim, int) for struct in structs for dim in struct.shape):
            return jax_export.export(jitted, platforms=[PLATFORM])(large, *structs).mlir_module()
        return jitted.trace(large, *structs).lower(lowering_platforms=(PLATFORM,)).as_text(debug_info=True)
    except NotImplementedError as error:
        raise UnsupportedOpError(f"jax has no portable lowering of '{name}': {str(error).splitlines()[0]}") from error


def _lower(
    text: str | bytes,
    parameters: Sequence[Parameter],
    in_tree: Any,
    inputs: Sequence[Any],
    out_tree: Any,
    outputs: Sequence[Any],
    name: str,
) -> ImportedProgram:
    module = parse_stablehlo(text, name)
    with module.context:
        select_main(module, name)
    early_text = keep_early_text(module)
    lower_stablehlo(module)
    bind_parameters(module, [parameter.name for parameter in parameters])
    used = finish(module, {parameter.name: parameter for parameter in parameters})

    positional, keywords = (_tree(child) for child in in_tree.children())
    names = tuple(f"arg{index}" for index in range(len(positional.children)))
    call = trees.CallTree(trees.Tree("tuple", positional.children), names, keywords)
    results = _tree(out_tree)
    arguments = tuple(_argument(path, aval) for path, aval in zip(call.paths(), inputs, strict=True))
    returned = tuple(_argument(path, aval) for path, aval in zip(trees.result_names(results), outputs, strict=True))
    symbols = {dim: (1, None) for argument in arguments for dim in argument.dims if isinstance(dim, str)}
    symbols = {dim: bounds for dim, bounds in symbols.items() if dim.isidentifier()}
    signature = Signature(arguments, returned, symbols)
    entry = EntryPoint(signature, call, results, narrows=not jax.config.jax_enable_x64)
    return ImportedProgram(
        module, used, signature, call, results, Source("jax", name), early_text, entries={"main": entry}
    )


def _hides_weights(jaxpr: Any) -> bool:
    for equation in jaxpr.eqns:
        inner = equation.params.get("jaxpr")
        if isinstance(inner, jax_core.ClosedJaxpr) and (
            any(_nbytes(const) > LARGEST_INLINE_BYTES for const in inner.consts) or _hides_weights(inner.jaxpr)
        ):
            return True
    return False


def inline_jits(closed: Any, structs: Sequence[Any]) -> Any:
    """The same jaxpr traced again with inner jits in line, so that what they do and close over is seen at the top."""
    return jax.make_jaxpr(lambda *values: evaluate(closed.jaxpr, closed.consts, values))(*structs)


def evaluate(
    jaxpr: Any, consts: Sequence[Any], args: Sequence[Any], seen: Callable[[Any, Any], None] | None = None
) -> list[Any]:
    """Evaluates a jaxpr with inner jits inlined; `seen` is told each variable and its value."""
    values: dict[Any, Any] = {}

    def read(variable: Any) -> Any:
        return variable.val if isinstance(variable, jax_core.Literal) else values[variable]

    values.update(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))
    for equation in jaxpr.eqns:
        inputs = [read(variable) for variable in equation.invars]
        inner = equation.params.get("jaxpr")
        if equation.primitive.name in ("jit", "pjit") and isinstance(inner, jax_core.ClosedJaxpr):
            outputs = evaluate(inner.jaxpr, inner.consts, inputs)
        else:
            # The user's line, not this one, is where the op comes from.
            with source_info_util.user_context(equation.source_info.traceback):
                outputs = equation.primitive.bind(*inputs, **equation.primitive.get_bind_params(equation.params))
            outputs = outputs if equation.primitive.multiple_results else [outputs]
        values.update(zip(equation.outvars, outputs, strict=True))
        if seen is not None:
            for variable, value in zip(equation.outvars, outputs, strict=True):
                seen(variable, value)
    return [read(variable) for variable in jaxpr.outvars]


def _tree(definition: Any) -> trees.Tree:
    """Our tree of a PyTreeDef."""
    data = definition.node_data()
    if data is None:
        return trees.LEAF
    kind, context = data
    children = tuple(_tree(child) for child in definition.children())
    if kind in (tuple, list):
        return trees.Tree(kind.__name__, children)
    if kind is dict:
        return trees.Tree("dict", children, tuple(context))
    if kind is type(None):
        return trees.constant(None)
    path = f"{kind.__module__}:{kind.__name__}"
    if issubclass(kind, tuple) and (names := getattr(kind, "_fields", None)):
        return trees.Tree("namedtuple", children, tuple(names), path)
    fields = tuple(getattr(kind, "__dataclass_fields__", {}))
    if len(fields) == len(children):
        return trees.Tree("object", children, fields, path)
    raise FrontendError(
        f"cannot take a {kind.__module__}.{kind.__qualname__} apart; use tuples, lists, dicts or arrays"
    )


def _struct(leaf: Any) -> jax.ShapeDtypeStruct:
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf
    array = leaf if hasattr(leaf, "shape") and hasattr(leaf, "dtype") else jax.numpy.asarray(leaf)
    return jax.ShapeDtypeStruct(array.shape, jax.dtypes.canonicalize_dtype(array.dtype))


def _argument(name: str, aval: Any) -> Argument:
    dims = tuple(dim if isinstance(dim, int) else str(dim) for dim in aval.shape)
    return Argument(name, short_name(str(aval.dtype), f"'{name}'"), dims)


def _parameter(index: int, const: Any) -> Parameter:
    dtype = short_name(str(const.dtype), f"closed-over array {index}")
    name = f"closure_{index}_{dtype}_{'x'.join(map(str, const.shape))}"
    return Parameter(name, dtype, tuple(const.shape), lambda: np.asarray(const))


def _nbytes(const: Any) -> int:
    return math.prod(const.shape) * const.dtype.itemsize if hasattr(const, "shape") else 0
