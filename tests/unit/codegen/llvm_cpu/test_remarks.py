"""What a schedule leaves on the table, in sentences."""

from __future__ import annotations

import pytest

from eyas.codegen.common.analysis import Analysis, generalized
from eyas.codegen.common.kernel import Kernel
from eyas.codegen.common.schedule import Schedule, Tile
from eyas.codegen.llvm_cpu.compile import select_strategy
from eyas.codegen.llvm_cpu.remarks import remarks
from eyas.ir import make_context, mlir, parse_module
from eyas.targets import Target

MATMUL = """
func.func private @f(%x: tensor<MxKxf32>, %w: tensor<KxNxf32>) -> tensor<MxNxf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<MxNxf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<MxNxf32>) -> tensor<MxNxf32>
  %r = linalg.matmul ins(%x, %w : tensor<MxKxf32>, tensor<KxNxf32>) outs(%init : tensor<MxNxf32>) -> tensor<MxNxf32>
  return %r : tensor<MxNxf32>
}
"""
TRANSPOSE = """
func.func private @f(%x: tensor<64x48xf32>) -> tensor<48x64xf32> {
  %e = tensor.empty() : tensor<48x64xf32>
  %r = linalg.transpose ins(%x : tensor<64x48xf32>) outs(%e : tensor<48x64xf32>) permutation = [1, 0]
  return %r : tensor<48x64xf32>
}
"""
COMPLEX = """
#id = affine_map<(a) -> (a)>
func.func private @f(%x: tensor<64xcomplex<f32>>) -> tensor<64xcomplex<f32>> {
  %e = tensor.empty() : tensor<64xcomplex<f32>>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
    ins(%x : tensor<64xcomplex<f32>>) outs(%e : tensor<64xcomplex<f32>>) {
  ^bb0(%i: complex<f32>, %o: complex<f32>):
    %s = complex.add %i, %i : complex<f32>
    linalg.yield %s : complex<f32>
  } -> tensor<64xcomplex<f32>>
  return %r : tensor<64xcomplex<f32>>
}
"""


def remarks_of(text: str, target: str = "llvm-cpu:x86_64:znver4") -> str:
    module = parse_module(text, make_context())
    with module.context, mlir.Location.unknown():
        single = generalized(module.body.operations[0])
        chosen, _ = select_strategy(single.body.operations[0], Target.parse(target))
        return " / ".join(chosen.remarks(Target.parse(target)))


def matmul(m: int, n: int, k: int) -> str:
    return MATMUL.replace("M", str(m)).replace("N", str(n)).replace("K", str(k))


def test_a_product_whose_tiles_come_out_even_has_no_remarks():
    assert remarks_of(matmul(240, 256, 512)) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (matmul(13, 17, 64), "lanes: 17 in tiles of "),
        (matmul(240, 5, 512), "8 of 16 lanes: the loop has 5 steps"),
        (matmul(1, 16, 64), "would hide their latency"),
        (TRANSPOSE, "elements apart"),
        (COMPLEX, "nothing runs in vectors"),
    ],
)
def test_what_is_left_on_the_table(text, expected):
    assert expected in remarks_of(text)


def test_rows_that_do_not_come_out_even():
    module = parse_module(matmul(11, 64, 64), make_context())
    with module.context, mlir.Location.unknown():
        single = generalized(module.body.operations[0])
        kernel = Analysis.of(single.body.operations[0]).default
        assert isinstance(kernel, Kernel)
        schedule = Schedule((Tile(16, 1, 2, 0, 4),))
        assert remarks(kernel, schedule, Target.parse("llvm-cpu:x86_64:znver4")) == [
            "rows: 11 in tiles of 4 leave 3, tiles are 92% full"
        ]
        assert remarks(kernel, Schedule(()), Target.host()) == []
