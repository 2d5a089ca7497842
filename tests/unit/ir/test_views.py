"""Chains of reshapes, transposes and slices as one linear map."""

from __future__ import annotations

import numpy as np
from torch_mlir import ir as mlir

from eyas.ir import make_context, parse_module
from eyas.ir.views import Digit, Dim, is_contiguous_along, linear_map, regroup, trace
from eyas.ir.walk import find_ops

CHAIN = """
func.func @main(%x: tensor<5x36xf32>) -> tensor<2x5x6xf32> {
  %0 = tensor.expand_shape %x [[0], [1, 2, 3]] output_shape [5, 3, 2, 6] : tensor<5x36xf32> into tensor<5x3x2x6xf32>
  %e = tensor.empty() : tensor<3x2x5x6xf32>
  %1 = linalg.transpose ins(%0 : tensor<5x3x2x6xf32>) outs(%e : tensor<3x2x5x6xf32>) permutation = [1, 2, 0, 3]
  %2 = tensor.extract_slice %1[2, 0, 0, 0] [1, 2, 5, 6] [1, 1, 1, 1] : tensor<3x2x5x6xf32> to tensor<1x2x5x6xf32>
  %3 = tensor.collapse_shape %2 [[0, 1], [2], [3]] : tensor<1x2x5x6xf32> into tensor<2x5x6xf32>
  return %3 : tensor<2x5x6xf32>
}
"""


def test_a_chain_is_one_map():
    module = parse_module(CHAIN, make_context())
    with module.context, mlir.Location.unknown():
        result = find_ops(module, "func.return")[0].operands[0]
        root, index = trace(result, (Dim((Digit(0, 2),)), Dim((Digit(1, 5),)), Dim((Digit(2, 6),))))
        assert isinstance(root.owner, mlir.Block)
        found = linear_map(index, 3)
        x = np.arange(5 * 36).reshape(5, 36)
        expected = x.reshape(5, 3, 2, 6).transpose(1, 2, 0, 3)[2]
        for h, m, d in np.ndindex(2, 5, 6):
            # The map's text is evaluated, so that the test does not repeat its construction.
            place = eval(str(found).split("->")[1], {"d0": h, "d1": m, "d2": d})
            assert x[place] == expected[h, m, d]
        assert is_contiguous_along(index, 2) and not is_contiguous_along(index, 1)


def test_a_part_of_a_dimension_cannot_be_regrouped():
    whole = (Dim((Digit(0, 4), Digit(1, 6))),)
    assert regroup(whole, [4, 6]) == (Dim((Digit(0, 4),)), Dim((Digit(1, 6),)))
    assert regroup(whole, [1, 24, 1]) == (Dim(), whole[0], Dim())
    assert regroup(whole, [8, 3]) is None
    assert regroup((Dim((Digit(0, 4),), offset=4),), [2, 2]) is None
    assert regroup((Dim((Digit(0, 4),), offset=4), Dim((Digit(1, 6),))), [24]) is None


def test_sizes_that_are_not_covered():
    assert regroup((Dim((Digit(0, 4),)),), [8]) is None
    assert regroup((Dim((Digit(0, 4),)),), [2]) is None


FIRST = """
func.func @main(%x: tensor<48x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = tensor.expand_shape %x [[0, 1], [2]] output_shape [12, 4, 8] : tensor<48x8xf32> into tensor<12x4x8xf32>
  %1 = tensor.extract_slice %0[0, 0, 0] [1, 4, 8] [1, 1, 1] : tensor<12x4x8xf32> to tensor<1x4x8xf32>
  %2 = tensor.extract_slice %0[11, 0, 0] [1, 4, 8] [1, 1, 1] : tensor<12x4x8xf32> to tensor<1x4x8xf32>
  %3 = tensor.collapse_shape %1 [[0, 1], [2]] : tensor<1x4x8xf32> into tensor<4x8xf32>
  %4 = tensor.collapse_shape %2 [[0, 1], [2]] : tensor<1x4x8xf32> into tensor<4x8xf32>
  return %3, %4 : tensor<4x8xf32>, tensor<4x8xf32>
}
"""


def test_a_loop_is_not_the_index_of_a_longer_dimension():
    module = parse_module(FIRST, make_context())
    with module.context, mlir.Location.unknown():
        first, last = find_ops(module, "func.return")[0].operands
        rows = (Dim((Digit(0, 4),)), Dim((Digit(1, 8),)))
        root, _ = trace(first, rows)
        assert mlir.RankedTensorType(root.type).shape == [12, 4, 8]
        root, index = trace(last, rows)
        assert mlir.RankedTensorType(root.type).shape == [48, 8]
        assert str(linear_map(index, 2)).endswith("(d0 + 44, d1)")
