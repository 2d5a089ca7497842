"""PyTorch: an `nn.Module` with example inputs, an `ExportedProgram`, or a saved `.pt2` file.

The program is what `torch.export` sees, so a module is compiled in the mode it is in: call `model.eval()` first unless
dropout and batch statistics are wanted. Weights stay where torch has them; the IR holds their names. Buffers that the
model writes to become state of the compiled module.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch._ops import HigherOrderOperator
from torch.export.graph_signature import ConstantArgument, SymBoolArgument, SymFloatArgument, SymIntArgument
from torch_mlir.extras.fx_importer import TORCH_DTYPE_TO_MLIR_TYPE_ASM, FxImporter

from eyas.errors import FrontendError, UnsupportedOpError
from eyas.frontends.contract import finish, keep_early_text, lower, prepare_context
from eyas.frontends.states import bind_states
from eyas.frontends.torch.at_zero import cancel_factors, exclude_zeros
from eyas.frontends.torch.complex import split_complex
from eyas.frontends.torch.decompositions import decompose, decomposition_table
from eyas.frontends.torch.effects import drop_tokens
from eyas.frontends.torch.exported import export_model, first_line
from eyas.frontends.torch.fallback import MOST_RETRIES, with_fallback
from eyas.frontends.torch.fold import fold_constants
from eyas.frontends.torch.leaves import prepare_leaves
from eyas.frontends.torch.nothing import drop_empty
from eyas.frontends.torch.numbers import prepare_numbers
from eyas.frontends.torch.open_sizes.missing import own_shapes
from eyas.frontends.torch.refusals import failed_node, in_user_terms, refuse, where
from eyas.frontends.torch.results import return_tensors
from eyas.frontends.torch.signature import call_trees, make_signature
from eyas.frontends.torch.sizes import keep_sizes
from eyas.frontends.torch.states import expose_mutations
from eyas.frontends.torch.views import drop_vain_checks, views_may_copy
from eyas.frontends.torch.weights import LiteralImporter, Locations, Weights
from eyas.ir import PassPipeline
from eyas.ir.locations import describe_location
from eyas.passes.input.convert_checks import ConvertChecks
from eyas.passes.input.convert_dynamic_views import ConvertDynamicViews
from eyas.passes.input.convert_linear_algebra import ConvertLinearAlgebra
from eyas.passes.input.convert_random import ConvertRandom
from eyas.passes.input.convert_recurrences import ConvertRecurrences
from eyas.passes.input.convert_row_updates import ConvertRowUpdates
from eyas.passes.input.convert_torch_control_flow import ConvertTorchControlFlow
from eyas.passes.input.convert_type_operators import ConvertTypeOperators
from eyas.passes.input.hide_constants import HideConstants
from eyas.passes.input.hold_small_types import HoldSmallTypes
from eyas.passes.input.match_scalars import MatchScalars
from eyas.passes.input.order_nans import OrderNans
from eyas.passes.input.place_maxima import PlaceMaxima
from eyas.program.program import EntryPoint, ImportedProgram, Source

TO_TORCH_BACKEND = (
    "func.func(torch-match-quantized-custom-ops),torchdynamo-export-to-torch-backend-pipeline{ extra-library=}"
)
TO_LINALG = "torch-backend-to-linalg-on-tensors-backend-pipeline{allow-non-finites=true}"

# Upstream takes no operators that it does not know, such as ours, and no comparisons of constants of another kind.
BEFORE = (
    ConvertTypeOperators(),
    ConvertLinearAlgebra(),
    ConvertRecurrences(),
    ConvertChecks(),
    ConvertRandom(),
    MatchScalars(),
    HideConstants(),
)
# Between the two: what upstream's lowering to linalg does wrong, or does not know.
BETWEEN = (ConvertRowUpdates(), ConvertDynamicViews(), ConvertTorchControlFlow())


def import_model(
    model: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    dynamic_shapes: Any,
    states: frozenset[str] = frozenset(),
) -> ImportedProgram:
    """Exports, decomposes, imports and lowers a PyTorch model. `states` names buffers and parameters that other
    programs change."""
    return import_exported(*export_model(model, args, kwargs, dynamic_shapes), states)


def import_exported(
    exported: torch.export.ExportedProgram,
    description: str,
    argument_names: tuple[str, ...] | None = None,
    dynamic_shapes: Any = None,
    training: bool = False,
    states: frozenset[str] = frozenset(),
) -> ImportedProgram:
    """Imports what `torch.export` made. `argument_names` are the forward function's, when it is known. Where an op has
    no lowering, torch's own decomposition of it is tried."""
    table = decomposition_table()
    for retry in itertools.count():
        try:
            return _import_exported(exported, description, argument_names, dynamic_shapes, training, states, table)
        except _FailedAt as failure:
            wider = with_fallback(table, getattr(failure.node, "target", None))
            if wider is None or retry == MOST_RETRIES:
                raise in_user_terms(failure.error, failure.node) from failure.error.__cause__
            table = wider
    raise AssertionError("not reached")


class _FailedAt(Exception):
    """A lowering failed, at a node of the decomposed program if that is known."""

    def __init__(self, error: FrontendError, node: torch.fx.Node | None) -> None:
        super().__init__(str(error))
        self.error, self.node = error, node


def _import_exported(
    exported: torch.export.ExportedProgram,
    description: str,
    argument_names: tuple[str, ...] | None,
    dynamic_shapes: Any,
    training: bool,
    states: frozenset[str],
    table: Mapping[Any, Callable[..., Any]],
) -> ImportedProgram:
    with warnings.catch_warnings(), torch.no_grad(), keep_sizes(exported):
        warnings.simplefilter("ignore")
        try:
            with views_may_copy(exported), own_shapes():
                program = decompose(exported, table)
            drop_tokens(program)
            drop_vain_checks(program)
            exclude_zeros(program, exported)
        except Exception as error:
            raise FrontendError(f"torch could not decompose {description}: {first_line(error)}") from error
        split_complex(program, dict(table))
        drop_empty(program)
        cancel_factors(program)
        prepare_numbers(program)
        prepare_leaves(program)
    in_tree, out_tree = call_trees(program, argument_names)
    return_tensors(program)
    _drop_constant_outputs(program)
    signature = make_signature(program, in_tree, out_tree, dynamic_shapes)
    mutations = expose_mutations(program, signature.arguments, states)
    fold_constants(program)
    signature = replace(signature, results=(*signature.results, *mutations.results))

    context = prepare_context()
    weights = Weights(program)
    importer = FxImporter(context=context, hooks=weights, graph_node_importer_cls=LiteralImporter)
    importer._cc = locations = Locations(context, py_attr_tracker=importer._py_attr_tracker)
    _check_nodes(program, locations)
    with context:
        try:
            importer.import_program(program, func_name="main")
        except (NotImplementedError, TypeError, ValueError, KeyError, AssertionError, RuntimeError) as error:
            raise _import_error(program, locations.latest, description, first_line(error)) from error
    module = importer.module
    early_text = keep_early_text(module)
    try:
        PassPipeline(BEFORE).run(module)
        lower(module, TO_TORCH_BACKEND)
        PassPipeline(BETWEEN).run(module)
        lower(module, TO_LINALG)
    except FrontendError as error:
        raise _FailedAt(error, failed_node(program, error)) from error
    # torch rounds to this type in a way of its own.
    PassPipeline((OrderNans(), PlaceMaxima(), HoldSmallTypes(saturate="f8e4m3fn"))).run(module)
    hint = "; the model is in training mode: call model.eval() first" if training else ""
    parameters = finish(module, weights.parameters, hint)
    if mutations.reads or mutations.writes:
        bind_states(module, mutations.reads, mutations.writes)
    entry = EntryPoint(signature, in_tree, out_tree, mutations.mutates)
    return ImportedProgram(
        module,
        {**parameters, **mutations.initial},
        *(signature, in_tree, out_tree),
        Source("pytorch", description),
        early_text,
        entries={"main": entry},
    )


def _import_error(
    program: torch.export.ExportedProgram, node: torch.fx.Node | None, description: str, reason: str
) -> UnsupportedOpError:
    """Of the node that was imported, or of one that the reason names where nothing was imported yet."""
    if node is None:
        node = next((one for one in program.graph.nodes if reason.startswith(f"{one.target} ")), None)
    if node is None or node.op != "call_function":
        return UnsupportedOpError(f"{description} cannot be imported: {reason}")
    return refuse(node, where(node), reason)


def _check_nodes(program: torch.export.ExportedProgram, locations: Locations) -> None:
    """What the importer would fail on without saying where: operators with bodies, and types it does not know."""
    for node in program.graph.nodes:
        location = locations.get_node_location(node)
        place = f"at {describe_location(location)}" if location else f"at input '{node.name}'"
        if isinstance(node.target, HigherOrderOperator):
            name = node.target.name()
            if not hasattr(LiteralImporter, f"_import_hop_{name}"):
                raise refuse(node, place, "the importer has no rule for it")
        values = node.meta.get("val")
        for value in values if isinstance(values, (tuple, list)) else [values]:
            if isinstance(value, torch.Tensor) and value.dtype not in TORCH_DTYPE_TO_MLIR_TYPE_ASM:
                raise refuse(node, place, f"elements of type {value.dtype}")
    locations.latest = None


def _drop_constant_outputs(program: torch.export.ExportedProgram) -> None:
    """Results such as None or 3 are part of the result's tree; the function returns tensors and numbers only. The
    importer knows numbers of one kind, and looks at what they are."""
    specs = program.graph_signature.output_specs
    specs[:] = [spec for spec in specs if not isinstance(spec.arg, ConstantArgument)]
    for spec in specs:
        if isinstance(spec.arg, (SymBoolArgument, SymFloatArgument)):
            spec.arg = SymIntArgument(spec.arg.name)
