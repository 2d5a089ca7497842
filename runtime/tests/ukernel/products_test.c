// Every set of product microkernels that this CPU runs against the portable one, and the portable
// one against sums in long double. What is read ends at a page that cannot be read, so that a
// kernel that reads on dies here.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/half.h"
#include "hal/check.h"
#include "ukernel/products.h"

enum { PANEL = EYAS_VMVX_PANEL, MOST = EYAS_VMVX_MAX_ELEMENTS };

static uint64_t random_state = 0x9e3779b97f4a7c15u;

static uint64_t next_random(void) {  // xorshift64*
  random_state ^= random_state >> 12;
  random_state ^= random_state << 25;
  random_state ^= random_state >> 27;
  return random_state * 0x2545f4914f6cdd1du;
}

static int64_t between(int64_t first, int64_t last) {
  return first + (int64_t)(next_random() % (uint64_t)(last - first + 1));
}

// Memory whose last byte is followed by a page that cannot be touched.
typedef struct guarded_t {
  char *base, *end;
  size_t capacity;
} guarded_t;

static guarded_t guarded_make(size_t capacity) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  capacity = (capacity + page - 1) / page * page;
  char* base =
      mmap(NULL, capacity + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED || mprotect(base + capacity, page, PROT_NONE) != 0) abort();
  return (guarded_t){base, base + capacity, capacity};
}

typedef struct kind_t {
  const char* name;
  int a_bytes, b_bytes, k, acc_bytes;
} kind_t;

static const kind_t kinds[EYAS_VMVX_CONTRACT_COUNT] = {
    [EYAS_VMVX_CONTRACT_F32] = {"f32", 4, 4, 1, 4},
    [EYAS_VMVX_CONTRACT_F16] = {"f16", 2, 2, 1, 4},
    [EYAS_VMVX_CONTRACT_BF16] = {"bf16", 2, 2, 2, 4},
    [EYAS_VMVX_CONTRACT_S8S8] = {"s8s8", 1, 1, 4, 4},
    [EYAS_VMVX_CONTRACT_U8S8] = {"u8s8", 1, 1, 4, 4},
    [EYAS_VMVX_CONTRACT_S8U8] = {"s8u8", 1, 1, 4, 4},
    [EYAS_VMVX_CONTRACT_U8U8] = {"u8u8", 1, 1, 4, 4},
    [EYAS_VMVX_CONTRACT_F64] = {"f64", 8, 8, 1, 8},
};

static double small_value(void) {
  return (double)between(-1000, 1000) / 512.0;
}

static void put(char* p, int number, double value) {
  float single = (float)value;
  uint16_t half = 0;
  switch (number) {
    case EYAS_VMVX_CONTRACT_F32: memcpy(p, &single, 4); break;
    case EYAS_VMVX_CONTRACT_F64: memcpy(p, &value, 8); break;
    case EYAS_VMVX_CONTRACT_F16:
      half = eyas_half_from_double(value);
      memcpy(p, &half, 2);
      break;
    case EYAS_VMVX_CONTRACT_BF16:
      half = eyas_bfloat_from_double(value);
      memcpy(p, &half, 2);
      break;
    default: *p = (char)next_random();
  }
}

static long double get(const char* p, int number, int is_right) {
  float single;
  double wide;
  uint16_t half;
  uint32_t bits;
  switch (number) {
    case EYAS_VMVX_CONTRACT_F32: memcpy(&single, p, 4); return single;
    case EYAS_VMVX_CONTRACT_F64: memcpy(&wide, p, 8); return wide;
    case EYAS_VMVX_CONTRACT_F16: memcpy(&half, p, 2); return eyas_half_to_double(half);
    case EYAS_VMVX_CONTRACT_BF16:
      memcpy(&half, p, 2);
      bits = (uint32_t)half << 16;
      memcpy(&single, &bits, 4);
      return single;
    default: {
      const int is_unsigned =
          is_right ? number == EYAS_VMVX_CONTRACT_S8U8 || number == EYAS_VMVX_CONTRACT_U8U8
                   : number == EYAS_VMVX_CONTRACT_U8S8 || number == EYAS_VMVX_CONTRACT_U8U8;
      return is_unsigned ? (long double)(uint8_t)*p : (long double)(int8_t)*p;
    }
  }
}

// Strides of a dense array whose loops are nested as `order` says, a loop turned around now and
// then. Returns the offset of its first element.
static int64_t lay_out(int64_t* steps, const int64_t* extents, int count, int64_t unit) {
  int64_t start = 0;
  for (int i = count - 1; i >= 0; --i) {
    steps[i] = unit;
    unit *= extents[i];
    if (between(0, 9) == 0) {
      start += (extents[i] - 1) * steps[i];
      steps[i] = -steps[i];
    }
  }
  return start;
}

typedef struct case_t {
  eyas_uk_contract_t call;
  int number;
} case_t;

// A random call whose operands end where readable memory does.
static void make_case(case_t* one, int number, guarded_t* a, guarded_t* b, char* acc) {
  const kind_t* kind = &kinds[number];
  eyas_uk_contract_t* call = &one->call;
  one->number = number;
  memset(call, 0, sizeof(*call));
  const int64_t widths[] = {1, 2, 4, 8};
  call->columns = between(0, 2) ? (size_t)(PANEL * widths[between(0, 3)]) : (size_t)between(1, 128);
  if (between(0, 3) == 0) call->columns = (size_t)between(1, 40);
  size_t most_rows = MOST / call->columns;
  if (most_rows > 40) most_rows = 40;
  call->rows = (size_t)between(
      1, between(0, 1) ? (int64_t)most_rows : (most_rows < 8 ? (int64_t)most_rows : 8));
  const int64_t k_bytes = kind->b_bytes * kind->k,
                panels = ((int64_t)call->columns + PANEL - 1) / PANEL;
  int64_t extents[4], steps[4];
  for (int i = 0; i < 3; ++i)
    extents[i] = call->loops[i].extent = between(0, 19) ? between(1, i == 2 ? 40 : 3) : 0;
  const int64_t steps_in_all = extents[0] * extents[1] * extents[2];
  // a: rows outermost, with something between them, or innermost.
  const int64_t a_unit = kind->a_bytes * kind->k;
  int64_t a_start = 0;
  if (between(0, 3)) {
    a_start = lay_out(steps, extents, 3, a_unit);
    call->a_row_bytes = steps_in_all * a_unit + between(0, 3) * kind->a_bytes;
    // Rows that crowd one set of the cache are cut differently.
    if (between(0, 4) == 0) call->a_row_bytes = (call->a_row_bytes + 2047) & ~(int64_t)2047;
  } else {
    const int64_t with_rows[4] = {extents[0], extents[1], extents[2], (int64_t)call->rows};
    a_start = lay_out(steps, with_rows, 4, a_unit);
    call->a_row_bytes = steps[3];
  }
  for (int i = 0; i < 3; ++i) call->loops[i].a_bytes = steps[i];
  int64_t a_end = a_start;
  for (int i = 0; i < 3; ++i) {
    if (extents[i] > 0 && steps[i] > 0) a_end += (extents[i] - 1) * steps[i];
  }
  if (call->a_row_bytes > 0) a_end += (int64_t)(call->rows - 1) * call->a_row_bytes;
  if (steps_in_all == 0) a_start = a_end = 0;
  call->a = a->end - (a_end + a_unit) + a_start;
  // b: panels with the loops inside, or rows of all columns. The last panel may be narrower.
  const int64_t last = ((int64_t)call->columns - 1) % PANEL + 1;
  int64_t b_start, b_end;
  if (between(0, 2)) {
    b_start = lay_out(steps, extents, 3, PANEL * k_bytes);
    call->b_panel_bytes = steps_in_all * PANEL * k_bytes;
  } else {
    b_start = lay_out(steps, extents, 3,
                      (int64_t)call->columns * k_bytes + between(0, 2) * kind->b_bytes);
    call->b_panel_bytes = PANEL * k_bytes;
  }
  b_end = b_start + (panels - 1) * call->b_panel_bytes + last * k_bytes;
  for (int i = 0; i < 3; ++i) {
    call->loops[i].b_bytes = steps[i];
    if (extents[i] > 0 && steps[i] > 0) b_end += (extents[i] - 1) * steps[i];
  }
  if (steps_in_all == 0) b_start = b_end = 0;
  call->b = b->end - b_end + b_start;
  if (b_end > (int64_t)b->capacity || a_end + a_unit > (int64_t)a->capacity) abort();
  for (char* p = a->end - (a_end + a_unit); p < a->end; p += kind->a_bytes)
    put(p, number, small_value());
  for (char* p = b->end - b_end; p < b->end; p += kind->b_bytes) put(p, number, small_value());
  call->acc = acc;
  for (size_t i = 0; i < call->rows * call->columns; ++i) {
    float single = (float)small_value();
    double wide = small_value();
    int32_t integer = (int32_t)between(-1000, 1000);
    const void* from = kind->acc_bytes == 8 ? (void*)&wide
                       : kind->k == 4       ? (void*)&integer
                                            : (void*)&single;
    memcpy(acc + i * (size_t)kind->acc_bytes, from, (size_t)kind->acc_bytes);
  }
}

static long double accumulated(const char* acc, int number, size_t i) {
  if (kinds[number].k == 4) return ((const int32_t*)acc)[i];
  if (number == EYAS_VMVX_CONTRACT_F64) return ((const double*)acc)[i];
  return ((const float*)acc)[i];
}

// The exact sum for one element, and the sum of magnitudes that bounds the rounding.
static long double exact(const case_t* one, const char* acc, size_t r, size_t c,
                         long double* size) {
  const eyas_uk_contract_t* call = &one->call;
  const kind_t* kind = &kinds[one->number];
  const eyas_uk_loop_t* l = call->loops;
  long double sum = accumulated(acc, one->number, r * call->columns + c);
  *size = fabsl(sum);
  for (int64_t i = 0; i < l[0].extent; ++i) {
    for (int64_t j = 0; j < l[1].extent; ++j) {
      for (int64_t k = 0; k < l[2].extent; ++k) {
        const char* a = call->a + (int64_t)r * call->a_row_bytes + i * l[0].a_bytes +
                        j * l[1].a_bytes + k * l[2].a_bytes;
        const char* b = call->b + (int64_t)(c / PANEL) * call->b_panel_bytes + i * l[0].b_bytes +
                        j * l[1].b_bytes + k * l[2].b_bytes +
                        (int64_t)(c % PANEL) * kind->k * kind->b_bytes;
        for (int n = 0; n < kind->k; ++n) {
          const long double product = get(a + n * kind->a_bytes, one->number, 0) *
                                      get(b + n * kind->b_bytes, one->number, 1);
          sum += product;
          *size += fabsl(product);
        }
      }
    }
  }
  return sum;
}

static _Alignas(64) char acc_before[MOST * 8], acc_after[MOST * 8 + 64], acc_expected[MOST * 8];

// Runs a call on a copy of the accumulators; what lies behind them must stay.
static int run_contract(const eyas_uk_products_t* table, const case_t* one, char* result) {
  eyas_uk_contract_t call = one->call;
  const size_t bytes = call.rows * call.columns * (size_t)kinds[one->number].acc_bytes;
  memset(acc_after, 0x5a, sizeof(acc_after));
  memcpy(acc_after, acc_before, bytes);
  call.acc = acc_after;
  table->contract[one->number](&call);
  for (size_t i = bytes; i < sizeof(acc_after); ++i) {
    if (acc_after[i] != 0x5a) return 0;
  }
  memcpy(result, acc_after, bytes);
  return 1;
}

static const eyas_uk_products_t* available[16];
static int available_count;

static void test_contract(int number, int rounds) {
  guarded_t a = guarded_make(1 << 20), b = guarded_make(4 << 20);
  static _Alignas(64) char result[MOST * 8];
  for (int round = 0; round < rounds; ++round) {
    case_t one;
    make_case(&one, number, &a, &b, acc_before);
    const size_t count = one.call.rows * one.call.columns;
    CHECK(run_contract(&eyas_uk_products_portable, &one, acc_expected));
    for (int probe = 0; probe < 4; ++probe) {
      const size_t r = (size_t)between(0, (int64_t)one.call.rows - 1),
                   c = (size_t)between(0, (int64_t)one.call.columns - 1);
      long double size, sum = exact(&one, acc_before, r, c, &size);
      const long double bound =
          kinds[number].k == 4 ? 0 : size * (number == EYAS_VMVX_CONTRACT_F64 ? 1e-14L : 4e-6L);
      CHECK(fabsl(sum - accumulated(acc_expected, number, r * one.call.columns + c)) <= bound);
    }
    long double most = 0;
    for (size_t i = 0; i < count; ++i)
      most = fmaxl(most, fabsl(accumulated(acc_expected, number, i)));
    const int64_t steps =
        one.call.loops[0].extent * one.call.loops[1].extent * one.call.loops[2].extent;
    for (int t = 0; t < available_count; ++t) {
      if (!run_contract(available[t], &one, result)) {
        fprintf(stderr, "%s %s: wrote behind its tile\n", available[t]->name, kinds[number].name);
        CHECK(0);
      }
      for (size_t i = 0; i < count; ++i) {
        const long double x = accumulated(result, number, i),
                          y = accumulated(acc_expected, number, i);
        const long double bound = kinds[number].k == 4
                                      ? 0
                                      : (long double)(4 * steps + 4) *
                                            (number == EYAS_VMVX_CONTRACT_F64 ? 1e-15L : 5e-7L);
        if (fabsl(x - y) <= bound) continue;
        fprintf(stderr, "%s %s: %zu x %zu, %lld x %lld x %lld: element %zu is %Lg, not %Lg\n",
                available[t]->name, kinds[number].name, one.call.rows, one.call.columns,
                (long long)one.call.loops[0].extent, (long long)one.call.loops[1].extent,
                (long long)one.call.loops[2].extent, i, x, y);
        CHECK(0);
        break;
      }
    }
  }
  munmap(a.base, a.capacity);
  munmap(b.base, b.capacity);
}

static const int type_bytes[EYAS_VMVX_TYPE_COUNT] = {4, 8, 1, 2, 4, 8};

// Zeros of both signs, infinities and NaN among the numbers where the operation only chooses.
static void put_element(char* p, int type, int special) {
  static const double odd[] = {0.0, -0.0, INFINITY, -INFINITY, NAN};
  double wide = special && between(0, 3) == 0 ? odd[between(0, 4)] : small_value();
  float single = (float)wide;
  const int64_t integer = (int64_t)next_random();
  const void* from = type == EYAS_VMVX_TYPE_F32   ? (void*)&single
                     : type == EYAS_VMVX_TYPE_F64 ? (void*)&wide
                                                  : (void*)&integer;
  memcpy(p, from, (size_t)type_bytes[type]);
}

static double element(const char* p, int type, size_t i) {
  switch (type) {
    case EYAS_VMVX_TYPE_F32: return ((const float*)p)[i];
    case EYAS_VMVX_TYPE_F64: return ((const double*)p)[i];
    case EYAS_VMVX_TYPE_I8: return ((const int8_t*)p)[i];
    default: return ((const int32_t*)p)[i];
  }
}

static int same(double x, double y, double bound) {
  if (isnan(x) || isnan(y)) return isnan(x) && isnan(y);
  if (x == y) return signbit(x) == signbit(y);
  return fabs(x - y) <= bound;
}

// One element by the definition, in double. Integers wrap.
static double expected_window(const eyas_uk_window_t* call, int number, int type, size_t r,
                              size_t c) {
  const size_t place = r * call->columns + c;
  double value = element(acc_before, type, place);
  for (int64_t i = 0; i < call->loops[0].extent; ++i) {
    for (int64_t j = 0; j < call->loops[1].extent; ++j) {
      char copy[8] = {0}, weight[8] = {0};
      const eyas_uk_loop_t* l = call->loops;
      const size_t size = (size_t)type_bytes[type];
      memcpy(copy,
             call->a + (int64_t)r * call->a_row_bytes + i * l[0].a_bytes + j * l[1].a_bytes +
                 (int64_t)(c * size),
             size);
      memcpy(weight, call->b + i * l[0].b_bytes + j * l[1].b_bytes + (int64_t)(c * size), size);
      _Alignas(8) char aligned[16];
      memcpy(aligned, copy, 8);
      memcpy(aligned + 8, weight, 8);
      const double x = element(aligned, type, 0), y = element(aligned + 8, type, 0);
      const int is_float = type <= EYAS_VMVX_TYPE_F64;
      const int is_greatest =
          number == EYAS_VMVX_WINDOW_MAXIMUM || number == EYAS_VMVX_WINDOW_MAXNUM;
      if (number == EYAS_VMVX_WINDOW_MULADD || number == EYAS_VMVX_WINDOW_ADD) {
        const double factor = number == EYAS_VMVX_WINDOW_MULADD ? y : 1.0;
        if (is_float) {
          value += x * factor;
        } else {
          const uint64_t sum =
              (uint64_t)(int64_t)value + (uint64_t)(int64_t)x * (uint64_t)(int64_t)factor;
          value = type == EYAS_VMVX_TYPE_I8 ? (double)(int8_t)sum : (double)(int32_t)sum;
        }
      } else if (isnan(x) || isnan(value)) {
        const int skips = number == EYAS_VMVX_WINDOW_MAXNUM || number == EYAS_VMVX_WINDOW_MINNUM;
        value = skips ? (isnan(value) ? x : value) : NAN;
      } else if (x == value) {
        value = is_greatest ? (signbit(value) ? x : value) : (signbit(value) ? value : x);
      } else {
        value = (x > value) == is_greatest ? x : value;
      }
    }
  }
  return value;
}

static void test_window(int number, int type, int rounds) {
  guarded_t a = guarded_make(1 << 20), b = guarded_make(1 << 16);
  const size_t size = (size_t)type_bytes[type];
  const int special = number >= EYAS_VMVX_WINDOW_MAXIMUM;
  for (int round = 0; round < rounds; ++round) {
    eyas_uk_window_t call = {0};
    call.columns = between(0, 1) ? (size_t)(16 * between(1, 8)) : (size_t)between(1, 130);
    size_t most_rows = MOST / call.columns;
    if (most_rows > 30) most_rows = 30;
    call.rows = (size_t)between(1, (int64_t)most_rows);
    call.loops[0].extent = between(0, 19) ? between(1, 5) : 0;
    call.loops[1].extent = between(0, 19) ? between(1, 5) : 0;
    // A channels-last image: rows of the tile are neighbours (or every other one), windows overlap.
    const int64_t pixel = (int64_t)((call.columns + (size_t)between(0, 3)) * size);
    const int64_t stride = between(1, 2), dilation = between(1, 2);
    const int64_t line = pixel * (stride * (int64_t)call.rows + dilation * 5);
    call.a_row_bytes = between(0, 9) ? pixel * stride : line;
    call.loops[0].a_bytes = line;
    call.loops[1].a_bytes = pixel * dilation;
    call.loops[1].b_bytes = (int64_t)(call.columns * size);
    call.loops[0].b_bytes = call.loops[1].b_bytes * call.loops[1].extent;
    int64_t a_end = (int64_t)(call.columns * size) + (int64_t)(call.rows - 1) * call.a_row_bytes;
    int64_t b_end = (int64_t)(call.columns * size);
    for (int i = 0; i < 2; ++i) {
      if (call.loops[i].extent == 0) continue;
      a_end += (call.loops[i].extent - 1) * call.loops[i].a_bytes;
      b_end += (call.loops[i].extent - 1) * call.loops[i].b_bytes;
    }
    call.a = a.end - a_end;
    call.b = b.end - b_end;
    if (a_end > (int64_t)a.capacity || b_end > (int64_t)b.capacity) abort();
    for (char* p = a.end - a_end; p < a.end; p += size) put_element(p, type, special);
    for (char* p = b.end - b_end; p < b.end; p += size) put_element(p, type, special);
    const size_t count = call.rows * call.columns;
    for (size_t i = 0; i < count; ++i) put_element(acc_before + i * size, type, special);
    for (int t = -1; t < available_count; ++t) {
      const eyas_uk_products_t* table = t < 0 ? &eyas_uk_products_portable : available[t];
      memset(acc_after, 0x5a, sizeof(acc_after));
      memcpy(acc_after, acc_before, count * size);
      call.acc = acc_after;
      table->window[number][type](&call);
      int kept = 1;
      for (size_t i = count * size; i < sizeof(acc_after); ++i) kept &= acc_after[i] == 0x5a;
      CHECK(kept);
      const double bound = type == EYAS_VMVX_TYPE_F32   ? 1e-4
                           : type == EYAS_VMVX_TYPE_F64 ? 1e-12
                                                        : 0;
      for (size_t i = 0; i < count; ++i) {
        if (t >= 0 && i % 7) continue;
        const double x = element(acc_after, type, i);
        const double y = expected_window(&call, number, type, i / call.columns, i % call.columns);
        if (same(x, y, special ? 0 : bound)) continue;
        fprintf(stderr, "%s window %d type %d: %zu x %zu, element %zu is %g, not %g\n", table->name,
                number, type, call.rows, call.columns, i, x, y);
        CHECK(0);
        break;
      }
    }
  }
  munmap(a.base, a.capacity);
  munmap(b.base, b.capacity);
}

static void test_choice(void) {
  CHECK(eyas_uk_products(NULL) != NULL);
  CHECK(eyas_uk_products("portable") == &eyas_uk_products_portable);
  CHECK(eyas_uk_products("no such set") == NULL);
}

// A test takes seconds; `products_test 2000` looks longer.
int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 60;
  test_choice();
  available_count = eyas_uk_products_available(available, 16);
  for (int t = 0; t < available_count; ++t) {
    printf("%s ", available[t]->name);
    const unsigned width = available[t]->width;
    CHECK(width == 1 || width == 2 || width == 4 || width == 8);
  }
  for (int number = 0; number < EYAS_VMVX_CONTRACT_COUNT; ++number)
    test_contract(number, rounds * 4);
  for (int number = 0; number < EYAS_VMVX_WINDOW_COUNT; ++number) {
    static const int types[] = {EYAS_VMVX_TYPE_F32, EYAS_VMVX_TYPE_F64, EYAS_VMVX_TYPE_I8,
                                EYAS_VMVX_TYPE_I32};
    for (int i = 0; i < (number >= EYAS_VMVX_WINDOW_MAXNUM ? 2 : 4); ++i)
      test_window(number, types[i], rounds);
  }
  return check_summary("products_test");
}
