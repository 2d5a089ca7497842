"""From the GPU dialect to a `spirv.module`, by upstream's patterns, and from there to words."""

from __future__ import annotations

from torch_mlir import ir as mlir
from torch_mlir.dialects import gpu

from eyas.ir import run_upstream
from eyas.ir.walk import find_ops

_CONVERT = (
    # The GPU dialect's conversion knows no math ops, and those of math no other.
    "convert-math-to-spirv",
    "convert-gpu-to-spirv{use-64bit-index=false}",
    "spirv.module(spirv-lower-abi-attrs,canonicalize,cse,spirv-update-vce)",
)

_ENVIRONMENT = "spirv.target_env"

_SPACES = {
    "memref.alloc": "#spirv.storage_class<Workgroup>",
    "memref.alloca": "#spirv.storage_class<Function>",
}


def convert(module: mlir.Module, environment: mlir.Attribute) -> mlir.OpView:
    """Converts the kernel, whose arguments are storage buffers already, and gives the `spirv.module`."""
    for op in find_ops(module, *_SPACES):
        _place(op.results[0], _SPACES[op.operation.name])
    (kernels,) = find_ops(module, "gpu.module")
    kernels.attributes["targets"] = mlir.ArrayAttr.get([environment])
    module.operation.attributes[_ENVIRONMENT] = environment  # where the conversion of math looks
    run_upstream(module, ",".join(_CONVERT))
    (made,) = find_ops(module, "spirv.module")
    return made


def _place(memory: mlir.Value, space: str) -> None:
    type_ = mlir.MemRefType(memory.type)
    memory.set_type(mlir.MemRefType.get(type_.shape, type_.element_type, memory_space=mlir.Attribute.parse(space)))


def serialize(module: mlir.Module, made: mlir.OpView) -> bytes:
    """The words of the `spirv.module`, which takes the place of the kernel: that is where upstream looks for it."""
    (kernels,) = find_ops(module, "gpu.module")
    body = kernels.regions[0].blocks[0]
    for op in list(body.operations):
        op.operation.erase()
    made.operation.detach_from_parent()
    body.append(made.operation)
    run_upstream(module, "gpu-module-to-binary")
    (binary,) = find_ops(module, "gpu.binary")
    return gpu.ObjectAttr(mlir.ArrayAttr(binary.attributes["objects"])[0]).object
