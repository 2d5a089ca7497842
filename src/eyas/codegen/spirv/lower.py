"""`lower_to_spirv`: a kernel of the GPU code generator becomes a SPIR-V module."""

from __future__ import annotations

from dataclasses import dataclass

from torch_mlir import ir as mlir

from eyas.codegen.common.sizes import Size
from eyas.codegen.spirv.conversion import convert, serialize
from eyas.codegen.spirv.decorate import decorate, mark_contractions
from eyas.codegen.spirv.environment import target_environment
from eyas.codegen.spirv.fit import fit_to_target
from eyas.codegen.spirv.interface import bind_arguments
from eyas.codegen.spirv.legalize import legalize
from eyas.codegen.spirv.matrices import hold_brain_floats
from eyas.codegen.spirv.needs import Uses, needs_of, settle_triple
from eyas.ir.diagnostics import raise_as_compile_error
from eyas.ir.walk import find_ops
from eyas.targets.gpu import GpuTarget


@dataclass(frozen=True)
class SpirvCode:
    """A SPIR-V module with one entry point, `main`, and what a device must have to run it."""

    code: bytes
    needs: tuple[str, ...]
    local_size: tuple[int, int, int]
    """Threads of a workgroup."""
    subgroup: int
    """The size of subgroups that the kernel counts on; 0: any."""
    reports_errors: bool
    """Whether it has an error word, and the error's tag as its last word."""
    constants_in_buffer: bool
    """Whether words are too many for push constants and lie in a buffer of their own."""
    scratch: tuple[Size, ...]
    """The sum of these is how many bytes of scratch memory a dispatch is given."""


def lower_to_spirv(module: mlir.Module, target: GpuTarget) -> SpirvCode:
    """Lowers the one kernel of a module, which is used up. Raises CompileError for an op that SPIR-V has nothing for,
    and TargetError for a type that the target has not."""
    try:
        with module.context, mlir.Location.unknown():
            return _lowered(module, target)
    except mlir.MLIRError as error:
        raise_as_compile_error(error, "lowering to SPIR-V")
        raise


def _lowered(module: mlir.Module, target: GpuTarget) -> SpirvCode:
    (kernel,) = find_ops(module, "gpu.func")
    legalize(module, target)
    uses = Uses.of(kernel)
    interface = bind_arguments(kernel, target)
    fit_to_target(module, target)
    mark_contractions(module)
    made = convert(module, target_environment(target, bool(uses.matrices)))
    if uses.brain_floats:
        hold_brain_floats(made)
    float_controls = target.has("float-controls")
    decorate(made, interface, float_controls)
    capabilities = settle_triple(made, uses, float_controls)
    return SpirvCode(
        code=serialize(module, made),
        needs=needs_of(uses, interface, capabilities, target.subgroup),
        local_size=uses.local_size,
        subgroup=target.subgroup if uses.in_subgroups else 0,
        reports_errors=any(buffer.role == "error" for buffer in interface.buffers),
        constants_in_buffer=interface.words_in_buffer,
        scratch=interface.scratch,
    )
