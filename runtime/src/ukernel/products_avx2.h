// What the AVX2 files share; included where the instructions are enabled.
#ifndef EYAS_UKERNEL_PRODUCTS_AVX2_H_
#define EYAS_UKERNEL_PRODUCTS_AVX2_H_

#include <immintrin.h>
#include <stdint.h>

// The first n of 8 lanes.
static inline __m256i first_lanes(int n) {
  static const int32_t bits[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  return _mm256_loadu_si256((const __m256i_u*)(bits + 8 - n));
}

#endif  // EYAS_UKERNEL_PRODUCTS_AVX2_H_
