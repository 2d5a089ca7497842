"""ONNX: a path or a ModelProto, with weights inside, in external files, or in Constant nodes.

The graph is tried as it is. When an operator has no lowering, it is replaced by the function body that the standard
gives for it, and then the model is raised to a newer opset; the error that is shown is the first one.
"""

from __future__ import annotations

import functools
import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from torch_mlir.extras import onnx_importer

from eyas.errors import FrontendError, UnsupportedOpError, UsageError
from eyas.frontends.contract import finish, keep_early_text, prepare_context
from eyas.frontends.onnx import foreign, prepare
from eyas.frontends.onnx.advice import advice
from eyas.frontends.onnx.apart import LoweringDied, lower_apart
from eyas.frontends.onnx.broadcasts import align_broadcasts
from eyas.frontends.onnx.ceiling import round_down
from eyas.frontends.onnx.file import OnnxModel, dtype_of, is_large, open_model
from eyas.frontends.onnx.lowering import lower_graph
from eyas.frontends.onnx.required import require_sizes
from eyas.frontends.onnx.rewrite.integer import use_integers
from eyas.frontends.onnx.rewrite.signs import keep_signs
from eyas.frontends.onnx.simplify import simplify
from eyas.frontends.onnx.subgraphs import all_nodes, subgraphs
from eyas.frontends.onnx.symbolic.labels import separate_labels
from eyas.frontends.onnx.symbolic.settle import compute_sizes, is_open
from eyas.frontends.onnx.types import hold_as_bytes
from eyas.frontends.onnx.unsigned import held, release
from eyas.ir import PassPipeline, mlir
from eyas.ir.walk import find_ops
from eyas.module.trees import CallTree, flat_results
from eyas.passes.input.convert_sizes import write_scalars
from eyas.passes.input.order_nans import OrderNans
from eyas.passes.input.place_maxima import PlaceMaxima
from eyas.program.literals import bits_of_bytes, by_name, by_value, literal
from eyas.program.parameters import Parameter
from eyas.program.program import Argument, ImportedProgram, Signature, Source

_ATTEMPTS = 6


def import_model(model: Any, args: Sequence[Any], kwargs: Mapping[str, Any], dynamic_shapes: Any) -> ImportedProgram:
    """Imports and lowers an ONNX model. Example inputs, when given, fix the shapes that the model leaves open."""
    if not isinstance(model, (str, os.PathLike, onnx.ModelProto, OnnxModel)):
        raise FrontendError(f"ONNX models arrive as a path or an onnx.ModelProto, not as {type(model).__qualname__}")
    if dynamic_shapes is not None and not isinstance(dynamic_shapes, Mapping):
        raise UsageError("dynamic_shapes of an ONNX model maps input names to shapes, or symbolic dimensions to sizes")
    source = model if isinstance(model, OnnxModel) else open_model(model)
    source.check_data()
    prepare.normalize(source)
    prepare.check_operators(source, foreign.is_known)
    prepare.modernize(source)
    separate_labels(source)
    prepare.set_shapes(source, dynamic_shapes or {}, prepare.example_inputs(source, args, kwargs))
    prepare.fix_implied(source)
    foreign.expand(source)
    round_down(source)
    align_broadcasts(source)
    require_sizes(source)

    expanded: set[str] = set()
    first_error: FrontendError | None = None
    for attempt in range(_ATTEMPTS):
        try:
            # A rewritten graph may hold forms that no exporter writes; they are lowered out of the process.
            module, weights, early_text = _lower(source, carefully=attempt > 0)
            parameters = finish(module, weights)
        except FrontendError as error:
            first_error = first_error or error
            blamed = _blamed_ops(source, error) - expanded
            expanded |= blamed
            if not prepare.expand_functions(source, blamed) and not prepare.raise_opset(source):
                break
            prepare.normalize(source)
        else:
            names = [value.name for value in prepare.real_inputs(source.proto)]
            results = [value.name for value in source.proto.graph.output]
            description = Source("onnx", source.description)
            trees = CallTree.flat(names), flat_results(results)
            return ImportedProgram(module, parameters, _signature(source), *trees, description, early_text)
    assert first_error is not None
    hint = advice(source, prepare.real_inputs(source.proto), str(first_error))
    if hint and isinstance(first_error, (FrontendError, UnsupportedOpError)):
        raise type(first_error)(f"{first_error}{hint}") from first_error
    raise first_error


def _lower(source: OnnxModel, carefully: bool) -> tuple[mlir.Module, Mapping[str, Parameter], Any]:
    prepare.infer_shapes(source)
    while use_integers(source):
        prepare.infer_shapes(source)
    if hold_as_bytes(source):
        prepare.infer_shapes(source)
    if keep_signs(source):
        prepare.infer_shapes(source)
    simplify(source)
    prepare.check_types(source)
    if is_open(source):
        source = compute_sizes(source)
    proto = source.proto
    proto.graph.name = "main"
    context = prepare_context()
    info = onnx_importer.ModelInfo(proto)
    module = info.create_module(context=context)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            values = _Values(context, source)
            importer = onnx_importer.NodeImporter.define_function(info.main_graph, module.operation, values)
            parameters = _import_weights(importer, module, source)
            importer.import_all()
            _name_operators(module)
            write_scalars(module)
        except (onnx_importer.OnnxImportError, UnboundLocalError, KeyError, TypeError, ValueError) as error:
            raise FrontendError(f"{source.description} cannot be imported: {str(error).splitlines()[0]}") from error
    if not module.operation.verify():
        raise FrontendError(f"{source.description} cannot be imported: the graph's types contradict each other")
    early_text = keep_early_text(module)
    risk = prepare.find_risk(source)
    try:
        if carefully or risk:
            module = lower_apart(module)
        else:
            lower_graph(module)
        release(module)
        PassPipeline((OrderNans(), PlaceMaxima())).run(module)
    except LoweringDied as error:
        what = risk or source.description
        raise UnsupportedOpError(f"{what} is not supported: {error}") from None
    except FrontendError as error:
        raise type(error)(_name_nodes(source, str(error))) from error
    return module, parameters, early_text


def _signature(source: OnnxModel) -> Signature:
    def data_type(value: onnx.ValueInfoProto) -> int:
        return source.true_types.get(value.name, value.type.tensor_type.elem_type)

    def describe(values: Sequence[onnx.ValueInfoProto]) -> tuple[Argument, ...]:
        return tuple(
            Argument(value.name, str(dtype_of(data_type(value))), tuple(prepare.dims_of(value))) for value in values
        )

    proto = source.proto
    arguments = describe(prepare.real_inputs(proto))
    symbols = {dim: (0, None) for argument in arguments for dim in argument.dims if isinstance(dim, str)}
    return Signature(arguments, describe(proto.graph.output), symbols)


def _blamed_ops(source: OnnxModel, error: FrontendError) -> set[str]:
    """The operators that an error names: by type, or by the node where it happened."""
    text = str(error)
    types = set(re.findall(r"\bonnx\.(\w+)", text))
    names = set(re.findall(r"node '([^']+)'", text))
    blamed = [node for node in all_nodes(source.proto.graph) if node.op_type in types or node.name in names]
    # A loop that has no lowering may owe that to any operator in its body.
    inside = {inner.op_type for node in blamed for graph in subgraphs(node) for inner in all_nodes(graph)}
    return types | {node.op_type for node in blamed} | inside


def _name_nodes(source: OnnxModel, message: str) -> str:
    """Adds operator, domain and opset to the nodes that a message names."""
    nodes = {node.name: node for node in source.proto.graph.node}

    def describe(match: re.Match[str]) -> str:
        node = nodes.get(match.group(1))
        return prepare.describe_node(node, source) if node else match.group()

    return re.sub(r"node '([^']+)'", describe, message)


def _name_operators(module: mlir.Module) -> None:
    """The importer calls every operator `onnx.*`, which upstream would refuse for ours: `EyasDecode`."""
    for op in find_ops(module, "torch.operator"):
        name = mlir.StringAttr(op.operation.attributes["name"]).value
        if name.startswith("onnx.Eyas"):
            renamed = mlir.StringAttr.get(f"eyas.{name.removeprefix('onnx.Eyas').lower()}", module.context)
            op.operation.attributes["name"] = renamed


_UNSIGNED = (onnx.TensorProto.UINT16, onnx.TensorProto.UINT32, onnx.TensorProto.UINT64)


class _Values(onnx_importer.ContextCache):
    """Gives the importer its tensors' values as attributes, whatever field of the proto they are in."""

    # The base class has slots; without a declaration here, instances get a __dict__ of their own.

    def __init__(self, context: mlir.Context, source: OnnxModel):
        super().__init__(context)
        self._source = source

    def tensor_proto_to_attr(self, tp: onnx.TensorProto) -> mlir.Attribute:
        with self._c:
            values = self._source.reader(tp)().reshape(tuple(tp.dims))
            return by_value(values, str(self.tensor_element_type(tp.data_type)))


def _bits(read: Callable[[], np.ndarray], wide: bool) -> np.ndarray:
    return read().astype(np.int32) if wide else bits_of_bytes(read())


def _import_weights(
    importer: onnx_importer.NodeImporter, module: mlir.Module, source: OnnxModel
) -> dict[str, Parameter]:
    """Binds large initializers to literals that hold their names, ahead of the importer, which would want values; and
    unsigned ones, which it gets wrong."""
    parameters: dict[str, Parameter] = {}
    graph, cache = importer._gi, importer._cc
    for name, tensor in list(graph.initializer_map.items()):
        is_bytes = tensor.data_type == onnx.TensorProto.UINT8
        is_unsigned = is_bytes or tensor.data_type in _UNSIGNED
        if not is_large(tensor) and not is_unsigned:
            continue
        shape, read = tuple(tensor.dims), source.reader(tensor)
        dtype, element_type = str(dtype_of(tensor.data_type)), str(cache.tensor_element_type(tensor.data_type))
        # Few bytes are held wide: that conversion is one, and stays where a table is a result of the model.
        wide = is_bytes and not is_large(tensor)
        if is_bytes:
            dtype, element_type = ("i32", "si32") if wide else ("i8", "si8")
            read = functools.partial(_bits, read, wide)
        with importer._c, mlir.InsertionPoint(importer._b), mlir.Location.name(name):
            parameters[name] = Parameter(name, dtype, shape, read)
            type_ = cache.tensor_proto_to_type(tensor)
            if is_unsigned and not wide:
                value = held(module.operation, name, shape, type_)
            else:
                value = literal(by_name(name, shape, element_type), type_)
        importer._nv_map[name] = value
        graph.value_info_map[name] = onnx.helper.make_tensor_value_info(name, tensor.data_type, shape)
        del graph.initializer_map[name]
    return parameters
