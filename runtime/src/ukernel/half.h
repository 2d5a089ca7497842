// 16-bit floats to float, exactly. Inline, for loops that convert as they go.
#ifndef EYAS_UKERNEL_HALF_H_
#define EYAS_UKERNEL_HALF_H_

#include <stdint.h>
#include <string.h>

static inline float eyas_uk_float_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

static inline float eyas_uk_float_of_bf16(uint16_t bits) {
  return eyas_uk_float_of_bits((uint32_t)bits << 16);
}

static inline float eyas_uk_float_of_f16(uint16_t bits) {
  const uint32_t sign = (uint32_t)(bits & 0x8000) << 16, rest = bits & 0x7fff;
  if (rest >= 0x7c00) {  // infinity or NaN, made quiet
    return eyas_uk_float_of_bits(sign | 0x7f800000u | (rest & 0x3ff) << 13 |
                                 (rest > 0x7c00 ? 0x400000u : 0));
  }
  if (rest < 0x400) {  // zero or subnormal: a multiple of 2^-24
    float magnitude = (float)rest * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return eyas_uk_float_of_bits(sign | ((rest << 13) + (112u << 23)));
}

#endif  // EYAS_UKERNEL_HALF_H_
