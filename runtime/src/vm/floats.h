// Floats of the host program: the bits of an f64 in an integer register.
#ifndef EYAS_VM_FLOATS_H_
#define EYAS_VM_FLOATS_H_

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/half.h"
#include "eyas_isa.h"

static inline double eyas_vm_number(int64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

static inline int64_t eyas_vm_bits_of(double value) {
  int64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// A NaN stays, and -0 is below +0. The maximum is the minimum of the negated, negated.
static inline double eyas_vm_minimum(double a, double b) {
  if (a < b) return a;
  if (b < a) return b;
  if (a == b) return signbit(a) ? a : b;
  return a + b;
}

// Independent of the rounding mode that a program around us may have set.
static inline double eyas_vm_nearest(double a) {
  double below = floor(a), rest = a - below;
  if (rest < 0.5) return copysign(below, a);
  if (rest > 0.5) return copysign(below + 1, a);
  return copysign(fmod(below, 2) == 0 ? below : below + 1, a);
}

// C leaves conversions of what does not fit undefined.
static inline int64_t eyas_vm_to_signed(double a) {
  if (!(a == a)) return 0;
  if (a >= 0x1p63) return INT64_MAX;
  return a <= -0x1p63 ? INT64_MIN : (int64_t)a;
}

static inline uint64_t eyas_vm_to_unsigned(double a) {
  if (!(a > 0)) return 0;
  return a >= 0x1p64 ? UINT64_MAX : (uint64_t)a;
}

static inline uint64_t eyas_vm_pack_float(double value, uint32_t type) {
  if (type == EYAS_VM_FLOAT_F16) return eyas_half_from_double(value);
  if (type == EYAS_VM_FLOAT_BF16) return eyas_bfloat_from_double(value);
  if (type == EYAS_VM_FLOAT_F64) return (uint64_t)eyas_vm_bits_of(value);
  float narrow = (float)value;
  uint32_t bits;
  memcpy(&bits, &narrow, sizeof(bits));
  return bits;
}

static inline double eyas_vm_unpack(uint64_t bits, uint32_t type) {
  if (type == EYAS_VM_FLOAT_F64) return eyas_vm_number((int64_t)bits);
  if (type == EYAS_VM_FLOAT_F16) return eyas_half_to_double((uint16_t)bits);
  uint32_t low = type == EYAS_VM_FLOAT_BF16 ? (uint32_t)(uint16_t)bits << 16 : (uint32_t)bits;
  float value;
  memcpy(&value, &low, sizeof(value));
  return (double)value;
}

#endif  // EYAS_VM_FLOATS_H_
