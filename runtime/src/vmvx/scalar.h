// Scalar arithmetic whose C is not one operator.
#ifndef EYAS_VMVX_SCALAR_H_
#define EYAS_VMVX_SCALAR_H_

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/half.h"
#include "eyas_vmvx_isa.h"

static inline float eyas_vmvx_f32(int64_t scalar) {
  uint32_t bits = (uint32_t)scalar;
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

static inline double eyas_vmvx_f64(int64_t scalar) {
  double value;
  memcpy(&value, &scalar, sizeof(value));
  return value;
}

static inline int64_t eyas_vmvx_f32_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

static inline int64_t eyas_vmvx_f64_bits(double value) {
  int64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// Zero divides like one.
static inline int64_t eyas_vmvx_divs(int64_t a, int64_t b) {
  if (b == 0) return a;
  return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static inline int64_t eyas_vmvx_rems(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? 0 : a % b;
}

static inline uint64_t eyas_vmvx_low_bits(uint64_t a, unsigned bits) {
  return bits == 64 ? a : a & (((uint64_t)1 << bits) - 1);
}

static inline int64_t eyas_vmvx_clz(uint64_t a, unsigned bits) {
  uint64_t low = eyas_vmvx_low_bits(a, bits);
  return low ? (int64_t)__builtin_clzll(low) - (64 - (int64_t)bits) : (int64_t)bits;
}

static inline int64_t eyas_vmvx_ctz(uint64_t a, unsigned bits) {
  uint64_t low = eyas_vmvx_low_bits(a, bits);
  return low ? (int64_t)__builtin_ctzll(low) : (int64_t)bits;
}

static inline uint64_t eyas_vmvx_mulhu(uint64_t a, uint64_t b) {
  __extension__ typedef unsigned __int128 wide_t;
  return (uint64_t)((wide_t)a * b >> 64);
}

static inline int64_t eyas_vmvx_mulhs(int64_t a, int64_t b) {
  __extension__ typedef __int128 wide_t;
  return (int64_t)((wide_t)a * b >> 64);
}

// A NaN stays, and -0 is below +0. The maximum is the minimum of the negated, negated.
#define EYAS_VMVX_MINIMUM(c_type)                                       \
  static inline c_type eyas_vmvx_minimum_##c_type(c_type a, c_type b) { \
    if (a < b) return a;                                                \
    if (b < a) return b;                                                \
    if (a == b) return signbit(a) ? a : b;                              \
    return a + b;                                                       \
  }                                                                     \
  /* A number is preferred to a NaN. */                                 \
  static inline c_type eyas_vmvx_minnum_##c_type(c_type a, c_type b) {  \
    if (a != a) return b;                                               \
    if (b != b) return a;                                               \
    return eyas_vmvx_minimum_##c_type(a, b);                            \
  }
EYAS_VMVX_MINIMUM(float)
EYAS_VMVX_MINIMUM(double)
#undef EYAS_VMVX_MINIMUM

// 2^bits as a double, exact up to 64.
static inline double eyas_vmvx_power_of_two(unsigned bits) {
  return bits == 64 ? 18446744073709551616.0 : (double)((uint64_t)1 << bits);
}

static inline int64_t eyas_vmvx_to_signed(double value, unsigned bits) {
  double limit = eyas_vmvx_power_of_two(bits - 1);
  if (value != value) return 0;
  if (value >= limit) return (int64_t)(((uint64_t)1 << (bits - 1)) - 1);
  if (value <= -limit) return (int64_t)(0 - ((uint64_t)1 << (bits - 1)));
  return (int64_t)value;
}

// An integer of `bits` is sign-extended, but an i1 is 0 or 1.
static inline int64_t eyas_vmvx_to_unsigned(double value, unsigned bits) {
  uint64_t result = 0;
  if (value >= eyas_vmvx_power_of_two(bits)) {
    result = eyas_vmvx_low_bits(UINT64_MAX, bits);
  } else if (value > 0) {
    result = (uint64_t)value;
  }
  return bits == 1 ? (int64_t)result : (int64_t)(result << (64 - bits)) >> (64 - bits);
}

// The 16 bits of an f32 in a scalar, and back.
static inline uint16_t eyas_vmvx_to_f16(int64_t scalar) {
  return eyas_half_from_double(eyas_vmvx_f32(scalar));
}

static inline uint16_t eyas_vmvx_to_bf16(int64_t scalar) {
  return eyas_bfloat_from_double(eyas_vmvx_f32(scalar));
}

static inline int64_t eyas_vmvx_from_f16(uint16_t bits) {
  return eyas_vmvx_f32_bits((float)eyas_half_to_double(bits));
}

static inline int64_t eyas_vmvx_from_bf16(uint16_t bits) {
  return (int64_t)((uint32_t)bits << 16);
}

static inline int64_t eyas_vmvx_extract(const char* tile, uint64_t index, unsigned type) {
  switch (type) {
    case EYAS_VMVX_TYPE_F32: return ((const uint32_t*)tile)[index];
    case EYAS_VMVX_TYPE_I8: return ((const int8_t*)tile)[index];
    case EYAS_VMVX_TYPE_I16: return ((const int16_t*)tile)[index];
    case EYAS_VMVX_TYPE_I32: return ((const int32_t*)tile)[index];
    default: return ((const int64_t*)tile)[index];
  }
}

#endif  // EYAS_VMVX_SCALAR_H_
