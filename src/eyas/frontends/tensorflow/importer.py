"""TensorFlow: the folder of a SavedModel, a `.keras` or `.h5` file, a Keras model, or a `tf.function`.

TensorFlow itself traces the model and writes it as StableHLO, so it must be installed; variables become parameters. XLA
knows no open sizes: those of the model are fixed by example inputs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from eyas.errors import FrontendError, UnsupportedOpError, UsageError
from eyas.frontends.contract import finish, keep_early_text
from eyas.frontends.functions import bind_parameters, select_main, signature_of
from eyas.frontends.stablehlo import lower_stablehlo, parse_stablehlo
from eyas.module import trees
from eyas.program.dtypes import short_name
from eyas.program.parameters import Parameter
from eyas.program.program import Argument, ImportedProgram, Signature, Source

# An op of XLA's own dialect between those of StableHLO: a value that is itself.
_COPY = re.compile(r"mhlo\.copy (%[\w#]+) : (tensor<[^>]*>)")
_FOLDER_FILES = ("saved_model.pb", "saved_model.pbtxt")


def is_saved_model(path: str) -> bool:
    """Whether a folder holds a SavedModel."""
    return any(os.path.isfile(os.path.join(path, name)) for name in _FOLDER_FILES)


def import_model(model: Any, args: Sequence[Any], kwargs: Mapping[str, Any], dynamic_shapes: Any) -> ImportedProgram:
    """Traces and lowers a model of TensorFlow."""
    if dynamic_shapes is not None:
        raise UsageError("models of TensorFlow are compiled for fixed sizes; give example inputs, not dynamic_shapes")
    tf = _tensorflow()
    function, specs, description = _entry_point(tf, model)
    if specs is None:
        if not args or kwargs:
            raise UsageError(f"{description} does not say what it takes; give example inputs, in order")
        specs = [(f"arg{index}", None, None) for index in range(len(args))]
    fixed = _fixed_specs(tf, specs, args, kwargs, description)
    return _lower(tf, function, fixed, [name for name, *_ in specs], description)


def _tensorflow() -> Any:
    try:
        import tensorflow  # pyright: ignore[reportMissingImports, reportMissingModuleSource]

        if tensorflow.__file__ is None:  # a folder of that name
            raise ImportError("No module named 'tensorflow'")
    except ImportError as error:
        raise FrontendError(
            f"SavedModels and Keras models are read by TensorFlow, which cannot be imported ({error}): pip install"
            " tensorflow-cpu; a model that is converted to .tflite needs only eyas[tflite]"
        ) from None
    return tensorflow


Spec = tuple[str, Any, Any]
"""An input: its name, its shape with None for an open size, its type; None where only an example says it."""


def _entry_point(tf: Any, model: Any) -> tuple[Callable[..., Any], list[Spec] | None, str]:
    """A function of tensors in order, and what it takes."""
    if isinstance(model, (str, os.PathLike)):
        path = os.fspath(model)
        description = os.path.basename(os.path.normpath(path))
        if os.path.isdir(path):
            return *_signature(_loaded(tf.saved_model.load, path), description), description
        return *_keras(_loaded(tf.keras.models.load_model, path, compile=False), description), description
    description = getattr(model, "name", None) or type(model).__name__
    if hasattr(model, "structured_input_signature"):  # a concrete function
        return *_concrete(model), description
    if hasattr(model, "get_concrete_function"):
        if getattr(model, "input_signature", None):
            return *_concrete(model.get_concrete_function()), description
        return model, None, description
    return *_keras(model, description), description


def _loaded(load: Callable[..., Any], path: str, **options: Any) -> Any:
    if not os.path.exists(path):
        raise FrontendError(f"no such file: '{path}'")
    try:
        return load(path, **options)
    except Exception as error:
        raise FrontendError(f"TensorFlow cannot read '{path}': {_first_line(error)}") from error


def _signature(loaded: Any, description: str) -> tuple[Callable[..., Any], list[Spec]]:
    """The signature that servers call, or the only one."""
    found = dict(getattr(loaded, "signatures", {}))
    if not found:
        raise FrontendError(f"{description} has no signature; save it with one: model.export(path), or signatures=...")
    if "serving_default" not in found and len(found) > 1:
        raise FrontendError(
            f"{description} has several signatures ({', '.join(sorted(found))}) and no 'serving_default'; pass one:"
            " eyas.compile(tf.saved_model.load(path).signatures[name])"
        )
    function, specs = _concrete(found.get("serving_default") or next(iter(found.values())))
    return _keep_alive(function, loaded), specs


def _keep_alive(function: Callable[..., Any], owner: Any) -> Callable[..., Any]:
    """Variables die with the object that was loaded."""
    function.owner = owner  # type: ignore[attr-defined]
    return function


def _concrete(function: Any) -> tuple[Callable[..., Any], list[Spec]]:
    positional, keywords = function.structured_input_signature
    specs = [(f"arg{index}", one.shape, one.dtype) for index, one in enumerate(positional)]
    specs += [(name, one.shape, one.dtype) for name, one in keywords.items()]
    names = list(keywords)

    def call(*values: Any) -> Any:
        first, rest = values[: len(positional)], values[len(positional) :]
        return function(*first, **dict(zip(names, rest, strict=True)))

    return call, specs


def _keras(model: Any, description: str) -> tuple[Callable[..., Any], list[Spec] | None]:
    if not callable(model):
        raise FrontendError(f"cannot import a {type(model).__module__}.{type(model).__qualname__}")
    inputs = getattr(model, "inputs", None)
    if not inputs:
        return lambda *values: model(*values, training=False), None
    specs = [(one.name.partition(":")[0], one.shape, one.dtype) for one in inputs]
    return lambda *values: model(values[0] if len(values) == 1 else list(values), training=False), specs


def _fixed_specs(
    tf: Any, specs: Sequence[Spec], args: Sequence[Any], kwargs: Mapping[str, Any], description: str
) -> list[Any]:
    names = [name for name, *_ in specs]
    if len(args) > len(names) or set(kwargs) - set(names):
        raise UsageError(
            f"{description} takes {', '.join(names)}; got {len(args)} inputs and {', '.join(kwargs) or 'no'} names"
        )
    examples = {**dict(zip(names, args, strict=False)), **kwargs}
    fixed = []
    for name, shape, dtype in specs:
        example = examples.get(name)
        if example is not None:
            found = np.shape(example)
            declared = None if shape is None or _rank(shape) is None else list(shape)
            if declared is not None and (len(found) != len(declared) or _differs(found, declared)):
                raise UsageError(
                    f"input '{name}' of {description} has shape {tuple(declared)}; the example has {found}"
                )
            fixed.append(tf.TensorSpec(found, dtype or tf.as_dtype(np.asarray(example).dtype), name=None))
            continue
        sizes = list(shape) if shape is not None and _rank(shape) is not None else None
        if sizes is None or any(size is None for size in sizes):
            shown = "any rank" if sizes is None else f"shape {tuple(sizes)}"
            raise UsageError(
                f"input '{name}' of {description} has {shown}; give an example that fixes it: eyas.compile(model,"
                " (x,)), or --input 1x224x224x3xf32"
            )
        fixed.append(tf.TensorSpec(sizes, dtype))
    return fixed


def _rank(shape: Any) -> int | None:
    return shape.rank if hasattr(shape, "rank") else len(shape)


def _differs(found: Sequence[int], declared: Sequence[int | None]) -> bool:
    return any(size is not None and size != one for one, size in zip(found, declared, strict=True))


def _lower(
    tf: Any, function: Callable[..., Any], specs: list[Any], names: list[str], description: str
) -> ImportedProgram:
    try:
        compiled = tf.function(function, jit_compile=True, autograph=False)
        concrete = compiled.get_concrete_function(*specs)
        text = compiled.experimental_get_compiler_ir(*specs)(stage="stablehlo")
    except Exception as error:
        raise UnsupportedOpError(f"TensorFlow cannot write {description} as StableHLO: {_first_line(error)}") from error
    parameters = _parameters(concrete, description)
    module = parse_stablehlo(_COPY.sub(_as_reshape, text), description)
    with module.context:
        main = select_main(module, description)
        count, found = len(main.regions[0].blocks[0].arguments), signature_of(main).results
    if count != len(specs) + len(parameters):
        raise FrontendError(
            f"{description} takes {len(specs)} inputs and has {len(parameters)} variables, but its program has {count}"
            " arguments; one that writes to its variables is not supported"
        )
    early_text = keep_early_text(module)
    lower_stablehlo(module)
    bind_parameters(module, [one.name for one in parameters], first=len(specs))
    used = finish(module, {one.name: one for one in parameters})
    results = concrete.structured_outputs
    tree = _tree(results)
    call = trees.CallTree(trees.tuple_of([trees.LEAF] * len(names)), tuple(names), trees.Tree("dict"))
    arguments = tuple(_argument(name, one) for name, one in zip(names, specs, strict=True))
    # XLA knows the sizes that TensorFlow leaves open in its results.
    kinds = [short_name(one.dtype.name, "a result") for one in tf.nest.flatten(results)]
    names_of_results = zip(trees.result_names(tree), kinds, found, strict=True)
    returned = tuple(Argument(name, kind, one.dims) for name, kind, one in names_of_results)
    signature = Signature(arguments, returned, {})
    return ImportedProgram(module, used, signature, call, tree, Source("tensorflow", description), early_text)


def _as_reshape(copy: re.Match[str]) -> str:
    value, type_ = copy.groups()
    return f"stablehlo.reshape {value} : ({type_}) -> {type_}"


def _parameters(concrete: Any, description: str) -> list[Parameter]:
    """What the function captures, in the order of the program's last arguments."""
    by_handle = {id(variable.handle): variable for variable in concrete.variables}
    found = []
    for index, captured in enumerate(concrete.captured_inputs):
        if captured.dtype.name != "resource":
            value, label = captured, "constant"
        elif id(captured) in by_handle:
            value = by_handle[id(captured)]
            label = value.name.partition(":")[0]
        else:
            raise UnsupportedOpError(f"{description} uses a table or another resource that is no variable")
        dtype = short_name(value.dtype.name, f"variable '{label}'")
        found.append(Parameter(f"{label}_{index}", dtype, tuple(value.shape), lambda value=value: value.numpy()))
    return found


def _argument(name: str, spec: Any) -> Argument:
    return Argument(name, short_name(spec.dtype.name, f"'{name}'"), tuple(spec.shape))


def _tree(results: Any) -> trees.Tree:
    """Our tree of results; dictionaries are in the order of their keys, as TensorFlow flattens them."""
    if isinstance(results, Mapping):
        keys = sorted(results)
        return trees.Tree("dict", tuple(_tree(results[key]) for key in keys), tuple(keys))
    if isinstance(results, (tuple, list)):
        kind = "list" if isinstance(results, list) else "tuple"
        return trees.Tree(kind, tuple(_tree(one) for one in results))
    return trees.LEAF


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)[:300]
