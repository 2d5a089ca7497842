// Contractions of f16, bf16, bytes and f64 with AVX-512, without the instructions made for them.
#if defined(__x86_64__)

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2")
#include <immintrin.h>
#include <string.h>

#include "ukernel/products.h"
#include "ukernel/products_avx512.h"

// Two vectors a panel.
#define EYAS_UK_BLOCKS_F64(X) \
  X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(1, 4) X(2, 4)

#define ACC float
#define VECTOR __m512
#define LANES 16
#define load_acc(p) _mm512_loadu_ps(p)
#define store_acc(p, v) _mm512_storeu_ps(p, v)
#define load_acc_some(p, n) _mm512_maskz_loadu_ps(first_lanes(n), p)
#define store_acc_some(p, n, v) _mm512_mask_storeu_ps(p, first_lanes(n), v)

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
#define TAIL_ROWS 4
#include "ukernel/products_blocks.h"

// Two bf16 of a column lie together. Each is the upper half of an f32.
typedef struct pair_t {
  __m512 first, second;
} pair_t;

static inline __attribute__((always_inline)) pair_t pair_of(__m512i bits) {
  return (pair_t){_mm512_castsi512_ps(_mm512_slli_epi32(bits, 16)),
                  _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32((int)0xffff0000u)))};
}

#define NAME(x) eyas_uk_##x##_bf16_avx512
#define OPERAND pair_t
#define OPERAND_BYTES 64
#define hold(x)
#define load_row(p) pair_of(_mm512_set1_epi32(*(const eyas_uk_i32_t*)(p)))
#define load_lanes(p) pair_of(_mm512_loadu_si512(p))
#define load_some(p, n) pair_of(_mm512_maskz_loadu_epi32(first_lanes(n), p))
#define multiply_add(acc, row, lanes)                     \
  _mm512_fmadd_ps((row).second, (lanes).second,           \
                  _mm512_fmadd_ps((row).first, (lanes).first, acc))
#define BLOCKS EYAS_UK_BLOCKS_SMALL
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 4, 4, 4, 4
#define TAILS EYAS_UK_TAILS_SMALL
#define TAIL_ROWS 4
#include "ukernel/products_blocks.h"

#undef ACC
#undef VECTOR
#undef LANES
#undef load_acc
#undef store_acc
#undef load_acc_some
#undef store_acc_some
#define ACC int32_t
#define VECTOR __m512i
#define LANES 16
#define load_acc(p) _mm512_loadu_si512(p)
#define store_acc(p, v) _mm512_storeu_si512(p, v)
#define load_acc_some(p, n) _mm512_maskz_loadu_epi32(first_lanes(n), p)
#define store_acc_some(p, n, v) _mm512_mask_storeu_epi32(p, first_lanes(n), v)

// Four bytes of a column lie together: as 16-bit numbers of the even and of the odd places, whose
// products add in pairs without loss.
typedef struct bytes_t {
  __m512i even, odd;
} bytes_t;

static inline __attribute__((always_inline)) bytes_t signed_bytes(__m512i x) {
  return (bytes_t){_mm512_srai_epi16(_mm512_slli_epi16(x, 8), 8), _mm512_srai_epi16(x, 8)};
}

static inline __attribute__((always_inline)) bytes_t unsigned_bytes(__m512i x) {
  return (bytes_t){_mm512_and_si512(x, _mm512_set1_epi16(0xff)), _mm512_srli_epi16(x, 8)};
}

static inline __attribute__((always_inline)) __m512i add_products(__m512i acc, bytes_t row, bytes_t lanes) {
  acc = _mm512_add_epi32(acc, _mm512_madd_epi16(row.even, lanes.even));
  return _mm512_add_epi32(acc, _mm512_madd_epi16(row.odd, lanes.odd));
}

#define NAME(x) eyas_uk_##x##_s8s8_avx512
#define OPERAND bytes_t
#define OPERAND_BYTES 64
#define hold(x)
#define load_row(p) signed_bytes(_mm512_set1_epi32(*(const eyas_uk_i32_t*)(p)))
#define load_lanes(p) signed_bytes(_mm512_loadu_si512(p))
#define load_some(p, n) signed_bytes(_mm512_maskz_loadu_epi32(first_lanes(n), p))
#define multiply_add(acc, row, lanes) add_products(acc, row, lanes)
#define BLOCKS EYAS_UK_BLOCKS_SMALL
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 4, 4, 4, 4
#define TAILS EYAS_UK_TAILS_SMALL
#define TAIL_ROWS 4
#include "ukernel/products_blocks.h"

#define NAME(x) eyas_uk_##x##_u8s8_avx512
#define OPERAND bytes_t
#define OPERAND_BYTES 64
#define hold(x)
#define load_row(p) unsigned_bytes(_mm512_set1_epi32(*(const eyas_uk_i32_t*)(p)))
#define load_lanes(p) signed_bytes(_mm512_loadu_si512(p))
#define load_some(p, n) signed_bytes(_mm512_maskz_loadu_epi32(first_lanes(n), p))
#define multiply_add(acc, row, lanes) add_products(acc, row, lanes)
#define BLOCKS EYAS_UK_BLOCKS_SMALL
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 4, 4, 4, 4
#define TAILS EYAS_UK_TAILS_SMALL
#define TAIL_ROWS 4
#include "ukernel/products_blocks.h"

#define NAME(x) eyas_uk_##x##_s8u8_avx512
#define OPERAND bytes_t
#define OPERAND_BYTES 64
#define hold(x)
#define load_row(p) signed_bytes(_mm512_set1_epi32(*(const eyas_uk_i32_t*)(p)))
#define load_lanes(p) unsigned_bytes(_mm512_loadu_si512(p))
#define load_some(p, n) unsigned_bytes(_mm512_maskz_loadu_epi32(first_lanes(n), p))
#define multiply_add(acc, row, lanes) add_products(acc, row, lanes)
#define BLOCKS EYAS_UK_BLOCKS_SMALL
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 4, 4, 4, 4
#define TAILS EYAS_UK_TAILS_SMALL
#define TAIL_ROWS 4
#include "ukernel/products_blocks.h"

#define NAME(x) eyas_uk_##x##_u8u8_avx512
#define OPERAND bytes_t
#define OPERAND_BYTES 64
#define hold(x)
#define load_row(p) unsigned_bytes(_mm512_set1_epi32(*(const eyas_uk_i32_t*)(p)))
#define load_lanes(p) unsigned_bytes(_mm512_loadu_si512(p))
#define load_some(p, n) unsigned_bytes(_mm512_maskz_loadu_epi32(first_lanes(n), p))
#define multiply_add(acc, row, lanes) add_products(acc, row, lanes)
#define BLOCKS EYAS_UK_BLOCKS_SMALL
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 4, 4, 4, 4
#define TAILS EYAS_UK_TAILS_SMALL
#define TAIL_ROWS 4
#include "ukernel/products_blocks.h"

#undef ACC
#undef VECTOR
#undef LANES
#undef load_acc
#undef store_acc
#undef load_acc_some
#undef store_acc_some
#define ACC double
#define VECTOR __m512d
#define LANES 8
#define load_acc(p) _mm512_loadu_pd(p)
#define store_acc(p, v) _mm512_storeu_pd(p, v)
#define load_acc_some(p, n) _mm512_maskz_loadu_pd(first_lanes(n), p)
#define store_acc_some(p, n, v) _mm512_mask_storeu_pd(p, first_lanes(n), v)

#define NAME(x) eyas_uk_##x##_f64_avx512
#define OPERAND __m512d
#define OPERAND_BYTES 64
#define hold(x) EYAS_UK_OPAQUE(x, "v")
#define load_row(p) _mm512_set1_pd(*(const eyas_uk_f64_t*)(p))
#define load_lanes(p) _mm512_loadu_pd(p)
#define load_some(p, n) _mm512_maskz_loadu_pd(first_lanes(n), p)
#define multiply_add(acc, row, lanes) _mm512_fmadd_pd(row, lanes, acc)
#define BLOCKS EYAS_UK_BLOCKS_F64
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 4, 4, 2, 2
#define TAILS EYAS_UK_TAILS_SMALL
#define TAIL_ROWS 4
#include "ukernel/products_blocks.h"

#else
typedef int eyas_uk_not_this_architecture_t;
#endif
