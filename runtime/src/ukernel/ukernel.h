// Microkernels: what the VMVX interpreter calls for a block of unit tiles. No libc beyond memory
// and math functions, no state, no allocation. Tables have one entry for each instruction of a
// family (src/eyas/module/vmvx_isa.py) and are made once per instruction set of the CPU; the
// portable ones in plain C are the reference that tests hold the others to.
//
// Callers have checked every range. Tiles are 64-byte aligned, packed row by row, and a result may
// be the very tile that an operand is, never a part of it.
#ifndef EYAS_UKERNEL_UKERNEL_H_
#define EYAS_UKERNEL_UKERNEL_H_

#include <stddef.h>
#include <stdint.h>

#include "eyas_vmvx_isa.h"

typedef void (*eyas_uk_unary_t)(void* dst, const void* a, size_t count);
typedef void (*eyas_uk_binary_t)(void* dst, const void* a, const void* b, size_t count);
typedef void (*eyas_uk_ternary_t)(void* dst, const void* a, const void* b, const void* c,
                                  size_t count);

// An instruction with two operands: both run along, or one of them is a single element. `vs` and
// `sv` are NULL where they would be no faster than a tile of copies.
typedef struct eyas_uk_binary_set_t {
  eyas_uk_binary_t vv, vs, sv;
} eyas_uk_binary_set_t;

// [0]: over the rows, one result per column. [1]: over the columns, one result per row.
typedef void (*eyas_uk_reduce_t)(void* dst, const void* a, size_t rows, size_t columns);

// Memory to tile and back, elements `row_bytes` and `column_bytes` apart (0 and negative allowed).
typedef void (*eyas_uk_load_t)(void* tile, const char* memory, size_t rows, size_t columns,
                               int64_t row_bytes, int64_t column_bytes);
typedef void (*eyas_uk_store_t)(const void* tile, char* memory, size_t rows, size_t columns,
                                int64_t row_bytes, int64_t column_bytes);
// dst[i] = memory[index[i]]; indices have been checked.
typedef void (*eyas_uk_gather_t)(void* dst, const char* memory, const int64_t* index, size_t count);
// dst[i] = condition[i] ? a[i] : b[i]
typedef void (*eyas_uk_pick_t)(void* dst, const int8_t* condition, const void* a, const void* b,
                               size_t count);
typedef void (*eyas_uk_rows_t)(float* dst, const float* a, size_t rows, size_t columns,
                               float epsilon);

// Everything that works on elements: `elements_*.c`.
typedef struct eyas_uk_elements_t {
  const char* name;
  eyas_uk_unary_t unary[EYAS_VMVX_UNARY_COUNT][EYAS_VMVX_TYPE_COUNT];
  eyas_uk_unary_t iunary[EYAS_VMVX_IUNARY_COUNT][EYAS_VMVX_TYPE_COUNT];
  eyas_uk_binary_set_t binary[EYAS_VMVX_BINARY_COUNT][EYAS_VMVX_TYPE_COUNT];
  eyas_uk_binary_set_t ibinary[EYAS_VMVX_IBINARY_COUNT][EYAS_VMVX_TYPE_COUNT];
  eyas_uk_binary_set_t compare[EYAS_VMVX_COMPARE_COUNT][EYAS_VMVX_TYPE_COUNT];
  eyas_uk_binary_set_t icompare[EYAS_VMVX_ICOMPARE_COUNT][EYAS_VMVX_TYPE_COUNT];
  eyas_uk_ternary_t fma[EYAS_VMVX_TYPE_COUNT];
  eyas_uk_reduce_t reduce[EYAS_VMVX_REDUCE_COUNT][EYAS_VMVX_TYPE_COUNT][2];
  eyas_uk_reduce_t ireduce[EYAS_VMVX_IREDUCE_COUNT][EYAS_VMVX_TYPE_COUNT][2];
  eyas_uk_unary_t cast[EYAS_VMVX_CAST_COUNT];
  eyas_uk_load_t load[EYAS_VMVX_MEMORY_COUNT];
  eyas_uk_store_t store[EYAS_VMVX_MEMORY_COUNT];
  eyas_uk_gather_t gather[EYAS_VMVX_MEMORY_COUNT];
  eyas_uk_pick_t pick[4];  // elements of 1, 2, 4, 8 bytes
  eyas_uk_rows_t softmax, normalize;
} eyas_uk_elements_t;

typedef struct eyas_uk_loop_t {
  int64_t extent, a_bytes, b_bytes;
} eyas_uk_loop_t;

// acc[r, c] += sum over the loops, the last the innermost, of a[r] * b[c].
typedef struct eyas_uk_contract_t {
  void* acc;  // a tile, rows x columns
  size_t rows, columns;
  const char* a;
  int64_t a_row_bytes;
  const char* b;  // panels of 16 columns; the last may be narrower, and is not read beyond
  int64_t b_panel_bytes;
  eyas_uk_loop_t loops[3];
} eyas_uk_contract_t;

// acc[r, c] = acc[r, c] (op) a[r, c] * b[c] over the loops. `b` is read by muladd alone.
typedef struct eyas_uk_window_t {
  void* acc;
  size_t rows, columns;
  const char* a;
  int64_t a_row_bytes;
  const char* b;
  eyas_uk_loop_t loops[2];
} eyas_uk_window_t;

typedef void (*eyas_uk_contract_fn_t)(const eyas_uk_contract_t*);
typedef void (*eyas_uk_window_fn_t)(const eyas_uk_window_t*);

// Sums of products and of windows: `products_*.c`.
typedef struct eyas_uk_products_t {
  const char* name;
  unsigned width;  // unit tiles per block that are best here
  eyas_uk_contract_fn_t contract[EYAS_VMVX_CONTRACT_COUNT];
  eyas_uk_window_fn_t window[EYAS_VMVX_WINDOW_COUNT][EYAS_VMVX_TYPE_COUNT];
} eyas_uk_products_t;

// The best for this CPU, or by name ("portable", "avx2", "avx512", "neon", "rvv"...); NULL when
// this CPU cannot run it.
const eyas_uk_elements_t* eyas_uk_elements(const char* name);
const eyas_uk_products_t* eyas_uk_products(const char* name);

#endif  // EYAS_UKERNEL_UKERNEL_H_
