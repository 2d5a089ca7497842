// From the bytes of an executable to decoded functions.
#include <stdlib.h>
#include <string.h>

#include "vmvx/function.h"

#define MAX_FUNCTIONS 65536u
#define MIN_FUNCTION_BYTES 36u

static eyas_status_t no_memory(void) {
  return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "no memory for an executable");
}

static eyas_status_t check_counts(const eyas_vmvx_function_t* f) {
  const struct {
    const char* what;
    uint32_t value, limit;
  } counts[] = {
      {"scalar registers", f->scalar_count, EYAS_VMVX_MAX_SCALARS},
      {"tile registers", f->tile_count, EYAS_VMVX_MAX_TILES},
      {"bindings", f->binding_count, EYAS_VMVX_MAX_BINDINGS},
      {"constants", f->constant_count, EYAS_VMVX_MAX_CONSTANTS},
  };
  for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); ++i) {
    if (counts[i].value <= counts[i].limit) continue;
    return eyas_status_make(EYAS_STATUS_CORRUPT, "it has %u %s; the limit is %u", counts[i].value,
                            counts[i].what, counts[i].limit);
  }
  return NULL;
}

// A bit for each binding that is written, in as many words as that takes, at least one.
static eyas_status_t read_writes(eyas_reader_t* r, eyas_vmvx_function_t* f) {
  for (uint32_t i = 0; i == 0 || i * 64 < f->binding_count; ++i) {
    uint32_t inside = f->binding_count - i * 64;
    f->writes[i] = eyas_read_u64(r);
    if (inside >= 64 || !(f->writes[i] >> inside)) continue;
    return eyas_status_make(EYAS_STATUS_CORRUPT, "it says to write bindings beyond its %u",
                            f->binding_count);
  }
  return NULL;
}

static eyas_status_t copy_data(eyas_bump_t* memory, eyas_vmvx_function_t* f, const uint8_t* data) {
  char* copy = eyas_bump_allocate(memory, (size_t)f->data_bytes + 63, 1);
  if (!copy) return no_memory();
  copy += -(uintptr_t)copy & 63;
  if (f->data_bytes) memcpy(copy, data, f->data_bytes);
  f->data = copy;
  return NULL;
}

static eyas_status_t read_function(eyas_reader_t* r, eyas_bump_t* memory,
                                   const eyas_vmvx_settings_t* settings, eyas_vmvx_function_t* f) {
  f->name = eyas_read_text(r, memory);
  f->scalar_count = eyas_read_u32(r);
  f->tile_count = eyas_read_u32(r);
  f->binding_count = eyas_read_u32(r);
  f->constant_count = eyas_read_u32(r);
  EYAS_RETURN_IF_ERROR(check_counts(f));
  EYAS_RETURN_IF_ERROR(read_writes(r, f));
  f->data_bytes = eyas_read_count(r, 1);
  const uint8_t* data = eyas_read_bytes(r, f->data_bytes);
  uint32_t code_bytes = eyas_read_count(r, 1);
  const uint8_t* code = eyas_read_bytes(r, code_bytes);
  if (r->failed) return eyas_status_make(EYAS_STATUS_CORRUPT, "the executable ends inside it");
  EYAS_RETURN_IF_ERROR(copy_data(memory, f, data));
  return eyas_vmvx_decode(memory, settings, f, code, code_bytes);
}

static eyas_status_t read_executable(eyas_reader_t* r, const eyas_vmvx_settings_t* settings,
                                     eyas_vmvx_executable_t* executable) {
  const uint8_t* magic = eyas_read_bytes(r, 4);
  if (!magic || memcmp(magic, "EYVX", 4) != 0) {
    return eyas_status_make(EYAS_STATUS_CORRUPT,
                            "not a VMVX executable: it does not start with EYVX");
  }
  uint32_t version = eyas_read_u32(r);
  if (version != EYAS_VMVX_ISA_VERSION) {
    return eyas_status_make(EYAS_STATUS_INCOMPATIBLE,
                            "made for VMVX instructions of version %u; this runtime has version %u",
                            version, EYAS_VMVX_ISA_VERSION);
  }
  uint32_t count = eyas_read_count(r, MIN_FUNCTION_BYTES);
  if (r->failed || count > MAX_FUNCTIONS) {
    return eyas_status_make(EYAS_STATUS_CORRUPT, "its number of functions is impossible");
  }
  executable->functions =
      eyas_bump_allocate(&executable->memory, count, sizeof(*executable->functions));
  if (!executable->functions) return no_memory();
  for (uint32_t i = 0; i < count; ++i) {
    eyas_vmvx_function_t* f = &executable->functions[i];
    eyas_status_t status = read_function(r, &executable->memory, settings, f);
    if (status) return eyas_status_annotate(status, "function %u '%s'", i, f->name);
  }
  executable->function_count = count;
  if (eyas_reader_left(r)) {
    return eyas_status_make(EYAS_STATUS_CORRUPT, "%zu bytes follow its last function",
                            eyas_reader_left(r));
  }
  return NULL;
}

eyas_status_t eyas_vmvx_load(const void* bytes, size_t length, const eyas_vmvx_settings_t* settings,
                             eyas_vmvx_executable_t** out_executable) {
  *out_executable = NULL;
  eyas_vmvx_executable_t* executable = calloc(1, sizeof(*executable));
  if (!executable) return no_memory();
  eyas_reader_t reader = {.data = bytes, .at = 0, .end = length, .failed = false};
  eyas_status_t status = read_executable(&reader, settings, executable);
  if (status) {
    eyas_vmvx_unload(executable);
    return status;
  }
  *out_executable = executable;
  return NULL;
}

void eyas_vmvx_unload(eyas_vmvx_executable_t* executable) {
  if (!executable) return;
  eyas_bump_free(&executable->memory);
  free(executable);
}

uint32_t eyas_vmvx_function_count(const eyas_vmvx_executable_t* executable) {
  return executable->function_count;
}

const eyas_vmvx_function_t* eyas_vmvx_function(const eyas_vmvx_executable_t* executable,
                                               uint32_t index) {
  return index < executable->function_count ? &executable->functions[index] : NULL;
}

eyas_status_t eyas_vmvx_lookup(const eyas_vmvx_executable_t* executable, const char* name,
                               const eyas_vmvx_function_t** out_function) {
  for (uint32_t i = 0; i < executable->function_count; ++i) {
    if (strcmp(executable->functions[i].name, name) != 0) continue;
    *out_function = &executable->functions[i];
    return NULL;
  }
  return eyas_status_make(EYAS_STATUS_NOT_FOUND, "the executable has no function '%s' among its %u",
                          name, executable->function_count);
}

const char* eyas_vmvx_function_name(const eyas_vmvx_function_t* function) {
  return function->name;
}

uint32_t eyas_vmvx_function_bindings(const eyas_vmvx_function_t* function) {
  return function->binding_count;
}

uint32_t eyas_vmvx_function_constants(const eyas_vmvx_function_t* function) {
  return function->constant_count;
}

bool eyas_vmvx_function_writes(const eyas_vmvx_function_t* function, uint32_t binding) {
  return binding < function->binding_count && (function->writes[binding / 64] >> binding % 64 & 1);
}
