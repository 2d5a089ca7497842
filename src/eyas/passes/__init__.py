"""Eyas's own passes, by phase. One pass a file; this table maps its name to the file that has it.

Names are looked up lazily, so that listing passes imports none of them.
"""

from __future__ import annotations

import importlib

from eyas.ir.passes import Pass

# name -> module under eyas.passes; the class is the name in CamelCase.
PASSES: dict[str, str] = {
    "check-shapes": "dispatch.check_shapes",
    "compile-executables": "codegen.compile_executables",
    "convert-conv-layout": "optimize.convert_conv_layout",
    "convert-flow-to-stream": "schedule.convert_flow_to_stream",
    "convert-hal-to-vm": "vm.convert_hal_to_vm",
    "convert-reshapes-to-flow": "dispatch.convert_reshapes_to_flow",
    "convert-stream-to-hal": "hal.convert_stream_to_hal",
    "deduplicate-executables": "dispatch.deduplicate_executables",
    "evaluate-constants": "optimize.evaluate_constants",
    "compose-copies": "optimize.compose_copies",
    "fold-scales": "optimize.fold_scales",
    "fuse-attention": "optimize.fuse_attention",
    "fuse-gathers": "optimize.fuse_gathers",
    "expand-bfloats": "codegen.expand_bfloats",
    "expand-math": "codegen.expand_math",
    "fold-index-ranges": "dispatch.fold_index_ranges",
    "convert-float-sizes": "dispatch.convert_float_sizes",
    "form-dispatches": "dispatch.form_dispatches",
    "guard-conversions": "codegen.guard_conversions",
    "guard-division": "codegen.guard_division",
    "guard-powers": "codegen.guard_powers",
    "guard-shifts": "codegen.guard_shifts",
    "insert-barriers": "schedule.insert_barriers",
    "outline-dispatches": "dispatch.outline_dispatches",
    "pack-weights": "hal.pack_weights",
    "plan-memory": "schedule.plan_memory",
    "propagate-reshapes": "optimize.propagate_reshapes",
    "propagate-transposes": "optimize.propagate_transposes",
    "quantize-contractions": "optimize.quantize_contractions",
    "reuse-in-place": "schedule.reuse_in_place",
    "unify-dimensions": "dispatch.unify_dimensions",
    "select-strategies": "hal.select_strategies",
    "tie-shapes": "dispatch.tie_shapes",
    "convert-dynamic-views": "input.convert_dynamic_views",
    "convert-row-updates": "input.convert_row_updates",
    "convert-checks": "input.convert_checks",
    "convert-products": "input.convert_products",
    "convert-torch-control-flow": "input.convert_torch_control_flow",
    "convert-type-operators": "input.convert_type_operators",
    "convert-stablehlo-complex-constants": "input.convert_stablehlo_complex_constants",
    "convert-stablehlo-composites": "input.convert_stablehlo_composites",
    "convert-stablehlo-control-flow": "input.convert_stablehlo_control_flow",
    "convert-stablehlo-convolution": "input.convert_stablehlo_convolution",
    "convert-stablehlo-shapes": "input.convert_stablehlo_shapes",
    "convert-stablehlo-degenerate": "input.convert_stablehlo_degenerate",
    "convert-stablehlo-fft": "input.convert_stablehlo_fft",
    "convert-stablehlo-gather": "input.convert_stablehlo_gather",
    "convert-stablehlo-householder": "input.convert_stablehlo_householder",
    "convert-stablehlo-linear-algebra": "input.convert_stablehlo_linear_algebra",
    "convert-stablehlo-scatter": "input.convert_stablehlo_scatter",
    "convert-stablehlo-select-and-scatter": "input.convert_stablehlo_select_and_scatter",
    "convert-stablehlo-sort": "input.convert_stablehlo_sort",
    "convert-stablehlo-windows": "input.convert_stablehlo_windows",
    "drop-asserts": "input.drop_asserts",
    "drop-unused-results": "input.drop_unused_results",
    "externalize-parameters": "input.externalize_parameters",
    "hold-small-types": "input.hold_small_types",
    "narrow-contractions": "optimize.narrow_contractions",
    "fold-size-casts": "input.fold_size_casts",
    "hoist-sizes": "input.hoist_sizes",
    "narrow-scalars": "input.narrow_scalars",
    "order-nans": "input.order_nans",
    "trim-windows": "optimize.trim_windows",
    "verify-input-contract": "input.verify_input_contract",
    "winograd": "optimize.winograd",
    "widen-accumulators": "optimize.widen_accumulators",
    "wrap-scalars": "input.wrap_scalars",
    "write-state-in-place": "schedule.write_state_in_place",
}


def lookup(name: str) -> type[Pass] | None:
    """The pass class with this kebab-case name, or None when the name is not one of ours."""
    if name not in PASSES:
        return None
    module = importlib.import_module(f"eyas.passes.{PASSES[name]}")
    return getattr(module, "".join(part.capitalize() for part in name.split("-")))
