// Sums of products and of windows with SSE2, which every x86-64 processor has: a product and a sum
// are two instructions, and the first overwrites an operand.
#if defined(__x86_64__)

#include <emmintrin.h>

#include "ukernel/products.h"

typedef __m128 vector_f32;

// The first n of four words, zeros behind them. Neither is inlined: they would be most of the code.
static __attribute__((noinline)) __m128 load_some_f32(const void* p, int n) {
  float values[4] = {0};
  for (int i = 0; i < n; ++i) values[i] = ((const eyas_uk_f32_t*)p)[i];
  return _mm_loadu_ps(values);
}

static __attribute__((noinline)) void store_some_f32(void* p, int n, __m128 v) {
  for (int i = 0; i < n; ++i, v = _mm_shuffle_ps(v, v, _MM_SHUFFLE(0, 3, 2, 1))) {
    ((eyas_uk_f32_t*)p)[i] = _mm_cvtss_f32(v);
  }
}

#define load_f32(p) _mm_loadu_ps((const float*)(p))
#define store_f32(p, v) _mm_storeu_ps((float*)(p), v)

// 16 registers and four vectors a panel: two rows of one panel, or two panels of one row.
#define EYAS_UK_BLOCKS_SSE2(X) X(1, 1) X(2, 1) X(1, 2)
#define EYAS_UK_MAX_ROWS_SSE2 2
#define EYAS_UK_PANELS_SSE2 2, 1
#define EYAS_UK_TAILS_SSE2(X) X(1)
#define EYAS_UK_TAIL_ROWS_SSE2 1
#define EYAS_UK_TURNS_SSE2 1

#define ACCUMULATOR f32
#define SHAPES SSE2
#define OPERAND __m128
#define OPERAND_BYTES 16
#define hold(x) EYAS_UK_OPAQUE(x, "x")
#define load_lanes load_f32
#define load_some load_some_f32
#define NAME(x) eyas_uk_##x##_f32_sse2
#define load_row(p) _mm_set1_ps(*(const eyas_uk_f32_t*)(p))
#define multiply_add(acc, row, lanes) _mm_add_ps(acc, _mm_mul_ps(row, lanes))
#include "ukernel/products_blocks.inc"
#include "ukernel/products_forget.inc"

// NaN where one is. The instruction gives its second operand then, and when both are zeros: asked
// both ways round, two results differ in the sign of zeros alone.
EYAS_UK_INLINE __m128 maximum(__m128 x, __m128 y) {
  const __m128 greatest = _mm_and_ps(_mm_max_ps(x, y), _mm_max_ps(y, x));
  const __m128 unordered = _mm_cmpunord_ps(x, y);
  return _mm_or_ps(_mm_and_ps(unordered, _mm_add_ps(x, y)), _mm_andnot_ps(unordered, greatest));
}

#define combine_muladd(acc, a, weights) _mm_add_ps(acc, _mm_mul_ps(a, weights))
#define combine_add(acc, a) _mm_add_ps(acc, a)
#define combine_maximum maximum
#include "ukernel/products_windows.inc"

const eyas_uk_products_t eyas_uk_products_sse2 = {
    .name = "sse2",
    .width = 4,
    .contract = EYAS_UK_CONTRACTS(sse2, portable, portable, portable, portable, portable),
    .window = EYAS_UK_WINDOWS(OWN_WINDOW),
};

#else
typedef int eyas_uk_not_this_architecture_t;
#endif
