// A contraction in register blocks, for any instruction set: rows x vectors of accumulators stay in
// registers while the loops run. Included once for each type of operands. Definitions of the
// accumulators, which stay:
//
//   ACC               the element
//   VECTOR            a vector of them, LANES of them: 2, 4, 8 or 16
//   load_acc(p), store_acc(p, v), load_acc_some(p, n), store_acc_some(p, n, v)
//
// and of the operands, which are undefined at the end:
//
//   NAME(x)           x with a suffix of the type
//   OPERAND           a vector of what is multiplied, OPERAND_BYTES in memory for LANES columns
//   hold(x)           keeps an operand in registers: EYAS_UK_OPAQUE
//   load_row(p)       a row's operand, repeated in every lane
//   load_lanes(p)     the operands of LANES columns
//   load_some(p, n)   of the first n columns alone; nothing behind them is read
//   multiply_add(acc, row, lanes)
//   OFFSET_ROW, subtract(acc, offset)   where the instruction wants rows with an offset: the
//   product
//                     of this row with the lanes is subtracted in the end
//   BLOCKS(X)         X(rows, panels) for every block; whatever the rows, also with one panel
//   PANELS_FOR_ROWS   how many panels a block of 1, 2, ... MAX_ROWS rows has at most
//   TAILS(X), TAIL_ROWS   X(rows) for blocks in a panel that is not whole
#include "ukernel/products.h"

#ifndef EYAS_UKERNEL_PRODUCTS_BLOCKS_H_
#define EYAS_UKERNEL_PRODUCTS_BLOCKS_H_

// Blocks for types that matter less: few of them, so that the code stays small.
#define EYAS_UK_BLOCKS_SMALL(X) X(1, 1) X(2, 1) X(4, 1) X(1, 4) X(2, 4) X(4, 4)
#define EYAS_UK_TAILS_SMALL(X) X(1)

#endif  // EYAS_UKERNEL_PRODUCTS_BLOCKS_H_

#define PANEL_VECTORS ((int)EYAS_VMVX_PANEL / LANES)

EYAS_UK_INLINE OPERAND NAME(lanes_at)(const char* const* bases, int v, int64_t step,
                                      const int is_some, int some) {
  const int offset = v % PANEL_VECTORS * OPERAND_BYTES;
  const char* p = eyas_uk_at(bases, v / PANEL_VECTORS, step) + offset;
  return is_some ? load_some(p, some) : load_lanes(p);
}

// `is_tail`: the last vector may be in part, and has `some` columns. Always inlined with constant
// rows and vectors, so that the arrays become registers.
EYAS_UK_INLINE void NAME(run_block)(const eyas_uk_contract_t* call, eyas_uk_block_t block,
                                    const int rows, const int vectors, const int is_tail,
                                    int some) {
  enum { MOST = 32 };
  VECTOR acc[MOST][MOST];
  const size_t columns = call->columns;
#pragma GCC unroll 32
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 32
    for (int v = 0; v < vectors; ++v) {
      const ACC* p = (const ACC*)block.acc + r * columns + v * LANES;
      acc[r][v] = is_tail && v == vectors - 1 ? load_acc_some(p, some) : load_acc(p);
    }
  }
#ifdef OFFSET_ROW
  const OPERAND offset_row = OFFSET_ROW;
  VECTOR offset[MOST];
#pragma GCC unroll 32
  for (int v = 0; v < vectors; ++v) offset[v] = (VECTOR){0};
#define ADD_OFFSET(v, lanes) offset[v] = multiply_add(offset[v], offset_row, lanes)
#define TAKE_OFFSET(v, acc) subtract(acc, offset[v])
#else
#define ADD_OFFSET(v, lanes)
#define TAKE_OFFSET(v, acc) acc
#endif
  const int64_t row_step = call->a_row_bytes, panel_step = call->b_panel_bytes;
  const int64_t a_step = call->loops[2].a_bytes, b_step = call->loops[2].b_bytes;
  const int panels = (vectors + PANEL_VECTORS - 1) / PANEL_VECTORS;
  const char *a[MOST], *b[MOST], *next[MOST];
  a[0] = block.a;
  b[0] = block.b;
  next[0] = block.b + block.ahead;
#pragma GCC unroll 32
  for (int n = 1; n * 3 < rows; ++n) {
    a[n] = a[n - 1] + 3 * row_step;
    EYAS_UK_OPAQUE(a[n], "r");
  }
#pragma GCC unroll 32
  for (int n = 1; n * 3 < panels; ++n) {
    b[n] = b[n - 1] + 3 * panel_step;
    next[n] = next[n - 1] + 3 * panel_step;
    EYAS_UK_OPAQUE(b[n], "r");
    EYAS_UK_OPAQUE(next[n], "r");
  }
  for (int64_t k = block.steps; k > 0; --k) {
#pragma GCC unroll 32
    for (int v = 0; v < vectors; v += PANEL_VECTORS) {
      __builtin_prefetch(eyas_uk_at(next, v / PANEL_VECTORS, panel_step), 0, 2);
    }
    // Of rows and lanes, the fewer are held, the others pass by.
    if (rows < vectors) {
      OPERAND row[MOST];
#pragma GCC unroll 32
      for (int r = 0; r < rows; ++r) row[r] = load_row(eyas_uk_at(a, r, row_step));
#pragma GCC unroll 32
      for (int v = 0; v < vectors; ++v) {
        OPERAND lanes = NAME(lanes_at)(b, v, panel_step, is_tail && v == vectors - 1, some);
        if (rows > 1) {
          hold(lanes);
        }
        ADD_OFFSET(v, lanes);
#pragma GCC unroll 32
        for (int r = 0; r < rows; ++r) acc[r][v] = multiply_add(acc[r][v], row[r], lanes);
      }
    } else {
      OPERAND lanes[MOST];
#pragma GCC unroll 32
      for (int v = 0; v < vectors; ++v) {
        lanes[v] = NAME(lanes_at)(b, v, panel_step, is_tail && v == vectors - 1, some);
        ADD_OFFSET(v, lanes[v]);
      }
#pragma GCC unroll 32
      for (int r = 0; r < rows; ++r) {
        const OPERAND row = load_row(eyas_uk_at(a, r, row_step));
#pragma GCC unroll 32
        for (int v = 0; v < vectors; ++v) acc[r][v] = multiply_add(acc[r][v], row, lanes[v]);
      }
    }
#pragma GCC unroll 32
    for (int n = 0; n * 3 < rows; ++n) a[n] += a_step;
#pragma GCC unroll 32
    for (int n = 0; n * 3 < panels; ++n) {
      b[n] += b_step;
      next[n] += b_step;
    }
  }
  EYAS_UK_OPAQUE(block.acc, "r");  // else the places of all accumulators are kept through the loops
#pragma GCC unroll 32
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 32
    for (int v = 0; v < vectors; ++v) {
      ACC* p = (ACC*)block.acc + r * columns + v * LANES;
      if (is_tail && v == vectors - 1) {
        store_acc_some(p, some, TAKE_OFFSET(v, acc[r][v]));
      } else {
        store_acc(p, TAKE_OFFSET(v, acc[r][v]));
      }
    }
  }
}

#define DEFINE_BLOCK(rows, panels)                                     \
  static __attribute__((noinline)) void NAME(block_##rows##_##panels)( \
      const eyas_uk_contract_t* call, eyas_uk_block_t block) {         \
    NAME(run_block)(call, block, rows, panels * PANEL_VECTORS, 0, 0);  \
  }
BLOCKS(DEFINE_BLOCK)

#define BLOCK_ENTRY(rows, panels) [panels][rows] = NAME(block_##rows##_##panels),
static const eyas_uk_block_fn_t NAME(blocks)[][MAX_ROWS + 1] = {BLOCKS(BLOCK_ENTRY)};

// A panel that is not whole: as many vectors as there are columns, the last perhaps in part.
EYAS_UK_INLINE void NAME(tail)(const eyas_uk_contract_t* call, eyas_uk_block_t block,
                               const int rows) {
  const int columns = (int)(call->columns % EYAS_VMVX_PANEL);
#pragma GCC unroll 8
  for (int vectors = 1; vectors <= PANEL_VECTORS; ++vectors) {
    const int some = columns - (vectors - 1) * LANES;
    if (some > 0 && some <= LANES) NAME(run_block)(call, block, rows, vectors, 1, some);
  }
}

#define DEFINE_TAIL(rows)                                                                 \
  static __attribute__((noinline)) void NAME(tail_##rows)(const eyas_uk_contract_t* call, \
                                                          eyas_uk_block_t block) {        \
    NAME(tail)(call, block, rows);                                                        \
  }
TAILS(DEFINE_TAIL)

#define TAIL_ENTRY(rows) [rows] = NAME(tail_##rows),
static const eyas_uk_block_fn_t NAME(tails)[TAIL_ROWS + 1] = {TAILS(TAIL_ENTRY)};

// Rows are cut into as few and as even pieces as there are blocks for, then each piece into blocks
// of panels: so the panels, which are the larger operand and may come from memory, are read once
// when the rows fit into one block.
void NAME(contract)(const eyas_uk_contract_t* given) {
  const eyas_uk_contract_t merged = eyas_uk_with_merged_loops(given), *call = &merged;
  static const uint8_t panels_for_rows[] = {1, PANELS_FOR_ROWS};
  const size_t whole = call->columns / EYAS_VMVX_PANEL, tail = call->columns % EYAS_VMVX_PANEL;
  for (size_t row = 0, rows; row < call->rows; row += rows) {
    const size_t left = call->rows - row, pieces = (left + MAX_ROWS - 1) / MAX_ROWS;
    rows = (left + pieces - 1) / pieces;
    while (!NAME(blocks)[1][rows]) --rows;
    eyas_uk_block_t block = {(char*)((ACC*)call->acc + row * call->columns),
                             call->a + (int64_t)row * call->a_row_bytes, call->b, 0, 0};
    for (size_t panel = 0; panel < whole;) {
      size_t count = panels_for_rows[rows];
      while (count > whole - panel || !NAME(blocks)[count][rows]) --count;
      eyas_uk_run_loops(call, block, (int64_t)count, NAME(blocks)[count][rows]);
      panel += count;
      block.acc += count * EYAS_VMVX_PANEL * sizeof(ACC);
      block.b += (int64_t)count * call->b_panel_bytes;
    }
    for (size_t done = 0, some; tail && done < rows; done += some) {
      some = rows - done < TAIL_ROWS ? rows - done : TAIL_ROWS;
      while (!NAME(tails)[some]) --some;
      eyas_uk_run_loops(call, block, 1, NAME(tails)[some]);
      block.acc += some * call->columns * sizeof(ACC);
      block.a += (int64_t)some * call->a_row_bytes;
    }
  }
}

#undef NAME
#undef OPERAND
#undef OPERAND_BYTES
#undef hold
#undef load_row
#undef load_lanes
#undef load_some
#undef multiply_add
#undef OFFSET_ROW
#undef ADD_OFFSET
#undef TAKE_OFFSET
#undef BLOCKS
#undef MAX_ROWS
#undef PANELS_FOR_ROWS
#undef TAILS
#undef TAIL_ROWS
#undef PANEL_VECTORS
#undef DEFINE_BLOCK
#undef BLOCK_ENTRY
#undef DEFINE_TAIL
#undef TAIL_ENTRY
