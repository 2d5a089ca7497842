// The ABI between a CPU executable and the runtime. Shared by compiler and loader; versioned.
//
// A CPU executable is a position-independent ELF image. Each export is one function that runs one
// workgroup of one dispatch. It must not keep state, and it may call only the symbols that the
// loader offers (src/hal/cpu/imports.c).
#ifndef EYAS_EXECUTABLE_H_
#define EYAS_EXECUTABLE_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Bumped whenever a field of the structs below moves or changes its meaning. The linker exports the
// number that it was built with as the absolute symbol `eyas_executable_abi`.
#define EYAS_EXECUTABLE_ABI_VERSION 2

// What all workgroups of one dispatch share. Read-only for the executable.
typedef struct eyas_dispatch_t {
  void* const* bindings;          // base pointer of each binding, 64-byte aligned unless imported
  const uint64_t* binding_bytes;  // size of each binding's range
  const int64_t* constants;       // push constants: dynamic dimensions, offsets, scalars
  uint32_t binding_count;
  uint32_t constant_count;
  uint32_t workgroup_count[3];  // the grid
  uint32_t error_tag;           // which dispatch this is, as the error word says it
  uint32_t* error;              // the submission's error word
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

// Runs one workgroup. What goes wrong in it is told by the error word.
typedef void (*eyas_dispatch_fn_t)(const eyas_dispatch_t*, const eyas_workgroup_t*);

// The error word of a submission: 0 while all is well; then the code of the first error in its low
// byte, and above it the number of the command whose workgroup reported it. 32 bits and one
// compare-and-swap are what every kind of device has. The device looks at it between waves and when
// the work is done, and fails the submission.
#define EYAS_ERROR_CODE_BITS 8

// Codes. A value in the data is not allowed, such as an index out of range. Memory stays safe:
// reads at computed positions are clamped.
#define EYAS_ERROR_BAD_DATA 1
// Bytecode did what it may not; the interpreter knows what and where.
#define EYAS_ERROR_BYTECODE 2
// From here on: a failure of the compiled code's own.
#define EYAS_ERROR_FIRST_OTHER 16

// Reports an error of a workgroup; only the first one counts. `code` is 1 to 255. 1 for the first.
static inline int eyas_dispatch_report(const eyas_dispatch_t* dispatch, uint32_t code) {
  uint32_t none = 0;
  return __atomic_compare_exchange_n(dispatch->error, &none, dispatch->error_tag | code, 0,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

#ifdef __cplusplus
}
#endif

#endif  // EYAS_EXECUTABLE_H_
