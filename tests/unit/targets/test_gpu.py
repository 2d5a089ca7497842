"""Profiles of GPUs: what they promise, how they are changed, and how a device is expressed by one."""

from __future__ import annotations

import pytest

from eyas.errors import TargetError
from eyas.targets import GpuTarget, Target, gpu_device
from eyas.targets.gpu_facts import FEATURES, GPUS, VULKAN, MatrixShape, is_feature

TEXTS = [
    *(f"vulkan:{name}" for name in VULKAN),
    *(f"cuda:{name}" for name in GPUS["cuda"]),
    "vulkan:baseline:+f16,+storage16",
    "vulkan:hopper:-bf16,-matrix:bf16:f32:16x16x16,+matrix:f16:f32:8x8x8,spirv=1.5,cores=114",
    "vulkan:mali:spirv=1.3,subgroup=8,threads=256,shared=16K,push=256,bindings=8,alignment=64,range=1M,grid=1024,cores=4",
]


def gpu(text: str) -> GpuTarget:
    target = Target.parse(text)
    assert isinstance(target, GpuTarget)
    return target


@pytest.mark.parametrize("text", TEXTS)
def test_text_and_value_are_the_same(text: str) -> None:
    assert str(gpu(text)) == text and Target.parse(str(gpu(text))) == gpu(text)


def test_equal_machines_have_equal_text() -> None:
    assert gpu("vulkan:mali:+f16,subgroup=16") == gpu("vulkan:mali")
    assert gpu("vulkan:mali:cores=2,-i8,-f16") == gpu("vulkan:mali:-f16,-i8,cores=2")
    assert str(gpu("vulkan:mali:-f16,+f16")) == "vulkan:mali"


@pytest.mark.parametrize(
    ("text", "part", "hint"),
    [
        ("vulkan:malli", "profile 'malli'", "Did you mean 'mali'"),
        ("vulkan:spirv1.6", "profile 'spirv1.6'", "baseline, lavapipe"),
        ("vulkan:mali:+fp16", "feature 'fp16'", "Did you mean 'f16'"),
        ("vulkan:mali:+matrix:f64:f64:8x8x8", "feature 'matrix:f64:f64:8x8x8'", "matrix:f16:f32:16x16x16"),
        ("vulkan:mali:warp=32", "option 'warp'", "subgroup=..."),
        ("vulkan:mali:subgroup=12", "subgroup is '12'", "power of two"),
        ("vulkan:mali:alignment=0", "alignment is '0'", "512K"),
        ("vulkan:mali:spirv=2.0", "spirv is '2.0'", "1.3, 1.4, 1.5, 1.6"),
        ("vulkan:mali:g710", "'g710' is neither", "vulkan[:PROFILE]"),
    ],
)
def test_error_names_the_part_and_what_is_allowed(text: str, part: str, hint: str) -> None:
    with pytest.raises(TargetError) as caught:
        Target.parse(text)
    assert part in str(caught.value) and hint in str(caught.value)


def test_the_baseline_is_what_vulkan_guarantees() -> None:
    target = gpu("vulkan:baseline")
    assert (target.max_threads, target.shared_bytes, target.spirv_version) == (128, 16 << 10, "1.3")
    assert target.limits.push_constant_bytes == 128 and target.limits.offset_alignment == 256
    assert target.limits.max_grid == (65_535,) * 3 and target.limits.max_binding_bytes == 128 << 20
    assert target.subgroup == 1 and not target.matrix_shapes
    assert [name for name in FEATURES if target.has(name)] == ["subgroup-basic"]


@pytest.mark.parametrize("name", VULKAN)
def test_every_profile_covers_the_baseline_and_itself(name: str) -> None:
    target = gpu(f"vulkan:{name}")
    assert target.covers(gpu("vulkan:baseline")) and target.covers(target)
    assert all(map(is_feature, target.facts.features))
    assert target.limits.max_bindings >= 2 and 0 < target.workgroup_bytes < target.shared_bytes


def test_what_a_target_has() -> None:
    target = gpu("vulkan:hopper")
    for feature in (
        "f16", "bf16", "subgroup=32", "threads=1024", "shared-bytes=49152", "push-bytes=256", "bindings=256",
        "offset-alignment=64", "spirv=1.3", "spirv=1.6", "matrix:f16:f32:16x16x16",
    ):  # fmt: skip
        assert target.has(feature), feature
    for feature in ("subgroup=64", "threads=2048", "shared-bytes=49153", "push-bytes=257", "offset-alignment=8"):
        assert not target.has(feature), feature
    assert not gpu("vulkan:lavapipe:spirv=1.4").has("spirv=1.5") and not gpu("vulkan:mali").has("f64")
    with pytest.raises(AssertionError, match="'fp16' is not a feature"):
        target.has("fp16")


def test_shapes_of_matrices_are_features_that_can_be_read() -> None:
    shape = MatrixShape("f16", "f32", 16, 8, 16)
    assert MatrixShape.parse(str(shape)) == shape and MatrixShape.parse("f16") is None
    assert gpu(f"vulkan:baseline:+{shape}").matrix_shapes == (shape,)


def test_large_tensors_have_several_bindings() -> None:
    """Of whole vectors, each with room for where an unaligned tensor begins."""
    limits = Target.parse("vulkan:baseline").limits
    assert limits.segment_bytes == (128 << 20) - 256
    assert [limits.segments(bytes_) for bytes_ in (0, 1, (128 << 20) - 256, 128 << 20, 3 << 27)] == [1, 1, 1, 2, 4]
    assert Target.parse("vulkan:baseline:range=1000,alignment=4").limits.segment_bytes == 992
    assert Target.parse("llvm-cpu").limits.segments(1 << 40) == 1


def test_cuda_has_limits_of_its_own() -> None:
    cuda = gpu("cuda")
    assert cuda.profile == "sm_90a" and cuda.cores == 132 and gpu("cuda:sm_90a:cores=8").cores == 8
    assert cuda.shared_bytes == 227 << 10


# What Mesa 25 reports of lavapipe, whose push constants grew.
REPORTED = {
    "subgroup": "8", "threads": "1024", "shared-bytes": "32768", "push-bytes": "256", "bindings": "32", "cores": "2",
    "type": "virtual",
    "driver": "llvmpipe Mesa 22.3.6 (LLVM 15.0.6)",
    "offset-alignment": "16", "storage-bytes": "134217728", "memory-bytes": "8589934592", "spirv": "1.6",
    "vendor": "0x10005", "grid": "65535x65535x65535", **dict.fromkeys(VULKAN["lavapipe"].features - {"f64"}, "yes"),
}  # fmt: skip


def test_a_device_is_the_nearest_profile_and_what_differs() -> None:
    target = gpu_device.target_for(REPORTED)
    assert str(target) == "vulkan:lavapipe:-f64,push=256,cores=2" and Target.parse(str(target)) == target
    huge = {"grid": "4294967295x65535x65535", "bindings": "4294967295"}
    small = gpu_device.target_for({**REPORTED, **huge, "vendor": "0x10de", "cores": "0"})
    assert small.profile in ("ampere", "hopper") and small.cores == VULKAN[small.profile].cores
    assert small.limits.max_grid[0] == 2**31 - 1 and not small.has("f64") and small.subgroup == 8
    strange = gpu_device.target_for({**REPORTED, "vendor": "0x7", "telepathy": "yes"})
    assert strange.profile == "baseline" and "telepathy" not in strange.facts.features and strange.has("push-bytes=256")


def test_a_device_on_the_cpu_has_the_cores_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_device, "count_cores", lambda: 5)
    assert gpu_device.target_for({**REPORTED, "type": "cpu"}).cores == 5


def test_old_versions_of_lavapipe_end_long_loops() -> None:
    assert gpu_device.target_for(REPORTED).max_iterations == 65_535
    assert gpu_device.target_for({**REPORTED, "driver": "llvmpipe Mesa 25.0.7"}).max_iterations == 2**31 - 1
    assert gpu("vulkan:baseline").max_iterations == 2**31 - 1


def test_what_a_device_covers() -> None:
    here = gpu_device.target_for(REPORTED)
    assert here.covers(gpu("vulkan:baseline")) and not here.covers(gpu("vulkan:lavapipe"))
    assert not here.covers(gpu("vulkan:baseline:subgroup=16")) and not here.covers(gpu("vulkan:baseline:alignment=8"))
    assert not here.covers(gpu("cuda"))


def test_without_a_device_the_name_alone_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_device, "targets_here", lambda interface: ())
    for text in ("vulkan", "vulkan:+f16"):
        with pytest.raises(
            TargetError, match="install .*mesa-vulkan-drivers libvulkan1.*vulkan:baseline, vulkan:lavapipe"
        ):
            gpu_device.target_here(text)
    assert not gpu("vulkan:baseline").runs_here


def test_options_without_a_profile_change_the_device_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_device, "targets_here", lambda interface: (gpu_device.target_for(REPORTED),))
    from eyas.targets.gpu import parse  # as `Target.parse` remembers what it read

    assert str(parse("vulkan", "")) == "vulkan:lavapipe:-f64,push=256,cores=2"
    assert str(parse("vulkan:+f64,shared=16K", "+f64,shared=16K")) == "vulkan:lavapipe:shared=16K,push=256,cores=2"
    assert gpu("vulkan:baseline").runs_here
