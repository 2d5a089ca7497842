#define _GNU_SOURCE 1
#include "hal/cpu/imports.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"

// 128-bit division, from the compiler's own support library.
__extension__ typedef __int128 int128_t;
__extension__ typedef unsigned __int128 uint128_t;
int128_t __divti3(int128_t, int128_t);
int128_t __modti3(int128_t, int128_t);
uint128_t __udivti3(uint128_t, uint128_t);
uint128_t __umodti3(uint128_t, uint128_t);
float __powisf2(float, int);
double __powidf2(double, int);

#define NAMED(name, function) {name, (eyas_hal_import_fn_t)(function)},
#define PLAIN(function) NAMED(#function, function)
#define FLOAT_AND_DOUBLE(function) PLAIN(function) PLAIN(function##f)

// clang-format off
static const struct {
  const char* name;
  eyas_hal_import_fn_t function;
} imports[] = {
    // Memory. LLVM makes memcpy, memset and bcmp of loops by itself.
    PLAIN(memcpy) PLAIN(memmove) PLAIN(memset) PLAIN(memcmp) NAMED("bcmp", memcmp)
    PLAIN(malloc) PLAIN(free) PLAIN(aligned_alloc)

    // libm, `name` for double and `namef` for float.
    FLOAT_AND_DOUBLE(exp) FLOAT_AND_DOUBLE(exp2) FLOAT_AND_DOUBLE(exp10) FLOAT_AND_DOUBLE(expm1)
    FLOAT_AND_DOUBLE(log) FLOAT_AND_DOUBLE(log2) FLOAT_AND_DOUBLE(log10) FLOAT_AND_DOUBLE(log1p)
    FLOAT_AND_DOUBLE(sin) FLOAT_AND_DOUBLE(cos) FLOAT_AND_DOUBLE(tan) FLOAT_AND_DOUBLE(sincos)
    FLOAT_AND_DOUBLE(asin) FLOAT_AND_DOUBLE(acos) FLOAT_AND_DOUBLE(atan) FLOAT_AND_DOUBLE(atan2)
    FLOAT_AND_DOUBLE(sinh) FLOAT_AND_DOUBLE(cosh) FLOAT_AND_DOUBLE(tanh)
    FLOAT_AND_DOUBLE(asinh) FLOAT_AND_DOUBLE(acosh) FLOAT_AND_DOUBLE(atanh)
    FLOAT_AND_DOUBLE(erf) FLOAT_AND_DOUBLE(erfc) FLOAT_AND_DOUBLE(tgamma) FLOAT_AND_DOUBLE(lgamma)
    FLOAT_AND_DOUBLE(pow) FLOAT_AND_DOUBLE(sqrt) FLOAT_AND_DOUBLE(cbrt) FLOAT_AND_DOUBLE(hypot)
    FLOAT_AND_DOUBLE(fmod) FLOAT_AND_DOUBLE(remainder) FLOAT_AND_DOUBLE(fma)
    FLOAT_AND_DOUBLE(floor) FLOAT_AND_DOUBLE(ceil) FLOAT_AND_DOUBLE(trunc) FLOAT_AND_DOUBLE(round)
    FLOAT_AND_DOUBLE(rint) FLOAT_AND_DOUBLE(nearbyint)
    // Nobody changes the rounding mode here, so rint rounds ties to even; not every libc has the
    // other name.
    NAMED("roundeven", rint) NAMED("roundevenf", rintf)
    FLOAT_AND_DOUBLE(lround) FLOAT_AND_DOUBLE(llround) FLOAT_AND_DOUBLE(lrint)
    FLOAT_AND_DOUBLE(llrint)
    FLOAT_AND_DOUBLE(fmax) FLOAT_AND_DOUBLE(fmin) FLOAT_AND_DOUBLE(fabs) FLOAT_AND_DOUBLE(fdim)
    FLOAT_AND_DOUBLE(copysign) FLOAT_AND_DOUBLE(ldexp) FLOAT_AND_DOUBLE(frexp)
    FLOAT_AND_DOUBLE(modf)

    // The compiler's support library.
    PLAIN(__divti3) PLAIN(__modti3) PLAIN(__udivti3) PLAIN(__umodti3)
    PLAIN(__powisf2) PLAIN(__powidf2)
    NAMED("__truncsfhf2", eyas_truncsfhf2) NAMED("__truncdfhf2", eyas_truncdfhf2)
    NAMED("__truncsfbf2", eyas_truncsfbf2) NAMED("__truncdfbf2", eyas_truncdfbf2)
    NAMED("__extendhfsf2", eyas_extendhfsf2) NAMED("__extendhfdf2", eyas_extendhfdf2)
    NAMED("__extendbfsf2", eyas_extendbfsf2)
};
// clang-format on

eyas_hal_import_fn_t eyas_hal_import_lookup(const char* name) {
  for (size_t i = 0; i < sizeof(imports) / sizeof(imports[0]); ++i) {
    if (strcmp(imports[i].name, name) == 0) return imports[i].function;
  }
  return NULL;
}

const char* eyas_hal_import_name(size_t index) {
  return index < sizeof(imports) / sizeof(imports[0]) ? imports[index].name : NULL;
}
