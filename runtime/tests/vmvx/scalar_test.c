// Every scalar instruction, against results worked out by hand or by the C library.
#include <math.h>

#include "vmvx/assemble.h"

// dst = op(a, b, c) with registers 1 to 3, or an immediate as the last operand; stored to binding
// 0.
static int64_t compute(uint32_t op, const int64_t* values, int registers, int64_t immediate) {
  static bytes_t code;
  code.count = 0;
  for (int i = 0; i < registers; ++i) OP(&code, CONST, 1 + i, values[i]);
  OP(&code, BINDING, 5, 0);
  int64_t operands[] = {0, 1, 2, 3};
  if ((int)strlen(eyas_vmvx_op_info(op).format) > registers + 1)
    operands[registers + 1] = immediate;
  put_op(&code, op, operands);
  OP(&code, STORE, 0, 5, 0, EYAS_VMVX_MEMORY_I64);
  RETURN(&code);
  int64_t result = 0x5A5A5A5A;
  CHECK_OK(launch((header_t){.scalars = 6, .bindings = 1, .writes = 1}, &code,
                  (launch_t){.bindings = {{&result, 8}}}));
  return result;
}

static void expect(int line, uint32_t op, int64_t got, int64_t wanted) {
  if (got == wanted) {
    ++check_passed;
    return;
  }
  ++check_failed;
  fprintf(stderr, "line %d: %s gave %lld (0x%llx), wanted %lld (0x%llx)\n", line,
          eyas_vmvx_op_info(op).name, (long long)got, (long long)got, (long long)wanted,
          (long long)wanted);
}

#define ONE(name, a, wanted)                                                                      \
  expect(__LINE__, EYAS_VMVX_OP_##name, compute(EYAS_VMVX_OP_##name, (const int64_t[]){a}, 1, 0), \
         (int64_t)(wanted))
#define TWO(name, a, b, wanted)         \
  expect(__LINE__, EYAS_VMVX_OP_##name, \
         compute(EYAS_VMVX_OP_##name, (const int64_t[]){a, b}, 2, 0), (int64_t)(wanted))
#define THREE(name, a, b, c, wanted)    \
  expect(__LINE__, EYAS_VMVX_OP_##name, \
         compute(EYAS_VMVX_OP_##name, (const int64_t[]){a, b, c}, 3, 0), (int64_t)(wanted))
#define BITS(name, a, bits, wanted)     \
  expect(__LINE__, EYAS_VMVX_OP_##name, \
         compute(EYAS_VMVX_OP_##name, (const int64_t[]){a}, 1, bits), (int64_t)(wanted))

static void test_integers(void) {
  ONE(MOV, -7, -7);
  TWO(ADD, INT64_MAX, 1, INT64_MIN);
  TWO(SUB, INT64_MIN, 1, INT64_MAX);
  TWO(MUL, INT64_MIN, -1, INT64_MIN);
  TWO(MUL, -3, 5, -15);
  TWO(DIVS, -7, 2, -3);
  TWO(DIVS, 7, 0, 7);
  TWO(DIVS, INT64_MIN, -1, INT64_MIN);
  TWO(DIVU, -1, 2, INT64_MAX);
  TWO(DIVU, 7, 0, 7);
  TWO(REMS, -7, 2, -1);
  TWO(REMS, -7, 0, 0);
  TWO(REMS, INT64_MIN, -1, 0);
  TWO(REMU, -1, 10, 5);
  TWO(REMU, 7, 0, 0);
  TWO(MINS, -1, 1, -1);
  TWO(MAXS, -1, 1, 1);
  TWO(MINU, -1, 1, 1);
  TWO(MAXU, -1, 1, -1);
  TWO(AND, 12, 10, 8);
  TWO(OR, 12, 10, 14);
  TWO(XOR, 12, 10, 6);
  TWO(SHL, 1, 63, INT64_MIN);
  TWO(SHL, 1, 64, 0);
  TWO(SHL, 1, -1, 0);
  TWO(SHRS, -8, 1, -4);
  TWO(SHRS, -8, 64, -1);
  TWO(SHRS, 8, 200, 0);
  TWO(SHRU, -1, 63, 1);
  TWO(SHRU, -1, 64, 0);
  TWO(EQ, 3, 3, 1);
  TWO(EQ, 3, 4, 0);
  TWO(NE, 3, 4, 1);
  TWO(LTS, -1, 0, 1);
  TWO(LTS, 0, 0, 0);
  TWO(LES, 0, 0, 1);
  TWO(LTU, -1, 0, 0);
  TWO(LTU, 0, -1, 1);
  TWO(LEU, -1, -1, 1);
  THREE(SELECT, 5, 1, 2, 1);
  THREE(SELECT, 0, 1, 2, 2);
  THREE(MADD, 3, -4, 5, -7);
  BITS(SEXT, 0xFF, 8, -1);
  BITS(SEXT, 0x17F, 8, 127);
  BITS(SEXT, 1, 1, -1);
  BITS(SEXT, INT64_MAX, 63, -1);
  BITS(ZEXT, -1, 8, 255);
  BITS(ZEXT, -1, 63, INT64_MAX);
  BITS(CLZ, 1, 32, 31);
  BITS(CLZ, 0x100000000, 32, 32);
  BITS(CLZ, 0, 64, 64);
  BITS(CLZ, -1, 64, 0);
  BITS(CTZ, 8, 32, 3);
  BITS(CTZ, 0x100000000, 32, 32);
  BITS(CTZ, INT64_MIN, 64, 63);
  ONE(POPCOUNT, -1, 64);
  TWO(MULHU, -1, -1, -2);
  TWO(MULHS, -1, -1, 0);
  TWO(MULHS, INT64_MIN, 2, -1);
}

static bool is_nan_f32(int64_t bits) {
  return bits >> 32 == 0 && (bits & 0x7F800000) == 0x7F800000 && (bits & 0x007FFFFF) != 0;
}

#define F(x) bits_f32(x)
#define D(x) bits_f64(x)

static void test_floats(void) {
  TWO(FADD_F32, F(1.5f), F(2.25f), F(3.75f));
  TWO(FSUB_F32, F(1.0f), F(2.0f), F(-1.0f));
  TWO(FMUL_F32, F(3.0f), F(-0.5f), F(-1.5f));
  TWO(FDIV_F32, F(1.0f), F(0.0f), F(INFINITY));
  TWO(FADD_F64, D(1.5), D(2.25), D(3.75));
  TWO(FSUB_F64, D(1.0), D(2.0), D(-1.0));
  TWO(FMUL_F64, D(3.0), D(-0.5), D(-1.5));
  TWO(FDIV_F64, D(1.0), D(3.0), D(1.0 / 3.0));
  TWO(FMINIMUM_F32, F(1.0f), F(2.0f), F(1.0f));
  TWO(FMINIMUM_F32, F(0.0f), F(-0.0f), F(-0.0f));
  TWO(FMINIMUM_F32, F(-0.0f), F(0.0f), F(-0.0f));
  TWO(FMAXIMUM_F32, F(-0.0f), F(0.0f), F(0.0f));
  TWO(FMAXIMUM_F32, F(0.0f), F(-0.0f), F(0.0f));
  TWO(FMAXIMUM_F32, F(1.0f), F(2.0f), F(2.0f));
  TWO(FMINNUM_F32, F(NAN), F(2.0f), F(2.0f));
  TWO(FMAXNUM_F32, F(2.0f), F(NAN), F(2.0f));
  TWO(FMINNUM_F32, F(3.0f), F(2.0f), F(2.0f));
  TWO(FMAXNUM_F32, F(3.0f), F(2.0f), F(3.0f));
  TWO(FMINIMUM_F64, D(1.0), D(2.0), D(1.0));
  TWO(FMAXIMUM_F64, D(1.0), D(2.0), D(2.0));
  TWO(FMINNUM_F64, D(NAN), D(2.0), D(2.0));
  TWO(FMAXNUM_F64, D(NAN), D(2.0), D(2.0));
  const int64_t nan_first[] = {F(NAN), F(1.0f)}, nan_second[] = {F(1.0f), F(NAN)};
  CHECK(is_nan_f32(compute(EYAS_VMVX_OP_FMINIMUM_F32, nan_first, 2, 0)));
  CHECK(is_nan_f32(compute(EYAS_VMVX_OP_FMAXIMUM_F32, nan_second, 2, 0)));
  TWO(FCOPYSIGN_F32, F(2.0f), F(-0.0f), F(-2.0f));
  TWO(FCOPYSIGN_F64, D(-2.0), D(1.0), D(2.0));
  TWO(FREM_F32, F(5.5f), F(2.0f), F(1.5f));
  TWO(FREM_F64, D(-5.5), D(2.0), D(-1.5));
  TWO(FPOW_F32, F(2.0f), F(10.0f), F(1024.0f));
  TWO(FPOW_F64, D(2.0), D(-1.0), D(0.5));
  TWO(FATAN2_F32, F(0.0f), F(1.0f), F(0.0f));
  TWO(FATAN2_F64, D(0.0), D(1.0), D(0.0));
  ONE(FNEG_F32, F(0.0f), F(-0.0f));
  ONE(FNEG_F64, D(1.0), D(-1.0));
  ONE(FABS_F32, F(-1.0f), F(1.0f));
  ONE(FABS_F64, D(-1.0), D(1.0));
  ONE(FSQRT_F32, F(2.25f), F(1.5f));
  ONE(FSQRT_F64, D(2.25), D(1.5));
  THREE(FFMA_F32, F(3.0f), F(4.0f), F(5.0f), F(17.0f));
  THREE(FFMA_F64, D(1.0 + 0x1p-52), D(1.0 - 0x1p-52), D(-1.0), D(-0x1p-104));
  ONE(FSITOFP_F32, -3, F(-3.0f));
  ONE(FSITOFP_F64, INT64_MIN, D(-0x1p63));
  ONE(FUITOFP_F32, -1, F(0x1p64f));
  ONE(FUITOFP_F64, 3, D(3.0));
  ONE(FEXTF, F(1.5f), D(1.5));
  ONE(FTRUNCF, D(1.5), F(1.5f));
  ONE(FBITS_F16, F(1.0f), 0x3C00);
  ONE(FBITS_F16, F(-1.0f), (int16_t)0xBC00);
  ONE(FFROM_F16, 0x3C00, F(1.0f));
  ONE(FBITS_BF16, F(-1.0f), (int16_t)0xBF80);
  ONE(FFROM_BF16, 0xBF80, F(-1.0f));
}

static void test_float_to_integer(void) {
  BITS(FFPTOSI_F32, F(-1.9f), 32, -1);
  BITS(FFPTOSI_F32, F(1e30f), 32, INT32_MAX);
  BITS(FFPTOSI_F32, F(-1e30f), 8, -128);
  BITS(FFPTOSI_F32, F(NAN), 32, 0);
  BITS(FFPTOSI_F64, D(0x1p63), 64, INT64_MAX);
  BITS(FFPTOSI_F64, D(-0x1p70), 64, INT64_MIN);
  BITS(FFPTOSI_F64, D(127.9), 8, 127);
  BITS(FFPTOUI_F32, F(300.0f), 8, -1);
  BITS(FFPTOUI_F32, F(200.0f), 8, 200 - 256);
  BITS(FFPTOUI_F32, F(-5.0f), 8, 0);
  BITS(FFPTOUI_F32, F(NAN), 8, 0);
  BITS(FFPTOUI_F32, F(1.0f), 1, 1);
  BITS(FFPTOUI_F64, D(0x1p64), 64, -1);
  BITS(FFPTOUI_F64, D(0x1p63), 64, INT64_MIN);
  BITS(FFPTOUI_F64, D(4294967295.0), 32, -1);
}

// Each comparison on below, equal, above and unordered.
static void test_compares(void) {
  static const struct {
    const char* name;
    uint32_t offset;
    int below, equal, above, unordered;
  } rows[] = {
      {"oeq", 0, 0, 1, 0, 0},  {"ogt", 1, 0, 0, 1, 0},  {"oge", 2, 0, 1, 1, 0},
      {"olt", 3, 1, 0, 0, 0},  {"ole", 4, 1, 1, 0, 0},  {"one", 5, 1, 0, 1, 0},
      {"ord", 6, 1, 1, 1, 0},  {"ueq", 7, 0, 1, 0, 1},  {"ugt", 8, 0, 0, 1, 1},
      {"uge", 9, 0, 1, 1, 1},  {"ult", 10, 1, 0, 0, 1}, {"ule", 11, 1, 1, 0, 1},
      {"une", 12, 1, 0, 1, 1}, {"uno", 13, 0, 0, 0, 1},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    uint32_t f32 = EYAS_VMVX_OP_FOEQ_F32 + rows[i].offset,
             f64 = EYAS_VMVX_OP_FOEQ_F64 + rows[i].offset;
    CHECK(strstr(eyas_vmvx_op_info(f32).name, rows[i].name) != NULL);
    const float a[] = {1, 2, 3, NAN};
    const int wanted[] = {rows[i].below, rows[i].equal, rows[i].above, rows[i].unordered};
    for (int k = 0; k < 4; ++k) {
      expect(__LINE__, f32, compute(f32, (const int64_t[]){F(a[k]), F(2.0f)}, 2, 0), wanted[k]);
      expect(__LINE__, f64, compute(f64, (const int64_t[]){D(a[k]), D(2.0)}, 2, 0), wanted[k]);
    }
  }
}

// The functions are the microkernels' for one element; here only that each reaches its own.
static void test_functions(void) {
  static const struct {
    uint32_t f32, f64;
    double (*reference)(double);
    double x;
  } rows[] = {
#define ROW(name, function, x) {EYAS_VMVX_OP_F##name##_F32, EYAS_VMVX_OP_F##name##_F64, function, x}
      ROW(CBRT, cbrt, 2.5),    ROW(EXP, exp, 0.7),      ROW(EXP2, exp2, 0.7),
      ROW(EXPM1, expm1, 0.7),  ROW(LOG, log, 2.5),      ROW(LOG2, log2, 2.5),
      ROW(LOG10, log10, 2.5),  ROW(LOG1P, log1p, 0.7),  ROW(SIN, sin, 0.7),
      ROW(COS, cos, 0.7),      ROW(TAN, tan, 0.7),      ROW(ASIN, asin, 0.7),
      ROW(ACOS, acos, 0.7),    ROW(ATAN, atan, 0.7),    ROW(SINH, sinh, 0.7),
      ROW(COSH, cosh, 0.7),    ROW(TANH, tanh, 0.7),    ROW(ASINH, asinh, 0.7),
      ROW(ACOSH, acosh, 1.7),  ROW(ATANH, atanh, 0.7),  ROW(ERF, erf, 0.7),
      ROW(ERFC, erfc, 0.7),    ROW(FLOOR, floor, -2.5), ROW(CEIL, ceil, -2.5),
      ROW(TRUNC, trunc, -2.5), ROW(ROUND, round, -2.5), ROW(ROUNDEVEN, rint, -2.5),
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    double wanted = rows[i].reference(rows[i].x), x = rows[i].x;
    int64_t narrow = compute(rows[i].f32, (const int64_t[]){F((float)x)}, 1, 0);
    int64_t wide = compute(rows[i].f64, (const int64_t[]){D(x)}, 1, 0);
    float f32;
    double f64;
    memcpy(&f32, &narrow, 4);
    memcpy(&f64, &wide, 8);
    CHECK(narrow >> 32 == 0);
    if (!(fabs(f32 - wanted) <= 4e-6 * fabs(wanted)) ||
        !(fabs(f64 - wanted) <= 1e-12 * fabs(wanted))) {
      ++check_failed;
      fprintf(stderr, "%s: %.9g and %.17g, wanted %.17g\n", eyas_vmvx_op_info(rows[i].f32).name,
              f32, f64, wanted);
    }
  }
  ONE(FRSQRT_F32, F(4.0f), F(0.5f));
  ONE(FRSQRT_F64, D(4.0), D(0.5));
  ONE(FSIGMOID_F32, F(0.0f), F(0.5f));
  ONE(FSIGMOID_F64, D(0.0), D(0.5));
  ONE(FROUND_F16_F32, F(1.0f + 0x1p-12f), F(1.0f));
  ONE(FROUND_BF16_F32, F(1.0f + 0x1p-9f), F(1.0f));
  ONE(FROUND_F16_F64, D(1.0 + 0x1p-12), D(1.0));
  ONE(FROUND_BF16_F64, D(1.0 + 0x1p-9), D(1.0));
}

int main(void) {
  test_integers();
  test_floats();
  test_float_to_integer();
  test_compares();
  test_functions();
  return check_summary("vmvx/scalar");
}
