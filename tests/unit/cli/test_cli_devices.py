"""What `eyas devices` says of GPUs."""

from __future__ import annotations

from eyas.cli.devices import describe_gpu
from eyas.targets.gpu_facts import FEATURES, VULKAN

REPORTED = {
    "subgroup": "8", "threads": "1024", "shared-bytes": "32768", "push-bytes": "128", "bindings": "32", "cores": "2",
    "type": "virtual",
    "offset-alignment": "16", "storage-bytes": "134217728", "memory-bytes": "8589934592", "spirv": "1.6",
    "vendor": "0x10005", "grid": "65535x65535x65535", "driver": "llvmpipe Mesa 22.3.6", "api": "1.3.230",
    **dict.fromkeys(VULKAN["lavapipe"].features, "yes"),
}  # fmt: skip


def test_a_gpu_is_described_with_limits_and_what_is_missing() -> None:
    shown = describe_gpu(REPORTED)
    assert shown["target"] == "vulkan:lavapipe:cores=2" and shown["memory"] == "8.0 GiB"
    assert shown["driver"] == "llvmpipe Mesa 22.3.6, Vulkan 1.3.230, SPIR-V 1.6"
    assert shown["workgroup"] == "1024 threads in subgroups of 8, 32.0 KiB shared"
    assert shown["dispatch"] == "29 buffers of 128.0 MiB at multiples of 16, 128 bytes of constants"
    assert "f16" in shown["features"] and "matrices" not in shown
    assert shown["not there"] == f"bf16 ({FEATURES['bf16']}), matrices (matrix instructions)"


def test_shapes_of_matrices_are_shown() -> None:
    shown = describe_gpu(REPORTED | {"matrix:f16:f32:16x16x16": "yes"})
    assert shown["matrices"] == "f16:f32:16x16x16" and "instructions" not in shown["not there"]
