// Tile instructions: every combination of shapes and of registers that are the same, against the
// microkernel on operands that were repeated by hand; products and windows against plain loops.
#include <math.h>

#include "vmvx/assemble.h"  // first: it asks for the table of instructions

#include "ukernel/ukernel.h"

enum { FULL, ROW, COLUMN, ONE };

static uint64_t seed = 1;

static uint32_t random_u32(void) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(seed >> 33);
}

static bool covers(int result, int operand) {
  return !(result & ~operand & 3);  // a bit says that a dimension is missing
}

// The elements of a smaller tile repeated to R x C.
static void repeat(char* out, const char* in, int extent, size_t rows, size_t columns,
                   size_t bytes) {
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < columns; ++c) {
      size_t from =
          (extent & ROW ? 0 : r) * (extent & COLUMN ? 1 : columns) + (extent & COLUMN ? 0 : c);
      memcpy(out + (r * columns + c) * bytes, in + from * bytes, bytes);
    }
  }
}

static const struct shape_t {
  size_t rows, columns;
} shapes[] = {{1, 1},   {1, 7},   {7, 1},   {3, 5},    {5, 16},  {4, 33},
              {32, 32}, {512, 2}, {2, 512}, {1, 1024}, {1024, 1}};

// What is tried: an instruction with up to three tile operands.
typedef struct trial_t {
  uint32_t op;
  int operands;
  size_t bytes[3], result_bytes;
  int extra;  // tpick: its `bytes` operand
} trial_t;

static void reference(const trial_t* t, char* out, char* const* wide, size_t count) {
  const eyas_uk_elements_t* k = eyas_uk_elements(NULL);
  const eyas_vmvx_op_info_t info = eyas_vmvx_op_info(t->op);
  switch (info.family) {
    case EYAS_VMVX_FAMILY_UNARY: k->unary[info.number][info.type](out, wide[0], count); break;
    case EYAS_VMVX_FAMILY_CAST: k->cast[info.number](out, wide[0], count); break;
    case EYAS_VMVX_FAMILY_BINARY:
      k->binary[info.number][info.type].vv(out, wide[0], wide[1], count);
      break;
    case EYAS_VMVX_FAMILY_COMPARE:
      k->compare[info.number][info.type].vv(out, wide[0], wide[1], count);
      break;
    case EYAS_VMVX_FAMILY_INTEGER_BINARY:
      k->ibinary[info.number][info.type].vv(out, wide[0], wide[1], count);
      break;
    case EYAS_VMVX_FAMILY_FMA: k->fma[info.type](out, wide[0], wide[1], wide[2], count); break;
    default:
      k->pick[t->extra == 4 ? 2 : 3](out, (const int8_t*)wide[0], wide[1], wide[2], count);
      break;
  }
}

// Elements that make sense as f32, f64 and integers.
static void fill_random(char* memory, size_t count, size_t bytes) {
  for (size_t i = 0; i < count; ++i) {
    float f = (float)(int)(random_u32() % 2001) / 16.0f - 60.0f;
    double d = f;
    int8_t small = (int8_t)(random_u32() % 2);
    memcpy(memory + i * bytes,
           bytes == 4   ? (void*)&f
           : bytes == 8 ? (void*)&d
                        : (void*)&small,
           bytes);
  }
}

// Operand i is tile `tiles[i]`, the result is tile 0. Loads, runs the instruction, stores.
static void attempt(const trial_t* t, struct shape_t s, int modes, const int* tiles) {
  static bytes_t code;
  static char in[3][8192], wide[3][8192], wanted[8192], out[8192];
  int result = modes >> 6;
  size_t count = s.rows * s.columns;
  code.count = 0;
  OP(&code, BINDING, 0, 0);
  OP(&code, BINDING, 1, 1);
  OP(&code, BINDING, 2, 2);
  OP(&code, BINDING, 3, 3);
  OP(&code, CONST, 4, (int64_t)s.rows);
  OP(&code, CONST, 5, (int64_t)s.columns);
  OP(&code, SHAPE, 4, 5);
  char* pointers[3];
  for (int i = 0; i < t->operands; ++i) {
    int extent = modes >> (2 * i) & 3, first = i;
    for (int k = i; k-- > 0;) {
      if (tiles[k] == tiles[i]) first = k;  // one register has one content
    }
    if (first == i) fill_random(in[i], 1024, t->bytes[i]);
    if (first != i && t->bytes[first] != t->bytes[i]) return;
    int memory = t->bytes[i] == 8   ? EYAS_VMVX_MEMORY_I64
                 : t->bytes[i] == 4 ? EYAS_VMVX_MEMORY_I32
                                    : EYAS_VMVX_MEMORY_I8;
    // All 1024 elements, whatever the extent, so that registers that are shared stay whole.
    if (first == i) {
      OP(&code, CONST, 6, 1);
      OP(&code, CONST, 7, 1024);
      OP(&code, CONST, 8, (int64_t)t->bytes[i]);
      OP(&code, SHAPE, 6, 7);
      OP(&code, TLOAD, tiles[i], i, 9, 8, memory, 0);
      OP(&code, SHAPE, 4, 5);
    }
    repeat(wide[i], in[first], extent, s.rows, s.columns, t->bytes[i]);
    pointers[i] = wide[i];
  }
  int64_t operands[8] = {0, tiles[0]};
  int n = 2;
  for (int i = 1; i < t->operands; ++i) operands[n++] = tiles[i];
  if (t->extra) operands[n++] = t->extra;
  operands[n] = modes;
  put_op(&code, t->op, operands);
  int memory = t->result_bytes == 8   ? EYAS_VMVX_MEMORY_I64
               : t->result_bytes == 4 ? EYAS_VMVX_MEMORY_I32
                                      : EYAS_VMVX_MEMORY_I8;
  OP(&code, CONST, 8, (int64_t)t->result_bytes);
  OP(&code, CONST, 10, (int64_t)(s.columns * t->result_bytes));
  OP(&code, TSTORE, 0, 3, 10, 8, memory, result, 1);  // stored R x C, repeated
  RETURN(&code);
  reference(t, wanted, pointers, count);
  memset(out, 0x77, sizeof(out));
  header_t header = {.scalars = 12, .tiles = 4, .bindings = 4, .writes = 8};
  bool ok = CHECK_OK(launch(
      header, &code,
      (launch_t){
          .bindings = {
              {in[0], 8192}, {in[1], 8192}, {in[2], 8192}, {out, count * t->result_bytes}}}));
  bool same = memcmp(out, wanted, count * t->result_bytes) == 0;
  CHECK(same);
  if (!ok || !same) {
    fprintf(stderr, "  %s %zu x %zu modes 0x%02x tiles %d %d %d\n", eyas_vmvx_op_info(t->op).name,
            s.rows, s.columns, (unsigned)modes, tiles[0], tiles[1], tiles[2]);
  }
}

static void test_modes(void) {
  static const trial_t trials[] = {
      {EYAS_VMVX_OP_TFNEG_F32, 1, {4}, 4, 0},      {EYAS_VMVX_OP_TTRUNCF_F64_F32, 1, {8}, 4, 0},
      {EYAS_VMVX_OP_TEXTF_F32_F64, 1, {4}, 8, 0},  {EYAS_VMVX_OP_TFSUB_F32, 2, {4, 4}, 4, 0},
      {EYAS_VMVX_OP_TISUB_I8, 2, {1, 1}, 1, 0},    {EYAS_VMVX_OP_TFCMP_OLT_F64, 2, {8, 8}, 1, 0},
      {EYAS_VMVX_OP_TFMA_F32, 3, {4, 4, 4}, 4, 0}, {EYAS_VMVX_OP_TPICK, 3, {1, 4, 4}, 4, 4},
      {EYAS_VMVX_OP_TPICK, 3, {1, 8, 8}, 8, 8},
  };
  static const int tiles[][3] = {{1, 2, 3}, {0, 1, 2}, {1, 0, 2}, {1, 2, 0}, {0, 0, 0}, {1, 1, 1}};
  for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); ++i) {
    const trial_t* t = &trials[i];
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); ++s) {
      for (int modes = 0; modes < 256; ++modes) {
        bool allowed = true;
        for (int k = 0; k < 3; ++k) {
          int extent = modes >> (2 * k) & 3;
          allowed = allowed && (k < t->operands ? covers(modes >> 6, extent) : extent == 0);
        }
        if (!allowed) continue;
        // All of them on every shape would take minutes.
        attempt(t, shapes[s], modes, tiles[random_u32() % 6]);
        if (modes % 5 == 0) attempt(t, shapes[s], modes, tiles[0]);
      }
    }
  }
}

// Reductions, with the result in the same register and in another.
static void test_reductions(void) {
  static float in[1024], out[1024];
  for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); ++i) {
    size_t rows = shapes[i].rows, columns = shapes[i].columns;
    for (int axis = 0; axis < 2; ++axis) {
      for (int dst = 0; dst < 2; ++dst) {
        fill_random((char*)in, 1024, 4);
        static bytes_t code;
        code.count = 0;
        OP(&code, BINDING, 0, 0);
        OP(&code, BINDING, 1, 1);
        OP(&code, CONST, 2, (int64_t)rows);
        OP(&code, CONST, 3, (int64_t)columns);
        OP(&code, CONST, 4, (int64_t)(4 * columns));
        OP(&code, CONST, 5, 4);
        OP(&code, SHAPE, 2, 3);
        OP(&code, TLOAD, 0, 0, 4, 5, EYAS_VMVX_MEMORY_F32, 0);
        OP(&code, TREDUCE_FMAXIMUM_F32, dst, 0, axis);
        if (axis == 0) {
          OP(&code, TSTORE, dst, 1, 4, 5, EYAS_VMVX_MEMORY_F32, ROW << 6 | ROW, 1);
        } else {
          OP(&code, TSTORE, dst, 1, 5, 4, EYAS_VMVX_MEMORY_F32, COLUMN << 6 | COLUMN, 1);
        }
        RETURN(&code);
        CHECK_OK(launch((header_t){.scalars = 6, .tiles = 2, .bindings = 2, .writes = 2}, &code,
                        (launch_t){.bindings = {{in, sizeof(in)}, {out, sizeof(out)}}}));
        for (size_t n = 0; n < (axis ? rows : columns); ++n) {
          float wanted = -INFINITY;
          for (size_t k = 0; k < (axis ? columns : rows); ++k) {
            wanted = fmaxf(wanted, axis ? in[n * columns + k] : in[k * columns + n]);
          }
          CHECK(out[n] == wanted);
        }
      }
    }
  }
}

static void test_moves(void) {
  int64_t out[64];
  for (int extent = 0; extent < 4; ++extent) {
    for (int dst = 0; dst < 2; ++dst) {
      static bytes_t code;
      code.count = 0;
      OP(&code, BINDING, 0, 0);
      static const int64_t values[] = {4, 5, 100, 10, 1, 8, 40, 19};
      for (int i = 0; i < 8; ++i) OP(&code, CONST, 1 + i, values[i]);
      OP(&code, SHAPE, 1, 2);
      OP(&code, TINDEX, 0, 3, 4, 5, extent << 6);
      OP(&code, TMOV, dst, 0, EYAS_VMVX_TYPE_I64, extent);
      OP(&code, TSTORE, dst, 0, 7, 6, EYAS_VMVX_MEMORY_I64, 0, 1);
      OP(&code, TEXTRACT, 9, dst, 8, EYAS_VMVX_TYPE_I64);
      OP(&code, STORE, 9, 0, 160, EYAS_VMVX_MEMORY_I64);
      RETURN(&code);
      CHECK_OK(launch((header_t){.scalars = 10, .tiles = 2, .bindings = 1, .writes = 1}, &code,
                      (launch_t){.bindings = {{out, sizeof(out)}}}));
      for (int i = 0; i < 20; ++i) {
        CHECK(out[i] == 100 + (extent & ROW ? 0 : 10 * (i / 5)) + (extent & COLUMN ? 0 : i % 5));
      }
      CHECK(out[20] == out[19]);
    }
  }
  // An element beyond the tile, and elements of each type.
  static const int64_t indices[] = {1024, -1, INT64_MIN};
  for (int i = 0; i < 3; ++i) {
    static bytes_t code;
    code.count = 0;
    OP(&code, CONST, 0, indices[i]);
    OP(&code, TEXTRACT, 1, 0, 0, 0);
    RETURN(&code);
    CHECK_FAILS(launch((header_t){.scalars = 2, .tiles = 1}, &code, (launch_t){.budget = 0}),
                INTERNAL, "an element that a tile does not have");
  }
  static const int64_t wanted[] = {0xFFFFFFFE, -2, -2, -2, -2, -2};
  for (int type = 0; type < EYAS_VMVX_TYPE_COUNT; ++type) {
    static bytes_t code;
    code.count = 0;
    OP(&code, BINDING, 0, 0);
    OP(&code, CONST, 1, 1024);
    OP(&code, CONST, 2, 1);
    OP(&code, CONST, 3, -2);
    OP(&code, CONST, 4, 1023);
    OP(&code, SHAPE, 2, 1);
    OP(&code, TFILL, 0, 3, type, 0);
    OP(&code, TEXTRACT, 5, 0, 4, type);
    OP(&code, STORE, 5, 0, 0, EYAS_VMVX_MEMORY_I64);
    RETURN(&code);
    CHECK_OK(launch((header_t){.scalars = 6, .tiles = 1, .bindings = 1, .writes = 1}, &code,
                    (launch_t){.bindings = {{out, 8}}}));
    CHECK(out[0] == wanted[type]);
  }
}

// A contraction of rows x columns with k steps; `spare` bytes of b are missing at its end.
static eyas_status_t contract(size_t rows, size_t columns, size_t k, size_t missing, float* out) {
  static bytes_t code;
  size_t panels = (columns + 15) / 16, last = columns - 16 * (panels - 1);
  size_t a_count = rows * k, b_count = (panels - 1) * 16 * k + (k - 1) * 16 + last;
  float *a = malloc(a_count * 4), *b = malloc(b_count * 4);
  for (size_t i = 0; i < a_count; ++i) a[i] = (float)(int)(random_u32() % 9) - 4;
  for (size_t i = 0; i < b_count; ++i) b[i] = (float)(int)(random_u32() % 9) - 4;
  static float acc[1024];
  code.count = 0;
  for (int i = 0; i < 3; ++i) OP(&code, BINDING, i, i);
  const int64_t values[] = {(int64_t)rows,
                            (int64_t)columns,
                            (int64_t)(4 * k),
                            (int64_t)(64 * k),
                            1,
                            (int64_t)k,
                            4,
                            64,
                            (int64_t)(4 * columns)};
  for (int i = 0; i < 9; ++i) OP(&code, CONST, 3 + i, values[i]);
  OP(&code, SHAPE, 3, 4);
  OP(&code, TFILL, 0, 12, EYAS_VMVX_TYPE_F32, 0);
  // Loops that run once take strides that could not be taken.
  OP(&code, CONST, 13, INT64_MIN);
  OP(&code, TCONTRACT_F32, 0, 0, 5, 1, 6, 7, 13, 13, 7, 13, 13, 8, 9, 10);
  OP(&code, TSTORE, 0, 2, 11, 9, EYAS_VMVX_MEMORY_F32, 0, 1);
  RETURN(&code);
  eyas_status_t status = launch(
      (header_t){.scalars = 14, .tiles = 1, .bindings = 3, .writes = 4}, &code,
      (launch_t){
          .bindings = {{a, a_count * 4}, {b, b_count * 4 - missing}, {acc, rows * columns * 4}},
          .budget = 1000});
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < columns; ++c) {
      float sum = 0;
      for (size_t i = 0; i < k; ++i) sum += a[r * k + i] * b[c / 16 * 16 * k + i * 16 + c % 16];
      out[r * columns + c] = acc[r * columns + c] - sum;
    }
  }
  free(a);
  free(b);
  return status;
}

static void test_contract(void) {
  static float difference[1024];
  static const size_t cases[][3] = {{1, 1, 1},   {8, 16, 5},  {3, 17, 4},  {8, 128, 9},
                                    {7, 100, 3}, {64, 16, 2}, {1, 1024, 2}};
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    CHECK_OK(contract(cases[i][0], cases[i][1], cases[i][2], 0, difference));
    for (size_t n = 0; n < cases[i][0] * cases[i][1]; ++n) CHECK(difference[n] == 0);
    CHECK_FAILS(contract(cases[i][0], cases[i][1], cases[i][2], 1, difference), INTERNAL,
                "outside of its buffers");
  }
  CHECK_FAILS(contract(1, 1, 1001, 0, difference), RESOURCE_EXHAUSTED, "budget");
}

// A window of 3 x 2 over columns, muladd and maximum.
static void test_window(void) {
  enum { ROWS = 4, COLUMNS = 20, WIDTH = 5 };
  static float a[6 * WIDTH * COLUMNS], b[6 * COLUMNS], out[ROWS * COLUMNS];
  fill_random((char*)a, 6 * WIDTH * COLUMNS, 4);
  fill_random((char*)b, 6 * COLUMNS, 4);
  for (int maximum = 0; maximum < 2; ++maximum) {
    for (int missing = 0; missing < 3; ++missing) {
      static bytes_t code;
      code.count = 0;
      for (int i = 0; i < 3; ++i) OP(&code, BINDING, i, i);
      const int64_t values[] = {ROWS,
                                COLUMNS,
                                4 * COLUMNS,
                                4 * WIDTH * COLUMNS,
                                3,
                                2,
                                2 * 4 * COLUMNS,
                                4,
                                bits_f32(maximum ? -INFINITY : 0)};
      for (int i = 0; i < 9; ++i) OP(&code, CONST, 3 + i, values[i]);
      OP(&code, SHAPE, 3, 4);
      OP(&code, TFILL, 0, 11, EYAS_VMVX_TYPE_F32, 0);
      // Rows are positions along the width; loops are 3 rows of the image and 2 of its columns.
      if (maximum) {
        OP(&code, TWINDOW_MAXIMUM_F32, 0, 0, 5, 12, 7, 6, 9, 8, 5, 5);
      } else {
        OP(&code, TWINDOW_MULADD_F32, 0, 0, 5, 1, 7, 6, 9, 8, 5, 5);
      }
      OP(&code, TSTORE, 0, 2, 5, 10, EYAS_VMVX_MEMORY_F32, 0, 1);
      RETURN(&code);
      uint64_t a_bytes = 4 * COLUMNS * (2 * WIDTH + 1 + ROWS), b_bytes = sizeof(b);
      eyas_status_t status =
          launch((header_t){.scalars = 13, .tiles = 1, .bindings = 3, .writes = 4}, &code,
                 (launch_t){.bindings = {{a, a_bytes - (missing == 1)},
                                         {b, b_bytes - (missing == 2)},
                                         {out, sizeof(out)}}});
      if (missing == 1 || (missing == 2 && !maximum)) {
        CHECK_FAILS(status, INTERNAL, "outside of its buffers");
        continue;
      }
      CHECK_OK(status);
      for (int r = 0; r < ROWS; ++r) {
        for (int c = 0; c < COLUMNS; ++c) {
          double wanted = maximum ? -INFINITY : 0;
          for (int y = 0; y < 3; ++y) {
            for (int x = 0; x < 2; ++x) {
              float v = a[(y * WIDTH + x + r) * COLUMNS + c];
              wanted = maximum ? fmax(wanted, v) : wanted + v * b[(y * 2 + x) * COLUMNS + c];
            }
          }
          CHECK(fabs(out[r * COLUMNS + c] - wanted) <= 1e-3);
        }
      }
    }
  }
}

static void test_rows(void) {
  static float in[6] = {1, 2, 3, -1, -1, 8}, out[6];
  for (int normalize = 0; normalize < 2; ++normalize) {
    for (int dst = 0; dst < 2; ++dst) {
      static bytes_t code;
      code.count = 0;
      OP(&code, BINDING, 0, 0);
      OP(&code, BINDING, 1, 1);
      static const int64_t values[] = {2, 3, 12, 4};
      for (int i = 0; i < 4; ++i) OP(&code, CONST, 2 + i, values[i]);
      OP(&code, CONST, 6, bits_f32(0.5f));
      OP(&code, SHAPE, 2, 3);
      OP(&code, TLOAD, 0, 0, 4, 5, EYAS_VMVX_MEMORY_F32, 0);
      if (normalize) {
        OP(&code, TNORMALIZE_F32, dst, 0, 6);
      } else {
        OP(&code, TSOFTMAX_F32, dst, 0);
      }
      OP(&code, TSTORE, dst, 1, 4, 5, EYAS_VMVX_MEMORY_F32, 0, 1);
      RETURN(&code);
      CHECK_OK(launch((header_t){.scalars = 7, .tiles = 2, .bindings = 2, .writes = 2}, &code,
                      (launch_t){.bindings = {{in, sizeof(in)}, {out, sizeof(out)}}}));
      for (int r = 0; r < 2; ++r) {
        double mean = 0, square = 0, sum = 0;
        for (int c = 0; c < 3; ++c) mean += in[3 * r + c] / 3.0;
        for (int c = 0; c < 3; ++c) square += (in[3 * r + c] - mean) * (in[3 * r + c] - mean) / 3.0;
        for (int c = 0; c < 3; ++c) sum += exp(in[3 * r + c]);
        for (int c = 0; c < 3; ++c) {
          double wanted =
              normalize ? (in[3 * r + c] - mean) / sqrt(square + 0.5) : exp(in[3 * r + c]) / sum;
          CHECK(fabs(out[3 * r + c] - wanted) <= 1e-5);
        }
      }
    }
  }
}

int main(void) {
  test_modes();
  test_reductions();
  test_moves();
  test_contract();
  test_window();
  test_rows();
  return check_summary("vmvx/tile");
}
