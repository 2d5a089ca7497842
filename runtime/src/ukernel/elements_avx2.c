// x86-64 with AVX2, FMA and F16C.
#include "ukernel/elements.h"

#if defined(__x86_64__)
#pragma GCC target("avx2,fma,f16c")
#include <immintrin.h>
#define SET avx2
#define HOT_ONLY
#include "ukernel/elements_set.inc"
#endif
