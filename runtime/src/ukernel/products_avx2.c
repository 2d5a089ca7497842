// Sums of products and of windows with AVX2 and FMA.
#if defined(__x86_64__)

#pragma GCC target("avx2,fma,f16c,bmi,bmi2")
#include <immintrin.h>

#include "ukernel/products.h"
#include "ukernel/products_avx2.h"

// 16 registers: accumulators, the operands that are held, and one that passes by.
#define EYAS_UK_BLOCKS_AVX2(X) \
  X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(1, 2) X(2, 2) X(3, 2) X(1, 4)
#define EYAS_UK_PANELS_AVX2 4, 2, 2, 1, 1, 1
#define EYAS_UK_TAILS_AVX2(X) X(1) X(3)

#define NAME(x) eyas_uk_##x##_f32_avx2
#define ACC float
#define VECTOR __m256
#define LANES 8
#define OPERAND __m256
#define OPERAND_BYTES 32
#define hold(x) EYAS_UK_OPAQUE(x, "x")
#define load_row(p) _mm256_set1_ps(*(const eyas_uk_f32_t*)(p))
#define load_lanes(p) _mm256_loadu_ps((const float*)(p))
#define load_some(p, n) _mm256_maskload_ps((const float*)(p), first_lanes(n))
#define multiply_add(acc, row, lanes) _mm256_fmadd_ps(row, lanes, acc)
#define load_acc(p) _mm256_loadu_ps((const float*)(p))
#define store_acc(p, v) _mm256_storeu_ps(p, v)
#define load_acc_some(p, n) _mm256_maskload_ps((const float*)(p), first_lanes(n))
#define store_acc_some(p, n, v) _mm256_maskstore_ps(p, first_lanes(n), v)
#define BLOCKS EYAS_UK_BLOCKS_AVX2
#define MAX_ROWS 6
#define PANELS_FOR_ROWS EYAS_UK_PANELS_AVX2
#define TAILS EYAS_UK_TAILS_AVX2
#define TAIL_ROWS 3
#include "ukernel/products_blocks.h"

#define WINDOW_VECTOR __m256
#define WINDOW_LANES 8
#define WINDOW_ELEMENT float
#define window_load(p) _mm256_loadu_ps((const float*)(p))
#define window_store(p, v) _mm256_storeu_ps(p, v)
#define window_load_some(p, n) _mm256_maskload_ps((const float*)(p), first_lanes(n))
#define window_store_some(p, n, v) _mm256_maskstore_ps(p, first_lanes(n), v)

// The instructions give their second operand when one is NaN or both are zeros: asked both ways
// round, two results differ in the sign of zeros alone.
#define GREATEST(x, y) _mm256_and_ps(_mm256_max_ps(x, y), _mm256_max_ps(y, x))
#define LEAST(x, y) _mm256_or_ps(_mm256_min_ps(x, y), _mm256_min_ps(y, x))
#define choose_nan(acc, a, WHICH) \
  _mm256_blendv_ps(WHICH(acc, a), _mm256_add_ps(acc, a), _mm256_cmp_ps(acc, a, _CMP_UNORD_Q))

// A number before NaN.
static inline __m256 choose_number(__m256 acc, __m256 a, __m256 chosen) {
  const __m256 either = _mm256_blendv_ps(acc, a, _mm256_cmp_ps(acc, acc, _CMP_UNORD_Q));
  return _mm256_blendv_ps(chosen, either, _mm256_cmp_ps(acc, a, _CMP_UNORD_Q));
}
#define choose(acc, a, WHICH) choose_number(acc, a, WHICH(acc, a))

#define NAME(x) x##_muladd
#define combine(acc, a, b) _mm256_fmadd_ps(a, b, acc)
#define HAS_WEIGHTS 1
#include "ukernel/products_windows.h"

#define NAME(x) x##_add
#define combine(acc, a, b) _mm256_add_ps(acc, a)
#define HAS_WEIGHTS 0
#include "ukernel/products_windows.h"

#define NAME(x) x##_maximum
#define combine(acc, a, b) choose_nan(acc, a, GREATEST)
#define HAS_WEIGHTS 0
#include "ukernel/products_windows.h"

#define NAME(x) x##_minimum
#define combine(acc, a, b) choose_nan(acc, a, LEAST)
#define HAS_WEIGHTS 0
#include "ukernel/products_windows.h"

#define NAME(x) x##_maxnum
#define combine(acc, a, b) choose(acc, a, GREATEST)
#define HAS_WEIGHTS 0
#include "ukernel/products_windows.h"

#define NAME(x) x##_minnum
#define combine(acc, a, b) choose(acc, a, LEAST)
#define HAS_WEIGHTS 0
#include "ukernel/products_windows.h"

#define WINDOW(name) {[EYAS_VMVX_TYPE_F32] = window_##name, EYAS_UK_WINDOW_OTHERS(name)}
#define WINDOW_FLOAT(name)               \
  {[EYAS_VMVX_TYPE_F32] = window_##name, \
   [EYAS_VMVX_TYPE_F64] = eyas_uk_window_##name##_f64_portable}
const eyas_uk_products_t eyas_uk_products_avx2 = {
    .name = "avx2",
    .width = 4,
    .contract =
        {
            [EYAS_VMVX_CONTRACT_F32] = eyas_uk_contract_f32_avx2,
            [EYAS_VMVX_CONTRACT_F16] = eyas_uk_contract_f16_avx2,
            [EYAS_VMVX_CONTRACT_BF16] = eyas_uk_contract_bf16_avx2,
            [EYAS_VMVX_CONTRACT_S8S8] = eyas_uk_contract_s8s8_avx2,
            [EYAS_VMVX_CONTRACT_U8S8] = eyas_uk_contract_u8s8_avx2,
            [EYAS_VMVX_CONTRACT_S8U8] = eyas_uk_contract_s8u8_avx2,
            [EYAS_VMVX_CONTRACT_U8U8] = eyas_uk_contract_u8u8_avx2,
            [EYAS_VMVX_CONTRACT_F64] = eyas_uk_contract_f64_avx2,
        },
    .window =
        {
            [EYAS_VMVX_WINDOW_MULADD] = WINDOW(muladd),
            [EYAS_VMVX_WINDOW_ADD] = WINDOW(add),
            [EYAS_VMVX_WINDOW_MAXIMUM] = WINDOW(maximum),
            [EYAS_VMVX_WINDOW_MINIMUM] = WINDOW(minimum),
            [EYAS_VMVX_WINDOW_MAXNUM] = WINDOW_FLOAT(maxnum),
            [EYAS_VMVX_WINDOW_MINNUM] = WINDOW_FLOAT(minnum),
        },
};

#else
typedef int eyas_uk_not_this_architecture_t;
#endif
