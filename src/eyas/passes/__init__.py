"""Eyas's own passes, by phase. One pass a file; this table maps its name to the file that has it.

Names are looked up lazily, so that listing passes imports none of them.
"""

from __future__ import annotations

import importlib

from eyas.ir.passes import Pass, PassPipeline

# name -> module under eyas; the class is the name in CamelCase.
PASSES: dict[str, str] = {
    "apply-tuning-spec": "passes.schedule.apply_tuning_spec",
    "check-nested-shapes": "passes.dispatch.check_nested_shapes",
    "check-shapes": "passes.dispatch.check_shapes",
    "compile-executables": "passes.codegen.compile_executables",
    "convert-conv-layout": "passes.optimize.convert_conv_layout",
    "convert-flow-to-stream": "passes.schedule.convert_flow_to_stream",
    "convert-hal-to-vm": "passes.vm.convert_hal_to_vm",
    "convert-reshapes-to-flow": "passes.dispatch.convert_reshapes_to_flow",
    "convert-stream-to-hal": "passes.hal.convert_stream_to_hal",
    "deduplicate-executables": "passes.dispatch.deduplicate_executables",
    "evaluate-constants": "passes.optimize.evaluate_constants",
    "compose-copies": "passes.optimize.compose_copies",
    "fold-scales": "passes.optimize.fold_scales",
    "fuse-attention": "passes.optimize.fuse_attention",
    "fuse-gathers": "passes.optimize.fuse_gathers",
    "expand-bfloats": "codegen.common.passes.expand_bfloats",
    "expand-exact": "codegen.common.passes.expand_exact",
    "expand-math": "codegen.common.passes.expand_math",
    "fold-index-ranges": "passes.dispatch.fold_index_ranges",
    "convert-float-sizes": "passes.dispatch.convert_float_sizes",
    "form-dispatches": "passes.dispatch.form_dispatches",
    "guard-conversions": "codegen.common.passes.guard_conversions",
    "guard-division": "codegen.common.passes.guard_division",
    "guard-powers": "codegen.common.passes.guard_powers",
    "guard-shifts": "codegen.common.passes.guard_shifts",
    "insert-barriers": "passes.schedule.insert_barriers",
    "speculate-branches": "passes.optimize.speculate_branches",
    "batch-loops": "passes.optimize.batch_loops",
    "count-loops": "passes.optimize.count_loops",
    "outline-control-flow": "passes.optimize.outline_control_flow",
    "outline-dispatches": "passes.dispatch.outline_dispatches",
    "note-alignment": "passes.hal.note_alignment",
    "note-work": "passes.codegen.note_work",
    "pack-bindings": "passes.dispatch.pack_bindings",
    "pack-weights": "passes.hal.pack_weights",
    "plan-memory": "passes.schedule.plan_memory",
    "propagate-reshapes": "passes.optimize.propagate_reshapes",
    "propagate-transposes": "passes.optimize.propagate_transposes",
    "quantize-contractions": "passes.optimize.quantize_contractions",
    "reuse-in-place": "passes.schedule.reuse_in_place",
    "verify-schedules": "passes.codegen.verify_schedules",
    "unify-dimensions": "passes.dispatch.unify_dimensions",
    "select-strategies": "passes.hal.select_strategies",
    "split-bindings": "passes.codegen.split_bindings",
    "split-concats": "passes.dispatch.split_concats",
    "tie-shapes": "passes.dispatch.tie_shapes",
    "convert-dynamic-views": "passes.input.convert_dynamic_views",
    "convert-sorts": "passes.optimize.convert_sorts",
    "convert-recurrences": "passes.input.convert_recurrences",
    "convert-rows": "passes.input.convert_rows",
    "convert-row-updates": "passes.input.convert_row_updates",
    "convert-checks": "passes.input.convert_checks",
    "convert-linear-algebra": "passes.input.convert_linear_algebra",
    "convert-random": "passes.input.convert_random",
    "convert-sizes": "passes.input.convert_sizes",
    "convert-products": "passes.input.convert_products",
    "convert-trees": "passes.input.convert_trees",
    "convert-torch-control-flow": "passes.input.convert_torch_control_flow",
    "convert-type-operators": "passes.input.convert_type_operators",
    "convert-stablehlo-complex-constants": "passes.input.convert_stablehlo_complex_constants",
    "convert-stablehlo-composites": "passes.input.convert_stablehlo_composites",
    "convert-stablehlo-control-flow": "passes.input.convert_stablehlo_control_flow",
    "convert-stablehlo-convolution": "passes.input.convert_stablehlo_convolution",
    "convert-stablehlo-shapes": "passes.input.convert_stablehlo_shapes",
    "convert-stablehlo-degenerate": "passes.input.convert_stablehlo_degenerate",
    "convert-stablehlo-fft": "passes.input.convert_stablehlo_fft",
    "convert-stablehlo-gather": "passes.input.convert_stablehlo_gather",
    "convert-stablehlo-linear-algebra": "passes.input.convert_stablehlo_linear_algebra",
    "convert-stablehlo-scatter": "passes.input.convert_stablehlo_scatter",
    "convert-stablehlo-select-and-scatter": "passes.input.convert_stablehlo_select_and_scatter",
    "convert-stablehlo-sort": "passes.input.convert_stablehlo_sort",
    "convert-stablehlo-windows": "passes.input.convert_stablehlo_windows",
    "drop-asserts": "passes.input.drop_asserts",
    "drop-unused-results": "passes.input.drop_unused_results",
    "externalize-parameters": "passes.input.externalize_parameters",
    "hold-small-types": "passes.input.hold_small_types",
    "lower-precision": "passes.optimize.lower_precision",
    "narrow-contractions": "passes.optimize.narrow_contractions",
    "fold-size-casts": "passes.input.fold_size_casts",
    "hide-constants": "passes.input.hide_constants",
    "hoist-sizes": "passes.input.hoist_sizes",
    "match-scalars": "passes.input.match_scalars",
    "narrow-scalars": "passes.input.narrow_scalars",
    "order-nans": "passes.input.order_nans",
    "place-maxima": "passes.input.place_maxima",
    "skip-inserted-zeros": "passes.optimize.skip_inserted_zeros",
    "split-reductions": "passes.optimize.split_reductions",
    "trim-windows": "passes.optimize.trim_windows",
    "verify-input-contract": "passes.input.verify_input_contract",
    "winograd": "passes.optimize.winograd",
    "widen-accumulators": "passes.optimize.widen_accumulators",
    "wrap-scalars": "passes.input.wrap_scalars",
    "write-state-in-place": "passes.schedule.write_state_in_place",
}


def phase_of(name: str) -> str:
    """The phase in which one of our passes runs."""
    return PASSES[name].removeprefix("passes.").partition(".")[0]


def lookup(name: str) -> type[Pass] | None:
    """The pass class with this kebab-case name, or None when the name is not one of ours."""
    if name not in PASSES:
        return None
    module = importlib.import_module(f"eyas.{PASSES[name]}")
    return getattr(module, "".join(part.capitalize() for part in name.split("-")))


def parse_pipeline(text: str) -> PassPipeline:
    """Reads a list of passes, ours and upstream's: `tie-shapes,form-dispatches{max-ops=8},cse`."""
    return PassPipeline.parse(text, lookup)
