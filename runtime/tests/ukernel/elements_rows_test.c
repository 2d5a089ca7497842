// Reductions, softmax and normalisation of rows, of every set that this CPU can run.
#include "ukernel/elements_fixture.h"

static tile_t a, original, result;

static double reduce_reals(int op, double x, double y) {
  switch (op) {
    case EYAS_VMVX_REDUCE_ADD: return x + y;
    case EYAS_VMVX_REDUCE_MUL: return x * y;
    case EYAS_VMVX_REDUCE_MINIMUM:
      return x != x || y != y ? NAN : x < y || (x == y && signbit(x)) ? x : y;
    case EYAS_VMVX_REDUCE_MAXIMUM:
      return x != x || y != y ? NAN : x > y || (x == y && signbit(y)) ? x : y;
    case EYAS_VMVX_REDUCE_MINNUM: return x != x ? y : y != y ? x : x < y ? x : y;
    default: return x != x ? y : y != y ? x : x > y ? x : y;
  }
}

static int64_t reduce_integers(int op, int64_t x, int64_t y, int type) {
  const uint64_t u = without_sign(x, type), v = without_sign(y, type);
  switch (op) {
    case EYAS_VMVX_IREDUCE_ADD: return wrapped((uint64_t)x + (uint64_t)y, type);
    case EYAS_VMVX_IREDUCE_MUL: return wrapped((uint64_t)x * (uint64_t)y, type);
    case EYAS_VMVX_IREDUCE_MINS: return x < y ? x : y;
    case EYAS_VMVX_IREDUCE_MAXS: return x > y ? x : y;
    case EYAS_VMVX_IREDUCE_MINU: return u < v ? x : y;
    case EYAS_VMVX_IREDUCE_MAXU: return u > v ? x : y;
    case EYAS_VMVX_IREDUCE_AND: return x & y;
    case EYAS_VMVX_IREDUCE_OR: return x | y;
    default: return x ^ y;
  }
}

static int is_reduced(int op, int type, size_t rows, size_t columns, int axis, size_t at,
                      const void* dst) {
  const size_t count = axis == 0 ? rows : columns, step = axis == 0 ? columns : 1;
  const size_t first = axis == 0 ? at : at * columns;
  if (!is_float(type)) {
    int64_t all = get_integer(original.bytes, type, first);
    for (size_t i = 1; i < count; ++i) {
      all = reduce_integers(op, all, get_integer(original.bytes, type, first + i * step), type);
    }
    return get_integer(dst, type, at) == all;
  }
  double all = get_real(original.bytes, type, first), size = fabs(all);
  for (size_t i = 1; i < count; ++i) {
    const double x = get_real(original.bytes, type, first + i * step);
    all = reduce_reals(op, all, x);
    size += fabs(x);
  }
  const double got = get_real(dst, type, at), unit = type == EYAS_VMVX_TYPE_F32 ? 0x1p-24 : 0x1p-53;
  if (op == EYAS_VMVX_REDUCE_ADD) return fabs(got - all) <= unit * (double)count * size;
  if (op == EYAS_VMVX_REDUCE_MUL) return fabs(got - all) <= 2 * unit * (double)count * fabs(all);
  return same_real(got, all) || (op >= EYAS_VMVX_REDUCE_MINNUM && got == all);
}

static void check_reduce(const eyas_uk_elements_t* set, int op, int type, size_t rows,
                         size_t columns) {
  const size_t bytes = rows * columns * type_bytes[type];
  fill_random(original.bytes, type, rows * columns);
  if (is_float(type) && op <= EYAS_VMVX_REDUCE_MUL) {  // sums of infinities say little
    for (size_t i = 0; i < rows * columns; ++i) {
      put_real(original.bytes, type, i, random_real(0.85, 1.15) * (random_bits() % 2 ? 1 : -1));
    }
  }
  for (int axis = 0; axis < 2; ++axis) {
    const size_t results = axis == 0 ? columns : rows;
    const eyas_uk_reduce_t function =
        is_float(type) ? set->reduce[op][type][axis] : set->ireduce[op][type][axis];
    for (int in_place = 0; in_place < 2; ++in_place) {
      memcpy(a.bytes, original.bytes, bytes);
      tile_t* dst = in_place ? &a : &result;
      if (!in_place) put_canary(dst, results * type_bytes[type]);
      function(dst->bytes, a.bytes, rows, columns);
      if (!in_place) CHECK(canary_lives(dst, results * type_bytes[type]));
      for (size_t i = 0; i < results; ++i) {
        const int ok = is_reduced(op, type, rows, columns, axis, i, dst->bytes);
        CHECK(ok);
        if (!ok) {
          fprintf(stderr, "%s: reduction %d of type %d along %d, %zu x %zu, result %zu\n",
                  set->name, op, type, axis, rows, columns, i);
          return;
        }
      }
    }
  }
}

// Sums are added in one order, whatever the vectors are.
static void check_same_bits(const eyas_uk_elements_t* set, size_t rows, size_t columns) {
  const eyas_uk_elements_t* portable = eyas_uk_elements("portable");
  for (size_t i = 0; i < rows * columns; ++i)
    put_real(a.bytes, EYAS_VMVX_TYPE_F32, i, random_real(-9.0, 9.0));
  for (int axis = 0; axis < 2; ++axis) {
    const size_t bytes = (axis == 0 ? columns : rows) * sizeof(float);
    portable->reduce[EYAS_VMVX_REDUCE_ADD][EYAS_VMVX_TYPE_F32][axis](original.bytes, a.bytes, rows,
                                                                     columns);
    set->reduce[EYAS_VMVX_REDUCE_ADD][EYAS_VMVX_TYPE_F32][axis](result.bytes, a.bytes, rows,
                                                                columns);
    CHECK(memcmp(original.bytes, result.bytes, bytes) == 0);
  }
}

static void check_rows(const eyas_uk_elements_t* set, size_t rows, size_t columns, double scale,
                       int in_place) {
  float* values = (float*)original.bytes;
  const size_t bytes = rows * columns * sizeof(float);
  for (size_t i = 0; i < rows * columns; ++i) values[i] = (float)random_real(-scale, scale);
  tile_t* dst = in_place ? &a : &result;
  const float* got = (const float*)dst->bytes;
  memcpy(a.bytes, values, bytes);
  put_canary(dst, bytes);
  set->softmax((float*)dst->bytes, (const float*)a.bytes, rows, columns, 0.0f);
  CHECK(canary_lives(dst, bytes));
  for (size_t r = 0; r < rows; ++r) {
    const float* row = values + r * columns;
    double largest = row[0], sum = 0;
    for (size_t c = 0; c < columns; ++c) largest = row[c] > largest ? row[c] : largest;
    for (size_t c = 0; c < columns; ++c) sum += exp(row[c] - largest);
    for (size_t c = 0; c < columns; ++c) {
      const double wanted = exp((double)((float)(row[c] - largest))) / sum;
      CHECK(fabs(got[r * columns + c] - wanted) <= 1e-6 * wanted + 0x1p-149);
    }
  }
  memcpy(a.bytes, values, bytes);
  put_canary(dst, bytes);
  set->normalize((float*)dst->bytes, (const float*)a.bytes, rows, columns, 1e-5f);
  CHECK(canary_lives(dst, bytes));
  for (size_t r = 0; r < rows; ++r) {
    const float* row = values + r * columns;
    double mean = 0, variance = 0;
    for (size_t c = 0; c < columns; ++c) mean += row[c] / (double)columns;
    for (size_t c = 0; c < columns; ++c)
      variance += (row[c] - mean) * (row[c] - mean) / (double)columns;
    for (size_t c = 0; c < columns; ++c) {
      const double deviation = sqrt(variance + 1e-5f), wanted = (row[c] - mean) / deviation;
      CHECK(fabs(got[r * columns + c] - wanted) <= 2e-6 * (1 + scale / deviation));
    }
  }
}

// What is not a number, or not finite, makes its row NaN, as the formula has it.
static void check_odd_rows(const eyas_uk_elements_t* set) {
  const float odd[] = {NAN, INFINITY, -INFINITY};
  for (size_t which = 0; which < 3; ++which) {
    float row[37], out[37];
    for (size_t c = 0; c < 37; ++c) row[c] = which == 2 ? odd[which] : (float)c;
    row[11] = odd[which];
    set->softmax(out, row, 1, 37, 0.0f);
    for (size_t c = 0; c < 37; ++c)
      CHECK(out[c] != out[c] || (which == 1 && c != 11 && out[c] == 0.0f));
    row[11] = -INFINITY;
    for (size_t c = 0; c < 37; ++c) row[c] = c == 11 ? -INFINITY : 1.0f;
    set->softmax(out, row, 1, 37, 0.0f);
    CHECK(out[11] == 0.0f && fabs(out[0] - 1.0 / 36) < 1e-7);
  }
}

int main(void) {
  static const size_t shapes[][2] = {{1, 1},    {1, 5},   {5, 1},   {3, 7},   {8, 16},
                                     {16, 17},  {7, 63},  {4, 64},  {2, 129}, {1, 1024},
                                     {1024, 1}, {32, 32}, {3, 300}, {130, 2}};
  for (int s = 0; s < SET_COUNT; ++s) {
    const eyas_uk_elements_t* set = eyas_uk_elements(set_names[s]);
    if (!set) continue;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); ++i) {
      for (int type = 0; type < EYAS_VMVX_TYPE_COUNT; ++type) {
        const int ops = is_float(type) ? EYAS_VMVX_REDUCE_COUNT : EYAS_VMVX_IREDUCE_COUNT;
        for (int op = 0; op < ops; ++op) {
          for (int repeat = 0; repeat < 5; ++repeat)
            check_reduce(set, op, type, shapes[i][0], shapes[i][1]);
        }
      }
      check_same_bits(set, shapes[i][0], shapes[i][1]);
      for (int in_place = 0; in_place < 2; ++in_place) {
        check_rows(set, shapes[i][0], shapes[i][1], 3.0, in_place);
        check_rows(set, shapes[i][0], shapes[i][1], 80.0, in_place);
      }
    }
    check_odd_rows(set);
  }
  return check_summary("elements_rows");
}
