"""Targets parse, print back the same, and know their machines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from eyas.errors import TargetError
from eyas.targets import CpuTarget, GpuTarget, Target, TileMachine, facts
from eyas.targets.host import count_cores, read_caches, target_for
from eyas.targets.registry import BACKENDS, codegen_module

ROUND_TRIP = [
    "llvm-cpu:x86_64",
    "llvm-cpu:x86_64:znver3",
    "llvm-cpu:x86_64:znver4:+avx512f,-avx512vnni",
    "llvm-cpu:x86_64:znver4:-avx512f,l2=2M,l3=96M",
    "llvm-cpu:aarch64",
    "llvm-cpu:aarch64:cortex-a76",
    "llvm-cpu:riscv64:+v",
    "llvm-cpu:riscv64:+v,vlen=256",
    "llvm-cpu:riscv64:spacemit-x60",
    "llvm-cpu:x86_64:znver3:cores=64",
    "llvm-cpu:riscv64:+v,vlen=256,l1d=64K,cores=4",
    "vmvx",
    "vmvx:cores=4",
    "cuda:sm_90a",
    "cuda:sm_80:cores=98",
]


@pytest.mark.parametrize("text", ROUND_TRIP)
def test_prints_what_it_parsed(text: str) -> None:
    target = Target.parse(text)
    assert str(target) == text
    assert Target.parse(str(target)) == target
    assert Target.parse(target) is target


def test_order_of_features_does_not_matter() -> None:
    one = Target.parse("llvm-cpu:x86_64:znver4:-avx512vnni,+avx512f")
    two = Target.parse("llvm-cpu:x86_64:znver4:+avx512f,-avx512vnni")
    assert one == two and one.digest == two.digest


@pytest.mark.parametrize(
    ("text", "part", "hint"),
    [
        ("llvm-cp", "backend 'llvm-cp'", "Did you mean 'llvm-cpu'"),
        ("llvm-cpu:x86", "architecture 'x86'", "Did you mean 'x86_64'"),
        ("llvm-cpu:x86_64:zenver4", "CPU of x86_64 'zenver4'", "Did you mean 'znver4'"),
        ("llvm-cpu:x86_64:+avx512", "feature of x86_64 'avx512'", "Did you mean 'avx512"),
        ("llvm-cpu:aarch64:+avx2", "feature of aarch64 'avx2'", "Allowed: fp-armv8"),
        ("llvm-cpu:x86_64:vlen=256", "option 'vlen'", "Allowed: l1d"),
        ("llvm-cpu:x86_64:cores=0", "cores is '0'", "from 1 to"),
        ("llvm-cpu:x86_64:cores=", "cores is ''", "from 1 to"),
        ("llvm-cpu:x86_64:l1d=0", "l1d is '0'", "512K"),
        ("cpu", "backend 'cpu'", "Did you mean 'llvm-cpu'?"),
        ("arm64", "backend 'arm64'", "Did you mean 'llvm-cpu:aarch64'?"),
        ("vmvx:l2=1M", "option 'l2'", "cores=..."),
        ("llvm-cpu:riscv64:+v,vlen=100", "vlen is '100'", "128, 256"),
        ("llvm-cpu:x86_64:l2=big", "l2 is 'big'", "512K"),
        ("llvm-cpu:x86_64:znver3:+avx:extra", "too many", "llvm-cpu:ARCH"),
        ("cuda:volta", "profile 'volta'", "Allowed: sm_70"),
        ("cuda:sm_90a:l2=1M", "option 'l2'", "cores=..."),
        ("", "backend ''", "Allowed: llvm-cpu"),
    ],
)
def test_error_names_the_part_and_what_is_allowed(text: str, part: str, hint: str) -> None:
    with pytest.raises(TargetError) as caught:
        Target.parse(text)
    assert part in str(caught.value)
    assert hint in str(caught.value)


def test_reserved_names_fail_when_used() -> None:
    target = Target.parse("cuda:sm_90a")
    assert isinstance(target, GpuTarget) and not target.runs_here
    with pytest.raises(TargetError, match="does not compile for it yet; use llvm-cpu"):
        codegen_module(target)


def test_the_portable_target_is_the_same_everywhere() -> None:
    target = Target.parse("vmvx")
    assert isinstance(target, TileMachine) and str(target) == "vmvx" and target.runs_here
    assert target.required_features == () and target.cores == 16
    assert target.caches.l1d_bytes == 32 << 10
    with pytest.raises(TargetError, match="takes nothing after its name"):
        Target.parse("vmvx:x86_64")


def test_every_backend_has_a_parser() -> None:
    texts = {**dict.fromkeys(BACKENDS), "vulkan": "vulkan:baseline"}  # a device may be missing
    for name, text in texts.items():
        target = Target.parse(text or name)
        assert target.backend == name and Target.parse(str(target)) == target


def test_cores_are_counted_here_and_assumed_elsewhere() -> None:
    assert Target.host().cores == count_cores() >= 1
    assert Target.parse("llvm-cpu:aarch64").cores == 16
    assert Target.parse("llvm-cpu:x86_64:znver4:cores=96").cores == 96
    here = Target.parse("llvm-cpu:cores=96")
    assert here.cores == 96 and here.caches == Target.host().caches


def test_a_target_runs_where_its_features_are() -> None:
    host = CpuTarget.host()
    assert host.runs_here
    assert Target.parse(f"llvm-cpu:{host.arch}:cores=3").runs_here
    other = next(name for name in facts.ARCHES if name != host.arch)
    assert not Target.parse(f"llvm-cpu:{other}").runs_here
    absent = set(facts.ARCHES[host.arch].implies) - host.feature_set
    assert absent and not any(Target.parse(f"llvm-cpu:{host.arch}:+{name}").runs_here for name in absent)


@pytest.mark.parametrize(
    ("text", "near", "workgroup"),
    [
        ("llvm-cpu:x86_64", 32, 64),
        ("llvm-cpu:x86_64:znver4", 32, 64),
        ("llvm-cpu:x86_64:sapphirerapids", 32, 64),
        ("llvm-cpu:aarch64:apple-m1", 128, 256),
        ("llvm-cpu:riscv64:l1d=16K", 16, 32),
        ("vmvx", 32, 64),
    ],
)
def test_what_is_near_follows_from_the_first_level_cache(text: str, near: int, workgroup: int) -> None:
    target = Target.parse(text)
    assert (target.near_bytes, target.workgroup_bytes) == (near << 10, workgroup << 10)


@pytest.mark.parametrize(
    ("text", "bits", "registers", "fma"),
    [
        ("llvm-cpu:x86_64", 128, 16, False),
        ("llvm-cpu:x86_64:x86-64-v2", 128, 16, False),
        ("llvm-cpu:x86_64:haswell", 256, 16, True),
        ("llvm-cpu:x86_64:znver4", 512, 32, True),
        ("llvm-cpu:x86_64:znver4:-avx512f", 256, 16, True),
        ("llvm-cpu:x86_64:znver4:-avx2", 128, 16, True),
        ("llvm-cpu:aarch64", 128, 32, True),
        ("llvm-cpu:aarch64:neoverse-v1", 128, 32, True),
        ("llvm-cpu:riscv64", 0, 32, True),
        ("llvm-cpu:riscv64:+v", 128, 32, True),
        ("llvm-cpu:riscv64:+v,vlen=512", 512, 32, True),
        ("llvm-cpu:riscv64:spacemit-x60", 256, 32, True),
    ],
)
def test_vector_facts(text: str, bits: int, registers: int, fma: bool) -> None:
    target = Target.parse(text)
    assert (target.vector_bits, target.vector_registers) == (bits, registers)
    assert target.has_fma == fma
    assert target.lanes() == max(1, bits // 32)


def test_features_imply_and_exclude_each_other() -> None:
    assert "avx512bw" in Target.parse("llvm-cpu:x86_64:+avx512vbmi").feature_set
    assert "fma" in Target.parse("llvm-cpu:x86_64:+avx512f").feature_set
    assert not any(name.startswith("avx512") for name in Target.parse("llvm-cpu:x86_64:znver4:-avx512f").feature_set)


def test_every_listed_feature_and_implication_is_known() -> None:
    for arch in facts.ARCHES.values():
        named = {name for implied in arch.implies.values() for name in implied} | arch.baseline
        for cpu in arch.cpus.values():
            named |= cpu.features
        for features in arch.capabilities.values():
            named |= features
        assert named <= set(arch.implies)
        assert arch.default_cpu in arch.cpus


def test_llvm_knows_every_cpu_and_feature() -> None:
    # LLVM only prints a warning for a name that it does not know, so another process runs it and we read that.
    script = (
        "import llvmlite.binding as llvm\n"
        "from eyas.targets.facts import ARCHES\n"
        "llvm.initialize_all_targets()\n"
        "for arch in ARCHES.values():\n"
        "    make = llvm.Target.from_triple(arch.triple).create_target_machine\n"
        "    for cpu in arch.cpus: make(cpu=cpu)\n"
        "    for feature in arch.implies: make(cpu=arch.default_cpu, features='+' + feature)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_required_features_are_what_goes_beyond_the_baseline() -> None:
    assert Target.parse("llvm-cpu:x86_64").required_features == ()
    assert Target.parse("llvm-cpu:aarch64").required_features == ()
    required = Target.parse("llvm-cpu:x86_64:znver4").required_features
    assert {"avx2", "fma", "avx512f", "avx512vl"} <= set(required)
    assert list(required) == sorted(required)
    assert Target.parse("llvm-cpu:riscv64:+v,vlen=256").required_features == ("v", "zvl256b")


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
def test_the_runtime_can_check_every_feature(arch: str) -> None:
    source = (Path(__file__).parents[3] / "runtime/src/base/cpu_features.c").read_text()
    assert [name for name in facts.ARCHES[arch].implies if f'"{name}"' not in source] == []


def test_caches_come_from_the_table_or_the_text() -> None:
    assert Target.parse("llvm-cpu:x86_64:znver3").caches.l2_bytes == 512 * 1024
    assert Target.parse("llvm-cpu:x86_64:znver3:l2=1M").caches.l2_bytes == 1024 * 1024


def test_host_is_a_target_like_any_other() -> None:
    host = Target.host()
    assert Target.parse("llvm-cpu") == host
    assert Target.parse(str(host)) == host
    assert host.vector_bits >= 128 or host.arch == "riscv64"


def test_host_respects_what_the_system_hides() -> None:
    import llvmlite.binding as llvm

    reported = dict(llvm.get_host_cpu_features())
    assert all(reported.get(name, True) for name in Target.host().feature_set)


def test_detection_expresses_differences_from_the_model() -> None:
    reported = {name: name in facts.ARCHES["x86_64"].cpus["znver4"].features for name in facts.ARCHES["x86_64"].implies}
    reported["avx512vnni"] = False
    reported["avxvnni"] = True
    target = target_for("x86_64", "znver4", reported, {"l1d": 32 * 1024, "l3": 16 * 1024 * 1024})
    assert str(target) == "llvm-cpu:x86_64:znver4:+avxvnni,-avx512vnni,l3=16M"


def test_detection_of_an_unknown_cpu_uses_its_features() -> None:
    arch = facts.ARCHES["x86_64"]
    reported = {name: name in arch.cpus["haswell"].features for name in arch.implies}
    target = target_for("x86_64", "futurelake", reported, {})
    assert target.cpu == "x86-64"
    assert target.feature_set == arch.cpus["haswell"].features


def test_caches_are_read_from_sysfs(tmp_path) -> None:
    rows = [(1, "Data", "48K"), (1, "Instruction", "32K"), (2, "Unified", "2048K")]
    for index, (level, kind, size) in enumerate(rows):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        for name, value in (("level", level), ("type", kind), ("size", size)):
            (folder / name).write_text(f"{value}\n")
    assert read_caches(tmp_path) == {"l1d": 48 * 1024, "l2": 2048 * 1024}
    assert read_caches(tmp_path / "absent") == {}


def test_digests_differ() -> None:
    digests = {Target.parse(text).digest for text in ROUND_TRIP}
    assert len(digests) == len(ROUND_TRIP)
