"""The workaround for masked stores of one lane, and the bug that it is for."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from eyas.codegen.llvm_cpu.one_lane_stores import expand_one_lane_stores, rewrite

IR = """
define void @f(ptr %p, <4 x i64> %v) {{
  %t = trunc <4 x i64> %v to <4 x i32>
  call void @llvm.masked.store.v4i32.p0(<4 x i32> %t, ptr align 4 %p, <4 x i1> <{mask}>)
  ret void
}}
declare void @llvm.masked.store.v4i32.p0(<4 x i32>, ptr, <4 x i1>)
"""


def ir(*lanes: int) -> str:
    return IR.format(mask=", ".join("i1 true" if lane in lanes else "i1 false" for lane in range(4)))


@pytest.mark.parametrize("lane", [0, 2])
def test_one_lane_is_a_scalar_store(lane):
    text = rewrite(ir(lane))
    assert "call void" not in text
    assert f"extractelement <4 x i32> %t, i64 {lane}" in text
    assert f"getelementptr i32, ptr %p, i64 {lane}" in text
    assert "store i32" in text and "align 4" in text


@pytest.mark.parametrize("lanes", [(), (0, 1), (1, 3), (0, 1, 2, 3)])
def test_other_masks_stay(lanes):
    assert rewrite(ir(*lanes)) == ir(*lanes)


@pytest.mark.parametrize("cpu", ["znver4", "skylake-avx512", "haswell"])
def test_four_bytes_are_written(cpu):
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine(cpu=cpu, opt=3)
    module = expand_one_lane_stores(llvm.parse_assembly(ir(0), llvm.create_context()))
    stores = [line.split()[0] for line in machine.emit_assembly(module).splitlines() if "(%rdi)" in line]
    assert stores and all(name in ("vmovd", "movl", "vmovss", "vextractps", "vpextrd") for name in stores), stores
