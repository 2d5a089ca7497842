#include "measure/kernels.h"

#include "base/cpu.h"

// Chains of dependent multiply-adds: enough to fill two pipes of latency 5, few enough for 16
// registers. The value goes to 1, so that no number is denormal.
#define CHAINS 12
#define FOR_CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define DECLARE(i) VECTOR a##i = SPLAT(0.5f + 0.01f * i);
#define STEP(i) a##i = FMA(a##i, scale, shift);
#define ADD(i) sum += a##i;

#define FMA_BODY(rounds)                               \
  FOR_CHAINS(DECLARE)                                  \
  VECTOR scale = SPLAT(0.999f), shift = SPLAT(0.001f); \
  for (uint64_t i = 0; i < (rounds); ++i) {            \
    FOR_CHAINS(STEP)                                   \
  }                                                    \
  VECTOR sum = SPLAT(0.0f);                            \
  FOR_CHAINS(ADD)                                      \
  return sum[0];

// Eight loads a step, each added to a sum of its own.
#define READ_STEP(i) s##i += p[i];
#define READ_BODY(data, bytes)                                                          \
  const WORDS* p = (data);                                                              \
  const WORDS* end = (const WORDS*)((const char*)p + (bytes));                          \
  WORDS s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, s4 = {0}, s5 = {0}, s6 = {0}, s7 = {0}; \
  for (; p < end; p += 8) {                                                             \
    READ_STEP(0)                                                                        \
    READ_STEP(1)                                                                        \
    READ_STEP(2)                                                                        \
    READ_STEP(3)                                                                        \
    READ_STEP(4)                                                                        \
    READ_STEP(5)                                                                        \
    READ_STEP(6)                                                                        \
    READ_STEP(7)                                                                        \
  }                                                                                     \
  WORDS sum = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7));                        \
  return sum[0];

typedef uint64_t words16_t __attribute__((vector_size(16), may_alias));

#if defined(__x86_64__)

#include <immintrin.h>

typedef uint64_t words32_t __attribute__((vector_size(32), may_alias));
typedef uint64_t words64_t __attribute__((vector_size(64), may_alias));

#define VECTOR __m512
#define SPLAT _mm512_set1_ps
#define FMA _mm512_fmadd_ps
#define WORDS words64_t
__attribute__((target("avx512f"))) static float fma_avx512(uint64_t rounds) {
  FMA_BODY(rounds)
}
__attribute__((target("avx512f"))) static uint64_t read_avx512(const void* data, size_t bytes) {
  READ_BODY(data, bytes)
}
#undef VECTOR
#undef SPLAT
#undef FMA
#undef WORDS

#define VECTOR __m256
#define SPLAT _mm256_set1_ps
#define FMA _mm256_fmadd_ps
#define WORDS words32_t
__attribute__((target("avx2,fma"))) static float fma_avx2(uint64_t rounds) {
  FMA_BODY(rounds)
}
__attribute__((target("avx2,fma"))) static uint64_t read_avx2(const void* data, size_t bytes) {
  READ_BODY(data, bytes)
}
#undef VECTOR
#undef SPLAT
#undef FMA
#undef WORDS

#endif

// Elsewhere: what every processor of the architecture has, which on AArch64 is NEON.
typedef float floats4_t __attribute__((vector_size(16)));
#if defined(__aarch64__)
#include <arm_neon.h>
#define FMA(a, b, c) (floats4_t) vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b))
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#endif
#define VECTOR floats4_t
#define SPLAT(x) ((floats4_t){(x), (x), (x), (x)})
#define WORDS words16_t
static float fma_plain(uint64_t rounds) {
  FMA_BODY(rounds)
}
static uint64_t read_plain(const void* data, size_t bytes) {
  READ_BODY(data, bytes)
}

eyas_measure_kernels_t eyas_measure_kernels(void) {
#if defined(__x86_64__)
  if (eyas_cpu_supports("avx512f")) {
    return (eyas_measure_kernels_t){fma_avx512, read_avx512, 2 * 16 * CHAINS};
  }
  if (eyas_cpu_supports("avx2") && eyas_cpu_supports("fma")) {
    return (eyas_measure_kernels_t){fma_avx2, read_avx2, 2 * 8 * CHAINS};
  }
#endif
  return (eyas_measure_kernels_t){fma_plain, read_plain, 2 * 4 * CHAINS};
}
