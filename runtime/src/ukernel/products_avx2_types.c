// Contractions of f16, bf16, bytes and f64 with AVX2, without the instructions made for them.
#if defined(__x86_64__)

#pragma GCC target("avx2,fma,f16c,bmi,bmi2")
#include "ukernel/products_avx2.h"

// Two vectors a panel; four for f64.
#define EYAS_UK_BLOCKS_AVX2_SMALL(X) X(1, 1) X(2, 1) X(4, 1) X(1, 2) X(2, 2)
#define EYAS_UK_MAX_ROWS_AVX2_SMALL 4
#define EYAS_UK_PANELS_AVX2_SMALL 2, 2, 1, 1
#define EYAS_UK_TAILS_AVX2_SMALL(X) X(1)
#define EYAS_UK_TAIL_ROWS_AVX2_SMALL 1
#define EYAS_UK_TURNS_AVX2_SMALL 0

#define EYAS_UK_BLOCKS_AVX2_F64(X) X(1, 1) X(2, 1) X(1, 2)
#define EYAS_UK_MAX_ROWS_AVX2_F64 2
#define EYAS_UK_PANELS_AVX2_F64 2, 1
#define EYAS_UK_TAILS_AVX2_F64(X) X(1)
#define EYAS_UK_TAIL_ROWS_AVX2_F64 1
#define EYAS_UK_TURNS_AVX2_F64 0

static inline __m128i some_halves(const char* p, int n) {
  uint16_t halves[8] = {0};
  memcpy(halves, p, (size_t)n * 2);
  return _mm_loadu_si128((const __m128i*)halves);
}

#define ACCUMULATOR f32
#define SHAPES AVX2_SMALL
#define OPERAND __m256
#define OPERAND_BYTES 16
#define hold(x) EYAS_UK_OPAQUE(x, "x")
#define load_lanes(p) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u*)(p)))
#define load_some(p, n) _mm256_cvtph_ps(some_halves(p, n))
#define NAME(x) eyas_uk_##x##_f16_avx2
#define load_row(p) _mm256_cvtph_ps(_mm_set1_epi16(*(const eyas_uk_i16_t*)(p)))
#define multiply_add(acc, row, lanes) _mm256_fmadd_ps(row, lanes, acc)
#include "ukernel/products_blocks.inc"
#include "ukernel/products_forget.inc"

// Columns of bf16 and of bytes have 32 bits a step.
#define load_word(p) _mm256_set1_epi32(*(const eyas_uk_i32_t*)(p))

// Two bf16 of a column lie together. Each is the upper half of an f32.
typedef struct pair_t {
  __m256 first, second;
} pair_t;

EYAS_UK_INLINE pair_t pair_of(__m256i bits) {
  return (pair_t){_mm256_castsi256_ps(_mm256_slli_epi32(bits, 16)),
                  _mm256_castsi256_ps(_mm256_and_si256(bits, _mm256_set1_epi32((int)0xffff0000u)))};
}

#define ACCUMULATOR f32
#define SHAPES AVX2_SMALL
#define OPERAND pair_t
#define OPERAND_BYTES 32
#define hold(x)
#define load_lanes(p) pair_of(load_i32(p))
#define load_some(p, n) pair_of(load_some_i32(p, n))
#define NAME(x) eyas_uk_##x##_bf16_avx2
#define load_row(p) pair_of(load_word(p))
#define multiply_add(acc, row, lanes) \
  _mm256_fmadd_ps((row).second, (lanes).second, _mm256_fmadd_ps((row).first, (lanes).first, acc))
#include "ukernel/products_blocks.inc"
#include "ukernel/products_forget.inc"

// Four bytes of a column lie together: as 16-bit numbers of the even and of the odd places, whose
// products add in pairs without loss.
typedef struct bytes_t {
  __m256i even, odd;
} bytes_t;

EYAS_UK_INLINE bytes_t signed_bytes(__m256i x) {
  return (bytes_t){_mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8), _mm256_srai_epi16(x, 8)};
}

EYAS_UK_INLINE bytes_t unsigned_bytes(__m256i x) {
  return (bytes_t){_mm256_and_si256(x, _mm256_set1_epi16(0xff)), _mm256_srli_epi16(x, 8)};
}

EYAS_UK_INLINE __m256i add_products(__m256i acc, bytes_t row, bytes_t lanes) {
  acc = _mm256_add_epi32(acc, _mm256_madd_epi16(row.even, lanes.even));
  return _mm256_add_epi32(acc, _mm256_madd_epi16(row.odd, lanes.odd));
}

#define ACCUMULATOR i32
#define SHAPES AVX2_SMALL
#define OPERAND bytes_t
#define OPERAND_BYTES 32
#define hold(x)
#define load_lanes(p) signed_bytes(load_i32(p))
#define load_some(p, n) signed_bytes(load_some_i32(p, n))

#define NAME(x) eyas_uk_##x##_s8s8_avx2
#define load_row(p) signed_bytes(load_word(p))
#define multiply_add add_products
#include "ukernel/products_blocks.inc"

#define NAME(x) eyas_uk_##x##_u8s8_avx2
#define load_row(p) unsigned_bytes(load_word(p))
#define multiply_add add_products
#include "ukernel/products_blocks.inc"

#include "ukernel/products_forget.inc"

#define ACCUMULATOR i32
#define SHAPES AVX2_SMALL
#define OPERAND bytes_t
#define OPERAND_BYTES 32
#define hold(x)
#define load_lanes(p) unsigned_bytes(load_i32(p))
#define load_some(p, n) unsigned_bytes(load_some_i32(p, n))

#define NAME(x) eyas_uk_##x##_s8u8_avx2
#define load_row(p) signed_bytes(load_word(p))
#define multiply_add add_products
#include "ukernel/products_blocks.inc"

#define NAME(x) eyas_uk_##x##_u8u8_avx2
#define load_row(p) unsigned_bytes(load_word(p))
#define multiply_add add_products
#include "ukernel/products_blocks.inc"

#include "ukernel/products_forget.inc"

#define ACCUMULATOR f64
#define SHAPES AVX2_F64
#define OPERAND __m256d
#define OPERAND_BYTES 32
#define hold(x) EYAS_UK_OPAQUE(x, "x")
#define load_lanes load_f64
#define load_some load_some_f64
#define NAME(x) eyas_uk_##x##_f64_avx2
#define load_row(p) _mm256_set1_pd(*(const eyas_uk_f64_t*)(p))
#define multiply_add(acc, row, lanes) _mm256_fmadd_pd(row, lanes, acc)
#include "ukernel/products_blocks.inc"

#else
typedef int eyas_uk_not_this_architecture_t;
#endif
