// Contractions of bytes with AArch64's dot products. Both factors have the same sign; where they do
// not, the row's are turned into the other kind.
#if defined(__aarch64__)

#pragma GCC target("arch=armv8.2-a+dotprod")
#include "ukernel/products_neon.h"

#define signed_dot(acc, row, lanes) \
  vdotq_s32(acc, vreinterpretq_s8_u8(row), vreinterpretq_s8_u8(lanes))
#define unsigned_dot(acc, row, lanes) \
  vreinterpretq_s32_u32(vdotq_u32(vreinterpretq_u32_s32(acc), row, lanes))

#include "ukernel/products_neon_bytes.inc"
#define subtract vsubq_s32

#define NAME(x) eyas_uk_##x##_s8s8_dotprod
#define load_row load_bytes
#define multiply_add signed_dot
#include "ukernel/products_blocks.inc"

#define NAME(x) eyas_uk_##x##_u8s8_dotprod
#define load_row load_flipped
#define multiply_add signed_dot
#define OFFSET_ROW vdupq_n_u8(0x80)
#include "ukernel/products_blocks.inc"

#define NAME(x) eyas_uk_##x##_s8u8_dotprod
#define load_row load_flipped
#define multiply_add unsigned_dot
#define OFFSET_ROW vdupq_n_u8(0x80)
#include "ukernel/products_blocks.inc"

#define NAME(x) eyas_uk_##x##_u8u8_dotprod
#define load_row load_bytes
#define multiply_add unsigned_dot
#include "ukernel/products_blocks.inc"

#else
typedef int eyas_uk_not_this_architecture_t;
#endif
