#ifndef EYAS_TESTS_ULPS_H_
#define EYAS_TESTS_ULPS_H_

#include <math.h>

// How far an f32 is from the exact result, in units in the last place of that.
static inline double ulps(float got, double exact) {
  if (exact != exact) return got != got ? 0 : INFINITY;
  if (got != got) return INFINITY;
  if (got == (float)exact) return !signbit(got) == !signbit(exact) ? 0 : INFINITY;
  int exponent;
  frexp(exact, &exponent);
  const double unit = ldexp(1.0, exponent - 24 < -149 ? -149 : exponent - 24);
  const double bounded = isinf(got) ? copysign(0x1p128, got) : (double)got;
  return fabs(bounded - exact) / unit;
}

#endif  // EYAS_TESTS_ULPS_H_
