// Tile instructions that touch memory: every range is checked here, once for the whole block.
#include <string.h>

#include "vmvx/memory.h"
#include "vmvx/tile.h"

enum { MIN_ASKED_BYTES = 2048 };

// Elements in memory that a tile is loaded from or stored to.
typedef struct block_t {
  size_t rows, columns;
  int64_t row_bytes, column_bytes;
} block_t;

// Microkernels never see a stride that is not taken: it may be anything, and a pointer moved by it
// would be nowhere. One column is one row, since tiles are packed.
static block_t block_of(const eyas_vmvx_frame_t* f, int extent, int64_t row_bytes,
                        int64_t column_bytes) {
  block_t b = {extent & EYAS_VMVX_EXTENT_ROW ? 1 : f->rows,
               extent & EYAS_VMVX_EXTENT_COLUMN ? 1 : f->columns, row_bytes, column_bytes};
  if (b.columns == 1) b = (block_t){1, b.rows, 0, row_bytes};
  if (b.rows == 1) b.row_bytes = 0;
  if (b.columns == 1) b.column_bytes = 0;
  return b;
}

static eyas_vmvx_span_t block_span(const block_t* b, int64_t bytes) {
  eyas_vmvx_span_t span = {0, bytes, false};
  eyas_vmvx_span_add(&span, (int64_t)b->rows - 1, b->row_bytes);
  eyas_vmvx_span_add(&span, (int64_t)b->columns - 1, b->column_bytes);
  return span;
}

static int write_failure(const eyas_vmvx_frame_t* f, int64_t address,
                         const eyas_vmvx_span_t* span) {
  return eyas_vmvx_reach(f, address, span, false) ? EYAS_VMVX_FAIL_READ_ONLY
                                                  : EYAS_VMVX_FAIL_BOUNDS;
}

// What follows a long block is what the next turn of a loop loads, most often in a page that the
// processor's own prefetchers will not enter by themselves.
static void ask_for_next_block(const char* memory, const block_t* b, int64_t bytes) {
  const int64_t whole = (int64_t)(b->rows * b->columns) * bytes;
  const bool dense =
      b->column_bytes == bytes && (b->rows == 1 || b->row_bytes == (int64_t)b->columns * bytes);
  if (whole < MIN_ASKED_BYTES || !dense) return;
  const uintptr_t next = (uintptr_t)memory + (uintptr_t)whole, end = next + (uintptr_t)whole;
  for (uintptr_t at = next; at < end; at += 64) __builtin_prefetch((const void*)at, 0, 2);
}

int eyas_vmvx_tile_load(eyas_vmvx_frame_t* f, const eyas_vmvx_cell_t* at) {
  const block_t b =
      block_of(f, at[2].u[0], *eyas_vmvx_scalar(f, at[1].u[2]), *eyas_vmvx_scalar(f, at[1].u[3]));
  const eyas_vmvx_span_t span = block_span(&b, at[2].u[1]);
  const char* memory = eyas_vmvx_reach(f, *eyas_vmvx_scalar(f, at[1].u[1]), &span, false);
  if (EYAS_VMVX_UNLIKELY(!memory)) return EYAS_VMVX_FAIL_BOUNDS;
  ask_for_next_block(memory, &b, at[2].u[1]);
  ((eyas_uk_load_t)at[3].function)(eyas_vmvx_tile(f, at[1].u[0]), memory, b.rows, b.columns,
                                   b.row_bytes, b.column_bytes);
  return 0;
}

static size_t clamp(int64_t value, size_t low, size_t high) {
  return value<(int64_t)low ? low : value>(int64_t) high ? high : (size_t)value;
}

int eyas_vmvx_tile_load_inside(eyas_vmvx_frame_t* f, const eyas_vmvx_cell_t* at) {
  char* tile = eyas_vmvx_tile(f, eyas_vmvx_unit(at, 0));
  int64_t v[8];
  for (int i = 0; i < 8; ++i) v[i] = *eyas_vmvx_scalar(f, eyas_vmvx_unit(at, 1 + i));
  int64_t address = v[0], row_bytes = v[1], column_bytes = v[2], otherwise = v[7];
  unsigned memory_bytes = eyas_vmvx_unit(at, 9), bytes = eyas_vmvx_unit(at, 10);
  size_t first_row = clamp(v[3], 0, f->rows), end_row = clamp(v[4], first_row, f->rows);
  size_t first = clamp(v[5], 0, f->columns), end = clamp(v[6], first, f->columns);
  size_t rows = end_row - first_row, columns = end - first, pitch = f->columns * bytes;
  if (rows == 0 || columns == 0) {
    eyas_vmvx_tile_fill(tile, otherwise, bytes, f->rows * f->columns);
    return 0;
  }
  // The address is that of the element at (0, 0), which may lie before its buffer; the box begins
  // inside, and what it reaches is checked from there.
  uint64_t begin = (uint64_t)address + (uint64_t)first_row * (uint64_t)row_bytes +
                   (uint64_t)first * (uint64_t)column_bytes;
  if (rows == 1) row_bytes = 0;
  if (columns == 1) column_bytes = 0;
  eyas_vmvx_span_t span = {0, memory_bytes, false};
  eyas_vmvx_span_add(&span, (int64_t)rows - 1, row_bytes);
  eyas_vmvx_span_add(&span, (int64_t)columns - 1, column_bytes);
  const char* memory = eyas_vmvx_reach(f, (int64_t)begin, &span, false);
  if (EYAS_VMVX_UNLIKELY(!memory)) return EYAS_VMVX_FAIL_BOUNDS;
  eyas_uk_load_t load = (eyas_uk_load_t)at[4].function;
  eyas_vmvx_tile_fill(tile, otherwise, bytes, first_row * f->columns);
  eyas_vmvx_tile_fill(tile + end_row * pitch, otherwise, bytes, (f->rows - end_row) * f->columns);
  tile += first_row * pitch;
  if (columns == f->columns) {
    load(tile, memory, rows, columns, row_bytes, column_bytes);
    return 0;
  }
  for (size_t r = 0; r < rows; ++r, tile += pitch) {
    eyas_vmvx_tile_fill(tile, otherwise, bytes, first);
    load(tile + first * bytes, memory + (int64_t)r * row_bytes, 1, columns, 0, column_bytes);
    eyas_vmvx_tile_fill(tile + end * bytes, otherwise, bytes, f->columns - end);
  }
  return 0;
}

static uint64_t magnitude(int64_t value) {
  return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

// Whether no two elements of a block share a byte. The strides have been found to be in range.
static bool is_distinct(const block_t* b, uint64_t bytes) {
  uint64_t row = magnitude(b->row_bytes), column = magnitude(b->column_bytes);
  if (b->columns == 1) return true;  // then there is one row too
  if (column < bytes) return false;
  if (b->rows == 1) return true;
  if (row < bytes) return false;
  return row >= (b->columns - 1) * column + bytes || column >= (b->rows - 1) * row + bytes;
}

int eyas_vmvx_tile_store(eyas_vmvx_frame_t* f, const eyas_vmvx_cell_t* at) {
  int from = at[2].u[0] & 3, extent = at[2].u[0] >> 6;
  unsigned memory_bytes = at[2].u[1], bytes = at[2].u[2];
  bool distinct = at[2].u[3];
  const block_t b =
      block_of(f, extent, *eyas_vmvx_scalar(f, at[1].u[2]), *eyas_vmvx_scalar(f, at[1].u[3]));
  int64_t address = *eyas_vmvx_scalar(f, at[1].u[1]);
  const char* tile = eyas_vmvx_tile(f, at[1].u[0]);
  const eyas_vmvx_span_t span = block_span(&b, memory_bytes);
  char* memory = eyas_vmvx_reach(f, address, &span, true);
  if (EYAS_VMVX_UNLIKELY(!memory)) return write_failure(f, address, &span);
  if (from != extent) {
    char* spare = eyas_vmvx_spare_tile(f, 0);
    eyas_vmvx_tile_expand(f, spare, tile, bytes, from, extent);
    tile = spare;
  }
  eyas_uk_store_t store = (eyas_uk_store_t)at[3].function;
  if (is_distinct(&b, memory_bytes)) {
    store(tile, memory, b.rows, b.columns, b.row_bytes, b.column_bytes);
    return 0;
  }
  if (distinct) return EYAS_VMVX_FAIL_DISTINCT;
  for (int64_t r = 0; r < (int64_t)b.rows; ++r) {  // one by one, so that the last one stays
    for (int64_t c = 0; c < (int64_t)b.columns; ++c, tile += bytes) {
      store(tile, memory + (r * b.row_bytes + c * b.column_bytes), 1, 1, 0, 0);
    }
  }
  return 0;
}

int eyas_vmvx_tile_gather(eyas_vmvx_frame_t* f, const eyas_vmvx_cell_t* at) {
  int from = at[1].u[3] & 3, extent = at[1].u[3] >> 6;
  unsigned memory_bytes = at[2].u[0], bytes = at[2].u[1];
  int64_t address = *eyas_vmvx_scalar(f, at[1].u[1]);
  const int64_t* index = (const int64_t*)eyas_vmvx_tile(f, at[1].u[2]);
  char* dst = eyas_vmvx_tile(f, at[1].u[0]);
  size_t count = f->counts[from];
  int64_t least = index[0], most = index[0];
  for (size_t i = 1; i < count; ++i) {
    least = index[i] < least ? index[i] : least;
    most = index[i] > most ? index[i] : most;
  }
  eyas_vmvx_span_t span = {0, 0, false};
  if (least < 0) eyas_vmvx_span_add(&span, least, memory_bytes);
  if (most > 0) eyas_vmvx_span_add(&span, most, memory_bytes);
  span.end += memory_bytes;
  const char* memory = eyas_vmvx_reach(f, address, &span, false);
  if (EYAS_VMVX_UNLIKELY(!memory)) return EYAS_VMVX_FAIL_BOUNDS;
  char* target = dst == (const char*)index || from != extent ? eyas_vmvx_spare_tile(f, 0) : dst;
  ((eyas_uk_gather_t)at[3].function)(target, memory, index, count);
  if (target != dst) eyas_vmvx_tile_expand(f, dst, target, bytes, from, extent);
  return 0;
}

int eyas_vmvx_tile_load_rows(eyas_vmvx_frame_t* f, const eyas_vmvx_cell_t* at) {
  const unsigned memory_bytes = at[1].u[3], bytes = at[2].u[0];
  const int64_t* index = (const int64_t*)eyas_vmvx_tile(f, at[1].u[2]);
  char* dst = eyas_vmvx_tile(f, at[1].u[0]);
  const size_t rows = f->rows, columns = f->columns;
  int64_t least = index[0], most = index[0];
  for (size_t r = 1; r < rows; ++r) {
    least = index[r] < least ? index[r] : least;
    most = index[r] > most ? index[r] : most;
  }
  eyas_vmvx_span_t span = {0, memory_bytes, false};
  if (least < 0) eyas_vmvx_span_add(&span, least, memory_bytes);
  if (most > 0) eyas_vmvx_span_add(&span, most, memory_bytes);
  eyas_vmvx_span_add(&span, (int64_t)columns - 1, memory_bytes);
  const char* memory = eyas_vmvx_reach(f, *eyas_vmvx_scalar(f, at[1].u[1]), &span, false);
  if (EYAS_VMVX_UNLIKELY(!memory)) return EYAS_VMVX_FAIL_BOUNDS;
  char* target = dst == (const char*)index ? eyas_vmvx_spare_tile(f, 0) : dst;
  eyas_uk_load_t load = (eyas_uk_load_t)at[3].function;
  for (size_t r = 0; r < rows; ++r) {
    load(target + r * columns * bytes, memory + index[r] * (int64_t)memory_bytes, 1, columns, 0,
         (int64_t)memory_bytes);
  }
  if (target != dst) memcpy(dst, target, rows * columns * bytes);
  return 0;
}

// Counts the steps of an instruction whose work a register decides.
static bool spend(eyas_vmvx_frame_t* f, const eyas_uk_loop_t* loops, int count) {
  uint64_t steps = 1;
  for (int i = 0; i < count; ++i) {
    if (__builtin_mul_overflow(steps, (uint64_t)loops[i].extent, &steps)) return false;
  }
  if (steps >= f->budget) return false;
  f->budget -= steps;
  return true;
}

int eyas_vmvx_tile_contract(eyas_vmvx_frame_t* f, const eyas_vmvx_cell_t* at) {
  const size_t rows = f->rows, columns = f->columns;
  const unsigned bytes = eyas_vmvx_unit(at, 14);
  eyas_uk_contract_t k = {
      .acc = eyas_vmvx_tile(f, at[1].u[0]),
      .rows = rows,
      .columns = columns,
      .a_row_bytes = *eyas_vmvx_scalar(f, at[1].u[2]),
      .b_panel_bytes = *eyas_vmvx_scalar(f, at[2].u[0]),
  };
  eyas_vmvx_span_t a = {0, bytes, false}, b = {0, 0, false};
  for (int i = 0; i < 3; ++i) {
    eyas_uk_loop_t* loop = &k.loops[i];
    loop->extent = *eyas_vmvx_scalar(f, eyas_vmvx_unit(at, 5 + 3 * i));
    loop->a_bytes = *eyas_vmvx_scalar(f, eyas_vmvx_unit(at, 6 + 3 * i));
    loop->b_bytes = *eyas_vmvx_scalar(f, eyas_vmvx_unit(at, 7 + 3 * i));
    if (loop->extent <= 0) return 0;
    eyas_vmvx_span_add(&a, loop->extent - 1, loop->a_bytes);
    eyas_vmvx_span_add(&b, loop->extent - 1, loop->b_bytes);
    if (loop->extent == 1) loop->a_bytes = loop->b_bytes = 0;
  }
  eyas_vmvx_span_add(&a, (int64_t)rows - 1, k.a_row_bytes);
  // Panels before the last are whole, the last is as wide as there are columns.
  int64_t before = (int64_t)(columns - 1) / EYAS_VMVX_PANEL;
  int64_t last = (int64_t)columns - before * EYAS_VMVX_PANEL;
  eyas_vmvx_span_t panels = {0, 0, false};
  eyas_vmvx_span_add(&panels, before, k.b_panel_bytes);
  int64_t last_end = (panels.too_far ? 0 : before * k.b_panel_bytes) + last * bytes, end = last_end;
  if (before > 0 && !panels.too_far) {
    int64_t whole = (k.b_panel_bytes > 0 ? (before - 1) * k.b_panel_bytes : 0) +
                    (int64_t)(EYAS_VMVX_PANEL * bytes);
    if (whole > end) end = whole;
  }
  b.first += panels.first;
  b.end += end;
  b.too_far |= panels.too_far;
  if (rows == 1) k.a_row_bytes = 0;
  if (before == 0) k.b_panel_bytes = 0;
  k.a = eyas_vmvx_reach(f, *eyas_vmvx_scalar(f, at[1].u[1]), &a, false);
  k.b = eyas_vmvx_reach(f, *eyas_vmvx_scalar(f, at[1].u[3]), &b, false);
  if (EYAS_VMVX_UNLIKELY(!k.a || !k.b)) return EYAS_VMVX_FAIL_BOUNDS;
  if (EYAS_VMVX_UNLIKELY(!spend(f, k.loops, 3))) return EYAS_VMVX_FAIL_BUDGET;
  ((eyas_uk_contract_fn_t)at[5].function)(&k);
  return 0;
}

int eyas_vmvx_tile_window(eyas_vmvx_frame_t* f, const eyas_vmvx_cell_t* at) {
  const unsigned bytes = eyas_vmvx_unit(at, 10);
  const bool reads_b = eyas_vmvx_unit(at, 11);
  eyas_uk_window_t k = {
      .acc = eyas_vmvx_tile(f, at[1].u[0]),
      .rows = f->rows,
      .columns = f->columns,
      .a_row_bytes = *eyas_vmvx_scalar(f, at[1].u[2]),
  };
  eyas_vmvx_span_t a = {0, (int64_t)(f->columns * bytes), false}, b = a;
  for (int i = 0; i < 2; ++i) {
    eyas_uk_loop_t* loop = &k.loops[i];
    loop->extent = *eyas_vmvx_scalar(f, eyas_vmvx_unit(at, 4 + 3 * i));
    loop->a_bytes = *eyas_vmvx_scalar(f, eyas_vmvx_unit(at, 5 + 3 * i));
    loop->b_bytes = *eyas_vmvx_scalar(f, eyas_vmvx_unit(at, 6 + 3 * i));
    if (loop->extent <= 0) return 0;
    eyas_vmvx_span_add(&a, loop->extent - 1, loop->a_bytes);
    eyas_vmvx_span_add(&b, loop->extent - 1, loop->b_bytes);
    if (loop->extent == 1) loop->a_bytes = loop->b_bytes = 0;
  }
  eyas_vmvx_span_add(&a, (int64_t)f->rows - 1, k.a_row_bytes);
  k.a = eyas_vmvx_reach(f, *eyas_vmvx_scalar(f, at[1].u[1]), &a, false);
  if (f->rows == 1) k.a_row_bytes = 0;
  if (!reads_b) k.loops[0].b_bytes = k.loops[1].b_bytes = 0;
  k.b = reads_b ? eyas_vmvx_reach(f, *eyas_vmvx_scalar(f, at[1].u[3]), &b, false) : k.a;
  if (EYAS_VMVX_UNLIKELY(!k.a || !k.b)) return EYAS_VMVX_FAIL_BOUNDS;
  if (EYAS_VMVX_UNLIKELY(!spend(f, k.loops, 2))) return EYAS_VMVX_FAIL_BUDGET;
  ((eyas_uk_window_fn_t)at[4].function)(&k);
  return 0;
}
