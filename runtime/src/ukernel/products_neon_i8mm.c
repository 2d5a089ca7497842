// Contractions of unsigned with signed bytes with the dot product of AArch64's i8mm.
#if defined(__aarch64__)

#pragma GCC target("arch=armv8.2-a+dotprod+i8mm")
#include "ukernel/products_neon.h"

#include "ukernel/products_neon_bytes.inc"

#define NAME(x) eyas_uk_##x##_u8s8_i8mm
#define load_row load_bytes
#define multiply_add(acc, row, lanes) vusdotq_s32(acc, row, vreinterpretq_s8_u8(lanes))
#include "ukernel/products_blocks.inc"

#define NAME(x) eyas_uk_##x##_s8u8_i8mm
#define load_row load_bytes
#define multiply_add(acc, row, lanes) vusdotq_s32(acc, lanes, vreinterpretq_s8_u8(row))
#include "ukernel/products_blocks.inc"

#else
typedef int eyas_uk_not_this_architecture_t;
#endif
