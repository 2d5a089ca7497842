// Sums of products and of windows in plain C: what the tests hold every other set to, and what runs
// where there is no other.
#include <string.h>

#include "ukernel/half.h"
#include "ukernel/products.h"

#define PANEL EYAS_VMVX_PANEL

// Elements in memory have any alignment.
#define READ(type, from) ((type)read_##type(from))
#define DEFINE_READ(type)                         \
  static inline type read_##type(const char* p) { \
    type value;                                   \
    memcpy(&value, p, sizeof(value));             \
    return value;                                 \
  }
DEFINE_READ(float)
DEFINE_READ(double)
DEFINE_READ(int8_t)
DEFINE_READ(uint8_t)
DEFINE_READ(int32_t)
DEFINE_READ(uint16_t)

#define F32(p) read_float(p)
#define F64(p) read_double(p)
#define F16(p) eyas_uk_from_f16(read_uint16_t(p))
#define BF16(p) eyas_uk_from_bf16(read_uint16_t(p))
#define S8(p) ((uint32_t)read_int8_t(p))
#define U8(p) ((uint32_t)read_uint8_t(p))

// `K` elements of a row times `K` elements of each column: one step of the loops. Integers add and
// multiply modulo 2^32, as unsigned.
#define DEFINE_CONTRACT(name, acc_type, A, a_size, B, b_size, K)                            \
  static void step_##name(acc_type* acc, const eyas_uk_contract_t* call, const char* a,     \
                          const char* b) {                                                  \
    for (size_t r = 0; r < call->rows; ++r, acc += call->columns, a += call->a_row_bytes) { \
      for (size_t first = 0; first < call->columns; first += PANEL) {                       \
        const char* panel = b + (int64_t)(first / PANEL) * call->b_panel_bytes;             \
        const size_t left = call->columns - first, count = left < PANEL ? left : PANEL;     \
        for (size_t k = 0; k < K; ++k) {                                                    \
          const acc_type value = A(a + k * a_size);                                         \
          for (size_t c = 0; c < count; ++c) {                                              \
            acc[first + c] += value * B(panel + (c * K + k) * b_size);                      \
          }                                                                                 \
        }                                                                                   \
      }                                                                                     \
    }                                                                                       \
  }                                                                                         \
  void eyas_uk_contract_##name##_portable(const eyas_uk_contract_t* call) {                 \
    const eyas_uk_loop_t *x = &call->loops[0], *y = &call->loops[1], *z = &call->loops[2];  \
    for (int64_t i = 0; i < x->extent; ++i) {                                               \
      for (int64_t j = 0; j < y->extent; ++j) {                                             \
        const char* a = call->a + i * x->a_bytes + j * y->a_bytes;                          \
        const char* b = call->b + i * x->b_bytes + j * y->b_bytes;                          \
        for (int64_t k = 0; k < z->extent; ++k) {                                           \
          step_##name(call->acc, call, a + k * z->a_bytes, b + k * z->b_bytes);             \
        }                                                                                   \
      }                                                                                     \
    }                                                                                       \
  }

DEFINE_CONTRACT(f32, float, F32, 4, F32, 4, 1)
DEFINE_CONTRACT(f16, float, F16, 2, F16, 2, 1)
DEFINE_CONTRACT(bf16, float, BF16, 2, BF16, 2, 2)
DEFINE_CONTRACT(s8s8, uint32_t, S8, 1, S8, 1, 4)
DEFINE_CONTRACT(u8s8, uint32_t, U8, 1, S8, 1, 4)
DEFINE_CONTRACT(s8u8, uint32_t, S8, 1, U8, 1, 4)
DEFINE_CONTRACT(u8u8, uint32_t, U8, 1, U8, 1, 4)
DEFINE_CONTRACT(f64, double, F64, 8, F64, 8, 1)

// maximum and minimum give NaN when an operand is one, and order the zeros; maxnum and minnum give
// the operand that is a number.
#define DEFINE_CHOICES(type, suffix, is_negative)            \
  static inline type maximum_##suffix(type x, type y) {      \
    if (x != x || y != y) return x + y;                      \
    if (x == y) return is_negative(x) ? y : x;               \
    return x > y ? x : y;                                    \
  }                                                          \
  static inline type minimum_##suffix(type x, type y) {      \
    if (x != x || y != y) return x + y;                      \
    if (x == y) return is_negative(x) ? x : y;               \
    return x < y ? x : y;                                    \
  }                                                          \
  static inline type maxnum_##suffix(type x, type y) {       \
    return x != x ? y : y != y ? x : maximum_##suffix(x, y); \
  }                                                          \
  static inline type minnum_##suffix(type x, type y) {       \
    return x != x ? y : y != y ? x : minimum_##suffix(x, y); \
  }
DEFINE_CHOICES(float, f32, __builtin_signbit)
DEFINE_CHOICES(double, f64, __builtin_signbit)

#define MAXIMUM_F32(x, y, p) maximum_f32(x, y)
#define MINIMUM_F32(x, y, p) minimum_f32(x, y)
#define MAXNUM_F32(x, y, p) maxnum_f32(x, y)
#define MINNUM_F32(x, y, p) minnum_f32(x, y)
#define MAXIMUM_F64(x, y, p) maximum_f64(x, y)
#define MINIMUM_F64(x, y, p) minimum_f64(x, y)
#define MAXNUM_F64(x, y, p) maxnum_f64(x, y)
#define MINNUM_F64(x, y, p) minnum_f64(x, y)
#define GREATER(x, y, p) ((x) > (y) ? (x) : (y))
#define LESS(x, y, p) ((x) < (y) ? (x) : (y))
#define ADD(x, y, p) ((x) + (y))
#define ADD_I8(x, y, p) ((int8_t)(uint8_t)((uint32_t)(x) + (uint32_t)(y)))
#define ADD_I32(x, y, p) ((int32_t)((uint32_t)(x) + (uint32_t)(y)))
#define MULADD_F32(x, y, p) ((x) + (y) * F32(p))
#define MULADD_F64(x, y, p) ((x) + (y) * F64(p))
#define MULADD_I8(x, y, p) ((int8_t)(uint8_t)((uint32_t)(x) + (uint32_t)(y) * S8(p)))
#define MULADD_I32(x, y, p) ((int32_t)((uint32_t)(x) + (uint32_t)(y) * (uint32_t)read_int32_t(p)))

#define DEFINE_WINDOW(name, suffix, type, COMBINE)                                          \
  static void tap_##name##_##suffix(type* acc, const eyas_uk_window_t* call, const char* a, \
                                    const char* b) {                                        \
    (void)b;                                                                                \
    for (size_t r = 0; r < call->rows; ++r, acc += call->columns, a += call->a_row_bytes) { \
      for (size_t c = 0; c < call->columns; ++c) {                                          \
        const type value = read_##type(a + c * sizeof(type));                               \
        acc[c] = COMBINE(acc[c], value, b + c * sizeof(type));                              \
      }                                                                                     \
    }                                                                                       \
  }                                                                                         \
  void eyas_uk_window_##name##_##suffix##_portable(const eyas_uk_window_t* call) {          \
    const eyas_uk_loop_t *x = &call->loops[0], *y = &call->loops[1];                        \
    for (int64_t i = 0; i < x->extent; ++i) {                                               \
      for (int64_t j = 0; j < y->extent; ++j) {                                             \
        tap_##name##_##suffix(call->acc, call, call->a + i * x->a_bytes + j * y->a_bytes,   \
                              call->b + i * x->b_bytes + j * y->b_bytes);                   \
      }                                                                                     \
    }                                                                                       \
  }

DEFINE_WINDOW(muladd, f32, float, MULADD_F32)
DEFINE_WINDOW(muladd, f64, double, MULADD_F64)
DEFINE_WINDOW(muladd, i8, int8_t, MULADD_I8)
DEFINE_WINDOW(muladd, i32, int32_t, MULADD_I32)
DEFINE_WINDOW(add, f32, float, ADD)
DEFINE_WINDOW(add, f64, double, ADD)
DEFINE_WINDOW(add, i8, int8_t, ADD_I8)
DEFINE_WINDOW(add, i32, int32_t, ADD_I32)
DEFINE_WINDOW(maximum, f32, float, MAXIMUM_F32)
DEFINE_WINDOW(maximum, f64, double, MAXIMUM_F64)
DEFINE_WINDOW(maximum, i8, int8_t, GREATER)
DEFINE_WINDOW(maximum, i32, int32_t, GREATER)
DEFINE_WINDOW(minimum, f32, float, MINIMUM_F32)
DEFINE_WINDOW(minimum, f64, double, MINIMUM_F64)
DEFINE_WINDOW(minimum, i8, int8_t, LESS)
DEFINE_WINDOW(minimum, i32, int32_t, LESS)
DEFINE_WINDOW(maxnum, f32, float, MAXNUM_F32)
DEFINE_WINDOW(maxnum, f64, double, MAXNUM_F64)
DEFINE_WINDOW(minnum, f32, float, MINNUM_F32)
DEFINE_WINDOW(minnum, f64, double, MINNUM_F64)

const eyas_uk_products_t eyas_uk_products_portable = {
    .name = "portable",
    .width = 4,
    .contract = EYAS_UK_CONTRACTS(portable, portable, portable, portable, portable, portable),
    .window = EYAS_UK_WINDOWS(EYAS_UK_WINDOW_PORTABLE),
};
