// Builds executables of bytecode for tests, and runs a function without a device.
#ifndef EYAS_TESTS_VMVX_ASSEMBLE_H_
#define EYAS_TESTS_VMVX_ASSEMBLE_H_

#ifndef EYAS_VMVX_WITH_INFOS
#define EYAS_VMVX_WITH_INFOS
#endif
#include "eyas_vmvx_isa.h"

#include <stdlib.h>

#include "hal/check.h"
#include "vmvx/settings.h"

enum { MAX_BYTES = 1 << 16 };

typedef struct bytes_t {
  uint8_t data[MAX_BYTES];
  size_t count;
} bytes_t;

static inline void put(bytes_t* b, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) b->data[b->count++] = (uint8_t)(value >> (8 * i));
}

// Appends an instruction; one number for each operand of the table.
static inline void put_op(bytes_t* code, uint32_t op, const int64_t* operands) {
  put(code, op, 2);
  for (const char* kind = eyas_vmvx_op_info(op).format; *kind; ++kind) {
    put(code, (uint64_t)*operands++, *kind == 'q' ? 8 : *kind == 'L' ? 4 : 2);
  }
}
#define OP(code, name, ...) put_op(code, EYAS_VMVX_OP_##name, (const int64_t[]){__VA_ARGS__, 0})
#define RETURN(code) put_op(code, EYAS_VMVX_OP_RETURN, NULL)

// What a function declares.
typedef struct header_t {
  const char* name;
  uint32_t scalars, tiles, bindings, constants;
  uint64_t writes;
  const void* data;
  uint32_t data_bytes;
} header_t;

static inline void put_start(bytes_t* b, uint32_t functions) {
  memcpy(b->data, "EYVX", 4);
  b->count = 4;
  put(b, EYAS_VMVX_ISA_VERSION, 4);
  put(b, functions, 4);
}

static inline void put_function(bytes_t* b, header_t h, const bytes_t* code) {
  size_t length = strlen(h.name);
  put(b, length, 4);
  memcpy(b->data + b->count, h.name, length);
  b->count += length;
  put(b, h.scalars, 4);
  put(b, h.tiles, 4);
  put(b, h.bindings, 4);
  put(b, h.constants, 4);
  put(b, h.writes, 8);
  for (uint32_t i = 64; i < h.bindings; i += 64) put(b, 0, 8);
  put(b, h.data_bytes, 4);
  if (h.data_bytes) memcpy(b->data + b->count, h.data, h.data_bytes);
  b->count += h.data_bytes;
  put(b, code->count, 4);
  memcpy(b->data + b->count, code->data, code->count);
  b->count += code->count;
}

// Loads from memory of the exact length, so that a read past the end is seen.
static inline eyas_status_t load_bytes_for(const bytes_t* b, const char* kernels, unsigned width,
                                           eyas_vmvx_executable_t** out) {
  eyas_vmvx_settings_t settings;
  EYAS_RETURN_IF_ERROR(eyas_vmvx_settings(kernels, width, &settings));
  uint8_t* exact = malloc(b->count ? b->count : 1);
  memcpy(exact, b->data, b->count);
  eyas_status_t status = eyas_vmvx_load(exact, b->count, &settings, out);
  free(exact);
  return status;
}

static inline eyas_status_t load_bytes(const bytes_t* b, eyas_vmvx_executable_t** out) {
  return load_bytes_for(b, NULL, 0, out);
}

static inline eyas_status_t load_function_for(header_t header, const bytes_t* code,
                                              const char* kernels, unsigned width,
                                              eyas_vmvx_executable_t** out) {
  static bytes_t b;
  if (!header.name) header.name = "f";
  put_start(&b, 1);
  put_function(&b, header, code);
  return load_bytes_for(&b, kernels, width, out);
}

static inline eyas_status_t load_function(header_t header, const bytes_t* code,
                                          eyas_vmvx_executable_t** out) {
  return load_function_for(header, code, NULL, 0, out);
}

typedef struct binding_t {
  void* memory;
  uint64_t bytes;
} binding_t;

typedef struct launch_t {
  binding_t bindings[8];
  int64_t constants[4];
  uint32_t workgroups[3];  // 0: 1
  uint64_t scratch_bytes;  // 0: the least that a device gives
  uint64_t budget;
  const char* kernels;  // NULL: the best of this CPU
  unsigned width;       // 0: what suits them
} launch_t;

// Runs all workgroups of a function; a status as a device would give it.
static inline eyas_status_t launch(header_t header, const bytes_t* code, launch_t l) {
  eyas_vmvx_executable_t* executable = NULL;
  eyas_status_t status = load_function_for(header, code, l.kernels, l.width, &executable);
  if (status) return status;
  void* pointers[8];
  uint64_t sizes[8], count = 1;
  for (int i = 0; i < 8; ++i) {
    pointers[i] = l.bindings[i].memory;
    sizes[i] = l.bindings[i].bytes;
  }
  eyas_dispatch_t dispatch = {.bindings = pointers,
                              .binding_bytes = sizes,
                              .constants = l.constants,
                              .binding_count = header.bindings,
                              .constant_count = header.constants};
  for (int i = 0; i < 3; ++i) {
    dispatch.workgroup_count[i] = l.workgroups[i] ? l.workgroups[i] : 1;
    count *= dispatch.workgroup_count[i];
  }
  if (!l.scratch_bytes) l.scratch_bytes = EYAS_MIN_SCRATCH_BYTES;
  void* scratch = aligned_alloc(64, l.scratch_bytes);
  memset(scratch, 0xA5, l.scratch_bytes);
  eyas_workgroup_t workgroup = {.scratch = scratch, .scratch_bytes = l.scratch_bytes};
  const eyas_vmvx_function_t* function = eyas_vmvx_function(executable, 0);
  int32_t code_ = eyas_vmvx_run(function, &dispatch, &workgroup, count, l.budget);
  status = code_ ? eyas_vmvx_failure(function, code_) : NULL;
  free(scratch);
  eyas_vmvx_unload(executable);
  return status;
}

static inline int64_t bits_f32(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}

static inline int64_t bits_f64(double value) {
  int64_t bits;
  memcpy(&bits, &value, 8);
  return bits;
}

#endif  // EYAS_TESTS_VMVX_ASSEMBLE_H_
