"""What a device must have to run a kernel: features by name, as a module's manifest lists them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from torch_mlir import ir as mlir

from eyas.codegen.common.passes.lanes import element_type
from eyas.codegen.gpu.interface import MATRIX_ELEMENT
from eyas.codegen.spirv.environment import FEATURE_OF, MATRIX_VERSION, VERSION
from eyas.codegen.spirv.interface import Interface
from eyas.ir.values import element_bytes
from eyas.ir.walk import find_ops

_OF_SUBGROUPS = ("gpu.shuffle", "gpu.subgroup_reduce", "gpu.lane_id", "gpu.subgroup_id", "gpu.num_subgroups")
_OF_MATRICES = "gpu.subgroup_mma_compute"


@dataclass(frozen=True)
class Uses:
    """What only the kernel says, before it is lowered."""

    local_size: tuple[int, int, int]
    """Threads of a workgroup."""
    shared_bytes: int
    """That they share."""
    in_subgroups: bool
    """Whether threads know of their subgroup, so that its size must be the one that the kernel was made for."""
    matrices: tuple[str, ...]
    """Shapes of matrix products, as features."""
    brain_floats: bool
    """Whether fragments that are f16 in the kernel are bf16."""

    @staticmethod
    def of(kernel: mlir.OpView) -> Uses:
        products = find_ops(kernel, _OF_MATRICES)
        attributes = kernel.attributes
        brain_floats = MATRIX_ELEMENT in attributes and str(attributes[MATRIX_ELEMENT]) == "bf16"
        x, y, z = mlir.DenseI32ArrayAttr(kernel.attributes["known_block_size"])
        return Uses(
            (x, y, z),
            sum(_bytes_of(op.results[0].type) for op in find_ops(kernel, "memref.alloc")),
            bool(products) or bool(find_ops(kernel, *_OF_SUBGROUPS)),
            tuple(sorted({_shape_of(op, brain_floats) for op in products})),
            brain_floats,
        )


def settle_triple(made: mlir.OpView, uses: Uses, float_controls: bool) -> tuple[str, ...]:
    """Writes down what upstream found the `spirv.module` to need, with the version that we test, and what it does not
    look for. Gives the capabilities."""
    triple = str(made.attributes["vce_triple"])
    match = re.fullmatch(r"#spirv\.vce<v[\d.]+, \[(.*)\], \[(.*)\]>", triple)
    assert match, triple
    capabilities, extensions = ([part for part in group.split(", ") if part] for group in match.groups())
    if uses.in_subgroups and "GroupNonUniform" not in capabilities:
        capabilities.append("GroupNonUniform")  # a thread's number in its subgroup, if nothing else
    if uses.brain_floats:
        capabilities += ["BFloat16TypeKHR", "BFloat16CooperativeMatrixKHR"]
        extensions.append("SPV_KHR_bfloat16")
    if float_controls:
        capabilities.append("SignedZeroInfNanPreserve")
        extensions.append("SPV_KHR_float_controls")
    version = MATRIX_VERSION if uses.matrices else VERSION
    lists = f"[{', '.join(capabilities)}], [{', '.join(extensions)}]"
    made.attributes["vce_triple"] = mlir.Attribute.parse(f"#spirv.vce<v{version}, {lists}>", made.context)
    return tuple(capabilities)


def needs_of(uses: Uses, interface: Interface, capabilities: tuple[str, ...], subgroup: int) -> tuple[str, ...]:
    """Sorted features; those with a number say at least how much, or for a subgroup exactly."""
    needs = {FEATURE_OF[capability] for capability in capabilities if capability in FEATURE_OF}
    needs |= {
        f"threads={math.prod(uses.local_size)}",
        *uses.matrices,
        f"spirv={MATRIX_VERSION if uses.matrices else VERSION}",
    }
    if interface.buffers:
        needs.add(f"bindings={1 + max(buffer.number for buffer in interface.buffers)}")
    if uses.in_subgroups:
        needs.add(f"subgroup={subgroup}")
    if uses.shared_bytes:
        needs.add(f"shared-bytes={uses.shared_bytes}")
    if interface.words and not interface.words_in_buffer:
        needs.add(f"push-bytes={4 * interface.words}")
    return tuple(sorted(needs))


def _bytes_of(type_: mlir.Type) -> int:
    memory = mlir.MemRefType(type_)
    element = memory.element_type
    lanes = mlir.VectorType(element).shape if isinstance(element, mlir.VectorType) else ()
    return math.prod((*memory.shape, *lanes)) * element_bytes(element_type(element))


def _shape_of(product: mlir.OpView, brain_floats: bool) -> str:
    """The feature of a matrix product. Types print as `!gpu.mma_matrix<16x8xf16, "AOp">`."""
    (m, k, element), (_, n, _), (_, _, sum_) = (
        re.search(r"<(\d+)x(\d+)x(\w+),", str(operand.type)).groups()  # type: ignore[union-attr]
        for operand in product.operands
    )
    operand = "bf16" if brain_floats else element.removeprefix("s").removeprefix("u")
    return f"matrix:{operand}:{sum_}:{m}x{n}x{k}"
