// x86-64 with AVX-512 F, DQ, BW and VL.
#include "ukernel/elements.h"

#if defined(__x86_64__)
#pragma GCC target("avx2,fma,f16c,avx512f,avx512dq,avx512bw,avx512vl,prefer-vector-width=512")
#include <immintrin.h>
#define SET avx512
#define HOT_ONLY
#define FLOATS_ONLY  // integers are seldom hot, and AVX2's vectors serve them
#include "ukernel/elements_set.inc"
#endif
