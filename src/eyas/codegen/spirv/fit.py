"""From all types that a kernel may use to those that its target has."""

from __future__ import annotations

from torch_mlir import ir as mlir

from eyas.codegen.common.passes.lanes import element_type
from eyas.codegen.spirv.narrow_integers import compute_in_words
from eyas.codegen.spirv.narrow_memory import keep_in_words, split_vectors
from eyas.codegen.spirv.wide_integers import compute_in_pairs
from eyas.errors import TargetError
from eyas.ir import run_upstream
from eyas.targets.gpu import GpuTarget


def has_halves(target: GpuTarget) -> bool:
    """Whether f16 is a type of the target, in registers and in memory."""
    return all(map(target.has, ("f16", "i16", "storage16")))


def check_types(module: mlir.Module, target: GpuTarget) -> None:
    """Double precision has no other form: raises TargetError where the target has none."""
    if target.has("f64"):
        return

    found = False

    def visit(op: mlir.Operation) -> mlir.WalkResult:
        nonlocal found
        found = found or any(isinstance(element_type(value.type), mlir.F64Type) for value in op.results)
        return mlir.WalkResult.INTERRUPT if found else mlir.WalkResult.ADVANCE

    module.operation.walk(visit)
    if found:
        raise TargetError(
            f"target '{target}' has no double precision (f64), which the program uses;"
            " convert it to f32, or compile for a target that has f64"
        )


def fit_to_target(module: mlir.Module, target: GpuTarget) -> None:
    """Integers that the target has not become some that it has."""
    lacking = [bits for bits in (8, 16) if not (target.has(f"i{bits}") and target.has(f"storage{bits}"))]
    if lacking:
        split_vectors(module, lacking)
        keep_in_words(module, lacking)
        compute_in_words(module, lacking)
    if not target.has("i64"):
        split_vectors(module, (64,))
        compute_in_pairs(module)
    if lacking or not target.has("i64"):
        run_upstream(module, "canonicalize,cse")
