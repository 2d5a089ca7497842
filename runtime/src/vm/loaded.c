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

// Copies the weight into memory of the device.
static eyas_status_t upload(eyas_loaded_module_t* l, const void* data, uint64_t bytes,
                            eyas_hal_buffer_t** out_buffer) {
  eyas_hal_buffer_t* buffer = NULL;
  EYAS_RETURN_IF_ERROR(eyas_hal_buffer_allocate(l->device, EYAS_HAL_MEMORY_DEVICE_LOCAL,
                                                EYAS_HAL_USAGE_DISPATCH | EYAS_HAL_USAGE_TRANSFER,
                                                bytes, &buffer));
  eyas_status_t status = eyas_hal_buffer_write(buffer, 0, data, bytes);
  if (!status) status = eyas_hal_buffer_view(buffer, EYAS_HAL_ACCESS_READ, 0, bytes, out_buffer);
  eyas_hal_buffer_release(buffer);
  return status;
}

static eyas_status_t load_parameter(eyas_loaded_module_t* l, uint32_t index) {
  const eyas_parameter_t* p = &l->module->program.parameters[index];
  const uint8_t* data = l->module->parameter_data[index];
  if (!data) {
    return eyas_status_make(EYAS_STATUS_FAILED_PRECONDITION,
                            "parameter '%s' is external ('%s' in %s) and has not been given",
                            p->name, p->key, p->external);
  }
  // Where the device reads host memory the weights stay in the file. Read-only: dispatches that
  // would write to it are refused, so the cast is sound.
  eyas_hal_buffer_t** out = &l->parameters[index];
  if (!l->info.host_visible) {
    return eyas_status_annotate(upload(l, data, p->bytes, out), "parameter '%s'", p->name);
  }
  eyas_status_t status = eyas_hal_buffer_import(l->device, EYAS_HAL_USAGE_ALL, EYAS_HAL_ACCESS_READ,
                                                (void*)data, p->bytes, NULL, NULL, out);
  if (eyas_status_code(status) == EYAS_STATUS_INCOMPATIBLE) {
    eyas_status_free(status);
    status = upload(l, data, p->bytes, out);
  }
  return eyas_status_annotate(status, "parameter '%s'", p->name);
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
  for (uint32_t i = 0; i < p->parameter_count; ++i) EYAS_RETURN_IF_ERROR(load_parameter(l, i));
  return NULL;
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
