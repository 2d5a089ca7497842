// What each instruction does to one element: lists for X(kept, OP, TYPE, expression), where `kept`
// is HOT for what every set compiles anew, FINE and INTEGER for what only some do, and RARE for
// what faster sets take from the portable one, to keep the code small. In an expression, `x` (or
// `a` and `b`) are the elements, S their type, U the unsigned type of the same size, W an unsigned
// type for arithmetic that wraps, BITS their size.
#ifndef EYAS_UKERNEL_ELEMENTS_OPS_H_
#define EYAS_UKERNEL_ELEMENTS_OPS_H_

#include <math.h>

#include "base/half.h"
#include "ukernel/elements_math.h"

typedef float S_F32;
typedef double S_F64;
#define INTEGER_TYPE(TYPE, bits, wide) \
  typedef int##bits##_t S_##TYPE;      \
  typedef uint##bits##_t U_##TYPE;     \
  typedef uint##wide##_t W_##TYPE;     \
  enum { BITS_##TYPE = bits };
INTEGER_TYPE(I8, 8, 32)
INTEGER_TYPE(I16, 16, 32)
INTEGER_TYPE(I32, 32, 32)
INTEGER_TYPE(I64, 64, 64)
#undef INTEGER_TYPE

// --- floats --------------------------------------------------------------------------------------

static inline double real64(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

static inline uint64_t bits64(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// `minimum` and `maximum` give NaN when an operand is, and -0 is below +0. Comparisons in this very
// form are one instruction on x86, which gives its second operand for NaN and for two zeros: the
// bits of both orders together then are right.
static inline float minimum_f32(float a, float b) {
  const float ab = a < b ? a : b, ba = b < a ? b : a;
  return eyas_uk_real(eyas_uk_bits(ab) | eyas_uk_bits(ba));
}
static inline float maximum_f32(float a, float b) {
  const float ab = a > b ? a : b, ba = b > a ? b : a;
  const float result = eyas_uk_real(eyas_uk_bits(ab) & eyas_uk_bits(ba));
  return __builtin_isunordered(a, b) ? a + b : result;
}
static inline double minimum_f64(double a, double b) {
  const double ab = a < b ? a : b, ba = b < a ? b : a;
  return real64(bits64(ab) | bits64(ba));
}
static inline double maximum_f64(double a, double b) {
  const double ab = a > b ? a : b, ba = b > a ? b : a;
  const double result = real64(bits64(ab) & bits64(ba));
  return __builtin_isunordered(a, b) ? a + b : result;
}

static inline double sigmoid_f64(double x) {
  const double e = exp(-fabs(x)), upper = 1.0 / (1.0 + e);
  return x < 0.0 ? e * upper : upper;
}

static inline double round_f16_f64(double x) {
  return eyas_half_to_double(eyas_half_from_double(x));
}
static inline double round_bf16_f64(double x) {
  return (double)eyas_uk_from_bf16(eyas_bfloat_from_double(x));
}

#define FLOAT_UNARY_OPS(X)                                        \
  X(HOT, NEG, F32, -x)                                            \
  X(HOT, ABS, F32, magnitude(x))                                  \
  X(HOT, SQRT, F32, __builtin_sqrtf(x))                           \
  X(HOT, RSQRT, F32, 1.0f / __builtin_sqrtf(x))                   \
  X(HOT, EXP, F32, eyas_uk_exp(x))                                \
  X(FINE, EXP2, F32, eyas_uk_exp2(x))                             \
  X(FINE, EXPM1, F32, eyas_uk_expm1(x))                           \
  X(FINE, LOG, F32, eyas_uk_log(x))                               \
  X(FINE, LOG2, F32, eyas_uk_log2(x))                             \
  X(FINE, LOG10, F32, eyas_uk_log10(x))                           \
  X(FINE, LOG1P, F32, eyas_uk_log1p(x))                           \
  X(HOT, TANH, F32, eyas_uk_tanh(x))                              \
  X(HOT, ERF, F32, eyas_uk_erf(x))                                \
  X(HOT, SIGMOID, F32, eyas_uk_sigmoid(x))                        \
  X(FINE, FLOOR, F32, __builtin_floorf(x))                        \
  X(FINE, CEIL, F32, __builtin_ceilf(x))                          \
  X(FINE, TRUNC, F32, __builtin_truncf(x))                        \
  X(FINE, ROUND, F32, eyas_uk_round(x))                           \
  X(FINE, ROUNDEVEN, F32, __builtin_rintf(x))                     \
  X(FINE, ROUND_BF16, F32, eyas_uk_from_bf16(eyas_uk_to_bf16(x))) \
  X(RARE, CBRT, F32, cbrtf(x))                                    \
  X(RARE, TAN, F32, tanf(x))                                      \
  X(RARE, ASIN, F32, asinf(x))                                    \
  X(RARE, ACOS, F32, acosf(x))                                    \
  X(RARE, ATAN, F32, atanf(x))                                    \
  X(RARE, SINH, F32, sinhf(x))                                    \
  X(RARE, COSH, F32, coshf(x))                                    \
  X(RARE, ASINH, F32, asinhf(x))                                  \
  X(RARE, ACOSH, F32, acoshf(x))                                  \
  X(RARE, ATANH, F32, atanhf(x))                                  \
  X(RARE, ERFC, F32, erfcf(x))                                    \
  X(RARE, NEG, F64, -x)                                           \
  X(RARE, ABS, F64, __builtin_fabs(x))                            \
  X(RARE, SQRT, F64, __builtin_sqrt(x))                           \
  X(RARE, RSQRT, F64, 1.0 / __builtin_sqrt(x))                    \
  X(RARE, CBRT, F64, cbrt(x))                                     \
  X(RARE, EXP, F64, exp(x))                                       \
  X(RARE, EXP2, F64, exp2(x))                                     \
  X(RARE, EXPM1, F64, expm1(x))                                   \
  X(RARE, LOG, F64, log(x))                                       \
  X(RARE, LOG2, F64, log2(x))                                     \
  X(RARE, LOG10, F64, log10(x))                                   \
  X(RARE, LOG1P, F64, log1p(x))                                   \
  X(RARE, SIN, F64, sin(x))                                       \
  X(RARE, COS, F64, cos(x))                                       \
  X(RARE, TAN, F64, tan(x))                                       \
  X(RARE, ASIN, F64, asin(x))                                     \
  X(RARE, ACOS, F64, acos(x))                                     \
  X(RARE, ATAN, F64, atan(x))                                     \
  X(RARE, SINH, F64, sinh(x))                                     \
  X(RARE, COSH, F64, cosh(x))                                     \
  X(RARE, TANH, F64, tanh(x))                                     \
  X(RARE, ASINH, F64, asinh(x))                                   \
  X(RARE, ACOSH, F64, acosh(x))                                   \
  X(RARE, ATANH, F64, atanh(x))                                   \
  X(RARE, ERF, F64, erf(x))                                       \
  X(RARE, ERFC, F64, erfc(x))                                     \
  X(RARE, SIGMOID, F64, sigmoid_f64(x))                           \
  X(RARE, FLOOR, F64, floor(x))                                   \
  X(RARE, CEIL, F64, ceil(x))                                     \
  X(RARE, TRUNC, F64, trunc(x))                                   \
  X(RARE, ROUND, F64, round(x))                                   \
  X(RARE, ROUNDEVEN, F64, rint(x))                                \
  X(RARE, ROUND_F16, F64, round_f16_f64(x))                       \
  X(RARE, ROUND_BF16, F64, round_bf16_f64(x))

// `minnum` and `maxnum` give the other operand when one is NaN.
#define FLOAT_BINARY_OPS(X)                        \
  X(HOT, ADD, F32, a + b)                          \
  X(HOT, SUB, F32, a - b)                          \
  X(HOT, MUL, F32, a* b)                           \
  X(HOT, DIV, F32, a / b)                          \
  X(HOT, MINIMUM, F32, minimum_f32(a, b))          \
  X(HOT, MAXIMUM, F32, maximum_f32(a, b))          \
  X(HOT, MINNUM, F32, (a < b) | (b != b) ? a : b)  \
  X(HOT, MAXNUM, F32, (a > b) | (b != b) ? a : b)  \
  X(HOT, COPYSIGN, F32, with_sign_of(a, b))        \
  X(RARE, REM, F32, fmodf(a, b))                   \
  X(RARE, POW, F32, powf(a, b))                    \
  X(RARE, ATAN2, F32, atan2f(a, b))                \
  X(RARE, ADD, F64, a + b)                         \
  X(RARE, SUB, F64, a - b)                         \
  X(RARE, MUL, F64, a* b)                          \
  X(RARE, DIV, F64, a / b)                         \
  X(RARE, MINIMUM, F64, minimum_f64(a, b))         \
  X(RARE, MAXIMUM, F64, maximum_f64(a, b))         \
  X(RARE, MINNUM, F64, (a < b) | (b != b) ? a : b) \
  X(RARE, MAXNUM, F64, (a > b) | (b != b) ? a : b) \
  X(RARE, COPYSIGN, F64, __builtin_copysign(a, b)) \
  X(RARE, REM, F64, fmod(a, b))                    \
  X(RARE, POW, F64, pow(a, b))                     \
  X(RARE, ATAN2, F64, atan2(a, b))

// Those with the greater operand first are others with their operands swapped: X(kept, OP, TYPE,
// the other).
#define FLOAT_COMPARE_OPS(X, KEPT, TYPE)              \
  X(KEPT, OEQ, TYPE, a == b)                          \
  X(KEPT, OLT, TYPE, __builtin_isless(a, b))          \
  X(KEPT, OLE, TYPE, __builtin_islessequal(a, b))     \
  X(KEPT, ONE, TYPE, __builtin_islessgreater(a, b))   \
  X(KEPT, ORD, TYPE, !__builtin_isunordered(a, b))    \
  X(KEPT, UEQ, TYPE, !__builtin_islessgreater(a, b))  \
  X(KEPT, ULT, TYPE, !__builtin_isgreaterequal(a, b)) \
  X(KEPT, ULE, TYPE, !__builtin_isgreater(a, b))      \
  X(KEPT, UNE, TYPE, a != b)                          \
  X(KEPT, UNO, TYPE, __builtin_isunordered(a, b))
#define FLOAT_COMPARE_SWAPPED(X, KEPT, TYPE) \
  X(KEPT, OGT, TYPE, OLT)                    \
  X(KEPT, OGE, TYPE, OLE)                    \
  X(KEPT, UGT, TYPE, ULT)                    \
  X(KEPT, UGE, TYPE, ULE)

// --- integers ------------------------------------------------------------------------------------

// Zero divides like one. Minus one is by hand, since the quotient may not fit.
#define NEGATED(value) (S)((W)0 - (W)(value))
#define DIVISOR_S ((b == 0) | (b == -1) ? (S)1 : b)
#define DIVISOR_U ((U)b == 0 ? (U)1 : (U)b)
#define QUOTIENT_S (b == -1 ? NEGATED(a) : (S)(a / DIVISOR_S))
#define REMAINDER_S (S)(a % DIVISOR_S)
#define QUOTIENT_U (S)((U)a / DIVISOR_U)
#define REMAINDER_U (S)((U)a % DIVISOR_U)

#define INTEGER_BINARY_OPS(X, KEPT, TYPE)                                   \
  X(KEPT, ADD, TYPE, (S)((W)a + (W)b))                                      \
  X(KEPT, SUB, TYPE, (S)((W)a - (W)b))                                      \
  X(KEPT, MUL, TYPE, (S)((W)a * (W)b))                                      \
  X(RARE, DIVS, TYPE, QUOTIENT_S)                                           \
  X(RARE, DIVU, TYPE, QUOTIENT_U)                                           \
  X(RARE, REMS, TYPE, REMAINDER_S)                                          \
  X(RARE, REMU, TYPE, REMAINDER_U)                                          \
  X(KEPT, MINS, TYPE, a < b ? a : b)                                        \
  X(KEPT, MAXS, TYPE, a > b ? a : b)                                        \
  X(KEPT, MINU, TYPE, (U)a < (U)b ? a : b)                                  \
  X(KEPT, MAXU, TYPE, (U)a > (U)b ? a : b)                                  \
  X(KEPT, AND, TYPE, (S)(a & b))                                            \
  X(KEPT, OR, TYPE, (S)(a | b))                                             \
  X(KEPT, XOR, TYPE, (S)(a ^ b))                                            \
  X(KEPT, SHL, TYPE, (U)b < BITS ? (S)((W)a << ((W)b & (BITS - 1))) : (S)0) \
  X(KEPT, SHRS, TYPE, (S)(a >> ((U)b < BITS ? (U)b : BITS - 1)))            \
  X(KEPT, SHRU, TYPE, (U)b < BITS ? (S)((U)a >> ((U)b & (BITS - 1))) : (S)0)

#define INTEGER_UNARY_OPS(X, TYPE)                                             \
  X(RARE, NEG, TYPE, NEGATED(x))                                               \
  X(RARE, ABS, TYPE, x < 0 ? NEGATED(x) : x)                                   \
  X(RARE, CLZ, TYPE, x == 0 ? BITS : (S)(__builtin_clzll((U)x) - (64 - BITS))) \
  X(RARE, CTZ, TYPE, x == 0 ? BITS : (S)__builtin_ctzll((U)x))                 \
  X(RARE, POPCOUNT, TYPE, (S)__builtin_popcountll((U)x))                       \
  X(RARE, NOT, TYPE, (S)~x)

#define INTEGER_COMPARE_OPS(X, KEPT, TYPE) \
  X(KEPT, EQ, TYPE, a == b)                \
  X(KEPT, NE, TYPE, a != b)                \
  X(KEPT, SLT, TYPE, a < b)                \
  X(KEPT, SLE, TYPE, a <= b)               \
  X(KEPT, ULT, TYPE, (U)a < (U)b)          \
  X(KEPT, ULE, TYPE, (U)a <= (U)b)
#define INTEGER_COMPARE_SWAPPED(X, KEPT, TYPE) \
  X(KEPT, SGT, TYPE, SLT)                      \
  X(KEPT, SGE, TYPE, SLE)                      \
  X(KEPT, UGT, TYPE, ULT)                      \
  X(KEPT, UGE, TYPE, ULE)

// --- conversions ---------------------------------------------------------------------------------

// Floats saturate, NaN is 0. Where both ends of the integers are floats, too, it is enough to bound
// the argument; `past` is the first value above them otherwise, and what does not fit becomes zero
// before the conversion, which would be undefined.
#define BOUNDED(low, high, I) (I)(x != x ? 0 : x<(low) ? (low) : x>(high) ? (high) : x)
#define SATURATED(low, past, lowest, highest, I) \
  (x >= (past) ? (highest) : x < (low) ? (lowest) : (I)(x >= (low) && x < (past) ? x : 0))

#define TO_SIGNED(half, TYPE)                                            \
  SATURATED(-(half), half, (S_##TYPE)((U_##TYPE)1 << (BITS_##TYPE - 1)), \
            (S_##TYPE)(((U_##TYPE)1 << (BITS_##TYPE - 1)) - 1), S_##TYPE)
#define TO_UNSIGNED(past, TYPE) \
  (S_##TYPE) SATURATED(0, past, (U_##TYPE)0, (U_##TYPE) ~(U_##TYPE)0, U_##TYPE)

// X(kept, NAME, FROM, TO, expression)
#define CASTS_FROM_INTEGER(X, KEPT, TYPE)        \
  X(KEPT, SITOFP, TYPE, F32, (float)x)           \
  X(RARE, SITOFP, TYPE, F64, (double)x)          \
  X(KEPT, UITOFP, TYPE, F32, (float)(U_##TYPE)x) \
  X(RARE, UITOFP, TYPE, F64, (double)(U_##TYPE)x)

#define CASTS_TO_SHORT(X, KEPT, TYPE, half)                                     \
  X(KEPT, FPTOSI, F32, TYPE, (S_##TYPE)BOUNDED(-half##f, half##f - 1, int32_t)) \
  X(RARE, FPTOSI, F64, TYPE, (S_##TYPE)BOUNDED(-half, half - 1, int32_t))       \
  X(KEPT, FPTOUI, F32, TYPE, (S_##TYPE)BOUNDED(0.0f, 2 * half##f - 1, int32_t)) \
  X(RARE, FPTOUI, F64, TYPE, (S_##TYPE)BOUNDED(0.0, 2 * half - 1, int32_t))

#define CASTS_TO_LONG(X, KEPT, TYPE, half)                   \
  X(KEPT, FPTOSI, F32, TYPE, TO_SIGNED(half##f, TYPE))       \
  X(RARE, FPTOSI, F64, TYPE, TO_SIGNED(half, TYPE))          \
  X(KEPT, FPTOUI, F32, TYPE, TO_UNSIGNED(2 * half##f, TYPE)) \
  X(RARE, FPTOUI, F64, TYPE, TO_UNSIGNED(2 * half, TYPE))

#define CASTS_BETWEEN(X, KEPT, NARROW, WIDE)           \
  X(KEPT, SEXT, NARROW, WIDE, x)                       \
  X(KEPT, ZEXT, NARROW, WIDE, (S_##WIDE)(U_##NARROW)x) \
  X(KEPT, TRUNC, WIDE, NARROW, (S_##NARROW)x)

#define CAST_OPS(X)                    \
  CASTS_FROM_INTEGER(X, FINE, I8)      \
  CASTS_FROM_INTEGER(X, RARE, I16)     \
  CASTS_FROM_INTEGER(X, FINE, I32)     \
  CASTS_FROM_INTEGER(X, FINE, I64)     \
  CASTS_TO_SHORT(X, FINE, I8, 0x1p7)   \
  CASTS_TO_SHORT(X, RARE, I16, 0x1p15) \
  CASTS_TO_LONG(X, FINE, I32, 0x1p31)  \
  CASTS_TO_LONG(X, RARE, I64, 0x1p63)  \
  CASTS_BETWEEN(X, RARE, I8, I16)      \
  CASTS_BETWEEN(X, INTEGER, I8, I32)   \
  CASTS_BETWEEN(X, INTEGER, I8, I64)   \
  CASTS_BETWEEN(X, RARE, I16, I32)     \
  CASTS_BETWEEN(X, RARE, I16, I64)     \
  CASTS_BETWEEN(X, INTEGER, I32, I64)  \
  X(FINE, EXTF, F32, F64, (double)x)   \
  X(FINE, TRUNCF, F64, F32, (float)x)

#endif  // EYAS_UKERNEL_ELEMENTS_OPS_H_
