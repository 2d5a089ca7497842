"""Which targets a tuning spec is for."""

from __future__ import annotations

import pytest

from eyas.errors import TargetError
from eyas.targets import Target
from eyas.targets.pattern import check_pattern, matches, pattern_of


@pytest.mark.parametrize(
    ("pattern", "target", "expected"),
    [
        ("llvm-cpu", "llvm-cpu:aarch64", True),
        ("llvm-cpu", "vmvx", False),
        ("llvm-cpu:x86_64", "llvm-cpu:x86_64:znver4", True),
        ("llvm-cpu:x86_64:znver3", "llvm-cpu:x86_64:znver4", False),
        ("llvm-cpu:x86_64:znver4", "llvm-cpu:x86_64:znver4:cores=2,l2=2M", True),
        ("llvm-cpu:x86_64:+avx2,-avx512f", "llvm-cpu:x86_64:znver3", True),
        ("llvm-cpu:x86_64:+avx2,-avx512f", "llvm-cpu:x86_64:znver4", False),
        ("llvm-cpu:x86_64:+avx2,-avx512f", "llvm-cpu:x86_64:znver4:-avx512f", True),
        ("llvm-cpu:x86_64:+avx2,-avx512f", "llvm-cpu:x86_64", False),
        ("llvm-cpu:x86_64:cores=4", "llvm-cpu:x86_64:cores=4", True),
        ("llvm-cpu:x86_64:cores=4", "llvm-cpu:x86_64:cores=8", False),
        ("vmvx", "vmvx:cores=4", True),
        ("vmvx:cores=2", "vmvx:cores=4", False),
        ("vulkan", "vulkan:lavapipe", True),
        ("vulkan:ampere", "vulkan:lavapipe", False),
        ("vulkan:subgroup=32", "vulkan:ampere", True),
        ("vulkan:subgroup=16", "vulkan:ampere", False),
        ("vulkan:ampere:shared=32K", "vulkan:ampere:shared=32K", True),
        ("vulkan:ampere:spirv=1.3", "vulkan:ampere", False),
        ("vulkan:ampere:+matrix:f16:f32:16x16x16", "vulkan:ampere:-matrix:f16:f32:16x16x16", False),
    ],
)
def test_only_what_is_said_must_hold(pattern, target, expected):
    check_pattern(pattern)
    assert matches(pattern, Target.parse(target)) is expected


@pytest.mark.parametrize(
    ("target", "pattern"),
    [
        ("llvm-cpu:x86_64:znver4:cores=2,l3=4M", "llvm-cpu:x86_64:znver4"),
        ("llvm-cpu:x86_64:znver4:-avx512f", "llvm-cpu:x86_64:znver4:-avx512f"),
        ("llvm-cpu:x86_64", "llvm-cpu:x86_64:x86-64"),
        ("vmvx:cores=3", "vmvx"),
        ("vulkan:lavapipe:cores=2", "vulkan:lavapipe"),
        ("vulkan:ampere:subgroup=16,cores=9", "vulkan:ampere:subgroup=16"),
    ],
)
def test_what_a_spec_says_of_its_machine(target, pattern):
    parsed = Target.parse(target)
    assert pattern_of(parsed) == pattern
    assert matches(pattern, parsed)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("cpu", "Did you mean 'llvm-cpu'"),
        ("llvm-cpu:x86_64:zen3", "unknown CPU of x86_64 'zen3'"),
        ("llvm-cpu:x86_64:+avx22", "unknown feature of x86_64 'avx22'"),
        ("vulkan:amper", "Did you mean 'ampere'"),
    ],
)
def test_text_that_is_no_target(pattern, message):
    with pytest.raises(TargetError, match=message):
        check_pattern(pattern)
