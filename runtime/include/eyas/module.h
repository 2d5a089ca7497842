// Modules: `.eyas` files, opened by mapping them, checked before anything in them is believed.
//
// A module is the immutable part: signatures, verified bytecode, machine code, weights. To run it,
// make a context (vm.h). Everything that a module returns by pointer lives as long as the module.
#ifndef EYAS_MODULE_H_
#define EYAS_MODULE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eyas/status.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define EYAS_MAX_RANK 16

// Scalar types. Numbers are permanent: files use them.
typedef enum eyas_dtype_t {
  EYAS_DTYPE_F64 = 1,
  EYAS_DTYPE_F32 = 2,
  EYAS_DTYPE_F16 = 3,
  EYAS_DTYPE_BF16 = 4,
  EYAS_DTYPE_I1 = 5,  // one byte, 0 or 1
  EYAS_DTYPE_I8 = 6,
  EYAS_DTYPE_U8 = 7,
  EYAS_DTYPE_I16 = 8,
  EYAS_DTYPE_U16 = 9,
  EYAS_DTYPE_I32 = 10,
  EYAS_DTYPE_U32 = 11,
  EYAS_DTYPE_I64 = 12,
  EYAS_DTYPE_U64 = 13,
  EYAS_DTYPE_C64 = 14,
  EYAS_DTYPE_C128 = 15,
  // One element per byte; what is narrower than a byte is in its low bits.
  EYAS_DTYPE_F8E4M3FN = 16,
  EYAS_DTYPE_F8E4M3FNUZ = 17,
  EYAS_DTYPE_F8E5M2 = 18,
  EYAS_DTYPE_F8E5M2FNUZ = 19,
  EYAS_DTYPE_F8E8M0 = 20,
  EYAS_DTYPE_F4E2M1 = 21,
  EYAS_DTYPE_I4 = 22,
  EYAS_DTYPE_U4 = 23,
  EYAS_DTYPE_I2 = 24,
  EYAS_DTYPE_U2 = 25,
} eyas_dtype_t;

uint32_t eyas_dtype_bytes(uint32_t dtype);    // 0 for an unknown number
const char* eyas_dtype_name(uint32_t dtype);  // "f32"; "?" for an unknown number

// A symbolic dimension: min <= value <= max and value % multiple == 0.
typedef struct eyas_symbol_t {
  const char* name;
  int64_t min;
  int64_t max;
  int64_t multiple;
} eyas_symbol_t;

// A dimension: >= 0 a fixed size; -1 any size; -2 - n the function's symbol n.
typedef struct eyas_tensor_spec_t {
  const char* name;
  uint32_t dtype;
  uint32_t rank;
  const int64_t* dims;
} eyas_tensor_spec_t;

typedef struct eyas_signature_t {
  const char* name;
  const eyas_symbol_t* symbols;
  const eyas_tensor_spec_t* args;
  const eyas_tensor_spec_t* results;
  uint32_t symbol_count;
  uint32_t arg_count;
  uint32_t result_count;
} eyas_signature_t;

// A weight. `external` is "" for one inside the module; otherwise the name of a file beside it, and
// `key` the tensor's name in that file.
typedef struct eyas_parameter_t {
  const char* name;
  const char* external;
  const char* key;
  const int64_t* dims;
  uint32_t rank;
  uint32_t dtype;
  uint64_t offset;  // in the module's parameters, 64-byte aligned
  uint64_t bytes;
} eyas_parameter_t;

#define EYAS_STATE_ZEROS UINT32_MAX

// A variable that lives in a context and that calls change: its name, type, and the parameter that
// holds its first value, or EYAS_STATE_ZEROS.
typedef struct eyas_state_t {
  const char* name;
  const int64_t* dims;
  uint32_t rank;
  uint32_t dtype;
  uint32_t parameter;
  uint64_t bytes;
} eyas_state_t;

typedef struct eyas_module_t eyas_module_t;
typedef struct eyas_hal_device_t eyas_hal_device_t;  // hal.h

// One of the programs of a fat module, which holds a model compiled for several targets.
typedef struct eyas_variant_t {
  const char* name;    // its folder in the file: "llvm-cpu-x86_64-x86-64-v3"
  const char* target;  // what it was compiled for: "llvm-cpu:x86_64:x86-64-v3"
} eyas_variant_t;

typedef struct eyas_module_options_t {
  // Check the digest of the weights whatever their size. Off, only up to 16 MiB of them are
  // checked, so that opening a large module does not read it.
  bool verify_parameters;
  // Do not check digests at all. For fuzzers, which must reach the parsers behind them.
  bool skip_digests;
  // Which variant of a fat module to open: its name, its target, or a part of those that no other
  // has. NULL: the first, which is the best, that `device` can run; without a device, the first.
  // A module of one program takes neither.
  const char* variant;
  eyas_hal_device_t* device;  // borrowed for the call
} eyas_module_options_t;

// `options` may be NULL for the defaults. Fails with NOT_FOUND, CORRUPT or INCOMPATIBLE.
eyas_status_t eyas_module_open(const char* path, const eyas_module_options_t* options,
                               eyas_module_t** out_module);

// A module in memory, which must be 64-byte aligned, stay unchanged, and live until `release` (may
// be NULL) is called with `user`. When this fails `release` is not called.
eyas_status_t eyas_module_from_memory(const void* data, size_t length,
                                      const eyas_module_options_t* options,
                                      void (*release)(void* user), void* user,
                                      eyas_module_t** out_module);

eyas_module_t* eyas_module_retain(eyas_module_t* module);
void eyas_module_release(eyas_module_t* module);

uint32_t eyas_module_function_count(const eyas_module_t* module);
// NULL beyond the last.
const eyas_signature_t* eyas_module_function(const eyas_module_t* module, uint32_t ordinal);
eyas_status_t eyas_module_lookup(const eyas_module_t* module, const char* name,
                                 uint32_t* out_ordinal);

uint32_t eyas_module_parameter_count(const eyas_module_t* module);
// NULL beyond the last.
const eyas_parameter_t* eyas_module_parameter(const eyas_module_t* module, uint32_t ordinal);

uint32_t eyas_module_state_count(const eyas_module_t* module);
// NULL beyond the last.
const eyas_state_t* eyas_module_state(const eyas_module_t* module, uint32_t ordinal);

// Gives an external parameter its memory, which must be `bytes` of the parameter long and outlive
// the module. Do this before a context is made.
eyas_status_t eyas_module_bind_parameter(eyas_module_t* module, uint32_t ordinal, const void* data,
                                         uint64_t length);

// The variants of a fat module, best first, and which of them was opened; none and NULL for a
// module of one program.
uint32_t eyas_module_variant_count(const eyas_module_t* module);
const eyas_variant_t* eyas_module_variant(const eyas_module_t* module, uint32_t ordinal);
const eyas_variant_t* eyas_module_opened_variant(const eyas_module_t* module);

// The formats of the module's code ("elf-x86_64", "spirv"), by executable: of the opened program,
// or of all variants. NULL past the last.
const char* eyas_module_format(const eyas_module_t* module, uint32_t ordinal);
const char* eyas_module_any_format(const eyas_module_t* module, uint32_t ordinal);

// The text of manifest.json (of the opened variant); not zero-terminated.
void eyas_module_manifest(const eyas_module_t* module, const char** out_text, size_t* out_length);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif  // EYAS_MODULE_H_
