// A module on a device: its code loaded and its weights in reach, once for all contexts.
#include "vm/loaded.h"

#include <stdlib.h>
#include <string.h>

#include "hal/driver.h"

static eyas_status_t no_memory(void) {
  return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "no memory for a module on a device");
}

static eyas_status_t check_executable(const eyas_loaded_module_t* l,
                                      const eyas_executable_ref_t* e) {
  eyas_status_t why =
      eyas_hal_device_check_code(l->device, e->format, e->features, e->feature_count);
  if (!why) return NULL;
  // A driver that knows better what to compile for has said so.
  const bool advised = strstr(eyas_status_message(why), ": compile") != NULL;
  eyas_status_t status = eyas_status_make(
      eyas_status_code(why), "executable '%s': %s%s", e->name, eyas_status_message(why),
      advised ? "" : ": compile the model for this machine, or for a plainer one");
  eyas_status_free(why);
  return status;
}

static eyas_status_t load_executable(eyas_loaded_module_t* l, uint32_t index) {
  const eyas_executable_ref_t* e = &l->module->program.executables[index];
  EYAS_RETURN_IF_ERROR(check_executable(l, e));
  const char** names = calloc((size_t)e->export_count + 1, sizeof(*names));
  if (!names) return no_memory();
  for (uint32_t i = 0; i < e->export_count; ++i) names[i] = e->exports[i].name;
  const eyas_entry_t* entry = l->module->executables[index];
  eyas_status_t status =
      eyas_hal_executable_create(l->device, e->format, entry->data, entry->length, names,
                                 e->export_count, &l->executables[index]);
  free(names);
  return eyas_status_annotate(status, "executable '%s'", e->name);
}

//===-- Weights ---------------------------------------------------------------------------------//

// Where the device reads host memory the weights stay in the file. Read-only: dispatches that
// would write to it are refused, so the cast is sound.
static eyas_status_t import(eyas_loaded_module_t* l, uint32_t index) {
  const uint8_t* data = l->module->parameter_data[index];
  return eyas_hal_buffer_import(l->device, EYAS_HAL_USAGE_ALL, EYAS_HAL_ACCESS_READ, (void*)data,
                                l->module->program.parameters[index].bytes, NULL, NULL,
                                &l->parameters[index]);
}

static eyas_status_t upload(eyas_loaded_module_t* l, const void* data, uint64_t bytes,
                            eyas_hal_buffer_t** out_buffer) {
  EYAS_RETURN_IF_ERROR(eyas_hal_buffer_allocate(l->device, EYAS_HAL_MEMORY_DEVICE_LOCAL,
                                                EYAS_HAL_USAGE_DISPATCH | EYAS_HAL_USAGE_TRANSFER,
                                                bytes, out_buffer));
  return eyas_hal_buffer_write(*out_buffer, 0, data, bytes);
}

// Elsewhere they are copied, those that follow each other in the file at once: each copy is an
// allocation and a wait for the device. Places in the file are aligned for every kernel.
#define RUN_BYTES ((uint64_t)64 << 20)
#define RUN_GAP 4096
#define RUN_ALIGNMENT 64

typedef struct weight_t {
  const uint8_t* data;
  uint64_t bytes;
  uint32_t index;
  bool alone;
} weight_t;

static int by_place(const void* left, const void* right) {
  const uint8_t *a = ((const weight_t*)left)->data, *b = ((const weight_t*)right)->data;
  return (a > b) - (a < b);
}

// How many of the weights, which are sorted, go together, and how many bytes from the first on.
static size_t find_run(const weight_t* weights, size_t count, uint64_t* out_bytes) {
  const uint8_t* begin = weights[0].data;
  uint64_t bytes = weights[0].bytes;
  size_t taken = 1;
  for (; taken < count && !weights[0].alone && !weights[taken].alone; ++taken) {
    const uint64_t start = (uint64_t)(weights[taken].data - begin);
    const uint64_t end = start + weights[taken].bytes;
    if (start > bytes + RUN_GAP || end > RUN_BYTES) break;
    if (end > bytes) bytes = end;
  }
  *out_bytes = bytes;
  return taken;
}

static eyas_status_t upload_run(eyas_loaded_module_t* l, const weight_t* weights, size_t count,
                                uint64_t bytes) {
  eyas_hal_buffer_t* buffer = NULL;
  eyas_status_t status = upload(l, weights[0].data, bytes, &buffer);
  for (size_t i = 0; i < count && !status; ++i) {
    status = eyas_hal_buffer_view(buffer, EYAS_HAL_ACCESS_READ,
                                  (uint64_t)(weights[i].data - weights[0].data), weights[i].bytes,
                                  &l->parameters[weights[i].index]);
  }
  eyas_hal_buffer_release(buffer);
  return eyas_status_annotate(status, "parameter '%s'",
                              l->module->program.parameters[weights[0].index].name);
}

static eyas_status_t upload_all(eyas_loaded_module_t* l, weight_t* weights) {
  const eyas_program_t* p = &l->module->program;
  size_t count = 0;
  for (uint32_t i = 0; i < p->parameter_count; ++i) {
    if (l->parameters[i]) continue;
    const bool alone = p->parameters[i].external[0] || p->parameters[i].offset % RUN_ALIGNMENT;
    weights[count++] = (weight_t){l->module->parameter_data[i], p->parameters[i].bytes, i, alone};
  }
  qsort(weights, count, sizeof(*weights), by_place);
  for (size_t first = 0; first < count;) {
    uint64_t bytes = 0;
    const size_t taken = find_run(weights + first, count - first, &bytes);
    EYAS_RETURN_IF_ERROR(upload_run(l, weights + first, taken, bytes));
    first += taken;
  }
  return NULL;
}

static eyas_status_t load_parameters(eyas_loaded_module_t* l) {
  const eyas_program_t* p = &l->module->program;
  for (uint32_t i = 0; i < p->parameter_count; ++i) {
    if (l->module->parameter_data[i]) continue;
    return eyas_status_make(EYAS_STATUS_FAILED_PRECONDITION,
                            "parameter '%s' is external ('%s' in %s) and has not been given",
                            p->parameters[i].name, p->parameters[i].key, p->parameters[i].external);
  }
  for (uint32_t i = 0; i < p->parameter_count && l->info.host_visible; ++i) {
    eyas_status_t status = import(l, i);
    if (eyas_status_code(status) == EYAS_STATUS_INCOMPATIBLE) {
      eyas_status_free(status);
      continue;
    }
    EYAS_RETURN_IF_ERROR(eyas_status_annotate(status, "parameter '%s'", p->parameters[i].name));
  }
  weight_t* weights = calloc((size_t)p->parameter_count + 1, sizeof(*weights));
  if (!weights) return no_memory();
  eyas_status_t status = upload_all(l, weights);
  free(weights);
  return status;
}

static void destroy(eyas_loaded_module_t* l) {
  const eyas_program_t* p = &l->module->program;
  for (uint32_t i = 0; l->parameters && i < p->parameter_count; ++i) {
    eyas_hal_buffer_release(l->parameters[i]);
  }
  for (uint32_t i = 0; l->executables && i < p->executable_count; ++i) {
    eyas_hal_executable_release(l->executables[i]);
  }
  free(l->parameters);
  free(l->executables);
  eyas_hal_device_release(l->device);
  eyas_module_release(l->module);
  free(l);
}

static eyas_status_t build(eyas_loaded_module_t* l) {
  const eyas_program_t* p = &l->module->program;
  l->executables = calloc((size_t)p->executable_count + 1, sizeof(*l->executables));
  l->parameters = calloc((size_t)p->parameter_count + 1, sizeof(*l->parameters));
  if (!l->executables || !l->parameters) return no_memory();
  for (uint32_t i = 0; i < p->executable_count; ++i) EYAS_RETURN_IF_ERROR(load_executable(l, i));
  return load_parameters(l);
}

eyas_status_t eyas_loaded_module_create(eyas_module_t* module, eyas_hal_device_t* device,
                                        eyas_loaded_module_t** out_loaded) {
  *out_loaded = NULL;
  eyas_loaded_module_t* loaded = calloc(1, sizeof(*loaded));
  if (!loaded) return no_memory();
  eyas_ref_initialize(&loaded->ref);
  loaded->module = eyas_module_retain(module);
  loaded->device = eyas_hal_device_retain(device);
  eyas_hal_device_info(device, &loaded->info);
  eyas_status_t status = build(loaded);
  if (status) {
    destroy(loaded);
    return status;
  }
  *out_loaded = loaded;
  return NULL;
}

eyas_loaded_module_t* eyas_loaded_module_retain(eyas_loaded_module_t* loaded) {
  if (loaded) eyas_ref_retain(&loaded->ref);
  return loaded;
}

void eyas_loaded_module_release(eyas_loaded_module_t* loaded) {
  if (loaded && eyas_ref_release(&loaded->ref)) destroy(loaded);
}

eyas_module_t* eyas_loaded_module_module(const eyas_loaded_module_t* loaded) {
  return loaded->module;
}

eyas_hal_device_t* eyas_loaded_module_device(const eyas_loaded_module_t* loaded) {
  return loaded->device;
}
