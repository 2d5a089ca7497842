// Memory: loops over elements, local memory, and every way of leaving a buffer.
#include <math.h>

#include "vmvx/assemble.h"

enum { I8 = EYAS_VMVX_MEMORY_I8, I64 = EYAS_VMVX_MEMORY_I64, F32 = EYAS_VMVX_MEMORY_F32 };

static bytes_t code;

// Memory with nothing around it, so that ASan sees a step outside.
static binding_t exact(size_t bytes) {
  void* memory = malloc(bytes ? bytes : 1);
  memset(memory, 0x11, bytes ? bytes : 1);
  return (binding_t){memory, bytes};
}

static const header_t two = {
    .scalars = 24, .tiles = 4, .bindings = 2, .writes = 2, .data = "12345678", .data_bytes = 8};

// Runs `code` with a read-only binding 0 of 64 bytes and a binding 1 of 64 bytes that is written.
static eyas_status_t run_two(void) {
  launch_t l = {.bindings = {exact(64), exact(64)}};
  eyas_status_t status = launch(two, &code, l);
  free(l.bindings[0].memory);
  free(l.bindings[1].memory);
  return status;
}

static void start(void) {
  code.count = 0;
  OP(&code, BINDING, 0, 0);
  OP(&code, BINDING, 1, 1);
}

static void test_loop(void) {
  // binding 1 [i] = binding 0 [i] * constant + workgroup, over i64.
  code.count = 0;
  OP(&code, BINDING, 0, 0);
  OP(&code, BINDING, 1, 1);
  OP(&code, CONSTANT, 2, 0);
  OP(&code, WORKGROUP, 3, 1);
  OP(&code, BINDING_BYTES, 4, 0);
  OP(&code, CONST, 5, 8);
  OP(&code, DIVS, 4, 4, 5);
  OP(&code, CONST, 6, 1);
  int64_t body = (int64_t)code.count;
  OP(&code, LOAD_AT, 8, 0, 7, I64);
  OP(&code, MADD, 8, 8, 2, 3);
  OP(&code, STORE_AT, 8, 1, 7, I64);
  OP(&code, LOOP, 7, 6, 4, body);
  RETURN(&code);
  int64_t in[100], out[100] = {0};
  for (int i = 0; i < 100; ++i) in[i] = i - 50;
  CHECK_OK(launch((header_t){.scalars = 9, .bindings = 2, .constants = 1, .writes = 2}, &code,
                  (launch_t){.bindings = {{in, sizeof(in)}, {out, sizeof(out)}},
                             .constants = {3},
                             .workgroups = {2, 5, 1}}));
  for (int i = 0; i < 100; ++i) CHECK(out[i] == (i - 50) * 3 + 4);
}

static void test_branches(void) {
  // Counts down from 5 with br_if, br_ifnot and br; the count of steps goes to binding 1.
  start();
  OP(&code, CONST, 2, 5);
  OP(&code, CONST, 3, -1);
  OP(&code, CONST, 5, 1);
  int64_t head = (int64_t)code.count;
  int64_t done_at = head + 8 + 8 + 8 + 6;
  OP(&code, BR_IFNOT, 2, done_at);  // 8 bytes
  OP(&code, ADD, 2, 2, 3);          // 8
  OP(&code, ADD, 4, 4, 5);          // 8
  OP(&code, BR, head);              // 6
  CHECK((int64_t)code.count == done_at);
  OP(&code, STORE, 4, 1, 0, I64);
  RETURN(&code);
  int64_t in = 0, out = 0;
  launch_t l = {.bindings = {{&in, 8}, {&out, 8}}};
  CHECK_OK(launch(two, &code, l));
  CHECK(out == 5);
  l.budget = 4;  // jumps back
  CHECK_FAILS(launch(two, &code, l), RESOURCE_EXHAUSTED, "budget");
  l.budget = 6;
  CHECK_OK(launch(two, &code, l));
  code.count = 0;
  OP(&code, BR, 0);
  CHECK_FAILS(launch(two, &code, (launch_t){.bindings = {{&in, 8}, {&out, 8}}, .budget = 1000}),
              RESOURCE_EXHAUSTED, "the instruction at byte 0 has used up");
  code.count = 0;
  OP(&code, CHECK, 0);
  RETURN(&code);
  CHECK_FAILS(launch(two, &code, l), INVALID_ARGUMENT, "a value in the data is not allowed");
}

// Scalars of every memory type there and back; f16 and bf16 round.
static void test_types(void) {
  static const struct {
    int memory;
    size_t bytes;
    int64_t stored, loaded;
  } rows[] = {
      {EYAS_VMVX_MEMORY_F32, 4, 0x123456789ABCDEF0, 0x9ABCDEF0},
      {EYAS_VMVX_MEMORY_F64, 8, 0x123456789ABCDEF0, 0x123456789ABCDEF0},
      {EYAS_VMVX_MEMORY_I8, 1, 0xFF80, -128},
      {EYAS_VMVX_MEMORY_I16, 2, 0x18000, -32768},
      {EYAS_VMVX_MEMORY_I32, 4, 0x180000000, INT32_MIN},
      {EYAS_VMVX_MEMORY_I64, 8, -5, -5},
      {EYAS_VMVX_MEMORY_U8, 1, 0xFF80, 128},
      {EYAS_VMVX_MEMORY_U16, 2, -1, 65535},
      {EYAS_VMVX_MEMORY_U32, 4, -1, 0xFFFFFFFF},
  };
  for (size_t i = 0; i <= sizeof(rows) / sizeof(rows[0]) + 1; ++i) {
    size_t n = sizeof(rows) / sizeof(rows[0]);
    int memory = i < n ? rows[i].memory : i == n ? EYAS_VMVX_MEMORY_F16 : EYAS_VMVX_MEMORY_BF16;
    size_t bytes = i < n ? rows[i].bytes : 2;
    int64_t stored = i < n ? rows[i].stored : bits_f32(1.0f + 0x1p-12f);
    int64_t loaded = i < n ? rows[i].loaded : bits_f32(1.0f);
    start();
    OP(&code, CONST, 2, stored);
    OP(&code, CONST, 5, 1);
    OP(&code, STORE, 2, 1, 0, memory);
    OP(&code, STORE_AT, 2, 1, 5, memory);
    OP(&code, LOAD, 3, 1, (int64_t)bytes, memory);
    OP(&code, LOAD_AT, 4, 1, 6, memory);
    OP(&code, CONST, 7, 16);
    OP(&code, STORE, 3, 1, 16, I64);
    OP(&code, STORE, 4, 1, 24, I64);
    RETURN(&code);
    int64_t in = 0, out[5] = {0};
    CHECK_OK(launch(two, &code, (launch_t){.bindings = {{&in, 8}, {out, sizeof(out)}}}));
    CHECK(out[2] == loaded);
    CHECK(out[3] == loaded);
    uint8_t raw[16];
    memcpy(raw, out, 16);
    CHECK(bytes == 8 || raw[2 * bytes] == 0);  // no more than two elements were written
  }
}

// One access of `bytes` at an offset of binding 1.
#define ACCESS(expected, text, offset, ...) \
  do {                                      \
    start();                                \
    OP(&code, CONST, 2, offset);            \
    OP(&code, ADD, 3, 1, 2);                \
    OP(&code, CONST, 6, 1);                 \
    OP(&code, __VA_ARGS__);                 \
    RETURN(&code);                          \
    CHECK_##expected(text);                 \
  } while (0)
#define CHECK_FINE(text) CHECK_OK(run_two())
#define CHECK_BAD(text) CHECK_FAILS(run_two(), INTERNAL, text)
#define OUTSIDE "outside of its buffers"

static void test_scalar_bounds(void) {
  for (int memory = 0; memory < EYAS_VMVX_MEMORY_COUNT; ++memory) {
    static const uint8_t sizes[] = {EYAS_VMVX_MEMORY_BYTES};
    int64_t size = sizes[memory];
    ACCESS(FINE, "", 64 - size, LOAD, 4, 3, 0, memory);
    ACCESS(FINE, "", 64 - size, STORE, 4, 3, 0, memory);
    ACCESS(FINE, "", 64 - 2 * size, LOAD_AT, 4, 3, 6, memory);
    ACCESS(FINE, "", 64 - 2 * size, STORE_AT, 4, 3, 6, memory);
    ACCESS(BAD, OUTSIDE, 65 - size, LOAD, 4, 3, 0, memory);
    ACCESS(BAD, OUTSIDE, 65 - size, STORE, 4, 3, 0, memory);
    ACCESS(BAD, OUTSIDE, 65 - 2 * size, LOAD_AT, 4, 3, 6, memory);
    ACCESS(BAD, OUTSIDE, 65 - 2 * size, STORE_AT, 4, 3, 6, memory);
    ACCESS(BAD, OUTSIDE, 0, LOAD, 4, 3, -1, memory);
    ACCESS(BAD, OUTSIDE, 0, LOAD, 4, 3, INT64_MAX, memory);
    ACCESS(BAD, OUTSIDE, 0, STORE, 4, 3, INT64_MIN, memory);
    ACCESS(BAD, OUTSIDE, ((int64_t)1 << 48) - 1, LOAD, 4, 3, 0, memory);
    ACCESS(BAD, OUTSIDE, (int64_t)5 << 48, LOAD, 4, 3, 0, memory);
    ACCESS(BAD, OUTSIDE, -((int64_t)2 << 48), STORE, 4, 3, 0, memory);
    ACCESS(BAD, "only read", 0, STORE, 4, 0, 0, memory);
    ACCESS(BAD, "only read", 0, STORE_AT, 4, 0, 6, memory);
    ACCESS(BAD, "only read", (int64_t)1 << 48, STORE, 4, 3, 0, memory);  // the function's data
    ACCESS(FINE, "", (int64_t)1 << 48, LOAD, 4, 3, 0, memory);
  }
  start();
  OP(&code, CONST, 3, 7);
  OP(&code, LOAD, 2, 1, 60, I64);
  RETURN(&code);
  CHECK_FAILS(run_two(), INTERNAL, "'f': the instruction at byte 24 reads");
}

// tload and tstore of R x C with strides at an offset of binding 1.
static void block(int64_t rows, int64_t columns, int64_t offset, int64_t row_bytes,
                  int64_t column_bytes, int memory, bool store, int distinct) {
  start();
  const int64_t values[] = {rows, columns, offset, row_bytes, column_bytes};
  for (int i = 0; i < 5; ++i) OP(&code, CONST, 2 + i, values[i]);
  OP(&code, SHAPE, 2, 3);
  OP(&code, ADD, 4, 4, 1);
  OP(&code, CONST, 7, 0);
  OP(&code, TFILL, 0, 7, EYAS_VMVX_TYPE_F64, 0);
  if (store) {
    OP(&code, TSTORE, 0, 4, 5, 6, memory, 0, distinct);
  } else {
    OP(&code, TLOAD, 0, 4, 5, 6, memory, 0);
  }
  RETURN(&code);
}

static void test_tile_bounds(void) {
  for (int store = 0; store < 2; ++store) {
    block(4, 4, 0, 16, 4, F32, store, 1);
    CHECK_OK(run_two());
    block(4, 4, 1, 16, 4, F32, store, 1);
    CHECK_FAILS(run_two(), INTERNAL, OUTSIDE);
    block(4, 4, 60, -16, -4, F32, store, 1);
    CHECK_OK(run_two());
    block(4, 4, 59, -16, -4, F32, store, 1);
    CHECK_FAILS(run_two(), INTERNAL, OUTSIDE);
    block(2, 1, 0, INT64_MAX, 0, F32, store, 0);
    CHECK_FAILS(run_two(), INTERNAL, OUTSIDE);
    block(3, 1, 0, INT64_MAX / 2 + 1, 0, F32, store, 0);
    CHECK_FAILS(run_two(), INTERNAL, OUTSIDE);
    block(1, 2, 0, 0, INT64_MIN, F32, store, 0);
    CHECK_FAILS(run_two(), INTERNAL, OUTSIDE);
    block(2, 2, 0, (int64_t)1 << 62, -((int64_t)1 << 62), F32, store, 0);
    CHECK_FAILS(run_two(), INTERNAL, OUTSIDE);
    block(1, 1, 60, INT64_MAX, INT64_MIN, F32, store, 1);  // one element takes no stride
    CHECK_OK(run_two());
    block(32, 32, 0, 0, 0, I8, store, 0);
    CHECK_OK(run_two());
  }
  block(0, 4, 0, 4, 4, F32, false, 0);
  CHECK_FAILS(run_two(), INTERNAL, "sets a shape");
  block(1, 1025, 0, 0, 0, F32, false, 0);
  CHECK_FAILS(run_two(), INTERNAL, "sets a shape");
  block((int64_t)1 << 32, (int64_t)1 << 32, 0, 0, 0, F32, false, 0);
  CHECK_FAILS(run_two(), INTERNAL, "sets a shape");
  block(-1, -1, 0, 0, 0, F32, false, 0);
  CHECK_FAILS(run_two(), INTERNAL, "sets a shape");
  block(4, 4, -((int64_t)1 << 48), 16, 4, F32, true, 1);
  CHECK_FAILS(run_two(), INTERNAL, "only read");
}

static void test_distinct(void) {
  static const struct {
    int64_t rows, columns, row_bytes, column_bytes;
    bool fine;
  } rows[] = {
      {4, 4, 16, 4, true},  {4, 4, 4, 16, true}, {4, 4, -16, 4, false}, {4, 4, 12, 4, false},
      {4, 4, 16, 3, false}, {1, 4, 0, 4, true},  {4, 1, 4, 0, true},    {4, 1, 3, 0, false},
      {1, 4, 0, 0, false},  {2, 2, 0, 4, false}, {1, 1, 0, 0, true},    {2, 3, 4, 8, true},
      {2, 3, 4, 7, false},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    block(rows[i].rows, rows[i].columns, 0, rows[i].row_bytes, rows[i].column_bytes, F32, true, 1);
    if (rows[i].row_bytes < 0) continue;
    if (rows[i].fine) {
      CHECK_OK(run_two());
    } else {
      CHECK_FAILS(run_two(), INTERNAL, "but they overlap");
    }
  }
  // Without the claim the last element stays.
  start();
  OP(&code, CONST, 2, 1);
  OP(&code, CONST, 3, 5);
  OP(&code, SHAPE, 2, 3);
  OP(&code, TINDEX, 0, 3, 4, 2, 0);
  OP(&code, TSTORE, 0, 1, 4, 4, I64, 0, 0);
  RETURN(&code);
  int64_t in = 0, out = 0;
  CHECK_OK(launch(two, &code, (launch_t){.bindings = {{&in, 8}, {&out, 8}}}));
  CHECK(out == 9);
}

// tgather of 4 elements with indices start, start + step, ...
static void gather(int64_t first, int64_t step, int memory) {
  start();
  OP(&code, CONST, 2, 1);
  OP(&code, CONST, 3, 4);
  OP(&code, CONST, 4, first);
  OP(&code, CONST, 5, step);
  OP(&code, SHAPE, 2, 3);
  OP(&code, TINDEX, 0, 4, 6, 5, 0);
  OP(&code, TGATHER, 0, 0, 0, memory, 0);  // the result is the tile of the indices
  OP(&code, CONST, 7, 4);
  OP(&code, TSTORE, 0, 1, 6, 7, F32, 0, 1);
  RETURN(&code);
}

static void test_gather(void) {
  float in[16], out[16];
  for (int i = 0; i < 16; ++i) in[i] = (float)i;
  gather(15, -3, F32);
  CHECK_OK(launch(two, &code, (launch_t){.bindings = {{in, 64}, {out, 64}}}));
  CHECK(out[0] == 15 && out[1] == 12 && out[2] == 9 && out[3] == 6);
  gather(16, -3, F32);
  CHECK_FAILS(run_two(), INTERNAL, OUTSIDE);
  gather(5, -2, F32);
  CHECK_FAILS(run_two(), INTERNAL, OUTSIDE);
  gather(INT64_MAX, 1, F32);
  CHECK_FAILS(run_two(), INTERNAL, OUTSIDE);
  gather(0, (int64_t)1 << 62, F32);  // 4 * 2^62 is 0 again
  CHECK_FAILS(run_two(), INTERNAL, OUTSIDE);
}

// tload_rows of 2 rows of 3 elements that begin at `first` and `first + step`.
static void load_rows(int64_t first, int64_t step) {
  start();
  OP(&code, CONST, 2, 2);
  OP(&code, CONST, 3, 3);
  OP(&code, CONST, 4, first);
  OP(&code, CONST, 5, step);
  OP(&code, SHAPE, 2, 3);
  OP(&code, TINDEX, 0, 4, 5, 6, 2 << 6);
  OP(&code, TLOAD_ROWS, 0, 0, 0, F32);  // the result is the tile of the indices
  OP(&code, CONST, 7, 4);
  OP(&code, CONST, 8, 12);
  OP(&code, TSTORE, 0, 1, 8, 7, F32, 0, 1);
  RETURN(&code);
}

static void test_load_rows(void) {
  float in[16], out[16];
  for (int i = 0; i < 16; ++i) in[i] = (float)i;
  load_rows(13, -6);
  CHECK_OK(launch(two, &code, (launch_t){.bindings = {{in, 64}, {out, 64}}}));
  CHECK(out[0] == 13 && out[2] == 15 && out[3] == 7 && out[5] == 9);
  load_rows(14, -6);  // ends one element too far
  CHECK_FAILS(run_two(), INTERNAL, OUTSIDE);
  load_rows(1, -2);
  CHECK_FAILS(run_two(), INTERNAL, OUTSIDE);
  load_rows(INT64_MAX, -1);
  CHECK_FAILS(run_two(), INTERNAL, OUTSIDE);
  load_rows(0, (int64_t)1 << 62);  // 4 * 2^62 is 0 again
  CHECK_FAILS(run_two(), INTERNAL, OUTSIDE);
}

static void test_load_inside(void) {
  // A 4 x 5 tile of which rows 1 to 2 and columns 2 to 3 are the first elements of binding 0.
  int32_t in[4] = {1, 2, 3, 4}, out[20];
  static const int64_t boxes[][4] = {
      {1, 3, 2, 4}, {0, 4, 2, 2}, {3, 1, 0, 5}, {-9, 9, -9, 9}, {0, 2, 0, 2}};
  for (int i = 0; i < 5; ++i) {
    start();
    const int64_t values[] = {4,           5,           8,           4,  boxes[i][0],
                              boxes[i][1], boxes[i][2], boxes[i][3], -1, 20};
    for (int k = 0; k < 10; ++k) OP(&code, CONST, 2 + k, values[k]);
    OP(&code, SHAPE, 2, 3);
    // The address of element (0, 0), which is not inside of the buffer.
    OP(&code, CONST, 12, i == 0 ? -8 - 8 : 0);
    OP(&code, ADD, 0, 0, 12);
    OP(&code, TLOAD_INSIDE, 0, 0, 4, 5, 6, 7, 8, 9, 10, EYAS_VMVX_MEMORY_I32);
    OP(&code, TSTORE, 0, 1, 11, 5, EYAS_VMVX_MEMORY_I32, 0, 1);
    RETURN(&code);
    eyas_status_t status = launch(two, &code, (launch_t){.bindings = {{in, 16}, {out, 80}}});
    if (i == 3) {
      CHECK_FAILS(status, INTERNAL, OUTSIDE);
      continue;
    }
    CHECK_OK(status);
    for (int k = 0; k < 20; ++k) {
      int r = k / 5, c = k % 5;
      bool inside = r >= boxes[i][0] && r < boxes[i][1] && c >= boxes[i][2] && c < boxes[i][3];
      int wanted = inside ? in[(r - boxes[i][0]) * 2 + c - boxes[i][2]] : -1;
      CHECK(out[k] == wanted);
    }
  }
}

static void test_local(void) {
  // Two buffers that do not overlap; the second is given back and taken again.
  for (int large = 0; large < 2; ++large) {
    start();
    OP(&code, CONST, 2, large ? 700000 : 100);
    OP(&code, LOCAL, 3, 2);
    OP(&code, LOCAL, 4, 2);
    OP(&code, CONST, 5, 7);
    OP(&code, CONST, 6, 9);
    OP(&code, STORE, 5, 3, 92, I64);
    OP(&code, STORE, 6, 4, 0, I64);
    OP(&code, LOAD, 7, 3, 92, I64);
    OP(&code, STORE, 7, 1, 0, I64);
    OP(&code, RELEASE, 4);
    OP(&code, LOCAL, 8, 2);
    OP(&code, EQ, 9, 4, 8);
    OP(&code, STORE, 9, 1, 8, I64);
    OP(&code, LOAD, 7, 3, 92, I64);
    OP(&code, STORE, 7, 1, 16, I64);
    OP(&code, RELEASE, 3);  // before the later one
    OP(&code, RELEASE, 8);
    OP(&code, RELEASE, 8);
    OP(&code, LOCAL, 8, 2);
    OP(&code, EQ, 9, 3, 8);
    OP(&code, STORE, 9, 1, 24, I64);
    OP(&code, RELEASE, 0);  // neither a binding nor a number is local memory
    OP(&code, RELEASE, 5);
    OP(&code, CONST, 10, -1);
    OP(&code, RELEASE, 10);
    OP(&code, LOAD, 10, 8, 0, I64);
    RETURN(&code);
    int64_t in = 0, out[4] = {0};
    CHECK_OK(
        launch(two, &code, (launch_t){.bindings = {{&in, 8}, {out, 32}}, .workgroups = {3, 1, 1}}));
    CHECK(out[0] == 7 && out[1] == 1 && out[2] == 7 && out[3] == 1);
    // Taken and given back in the order of a queue, without end: the budget ends it, not the
    // memory.
    start();
    OP(&code, CONST, 2, large ? 700000 : 100);
    int64_t head = (int64_t)code.count;
    OP(&code, LOCAL, 3, 2);
    OP(&code, LOCAL, 4, 2);
    OP(&code, RELEASE, 3);
    OP(&code, RELEASE, 4);
    OP(&code, BR, head);
    CHECK_FAILS(launch(two, &code, (launch_t){.bindings = {{&in, 8}, {out, 32}}, .budget = 5000}),
                RESOURCE_EXHAUSTED, "budget");
    // What was given back is gone.
    start();
    OP(&code, CONST, 2, large ? 700000 : 100);
    OP(&code, LOCAL, 3, 2);
    OP(&code, RELEASE, 3);
    OP(&code, STORE, 2, 3, 0, I64);
    RETURN(&code);
    CHECK_FAILS(run_two(), INTERNAL, OUTSIDE);
    // A buffer ends where it ends.
    start();
    OP(&code, CONST, 2, large ? 700001 : 101);
    OP(&code, LOCAL, 3, 2);
    OP(&code, STORE, 2, 3, large ? 699994 : 94, I64);
    RETURN(&code);
    CHECK_FAILS(run_two(), INTERNAL, OUTSIDE);
  }
  static const int64_t sizes[] = {-1, INT64_MIN, ((int64_t)1 << 30) + 1, INT64_MAX};
  for (int i = 0; i < 4; ++i) {
    start();
    OP(&code, CONST, 2, sizes[i]);
    OP(&code, LOCAL, 3, 2);
    RETURN(&code);
    CHECK_FAILS(run_two(), RESOURCE_EXHAUSTED, "too much local memory");
  }
  start();  // without end
  OP(&code, CONST, 2, 0);
  int64_t head = (int64_t)code.count;
  OP(&code, LOCAL, 3, 2);
  OP(&code, BR, head);
  CHECK_FAILS(run_two(), RESOURCE_EXHAUSTED, "too much local memory");
  // Memory of the heap costs steps: a loop that takes and releases would run for long otherwise.
  start();
  OP(&code, CONST, 2, 1 << 24);
  OP(&code, LOCAL, 3, 2);
  RETURN(&code);
  launch_t l = {.bindings = {exact(64), exact(64)}, .budget = 1 << 18};
  CHECK_FAILS(launch(two, &code, l), RESOURCE_EXHAUSTED, "budget");
  l.budget = (1 << 18) + 1;
  CHECK_OK(launch(two, &code, l));
  free(l.bindings[0].memory);
  free(l.bindings[1].memory);
}

// Scratch memory is not cleared between functions of one executable. What one function leaves there
// may be read by the next as local memory, and must not have addresses of this process in it.
static void test_no_addresses(void) {
  static bytes_t many_tiles, file;
  many_tiles.count = 0;
  RETURN(&many_tiles);
  code.count = 0;
  OP(&code, BINDING, 0, 0);
  OP(&code, BINDING_BYTES, 1, 0);
  OP(&code, LOCAL, 2, 1);
  OP(&code, COPY, 0, 2, 1);
  RETURN(&code);
  put_start(&file, 2);
  put_function(&file, (header_t){.name = "a", .tiles = 32, .bindings = 1}, &many_tiles);
  put_function(&file, (header_t){.name = "b", .scalars = 3, .bindings = 1, .writes = 1}, &code);
  eyas_vmvx_executable_t* executable = NULL;
  CHECK_OK(load_bytes(&file, &executable));
  enum { SEEN = 400 * 1024 };
  char* seen = malloc(SEEN);
  void* scratch = aligned_alloc(64, EYAS_MIN_SCRATCH_BYTES);
  memset(scratch, 0, EYAS_MIN_SCRATCH_BYTES);
  memset(seen, 0, SEEN);
  uint64_t bytes = SEEN;
  void* bindings[] = {seen};
  eyas_dispatch_t dispatch = {.bindings = bindings,
                              .binding_bytes = &bytes,
                              .binding_count = 1,
                              .workgroup_count = {1, 1, 1}};
  for (uint32_t i = 0; i < 2; ++i) {
    eyas_workgroup_t workgroup = {.scratch = scratch, .scratch_bytes = EYAS_MIN_SCRATCH_BYTES};
    CHECK(eyas_vmvx_run(eyas_vmvx_function(executable, i), &dispatch, &workgroup, 1, 0) == 0);
  }
  bool found = false;
  for (size_t i = 0; i + 8 <= SEEN; i += 8) found = found || memcmp(seen + i, bindings, 8) == 0;
  CHECK(!found);
  free(seen);
  free(scratch);
  eyas_vmvx_unload(executable);
}

static void test_copy_fill(void) {
  uint8_t in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[16] = {0};
  start();
  OP(&code, CONST, 2, 8);
  OP(&code, COPY, 1, 0, 2);
  OP(&code, CONST, 3, 2);
  OP(&code, ADD, 4, 1, 3);
  OP(&code, COPY, 4, 1, 2);  // onto itself, two further
  OP(&code, CONST, 5, bits_f32(1.0f));
  OP(&code, CONST, 6, 10);
  OP(&code, ADD, 6, 6, 1);
  OP(&code, CONST, 7, 3);
  OP(&code, FILL, 6, 5, 7, EYAS_VMVX_MEMORY_F16);
  RETURN(&code);
  CHECK_OK(launch(two, &code, (launch_t){.bindings = {{in, 8}, {out, 16}}}));
  static const uint8_t wanted[] = {1, 2, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0x3C, 0, 0x3C, 0, 0x3C};
  CHECK(memcmp(out, wanted, 16) == 0);
  static const int64_t lengths[] = {65, -1, INT64_MAX, INT64_MIN, (int64_t)1 << 62};
  for (int i = 0; i < 5; ++i) {
    start();
    OP(&code, CONST, 2, lengths[i]);
    OP(&code, COPY, 1, 0, 2);
    RETURN(&code);
    CHECK_FAILS(run_two(), INTERNAL, OUTSIDE);
    start();
    OP(&code, CONST, 2, lengths[i]);
    OP(&code, FILL, 1, 0, 2, I8);
    RETURN(&code);
    CHECK_FAILS(run_two(), INTERNAL, OUTSIDE);
    start();
    OP(&code, CONST, 2, lengths[i]);
    OP(&code, FILL, 1, 0, 2, I64);
    RETURN(&code);
    CHECK_FAILS(run_two(), INTERNAL, OUTSIDE);
    start();  // a hint only
    OP(&code, CONST, 2, lengths[i]);
    OP(&code, PREFETCH, 1, 2);
    OP(&code, PREFETCH, 2, 2);
    RETURN(&code);
    CHECK_OK(run_two());
  }
  start();
  OP(&code, CONST, 2, 8);
  OP(&code, COPY, 0, 1, 2);
  RETURN(&code);
  CHECK_FAILS(run_two(), INTERNAL, "only read");
  start();
  OP(&code, CONST, 2, 8);
  OP(&code, FILL, 0, 1, 2, I8);
  RETURN(&code);
  CHECK_FAILS(run_two(), INTERNAL, "only read");
}

static void test_dispatch(void) {
  code.count = 0;
  RETURN(&code);
  launch_t l = {.bindings = {{NULL, 0}, {NULL, (uint64_t)1 << 60}}};
  CHECK_FAILS(launch(two, &code, l), INTERNAL, "other bindings");
  // Registers that do not fit into the scratch memory.
  OP(&code, CONST, 2, 3);
  for (uint64_t scratch = 64; scratch <= 1 << 20; scratch *= 8) {
    start();
    OP(&code, CONST, 2, 5);
    OP(&code, LOCAL, 3, 2);
    OP(&code, TFILL, 31, 2, EYAS_VMVX_TYPE_I64, 0);
    OP(&code, TSTORE, 31, 1, 5, 5, I64, 0, 1);
    RETURN(&code);
    int64_t in = 0, out = 0;
    header_t header = two;
    header.tiles = 32;
    CHECK_OK(launch(
        header, &code,
        (launch_t){
            .bindings = {{&in, 8}, {&out, 8}}, .scratch_bytes = scratch, .workgroups = {2, 2, 2}}));
    CHECK(out == 5);
  }
}

int main(void) {
  test_loop();
  test_branches();
  test_types();
  test_scalar_bounds();
  test_tile_bounds();
  test_distinct();
  test_gather();
  test_load_rows();
  test_load_inside();
  test_local();
  test_no_addresses();
  test_copy_fill();
  test_dispatch();
  return check_summary("vmvx/memory");
}
