// The largest error of the f32 functions of element microkernels, in units in the last place, for
// every set that this CPU runs, against functions of doubles.
//
//   ulp [STEP] [FUNCTION]     every STEP-th f32; 1 is all of them, which takes minutes a function
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ukernel/ukernel.h"
#include "ukernel/ulps.h"

enum { COUNT = 1024 };

static _Alignas(64) float values[COUNT], results[COUNT];

static double sigmoid(double x) {
  return x < 0 ? exp(x) / (1.0 + exp(x)) : 1.0 / (1.0 + exp(-x));
}

static double square(double x) {
  return x * x;
}

static double cube(double x) {
  return x * x * x;
}

static double fourth(double x) {
  return x * x * (x * x);
}

static double root(double x) {
  return x == -INFINITY ? INFINITY : sqrt(x) + 0.0;
}

static double inverse_root(double x) {
  return 1.0 / root(x);
}

static double inverse(double x) {
  return 1.0 / x;
}

static double inverse_square(double x) {
  return 1.0 / x / x;
}

static double power(double x) {
  return pow(x, 2.4f);
}

static const struct {
  const char* name;
  int unary;       // or a power
  float exponent;  // when this is not 0
  double (*exact)(double);
} functions[] = {
    {"exp", EYAS_VMVX_UNARY_EXP, 0, exp},
    {"exp2", EYAS_VMVX_UNARY_EXP2, 0, exp2},
    {"expm1", EYAS_VMVX_UNARY_EXPM1, 0, expm1},
    {"log", EYAS_VMVX_UNARY_LOG, 0, log},
    {"log2", EYAS_VMVX_UNARY_LOG2, 0, log2},
    {"log10", EYAS_VMVX_UNARY_LOG10, 0, log10},
    {"log1p", EYAS_VMVX_UNARY_LOG1P, 0, log1p},
    {"tanh", EYAS_VMVX_UNARY_TANH, 0, tanh},
    {"erf", EYAS_VMVX_UNARY_ERF, 0, erf},
    {"sin", EYAS_VMVX_UNARY_SIN, 0, sin},
    {"cos", EYAS_VMVX_UNARY_COS, 0, cos},
    {"sigmoid", EYAS_VMVX_UNARY_SIGMOID, 0, sigmoid},
    {"power 2", 0, 2.0f, square},
    {"power 3", 0, 3.0f, cube},
    {"power 4", 0, 4.0f, fourth},
    {"power 0.5", 0, 0.5f, root},
    {"power -0.5", 0, -0.5f, inverse_root},
    {"power -1", 0, -1.0f, inverse},
    {"power -2", 0, -2.0f, inverse_square},
    {"power 2.4", 0, 2.4f, power},
};

static double largest_error(const eyas_uk_elements_t* set, int n, uint64_t step, float* where) {
  const float exponent = functions[n].exponent;
  double largest = 0;
  for (uint64_t first = 0; first < (uint64_t)1 << 32; first += COUNT * step) {
    for (uint64_t i = 0; i < COUNT; ++i) {
      const uint32_t bits = (uint32_t)(first + i * step);
      memcpy(&values[i], &bits, sizeof(bits));
    }
    if (exponent != 0) {
      set->binary[EYAS_VMVX_BINARY_POW][EYAS_VMVX_TYPE_F32].vs(results, values, &exponent, COUNT);
    } else {
      set->unary[functions[n].unary][EYAS_VMVX_TYPE_F32](results, values, COUNT);
    }
    for (int i = 0; i < COUNT; ++i) {
      const double error = ulps(results[i], functions[n].exact(values[i]));
      if (error > largest) largest = error, *where = values[i];
    }
  }
  return largest;
}

int main(int argc, char** argv) {
  const char* const sets[] = {"portable", "sse2", "avx2", "avx512", "neon", "rvv"};
  const uint64_t step = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  for (size_t n = 0; n < sizeof(functions) / sizeof(functions[0]); ++n) {
    if (argc > 2 && strstr(functions[n].name, argv[2]) != functions[n].name) continue;
    for (int s = 0; s < (int)(sizeof(sets) / sizeof(sets[0])); ++s) {
      const eyas_uk_elements_t* set = eyas_uk_elements(sets[s]);
      float where = 0;
      if (!set) continue;
      const double error = largest_error(set, (int)n, step ? step : 1, &where);
      printf("%-10s %-9s %.3f at %a\n", functions[n].name, sets[s], error, where);
      fflush(stdout);
    }
  }
  return 0;
}
