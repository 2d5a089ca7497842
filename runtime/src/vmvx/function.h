// A decoded function, and what one worker needs to run it.
#ifndef EYAS_VMVX_FUNCTION_H_
#define EYAS_VMVX_FUNCTION_H_

#include "eyas_vmvx_isa.h"
#include "module/reader.h"
#include "vmvx/vmvx.h"

#define EYAS_VMVX_MAX_BINDINGS 256u
#define EYAS_VMVX_MAX_CONSTANTS 256u
#define EYAS_VMVX_MAX_CODE_BYTES (1u << 24)
#define EYAS_VMVX_MAX_LOCALS 1024u
#define EYAS_VMVX_MAX_LOCAL_BYTES ((uint64_t)1 << 30)

// Tile registers that the interpreter uses for operands that must be repeated or moved first.
#define EYAS_VMVX_SPARE_TILES 3u
// 1024 elements of 8 bytes, and 9 cache lines: tiles start in different sets of a cache whose ways
// are 4 KiB, else the first rows of all tiles would compete for the same few lines.
#define EYAS_VMVX_TILE_STRIDE (EYAS_VMVX_MAX_ELEMENTS * 8u + 9u * 64u)
// Tile operands in decoded code are offsets in units of 64 bytes.
#define EYAS_VMVX_TILE_SHIFT 6

// One instruction is a handler, then its 16-bit operands four to a cell, then 64-bit ones. Scalar
// registers are byte offsets into the bank.
typedef union eyas_vmvx_cell_t {
  const void* handler;
  uint16_t u[4];
  int64_t i;
  const union eyas_vmvx_cell_t* target;
  void (*function)(void);  // a microkernel, cast to its type
  const void* pointer;
} eyas_vmvx_cell_t;

// Where an instruction is in cells and in bytes of the file, for messages.
typedef struct eyas_vmvx_place_t {
  uint32_t cell, byte;
} eyas_vmvx_place_t;

struct eyas_vmvx_function_t {
  const char* name;
  uint32_t scalar_count;
  uint32_t tile_count;
  uint32_t binding_count;
  uint32_t constant_count;
  uint64_t writes[EYAS_VMVX_MAX_BINDINGS / 64];  // bit i % 64 of i / 64: binding i is written
  const char* data;                              // 64-byte aligned
  uint32_t data_bytes;
  eyas_vmvx_cell_t* cells;
  uint32_t cell_count;
  uint32_t entry;          // behind the constants that `initial` has
  const int64_t* initial;  // the scalar registers at entry
  const eyas_vmvx_place_t* places;
  uint32_t place_count;
};

struct eyas_vmvx_executable_t {
  eyas_bump_t memory;
  uint32_t function_count;
  eyas_vmvx_function_t* functions;
};

typedef struct eyas_vmvx_buffer_t {
  char* base;
  uint64_t size;
  uint64_t write_size;  // 0 when it may only be read
  void* heap;           // to be freed: local memory that did not fit into the scratch
  uint64_t capacity;    // of local memory: what it can be taken for again
} eyas_vmvx_buffer_t;

typedef struct eyas_vmvx_frame_t {
  const eyas_vmvx_function_t* function;
  const eyas_dispatch_t* dispatch;
  const eyas_workgroup_t* workgroup;
  int64_t* scalars;
  char* tiles;
  eyas_vmvx_buffer_t* buffers;  // bindings, data, local memory
  uint32_t buffer_count;
  uint64_t* released;  // a bit for each local buffer that was given back before later ones
  char* local_at;      // the free part of the scratch
  char* local_end;
  uint64_t local_heap_bytes;
  uint64_t budget;  // steps left
  size_t rows, columns;
  size_t counts[4];  // elements of each extent
} eyas_vmvx_frame_t;

// Reasons why a workgroup ends early. A code is -(reason + byte / 2 * 64).
enum {
  EYAS_VMVX_FAIL_NONE,
  EYAS_VMVX_FAIL_BOUNDS,
  EYAS_VMVX_FAIL_READ_ONLY,
  EYAS_VMVX_FAIL_SHAPE,
  EYAS_VMVX_FAIL_DISTINCT,
  EYAS_VMVX_FAIL_INDEX,
  EYAS_VMVX_FAIL_LOCAL,
  EYAS_VMVX_FAIL_MEMORY,
  EYAS_VMVX_FAIL_BUDGET,
  EYAS_VMVX_FAIL_DISPATCH,
  EYAS_VMVX_FAIL_DATA,  // becomes EYAS_ERROR_BAD_DATA
  EYAS_VMVX_FAIL_COUNT,
};

// Decodes and verifies the code of a function whose header is filled in. Memory is of `memory`.
eyas_status_t eyas_vmvx_decode(eyas_bump_t* memory, const eyas_vmvx_settings_t* settings,
                               eyas_vmvx_function_t* function, const uint8_t* code,
                               uint32_t code_bytes);

// Runs one workgroup; a reason, and the instruction at fault. With NULL gives nothing to run, and
// `out_handlers` is the address of each handler.
int eyas_vmvx_interpret(eyas_vmvx_frame_t* frame, const eyas_vmvx_cell_t** out_at,
                        const void* const** out_handlers);

#endif  // EYAS_VMVX_FUNCTION_H_
