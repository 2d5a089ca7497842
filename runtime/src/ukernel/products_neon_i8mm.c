// Contractions of unsigned with signed bytes with the dot product of AArch64's i8mm.
#if defined(__aarch64__)

#pragma GCC target("arch=armv8.2-a+dotprod+i8mm")
#include "ukernel/products_neon.h"

#define NAME(x) eyas_uk_##x##_u8s8_i8mm
#define OPERAND uint8x16_t
#define OPERAND_BYTES 16
#define hold(x) EYAS_UK_OPAQUE(x, "w")
#define load_row(p) load_bytes(p)
#define load_lanes(p) vld1q_u8((const uint8_t*)(p))
#define load_some(p, n) vreinterpretq_u8_s32(some_words(p, n))
#define multiply_add(acc, row, lanes) vusdotq_s32(acc, row, vreinterpretq_s8_u8(lanes))
#define BLOCKS(X) X(1, 1) X(2, 1) X(4, 1)
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 1, 1, 1, 1
#define TAILS(X) X(1)
#define TAIL_ROWS 1
#include "ukernel/products_blocks.h"

#define NAME(x) eyas_uk_##x##_s8u8_i8mm
#define OPERAND uint8x16_t
#define OPERAND_BYTES 16
#define hold(x) EYAS_UK_OPAQUE(x, "w")
#define load_row(p) load_bytes(p)
#define load_lanes(p) vld1q_u8((const uint8_t*)(p))
#define load_some(p, n) vreinterpretq_u8_s32(some_words(p, n))
#define multiply_add(acc, row, lanes) vusdotq_s32(acc, lanes, vreinterpretq_s8_u8(row))
#define BLOCKS(X) X(1, 1) X(2, 1) X(4, 1)
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 1, 1, 1, 1
#define TAILS(X) X(1)
#define TAIL_ROWS 1
#include "ukernel/products_blocks.h"

#else
typedef int eyas_uk_not_this_architecture_t;
#endif
