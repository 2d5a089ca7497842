// Contractions of bytes with AVX-512 VNNI, and of bf16 with AVX512_BF16.
#if defined(__x86_64__)

#pragma GCC target( \
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16,avx2,fma,f16c,bmi,bmi2")
#include <immintrin.h>

#include "ukernel/products.h"
#include "ukernel/products_avx512.h"

// The instruction multiplies unsigned with signed bytes. Where both have the same sign, the row's
// are turned into the other kind by adding or subtracting 128, which is one and the same bit.
#define load_bytes(p) _mm512_set1_epi32(*(const eyas_uk_i32_t*)(p))
#define load_turned(p) _mm512_xor_si512(load_bytes(p), _mm512_set1_epi8((char)0x80))

#define ACC int32_t
#define VECTOR __m512i
#define LANES 16
#define load_acc(p) _mm512_loadu_si512(p)
#define store_acc(p, v) _mm512_storeu_si512(p, v)
#define load_acc_some(p, n) _mm512_maskz_loadu_epi32(first_lanes(n), p)
#define store_acc_some(p, n, v) _mm512_mask_storeu_epi32(p, first_lanes(n), v)

#define NAME(x) eyas_uk_##x##_s8s8_vnni
#define OPERAND __m512i
#define OPERAND_BYTES 64
#define hold(x) EYAS_UK_OPAQUE(x, "v")
#define load_row(p) load_turned(p)
#define load_lanes(p) _mm512_loadu_si512(p)
#define load_some(p, n) _mm512_maskz_loadu_epi32(first_lanes(n), p)
#define multiply_add(acc, row, lanes) _mm512_dpbusd_epi32(acc, row, lanes)
#define OFFSET_ROW _mm512_set1_epi8((char)0x80)
#define subtract(acc, offset) _mm512_sub_epi32(acc, offset)
#define BLOCKS EYAS_UK_BLOCKS_SMALL
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 4, 4, 4, 4
#define TAILS EYAS_UK_TAILS_SMALL
#define TAIL_ROWS 1
#include "ukernel/products_blocks.h"
#undef subtract

#define NAME(x) eyas_uk_##x##_u8s8_vnni
#define OPERAND __m512i
#define OPERAND_BYTES 64
#define hold(x) EYAS_UK_OPAQUE(x, "v")
#define load_row(p) load_bytes(p)
#define load_lanes(p) _mm512_loadu_si512(p)
#define load_some(p, n) _mm512_maskz_loadu_epi32(first_lanes(n), p)
#define multiply_add(acc, row, lanes) _mm512_dpbusd_epi32(acc, row, lanes)
#define BLOCKS EYAS_UK_BLOCKS_SMALL
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 4, 4, 4, 4
#define TAILS EYAS_UK_TAILS_SMALL
#define TAIL_ROWS 1
#include "ukernel/products_blocks.h"

#define NAME(x) eyas_uk_##x##_s8u8_vnni
#define OPERAND __m512i
#define OPERAND_BYTES 64
#define hold(x) EYAS_UK_OPAQUE(x, "v")
#define load_row(p) load_bytes(p)
#define load_lanes(p) _mm512_loadu_si512(p)
#define load_some(p, n) _mm512_maskz_loadu_epi32(first_lanes(n), p)
#define multiply_add(acc, row, lanes) _mm512_dpbusd_epi32(acc, lanes, row)
#define BLOCKS EYAS_UK_BLOCKS_SMALL
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 4, 4, 4, 4
#define TAILS EYAS_UK_TAILS_SMALL
#define TAIL_ROWS 1
#include "ukernel/products_blocks.h"

#define NAME(x) eyas_uk_##x##_u8u8_vnni
#define OPERAND __m512i
#define OPERAND_BYTES 64
#define hold(x) EYAS_UK_OPAQUE(x, "v")
#define load_row(p) load_turned(p)
#define load_lanes(p) _mm512_loadu_si512(p)
#define load_some(p, n) _mm512_maskz_loadu_epi32(first_lanes(n), p)
#define multiply_add(acc, row, lanes) _mm512_dpbusd_epi32(acc, lanes, row)
#define OFFSET_ROW _mm512_set1_epi8((char)0x80)
#define subtract(acc, offset) _mm512_sub_epi32(acc, offset)
#define BLOCKS EYAS_UK_BLOCKS_SMALL
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 4, 4, 4, 4
#define TAILS EYAS_UK_TAILS_SMALL
#define TAIL_ROWS 1
#include "ukernel/products_blocks.h"
#undef subtract

#undef ACC
#undef VECTOR
#undef LANES
#undef load_acc
#undef store_acc
#undef load_acc_some
#undef store_acc_some
#define ACC float
#define VECTOR __m512
#define LANES 16
#define load_acc(p) _mm512_loadu_ps(p)
#define store_acc(p, v) _mm512_storeu_ps(p, v)
#define load_acc_some(p, n) _mm512_maskz_loadu_ps(first_lanes(n), p)
#define store_acc_some(p, n, v) _mm512_mask_storeu_ps(p, first_lanes(n), v)

// Subnormal numbers count as zero here, which no other set does; sums round to even at every step.
#define NAME(x) eyas_uk_##x##_bf16_vnni
#define OPERAND __m512i
#define OPERAND_BYTES 64
#define hold(x) EYAS_UK_OPAQUE(x, "v")
#define load_row(p) load_bytes(p)
#define load_lanes(p) _mm512_loadu_si512(p)
#define load_some(p, n) _mm512_maskz_loadu_epi32(first_lanes(n), p)
#define multiply_add(acc, row, lanes) _mm512_dpbf16_ps(acc, (__m512bh)(row), (__m512bh)(lanes))
#define BLOCKS EYAS_UK_BLOCKS_SMALL
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 4, 4, 4, 4
#define TAILS EYAS_UK_TAILS_SMALL
#define TAIL_ROWS 1
#include "ukernel/products_blocks.h"

#else
typedef int eyas_uk_not_this_architecture_t;
#endif
