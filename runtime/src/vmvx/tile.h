// Tile instructions as functions: what the interpreter does not do in its own loop. Each gets the
// instruction and gives a reason of failure, 0 for none.
#ifndef EYAS_VMVX_TILE_H_
#define EYAS_VMVX_TILE_H_

#include "ukernel/ukernel.h"
#include "vmvx/function.h"

// Operand `n` of an instruction, in 16-bit units.
static inline uint16_t eyas_vmvx_unit(const eyas_vmvx_cell_t* at, int n) {
  return at[1 + n / 4].u[n % 4];
}

static inline int64_t* eyas_vmvx_scalar(const eyas_vmvx_frame_t* f, uint16_t unit) {
  return (int64_t*)((char*)f->scalars + unit);
}

static inline char* eyas_vmvx_tile(const eyas_vmvx_frame_t* f, uint16_t unit) {
  return f->tiles + ((size_t)unit << EYAS_VMVX_TILE_SHIFT);
}

int eyas_vmvx_set_shape(eyas_vmvx_frame_t* f, int64_t rows, int64_t columns);

int eyas_vmvx_tile_load(eyas_vmvx_frame_t* f, const eyas_vmvx_cell_t* at);
int eyas_vmvx_tile_load_inside(eyas_vmvx_frame_t* f, const eyas_vmvx_cell_t* at);
int eyas_vmvx_tile_store(eyas_vmvx_frame_t* f, const eyas_vmvx_cell_t* at);
int eyas_vmvx_tile_gather(eyas_vmvx_frame_t* f, const eyas_vmvx_cell_t* at);
int eyas_vmvx_tile_load_rows(eyas_vmvx_frame_t* f, const eyas_vmvx_cell_t* at);
int eyas_vmvx_tile_contract(eyas_vmvx_frame_t* f, const eyas_vmvx_cell_t* at);
int eyas_vmvx_tile_window(eyas_vmvx_frame_t* f, const eyas_vmvx_cell_t* at);

void eyas_vmvx_tile_fill(void* tile, int64_t value, unsigned bytes, size_t count);
void eyas_vmvx_tile_index(eyas_vmvx_frame_t* f, const eyas_vmvx_cell_t* at);
void eyas_vmvx_tile_mov(eyas_vmvx_frame_t* f, const eyas_vmvx_cell_t* at);
void eyas_vmvx_tile_unary(eyas_vmvx_frame_t* f, const eyas_vmvx_cell_t* at);
void eyas_vmvx_tile_binary(eyas_vmvx_frame_t* f, const eyas_vmvx_cell_t* at);
void eyas_vmvx_tile_ternary(eyas_vmvx_frame_t* f, const eyas_vmvx_cell_t* at);
void eyas_vmvx_tile_reduce(eyas_vmvx_frame_t* f, const eyas_vmvx_cell_t* at);

// A tile of one extent repeated to another that has its dimensions.
void eyas_vmvx_tile_expand(const eyas_vmvx_frame_t* f, void* dst, const void* src, unsigned bytes,
                           int from, int to);
// Tile registers of the interpreter itself, 0 to 2.
char* eyas_vmvx_spare_tile(const eyas_vmvx_frame_t* f, unsigned index);

#endif  // EYAS_VMVX_TILE_H_
