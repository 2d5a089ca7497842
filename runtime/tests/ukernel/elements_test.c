// Every elementwise entry of every set that this CPU can run, against scalar references made here.
#include "base/half.h"
#include "ukernel/elements_fixture.h"

static tile_t a, b, c, original_a, original_b, original_c, result;

static int next_count(int count) {
  return count < 70 ? count + 1 : count == 70 ? 1024 : 1025;
}

// --- one operand ---------------------------------------------------------------------------------

// The exact result for an f32, and how far off it may be; libm's own functions are to be met
// exactly.
static double exact_unary(int op, float x, int fused, double* bound) {
  *bound = 0;
  const double wide = x;
  switch (op) {
    case EYAS_VMVX_UNARY_NEG: return -x;
    case EYAS_VMVX_UNARY_ABS: return fabsf(x);
    case EYAS_VMVX_UNARY_SQRT: return sqrtf(x);
    case EYAS_VMVX_UNARY_RSQRT: return 1.0f / sqrtf(x);
    case EYAS_VMVX_UNARY_CBRT: return cbrtf(x);
    case EYAS_VMVX_UNARY_EXP: return *bound = fused ? 0.88 : 1.16, exp(wide);
    case EYAS_VMVX_UNARY_EXP2: return *bound = fused ? 0.84 : 1.05, exp2(wide);
    case EYAS_VMVX_UNARY_EXPM1: return *bound = 1.42, expm1(wide);
    case EYAS_VMVX_UNARY_LOG: return *bound = 0.87, log(wide);
    case EYAS_VMVX_UNARY_LOG2: return *bound = 1.45, log2(wide);
    case EYAS_VMVX_UNARY_LOG10: return *bound = fused ? 0.91 : 1.85, log10(wide);
    case EYAS_VMVX_UNARY_LOG1P: return *bound = 1.5, log1p(wide);
    case EYAS_VMVX_UNARY_SIN: return *bound = fused ? 1.56 : 2.4, sin(wide);
    case EYAS_VMVX_UNARY_COS: return *bound = fused ? 1.56 : 2.4, cos(wide);
    case EYAS_VMVX_UNARY_TAN: return tanf(x);
    case EYAS_VMVX_UNARY_ASIN: return asinf(x);
    case EYAS_VMVX_UNARY_ACOS: return acosf(x);
    case EYAS_VMVX_UNARY_ATAN: return atanf(x);
    case EYAS_VMVX_UNARY_SINH: return sinhf(x);
    case EYAS_VMVX_UNARY_COSH: return coshf(x);
    case EYAS_VMVX_UNARY_TANH: return *bound = 1.33, tanh(wide);
    case EYAS_VMVX_UNARY_ASINH: return asinhf(x);
    case EYAS_VMVX_UNARY_ACOSH: return acoshf(x);
    case EYAS_VMVX_UNARY_ATANH: return atanhf(x);
    case EYAS_VMVX_UNARY_ERF: return *bound = 1.17, erf(wide);
    case EYAS_VMVX_UNARY_ERFC: return erfcf(x);
    case EYAS_VMVX_UNARY_FLOOR: return floorf(x);
    case EYAS_VMVX_UNARY_CEIL: return ceilf(x);
    case EYAS_VMVX_UNARY_TRUNC: return truncf(x);
    case EYAS_VMVX_UNARY_ROUND: return roundf(x);
    case EYAS_VMVX_UNARY_ROUNDEVEN: return rintf(x);
    case EYAS_VMVX_UNARY_SIGMOID: return *bound = 2.4, 1.0 / (1.0 + exp(-wide));
    case EYAS_VMVX_UNARY_ROUND_F16: return eyas_half_to_double(eyas_half_from_double(wide));
    default: {
      const uint32_t bits = (uint32_t)eyas_bfloat_from_double(wide) << 16;
      float back;
      memcpy(&back, &bits, sizeof(back));
      return back;
    }
  }
}

static double libm_unary(int op, double x) {
  double (*const functions[])(double) = {NULL, fabs, sqrt,  NULL,  cbrt,  exp,   exp2,  expm1,
                                         log,  log2, log10, log1p, sin,   cos,   tan,   asin,
                                         acos, atan, sinh,  cosh,  tanh,  asinh, acosh, atanh,
                                         erf,  erfc, floor, ceil,  trunc, round, rint};
  double bound;
  switch (op) {
    case EYAS_VMVX_UNARY_NEG: return -x;
    case EYAS_VMVX_UNARY_RSQRT: return 1.0 / sqrt(x);
    case EYAS_VMVX_UNARY_SIGMOID:
      return x < 0 ? exp(x) * (1.0 / (1.0 + exp(x))) : 1.0 / (1.0 + exp(-x));
    case EYAS_VMVX_UNARY_ROUND_F16: return eyas_half_to_double(eyas_half_from_double(x));
    case EYAS_VMVX_UNARY_ROUND_BF16: {
      const uint32_t bits = (uint32_t)eyas_bfloat_from_double(x) << 16;
      float back;
      memcpy(&back, &bits, sizeof(back));
      return exact_unary(op, back, 1, &bound);
    }
    default: return functions[op](x);
  }
}

static void check_unary(const eyas_uk_elements_t* set, int op, int type, size_t count,
                        int in_place) {
  const size_t bytes = count * type_bytes[type];
  const int fused = strcmp(set->name, "portable") != 0 && strcmp(set->name, "sse2") != 0;
  tile_t* dst = in_place ? &a : &result;
  memcpy(a.bytes, original_a.bytes, bytes);
  put_canary(dst, bytes);
  set->unary[op][type](dst->bytes, a.bytes, count);
  CHECK(canary_lives(dst, bytes));
  for (size_t i = 0; i < count; ++i) {
    const double x = get_real(original_a.bytes, type, i), got = get_real(dst->bytes, type, i);
    double bound = 0;
    const double exact =
        type == EYAS_VMVX_TYPE_F32 ? exact_unary(op, (float)x, fused, &bound) : libm_unary(op, x);
    const int ok = bound > 0 ? ulps((float)got, exact) <= bound : same_real(got, exact);
    CHECK(ok);
    if (!ok) {
      fprintf(stderr, "%s: unary %d of %a: %a instead of %a (%g ulp)\n", set->name, op, x, got,
              exact, ulps((float)got, exact));
      return;
    }
  }
}

// A sweep over all exponents, both signs, and NaN.
static void sweep_unary(const eyas_uk_elements_t* set, int op) {
  uint32_t bits = 0;
  for (int done = 0; !done;) {
    float* values = (float*)original_a.bytes;
    for (size_t i = 0; i < CAPACITY; ++i) {
      memcpy(&values[i], &bits, sizeof(bits));
      const uint32_t next = bits + 20011;
      done |= next < bits;
      bits = next;
    }
    check_unary(set, op, EYAS_VMVX_TYPE_F32, CAPACITY, 0);
  }
}

static int64_t exact_iunary(int op, int64_t x, int type) {
  const int bits = 8 * (int)type_bytes[type];
  const uint64_t u = without_sign(x, type);
  switch (op) {
    case EYAS_VMVX_IUNARY_NEG: return wrapped(0 - (uint64_t)x, type);
    case EYAS_VMVX_IUNARY_ABS: return x < 0 ? wrapped(0 - (uint64_t)x, type) : x;
    case EYAS_VMVX_IUNARY_CLZ: return u ? __builtin_clzll(u) - (64 - bits) : bits;
    case EYAS_VMVX_IUNARY_CTZ: return u ? __builtin_ctzll(u) : bits;
    case EYAS_VMVX_IUNARY_POPCOUNT: return __builtin_popcountll(u);
    default: return ~x;
  }
}

static void check_iunary(const eyas_uk_elements_t* set, int op, int type, size_t count,
                         int in_place) {
  const size_t bytes = count * type_bytes[type];
  tile_t* dst = in_place ? &a : &result;
  memcpy(a.bytes, original_a.bytes, bytes);
  put_canary(dst, bytes);
  set->iunary[op][type](dst->bytes, a.bytes, count);
  CHECK(canary_lives(dst, bytes));
  for (size_t i = 0; i < count; ++i) {
    const int64_t x = get_integer(original_a.bytes, type, i);
    CHECK(get_integer(dst->bytes, type, i) == exact_iunary(op, x, type));
  }
}

// --- two operands --------------------------------------------------------------------------------

static double exact_binary(int op, double x, double y, int type) {
  const int narrow = type == EYAS_VMVX_TYPE_F32;
  const double low = x != x || y != y ? NAN : x == y ? (signbit(x) ? x : y) : x < y ? x : y;
  const double high = x != x || y != y ? NAN : x == y ? (signbit(x) ? y : x) : x > y ? x : y;
  switch (op) {
    case EYAS_VMVX_BINARY_ADD: return narrow ? (float)x + (float)y : x + y;
    case EYAS_VMVX_BINARY_SUB: return narrow ? (float)x - (float)y : x - y;
    case EYAS_VMVX_BINARY_MUL: return narrow ? (float)x * (float)y : x * y;
    case EYAS_VMVX_BINARY_DIV: return narrow ? (float)x / (float)y : x / y;
    case EYAS_VMVX_BINARY_MINIMUM: return low;
    case EYAS_VMVX_BINARY_MAXIMUM: return high;
    case EYAS_VMVX_BINARY_MINNUM: return x != x ? y : y != y ? x : low;
    case EYAS_VMVX_BINARY_MAXNUM: return x != x ? y : y != y ? x : high;
    case EYAS_VMVX_BINARY_REM: return fmod(x, y);  // exact in either type
    case EYAS_VMVX_BINARY_POW: return narrow ? powf((float)x, (float)y) : pow(x, y);
    case EYAS_VMVX_BINARY_ATAN2: return narrow ? atan2f((float)x, (float)y) : atan2(x, y);
    default: return copysign(x, y);
  }
}

static int64_t exact_ibinary(int op, int64_t x, int64_t y, int type) {
  const uint64_t u = without_sign(x, type), v = without_sign(y, type);
  const unsigned bits = 8 * (unsigned)type_bytes[type];
  switch (op) {
    case EYAS_VMVX_IBINARY_ADD: return wrapped((uint64_t)x + (uint64_t)y, type);
    case EYAS_VMVX_IBINARY_SUB: return wrapped((uint64_t)x - (uint64_t)y, type);
    case EYAS_VMVX_IBINARY_MUL: return wrapped((uint64_t)x * (uint64_t)y, type);
    case EYAS_VMVX_IBINARY_DIVS:
      return y == 0 ? x : y == -1 ? wrapped(0 - (uint64_t)x, type) : x / y;
    case EYAS_VMVX_IBINARY_DIVU: return v == 0 ? x : wrapped(u / v, type);
    case EYAS_VMVX_IBINARY_REMS: return y == 0 || y == -1 ? 0 : x % y;
    case EYAS_VMVX_IBINARY_REMU: return v == 0 ? 0 : wrapped(u % v, type);
    case EYAS_VMVX_IBINARY_MINS: return x < y ? x : y;
    case EYAS_VMVX_IBINARY_MAXS: return x > y ? x : y;
    case EYAS_VMVX_IBINARY_MINU: return u < v ? x : y;
    case EYAS_VMVX_IBINARY_MAXU: return u > v ? x : y;
    case EYAS_VMVX_IBINARY_AND: return x & y;
    case EYAS_VMVX_IBINARY_OR: return x | y;
    case EYAS_VMVX_IBINARY_XOR: return x ^ y;
    case EYAS_VMVX_IBINARY_SHL: return v < bits ? wrapped(u << v, type) : 0;
    case EYAS_VMVX_IBINARY_SHRS: return x >> (v < bits ? v : bits - 1);
    default: return v < bits ? wrapped(u >> v, type) : 0;
  }
}

static int exact_compare(int op, double x, double y) {
  const int unordered = x != x || y != y;
  switch (op) {
    case EYAS_VMVX_COMPARE_OEQ: return !unordered && x == y;
    case EYAS_VMVX_COMPARE_OGT: return !unordered && x > y;
    case EYAS_VMVX_COMPARE_OGE: return !unordered && x >= y;
    case EYAS_VMVX_COMPARE_OLT: return !unordered && x < y;
    case EYAS_VMVX_COMPARE_OLE: return !unordered && x <= y;
    case EYAS_VMVX_COMPARE_ONE: return !unordered && x != y;
    case EYAS_VMVX_COMPARE_ORD: return !unordered;
    case EYAS_VMVX_COMPARE_UEQ: return unordered || x == y;
    case EYAS_VMVX_COMPARE_UGT: return unordered || x > y;
    case EYAS_VMVX_COMPARE_UGE: return unordered || x >= y;
    case EYAS_VMVX_COMPARE_ULT: return unordered || x < y;
    case EYAS_VMVX_COMPARE_ULE: return unordered || x <= y;
    case EYAS_VMVX_COMPARE_UNE: return unordered || x != y;
    default: return unordered;
  }
}

static int exact_icompare(int op, int64_t x, int64_t y, int type) {
  const uint64_t u = without_sign(x, type), v = without_sign(y, type);
  switch (op) {
    case EYAS_VMVX_ICOMPARE_EQ: return x == y;
    case EYAS_VMVX_ICOMPARE_NE: return x != y;
    case EYAS_VMVX_ICOMPARE_SLT: return x < y;
    case EYAS_VMVX_ICOMPARE_SLE: return x <= y;
    case EYAS_VMVX_ICOMPARE_SGT: return x > y;
    case EYAS_VMVX_ICOMPARE_SGE: return x >= y;
    case EYAS_VMVX_ICOMPARE_ULT: return u < v;
    case EYAS_VMVX_ICOMPARE_ULE: return u <= v;
    case EYAS_VMVX_ICOMPARE_UGT: return u > v;
    default: return u >= v;
  }
}

enum { OTHER_TILE, OVER_A, OVER_B, PLACES };
enum { FLOATS, INTEGERS, FLOAT_TRUTHS, INTEGER_TRUTHS };

static int is_right(int family, int op, int type, size_t i, size_t at_a, size_t at_b,
                    const void* dst) {
  if (family == FLOATS || family == FLOAT_TRUTHS) {
    const double x = get_real(original_a.bytes, type, at_a),
                 y = get_real(original_b.bytes, type, at_b);
    if (family == FLOAT_TRUTHS) return ((const int8_t*)dst)[i] == exact_compare(op, x, y);
    const double got = get_real(dst, type, i), exact = exact_binary(op, x, y, type);
    if (op == EYAS_VMVX_BINARY_POW && type == EYAS_VMVX_TYPE_F32)
      return ulps((float)got, pow(x, y)) <= 1.91;
    const int free_sign = op == EYAS_VMVX_BINARY_MINNUM || op == EYAS_VMVX_BINARY_MAXNUM;
    return same_real(got, exact) || (free_sign && got == exact);
  }
  const int64_t x = get_integer(original_a.bytes, type, at_a),
                y = get_integer(original_b.bytes, type, at_b);
  if (family == INTEGER_TRUTHS) return ((const int8_t*)dst)[i] == exact_icompare(op, x, y, type);
  return get_integer(dst, type, i) == exact_ibinary(op, x, y, type);
}

static void check_binary(const eyas_uk_elements_t* set, int family, int op, int type,
                         size_t count) {
  const eyas_uk_binary_set_t* entry = family == FLOATS         ? &set->binary[op][type]
                                      : family == INTEGERS     ? &set->ibinary[op][type]
                                      : family == FLOAT_TRUTHS ? &set->compare[op][type]
                                                               : &set->icompare[op][type];
  const eyas_uk_binary_t functions[3] = {entry->vv, entry->vs, entry->sv};
  const size_t operand_bytes = count * type_bytes[type];
  const size_t result_bytes = family >= FLOAT_TRUTHS ? count : operand_bytes;
  for (int form = 0; form < 3; ++form) {
    // Repeated elements are for what has loops of their own; there is no other way in these
    // families.
    CHECK(functions[form] || (form != 0 && !(family == FLOATS && type == EYAS_VMVX_TYPE_F32 &&
                                             op < EYAS_VMVX_BINARY_REM)));
    for (int place = 0; place < PLACES && functions[form]; ++place) {
      memcpy(a.bytes, original_a.bytes, operand_bytes);
      memcpy(b.bytes, original_b.bytes, operand_bytes);
      tile_t* dst = place == OVER_A ? &a : place == OVER_B ? &b : &result;
      if (place == OTHER_TILE || result_bytes == operand_bytes) put_canary(dst, result_bytes);
      functions[form](dst->bytes, a.bytes, b.bytes, count);
      CHECK((place != OTHER_TILE && result_bytes != operand_bytes) ||
            canary_lives(dst, result_bytes));
      for (size_t i = 0; i < count; ++i) {
        const int ok =
            is_right(family, op, type, i, form == 2 ? 0 : i, form == 1 ? 0 : i, dst->bytes);
        CHECK(ok);
        if (!ok) {
          fprintf(stderr, "%s: family %d op %d type %d form %d place %d element %zu of %zu\n",
                  set->name, family, op, type, form, place, i, count);
          return;
        }
      }
    }
  }
}

static void check_binaries(const eyas_uk_elements_t* set, int family, int ops, int first, int end) {
  for (int op = 0; op < ops; ++op) {
    for (int type = first; type < end; ++type) {
      for (int count = 1; count <= 1024; count = next_count(count)) {
        fill_random(original_a.bytes, type, (size_t)count);
        fill_random(original_b.bytes, type, (size_t)count);
        check_binary(set, family, op, type, (size_t)count);
      }
    }
  }
}

// Each edge, and exponents, as the operand that is repeated: some have a path of their own there.
static void check_repeated_edges(const eyas_uk_elements_t* set) {
  const double exponents[] = {2, 3, 4, -2};
  const size_t edges = sizeof(real_edges) / sizeof(real_edges[0]);
  for (size_t edge = 0; edge < edges + 4; ++edge) {
    const double repeated = edge < edges ? real_edges[edge] : exponents[edge - edges];
    for (int op = 0; op < EYAS_VMVX_BINARY_COUNT; ++op) {
      fill_random(original_a.bytes, EYAS_VMVX_TYPE_F32, 200);
      fill_random(original_b.bytes, EYAS_VMVX_TYPE_F32, 200);
      put_real(original_a.bytes, EYAS_VMVX_TYPE_F32, 0, repeated);
      put_real(original_b.bytes, EYAS_VMVX_TYPE_F32, 0, repeated);
      check_binary(set, FLOATS, op, EYAS_VMVX_TYPE_F32, 200);
    }
  }
}

static void check_fma(const eyas_uk_elements_t* set, int type, size_t count, tile_t* dst) {
  const size_t bytes = count * type_bytes[type];
  fill_random(original_a.bytes, type, count);
  fill_random(original_b.bytes, type, count);
  fill_random(original_c.bytes, type, count);
  memcpy(a.bytes, original_a.bytes, bytes);
  memcpy(b.bytes, original_b.bytes, bytes);
  memcpy(c.bytes, original_c.bytes, bytes);
  put_canary(dst, bytes);
  set->fma[type](dst->bytes, a.bytes, b.bytes, c.bytes, count);
  CHECK(canary_lives(dst, bytes));
  for (size_t i = 0; i < count; ++i) {
    const double x = get_real(original_a.bytes, type, i), y = get_real(original_b.bytes, type, i);
    const double z = get_real(original_c.bytes, type, i);
    const double exact =
        type == EYAS_VMVX_TYPE_F32 ? fmaf((float)x, (float)y, (float)z) : fma(x, y, z);
    CHECK(same_real(get_real(dst->bytes, type, i), exact));
  }
}

int main(void) {
  for (int s = 0; s < SET_COUNT; ++s) {
    const eyas_uk_elements_t* set = eyas_uk_elements(set_names[s]);
    if (!set) continue;
    CHECK(strcmp(set->name, set_names[s]) == 0);
    for (int op = 0; op < EYAS_VMVX_UNARY_COUNT; ++op) {
      for (int type = EYAS_VMVX_TYPE_F32; type <= EYAS_VMVX_TYPE_F64; ++type) {
        for (int count = 1; count <= 1024; count = next_count(count)) {
          fill_random(original_a.bytes, type, (size_t)count);
          check_unary(set, op, type, (size_t)count, 0);
          check_unary(set, op, type, (size_t)count, 1);
        }
      }
      sweep_unary(set, op);
    }
    for (int op = 0; op < EYAS_VMVX_IUNARY_COUNT; ++op) {
      for (int type = EYAS_VMVX_TYPE_I8; type <= EYAS_VMVX_TYPE_I64; ++type) {
        for (int count = 1; count <= 1024; count = next_count(count)) {
          fill_random(original_a.bytes, type, (size_t)count);
          check_iunary(set, op, type, (size_t)count, 0);
          check_iunary(set, op, type, (size_t)count, 1);
        }
      }
    }
    check_binaries(set, FLOATS, EYAS_VMVX_BINARY_COUNT, EYAS_VMVX_TYPE_F32, EYAS_VMVX_TYPE_I8);
    check_binaries(set, FLOAT_TRUTHS, EYAS_VMVX_COMPARE_COUNT, EYAS_VMVX_TYPE_F32,
                   EYAS_VMVX_TYPE_I8);
    check_binaries(set, INTEGERS, EYAS_VMVX_IBINARY_COUNT, EYAS_VMVX_TYPE_I8, EYAS_VMVX_TYPE_COUNT);
    check_binaries(set, INTEGER_TRUTHS, EYAS_VMVX_ICOMPARE_COUNT, EYAS_VMVX_TYPE_I8,
                   EYAS_VMVX_TYPE_COUNT);
    check_repeated_edges(set);
    for (int count = 1; count <= 1024; count = next_count(count)) {
      tile_t* const places[] = {&result, &a, &b, &c};
      for (int place = 0; place < 4; ++place) {
        check_fma(set, EYAS_VMVX_TYPE_F32, (size_t)count, places[place]);
        check_fma(set, EYAS_VMVX_TYPE_F64, (size_t)count, places[place]);
      }
    }
  }
  CHECK(eyas_uk_elements("none of these") == NULL);
  CHECK(eyas_uk_elements(NULL) != NULL);
  return check_summary("elements");
}
