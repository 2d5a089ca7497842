"""TFLite: a path of a `.tflite` file. Each of its signatures is an entry point; one is `main`.

Sizes that a file leaves open are those of its example shape, as in LiteRT, unless example inputs or `dynamic_shapes`
say otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import onnx
from onnx import helper

from eyas.errors import FrontendError, UsageError
from eyas.frontends.onnx import importer as onnx_importer
from eyas.frontends.onnx import prepare
from eyas.frontends.onnx.file import OnnxModel
from eyas.frontends.states import carry_state
from eyas.frontends.tensorflow.graph import Graph
from eyas.frontends.tflite.file import SignatureRecord, TensorRecord, TfliteFile, open_file
from eyas.frontends.tflite.translate import Translation
from eyas.frontends.tflite.variables import Variables
from eyas.program.program import ImportedProgram, Source


def import_model(model: Any, args: Sequence[Any], kwargs: Mapping[str, Any], dynamic_shapes: Any) -> ImportedProgram:
    """Imports and lowers a TFLite file."""
    if not isinstance(model, (str, os.PathLike)):
        raise FrontendError(f"TFLite models arrive as a path, not as {type(model).__qualname__}")
    if dynamic_shapes is not None and not isinstance(dynamic_shapes, Mapping):
        raise UsageError("dynamic_shapes of a TFLite model maps input names to shapes")
    file = open_file(model)
    signatures = _entry_points(file)
    if len(signatures) == 1:
        return _import_signature(file, signatures[0], args, kwargs, dynamic_shapes or {})
    if args or kwargs or dynamic_shapes:
        names = ", ".join(one.key for one in signatures)
        raise UsageError(f"{file.description} has several entry points ({names}), which have shapes of their own")
    from eyas.frontends.entries import merge

    return merge({_identifier(one.key): _import_signature(file, one, (), {}, {}) for one in signatures})


def to_onnx(
    file: TfliteFile,
    signature: SignatureRecord,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    shapes: Mapping[str, Any] | None = None,
) -> tuple[OnnxModel, Variables]:
    """The ONNX model of one entry point; its variables are the last arguments and results."""
    g = Graph(file.description)
    graph = file.subgraphs[signature.subgraph]
    named = {index: name for name, index in signature.inputs.items()}
    names = [named.get(index) or graph.tensors[index].name or f"input_{index}" for index in graph.inputs]
    records = [(name, graph.tensors[index]) for name, index in zip(names, graph.inputs, strict=True)]
    dims = _input_dims(file.description, records, shapes or {}, args, kwargs or {})
    given = [g.input(name, record.dtype, size) for (name, record), size in zip(records, dims, strict=True)]
    variables = Variables()
    found = Translation(file, g, variables).run(signature.subgraph, given)
    results = {index: name for name, index in signature.outputs.items()}
    names = [results.get(index) or graph.tensors[index].name or f"output_{index}" for index in graph.outputs]
    outputs = list(zip(names, found, strict=True))
    return g.model([*outputs, *((f"{name}:next", variables.now[name]) for name in variables.arguments)]), variables


def _import_signature(file: TfliteFile, signature: SignatureRecord, *given: Any) -> ImportedProgram:
    model, variables = to_onnx(file, signature, *given)
    program = onnx_importer.import_model(model, (), {}, None)
    program = replace(program, source=Source("tflite", file.description))
    if not variables.arguments:
        return program
    inputs = len(file.subgraphs[signature.subgraph].inputs)
    # Arguments of variables were opened while the graph was walked, after the inputs and in the order of the results.
    results = len(program.signature.results) - len(variables.arguments)
    carry = {inputs + i: results + i for i in range(len(variables.arguments))}
    examples = [None] * inputs + [variables.first[name] for name in variables.arguments]
    return carry_state(program, carry, examples)


def _entry_points(file: TfliteFile) -> list[SignatureRecord]:
    """The signatures, or the first graph where a file has none. Two of the same graph are one."""
    found: dict[int, SignatureRecord] = {}
    for one in file.signatures:
        found.setdefault(one.subgraph, one)
    return list(found.values()) or [SignatureRecord("main", 0, {}, {})]


def _identifier(key: str) -> str:
    name = "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in key).strip("_")
    return name if name.isidentifier() else f"entry_{name}"


def _input_dims(
    description: str,
    records: Sequence[tuple[str, TensorRecord]],
    shapes: Mapping[str, Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> list[tuple[int | str, ...]]:
    """Sizes of the inputs: what the caller says of open ones, else what the file has as an example."""
    proto = onnx.ModelProto()
    for name, record in records:
        dims = [size if size >= 0 else f"{name}_dim{i}" for i, size in enumerate(record.signature)]
        type_ = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(record.dtype), dims)
        proto.graph.input.append(helper.make_value_info(name, type_))
    model = OnnxModel(proto, description)
    prepare.set_shapes(model, shapes, prepare.example_inputs(model, args, kwargs))
    found = []
    for (name, record), value in zip(records, model.proto.graph.input, strict=True):
        sizes = prepare.dims_of(value)
        own = [f"{name}_dim{i}" for i in range(len(sizes))]
        found.append(
            tuple(s if size == o and s > 0 else size for size, o, s in zip(sizes, own, record.shape, strict=True))
        )
    return found
