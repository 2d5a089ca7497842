"""A slice of the ONNX node tests that runs in a minute: each family once, and one of each kind of rewrite."""

from __future__ import annotations

import functools

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from tests.conformance.onnx import report  # noqa: E402
from tests.conformance.onnx.cases import Case, collect  # noqa: E402
from tests.conformance.onnx.check import Outcome, Status, check, compare  # noqa: E402

NAMES = """
abs add_bcast add_uint8 and2d argmax_default_axis_example averagepool_2d_pads basic_conv_with_padding
batchnorm_example cast_FLOAT_to_FLOAT16 ceil_example clip concat_3d_axis_2 constantofshape_float_ones
convtranspose cumsum_1d depthtospace_example div_example dropout_default_mask elu erf expand_dim_changed
flatten_axis2 gather_0 gather_elements_1 gathernd_example_int32 gelu_tanh_1 gemm_all_attributes gru_defaults
identity instancenorm_example layer_normalization_2d_axis1 logsoftmax_axis_1 lstm_defaults matmul_3d
maxpool_2d_default mean_example mod_int64_fmod nonzero_example onehot_with_axis pow prelu_broadcast
qlinearmatmul_2D_uint8_float32 reduce_max_empty_set reduce_mean_keepdims_example relu scatter_elements_with_axis
shape_end_1 slice softmax_axis_1 split_equal_parts_1d_opset18 top_k transpose_all_permutations_0 tril where_example
affine_grid_2d attention_4d_gqa col2im_strides cumprod_1d_reverse_exclusive det_nd dft_rfft stft_with_window
basic_deform_conv_with_padding gridsample_bicubic l2normalization_axis_0 linear_attention_linear matmul_1d_3d
maxunpool_export_with_output_shape resize_downsample_scales_cubic_antialias rms_normalization_2d_axis0 scan9_sum
slice_neg_steps tensorscatter wrap_pad
adam attention_4d_causal_bf16 compress_1 convtranspose_group_2 dft_inverse flexattention_score_mod gru_bidirectional if
loop11 lppool_2d_dilations lstm_with_peepholes nonmaxsuppression_two_batches roialign_mode_max scan_sum
scatter_elements_with_reduction_max swiglu tfidfvectorizer_tf_batch_uniandbigrams_skip5 training_dropout_mask
unique_sorted_with_axis affine_grid_2d_expanded
""".split()


@functools.cache
def cases() -> dict[str, Case]:
    return {case.name: case for case in collect()}


@pytest.mark.parametrize("name", NAMES)
def test_node(name):
    case = cases()[f"test_{name}"]
    outcome = check(case)
    assert outcome.status in report.PASSED, outcome.reason


def test_unsupported_is_refused_with_the_operator():
    outcome = check(cases()["test_string_concat"])
    assert outcome.status is Status.UNSUPPORTED
    assert "STRING" in outcome.reason


def test_comparison_finds_wrong_numbers_shapes_and_types():
    x = np.ones((2, 3), np.float32)
    assert compare([x], [x], 1e-3, 1e-7) is None
    assert "differs" in compare([x], [x * 1.01], 1e-3, 1e-7)
    assert "shape" in compare([x], [x.T], 1e-3, 1e-7)
    assert "type" in compare([x], [x.astype(np.float64)], 1e-3, 1e-7)
    assert "outputs" in compare([x], [x, x], 1e-3, 1e-7)
    assert "differs" in compare([x * np.nan], [x], 1e-3, 1e-7)


def test_report_replaces_only_its_own_section():
    case = cases()["test_abs"]
    text = report.section([(case, Outcome(Status.WRONG, "off by one"))], 1.0, 2)
    assert "| Abs | wrong | yes | 1 | test_abs | off by one |" in text
    once = report.replace_section("# Conformance\n\n## JAX\n\nrest\n", text)
    assert report.replace_section(once, text) == once
    assert once.startswith("# Conformance") and once.count("## ONNX") == 1 and "rest" in once
