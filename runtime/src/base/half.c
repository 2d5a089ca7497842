#include "base/half.h"

#include <string.h>

static uint64_t bits_of_double(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

static double double_of_bits(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

static eyas_half_carrier_t carry(uint16_t bits) {
#if defined(__riscv)
  uint32_t wide = 0xffff0000u | bits;  // NaN-boxed
#else
  uint32_t wide = bits;
#endif
  float carrier;
  memcpy(&carrier, &wide, sizeof(carrier));
  return carrier;
}

static uint16_t carried(eyas_half_carrier_t carrier) {
  uint32_t wide;
  memcpy(&wide, &carrier, sizeof(wide));
  return (uint16_t)wide;
}

// Rounds a double to a 16-bit format with this many bits of mantissa. One rounding only: going
// through float would round twice.
static uint16_t narrow(double value, int mantissa_bits) {
  const int exponent_bits = 15 - mantissa_bits;
  const int64_t bias = (1 << (exponent_bits - 1)) - 1;
  const uint64_t infinity = ((1ull << exponent_bits) - 1) << mantissa_bits;
  const uint64_t bits = bits_of_double(value);
  const uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
  const uint64_t mantissa = bits & ((1ull << 52) - 1);
  const int64_t exponent = (int64_t)(bits >> 52 & 0x7ff);
  if (exponent == 0x7ff) {
    uint64_t payload = mantissa >> (52 - mantissa_bits);
    uint64_t quiet = mantissa ? 1ull << (mantissa_bits - 1) : 0;
    return (uint16_t)(sign | infinity | payload | quiet);
  }
  // Line up the significand so that the result is `aligned` shifted right by `shift`. Exponent and
  // mantissa stay side by side: a carry out of the rounding moves into the exponent by itself.
  int64_t target_exponent = exponent - 1023 + bias;
  int shift = 52 - mantissa_bits;
  uint64_t aligned;
  if (target_exponent > 0) {
    if (target_exponent > 2 * bias) return (uint16_t)(sign | infinity);
    aligned = (uint64_t)target_exponent << 52 | mantissa;
  } else {
    if (target_exponent < -mantissa_bits - 1) return sign;  // below half of the least subnormal
    aligned = 1ull << 52 | mantissa;
    shift += (int)(1 - target_exponent);
  }
  uint64_t result = aligned >> shift;
  uint64_t rest = aligned & ((1ull << shift) - 1), half = 1ull << (shift - 1);
  if (rest > half || (rest == half && (result & 1))) ++result;
  return (uint16_t)(sign | result);
}

uint16_t eyas_half_from_double(double value) {
  return narrow(value, 10);
}

uint16_t eyas_bfloat_from_double(double value) {
  return narrow(value, 7);
}

double eyas_half_to_double(uint16_t bits) {
  const uint64_t sign = (uint64_t)(bits & 0x8000) << 48;
  const uint64_t exponent = bits >> 10 & 0x1f, mantissa = bits & 0x3ff;
  if (exponent == 0x1f) {
    uint64_t quiet = mantissa ? 1ull << 51 : 0;
    return double_of_bits(sign | 0x7ffull << 52 | mantissa << 42 | quiet);
  }
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24, exactly
    return double_of_bits(sign | bits_of_double((double)mantissa * 0x1p-24));
  }
  return double_of_bits(sign | (exponent - 15 + 1023) << 52 | mantissa << 42);
}

// A float converts to double exactly, so both share one narrowing.
eyas_half_carrier_t eyas_truncsfhf2(float value) {
  return carry(eyas_half_from_double((double)value));
}

eyas_half_carrier_t eyas_truncdfhf2(double value) {
  return carry(eyas_half_from_double(value));
}

eyas_half_carrier_t eyas_truncsfbf2(float value) {
  return carry(eyas_bfloat_from_double((double)value));
}

eyas_half_carrier_t eyas_truncdfbf2(double value) {
  return carry(eyas_bfloat_from_double(value));
}

float eyas_extendhfsf2(eyas_half_carrier_t value) {
  return (float)eyas_half_to_double(carried(value));
}

double eyas_extendhfdf2(eyas_half_carrier_t value) {
  return eyas_half_to_double(carried(value));
}

float eyas_extendbfsf2(eyas_half_carrier_t value) {
  uint32_t wide = (uint32_t)carried(value) << 16;
  float result;
  memcpy(&result, &wide, sizeof(result));
  return result;
}
