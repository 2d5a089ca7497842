"""Graphs that random testing found wrong, as small as they could be made; each is called with several inputs."""

from __future__ import annotations

import pytest
from tests.fuzz.check import check
from tests.fuzz.graph import Graph
from tests.fuzz.written import graph, leaf, op

N = (5, 1, 3)  # a dynamic dimension: its size in each call
ALL, NONE = (0, None, 1), (0, 0, 1)

GRAPHS: dict[str, Graph] = {
    # The store of the last column, one lane of i64 sums truncated to i32, wrote over the next row.
    "one_lane_of_a_truncated_vector": graph(
        "onnx", leaf("i32", 17, 2, kind="full", constant=True), leaf("i32", 2, 33, kind="full"), op("matmul", 0, 1)
    ),
    # bf16 constants were read from text with truncation.
    "bf16_constant": graph(
        "onnx", leaf("bf16", 16, 17, 4, kind="whole"), leaf("bf16", 17, 4, kind="wide", constant=True), op("add", 0, 1)
    ),
    "empty_bf16_constant": graph(
        "jax",
        leaf("f32", 2),
        leaf("bf16", 0, 7, constant=True),
        op("roll", 1, axis=0, shift=-3),
        op("exp", 0),
        results=(2, 3),
    ),
    # Products of narrow floats were rounded before they were summed.
    "bf16_dot": graph("mlir", leaf("bf16", 3, 1, 3, 4, kind="whole"), leaf("bf16", 3, 1, 7, 4), op("scores", 0, 1)),
    "f16_grouped_convolution": graph(
        "jax",
        leaf("f16", 2, 6, 9),
        leaf("f16", 6, 3, 3),
        op("conv", 0, 1, groups=2, padding=(1,), strides=(1,), dilations=(1,)),
    ),
    # An absolute value of 16 bits was taken for one without a sign, and left out.
    "absolute_value_of_16_bits": graph("onnx", leaf("i16", 9, kind="full"), op("abs", 0)),
    # 1 + erf(x) was rounded to f16, which has nothing left of it below -3.
    "gelu_of_small_results": graph("torch", leaf("f16", 2, 9, 64, seed=72), op("torch_gelu", 0)),
    # Tensors without elements.
    "empty_slice_is_a_result": graph("jax", leaf("f32", 1, 6), op("slice", 0, slices=((0, 0, 1), (0, 1, 3)))),
    "sum_of_nothing": graph("jax", leaf("f32", 0, 3), op("sum", 0, axes=(0,), keep=True)),
    "product_of_nothing": graph("jax", leaf("i64", 0, N), op("prod", 0, axes=(0,), keep=True)),
    "empty_torch_tensor": graph("torch", leaf("f32", 0, 7, 9, 1), op("sqrt", 0), arguments="tensors"),
    "fill_is_a_result": graph("jax", leaf("bf16", 0), op("prod", 0, axes=(0,), keep=False)),
    "sum_beside_no_elements_and_a_dynamic_dimension": graph(
        "jax", leaf("f32", 0, N, 2), op("sum", 0, axes=(2,), keep=False)
    ),
    # Between its parts and its modulus a complex number is in registers only, and has no vectors.
    "complex_number_in_passing": graph(
        "jax", leaf("f32", 7), leaf("f32", 7, seed=1), op("complex_of_parts", 0, 1), op("modulus", 2)
    ),
    # Dynamic dimensions through StableHLO.
    "composite": graph("jax", leaf("f32", N, 9), op("sinh", 0)),
    # Took a minute: the decomposition's table of coefficients was a loop that LLVM unrolled.
    "erf_composite": graph("mlir", leaf("f32", 9, N), op("gelu", 0)),
    "top_k_composite": graph("jax", leaf("f32", N, 9), op("topk", 0, k=2, indices=False)),
    "dynamic_maximum_of_windows": graph(
        "jax", leaf("f32", N, 4, 7, N), op("pool", 0, kernel=(3, 1), padding=(1, 0), strides=(2, 1), average=False)
    ),
    "dynamic_average_of_windows": graph(
        "jax", leaf("f64", 2, 3, N, N), op("pool", 0, kernel=(3, 3), padding=(1, 1), strides=(1, 3), average=True)
    ),
    "cumulative_sum_beside_a_dynamic_dimension": graph("mlir", leaf("f32", 8, N, 3), op("cumsum", 0, axis=0)),
    "cumulative_sum_of_a_dynamic_dimension": graph("jax", leaf("i8", N, 3), op("cumsum", 0, axis=0)),
    "dynamic_reverse": graph("mlir", leaf("f16", N, 3, N), op("flip", 0, axes=(0, 2))),
    "strided_slice_beside_a_dynamic_dimension": graph(
        "jax", leaf("f32", 9, N), op("slice", 0, slices=((0, 8, 3), ALL))
    ),
    "dynamic_convolution": graph(
        "jax",
        leaf("f32", N, 5, (4, 7, 1), N),
        leaf("f32", 9, 5, 2, 3),
        op("conv", 0, 1, groups=1, padding=(2, 2), strides=(3, 1), dilations=(2, 2)),
    ),
    "dynamic_grouped_convolution": graph(
        "jax",
        leaf("bf16", 3, 8, N),
        leaf("bf16", 16, 2, 2),
        op("conv", 0, 1, groups=4, padding=(1,), strides=(3,), dilations=(2,)),
    ),
    # Holes of a dilated kernel were zeros that met infinite pixels.
    "dilated_convolution_of_infinities": graph(
        "jax",
        leaf("f32", 2, 16, 8, kind="special"),
        leaf("f32", 8, 16, 2),
        op("conv", 0, 1, groups=1, padding=(2,), strides=(1,), dilations=(2,)),
    ),
    # Taps outside of the image are left out; what an infinite weight does there is not compared.
    "padded_convolution_with_infinite_weights": graph(
        "onnx",
        leaf("f32", 1, 3, 9, 9),
        leaf("f32", 16, 3, 3, 3, kind="special"),
        op("conv", 0, 1, groups=1, padding=(1, 1), strides=(2, 2), dilations=(1, 1)),
    ),
    # A window without channels of its own was asked for their number.
    "padded_average_over_two_of_four_dimensions": graph(
        "mlir",
        leaf("f32", N, 7, 33, 1, kind="whole"),
        op("pool", 0, kernel=(2, 1), padding=(1, 0), strides=(3, 1), average=True),
    ),
    "gather_along_a_dynamic_dimension": graph(
        "jax", leaf("i8", N), leaf("i32", 9, kind="index:1"), op("take", 0, 1, axis=0, along=False)
    ),
    "gather_beside_a_dynamic_dimension": graph(
        "mlir", leaf("i32", 33, N), leaf("i32", 3, 2, kind="index:33"), op("take", 0, 1, axis=0, along=False)
    ),
    "sum_beside_no_elements": graph("jax", leaf("f64", 0, 16, 4), op("sum", 0, axes=(1,), keep=True)),
    # Importers divide by sizes, fold too much, or lack a type.
    "linear_layer_of_nothing": graph(
        "torch", leaf("f32", 6, 0, 1), leaf("f32", 4, 1), leaf("f32", 4), op("linear", 0, 1, 2)
    ),
    "nothing_is_added": graph(
        "torch", leaf("bf16", 5), leaf("i64", 0, kind="index:5"), leaf("bf16", 0), op("scatter_add", 0, 1, 2)
    ),
    "nothing_is_added_to_rows": graph(
        "torch",
        leaf("f32", 16, 33),
        leaf("i64", 0, kind="index:16"),
        leaf("f32", 0, 33),
        op("softmax", 0, axis=1, log=True),
        op("scatter_add", 3, 1, 2),
    ),
    "choice_of_equals_torch": graph("torch", leaf("i1", 3, 4), leaf("i8", 1, 4), op("where", 0, 1, 1)),
    "choice_of_equals_onnx": graph("onnx", leaf("i1", 17, 3), leaf("f64", 1, 3), op("where", 0, 1, 1)),
    "product_of_bytes": graph(
        "torch", leaf("i8", 17, 4, kind="full"), leaf("i8", 4, 3, kind="full"), op("matmul", 0, 1)
    ),
    "batched_product_of_shorts": graph(
        "torch", leaf("i16", 2, 7, 4, kind="full"), leaf("i16", 2, 4, 3, kind="full"), op("matmul", 0, 1)
    ),
    "quotient_of_bytes": graph(
        "torch", leaf("u8", 17, kind="full"), leaf("u8", 17, kind="divisor"), op("floor_divide", 0, 1)
    ),
    "quotient_of_shorts": graph(
        "torch", leaf("i8", 7, 2, kind="full"), leaf("i8", kind="divisor"), op("floor_divide", 0, 1)
    ),
    "rest_of_bytes": graph("torch", leaf("u8", 17, kind="full"), leaf("u8", 17, kind="divisor"), op("fmod", 0, 1)),
    "remainder_of_bytes": graph(
        "torch", leaf("u8", 17, kind="full"), leaf("u8", 17, kind="divisor"), op("remainder", 0, 1)
    ),
    "rest_of_bytes_onnx": graph(
        "onnx", leaf("u8", (5, 1, 0), 3, kind="full"), leaf("u8", kind="divisor"), op("fmod", 0, 1)
    ),
    "empty_bytes": graph("onnx", leaf("u8", 17, 0, constant=True), leaf("u8", 0), op("add", 0, 1)),
    "constant_bytes_are_a_result": graph(
        "torch",
        leaf("u8", 9, 3, kind="full", constant=True),
        leaf("f32", 3),
        op("permute", 0, order=(1, 0)),
        op("neg", 1),
        results=(2, 3),
    ),
    "constant_bytes_are_the_result": graph(
        "onnx", leaf("u8", 9, 17, kind="full", constant=True), op("permute", 0, order=(1, 0))
    ),
    "large_constant_bytes": graph(
        "onnx",
        leaf("u8", 99, 33, kind="full", constant=True),
        leaf("u8", 33),
        op("unsqueeze", 0, axis=0),
        op("add", 0, 1),
        results=(2, 3),
    ),
    "negative_integers_torch": graph("torch", leaf("i32", 9, kind="full"), op("neg", 0)),
    "negative_integers_onnx": graph("onnx", leaf("i64", 9, kind="full"), op("neg", 0)),
    "negative_bytes": graph("torch", leaf("u8", 9, kind="full"), op("neg", 0)),
    "floor_of_long_quotients": graph(
        "torch", leaf("i64", 9, kind="full"), leaf("i64", 9, kind="divisor"), op("floor_divide", 0, 1)
    ),
    "minimum_of_nan": graph("torch", leaf("f32", 64, kind="special"), leaf("f32", 64), op("minimum", 0, 1)),
    "maximum_of_nan": graph("onnx", leaf("bf16", 64, kind="special"), leaf("bf16", 64), op("maximum", 0, 1)),
    "bytes_and_numbers": graph("torch", leaf("i8", 9, kind="full"), op("scalar_affine", 0, scale=3, offset=5)),
    "bytes_times_one": graph("torch", leaf("i8"), op("scalar_affine", 0, scale=1, offset=1)),
    "long_roll": graph("torch", leaf("f32", 3, 4), op("roll", 0, axis=0, shift=5)),
    "long_roll_of_complex_numbers": graph("torch", leaf("c64", 3, 4), op("roll", 0, axis=0, shift=-4)),
    "long_roll_of_a_dynamic_dimension": graph("torch", leaf("f32", (5, 1, 2), 4), op("roll", 0, axis=0, shift=3)),
    # Complex numbers became pairs with the sizes of the example.
    "padded_complex_numbers": graph("torch", leaf("c64", N, (4, 7, 1)), op("pad", 0, pads=((0, 3), (1, 0)), fill=0)),
    "product_of_complex_numbers": graph(
        "torch", leaf("c64", N, (4, 7, 1)), leaf("c64", (4, 7, 1), 3), op("complex_matmul", 0, 1)
    ),
    "empty_reshape": graph("onnx", leaf("f32", 0, 5, 4), op("reshape", 0, shape=(0, 3))),
    "empty_product": graph("onnx", leaf("i32", 0, 2, 16), leaf("i32", 16, 5), op("matmul", 0, 1)),
    # The importer aborts on norms of one element, and knows products of static shapes only.
    "logarithm_of_one_exponential": graph(
        "onnx", leaf("f32", 1), leaf("i1", 0, 3), op("log_sum_exp", 0, axes=(0,), keep=True), results=(1, 2)
    ),
    "product_beside_a_dynamic_dimension": graph("onnx", leaf("i64", 4, 1, N), op("prod", 0, axes=(1,), keep=True)),
    "product_of_a_dynamic_dimension": graph("onnx", leaf("f32", 4, (5, 1, 0), 3), op("prod", 0, axes=(1,), keep=False)),
    "choice_of_equals_beside_dynamic_dimensions": graph(
        "onnx", leaf("i1", 3), leaf("f32", N, N, 3), op("where", 0, 1, 1)
    ),
    "choice_of_equals_by_a_scalar": graph("onnx", leaf("i1"), leaf("f32", N, 3), op("where", 0, 1, 1)),
    # The standard's body for these is in f32.
    "layer_norm_of_doubles": graph(
        "onnx", leaf("f64", 33, 7), leaf("f64", 7), leaf("f64", 7), op("normalize", 0, 1, 2, centre=True, eps=2.0**-10)
    ),
    "norm_of_doubles": graph(
        "onnx",
        leaf("f64", 3, N, 7),
        leaf("f64", 7),
        leaf("f64", 7),
        op("normalize", 0, 1, 2, centre=False, eps=2.0**-10),
    ),
    "nothing_joined_with_nothing": graph("torch", leaf("f32", 3, 0, 4), op("concat", 0, 0, axis=1)),
    "nothing_stacked_on_nothing": graph("torch", leaf("i32", 6, 0, N), op("stack", 0, 0, axis=1)),
    "nothing_joined_with_nothing_onnx": graph("onnx", leaf("f32", 3, 0, 4), op("concat", 0, 0, axis=1)),
    # NaN became the lower bound.
    "clamped_nan_torch": graph("torch", leaf("f32", 64, kind="wide"), op("sqrt", 0), op("clamp", 1, low=1, high=2)),
    "clamped_nan_onnx": graph("onnx", leaf("f32", 64, kind="wide"), op("sqrt", 0), op("clamp", 1, low=1, high=2)),
    # The importer computes with small constants: it reads past the end of them, or makes literals of the wrong type.
    "slice_of_a_constant": graph(
        "torch", leaf("i32", 127, kind="full", constant=True), op("slice", 0, slices=((0, 14, 3),))
    ),
    "constant_truths_as_bytes": graph("torch", leaf("i1", 16, kind="full", constant=True), op("cast", 0, dtype="u8")),
    "complex_constant": graph("torch", leaf("c64", 1, 65, 1, kind="full", constant=True), op("complex_neg", 0)),
    "bytes_that_are_a_result": graph(
        "torch", leaf("u8", 2000, kind="full", constant=True), leaf("f32", 3), op("exp", 1), results=(0, 2)
    ),
    "no_places_beside_a_dynamic_dimension": graph(
        "onnx", leaf("f32", 3, 17, 4), leaf("i32", 0, N, kind="index:17"), op("take", 0, 1, axis=1, along=False)
    ),
    # The importers take NaN for equal to itself.
    "equal_to_itself_torch": graph("torch", leaf("f32", 65, 7, kind="special"), op("eq", 0, 0)),
    "equal_to_itself_onnx": graph("onnx", leaf("f16", 65, 7, kind="special"), op("eq", 0, 0)),
    # The instruction that rounds to bf16 takes subnormal numbers for zero.
    "largest_is_subnormal": graph("jax", leaf("bf16", 2, kind="special", seed=95), op("amax", 0, axes=(0,), keep=True)),
    # The importer divided by the size of a dimension.
    "repeats_of_nothing": graph("torch", leaf("f32", (4, 7, 1), (5, 1, 0)), op("tile", 0, repeats=(3, 2))),
    # LLVM made vectors of 40 bfloats out of plain loops, and could not select instructions for them.
    "averages_of_bf16_in_plain_loops": graph(
        "onnx",
        leaf("bf16", 4, 6, 2, 6),
        op("pool", 0, kernel=(1, 2), padding=(0, 1), strides=(2, 1), average=True),
        disable=("rows",),
    ),
    "cast_to_i16": graph("onnx", leaf("f32", 7, kind="whole"), op("cast", 0, dtype="i16")),
    # Held as integers, bf16 is read with a function that was declared for integers already.
    "bf16_beside_i16": graph(
        "jax", leaf("bf16", 1, 3), leaf("i16", 3, kind="shift"), op("cast", 0, dtype="i16"), op("shift_left", 2, 1)
    ),
    # One matrix was multiplied with none.
    "empty_batch_and_one_matrix": graph(
        "onnx", leaf("i64", (5, 1, 0), (5, 1, 0), (5, 1, 0)), leaf("i64", 1, (5, 1, 0), 16), op("matmul", 0, 1)
    ),
    "one_matrix_and_an_empty_batch": graph(
        "onnx", leaf("f32", 1, 4, 7), leaf("f32", (5, 1, 0), 7, 3), op("matmul", 0, 1)
    ),
    # Upstream's lowering of a reshape of an unsigned scalar to itself ended the process.
    "reshape_of_one_byte": graph("jax", leaf("u8"), op("reshape", 0, shape=())),
    # JAX corrects divisions of sizes by comparing signs, which were not seen as sizes.
    "dynamic_windows_repeated": graph(
        "jax",
        leaf("f32", 8, 7, 3, N),
        op("pool", 0, kernel=(1, 3), padding=(0, 1), strides=(2, 2), average=False),
        op("upsample", 1, factor=2),
    ),
    "flattened_dynamic_windows": graph(
        "jax",
        leaf("f16", N, N, N, 1, kind="positive"),
        op("pool", 0, kernel=(1, 4), padding=(0, 2), strides=(2, 3), average=True),
        op("slice", 1, slices=(ALL, ALL, (1, None, 1), (0, 1, 3))),
        op("flatten", 2, start=0, end=1),
    ),
    "complex_constant_is_a_result": graph(
        "torch", leaf("c64", 17, 1), leaf("c64", 17, 1, constant=True), op("complex_add", 1, 0), results=(1, 2)
    ),
    # The importer compares floats with the integer zero: of one constant it is wrong, on several the process ends.
    "sign_of_a_constant": graph("onnx", leaf("f32", kind="positive", constant=True), op("sign", 0)),
    "signs_of_constants": graph("onnx", leaf("f64", 4, constant=True), op("sign", 0)),
    "sign_of_a_folded_constant": graph(
        "torch",
        leaf("f32", 2, 5, kind="unit", constant=True),
        op("variance", 0, axes=(0, 1), keep=True, correction=0),
        op("sort", 1, axis=0, descending=False),
        op("sign", 2),
    ),
    # Powers overflowed in the sum.
    "logarithm_of_large_exponentials": graph(
        "onnx",
        leaf("f32", 1, 127, 5, 2),
        op("scalar_affine", 0, scale=100, offset=1),
        op("log_sum_exp", 1, axes=(0, 1), keep=False),
    ),
    "logarithm_of_large_exponentials_f16": graph(
        "onnx",
        leaf("f16", N, 9, kind="whole"),
        op("scalar_affine", 0, scale=10, offset=0),
        op("log_sum_exp", 1, axes=(1,), keep=True),
    ),
}


# Importers took bytes for signed in all of these.
BYTES, OTHER = leaf("u8", 6, 5, kind="full"), leaf("u8", 5, kind="divisor")
for frontend in ("torch", "onnx"):
    GRAPHS |= {
        f"largest_bytes_{frontend}": graph(frontend, BYTES, op("topk", 0, k=2, indices=False)),
        f"places_of_largest_bytes_{frontend}": graph(frontend, BYTES, op("topk", 0, k=2, indices=True)),
        f"quotient_of_bytes_{frontend}": graph(frontend, BYTES, OTHER, op("truncate_divide", 0, 1)),
        f"magnitude_of_bytes_{frontend}": graph(frontend, BYTES, op("abs", 0)),
    }
GRAPHS |= {
    "sorted_bytes": graph("torch", BYTES, op("sort", 0, axis=1, descending=False)),
    "places_of_sorted_bytes": graph("torch", BYTES, op("argsort", 0, axis=0, descending=True)),
    "bytes_and_floats": graph("torch", BYTES, leaf("f32", 5), op("mixed_mul", 0, 1)),
    "bytes_and_signed_bytes": graph("torch", BYTES, leaf("i8", 5, kind="full"), op("mixed_mul", 0, 1)),
    "bytes_and_truths": graph("torch", BYTES, leaf("i1", 5), op("mixed_mul", 0, 1)),
    "no_bytes_and_no_truths": graph("torch", leaf("u8", 0, 3), leaf("i1", 0, 3), op("mixed_mul", 0, 1)),
    "bytes_and_integers": graph("torch", BYTES, leaf("i64", 5), op("mixed_mul", 0, 1)),
}


# Sums overflowed before they were divided.
LARGE = leaf("f16", 1, 2, 8, 8, kind="unit"), op("scalar_affine", 0, scale=1, offset=60000)
for frontend in ("torch", "onnx"):
    GRAPHS |= {
        f"average_of_large_windows_{frontend}": graph(
            frontend, *LARGE, op("pool", 1, kernel=(4, 4), padding=(1, 2), strides=(3, 1), average=True)
        ),
        f"mean_of_large_numbers_{frontend}": graph(frontend, *LARGE, op("mean", 1, axes=(2, 3), keep=False)),
    }

GRAPHS |= {
    # Small constants are computed with while a model is read.
    "sum_of_no_constants": graph(
        "onnx",
        leaf("f32", 2),
        leaf("f32", 1, 64, 0, constant=True),
        op("sum", 1, axes=(1, 2), keep=True),
        results=(0, 2),
    ),
    "sum_of_constants_that_wraps_around": graph(
        "onnx",
        leaf("f32", 2),
        leaf("i64", 1, 33, kind="full", seed=32, constant=True),
        op("sum", 1, axes=(1,), keep=True),
        results=(0, 2),
    ),
}

# Unsigned constants were invalid between two steps of the lowering.
for dtype in ("u8", "u16", "u32", "u64"):
    for shape in ((4,), (33, 40)):
        held = leaf(dtype, *shape, kind="full", constant=True)
        GRAPHS[f"constant_of_{dtype}_{len(shape)}d"] = graph(
            "onnx", leaf("f32", 2), held, op("add", 1, 1), op("abs", 1), results=(0, 1, 2, 3)
        )

GRAPHS |= {
    "running_sum_of_constants": graph(
        "onnx", leaf("f32", 2), leaf("i64", 5, constant=True), op("cumsum", 1, axis=0), results=(0, 2)
    ),
    "constant_without_a_sign": graph(
        "onnx", leaf("f32", 2), leaf("i16", 65, kind="full", constant=True), op("cast", 1, dtype="u16"), results=(0, 2)
    ),
}

# Bytes were compared with their bounds as signed numbers.
for dtype in ("u8", "u16", "u32", "u64"):
    GRAPHS[f"bounds_of_{dtype}"] = graph("onnx", leaf(dtype, 33, kind="full"), op("clamp", 0, low=1, high=100))

# Batches of one matrix beside open ones that may be empty; one was taken for the larger. Integers had one open size.
MAYBE_NONE = (5, 1, 0)
for number, (one, other) in enumerate(
    [
        ((MAYBE_NONE, 2, 3, 4), (1, 2, 4, 5)),
        ((2, 1, 3, 4), (2, MAYBE_NONE, 4, 5)),
        ((MAYBE_NONE, 1, 3, 4), (1, MAYBE_NONE, 4, 5)),
        ((0, MAYBE_NONE, 3, 4), (1, MAYBE_NONE, 4, 5)),
        ((MAYBE_NONE, 3, 3, 4), (4, 5)),
    ]
):
    for dtype in ("f32", "i64"):
        GRAPHS[f"batches_of_{dtype}_beside_one_{number}"] = graph(
            "onnx", leaf(dtype, *one), leaf(dtype, *other, seed=1), op("matmul", 0, 1)
        )

GRAPHS |= {
    # Sizes were quotients by sizes that are 0.
    "batches_of_open_matrices_all_open": graph(
        "onnx",
        leaf("i32", MAYBE_NONE, MAYBE_NONE, 5, MAYBE_NONE),
        leaf("i32", MAYBE_NONE, 1, MAYBE_NONE, 3),
        op("matmul", 0, 1),
    ),
    "ones_of_the_shape_of_a_product": graph(
        "torch",
        leaf("u8", MAYBE_NONE, MAYBE_NONE, MAYBE_NONE, 1),
        leaf("u8", MAYBE_NONE, MAYBE_NONE, 1, 1),
        op("matmul", 0, 1),
        op("any_ones_like", 2),
    ),
    # A constant of unsigned numbers was a literal of signed ones.
    "numbers_without_a_sign": graph("torch", leaf("u8", 7, 4), op("full_like_type", 0, dtype="u32", size=0)),
    # Upstream forgot that a choice has the shape of all three.
    "choice_of_what_is_one_value": graph(
        "onnx", leaf("f16"), leaf("i1", 5, 9), op("expand", 0, shape=()), op("where", 1, 2, 0), op("sqrt", 3)
    ),
    "constant_choice_torch": graph(
        "torch",
        leaf("f32", MAYBE_NONE, 4, MAYBE_NONE, 1),
        leaf("f32", 1, 1, kind="positive", constant=True),
        op("any_heaviside", 1, 0),
        op("aminmax", 2, dim=3, result=0),
        op("any_abs", 3),
    ),
    **{
        f"constant_choice_onnx_{number}": graph(
            "onnx",
            leaf("i1", 1, 1, constant=True, seed=number),
            leaf("f32", MAYBE_NONE, 4, 3),
            leaf("f32", 1, 1, constant=True),
            op("where", 0, 1, 2),
            op("where", 0, 2, 1),
            results=(3, 4),
        )
        for number in (1, 2)
    },
    # NaN became the lower bound.
    "bounded_nan": graph(
        "torch", leaf("f32", 64, kind="special"), op("torch_hardtanh", 0), op("torch_relu6", 0), results=(1, 2)
    ),
    # With torch 2.11 alone: it has no form of its own for one image.
    "windows_of_one_image": graph(
        "torch",
        leaf("f32", 2, 6, 3),
        op(
            "torch_max_pool2d",
            0,
            kernel=(2, 1),
            stride=2,
            padding=(0, 0),
            ceil=False,
            indices=True,
            result=1,
            dilation=1,
        ),
    ),
    "constant_choice_of_bytes": graph(
        "torch",
        leaf("i1", constant=True, seed=1),
        leaf("i1", constant=True, seed=2),
        leaf("u8", kind="full"),
        leaf("f16"),
        op("where_number", 0, 2, 3),
        op("where_number", 1, 2, 3),
        results=(4, 5),
    ),
    # The part without elements lies where the result does, which was taken for writing in place.
    "roll_of_one": graph("torch", leaf("f32", 5, 4, 1), op("roll", 0, axis=2, shift=-3), op("any_copysign", 1, 0)),
}


@pytest.mark.parametrize("target", ["llvm-cpu", "vmvx"])
@pytest.mark.parametrize("name", GRAPHS)
def test_graph(name, target):
    found = GRAPHS[name].for_target(target)
    outcome = check(found)
    assert outcome.kind == "passed", f"{outcome.kind} {outcome.detail}\n{found}"
