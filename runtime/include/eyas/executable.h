// The ABI between a CPU executable and the runtime. Shared by compiler and loader; versioned.
//
// A CPU executable is a position-independent ELF image. Each export is one function that runs one
// workgroup of one dispatch. It must not keep state, and it may call only the symbols that the
// loader offers (src/hal/local/imports.c).
#ifndef EYAS_EXECUTABLE_H_
#define EYAS_EXECUTABLE_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Bumped whenever a field of the structs below moves or changes its meaning. The linker exports the
// number that it was built with as the absolute symbol `eyas_executable_abi`.
#define EYAS_EXECUTABLE_ABI_VERSION 1

// What all workgroups of one dispatch share. Read-only for the executable.
typedef struct eyas_dispatch_t {
  void* const* bindings;          // base pointer of each binding, 64-byte aligned unless imported
  const uint64_t* binding_bytes;  // size of each binding's range
  const int64_t* constants;       // push constants: dynamic dimensions, offsets, scalars
  uint32_t binding_count;
  uint32_t constant_count;
  uint32_t workgroup_count[3];  // the grid
  uint32_t reserved;
} eyas_dispatch_t;

// What every device gives each worker at least.
#define EYAS_MIN_SCRATCH_BYTES (512u * 1024u)

// What one workgroup knows of itself.
typedef struct eyas_workgroup_t {
  uint32_t id[3];   // position in the grid
  uint32_t worker;  // which worker thread runs it, from 0
  void* scratch;    // memory of this worker alone, 64-byte aligned
  uint64_t scratch_bytes;
} eyas_workgroup_t;

// What a workgroup returns when a value in the data is not allowed, such as an index out of range.
// Memory stays safe: reads at computed positions are clamped.
#define EYAS_WORKGROUP_BAD_DATA 1

// Returns 0 when the workgroup succeeded; anything else fails the submission.
typedef int32_t (*eyas_dispatch_fn_t)(const eyas_dispatch_t*, const eyas_workgroup_t*);

#ifdef __cplusplus
}
#endif

#endif  // EYAS_EXECUTABLE_H_
