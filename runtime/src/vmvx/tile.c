// Tile instructions on registers: operands that the microkernels cannot take as they are.
#include "vmvx/tile.h"

#include <string.h>

#include "vmvx/memory.h"

// Rows shorter than this cost more in calls than in repeating an operand to the whole shape.
#define SHORT_ROW 16

int eyas_vmvx_set_shape(eyas_vmvx_frame_t* f, int64_t rows, int64_t columns) {
  if (rows < 1 || columns < 1 || rows > (int64_t)EYAS_VMVX_MAX_ELEMENTS ||
      columns > (int64_t)EYAS_VMVX_MAX_ELEMENTS ||
      rows * columns > (int64_t)EYAS_VMVX_MAX_ELEMENTS) {
    return EYAS_VMVX_FAIL_SHAPE;
  }
  f->rows = (size_t)rows;
  f->columns = (size_t)columns;
  f->counts[EYAS_VMVX_EXTENT_FULL] = f->rows * f->columns;
  f->counts[EYAS_VMVX_EXTENT_ROW] = f->columns;
  f->counts[EYAS_VMVX_EXTENT_COLUMN] = f->rows;
  f->counts[EYAS_VMVX_EXTENT_ONE] = 1;
  return 0;
}

char* eyas_vmvx_spare_tile(const eyas_vmvx_frame_t* f, unsigned index) {
  return f->tiles + (size_t)(f->function->tile_count + index) * EYAS_VMVX_TILE_STRIDE;
}

void eyas_vmvx_tile_fill(void* tile, int64_t value, unsigned bytes, size_t count) {
  const uint64_t size = (uint64_t)count * bytes;
  if (bytes == 1 || value == 0) {
    memset(tile, (int)(value & 0xFF), size);
    return;
  }
  // A few elements one by one, then copies of what is there, each as long as all before: the
  // library's copy has the widest stores of the CPU.
  size_t filled = count < 16 ? count : 16;
  switch (bytes) {
    case 2:
      for (size_t i = 0; i < filled; ++i) ((int16_t*)tile)[i] = (int16_t)value;
      break;
    case 4:
      for (size_t i = 0; i < filled; ++i) ((int32_t*)tile)[i] = (int32_t)value;
      break;
    default:
      for (size_t i = 0; i < filled; ++i) ((int64_t*)tile)[i] = value;
      break;
  }
  for (uint64_t done = filled * bytes, next; done < size; done += next) {
    next = done < size - done ? done : size - done;
    memcpy((char*)tile + done, tile, next);
  }
}

static int64_t element(const char* tile, unsigned bytes, size_t index) {
  switch (bytes) {
    case 1: return ((const int8_t*)tile)[index];
    case 2: return ((const int16_t*)tile)[index];
    case 4: return ((const int32_t*)tile)[index];
    default: return ((const int64_t*)tile)[index];
  }
}

void eyas_vmvx_tile_expand(const eyas_vmvx_frame_t* f, void* dst, const void* src, unsigned bytes,
                           int from, int to) {
  if (from == to) {
    if (dst != src) memcpy(dst, src, f->counts[to] * bytes);
  } else if (from == EYAS_VMVX_EXTENT_ONE) {
    eyas_vmvx_tile_fill(dst, element(src, bytes, 0), bytes, f->counts[to]);
  } else if (from == EYAS_VMVX_EXTENT_ROW) {
    for (size_t r = 0; r < f->rows; ++r) {
      memcpy((char*)dst + r * f->columns * bytes, src, f->columns * bytes);
    }
  } else {
    for (size_t r = 0; r < f->rows; ++r) {
      eyas_vmvx_tile_fill((char*)dst + r * f->columns * bytes, element(src, bytes, r), bytes,
                          f->columns);
    }
  }
}

void eyas_vmvx_tile_index(eyas_vmvx_frame_t* f, const eyas_vmvx_cell_t* at) {
  int64_t* dst = (int64_t*)eyas_vmvx_tile(f, at[1].u[0]);
  int extent = at[2].u[0];
  size_t columns = extent & EYAS_VMVX_EXTENT_COLUMN ? 1 : f->columns;  // COLUMN or ONE
  size_t rows = extent & EYAS_VMVX_EXTENT_ROW ? 1 : f->rows;           // ROW or ONE
  uint64_t start = (uint64_t)*eyas_vmvx_scalar(f, at[1].u[1]);
  uint64_t row_step = (uint64_t)*eyas_vmvx_scalar(f, at[1].u[2]);
  uint64_t column_step = (uint64_t)*eyas_vmvx_scalar(f, at[1].u[3]);
  for (size_t r = 0; r < rows; ++r, start += row_step) {
    for (size_t c = 0; c < columns; ++c) *dst++ = (int64_t)(start + c * column_step);
  }
}

void eyas_vmvx_tile_mov(eyas_vmvx_frame_t* f, const eyas_vmvx_cell_t* at) {
  char *dst = eyas_vmvx_tile(f, at[1].u[0]), *src = eyas_vmvx_tile(f, at[1].u[1]);
  unsigned bytes = at[1].u[2];
  int from = at[1].u[3] & 3, to = at[1].u[3] >> 6;
  if (dst == src && from != to) {
    char* spare = eyas_vmvx_spare_tile(f, 0);
    eyas_vmvx_tile_expand(f, spare, src, bytes, from, to);
    from = to;
    src = spare;
  }
  eyas_vmvx_tile_expand(f, dst, src, bytes, from, to);
}

// The result is made as small as the operand and then repeated.
void eyas_vmvx_tile_unary(eyas_vmvx_frame_t* f, const eyas_vmvx_cell_t* at) {
  char *dst = eyas_vmvx_tile(f, at[1].u[0]), *spare = eyas_vmvx_spare_tile(f, 0);
  int from = at[1].u[2] & 3, to = at[1].u[2] >> 6;
  ((eyas_uk_unary_t)at[3].function)(spare, eyas_vmvx_tile(f, at[1].u[1]), f->counts[from]);
  eyas_vmvx_tile_expand(f, dst, spare, at[1].u[3], from, to);
}

// With one row or one column different extents are the same thing.
static int plainer(const eyas_vmvx_frame_t* f, int extent) {
  bool has_rows = !(extent & EYAS_VMVX_EXTENT_ROW) && f->rows > 1;
  bool has_columns = !(extent & EYAS_VMVX_EXTENT_COLUMN) && f->columns > 1;
  return (has_rows ? 0 : EYAS_VMVX_EXTENT_ROW) | (has_columns ? 0 : EYAS_VMVX_EXTENT_COLUMN);
}

// An operand with copies of its elements, in a spare tile where it needs them.
static const char* widened(const eyas_vmvx_frame_t* f, unsigned spare, const char* tile,
                           unsigned bytes, int from, int to) {
  if (from == to) return tile;
  char* wide = eyas_vmvx_spare_tile(f, spare);
  eyas_vmvx_tile_expand(f, wide, tile, bytes, from, to);
  return wide;
}

void eyas_vmvx_tile_binary(eyas_vmvx_frame_t* f, const eyas_vmvx_cell_t* at) {
  const eyas_uk_binary_set_t* set = at[3].pointer;
  char* dst = eyas_vmvx_tile(f, at[1].u[0]);
  const char *a = eyas_vmvx_tile(f, at[1].u[1]), *b = eyas_vmvx_tile(f, at[1].u[2]);
  const unsigned modes = at[1].u[3], dst_bytes = at[2].u[0], bytes = at[2].u[1];
  const int to = plainer(f, (int)(modes >> 6));
  int a_mode = plainer(f, (int)(modes & 3)), b_mode = plainer(f, (int)(modes >> 2 & 3));
  char* out = dst;
  if ((dst == a && (a_mode != to || dst_bytes != bytes)) ||
      (dst == b && (b_mode != to || dst_bytes != bytes))) {
    out = eyas_vmvx_spare_tile(f, 2);
  }
  const size_t count = f->counts[to], columns = f->columns;
  if (a_mode == to && b_mode == to) {
    set->vv(out, a, b, count);
  } else if (a_mode == to && b_mode == EYAS_VMVX_EXTENT_ONE && set->vs) {
    set->vs(out, a, b, count);
  } else if (a_mode == EYAS_VMVX_EXTENT_ONE && b_mode == to && set->sv) {
    set->sv(out, a, b, count);
  } else {
    bool a_row = !(a_mode & EYAS_VMVX_EXTENT_COLUMN), b_row = !(b_mode & EYAS_VMVX_EXTENT_COLUMN);
    eyas_uk_binary_t kernel = a_row && b_row ? set->vv : a_row ? set->vs : b_row ? set->sv : NULL;
    if (to == EYAS_VMVX_EXTENT_FULL && columns >= SHORT_ROW && kernel) {
      size_t pitch = columns * bytes;
      size_t a_step = a_mode == to ? pitch : a_mode == EYAS_VMVX_EXTENT_COLUMN ? bytes : 0;
      size_t b_step = b_mode == to ? pitch : b_mode == EYAS_VMVX_EXTENT_COLUMN ? bytes : 0;
      char* row = out;
      for (size_t r = 0; r < f->rows; ++r, a += a_step, b += b_step, row += columns * dst_bytes) {
        kernel(row, a, b, columns);
      }
    } else {
      a = widened(f, 0, a, bytes, a_mode, to);
      b = widened(f, 1, b, bytes, b_mode, to);
      set->vv(out, a, b, count);
    }
  }
  if (out != dst) memcpy(dst, out, count * dst_bytes);
}

void eyas_vmvx_tile_ternary(eyas_vmvx_frame_t* f, const eyas_vmvx_cell_t* at) {
  char* dst = eyas_vmvx_tile(f, at[1].u[0]);
  const unsigned modes = at[2].u[0], bytes = at[2].u[2];
  const bool pick = at[2].u[1];
  const int to = plainer(f, (int)(modes >> 6));
  const char* operands[3];
  size_t steps[3];
  // By rows when that needs no operand repeated to the whole shape.
  bool by_rows = to == EYAS_VMVX_EXTENT_FULL && f->columns >= SHORT_ROW;
  for (int i = 0; i < 3; ++i) {
    int extent = plainer(f, (int)(modes >> (2 * i) & 3));
    by_rows = by_rows && !(extent & EYAS_VMVX_EXTENT_COLUMN);
  }
  for (int i = 0; i < 3; ++i) {
    unsigned own = i == 0 ? at[2].u[3] : bytes;
    int extent = plainer(f, (int)(modes >> (2 * i) & 3));
    operands[i] = eyas_vmvx_tile(f, at[1].u[1 + i]);
    steps[i] = extent == to ? f->columns * own : 0;
    bool part = operands[i] == dst && (extent != to || own != bytes);
    if (part || (extent != to && !by_rows)) {
      char* spare = eyas_vmvx_spare_tile(f, (unsigned)i);
      eyas_vmvx_tile_expand(f, spare, operands[i], own, extent, to);
      operands[i] = spare;
      steps[i] = f->columns * own;
    }
  }
  size_t calls = by_rows ? f->rows : 1, count = by_rows ? f->columns : f->counts[to];
  for (size_t r = 0; r < calls; ++r, dst += f->columns * bytes) {
    const char *a = operands[0] + r * steps[0], *b = operands[1] + r * steps[1],
               *c = operands[2] + r * steps[2];
    if (pick) {
      ((eyas_uk_pick_t)at[3].function)(dst, (const int8_t*)a, b, c, count);
    } else {
      ((eyas_uk_ternary_t)at[3].function)(dst, a, b, c, count);
    }
  }
}

void eyas_vmvx_tile_reduce(eyas_vmvx_frame_t* f, const eyas_vmvx_cell_t* at) {
  char *dst = eyas_vmvx_tile(f, at[1].u[0]), *a = eyas_vmvx_tile(f, at[1].u[1]);
  if (dst == a) {
    a = eyas_vmvx_spare_tile(f, 0);
    memcpy(a, dst, f->counts[EYAS_VMVX_EXTENT_FULL] * at[1].u[2]);
  }
  ((eyas_uk_reduce_t)at[2].function)(dst, a, f->rows, f->columns);
}
