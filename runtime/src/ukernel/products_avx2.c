// Sums of products and of windows with AVX2 and FMA.
#if defined(__x86_64__)

#pragma GCC target("avx2,fma,f16c,bmi,bmi2")
#include "ukernel/products_avx2.h"

// 16 registers: accumulators, the operands that are held, and one that passes by.
#define EYAS_UK_BLOCKS_AVX2(X) \
  X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(1, 2) X(2, 2) X(3, 2) X(1, 4)
#define EYAS_UK_MAX_ROWS_AVX2 6
#define EYAS_UK_PANELS_AVX2 4, 2, 2, 1, 1, 1
#define EYAS_UK_TAILS_AVX2(X) X(1) X(3)
#define EYAS_UK_TAIL_ROWS_AVX2 3
#define EYAS_UK_TURNS_AVX2 1

#define ACCUMULATOR f32
#define SHAPES AVX2
#define OPERAND __m256
#define OPERAND_BYTES 32
#define hold(x) EYAS_UK_OPAQUE(x, "x")
#define load_lanes load_f32
#define load_some load_some_f32
#define NAME(x) eyas_uk_##x##_f32_avx2
#define load_row(p) _mm256_set1_ps(*(const eyas_uk_f32_t*)(p))
#define multiply_add(acc, row, lanes) _mm256_fmadd_ps(row, lanes, acc)
#include "ukernel/products_blocks.inc"

// NaN where one is. The instruction gives its second operand then, and when both are zeros: asked
// both ways round, two results differ in the sign of zeros alone.
EYAS_UK_INLINE __m256 maximum(__m256 x, __m256 y) {
  const __m256 greatest = _mm256_and_ps(_mm256_max_ps(x, y), _mm256_max_ps(y, x));
  return _mm256_blendv_ps(greatest, _mm256_add_ps(x, y), _mm256_cmp_ps(x, y, _CMP_UNORD_Q));
}

#define combine_muladd(acc, a, weights) _mm256_fmadd_ps(a, weights, acc)
#define combine_add(acc, a) _mm256_add_ps(acc, a)
#define combine_maximum maximum
#include "ukernel/products_windows.inc"

const eyas_uk_products_t eyas_uk_products_avx2 = {
    .name = "avx2",
    .width = 8,
    .contract = EYAS_UK_CONTRACTS(avx2, avx2, avx2, avx2, avx2, avx2),
    .window = EYAS_UK_WINDOWS(OWN_WINDOW),
};

#else
typedef int eyas_uk_not_this_architecture_t;
#endif
