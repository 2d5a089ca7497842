// Windows over rows of channels, for any instruction set: some rows of one vector of columns stay
// in registers while the loops run, so that a loaded weight serves all of them. Included once for
// each operation, after these definitions, which are undefined at the end (the vector's stay):
//
//   NAME(x)                x with a suffix of the operation
//   combine(acc, a, b)     the operation; b is read when HAS_WEIGHTS is 1
//   WINDOW_VECTOR, WINDOW_LANES, WINDOW_ELEMENT
//   window_load(p), window_store(p, v), window_load_some(p, n), window_store_some(p, n, v)
#include "ukernel/products.h"

#ifndef EYAS_UKERNEL_PRODUCTS_WINDOWS_H_
#define EYAS_UKERNEL_PRODUCTS_WINDOWS_H_
// Ways to cut rows into blocks; the first that fits.
enum { EYAS_UK_WINDOW_ROWS = 8 };
#endif  // EYAS_UKERNEL_PRODUCTS_WINDOWS_H_

EYAS_UK_INLINE void NAME(run_window)(const eyas_uk_window_t* call, size_t first, size_t column,
                                     const int rows, const int some) {
  const int64_t row_step = call->a_row_bytes, place = (int64_t)(column * sizeof(WINDOW_ELEMENT));
  WINDOW_ELEMENT* tile = (WINDOW_ELEMENT*)call->acc + first * call->columns + column;
  WINDOW_VECTOR acc[EYAS_UK_WINDOW_ROWS];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    const WINDOW_ELEMENT* p = tile + (size_t)r * call->columns;
    acc[r] = some ? window_load_some(p, some) : window_load(p);
  }
  for (int64_t i = 0; i < call->loops[0].extent; ++i) {
    const char* a[EYAS_UK_WINDOW_ROWS];
    a[0] = call->a + (int64_t)first * row_step + place + i * call->loops[0].a_bytes;
#pragma GCC unroll 8
    for (int n = 1; n * 3 < rows; ++n) {
      a[n] = a[n - 1] + 3 * row_step;
      EYAS_UK_OPAQUE(a[n], "r");
    }
    const char* b = call->b + place + i * call->loops[0].b_bytes;
    for (int64_t j = 0; j < call->loops[1].extent; ++j) {
#if HAS_WEIGHTS
      const WINDOW_VECTOR weights = some ? window_load_some(b, some) : window_load(b);
#endif
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        const char* p = eyas_uk_at(a, r, row_step);
        const WINDOW_VECTOR value = some ? window_load_some(p, some) : window_load(p);
        acc[r] = combine(acc[r], value, weights);
      }
#pragma GCC unroll 8
      for (int n = 0; n * 3 < rows; ++n) a[n] += call->loops[1].a_bytes;
      b += call->loops[1].b_bytes;
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    WINDOW_ELEMENT* p = tile + (size_t)r * call->columns;
    if (some) {
      window_store_some(p, some, acc[r]);
    } else {
      window_store(p, acc[r]);
    }
  }
}

static void NAME(window)(const eyas_uk_window_t* call) {
  const int some = (int)(call->columns % WINDOW_LANES);
  const size_t whole = call->columns - (size_t)some;
  for (size_t first = 0; first < call->rows;) {
    const size_t left = call->rows - first, rows = left >= 8   ? 8
                                                   : left >= 4 ? 4
                                                   : left >= 2 ? 2
                                                               : 1;
    for (size_t column = 0; column < whole; column += WINDOW_LANES) {
      switch (rows) {
        case 8:
          NAME(run_window)(call, first, column, 8, 0);
          break;
        case 4:
          NAME(run_window)(call, first, column, 4, 0);
          break;
        case 2:
          NAME(run_window)(call, first, column, 2, 0);
          break;
        default:
          NAME(run_window)(call, first, column, 1, 0);
      }
    }
    for (size_t row = first; some && row < first + rows; ++row) {
      NAME(run_window)(call, row, whole, 1, some);
    }
    first += rows;
  }
}

#undef NAME
#undef combine
#undef HAS_WEIGHTS
