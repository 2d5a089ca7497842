// Contractions of bytes with AVX-512 VNNI, and of bf16 with AVX512_BF16.
#if defined(__x86_64__)

#pragma GCC target( \
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16,avx2,fma,f16c,bmi,bmi2")
#include "ukernel/products_avx512.h"

// The instruction multiplies unsigned with signed bytes. Where both have the same sign, the row's
// are turned into the other kind by adding or subtracting 128, which is one and the same bit.
#define load_bytes(p) _mm512_set1_epi32(*(const eyas_uk_i32_t*)(p))
#define load_flipped(p) _mm512_xor_si512(load_bytes(p), _mm512_set1_epi8((char)0x80))

#define ACCUMULATOR i32
#define SHAPES SMALL
#define OPERAND __m512i
#define OPERAND_BYTES 64
#define hold(x) EYAS_UK_OPAQUE(x, "v")
#define load_lanes load_i32
#define load_some load_some_i32
#define subtract(acc, offset) _mm512_sub_epi32(acc, offset)

#define NAME(x) eyas_uk_##x##_s8s8_vnni
#define load_row load_flipped
#define multiply_add(acc, row, lanes) _mm512_dpbusd_epi32(acc, row, lanes)
#define OFFSET_ROW _mm512_set1_epi8((char)0x80)
#include "ukernel/products_blocks.inc"

#define NAME(x) eyas_uk_##x##_u8s8_vnni
#define load_row load_bytes
#define multiply_add(acc, row, lanes) _mm512_dpbusd_epi32(acc, row, lanes)
#include "ukernel/products_blocks.inc"

#define NAME(x) eyas_uk_##x##_s8u8_vnni
#define load_row load_bytes
#define multiply_add(acc, row, lanes) _mm512_dpbusd_epi32(acc, lanes, row)
#include "ukernel/products_blocks.inc"

#define NAME(x) eyas_uk_##x##_u8u8_vnni
#define load_row load_flipped
#define multiply_add(acc, row, lanes) _mm512_dpbusd_epi32(acc, lanes, row)
#define OFFSET_ROW _mm512_set1_epi8((char)0x80)
#include "ukernel/products_blocks.inc"

// Two bf16 of a column lie together. Subnormal numbers count as zero here, which no other set does;
// sums round to even at every step.
#undef ACCUMULATOR
#define ACCUMULATOR f32
#define NAME(x) eyas_uk_##x##_bf16_vnni
#define load_row load_bytes
#define multiply_add(acc, row, lanes) _mm512_dpbf16_ps(acc, (__m512bh)(row), (__m512bh)(lanes))
#include "ukernel/products_blocks.inc"

#else
typedef int eyas_uk_not_this_architecture_t;
#endif
