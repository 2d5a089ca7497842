// Element microkernels that move, convert, select and reduce, of every set that this CPU can run.
#include "base/half.h"
#include "ukernel/elements_fixture.h"

static tile_t a, b, condition, result, expected;

// --- loads, stores, gathers ----------------------------------------------------------------------

static const size_t memory_bytes[EYAS_VMVX_MEMORY_COUNT] = {4, 8, 1, 2, 4, 8, 2, 2, 1, 2, 4};
static const int memory_types[EYAS_VMVX_MEMORY_COUNT] = {
    EYAS_VMVX_TYPE_F32, EYAS_VMVX_TYPE_F64, EYAS_VMVX_TYPE_I8,  EYAS_VMVX_TYPE_I16,
    EYAS_VMVX_TYPE_I32, EYAS_VMVX_TYPE_I64, EYAS_VMVX_TYPE_F32, EYAS_VMVX_TYPE_F32,
    EYAS_VMVX_TYPE_I8,  EYAS_VMVX_TYPE_I16, EYAS_VMVX_TYPE_I32};

static int is_half(int memory) {
  return memory == EYAS_VMVX_MEMORY_F16 || memory == EYAS_VMVX_MEMORY_BF16;
}

// One element of memory as an element of a tile, and back.
static void to_tile(void* tile, size_t i, const char* source, int memory) {
  uint16_t half = 0;
  if (!is_half(memory)) {
    memcpy((char*)tile + i * memory_bytes[memory], source, memory_bytes[memory]);
    return;
  }
  memcpy(&half, source, sizeof(half));
  const uint32_t bits = (uint32_t)half << 16;
  if (memory == EYAS_VMVX_MEMORY_F16)
    put_real(tile, EYAS_VMVX_TYPE_F32, i, eyas_half_to_double(half));
  if (memory == EYAS_VMVX_MEMORY_BF16) memcpy((char*)tile + 4 * i, &bits, sizeof(bits));
}

static void to_memory(char* target, const void* tile, size_t i, int memory) {
  if (!is_half(memory)) {
    memcpy(target, (const char*)tile + i * memory_bytes[memory], memory_bytes[memory]);
    return;
  }
  const double value = get_real(tile, EYAS_VMVX_TYPE_F32, i);
  const uint16_t half = memory == EYAS_VMVX_MEMORY_F16 ? eyas_half_from_double(value)
                                                       : eyas_bfloat_from_double(value);
  memcpy(target, &half, sizeof(half));
}

// The same bits, or both NaN.
static int same_elements(const void* x, const void* y, int type, size_t count) {
  if (!is_float(type)) return memcmp(x, y, count * type_bytes[type]) == 0;
  for (size_t i = 0; i < count; ++i) {
    if (!same_real(get_real(x, type, i), get_real(y, type, i))) return 0;
  }
  return 1;
}

static void check_strides(const eyas_uk_elements_t* set, int memory, size_t rows, size_t columns,
                          int64_t row_bytes, int64_t column_bytes, int distinct) {
  const int type = memory_types[memory];
  const size_t count = rows * columns, size = memory_bytes[memory],
               bytes = count * type_bytes[type];
  const int64_t row_reach = row_bytes * (int64_t)(rows - 1),
                column_reach = column_bytes * (int64_t)(columns - 1);
  const int64_t low = (row_reach < 0 ? row_reach : 0) + (column_reach < 0 ? column_reach : 0);
  const int64_t high = (row_reach > 0 ? row_reach : 0) + (column_reach > 0 ? column_reach : 0);
  const size_t total = (size_t)(high - low) + size;
  // Not a byte more than allowed: the sanitizer sees reads and writes beside it.
  char *block = malloc(total), *copy = malloc(total);
  for (size_t i = 0; i < total; ++i) block[i] = (char)random_bits();
  char* base = block - low;
  put_canary(&result, bytes);
  set->load[memory](result.bytes, base, rows, columns, row_bytes, column_bytes);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < columns; ++c) {
      to_tile(expected.bytes, r * columns + c,
              base + (int64_t)r * row_bytes + (int64_t)c * column_bytes, memory);
    }
  }
  const int loaded =
      same_elements(result.bytes, expected.bytes, type, count) && canary_lives(&result, bytes);
  CHECK(loaded);
  if (distinct) {
    fill_random(a.bytes, type, count);
    memcpy(copy, block, total);
    set->store[memory](a.bytes, base, rows, columns, row_bytes, column_bytes);
    char* copied = copy - low;
    for (size_t r = 0; r < rows; ++r) {
      for (size_t c = 0; c < columns; ++c) {
        to_memory(copied + (int64_t)r * row_bytes + (int64_t)c * column_bytes, a.bytes,
                  r * columns + c, memory);
      }
    }
    // A NaN's payload is free, so compare the elements as numbers and everything else as bytes.
    int stored = 1;
    for (size_t r = 0; r < rows; ++r) {
      for (size_t c = 0; c < columns; ++c) {
        const int64_t at = (int64_t)r * row_bytes + (int64_t)c * column_bytes;
        to_tile(result.bytes, 0, base + at, memory);
        to_tile(expected.bytes, 0, copied + at, memory);
        stored &= same_elements(result.bytes, expected.bytes, type, 1);
        memcpy(base + at, copied + at, size);
      }
    }
    CHECK(stored && memcmp(block, copy, total) == 0);
    if (!stored) fprintf(stderr, "%s: store of memory %d wrong\n", set->name, memory);
  }
  if (!loaded) {
    fprintf(stderr, "%s: load of memory %d, %zu x %zu, strides %" PRId64 " %" PRId64 "\n",
            set->name, memory, rows, columns, row_bytes, column_bytes);
  }
  free(block);
  free(copy);
}

static void check_memory(const eyas_uk_elements_t* set, int memory, size_t rows, size_t columns) {
  const int64_t s = (int64_t)memory_bytes[memory], r = (int64_t)rows, c = (int64_t)columns;
  check_strides(set, memory, rows, columns, c * s, s, 1);          // packed
  check_strides(set, memory, rows, columns, c * s + 3 * s, s, 1);  // rows apart
  check_strides(set, memory, rows, columns, c * s + 1, s, 1);      // not aligned
  check_strides(set, memory, rows, columns, -c * s, s, 1);         // rows backwards
  check_strides(set, memory, rows, columns, s, r * s, 1);          // transposed
  check_strides(set, memory, rows, columns, s, r * s + 5 * s, 1);  // transposed, apart
  check_strides(set, memory, rows, columns, s, -r * s - s, 1);     // transposed, backwards
  check_strides(set, memory, rows, columns, -c * s, -s, 1);        // all backwards
  check_strides(set, memory, rows, columns, c * 3 * s, 3 * s, 1);  // channels
  check_strides(set, memory, rows, columns, c * 2 * s, 2 * s, 1);
  check_strides(set, memory, rows, columns, 0, s, rows == 1);     // one row, repeated
  check_strides(set, memory, rows, columns, s, 0, columns == 1);  // one column, repeated
  check_strides(set, memory, rows, columns, 0, 0, rows * columns == 1);
  check_strides(set, memory, rows, columns, s, s,
                rows == 1 || columns == 1);  // a window that slides
}

static void check_gather(const eyas_uk_elements_t* set, int memory, size_t count) {
  const int type = memory_types[memory];
  const size_t bytes = count * type_bytes[type];
  char* block = malloc(77 * memory_bytes[memory]);
  for (size_t i = 0; i < 77 * memory_bytes[memory]; ++i) block[i] = (char)random_bits();
  int64_t* index = (int64_t*)b.bytes;
  for (size_t i = 0; i < count; ++i) {
    index[i] = (int64_t)(random_bits() % 77);
    to_tile(expected.bytes, i, block + (size_t)index[i] * memory_bytes[memory], memory);
  }
  put_canary(&result, bytes);
  set->gather[memory](result.bytes, block, index, count);
  CHECK(same_elements(result.bytes, expected.bytes, type, count) && canary_lives(&result, bytes));
  set->gather[memory](b.bytes, block, index, count);  // over the indices
  CHECK(same_elements(b.bytes, expected.bytes, type, count));
  free(block);
}

// Every f16 there is, and f32 around every step between two of them.
static void check_all_halves(const eyas_uk_elements_t* set, int memory) {
  uint16_t block[CAPACITY], back[CAPACITY];
  for (uint32_t first = 0; first < 0x10000; first += CAPACITY) {
    for (uint32_t i = 0; i < CAPACITY; ++i) {
      block[i] = (uint16_t)(first + i);
      to_tile(expected.bytes, i, (const char*)&block[i], memory);
    }
    set->load[memory](result.bytes, (const char*)block, 1, CAPACITY, 2 * CAPACITY, 2);
    CHECK(same_elements(result.bytes, expected.bytes, EYAS_VMVX_TYPE_F32, CAPACITY));
    for (uint32_t i = 0; i + 1 < CAPACITY; ++i) {  // ties, and their neighbours
      const float* values = (const float*)expected.bytes;
      const float middle = values[i] / 2 + values[i + 1] / 2;
      put_real(a.bytes, EYAS_VMVX_TYPE_F32, i,
               i % 3 == 0 ? middle : nextafterf(middle, i % 3 == 1 ? 0 : INFINITY));
    }
    set->store[memory](a.bytes, (char*)back, 1, CAPACITY - 1, 2 * CAPACITY, 2);
    for (uint32_t i = 0; i + 1 < CAPACITY; ++i) {
      uint16_t wanted;
      to_memory((char*)&wanted, a.bytes, i, memory);
      to_tile(expected.bytes, 0, (const char*)&wanted, memory);
      to_tile(expected.bytes, 1, (const char*)&back[i], memory);
      CHECK(same_elements(expected.bytes, expected.bytes + 4, EYAS_VMVX_TYPE_F32, 1));
    }
  }
}

static void check_pick(const eyas_uk_elements_t* set, int which, size_t count) {
  const size_t size = (size_t)1 << which, bytes = count * size;
  for (int place = 0; place < 4; ++place) {
    for (size_t i = 0; i < bytes; ++i)
      a.bytes[i] = (char)random_bits(), b.bytes[i] = (char)random_bits();
    for (size_t i = 0; i < count; ++i) {
      condition.bytes[i] = random_bits() % 2;
      memcpy(expected.bytes + i * size, (condition.bytes[i] ? a.bytes : b.bytes) + i * size, size);
    }
    tile_t* const places[] = {&result, &a, &b, &condition};
    put_canary(places[place], bytes);
    if (place == 3 && size == 1) continue;
    for (size_t i = 0; place == 3 && i < count; ++i) {
      condition.bytes[i] = memcmp(expected.bytes + i * size, a.bytes + i * size, size) == 0;
    }
    set->pick[which](places[place]->bytes, (const int8_t*)condition.bytes, a.bytes, b.bytes, count);
    CHECK(memcmp(places[place]->bytes, expected.bytes, bytes) == 0);
  }
}

// --- conversions ---------------------------------------------------------------------------------

typedef enum { SITOFP, UITOFP, FPTOSI, FPTOUI, SEXT, ZEXT, TRUNC, EXTF, TRUNCF } cast_t;

static void exact_cast(cast_t cast, int from, int to, size_t i) {
  const double real = is_float(from) ? get_real(a.bytes, from, i) : 0;
  const int64_t integer = is_float(from) ? 0 : get_integer(a.bytes, from, i);
  const int bits = 8 * (int)type_bytes[to];
  const double half = ldexp(1.0, bits - 1);
  switch (cast) {
    case SITOFP:  // through one rounding only
      if (to == EYAS_VMVX_TYPE_F32) ((float*)expected.bytes)[i] = (float)integer;
      if (to == EYAS_VMVX_TYPE_F64) ((double*)expected.bytes)[i] = (double)integer;
      return;
    case UITOFP:
      if (to == EYAS_VMVX_TYPE_F32)
        ((float*)expected.bytes)[i] = (float)without_sign(integer, from);
      if (to == EYAS_VMVX_TYPE_F64)
        ((double*)expected.bytes)[i] = (double)without_sign(integer, from);
      return;
    case FPTOSI:
      put_integer(expected.bytes, to, i,
                  real != real    ? 0
                  : real >= half  ? (int64_t)(((uint64_t)1 << (bits - 1)) - 1)
                  : real <= -half ? (int64_t)(~(uint64_t)0 << (bits - 1))
                                  : (int64_t)real);
      return;
    case FPTOUI:
      put_integer(expected.bytes, to, i,
                  !(real > 0)        ? 0
                  : real >= 2 * half ? -1
                                     : (int64_t)(uint64_t)real);
      return;
    case SEXT: put_integer(expected.bytes, to, i, integer); return;
    case ZEXT: put_integer(expected.bytes, to, i, (int64_t)without_sign(integer, from)); return;
    case TRUNC: put_integer(expected.bytes, to, i, integer); return;
    default: put_real(expected.bytes, to, i, real); return;
  }
}

static void check_cast(const eyas_uk_elements_t* set, int number, cast_t cast, int from, int to) {
  for (size_t count = 1; count <= 1024; count = count < 70 ? count + 1 : count + 318) {
    fill_random(a.bytes, from, count);
    for (size_t i = 0; i < count; ++i) exact_cast(cast, from, to, i);
    const size_t bytes = count * type_bytes[to];
    put_canary(&result, bytes);
    set->cast[number](result.bytes, a.bytes, count);
    const int ok =
        same_elements(result.bytes, expected.bytes, to, count) && canary_lives(&result, bytes);
    set->cast[number](a.bytes, a.bytes, count);
    const int in_place = same_elements(a.bytes, expected.bytes, to, count);
    CHECK(ok && in_place);
    if (!ok || !in_place) {
      fprintf(stderr, "%s: cast %d, count %zu%s\n", set->name, number, count,
              ok ? ", in place" : "");
      return;
    }
  }
}

static void check_casts(const eyas_uk_elements_t* set) {
#define CAST(NAME, FROM, TO)                                                          \
  check_cast(set, EYAS_VMVX_CAST_##NAME##_##FROM##_##TO, NAME, EYAS_VMVX_TYPE_##FROM, \
             EYAS_VMVX_TYPE_##TO);
#define WITH_FLOATS(I) \
  CAST(SITOFP, I, F32) \
  CAST(SITOFP, I, F64) \
  CAST(UITOFP, I, F32) \
  CAST(UITOFP, I, F64) \
  CAST(FPTOSI, F32, I) \
  CAST(FPTOSI, F64, I) \
  CAST(FPTOUI, F32, I) \
  CAST(FPTOUI, F64, I)
#define BETWEEN(N, W) \
  CAST(SEXT, N, W)    \
  CAST(ZEXT, N, W)    \
  CAST(TRUNC, W, N)
  WITH_FLOATS(I8)
  WITH_FLOATS(I16)
  WITH_FLOATS(I32)
  WITH_FLOATS(I64)
  BETWEEN(I8, I16)
  BETWEEN(I8, I32)
  BETWEEN(I8, I64)
  BETWEEN(I16, I32)
  BETWEEN(I16, I64)
  BETWEEN(I32, I64)
  CAST(EXTF, F32, F64)
  CAST(TRUNCF, F64, F32)
  for (int i = 0; i < EYAS_VMVX_CAST_COUNT; ++i) CHECK(set->cast[i] != NULL);
}

int main(void) {
  static const size_t shapes[][2] = {{1, 1},   {1, 7},    {3, 1},    {2, 3},   {8, 16},  {16, 8},
                                     {5, 33},  {33, 5},   {16, 16},  {17, 19}, {32, 32}, {8, 128},
                                     {128, 8}, {1, 1024}, {1024, 1}, {64, 3}};
  for (int s = 0; s < SET_COUNT; ++s) {
    const eyas_uk_elements_t* set = eyas_uk_elements(set_names[s]);
    if (!set) continue;
    for (int memory = 0; memory < EYAS_VMVX_MEMORY_COUNT; ++memory) {
      for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); ++i) {
        check_memory(set, memory, shapes[i][0], shapes[i][1]);
        check_gather(set, memory, shapes[i][0] * shapes[i][1]);
      }
    }
    check_all_halves(set, EYAS_VMVX_MEMORY_F16);
    check_all_halves(set, EYAS_VMVX_MEMORY_BF16);
    for (int which = 0; which < 4; ++which) {
      for (size_t count = 1; count <= 1024; count = count < 70 ? count + 1 : count + 318) {
        check_pick(set, which, count);
      }
    }
    check_casts(set);
  }
  return check_summary("elements_memory");
}
