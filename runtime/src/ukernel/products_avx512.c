// Sums of products and of windows with AVX-512.
#if defined(__x86_64__)

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2")
#include <immintrin.h>

#include "ukernel/products.h"
#include "ukernel/products_avx512.h"

// 32 registers: accumulators, the operands that are held, and one that passes by.
// clang-format off
#define EYAS_UK_BLOCKS_AVX512(X)                                          \
  X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(7, 1) X(8, 1)         \
  X(9, 1) X(10, 1) X(11, 1) X(12, 1) X(13, 1) X(14, 1) X(15, 1) X(16, 1)  \
  X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2) X(7, 2) X(8, 2)         \
  X(9, 2) X(10, 2) X(11, 2) X(12, 2) X(13, 2) X(14, 2)                    \
  X(1, 4) X(2, 4) X(3, 4) X(4, 4) X(5, 4) X(6, 4)                         \
  X(1, 8) X(2, 8) X(3, 8)
// clang-format on
#define EYAS_UK_PANELS_AVX512 8, 8, 8, 4, 4, 4, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1
#define EYAS_UK_TAILS_AVX512(X) X(1) X(2) X(4) X(8) X(16)

#define NAME(x) eyas_uk_##x##_f32_avx512
#define ACC float
#define VECTOR __m512
#define LANES 16
#define OPERAND __m512
#define OPERAND_BYTES 64
#define hold(x) EYAS_UK_OPAQUE(x, "v")
#define load_row(p) _mm512_set1_ps(*(const eyas_uk_f32_t*)(p))
#define load_lanes(p) _mm512_loadu_ps(p)
#define load_some(p, n) _mm512_maskz_loadu_ps(first_lanes(n), p)
#define multiply_add(acc, row, lanes) _mm512_fmadd_ps(row, lanes, acc)
#define load_acc(p) _mm512_loadu_ps(p)
#define store_acc(p, v) _mm512_storeu_ps(p, v)
#define load_acc_some(p, n) _mm512_maskz_loadu_ps(first_lanes(n), p)
#define store_acc_some(p, n, v) _mm512_mask_storeu_ps(p, first_lanes(n), v)
#define BLOCKS EYAS_UK_BLOCKS_AVX512
#define MAX_ROWS 16
#define PANELS_FOR_ROWS EYAS_UK_PANELS_AVX512
#define TAILS EYAS_UK_TAILS_AVX512
#define TAIL_ROWS 16
#include "ukernel/products_blocks.h"

#define NAME(x) eyas_uk_##x##_f16_avx512
#define OPERAND __m512
#define OPERAND_BYTES 32
#define hold(x) EYAS_UK_OPAQUE(x, "v")
#define load_row(p) _mm512_cvtph_ps(_mm256_set1_epi16(*(const eyas_uk_i16_t*)(p)))
#define load_lanes(p) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i_u*)(p)))
#define load_some(p, n) _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first_lanes(n), p))
#define multiply_add(acc, row, lanes) _mm512_fmadd_ps(row, lanes, acc)
#define BLOCKS EYAS_UK_BLOCKS_SMALL
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 4, 4, 4, 4
#define TAILS EYAS_UK_TAILS_SMALL
#define TAIL_ROWS 1
#include "ukernel/products_blocks.h"

#define WINDOW_VECTOR __m512
#define WINDOW_LANES 16
#define WINDOW_ELEMENT float
#define window_load(p) _mm512_loadu_ps(p)
#define window_store(p, v) _mm512_storeu_ps(p, v)
#define window_load_some(p, n) _mm512_maskz_loadu_ps(first_lanes(n), p)
#define window_store_some(p, n, v) _mm512_mask_storeu_ps(p, first_lanes(n), v)

// The greater or the lesser number, zeros ordered, and a number before NaN; or NaN where one is.
#define GREATEST 5
#define LEAST 4
#define choose(acc, a, which) _mm512_range_ps(acc, a, which)
#define choose_nan(acc, a, which) \
  _mm512_mask_add_ps(choose(acc, a, which), _mm512_cmp_ps_mask(acc, a, _CMP_UNORD_Q), acc, a)

#define NAME(x) x##_muladd
#define combine(acc, a, b) _mm512_fmadd_ps(a, b, acc)
#define HAS_WEIGHTS 1
#include "ukernel/products_windows.h"

#define NAME(x) x##_add
#define combine(acc, a, b) _mm512_add_ps(acc, a)
#define HAS_WEIGHTS 0
#include "ukernel/products_windows.h"

#define NAME(x) x##_maximum
#define combine(acc, a, b) choose_nan(acc, a, GREATEST)
#define HAS_WEIGHTS 0
#include "ukernel/products_windows.h"

#define NAME(x) x##_minimum
#define combine(acc, a, b) choose_nan(acc, a, LEAST)
#define HAS_WEIGHTS 0
#include "ukernel/products_windows.h"

#define NAME(x) x##_maxnum
#define combine(acc, a, b) choose(acc, a, GREATEST)
#define HAS_WEIGHTS 0
#include "ukernel/products_windows.h"

#define NAME(x) x##_minnum
#define combine(acc, a, b) choose(acc, a, LEAST)
#define HAS_WEIGHTS 0
#include "ukernel/products_windows.h"

#define WINDOW(name) {[EYAS_VMVX_TYPE_F32] = window_##name, EYAS_UK_WINDOW_OTHERS(name)}
#define WINDOW_FLOAT(name)               \
  {[EYAS_VMVX_TYPE_F32] = window_##name, \
   [EYAS_VMVX_TYPE_F64] = eyas_uk_window_##name##_f64_portable}
#define WINDOWS                                         \
  {                                                     \
      [EYAS_VMVX_WINDOW_MULADD] = WINDOW(muladd),       \
      [EYAS_VMVX_WINDOW_ADD] = WINDOW(add),             \
      [EYAS_VMVX_WINDOW_MAXIMUM] = WINDOW(maximum),     \
      [EYAS_VMVX_WINDOW_MINIMUM] = WINDOW(minimum),     \
      [EYAS_VMVX_WINDOW_MAXNUM] = WINDOW_FLOAT(maxnum), \
      [EYAS_VMVX_WINDOW_MINNUM] = WINDOW_FLOAT(minnum), \
  }
#define TABLE(variable, text, bf16_set, bytes_set)                           \
  const eyas_uk_products_t eyas_uk_products_##variable = {                   \
      .name = text,                                                          \
      .width = 8,                                                            \
      .contract =                                                            \
          {                                                                  \
              [EYAS_VMVX_CONTRACT_F32] = eyas_uk_contract_f32_avx512,        \
              [EYAS_VMVX_CONTRACT_F16] = eyas_uk_contract_f16_avx512,        \
              [EYAS_VMVX_CONTRACT_BF16] = eyas_uk_contract_bf16_##bf16_set,  \
              [EYAS_VMVX_CONTRACT_S8S8] = eyas_uk_contract_s8s8_##bytes_set, \
              [EYAS_VMVX_CONTRACT_U8S8] = eyas_uk_contract_u8s8_##bytes_set, \
              [EYAS_VMVX_CONTRACT_S8U8] = eyas_uk_contract_s8u8_##bytes_set, \
              [EYAS_VMVX_CONTRACT_U8U8] = eyas_uk_contract_u8u8_##bytes_set, \
              [EYAS_VMVX_CONTRACT_F64] = eyas_uk_contract_f64_avx2,          \
          },                                                                 \
      .window = WINDOWS,                                                     \
  }
// What has no instruction of its own runs at the same speed with AVX2.
TABLE(avx512, "avx512", avx2, avx2);
TABLE(avx512_vnni, "avx512-vnni", avx2, vnni);
TABLE(avx512_bf16, "avx512-vnni-bf16", vnni, vnni);

#else
typedef int eyas_uk_not_this_architecture_t;
#endif
