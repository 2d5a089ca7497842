"""Loops around loops that stay are kept from being unrolled; short ones inside short ones are not."""

from __future__ import annotations

import pytest

from eyas.codegen.llvm_cpu.llvm import emit_llvm_ir
from eyas.codegen.llvm_cpu.lowering import lower_to_llvm
from eyas.codegen.llvm_cpu.outer_loops import keep_outer_loops
from eyas.ir import make_context, parse_module
from eyas.targets import Target

NEST = """func.func @f(%x: memref<?x?xf32>, %n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %inner = {inner}
  %c16 = arith.constant 16 : index
  %one = arith.constant 1.0 : f32
  scf.for %i = %c0 to %c16 step %c1 {{
    scf.for %j = %c0 to %inner step %c1 {{
      memref.store %one, %x[%i, %j] : memref<?x?xf32>
    }}
  }}
  return
}}"""


@pytest.mark.parametrize(
    ("inner", "kept"),
    [("arith.addi %n, %c0 : index", True), ("arith.constant 100 : index", True), ("arith.constant 3 : index", False)],
)
def test_outer_loops_stay(inner: str, kept: bool) -> None:
    module = parse_module(NEST.format(inner=inner), make_context())
    target = Target.parse("llvm-cpu:x86_64:x86-64-v3")
    with module.context:
        keep_outer_loops(module)
        lower_to_llvm(module, target)
        assert module.operation.verify()
        text = emit_llvm_ir(module, target, 0)
        optimized = emit_llvm_ir(module, target)
    assert ("llvm.loop.unroll.disable" in text) == kept
    # The stores of one inner loop, vectorised and unrolled as it may be: not those of sixteen.
    assert not kept or optimized.count("store ") <= 32, optimized
