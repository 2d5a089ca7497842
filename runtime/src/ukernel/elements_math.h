// f32 functions as polynomials and bit operations, without branches, so that a loop over one
// becomes vectors of whatever width the compiler is told to use. The formulas, their coefficients
// and their errors are those of src/eyas/passes/codegen/approximations.py; docs/numerics.md has the
// bounds.
#ifndef EYAS_UKERNEL_ELEMENTS_MATH_H_
#define EYAS_UKERNEL_ELEMENTS_MATH_H_

#include <math.h>

#include "ukernel/half.h"

#if defined(__FMA__) || defined(__FP_FAST_FMAF)
#define EYAS_UK_FUSED 1
#else
#define EYAS_UK_FUSED 0
#endif

// a * b + c, with one rounding where that is one instruction.
static inline float times_plus(float a, float b, float c) {
#if EYAS_UK_FUSED
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

// c0 + c1 x + c2 x^2 + ...: Horner's rule, written out, since loops inside of loops stay scalar.
#define POLY1(x, c0, c1) times_plus(c1, x, c0)
#define POLY2(x, c0, ...) times_plus(POLY1(x, __VA_ARGS__), x, c0)
#define POLY3(x, c0, ...) times_plus(POLY2(x, __VA_ARGS__), x, c0)
#define POLY4(x, c0, ...) times_plus(POLY3(x, __VA_ARGS__), x, c0)
#define POLY5(x, c0, ...) times_plus(POLY4(x, __VA_ARGS__), x, c0)
#define POLY6(x, c0, ...) times_plus(POLY5(x, __VA_ARGS__), x, c0)
#define POLY7(x, c0, ...) times_plus(POLY6(x, __VA_ARGS__), x, c0)
#define POLY8(x, c0, ...) times_plus(POLY7(x, __VA_ARGS__), x, c0)

// A comparison with NaN is false, so both keep NaN.
static inline float at_most(float x, float bound) {
  return x > bound ? bound : x;
}
static inline float at_least(float x, float bound) {
  return x < bound ? bound : x;
}
static inline float magnitude(float x) {
  return eyas_uk_real(eyas_uk_bits(x) & 0x7fffffff);
}
static inline float with_sign_of(float x, float sign) {
  return eyas_uk_real((eyas_uk_bits(x) & 0x7fffffff) | (eyas_uk_bits(sign) & 0x80000000u));
}
static inline int32_t int_bits(float x) {
  return (int32_t)eyas_uk_bits(x);
}

// --- exponentials --------------------------------------------------------------------------------

#define LOG2E 1.44269504088896341f
#define LN2_HIGH 0.693359375f  // 10 bits, so that n * LN2_HIGH is exact
#define LN2_LOW -2.12194440e-4f
#define ROUNDER 12582912.0f  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits

// x = n ln2 + r. Gives r, and t whose low bits hold n + bias.
static inline float reduce_exp(float x, float bias, float* t) {
  *t = times_plus(x, LOG2E, ROUNDER + bias);
  const float n = *t - (ROUNDER + bias);
  return times_plus(n, -LN2_LOW, times_plus(n, -LN2_HIGH, x));
}

static inline float exp_of_reduced(float r) {
  return POLY6(r, 1.0f, 1.0f, 0.5f, 0.16666515f, 0.041666377f, 0.008369394f, 0.0013942925f);
}

// Where neither the result nor its scale can overflow or underflow: -87 < x < 88.
static inline float exp_in_range(float x) {
  float t;
  const float r = reduce_exp(x, 127.0f, &t);
  return exp_of_reduced(r) * eyas_uk_real(eyas_uk_bits(t) << 23);
}

// mantissa * 2^n, where t holds n + 254: two factors, since 2^n alone leaves the range at both
// ends.
static inline float scale_twice(float mantissa, float t) {
  const uint32_t both = eyas_uk_bits(t), half = (uint32_t)((int32_t)both >> 1);
  return mantissa * eyas_uk_real(half << 23) * eyas_uk_real((both - half) << 23);
}

static inline float eyas_uk_exp(float x) {
  float t;
  const float r = reduce_exp(at_least(at_most(x, 88.8f), -104.0f), 254.0f, &t);
  return scale_twice(exp_of_reduced(r), t);
}

static inline float eyas_uk_exp2(float x) {
  const float bounded = at_least(at_most(x, 129.0f), -151.0f);
  const float t = bounded + (ROUNDER + 254.0f);
  const float r = bounded - (t - (ROUNDER + 254.0f));
  return scale_twice(POLY7(r, 1.0f, 0.6931472f, 0.2402265f, 0.05550406f, 0.009618085f,
                           0.0013336623f, 0.00015453293f, 1.4690569e-05f),
                     t);
}

// 2^n (e^r - 1) + (2^n - 1), halved so that n = 128 stays in range.
static inline float eyas_uk_expm1(float x) {
  float t;
  const float r = reduce_exp(at_least(at_most(x, 88.8f), -18.0f), 126.0f, &t);
  const float scale = eyas_uk_real(eyas_uk_bits(t) << 23);
  const float polynomial =
      POLY5(r, 0.5f, 0.16666667f, 0.04166648f, 0.008333208f, 0.0013933565f, 0.00019944263f);
  const float tail = times_plus(polynomial, r * r, r);
  const float result = times_plus(scale, tail, scale - 0.5f) * 2.0f;
  return magnitude(x) < 0x1p-26f ? x : result;
}

// --- logarithms ----------------------------------------------------------------------------------

#define SQRT_HALF_BITS 0x3f3504f3u

// x = m 2^e with m in [sqrt(1/2), sqrt(2)), for a positive x. Gives m - 1 and e.
static inline float split_log(float x, float* e) {
  const int tiny = x < 0x1p-126f;
  const uint32_t bits = eyas_uk_bits(tiny ? x * 0x1p25f : x);
  const int32_t exponent = (int32_t)(bits - SQRT_HALF_BITS) >> 23;
  *e = (float)exponent - (tiny ? 25.0f : 0.0f);
  return eyas_uk_real(bits - ((uint32_t)exponent << 23)) - 1.0f;
}

// log(1 + f) - f
static inline float log_tail(float f) {
  const float polynomial = POLY8(f, 0.3333331f, -0.24999987f, 0.20002224f, -0.1666925f, 0.14218716f,
                                 -0.12384402f, 0.118726194f, -0.1178937f, 0.069156125f);
  return f * f * times_plus(polynomial, f, -0.5f);
}

static inline float with_log_limits(float x, float result) {
  const float edge = x == 0.0f ? -INFINITY : NAN;
  const float ordinary = x > 0.0f ? result : edge;
  return x == INFINITY ? x : ordinary;
}

static inline float eyas_uk_log(float x) {
  float e;
  const float f = split_log(x, &e);
  const float low = times_plus(e, LN2_LOW, log_tail(f));
  return with_log_limits(x, times_plus(e, LN2_HIGH, f + low));
}

static inline float eyas_uk_log2(float x) {
  float e;
  const float f = split_log(x, &e), tail = log_tail(f);
  const float part = (float)(1.44269504088896341 - 1.0);
  return with_log_limits(x, times_plus(tail, part, f * part) + tail + f + e);
}

// log10(e) and log10(2), each as a short high part and the rest.
static inline float eyas_uk_log10(float x) {
  float e;
  const float f = split_log(x, &e), tail = log_tail(f);
  float sum = (f + tail) * 7.00731903251827651e-4f;
  sum = times_plus(e, 2.48745663981195214e-4f, times_plus(tail, 0.43359375f, sum));
  return with_log_limits(x, times_plus(e, 0.30078125f, times_plus(f, 0.43359375f, sum)));
}

static inline float eyas_uk_log1p(float x) {
  const float u = x + 1.0f, back = u - 1.0f;
  const float lost = (1.0f - (u - back)) + (x - back);  // what rounding took (Knuth's TwoSum)
  const uint32_t bits = eyas_uk_bits(u);
  const int32_t exponent = (int32_t)(bits - SQRT_HALF_BITS) >> 23;
  const int32_t bounded = exponent < 126 ? exponent : 126;
  const float inverse_scale = eyas_uk_real((uint32_t)(127 - bounded) << 23);
  const float m = eyas_uk_real(bits - ((uint32_t)exponent << 23));
  const float f = times_plus(lost, inverse_scale, m - 1.0f), e = (float)exponent;
  const float result = times_plus(e, LN2_HIGH, f + times_plus(e, LN2_LOW, log_tail(f)));
  const float limited = with_log_limits(u, result);
  return magnitude(x) < 0x1p-25f ? x : limited;
}

// --- sigmoids ------------------------------------------------------------------------------------

static inline float eyas_uk_tanh(float x) {
  const float a = magnitude(x), squared = a * a, bounded = at_most(a, 9.5f);
  const float polynomial =
      POLY4(squared, -0.33333284f, 0.13331485f, -0.05374299f, 0.02064901f, -0.005715355f);
  const float small = times_plus(squared * a, polynomial, a);
  const float large = 1.0f - 2.0f / (exp_in_range(bounded + bounded) + 1.0f);
  return with_sign_of(a < 0.625f ? small : large, x);
}

static inline float eyas_uk_erf(float x) {
  const float a = magnitude(x), squared = a * a, bounded = at_most(a, 3.95f);
  const float polynomial = POLY6(squared, 0.12837917f, -0.3761263f, 0.11283624f, -0.026855588f,
                                 0.005191948f, -0.00080438395f, 7.9696634e-05f);
  const float small = times_plus(polynomial, a, a);
  const float log_erfc =  // smooth
      POLY8(bounded, 0.00016307975f, -0.12944864f, -0.6335097f, -0.108055845f, 0.024930052f,
            -0.0040707407f, 0.00040192774f, -1.5193054e-05f, -4.5830004e-07f);
  const float large = 1.0f - exp_in_range(log_erfc - bounded);
  return with_sign_of(a < 0.925f ? small : large, x);
}

// e^-|x| cannot overflow, and keeps what is far below 1.
static inline float eyas_uk_sigmoid(float x) {
  const float e = eyas_uk_exp(-magnitude(x));
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

// --- circular functions --------------------------------------------------------------------------

// pi/2 in parts whose products with n are exact: 24 bits each with fma, else 13 bits, n below 2^11.
#if EYAS_UK_FUSED
#define CIRCULAR_LIMIT 65536.0f
#else
#define CIRCULAR_LIMIT 2048.0f
#endif

// sin(x + quadrants * pi/2) for |x| up to CIRCULAR_LIMIT; beyond, libm has more bits.
static inline float circular(float x, uint32_t quadrants) {
  const float t = times_plus(x, 0.63661977236758134f, ROUNDER), n = t - ROUNDER;
#if EYAS_UK_FUSED
  float r = times_plus(n, -1.5707964f, x);
  r = times_plus(n, 4.371139e-08f, r);
  r = times_plus(n, 1.7151245e-15f, r);
#else
  float r = times_plus(n, -1.57080078125f, x);
  r = times_plus(n, 4.454515874385834e-06f, r);
  r = times_plus(n, -6.076561476220377e-11f, r);
  r = times_plus(n, -5.390303e-15f, r);
#endif
  const float squared = r * r;
  const float sine =
      times_plus(r * squared, POLY2(squared, -0.16666654f, 0.008332098f, -0.00019506023f), r);
  const float cosine =
      times_plus(squared * squared, POLY2(squared, 0.041666646f, -0.0013887291f, 2.4428644e-05f),
                 times_plus(squared, -0.5f, 1.0f));
  const uint32_t quadrant = eyas_uk_bits(t) + quadrants;
  const float value = quadrant & 1 ? cosine : sine;
  return eyas_uk_real(eyas_uk_bits(value) ^ (quadrant & 2) << 30);
}

static inline float eyas_uk_sin_near(float x) {
  const float value = circular(x, 0);
  return magnitude(x) < 0x1p-12f ? x : value;
}

static inline float eyas_uk_cos_near(float x) {
  return circular(x, 1);
}

// --- roundings -----------------------------------------------------------------------------------

// Half away from zero: what is cut off is exact.
static inline float eyas_uk_round(float x) {
  const float whole = __builtin_truncf(x), rest = magnitude(x - whole);
  const float away = whole + with_sign_of(1.0f, x);
  // Beyond 2^23 there is no rest; infinity minus itself is NaN, which compares false.
  return rest >= 0.5f ? away : whole;
}

#endif  // EYAS_UKERNEL_ELEMENTS_MATH_H_
