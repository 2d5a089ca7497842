// Sums of products and of windows with NEON, which every AArch64 processor has.
#if defined(__aarch64__)

#include <arm_neon.h>
#include <string.h>

#include "ukernel/half.h"
#include "ukernel/products.h"

// Four vectors a panel, 32 registers.
#define EYAS_UK_BLOCKS_NEON(X) \
  X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(1, 2) X(2, 2) X(1, 4)
#define EYAS_UK_TAILS_NEON(X) X(1)

// The first n of four floats, zeros behind them.
EYAS_UK_INLINE float32x4_t some_floats(const void* p, int n) {
  float values[4] = {0};
  memcpy(values, p, (size_t)n * 4);
  return vld1q_f32(values);
}

EYAS_UK_INLINE void store_some_floats(float* p, int n, float32x4_t v) {
  float values[4];
  vst1q_f32(values, v);
  memcpy(p, values, (size_t)n * 4);
}

#define ACC float
#define VECTOR float32x4_t
#define LANES 4
#define load_acc(p) vld1q_f32(p)
#define store_acc(p, v) vst1q_f32(p, v)
#define load_acc_some(p, n) some_floats(p, n)
#define store_acc_some(p, n, v) store_some_floats(p, n, v)

#define NAME(x) eyas_uk_##x##_f32_neon
#define OPERAND float32x4_t
#define OPERAND_BYTES 16
#define hold(x) EYAS_UK_OPAQUE(x, "w")
#define load_row(p) vdupq_n_f32(*(const eyas_uk_f32_t*)(p))
#define load_lanes(p) vreinterpretq_f32_u8(vld1q_u8((const uint8_t*)(p)))
#define load_some(p, n) some_floats(p, n)
#define multiply_add(acc, row, lanes) vfmaq_f32(acc, row, lanes)
#define BLOCKS EYAS_UK_BLOCKS_NEON
#define MAX_ROWS 6
#define PANELS_FOR_ROWS 4, 2, 1, 1, 1, 1
#define TAILS EYAS_UK_TAILS_NEON
#define TAIL_ROWS 1
#include "ukernel/products_blocks.h"

EYAS_UK_INLINE float32x4_t some_halves(const void* p, int n) {
  uint16_t values[4] = {0};
  memcpy(values, p, (size_t)n * 2);
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(values)));
}

#define NAME(x) eyas_uk_##x##_f16_neon
#define OPERAND float32x4_t
#define OPERAND_BYTES 8
#define hold(x) EYAS_UK_OPAQUE(x, "w")
#define load_row(p) vdupq_n_f32(eyas_uk_float_of_f16(*(const eyas_uk_u16_t*)(p)))
#define load_lanes(p) vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8((const uint8_t*)(p))))
#define load_some(p, n) some_halves(p, n)
#define multiply_add(acc, row, lanes) vfmaq_f32(acc, row, lanes)
#define BLOCKS(X) X(1, 1) X(2, 1) X(4, 1)
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 1, 1, 1, 1
#define TAILS EYAS_UK_TAILS_NEON
#define TAIL_ROWS 1
#include "ukernel/products_blocks.h"

// Two bf16 of a column lie together. Each is the upper half of an f32.
typedef struct pair_t {
  float32x4_t first, second;
} pair_t;

EYAS_UK_INLINE pair_t pair_of(uint32x4_t bits) {
  return (pair_t){vreinterpretq_f32_u32(vshlq_n_u32(bits, 16)),
                  vreinterpretq_f32_u32(vandq_u32(bits, vdupq_n_u32(0xffff0000u)))};
}

#define NAME(x) eyas_uk_##x##_bf16_neon
#define OPERAND pair_t
#define OPERAND_BYTES 16
#define hold(x)
#define load_row(p) pair_of(vdupq_n_u32((uint32_t) * (const eyas_uk_i32_t*)(p)))
#define load_lanes(p) pair_of(vreinterpretq_u32_u8(vld1q_u8((const uint8_t*)(p))))
#define load_some(p, n) pair_of(vreinterpretq_u32_f32(some_floats(p, n)))
#define multiply_add(acc, row, lanes) \
  vfmaq_f32(vfmaq_f32(acc, (row).first, (lanes).first), (row).second, (lanes).second)
#define BLOCKS(X) X(1, 1) X(2, 1) X(4, 1)
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 1, 1, 1, 1
#define TAILS EYAS_UK_TAILS_NEON
#define TAIL_ROWS 1
#include "ukernel/products_blocks.h"

#undef ACC
#undef VECTOR
#undef load_acc
#undef store_acc
#undef load_acc_some
#undef store_acc_some
#include "ukernel/products_neon.h"

// Four bytes of each of four columns lie together: products of 16 bits, added in pairs twice.
#define MULTIPLY_BYTES(name, wide_row, wide_lanes)                                            \
  EYAS_UK_INLINE int32x4_t multiply_##name(int32x4_t acc, uint8x16_t row, uint8x16_t lanes) { \
    const int16x8_t row0 = wide_row(row, low), row1 = wide_row(row, high);                    \
    const int16x8_t lanes0 = wide_lanes(lanes, low), lanes1 = wide_lanes(lanes, high);        \
    const int32x4_t sums0 = vpaddq_s32(vmull_s16(vget_low_s16(row0), vget_low_s16(lanes0)),   \
                                       vmull_high_s16(row0, lanes0));                         \
    const int32x4_t sums1 = vpaddq_s32(vmull_s16(vget_low_s16(row1), vget_low_s16(lanes1)),   \
                                       vmull_high_s16(row1, lanes1));                         \
    return vaddq_s32(acc, vpaddq_s32(sums0, sums1));                                          \
  }
#define WIDE_S8(x, half) vmovl_s8(vget_##half##_s8(vreinterpretq_s8_u8(x)))
#define WIDE_U8(x, half) vreinterpretq_s16_u16(vmovl_u8(vget_##half##_u8(x)))
MULTIPLY_BYTES(s8s8, WIDE_S8, WIDE_S8)
MULTIPLY_BYTES(u8s8, WIDE_U8, WIDE_S8)
MULTIPLY_BYTES(s8u8, WIDE_S8, WIDE_U8)
MULTIPLY_BYTES(u8u8, WIDE_U8, WIDE_U8)

#define NAME(x) eyas_uk_##x##_s8s8_neon
#define OPERAND uint8x16_t
#define OPERAND_BYTES 16
#define hold(x) EYAS_UK_OPAQUE(x, "w")
#define load_row(p) load_bytes(p)
#define load_lanes(p) vld1q_u8((const uint8_t*)(p))
#define load_some(p, n) vreinterpretq_u8_s32(some_words(p, n))
#define multiply_add(acc, row, lanes) multiply_s8s8(acc, row, lanes)
#define BLOCKS(X) X(1, 1) X(2, 1) X(4, 1)
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 1, 1, 1, 1
#define TAILS(X) X(1)
#define TAIL_ROWS 1
#include "ukernel/products_blocks.h"

#define NAME(x) eyas_uk_##x##_u8s8_neon
#define OPERAND uint8x16_t
#define OPERAND_BYTES 16
#define hold(x) EYAS_UK_OPAQUE(x, "w")
#define load_row(p) load_bytes(p)
#define load_lanes(p) vld1q_u8((const uint8_t*)(p))
#define load_some(p, n) vreinterpretq_u8_s32(some_words(p, n))
#define multiply_add(acc, row, lanes) multiply_u8s8(acc, row, lanes)
#define BLOCKS(X) X(1, 1) X(2, 1) X(4, 1)
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 1, 1, 1, 1
#define TAILS(X) X(1)
#define TAIL_ROWS 1
#include "ukernel/products_blocks.h"

#define NAME(x) eyas_uk_##x##_s8u8_neon
#define OPERAND uint8x16_t
#define OPERAND_BYTES 16
#define hold(x) EYAS_UK_OPAQUE(x, "w")
#define load_row(p) load_bytes(p)
#define load_lanes(p) vld1q_u8((const uint8_t*)(p))
#define load_some(p, n) vreinterpretq_u8_s32(some_words(p, n))
#define multiply_add(acc, row, lanes) multiply_s8u8(acc, row, lanes)
#define BLOCKS(X) X(1, 1) X(2, 1) X(4, 1)
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 1, 1, 1, 1
#define TAILS(X) X(1)
#define TAIL_ROWS 1
#include "ukernel/products_blocks.h"

#define NAME(x) eyas_uk_##x##_u8u8_neon
#define OPERAND uint8x16_t
#define OPERAND_BYTES 16
#define hold(x) EYAS_UK_OPAQUE(x, "w")
#define load_row(p) load_bytes(p)
#define load_lanes(p) vld1q_u8((const uint8_t*)(p))
#define load_some(p, n) vreinterpretq_u8_s32(some_words(p, n))
#define multiply_add(acc, row, lanes) multiply_u8u8(acc, row, lanes)
#define BLOCKS(X) X(1, 1) X(2, 1) X(4, 1)
#define MAX_ROWS 4
#define PANELS_FOR_ROWS 1, 1, 1, 1
#define TAILS(X) X(1)
#define TAIL_ROWS 1
#include "ukernel/products_blocks.h"

#define WINDOW_VECTOR float32x4_t
#define WINDOW_LANES 4
#define WINDOW_ELEMENT float
#define window_load(p) vreinterpretq_f32_u8(vld1q_u8((const uint8_t*)(p)))
#define window_store(p, v) vst1q_f32(p, v)
#define window_load_some(p, n) some_floats(p, n)
#define window_store_some(p, n, v) store_some_floats(p, n, v)

#define NAME(x) x##_muladd
#define combine(acc, a, b) vfmaq_f32(acc, a, b)
#define HAS_WEIGHTS 1
#include "ukernel/products_windows.h"

#define NAME(x) x##_add
#define combine(acc, a, b) vaddq_f32(acc, a)
#define HAS_WEIGHTS 0
#include "ukernel/products_windows.h"

#define NAME(x) x##_maximum
#define combine(acc, a, b) vmaxq_f32(acc, a)
#define HAS_WEIGHTS 0
#include "ukernel/products_windows.h"

#define NAME(x) x##_minimum
#define combine(acc, a, b) vminq_f32(acc, a)
#define HAS_WEIGHTS 0
#include "ukernel/products_windows.h"

#define NAME(x) x##_maxnum
#define combine(acc, a, b) vmaxnmq_f32(acc, a)
#define HAS_WEIGHTS 0
#include "ukernel/products_windows.h"

#define NAME(x) x##_minnum
#define combine(acc, a, b) vminnmq_f32(acc, a)
#define HAS_WEIGHTS 0
#include "ukernel/products_windows.h"

#define WINDOW(name) {[EYAS_VMVX_TYPE_F32] = window_##name, EYAS_UK_WINDOW_OTHERS(name)}
#define WINDOW_FLOAT(name)               \
  {[EYAS_VMVX_TYPE_F32] = window_##name, \
   [EYAS_VMVX_TYPE_F64] = eyas_uk_window_##name##_f64_portable}
#define WINDOWS                                         \
  {                                                     \
      [EYAS_VMVX_WINDOW_MULADD] = WINDOW(muladd),       \
      [EYAS_VMVX_WINDOW_ADD] = WINDOW(add),             \
      [EYAS_VMVX_WINDOW_MAXIMUM] = WINDOW(maximum),     \
      [EYAS_VMVX_WINDOW_MINIMUM] = WINDOW(minimum),     \
      [EYAS_VMVX_WINDOW_MAXNUM] = WINDOW_FLOAT(maxnum), \
      [EYAS_VMVX_WINDOW_MINNUM] = WINDOW_FLOAT(minnum), \
  }
#define TABLE(variable, text, same_set, mixed_set)                           \
  const eyas_uk_products_t eyas_uk_products_##variable = {                   \
      .name = text,                                                          \
      .width = 4,                                                            \
      .contract =                                                            \
          {                                                                  \
              [EYAS_VMVX_CONTRACT_F32] = eyas_uk_contract_f32_neon,          \
              [EYAS_VMVX_CONTRACT_F16] = eyas_uk_contract_f16_neon,          \
              [EYAS_VMVX_CONTRACT_BF16] = eyas_uk_contract_bf16_neon,        \
              [EYAS_VMVX_CONTRACT_S8S8] = eyas_uk_contract_s8s8_##same_set,  \
              [EYAS_VMVX_CONTRACT_U8S8] = eyas_uk_contract_u8s8_##mixed_set, \
              [EYAS_VMVX_CONTRACT_S8U8] = eyas_uk_contract_s8u8_##mixed_set, \
              [EYAS_VMVX_CONTRACT_U8U8] = eyas_uk_contract_u8u8_##same_set,  \
              [EYAS_VMVX_CONTRACT_F64] = eyas_uk_contract_f64_portable,      \
          },                                                                 \
      .window = WINDOWS,                                                     \
  }
TABLE(neon, "neon", neon, neon);
TABLE(neon_dotprod, "neon-dotprod", dotprod, dotprod);
TABLE(neon_i8mm, "neon-dotprod-i8mm", dotprod, i8mm);

#else
typedef int eyas_uk_not_this_architecture_t;
#endif
