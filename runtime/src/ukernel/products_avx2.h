// Vectors of the AVX2 files; included where the instructions are enabled.
#ifndef EYAS_UKERNEL_PRODUCTS_AVX2_H_
#define EYAS_UKERNEL_PRODUCTS_AVX2_H_

#include <immintrin.h>
#include <string.h>

#include "ukernel/products.h"

typedef __m256 vector_f32;
typedef __m256i vector_i32;
typedef __m256d vector_f64;

// The first n of 8 lanes of 32 bits, and of 4 of 64.
EYAS_UK_INLINE __m256i first_lanes(int n) {
  static const int32_t bits[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  return _mm256_loadu_si256((const __m256i_u*)(bits + 8 - n));
}

EYAS_UK_INLINE __m256i first_pairs(int n) {
  static const int64_t bits[8] = {-1, -1, -1, -1};
  return _mm256_loadu_si256((const __m256i_u*)(bits + 4 - n));
}

#define load_f32(p) _mm256_loadu_ps((const float*)(p))
#define store_f32(p, v) _mm256_storeu_ps((float*)(p), v)
#define load_some_f32(p, n) _mm256_maskload_ps((const float*)(p), first_lanes(n))
#define store_some_f32(p, n, v) _mm256_maskstore_ps((float*)(p), first_lanes(n), v)

#define load_i32(p) _mm256_loadu_si256((const __m256i_u*)(p))
#define store_i32(p, v) _mm256_storeu_si256((__m256i_u*)(p), v)
#define load_some_i32(p, n) _mm256_maskload_epi32((const int*)(p), first_lanes(n))
#define store_some_i32(p, n, v) _mm256_maskstore_epi32((int*)(p), first_lanes(n), v)

#define load_f64(p) _mm256_loadu_pd((const double*)(p))
#define store_f64(p, v) _mm256_storeu_pd((double*)(p), v)
#define load_some_f64(p, n) _mm256_maskload_pd((const double*)(p), first_pairs(n))
#define store_some_f64(p, n, v) _mm256_maskstore_pd((double*)(p), first_pairs(n), v)

#endif  // EYAS_UKERNEL_PRODUCTS_AVX2_H_
