"""What a target allows, in the words of SPIR-V: a version, capabilities and extensions."""

from __future__ import annotations

from torch_mlir import ir as mlir

from eyas.targets.gpu import GpuTarget

_CAPABILITIES = {
    "f16": "Float16",
    "f64": "Float64",
    "i8": "Int8",
    "i16": "Int16",
    "i64": "Int64",
    "storage8": "StorageBuffer8BitAccess",
    "storage16": "StorageBuffer16BitAccess",
    "subgroup-basic": "GroupNonUniform",
    "subgroup-vote": "GroupNonUniformVote",
    "subgroup-arithmetic": "GroupNonUniformArithmetic",
    "subgroup-ballot": "GroupNonUniformBallot",
    "subgroup-shuffle": "GroupNonUniformShuffle",
    "memory-model": "VulkanMemoryModel",
    "atomic-f32-add": "AtomicFloat32AddEXT",
    "float-controls": "SignedZeroInfNanPreserve",
    "dot8": "DotProductInput4x8Bit",
}
"""Features of targets and modules, and the capability that each of them is in a SPIR-V module."""

FEATURE_OF = {
    **{capability: feature for feature, capability in _CAPABILITIES.items()},
    "GroupNonUniformShuffleRelative": "subgroup-shuffle",
    "DotProduct": "dot8",
    "DotProductInput4x8BitPacked": "dot8",
    "DotProductInputAll": "dot8",
}
"""Capability -> feature. Others need nothing: every device has them, or a shape of matrices says it."""

_ALSO = {
    "subgroup-shuffle": ("GroupNonUniformShuffleRelative",),
    "dot8": ("DotProduct", "DotProductInput4x8BitPacked", "DotProductInputAll"),
}

_EXTENSIONS = {
    "storage8": "SPV_KHR_8bit_storage",
    "storage16": "SPV_KHR_16bit_storage",
    "memory-model": "SPV_KHR_vulkan_memory_model",
    "atomic-f32-add": "SPV_EXT_shader_atomic_float_add",
    "float-controls": "SPV_KHR_float_controls",
    "dot8": "SPV_KHR_integer_dot_product",
}

VERSION, MATRIX_VERSION = "1.3", "1.6"
"""What every device of Vulkan 1.1 takes, and what cooperative matrices come with. Newer features that are extensions of
1.3 are used as such: one version for all targets is one form of module to test."""


def target_environment(target: GpuTarget, matrices: bool) -> mlir.Attribute:
    """The `#spirv.target_env` that upstream's patterns ask. `matrices`: for a kernel with cooperative matrices."""
    capabilities, extensions = ["Shader"], ["SPV_KHR_storage_buffer_storage_class"]
    for feature, capability in _CAPABILITIES.items():
        if target.has(feature):
            capabilities += [capability, *_ALSO.get(feature, ())]
            extensions += [_EXTENSIONS[feature]] if feature in _EXTENSIONS else []
    if matrices:
        capabilities.append("CooperativeMatrixKHR")
        extensions.append("SPV_KHR_cooperative_matrix")
    version = MATRIX_VERSION if matrices else VERSION
    triple = f"#spirv.vce<v{version}, [{', '.join(capabilities)}], [{', '.join(extensions)}]>"
    limits = f"#spirv.resource_limits<subgroup_size = {target.subgroup}>"
    return mlir.Attribute.parse(f"#spirv.target_env<{triple}, api=Vulkan, {limits}>")
