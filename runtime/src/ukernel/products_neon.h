// Accumulators of products of bytes, for the NEON files: included where the instructions are
// enabled.
#ifndef EYAS_UKERNEL_PRODUCTS_NEON_H_
#define EYAS_UKERNEL_PRODUCTS_NEON_H_

#include <arm_neon.h>
#include <string.h>

#include "ukernel/products.h"

// The first n of four words, zeros behind them.
EYAS_UK_INLINE int32x4_t some_words(const void* p, int n) {
  int32_t values[4] = {0};
  memcpy(values, p, (size_t)n * 4);
  return vld1q_s32(values);
}

EYAS_UK_INLINE void store_some_words(int32_t* p, int n, int32x4_t v) {
  int32_t values[4];
  vst1q_s32(values, v);
  memcpy(p, values, (size_t)n * 4);
}

#define ACC int32_t
#define VECTOR int32x4_t
#define LANES 4
#define load_acc(p) vld1q_s32(p)
#define store_acc(p, v) vst1q_s32(p, v)
#define load_acc_some(p, n) some_words(p, n)
#define store_acc_some(p, n, v) store_some_words(p, n, v)

// Four bytes of a row, and those with 128 added or subtracted, which is one and the same bit.
#define load_bytes(p) vreinterpretq_u8_s32(vdupq_n_s32(*(const eyas_uk_i32_t*)(p)))
#define load_turned(p) veorq_u8(load_bytes(p), vdupq_n_u8(0x80))

#endif  // EYAS_UKERNEL_PRODUCTS_NEON_H_
