// Vectors of the AVX-512 files; included where the instructions are enabled.
#ifndef EYAS_UKERNEL_PRODUCTS_AVX512_H_
#define EYAS_UKERNEL_PRODUCTS_AVX512_H_

#include <immintrin.h>

#include "ukernel/products.h"

typedef __m512 vector_f32;
typedef __m512i vector_i32;

// The first n of 16 lanes.
EYAS_UK_INLINE __mmask16 first_lanes(int n) {
  return (__mmask16)((1u << n) - 1);
}

#define load_f32(p) _mm512_loadu_ps(p)
#define store_f32(p, v) _mm512_storeu_ps(p, v)
#define load_some_f32(p, n) _mm512_maskz_loadu_ps(first_lanes(n), p)
#define store_some_f32(p, n, v) _mm512_mask_storeu_ps(p, first_lanes(n), v)

#define load_i32(p) _mm512_loadu_si512(p)
#define store_i32(p, v) _mm512_storeu_si512(p, v)
#define load_some_i32(p, n) _mm512_maskz_loadu_epi32(first_lanes(n), p)
#define store_some_i32(p, n, v) _mm512_mask_storeu_epi32(p, first_lanes(n), v)

#endif  // EYAS_UKERNEL_PRODUCTS_AVX512_H_
