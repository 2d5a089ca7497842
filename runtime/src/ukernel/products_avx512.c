// Sums of products and of windows with AVX-512.
#if defined(__x86_64__)

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2")
#include "ukernel/products_avx512.h"

// 32 registers: accumulators, the operands that are held, and one that passes by.
// clang-format off
#define EYAS_UK_BLOCKS_AVX512(X)                                         \
  X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(7, 1) X(8, 1)        \
  X(9, 1) X(10, 1) X(11, 1) X(12, 1) X(13, 1) X(14, 1) X(15, 1) X(16, 1) \
  X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2) X(7, 2) X(8, 2)        \
  X(9, 2) X(10, 2) X(11, 2) X(12, 2) X(13, 2) X(14, 2)                   \
  X(1, 4) X(2, 4) X(3, 4) X(4, 4) X(5, 4) X(6, 4)                        \
  X(1, 8) X(2, 8) X(3, 8)
// clang-format on
#define EYAS_UK_MAX_ROWS_AVX512 16
#define EYAS_UK_PANELS_AVX512 8, 8, 8, 4, 4, 4, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1
#define EYAS_UK_TAILS_AVX512(X) X(1) X(2) X(4) X(8) X(16)
#define EYAS_UK_TAIL_ROWS_AVX512 16
#define EYAS_UK_TURNS_AVX512 1

#define ACCUMULATOR f32
#define SHAPES AVX512
#define OPERAND __m512
#define OPERAND_BYTES 64
#define hold(x) EYAS_UK_OPAQUE(x, "v")
#define load_lanes load_f32
#define load_some load_some_f32
#define NAME(x) eyas_uk_##x##_f32_avx512
#define load_row(p) _mm512_set1_ps(*(const eyas_uk_f32_t*)(p))
#define multiply_add(acc, row, lanes) _mm512_fmadd_ps(row, lanes, acc)
#include "ukernel/products_blocks.inc"
#include "ukernel/products_forget.inc"

#define ACCUMULATOR f32
#define SHAPES SMALL
#define OPERAND __m512
#define OPERAND_BYTES 32
#define hold(x) EYAS_UK_OPAQUE(x, "v")
#define load_lanes(p) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i_u*)(p)))
#define load_some(p, n) _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first_lanes(n), p))
#define NAME(x) eyas_uk_##x##_f16_avx512
#define load_row(p) _mm512_cvtph_ps(_mm256_set1_epi16(*(const eyas_uk_i16_t*)(p)))
#define multiply_add(acc, row, lanes) _mm512_fmadd_ps(row, lanes, acc)
#include "ukernel/products_blocks.inc"

// The greater number, zeros ordered, or NaN where one is.
EYAS_UK_INLINE __m512 maximum(__m512 x, __m512 y) {
  enum { GREATEST = 5 };
  const __mmask16 unordered = _mm512_cmp_ps_mask(x, y, _CMP_UNORD_Q);
  return _mm512_mask_add_ps(_mm512_range_ps(x, y, GREATEST), unordered, x, y);
}

#define combine_muladd(acc, a, weights) _mm512_fmadd_ps(a, weights, acc)
#define combine_add(acc, a) _mm512_add_ps(acc, a)
#define combine_maximum maximum
#include "ukernel/products_windows.inc"

#define TABLE(variable, text, bf16, bytes)                                     \
  const eyas_uk_products_t eyas_uk_products_##variable = {                     \
      .name = text,                                                            \
      .width = 8,                                                              \
      .contract = EYAS_UK_CONTRACTS(avx512, avx512, bf16, bytes, bytes, avx2), \
      .window = EYAS_UK_WINDOWS(OWN_WINDOW),                                   \
  }
// What has no instruction of its own runs at the same speed with AVX2.
TABLE(avx512, "avx512", avx2, avx2);
TABLE(avx512_vnni, "avx512-vnni", avx2, vnni);
TABLE(avx512_bf16, "avx512-vnni-bf16", vnni, vnni);

#else
typedef int eyas_uk_not_this_architecture_t;
#endif
