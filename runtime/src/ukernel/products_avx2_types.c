// Contractions of f16, bf16, bytes and f64 with AVX2, without the instructions made for them.
#if defined(__x86_64__)

#pragma GCC target("avx2,fma,f16c,bmi,bmi2")
#include <immintrin.h>
#include <string.h>

#include "ukernel/products.h"
#include "ukernel/products_avx2.h"

// Two vectors a panel; four for f64.
#define EYAS_UK_BLOCKS_AVX2_SMALL(X) X(1, 1) X(2, 1) X(4, 1) X(1, 2) X(2, 2)
#define EYAS_UK_BLOCKS_AVX2_F64(X) X(1, 1) X(2, 1) X(1, 2)

static inline __m128i some_halves(const char* p, int n) {
  uint16_t halves[8] = {0};
  memcpy(halves, p, (size_t)n * 2);
  return _mm_loadu_si128((const __m128i*)halves);
}

// The first n of 4 lanes of 64 bits.
static inline __m256i first_pairs(int n) {
  static const int64_t bits[8] = {-1, -1, -1, -1};
  return _mm256_loadu_si256((const __m256i_u*)(bits + 4 - n));
}

#define ACC float
#define VECTOR __m256
#define LANES 8
#define load_acc(p) _mm256_loadu_ps((const float*)(p))
#define store_acc(p, v) _mm256_storeu_ps(p, v)
#define load_acc_some(p, n) _mm256_maskload_ps((const float*)(p), first_lanes(n))
#define store_acc_some(p, n, v) _mm256_maskstore_ps(p, first_lanes(n), v)

#define NAME(x) eyas_uk_##x##_f16_avx2
#define OPERAND __m256
#define OPERAND_BYTES 16
#define hold(x) EYAS_UK_OPAQUE(x, "x")
#define load_row(p) _mm256_cvtph_ps(_mm_set1_epi16(*(const eyas_uk_i16_t*)(p)))
#define load_lanes(p) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u*)(p)))
#define load_some(p, n) _mm256_cvtph_ps(some_halves(p, n))
#define multiply_add(acc, row, lanes) _mm256_fmadd_ps(row, lanes, acc)
#define BLOCKS EYAS_UK_BLOCKS_AVX2_SMALL
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 2, 2, 1, 1
#define TAILS EYAS_UK_TAILS_SMALL
#define TAIL_ROWS 1
#include "ukernel/products_blocks.h"

// Two bf16 of a column lie together. Each is the upper half of an f32.
typedef struct pair_t {
  __m256 first, second;
} pair_t;

static inline __attribute__((always_inline)) pair_t pair_of(__m256i bits) {
  return (pair_t){_mm256_castsi256_ps(_mm256_slli_epi32(bits, 16)),
                  _mm256_castsi256_ps(_mm256_and_si256(bits, _mm256_set1_epi32((int)0xffff0000u)))};
}

#define NAME(x) eyas_uk_##x##_bf16_avx2
#define OPERAND pair_t
#define OPERAND_BYTES 32
#define hold(x)
#define load_row(p) pair_of(_mm256_set1_epi32(*(const eyas_uk_i32_t*)(p)))
#define load_lanes(p) pair_of(_mm256_loadu_si256((const __m256i_u*)(p)))
#define load_some(p, n) pair_of(_mm256_maskload_epi32((const int*)(p), first_lanes(n)))
#define multiply_add(acc, row, lanes) \
  _mm256_fmadd_ps((row).second, (lanes).second, _mm256_fmadd_ps((row).first, (lanes).first, acc))
#define BLOCKS EYAS_UK_BLOCKS_AVX2_SMALL
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 2, 2, 1, 1
#define TAILS EYAS_UK_TAILS_SMALL
#define TAIL_ROWS 1
#include "ukernel/products_blocks.h"

#undef ACC
#undef VECTOR
#undef LANES
#undef load_acc
#undef store_acc
#undef load_acc_some
#undef store_acc_some
#define ACC int32_t
#define VECTOR __m256i
#define LANES 8
#define load_acc(p) _mm256_loadu_si256((const __m256i_u*)(p))
#define store_acc(p, v) _mm256_storeu_si256((__m256i_u*)(p), v)
#define load_acc_some(p, n) _mm256_maskload_epi32((const int*)(p), first_lanes(n))
#define store_acc_some(p, n, v) _mm256_maskstore_epi32((int*)(p), first_lanes(n), v)

// Four bytes of a column lie together: as 16-bit numbers of the even and of the odd places, whose
// products add in pairs without loss.
typedef struct bytes_t {
  __m256i even, odd;
} bytes_t;

static inline __attribute__((always_inline)) bytes_t signed_bytes(__m256i x) {
  return (bytes_t){_mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8), _mm256_srai_epi16(x, 8)};
}

static inline __attribute__((always_inline)) bytes_t unsigned_bytes(__m256i x) {
  return (bytes_t){_mm256_and_si256(x, _mm256_set1_epi16(0xff)), _mm256_srli_epi16(x, 8)};
}

static inline __attribute__((always_inline)) __m256i add_products(__m256i acc, bytes_t row,
                                                                  bytes_t lanes) {
  acc = _mm256_add_epi32(acc, _mm256_madd_epi16(row.even, lanes.even));
  return _mm256_add_epi32(acc, _mm256_madd_epi16(row.odd, lanes.odd));
}

#define NAME(x) eyas_uk_##x##_s8s8_avx2
#define OPERAND bytes_t
#define OPERAND_BYTES 32
#define hold(x)
#define load_row(p) signed_bytes(_mm256_set1_epi32(*(const eyas_uk_i32_t*)(p)))
#define load_lanes(p) signed_bytes(_mm256_loadu_si256((const __m256i_u*)(p)))
#define load_some(p, n) signed_bytes(_mm256_maskload_epi32((const int*)(p), first_lanes(n)))
#define multiply_add(acc, row, lanes) add_products(acc, row, lanes)
#define BLOCKS EYAS_UK_BLOCKS_AVX2_SMALL
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 2, 2, 1, 1
#define TAILS EYAS_UK_TAILS_SMALL
#define TAIL_ROWS 1
#include "ukernel/products_blocks.h"

#define NAME(x) eyas_uk_##x##_u8s8_avx2
#define OPERAND bytes_t
#define OPERAND_BYTES 32
#define hold(x)
#define load_row(p) unsigned_bytes(_mm256_set1_epi32(*(const eyas_uk_i32_t*)(p)))
#define load_lanes(p) signed_bytes(_mm256_loadu_si256((const __m256i_u*)(p)))
#define load_some(p, n) signed_bytes(_mm256_maskload_epi32((const int*)(p), first_lanes(n)))
#define multiply_add(acc, row, lanes) add_products(acc, row, lanes)
#define BLOCKS EYAS_UK_BLOCKS_AVX2_SMALL
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 2, 2, 1, 1
#define TAILS EYAS_UK_TAILS_SMALL
#define TAIL_ROWS 1
#include "ukernel/products_blocks.h"

#define NAME(x) eyas_uk_##x##_s8u8_avx2
#define OPERAND bytes_t
#define OPERAND_BYTES 32
#define hold(x)
#define load_row(p) signed_bytes(_mm256_set1_epi32(*(const eyas_uk_i32_t*)(p)))
#define load_lanes(p) unsigned_bytes(_mm256_loadu_si256((const __m256i_u*)(p)))
#define load_some(p, n) unsigned_bytes(_mm256_maskload_epi32((const int*)(p), first_lanes(n)))
#define multiply_add(acc, row, lanes) add_products(acc, row, lanes)
#define BLOCKS EYAS_UK_BLOCKS_AVX2_SMALL
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 2, 2, 1, 1
#define TAILS EYAS_UK_TAILS_SMALL
#define TAIL_ROWS 1
#include "ukernel/products_blocks.h"

#define NAME(x) eyas_uk_##x##_u8u8_avx2
#define OPERAND bytes_t
#define OPERAND_BYTES 32
#define hold(x)
#define load_row(p) unsigned_bytes(_mm256_set1_epi32(*(const eyas_uk_i32_t*)(p)))
#define load_lanes(p) unsigned_bytes(_mm256_loadu_si256((const __m256i_u*)(p)))
#define load_some(p, n) unsigned_bytes(_mm256_maskload_epi32((const int*)(p), first_lanes(n)))
#define multiply_add(acc, row, lanes) add_products(acc, row, lanes)
#define BLOCKS EYAS_UK_BLOCKS_AVX2_SMALL
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 2, 2, 1, 1
#define TAILS EYAS_UK_TAILS_SMALL
#define TAIL_ROWS 1
#include "ukernel/products_blocks.h"

#undef ACC
#undef VECTOR
#undef LANES
#undef load_acc
#undef store_acc
#undef load_acc_some
#undef store_acc_some
#define ACC double
#define VECTOR __m256d
#define LANES 4
#define load_acc(p) _mm256_loadu_pd((const double*)(p))
#define store_acc(p, v) _mm256_storeu_pd(p, v)
#define load_acc_some(p, n) _mm256_maskload_pd((const double*)(p), first_pairs(n))
#define store_acc_some(p, n, v) _mm256_maskstore_pd(p, first_pairs(n), v)

#define NAME(x) eyas_uk_##x##_f64_avx2
#define OPERAND __m256d
#define OPERAND_BYTES 32
#define hold(x) EYAS_UK_OPAQUE(x, "x")
#define load_row(p) _mm256_set1_pd(*(const eyas_uk_f64_t*)(p))
#define load_lanes(p) _mm256_loadu_pd((const double*)(p))
#define load_some(p, n) _mm256_maskload_pd((const double*)(p), first_pairs(n))
#define multiply_add(acc, row, lanes) _mm256_fmadd_pd(row, lanes, acc)
#define BLOCKS EYAS_UK_BLOCKS_AVX2_F64
#define MAX_ROWS 2
#define PANELS_FOR_ROWS 2, 1
#define TAILS EYAS_UK_TAILS_SMALL
#define TAIL_ROWS 1
#include "ukernel/products_blocks.h"

#else
typedef int eyas_uk_not_this_architecture_t;
#endif
