// Vectors of the NEON files; included where the instructions are enabled.
#ifndef EYAS_UKERNEL_PRODUCTS_NEON_H_
#define EYAS_UKERNEL_PRODUCTS_NEON_H_

#include <arm_neon.h>
#include <string.h>

#include "ukernel/products.h"

typedef float32x4_t vector_f32;
typedef int32x4_t vector_i32;

// Four vectors a panel, 32 registers. Only f32 has blocks of more than one panel.
#define EYAS_UK_BLOCKS_NEON(X) X(1, 1) X(2, 1) X(4, 1)
#define EYAS_UK_MAX_ROWS_NEON 4
#define EYAS_UK_PANELS_NEON 1, 1, 1, 1
#define EYAS_UK_TAILS_NEON(X) X(1)
#define EYAS_UK_TAIL_ROWS_NEON 1
#define EYAS_UK_TURNS_NEON 0

// The first n of four words, zeros behind them.
EYAS_UK_INLINE int32x4_t load_some_i32(const void* p, int n) {
  int32_t values[4] = {0};
  memcpy(values, p, (size_t)n * 4);
  return vld1q_s32(values);
}

EYAS_UK_INLINE void store_some_i32(void* p, int n, int32x4_t v) {
  int32_t values[4];
  vst1q_s32(values, v);
  memcpy(p, values, (size_t)n * 4);
}

#define load_i32(p) vreinterpretq_s32_u8(vld1q_u8((const uint8_t*)(p)))
#define store_i32(p, v) vst1q_s32((int32_t*)(p), v)

#define load_f32(p) vreinterpretq_f32_u8(vld1q_u8((const uint8_t*)(p)))
#define store_f32(p, v) vst1q_f32((float*)(p), v)
#define load_some_f32(p, n) vreinterpretq_f32_s32(load_some_i32(p, n))
#define store_some_f32(p, n, v) store_some_i32(p, n, vreinterpretq_s32_f32(v))

// Four bytes of a row, and those with 128 added or subtracted, which is one and the same bit.
#define load_bytes(p) vreinterpretq_u8_s32(vdupq_n_s32(*(const eyas_uk_i32_t*)(p)))
#define load_flipped(p) veorq_u8(load_bytes(p), vdupq_n_u8(0x80))

#endif  // EYAS_UKERNEL_PRODUCTS_NEON_H_
