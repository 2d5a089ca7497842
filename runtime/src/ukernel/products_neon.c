// Sums of products and of windows with NEON, which every AArch64 processor has.
#if defined(__aarch64__)

#include "ukernel/products_neon.h"

#include "ukernel/half.h"

#define EYAS_UK_BLOCKS_NEON_F32(X) \
  X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(1, 2) X(2, 2) X(1, 4)
#define EYAS_UK_MAX_ROWS_NEON_F32 6
#define EYAS_UK_PANELS_NEON_F32 4, 2, 1, 1, 1, 1
#define EYAS_UK_TAILS_NEON_F32(X) X(1)
#define EYAS_UK_TAIL_ROWS_NEON_F32 1
#define EYAS_UK_TURNS_NEON_F32 1

#define ACCUMULATOR f32
#define SHAPES NEON_F32
#define OPERAND float32x4_t
#define OPERAND_BYTES 16
#define hold(x) EYAS_UK_OPAQUE(x, "w")
#define load_lanes load_f32
#define load_some load_some_f32
#define NAME(x) eyas_uk_##x##_f32_neon
#define load_row(p) vdupq_n_f32(*(const eyas_uk_f32_t*)(p))
#define multiply_add vfmaq_f32
#include "ukernel/products_blocks.inc"
#include "ukernel/products_forget.inc"

EYAS_UK_INLINE float32x4_t some_halves(const void* p, int n) {
  uint16_t values[4] = {0};
  memcpy(values, p, (size_t)n * 2);
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(values)));
}

#define ACCUMULATOR f32
#define SHAPES NEON
#define OPERAND float32x4_t
#define OPERAND_BYTES 8
#define hold(x) EYAS_UK_OPAQUE(x, "w")
#define load_lanes(p) vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8((const uint8_t*)(p))))
#define load_some some_halves
#define NAME(x) eyas_uk_##x##_f16_neon
#define load_row(p) vdupq_n_f32(eyas_uk_from_f16(*(const eyas_uk_u16_t*)(p)))
#define multiply_add vfmaq_f32
#include "ukernel/products_blocks.inc"
#include "ukernel/products_forget.inc"

// Two bf16 of a column lie together. Each is the upper half of an f32.
typedef struct pair_t {
  float32x4_t first, second;
} pair_t;

EYAS_UK_INLINE pair_t pair_of(uint32x4_t bits) {
  return (pair_t){vreinterpretq_f32_u32(vshlq_n_u32(bits, 16)),
                  vreinterpretq_f32_u32(vandq_u32(bits, vdupq_n_u32(0xffff0000u)))};
}

#define ACCUMULATOR f32
#define SHAPES NEON
#define OPERAND pair_t
#define OPERAND_BYTES 16
#define hold(x)
#define load_lanes(p) pair_of(vreinterpretq_u32_s32(load_i32(p)))
#define load_some(p, n) pair_of(vreinterpretq_u32_s32(load_some_i32(p, n)))
#define NAME(x) eyas_uk_##x##_bf16_neon
#define load_row(p) pair_of(vdupq_n_u32((uint32_t)*(const eyas_uk_i32_t*)(p)))
#define multiply_add(acc, row, lanes) \
  vfmaq_f32(vfmaq_f32(acc, (row).first, (lanes).first), (row).second, (lanes).second)
#include "ukernel/products_blocks.inc"
#include "ukernel/products_forget.inc"

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

#include "ukernel/products_neon_bytes.inc"

#define NAME(x) eyas_uk_##x##_s8s8_neon
#define load_row load_bytes
#define multiply_add multiply_s8s8
#include "ukernel/products_blocks.inc"

#define NAME(x) eyas_uk_##x##_u8s8_neon
#define load_row load_bytes
#define multiply_add multiply_u8s8
#include "ukernel/products_blocks.inc"

#define NAME(x) eyas_uk_##x##_s8u8_neon
#define load_row load_bytes
#define multiply_add multiply_s8u8
#include "ukernel/products_blocks.inc"

#define NAME(x) eyas_uk_##x##_u8u8_neon
#define load_row load_bytes
#define multiply_add multiply_u8u8
#include "ukernel/products_blocks.inc"

#define combine_muladd(acc, a, weights) vfmaq_f32(acc, a, weights)
#define combine_add(acc, a) vaddq_f32(acc, a)
#define combine_maximum(acc, a) vmaxq_f32(acc, a)
#include "ukernel/products_windows.inc"

#define TABLE(variable, text, same, mixed)                                    \
  const eyas_uk_products_t eyas_uk_products_##variable = {                    \
      .name = text,                                                           \
      .width = 4,                                                             \
      .contract = EYAS_UK_CONTRACTS(neon, neon, neon, same, mixed, portable), \
      .window = EYAS_UK_WINDOWS(OWN_WINDOW),                                  \
  }
TABLE(neon, "neon", neon, neon);
TABLE(neon_dotprod, "neon-dotprod", dotprod, dotprod);
TABLE(neon_i8mm, "neon-dotprod-i8mm", dotprod, i8mm);

#else
typedef int eyas_uk_not_this_architecture_t;
#endif
