// What the AVX-512 files share; included where the instructions are enabled.
#ifndef EYAS_UKERNEL_PRODUCTS_AVX512_H_
#define EYAS_UKERNEL_PRODUCTS_AVX512_H_

#include <immintrin.h>

// The first n lanes, n up to 16.
static inline __mmask16 first_lanes(int n) {
  return (__mmask16)((1u << n) - 1);
}

#endif  // EYAS_UKERNEL_PRODUCTS_AVX512_H_
