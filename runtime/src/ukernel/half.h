// f16 and bf16 from and to float, without branches, so that loops over them become vectors.
// Round to nearest, ties to even; NaN stays NaN.
#ifndef EYAS_UKERNEL_HALF_H_
#define EYAS_UKERNEL_HALF_H_

#include <stdint.h>
#include <string.h>

static inline uint32_t eyas_uk_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

static inline float eyas_uk_real(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

// The exponent's bias changes by a multiplication, which makes subnormal numbers normal ones.
static inline float eyas_uk_from_f16(uint16_t half) {
  const uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = (uint32_t)(half & 0x7fff) << 13;
  const uint32_t scaled = eyas_uk_bits(eyas_uk_real(rest) * 0x1p112f);
  return eyas_uk_real(sign | scaled | (rest >= 0x7c00u << 13 ? 0x7f800000u : 0));
}

static inline uint16_t eyas_uk_to_f16(float value) {
  const uint32_t bits = eyas_uk_bits(value), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
  // Below 2^-14 the sum with 0.5 leaves the result, rounded, in the low bits.
  const uint32_t tiny = eyas_uk_bits(eyas_uk_real(rest) + 0.5f) - 0x3f000000u;
  // Exponent and mantissa side by side: a carry out of the rounding moves into the exponent.
  const uint32_t normal = (rest + 0xc8000fffu + (rest >> 13 & 1)) >> 13;
  const uint32_t large = rest > 0x7f800000u ? 0x7e00 : 0x7c00;
  uint32_t result = rest < 0x38800000u ? tiny : normal;
  result = rest >= 0x47800000u ? large : result;
  return (uint16_t)(sign | result);
}

static inline float eyas_uk_from_bf16(uint16_t half) {
  return eyas_uk_real((uint32_t)half << 16);
}

static inline uint16_t eyas_uk_to_bf16(float value) {
  const uint32_t bits = eyas_uk_bits(value);
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return (uint16_t)((bits & 0x7fffffff) > 0x7f800000u ? bits >> 16 | 0x40 : rounded);
}

#endif  // EYAS_UKERNEL_HALF_H_
