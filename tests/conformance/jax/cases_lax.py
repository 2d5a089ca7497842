"""jax.lax: control flow, gather and scatter, sorting, windows, convolutions; FFT, linear algebra and random numbers."""

# One case a line.
# ruff: noqa: E501

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from tests.conformance.jax.case import Case, complexes, hermitian, integers, normal, positive_definite

X = normal(4, 8)
ROWS = integers(0, 4, 6)
IMAGE = normal(2, 8, 8, 4)
NHWC = ("NHWC", "HWIO", "NHWC")


def conv(x, w, strides=(1, 1), padding="SAME", **options):
    return lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=NHWC, **options)


def conv_gradients(**options):
    return jax.grad(lambda x, w: (conv(x, w, **options) ** 2).sum(), argnums=(0, 1))


def pool(x, init, op, window=3, strides=2, padding="VALID"):
    return lax.reduce_window(x, init, op, (1, window, window, 1), (1, strides, strides, 1), padding)


def key(seed):
    return jax.random.key(seed)


CASES = [
    # Control flow.
    Case("lax/cond", lambda p, x: lax.cond(p > 0, jnp.sin, jnp.cos, x), (np.int32(1), X)),
    Case("lax/cond_false", lambda p, x: lax.cond(p > 0, jnp.sin, jnp.cos, x), (np.int32(-1), X)),
    Case("lax/switch", lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh, lambda v: v * 2], x), (np.int32(2), X)),
    Case("lax/switch_clamped", lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x), (np.int32(9), X)),
    Case("lax/switch_negative", lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x), (np.int32(-4), X)),
    Case("lax/fori_loop", lambda x: lax.fori_loop(0, 5, lambda i, v: v * 0.9 + i, x), (X,)),
    Case("lax/fori_loop_dynamic", lambda n, x: lax.fori_loop(0, n, lambda i, v: v * 0.9 + i, x), (np.int32(7), X)),
    Case("lax/while_loop", lambda x: lax.while_loop(lambda v: v.sum() < 100, lambda v: v * 1.5 + 1, x), (X,)),
    Case("lax/scan_rnn", lambda h, xs, w: lax.scan(lambda c, x: (jnp.tanh(c @ w + x), c.sum()), h, xs), (normal(2, 8), normal(6, 2, 8), normal(8, 8) * 0.3)),
    Case("lax/scan_reverse", lambda xs: lax.scan(lambda c, x: (c + x, c * x), jnp.zeros(8), xs, reverse=True), (X,)),
    Case("lax/scan_gradient", jax.grad(lambda w, xs: lax.scan(lambda c, x: (jnp.tanh(c @ w + x), c), jnp.zeros(8), xs)[0].sum()), (normal(8, 8) * 0.3, X)),
    Case("lax/map", lambda xs: lax.map(lambda x: jnp.sort(x)[:2].sum(), xs), (X,)),
    Case("lax/associative_scan", lambda xs: lax.associative_scan(jnp.maximum, xs, axis=1), (X,)),
    Case("lax/nested_loops", lambda x: lax.fori_loop(0, 3, lambda i, v: lax.cond(i % 2 == 0, lambda u: u + 1, lambda u: lax.fori_loop(0, i, lambda j, w: w * 2, u), v), x), (X,)),
    Case("lax/vmap_cond", jax.vmap(lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x)), (X,)),
    # Gather, scatter, slices.
    Case("lax/dynamic_slice", lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 3)), (X, np.int32(1), np.int32(4))),
    Case("lax/dynamic_slice_clamped", lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 3)), (X, np.int32(9), np.int32(-1))),
    Case("lax/dynamic_update_slice", lambda x, u, i: lax.dynamic_update_slice(x, u, (i, 1)), (X, normal(2, 3), np.int32(9))),
    Case("lax/scatter_set", lambda x, i, u: x.at[i].set(u), (X, np.int32([2, 0]), normal(2, 8))),
    Case("lax/scatter_add", lambda x, i, u: x.at[i].add(u), (X, ROWS, normal(6, 8))),
    Case("lax/scatter_multiply", lambda x, i, u: x.at[i].multiply(u), (X, ROWS, normal(6, 8))),
    Case("lax/scatter_max", lambda x, i, u: x.at[i].max(u), (X, ROWS, normal(6, 8))),
    Case("lax/scatter_min", lambda x, i, u: x.at[:, i].min(u), (X, ROWS, normal(4, 6))),
    Case("lax/scatter_point", lambda x, i, j: x.at[i, j].add(1.0), (X, ROWS, integers(0, 8, 6))),
    Case("lax/scatter_drop", lambda x, i, u: x.at[i].add(u, mode="drop"), (X, integers(-9, 9, 6), normal(6, 8))),
    Case("lax/scatter_clip", lambda x, i, u: x.at[i].add(u, mode="clip"), (X, integers(-9, 9, 6), normal(6, 8))),
    Case("lax/scatter_slice", lambda x, u: x.at[1:3, 2:6].set(u), (X, normal(2, 4))),
    Case("lax/scatter_apply", lambda x, i: x.at[i].apply(jnp.sin), (X, np.int32([1, 3]))),
    Case("lax/scatter_int", lambda x, i: x.at[i].add(1), (np.zeros(8, np.int32), integers(0, 8, 30))),
    Case("lax/scatter_u8", lambda x, i: x.at[i].max(np.uint8(200)), (integers(0, 255, 8, dtype="uint8"), integers(0, 8, 3))),
    Case("lax/scatter_bf16", lambda x, i, u: x.astype(jnp.bfloat16).at[i].set(u.astype(jnp.bfloat16)).astype(jnp.float32), (X, np.int32([2, 0]), normal(2, 8))),
    Case("lax/scatter_vmap", jax.vmap(lambda x, i, u: x.at[i].add(u)), (X, integers(0, 8, 4, 3), normal(4, 3))),
    Case("lax/gather_vmap", jax.vmap(lambda x, i: x[i]), (X, integers(0, 8, 4, 3))),
    Case("lax/gather_gradient", jax.grad(lambda t, i: (t[i] ** 2).sum()), (X, ROWS)),
    Case("lax/take_along_axis_gradient", jax.grad(lambda t, i: (jnp.take_along_axis(t, i, 1) ** 2).sum()), (X, integers(0, 8, 4, 3))),
    Case("lax/dynamic_slice_gradient", jax.grad(lambda x, i: (lax.dynamic_slice(x, (i, 0), (2, 8)) ** 2).sum()), (X, np.int32(1))),
    Case("lax/segment_sum", lambda x, i: jax.ops.segment_sum(x, i, 3), (normal(10, 4), integers(0, 3, 10))),
    Case("lax/segment_max", lambda x, i: jax.ops.segment_max(x, i, 3), (normal(10, 4), np.int32([0, 1, 2, 0, 1, 2, 0, 1, 2, 0]))),
    # Sorting.
    Case("lax/sort", jnp.sort, (X,)),
    Case("lax/sort_axis0", lambda x: jnp.sort(x, axis=0), (X,)),
    Case("lax/sort_descending", lambda x: jnp.sort(x, descending=True), (X,)),
    Case("lax/sort_nan", jnp.sort, (np.float32([3, np.nan, -np.inf, 0, -0.0, np.inf, 1]),)),
    Case("lax/sort_int", jnp.sort, (integers(-50, 50, 3, 33),)),
    Case("lax/sort_u8", jnp.sort, (integers(0, 255, 33, dtype="uint8"),)),
    Case("lax/sort_bf16", lambda x: jnp.sort(x.astype(jnp.bfloat16)).astype(jnp.float32), (X,)),
    Case("lax/sort_large", jnp.sort, (normal(5000),)),
    Case("lax/argsort_stable", jnp.argsort, (integers(0, 4, 3, 20),)),
    Case("lax/sort_key_value", lambda k, v: lax.sort((k, v), num_keys=1), (integers(0, 9, 20), normal(20))),
    Case("lax/sort_two_keys", lambda k, v: lax.sort((k, v), num_keys=2), (integers(0, 3, 20), normal(20))),
    Case("lax/lexsort", lambda a, b: jnp.lexsort((a, b)), (integers(0, 3, 20), integers(0, 3, 20, seed=1))),
    Case("lax/top_k", lambda x: lax.top_k(x, 3), (X,)),
    Case("lax/top_k_int", lambda x: lax.top_k(x, 3), (integers(0, 9, 4, 8),)),
    Case("lax/sort_gradient", jax.grad(lambda x: (jnp.sort(x, axis=1) * jnp.arange(8.0)).sum()), (X,)),
    Case("lax/top_k_gradient", jax.grad(lambda x: (lax.top_k(x, 3)[0] ** 2).sum()), (X,)),
    Case("lax/cummax_cummin", lambda x: (lax.cummax(x, 1), lax.cummin(x, 0)), (X,)),
    Case("lax/cumlogsumexp", lambda x: lax.cumlogsumexp(x, 1), (X,)),
    Case("lax/cumsum_reverse", lambda x: lax.cumsum(x, 1, reverse=True), (X,)),
    # Windows.
    Case("lax/max_pool", lambda x: pool(x, -jnp.inf, lax.max), (IMAGE,)),
    Case("lax/max_pool_same", lambda x: pool(x, -jnp.inf, lax.max, padding="SAME"), (IMAGE,)),
    Case("lax/avg_pool_same", lambda x: pool(x, 0.0, lax.add, padding="SAME"), (IMAGE,)),
    Case("lax/min_pool_dilated", lambda x: lax.reduce_window(x, jnp.inf, lax.min, (1, 2, 2, 1), (1, 1, 1, 1), "VALID", window_dilation=(1, 2, 2, 1)), (IMAGE,)),
    Case("lax/max_pool_gradient", jax.grad(lambda x: (pool(x, -jnp.inf, lax.max) ** 2).sum()), (IMAGE,)),
    Case("lax/max_pool_same_gradient", jax.grad(lambda x: (pool(x, -jnp.inf, lax.max, padding="SAME") ** 2).sum()), (IMAGE,)),
    Case("lax/avg_pool_gradient", jax.grad(lambda x: (pool(x, 0.0, lax.add) ** 2).sum()), (IMAGE,)),
    Case("lax/reduce_custom", lambda x: lax.reduce(x, np.float32(1), lambda a, b: a * b + a * 0, (1,)), (X,)),
    Case("lax/reduce_precision", lambda x: lax.reduce_precision(x, 5, 7), (X,)),
    # Convolutions.
    Case("lax/conv", conv, (IMAGE, normal(3, 3, 4, 6))),
    Case("lax/conv_strided", lambda x, w: conv(x, w, (2, 2), "VALID"), (IMAGE, normal(3, 3, 4, 6))),
    Case("lax/conv_dilated", lambda x, w: conv(x, w, rhs_dilation=(2, 2)), (IMAGE, normal(3, 3, 4, 6))),
    Case("lax/conv_grouped", lambda x, w: conv(x, w, feature_group_count=2), (IMAGE, normal(3, 3, 2, 6))),
    Case("lax/conv_depthwise", lambda x, w: conv(x, w, feature_group_count=4), (IMAGE, normal(3, 3, 1, 4))),
    Case("lax/conv_depthwise_multiplier", lambda x, w: conv(x, w, feature_group_count=4), (IMAGE, normal(3, 3, 1, 8))),
    Case("lax/conv_nchw", lambda x, w: lax.conv(x, w, (1, 1), "SAME"), (normal(2, 4, 8, 8), normal(6, 4, 3, 3))),
    Case("lax/conv_1d", lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")), (normal(2, 9, 4), normal(3, 4, 5))),
    Case("lax/conv_3d", lambda x, w: lax.conv_general_dilated(x, w, (1, 1, 1), "SAME"), (normal(1, 2, 5, 5, 5), normal(3, 2, 3, 3, 3))),
    Case("lax/conv_transpose", lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=NHWC), (IMAGE, normal(3, 3, 4, 6))),
    Case("lax/conv_batch_groups", lambda x, w: conv(x, w, batch_group_count=2), (IMAGE, normal(3, 3, 4, 6))),
    Case("lax/conv_gradients", conv_gradients(), (IMAGE, normal(3, 3, 4, 6)), 1e-4, 1e-3),
    Case("lax/conv_strided_gradients", conv_gradients(strides=(2, 2)), (IMAGE, normal(3, 3, 4, 6)), 1e-4, 1e-3),
    Case("lax/conv_dilated_gradients", conv_gradients(rhs_dilation=(2, 2)), (IMAGE, normal(3, 3, 4, 6)), 1e-4, 1e-3),
    Case("lax/conv_grouped_gradients", conv_gradients(feature_group_count=2), (IMAGE, normal(3, 3, 2, 6)), 1e-4, 1e-3),
    Case("lax/conv_depthwise_gradients", conv_gradients(feature_group_count=4), (IMAGE, normal(3, 3, 1, 4)), 1e-4, 1e-3),
    Case("lax/patches", lambda x: lax.conv_general_dilated_patches(x, (3, 3), (1, 1), "SAME", dimension_numbers=NHWC), (IMAGE,)),
    # Bits.
    Case("lax/population_count_clz", lambda x: (lax.population_count(x), lax.clz(x)), (integers(0, 99999, 8),)),
    Case("lax/bitcast", lambda x: lax.bitcast_convert_type(x, jnp.int32), (X,)),
    Case("lax/bitcast_narrow", lambda x: lax.bitcast_convert_type(x, jnp.uint8), (integers(0, 99999, 8),)),
    Case("lax/shift_unsigned", lambda x: lax.shift_right_logical(x, 3), (integers(-9, 9, 8),)),
    Case("lax/integer_pow_rsqrt", lambda x: (lax.integer_pow(x, 5), lax.rsqrt(jnp.abs(x) + 1)), (X,)),
    Case("lax/erf", lambda x: (lax.erf(x), lax.erfc(x)), (X,)),
    Case("lax/erf_inv", lambda x: lax.erf_inv(jnp.tanh(x)), (X,), 1e-4),
    Case("lax/lgamma_digamma", lambda x: (lax.lgamma(x), lax.digamma(x)), (np.abs(X) + 0.5,), 1e-4, 1e-5),
    Case("lax/bessel_i0e", lambda x: lax.bessel_i0e(x), (X,), 1e-4),
    Case("lax/igamma_betainc", lambda x: (lax.igamma(x, x + 1), lax.betainc(x, x, x / (x + 1))), (np.abs(X) + 0.5,), 1e-3, 1e-4),
    # FFT.
    Case("fft/fft", jnp.fft.fft, (complexes(3, 16),), 1e-4, 1e-4),
    Case("fft/fft_prime", jnp.fft.fft, (complexes(3, 13),), 1e-4, 1e-4),
    Case("fft/fft_1000", jnp.fft.fft, (complexes(2, 1000),), 1e-3, 1e-3),
    Case("fft/ifft", jnp.fft.ifft, (complexes(3, 16),), 1e-4, 1e-4),
    Case("fft/rfft", jnp.fft.rfft, (normal(3, 30),), 1e-4, 1e-4),
    Case("fft/irfft", lambda x: jnp.fft.irfft(x), (complexes(3, 9),), 1e-4, 1e-4),
    Case("fft/irfft_odd", lambda x: jnp.fft.irfft(x, 15), (complexes(3, 8),), 1e-4, 1e-4),
    Case("fft/fft2", jnp.fft.fft2, (complexes(2, 6, 8),), 1e-4, 1e-4),
    Case("fft/rfft2_irfft2", lambda x: jnp.fft.irfft2(jnp.fft.rfft2(x) * 2), (normal(2, 6, 8),), 1e-4, 1e-4),
    Case("fft/gradient", jax.grad(lambda x: jnp.abs(jnp.fft.rfft(x)).sum()), (normal(3, 16),), 1e-3, 1e-3),
    # Linear algebra.
    Case("linalg/cholesky", jnp.linalg.cholesky, (positive_definite(6),), 1e-4, 1e-5),
    Case("linalg/cholesky_batched", jnp.linalg.cholesky, (positive_definite(5, 3),), 1e-4, 1e-5),
    Case("linalg/cholesky_gradient", jax.grad(lambda a: jnp.linalg.cholesky(a).sum()), (positive_definite(5),), 1e-3, 1e-4),
    Case("linalg/solve_triangular_lower", lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True), (positive_definite(5), normal(5, 3)), 1e-4),
    Case("linalg/solve_triangular_upper_transposed", lambda a, b: jax.scipy.linalg.solve_triangular(a, b, trans=1), (positive_definite(5), normal(5)), 1e-4),
    Case("linalg/triangular_solve_right", lambda a, b: lax.linalg.triangular_solve(a, b, left_side=False, unit_diagonal=True), (positive_definite(5) / 50, normal(3, 5)), 1e-4),
    Case("linalg/solve", jnp.linalg.solve, (positive_definite(6), normal(6, 2)), 1e-4, 1e-5),
    Case("linalg/inv", jnp.linalg.inv, (positive_definite(6),), 1e-4, 1e-5),
    Case("linalg/det_slogdet", lambda a: (jnp.linalg.det(a), jnp.linalg.slogdet(a)), (positive_definite(4),), 1e-4, 1e-4),
    Case("linalg/lu", jax.scipy.linalg.lu, (normal(6, 6),), 1e-4, 1e-4),
    Case("linalg/qr", jnp.linalg.qr, (normal(6, 4),), 1e-4, 1e-4),
    Case("linalg/eigvalsh", jnp.linalg.eigvalsh, (positive_definite(5),), 1e-4, 1e-4),
    Case("linalg/eigh_rebuilt", lambda a: (lambda w, v: (v * w) @ v.T)(*jnp.linalg.eigh(a)), (positive_definite(6),), 1e-4, 1e-3),
    Case("linalg/svd_values", lambda a: jnp.linalg.svd(a, compute_uv=False), (normal(5, 4),), 1e-3, 1e-4),
    Case("linalg/lstsq", lambda a, b: jnp.linalg.lstsq(a, b)[0], (normal(6, 3), normal(6)), 1e-3, 1e-3),
    Case("linalg/cho_solve", lambda a, b: jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(a), b), (positive_definite(5), normal(5)), 1e-4, 1e-5),
    Case("linalg/norm", lambda a: (jnp.linalg.norm(a), jnp.linalg.norm(a, axis=1)), (X,)),
    Case("linalg/matrix_power", lambda a: jnp.linalg.matrix_power(a / 9, 3), (positive_definite(4),), 1e-4),
    Case("linalg/expm", jax.scipy.linalg.expm, (normal(4, 4),), 1e-4, 1e-4),
    Case("linalg/qr_complex", jnp.linalg.qr, (hermitian(5)[:, :3],), 1e-4, 1e-4),
    Case("linalg/eigvalsh_complex", jnp.linalg.eigvalsh, (hermitian(5),), 1e-4, 1e-4),
    Case("linalg/svd_values_complex", lambda a: jnp.linalg.svd(a, compute_uv=False), (hermitian(5)[:4],), 1e-3, 1e-4),
    Case("linalg/solve_complex", jnp.linalg.solve, (hermitian(5), hermitian(5)[:, :2]), 1e-3, 1e-4),
    Case("linalg/approx_max_k", lambda a: lax.approx_max_k(a, 3), (normal(4, 9),)),
    # Random numbers: the same bits as JAX.
    Case("random/uniform", lambda s: jax.random.uniform(key(s), (4, 5)), (np.int32(3),)),
    Case("random/normal", lambda s: jax.random.normal(key(s), (4, 5)), (np.int32(3),), 1e-4, 1e-5),
    Case("random/bernoulli", lambda s: jax.random.bernoulli(key(s), 0.3, (40,)), (np.int32(3),)),
    Case("random/categorical", lambda s, x: jax.random.categorical(key(s), x), (np.int32(3), X)),
    Case("random/permutation", lambda s: jax.random.permutation(key(s), 20), (np.int32(3),)),
    Case("random/choice", lambda s: jax.random.choice(key(s), 10, (5,), replace=False), (np.int32(3),)),
    Case("random/randint", lambda s: jax.random.randint(key(s), (20,), -5, 17), (np.int32(3),)),
    Case("random/split_fold_in", lambda s: jax.random.key_data(jax.random.fold_in(jax.random.split(key(s), 3)[1], 7)), (np.int32(3),)),
    Case("random/truncated_normal", lambda s: jax.random.truncated_normal(key(s), -2, 2, (9,)), (np.int32(3),), 1e-4, 1e-5),
    Case("random/gumbel", lambda s: jax.random.gumbel(key(s), (9,)), (np.int32(3),), 1e-4, 1e-5),
    Case("random/gamma", lambda s: jax.random.gamma(key(s), 2.0, (5,)), (np.int32(3),), 1e-4, 1e-5),
    Case("random/dropout", lambda s, x: jnp.where(jax.random.bernoulli(key(s), 0.5, x.shape), x * 2, 0), (np.int32(3), X)),
]  # fmt: skip
