"""From what a kernel may say to what SPIR-V can: the same results on every device."""

from __future__ import annotations

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

from eyas.codegen.common.passes.expand_bfloats import keep_roundings
from eyas.codegen.common.passes.expand_exact import ExpandExact
from eyas.codegen.common.passes.expand_math import ExpandMath
from eyas.codegen.common.passes.guard_conversions import GuardConversions
from eyas.codegen.common.passes.guard_division import GuardDivision
from eyas.codegen.common.passes.guard_powers import GuardPowers
from eyas.codegen.common.passes.guard_shifts import GuardShifts
from eyas.codegen.spirv.complex_pairs import split_complex_numbers
from eyas.codegen.spirv.fit import check_types, has_halves
from eyas.codegen.spirv.narrow_comparisons import narrow_comparisons
from eyas.codegen.spirv.narrow_floats import hold_as_integers, split_conversions
from eyas.codegen.spirv.quotients import round_quotients
from eyas.codegen.spirv.rotate_whiles import rotate_whiles
from eyas.codegen.spirv.shared_roundings import round_what_is_stored
from eyas.ir import run_upstream
from eyas.ir.walk import find_ops
from eyas.targets.gpu import GpuTarget


def legalize(module: mlir.Module, target: GpuTarget) -> None:
    """Guards undefined results, expands functions, and rounds narrow floats after each op."""
    check_types(module, target)
    split_complex_numbers(module)
    for guard in (GuardDivision(), GuardPowers(), GuardShifts(), GuardConversions()):
        guard.run(module)
    round_quotients(module)  # before functions are expanded, whose formulas have divisions of their own
    # Vulkan asks 3 ULP and more of `exp` and `log`, and an absolute error of `sin`. Its `fma` may round twice: formulas
    # must not count on it.
    ExpandMath(fma=False, libm=False).run(module)
    ExpandExact().run(module)
    run_upstream(module, "math-extend-to-supported-types{target-type=f32}")
    run_upstream(module, "arith-emulate-unsupported-floats{source-types=bf16,f16 target-type=f32}")
    keep_roundings(module)
    halves = not has_halves(target)
    split_conversions(module, halves)
    round_what_is_stored(module)
    run_upstream(module, "arith-expand{include-bf16=true}")
    hold_as_integers(module, halves)
    narrow_comparisons(module)
    _widen_flags(module)
    rotate_whiles(module)
    run_upstream(module, "cse,canonicalize{top-down=false},cse")


def _widen_flags(module: mlir.Module) -> None:
    """A truth is no integer in SPIR-V; it becomes an index through one of 32 bits."""
    i1, i32 = (mlir.IntegerType.get_signless(bits, module.context) for bits in (1, 32))
    for op in find_ops(module, "arith.index_cast", "arith.index_castui"):
        flag = op.operands[0]
        if flag.type == i1:
            widen = arith.extsi if op.operation.name == "arith.index_cast" else arith.extui
            with mlir.InsertionPoint(op), op.operation.location:
                made = arith.index_cast(op.results[0].type, widen(i32, flag))
            op.results[0].replace_all_uses_with(made)
            op.operation.erase()
