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
//   OFFSET_ROW, subtract(acc, offset)   where the instruction wants rows with an offset: the product
//                     of this row with the lanes is subtracted in the end
//   BLOCKS(X)         X(rows, panels) for every block: with one panel from 1 to MAX_ROWS rows; with
//                     more panels from 1 row on
//   PANELS_FOR_ROWS   how many panels a block of 1, 2, ... MAX_ROWS rows has at most
//   TAILS(X), TAIL_ROWS   X(rows) for blocks in a panel that is not whole
#include "ukernel/products.h"

#ifndef EYAS_UKERNEL_PRODUCTS_BLOCKS_H_
#define EYAS_UKERNEL_PRODUCTS_BLOCKS_H_

typedef struct eyas_uk_block_t {
  char* acc;
  const char *a, *b;
} eyas_uk_block_t;

// Blocks for types that matter less: few of them, so that the code stays small.
#define EYAS_UK_BLOCKS_SMALL(X)                                                              \
  X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(1, 4) X(2, 4) X(3, 4) X(4, 4)
#define EYAS_UK_TAILS_SMALL(X) X(1) X(2) X(3) X(4)

typedef void (*eyas_uk_block_fn_t)(const eyas_uk_contract_t*, eyas_uk_block_t);

// The same steps in the same order with fewer loops: one that runs once, or whose steps go on where
// those inside it end, joins them.
EYAS_UK_INLINE eyas_uk_contract_t eyas_uk_with_merged_loops(const eyas_uk_contract_t* call) {
  eyas_uk_contract_t merged = *call;
  eyas_uk_loop_t *inner = &merged.loops[2], *outer = &merged.loops[1];
  for (int level = 0; level < 2; ++level) {
    int64_t steps;
    if (inner->extent == 1) {
      *inner = *outer;
    } else if (outer->a_bytes == inner->extent * inner->a_bytes &&
               outer->b_bytes == inner->extent * inner->b_bytes && inner->extent > 0 &&
               outer->extent > 0 && !__builtin_mul_overflow(inner->extent, outer->extent, &steps)) {
      inner->extent = steps;
    } else if (outer->extent != 1) {
      break;
    }
    *outer = merged.loops[0];
    merged.loops[0] = (eyas_uk_loop_t){1, 0, 0};
  }
  return merged;
}

// Reads a byte and forgets it.
EYAS_UK_INLINE void eyas_uk_touch(const char* p) {
  char byte = *(const volatile char*)p;
  (void)byte;
}

#endif  // EYAS_UKERNEL_PRODUCTS_BLOCKS_H_

#define PANEL_VECTORS ((int)EYAS_VMVX_PANEL / LANES)

EYAS_UK_INLINE OPERAND NAME(lanes_at)(const char* const* bases, int v, int64_t step, int some) {
  const int offset = v % PANEL_VECTORS * OPERAND_BYTES;
  const char* p = eyas_uk_at(bases, v / PANEL_VECTORS, step) + offset;
  return some ? load_some(p, some) : load_lanes(p);
}

// `some`: how many columns the last vector has when it is not whole, else 0. Always inlined with
// constant rows and vectors, so that the arrays become registers.
EYAS_UK_INLINE void NAME(run_block)(const eyas_uk_contract_t* call, eyas_uk_block_t block,
                                    const int rows, const int vectors, const int some) {
  enum { MOST = 32, AHEAD = 128, CHUNK = 64 };
  VECTOR acc[MOST][MOST];
  const size_t columns = call->columns;
#pragma GCC unroll 32
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 32
    for (int v = 0; v < vectors; ++v) {
      const ACC* p = (const ACC*)block.acc + r * columns + v * LANES;
      acc[r][v] = some && v == vectors - 1 ? load_acc_some(p, some) : load_acc(p);
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
  for (int64_t i = 0; i < call->loops[0].extent; ++i) {
    for (int64_t j = 0; j < call->loops[1].extent; ++j) {
      const char *a[MOST], *b[MOST];
      a[0] = block.a + i * call->loops[0].a_bytes + j * call->loops[1].a_bytes;
      b[0] = block.b + i * call->loops[0].b_bytes + j * call->loops[1].b_bytes;
#pragma GCC unroll 32
      for (int n = 1; n * 3 < rows; ++n) {
        a[n] = a[n - 1] + 3 * row_step;
        EYAS_UK_OPAQUE(a[n], "r");
      }
#pragma GCC unroll 32
      for (int n = 1; n * 3 < panels; ++n) {
        b[n] = b[n - 1] + 3 * panel_step;
        EYAS_UK_OPAQUE(b[n], "r");
      }
      // Panels may come from memory. Each chunk of steps asks for what is read AHEAD steps later, the
      // last ones for the beginning of the panels behind this block.
      const int is_last = i == call->loops[0].extent - 1 && j == call->loops[1].extent - 1;
      for (int64_t left = call->loops[2].extent, steps; left > 0; left -= steps) {
        steps = left % CHUNK ? left % CHUNK : CHUNK;
        int64_t ahead = AHEAD * b_step;
        if (left > AHEAD) {
          // Processors drop requests for pages whose translation they lack. Several panels find their
          // translations side by side; one panel alone has its next page touched.
          if (panels == 1) eyas_uk_touch(b[0] + ahead);
        } else if (is_last) {
          ahead = panels * panel_step - (b[0] - block.b) + (AHEAD - left) * b_step;
        }
        const char* q[MOST];
#pragma GCC unroll 32
        for (int n = 0; n * 3 < panels; ++n) {
          q[n] = b[n] + ahead;
          EYAS_UK_OPAQUE(q[n], "r");
        }
        for (int64_t k = steps; k > 0; --k) {
#pragma GCC unroll 32
          for (int v = 0; v < vectors; v += PANEL_VECTORS) {
            __builtin_prefetch(eyas_uk_at(q, v / PANEL_VECTORS, panel_step), 0, 2);
          }
          // Of rows and lanes, the fewer are held, the others pass by.
          if (rows < vectors) {
            OPERAND row[MOST];
#pragma GCC unroll 32
            for (int r = 0; r < rows; ++r) row[r] = load_row(eyas_uk_at(a, r, row_step));
#pragma GCC unroll 32
            for (int v = 0; v < vectors; ++v) {
              OPERAND lanes = NAME(lanes_at)(b, v, panel_step, v == vectors - 1 ? some : 0);
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
              lanes[v] = NAME(lanes_at)(b, v, panel_step, v == vectors - 1 ? some : 0);
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
            q[n] += b_step;
          }
        }
      }
    }
  }
  EYAS_UK_OPAQUE(block.acc, "r");  // else the places of all accumulators are kept through the loops
#pragma GCC unroll 32
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 32
    for (int v = 0; v < vectors; ++v) {
      ACC* p = (ACC*)block.acc + r * columns + v * LANES;
      if (some && v == vectors - 1) {
        store_acc_some(p, some, TAKE_OFFSET(v, acc[r][v]));
      } else {
        store_acc(p, TAKE_OFFSET(v, acc[r][v]));
      }
    }
  }
}

#define DEFINE_BLOCK(rows, panels)                                                                \
  static __attribute__((noinline)) void NAME(block_##rows##_##panels)(                            \
      const eyas_uk_contract_t* call, eyas_uk_block_t block) {                                    \
    NAME(run_block)(call, block, rows, panels * PANEL_VECTORS, 0);                                \
  }
BLOCKS(DEFINE_BLOCK)

#define BLOCK_ENTRY(rows, panels) [panels][rows] = NAME(block_##rows##_##panels),
static const eyas_uk_block_fn_t NAME(blocks)[][MAX_ROWS + 1] = {BLOCKS(BLOCK_ENTRY)};

// A panel that is not whole: as many vectors as there are columns, the last perhaps in part.
EYAS_UK_INLINE void NAME(tail)(const eyas_uk_contract_t* call, eyas_uk_block_t block,
                               const int rows) {
  const int columns = (int)(call->columns % EYAS_VMVX_PANEL), some = columns % LANES;
#pragma GCC unroll 4
  for (int vectors = 1; vectors <= PANEL_VECTORS; ++vectors) {
    if ((columns + LANES - 1) / LANES != vectors) continue;
    if (some) {
      NAME(run_block)(call, block, rows, vectors, some);
    } else {
      NAME(run_block)(call, block, rows, vectors, 0);
    }
  }
}

#define DEFINE_TAIL(rows)                                                                         \
  static __attribute__((noinline)) void NAME(tail_##rows)(const eyas_uk_contract_t* call,         \
                                                          eyas_uk_block_t block) {                \
    NAME(tail)(call, block, rows);                                                                \
  }
TAILS(DEFINE_TAIL)

#define TAIL_ENTRY(rows) [rows] = NAME(tail_##rows),
static const eyas_uk_block_fn_t NAME(tails)[TAIL_ROWS + 1] = {TAILS(TAIL_ENTRY)};

// Rows are cut into as few and as even pieces as blocks allow, then each piece into blocks of
// panels: so the panels, which are the larger operand and may come from memory, are read once when
// the rows fit into one block.
void NAME(contract)(const eyas_uk_contract_t* given) {
  const eyas_uk_contract_t merged = eyas_uk_with_merged_loops(given), *call = &merged;
  static const uint8_t panels_for_rows[] = {1, PANELS_FOR_ROWS};
  const size_t whole = call->columns / EYAS_VMVX_PANEL, tail = call->columns % EYAS_VMVX_PANEL;
  const size_t pieces = (call->rows + MAX_ROWS - 1) / MAX_ROWS;
  char* acc = call->acc;
  for (size_t piece = 0, row = 0; piece < pieces; ++piece) {
    const size_t rows = (call->rows - row + pieces - piece - 1) / (pieces - piece);
    const char* a = call->a + (int64_t)row * call->a_row_bytes;
    for (size_t panel = 0; panel < whole;) {
      size_t count = panels_for_rows[rows];
      while (count > whole - panel || !NAME(blocks)[count][rows]) --count;
      NAME(blocks)[count][rows](
          call, (eyas_uk_block_t){acc + (row * call->columns + panel * EYAS_VMVX_PANEL) * sizeof(ACC),
                                  a, call->b + (int64_t)panel * call->b_panel_bytes});
      panel += count;
    }
    for (size_t done = 0; tail && done < rows;) {
      const size_t some = rows - done < TAIL_ROWS ? rows - done : TAIL_ROWS;
      const size_t place = (row + done) * call->columns + whole * EYAS_VMVX_PANEL;
      NAME(tails)[some](call, (eyas_uk_block_t){acc + place * sizeof(ACC),
                                                a + (int64_t)done * call->a_row_bytes,
                                                call->b + (int64_t)whole * call->b_panel_bytes});
      done += some;
    }
    row += rows;
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
