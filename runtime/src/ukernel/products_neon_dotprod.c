// Contractions of bytes with AArch64's dot products. Both factors have the same sign; where they do
// not, the row's are turned into the other kind.
#if defined(__aarch64__)

#pragma GCC target("arch=armv8.2-a+dotprod")
#include "ukernel/products_neon.h"

#define signed_dot(acc, row, lanes) \
  vdotq_s32(acc, vreinterpretq_s8_u8(row), vreinterpretq_s8_u8(lanes))
#define unsigned_dot(acc, row, lanes) \
  vreinterpretq_s32_u32(vdotq_u32(vreinterpretq_u32_s32(acc), row, lanes))

#define NAME(x) eyas_uk_##x##_s8s8_dotprod
#define OPERAND uint8x16_t
#define OPERAND_BYTES 16
#define hold(x) EYAS_UK_OPAQUE(x, "w")
#define load_row(p) load_bytes(p)
#define load_lanes(p) vld1q_u8((const uint8_t*)(p))
#define load_some(p, n) vreinterpretq_u8_s32(some_words(p, n))
#define multiply_add(acc, row, lanes) signed_dot(acc, row, lanes)
#define BLOCKS(X) X(1, 1) X(2, 1) X(4, 1)
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 1, 1, 1, 1
#define TAILS(X) X(1)
#define TAIL_ROWS 1
#include "ukernel/products_blocks.h"

#define NAME(x) eyas_uk_##x##_u8s8_dotprod
#define OPERAND uint8x16_t
#define OPERAND_BYTES 16
#define hold(x) EYAS_UK_OPAQUE(x, "w")
#define load_row(p) load_turned(p)
#define load_lanes(p) vld1q_u8((const uint8_t*)(p))
#define load_some(p, n) vreinterpretq_u8_s32(some_words(p, n))
#define multiply_add(acc, row, lanes) signed_dot(acc, row, lanes)
#define OFFSET_ROW vdupq_n_u8(0x80)
#define subtract(acc, offset) vsubq_s32(acc, offset)
#define BLOCKS(X) X(1, 1) X(2, 1) X(4, 1)
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 1, 1, 1, 1
#define TAILS(X) X(1)
#define TAIL_ROWS 1
#include "ukernel/products_blocks.h"
#undef subtract

#define NAME(x) eyas_uk_##x##_s8u8_dotprod
#define OPERAND uint8x16_t
#define OPERAND_BYTES 16
#define hold(x) EYAS_UK_OPAQUE(x, "w")
#define load_row(p) load_turned(p)
#define load_lanes(p) vld1q_u8((const uint8_t*)(p))
#define load_some(p, n) vreinterpretq_u8_s32(some_words(p, n))
#define multiply_add(acc, row, lanes) unsigned_dot(acc, row, lanes)
#define OFFSET_ROW vdupq_n_u8(0x80)
#define subtract(acc, offset) vsubq_s32(acc, offset)
#define BLOCKS(X) X(1, 1) X(2, 1) X(4, 1)
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 1, 1, 1, 1
#define TAILS(X) X(1)
#define TAIL_ROWS 1
#include "ukernel/products_blocks.h"
#undef subtract

#define NAME(x) eyas_uk_##x##_u8u8_dotprod
#define OPERAND uint8x16_t
#define OPERAND_BYTES 16
#define hold(x) EYAS_UK_OPAQUE(x, "w")
#define load_row(p) load_bytes(p)
#define load_lanes(p) vld1q_u8((const uint8_t*)(p))
#define load_some(p, n) vreinterpretq_u8_s32(some_words(p, n))
#define multiply_add(acc, row, lanes) unsigned_dot(acc, row, lanes)
#define BLOCKS(X) X(1, 1) X(2, 1) X(4, 1)
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 1, 1, 1, 1
#define TAILS(X) X(1)
#define TAIL_ROWS 1
#include "ukernel/products_blocks.h"

#else
typedef int eyas_uk_not_this_architecture_t;
#endif
