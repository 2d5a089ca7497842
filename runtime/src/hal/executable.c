#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "hal/driver.h"

// Copies the names into one block: the pointers, then the characters.
static eyas_status_t copy_names(eyas_hal_executable_t* executable, const char* const* names,
                                uint32_t count) {
  uint64_t bytes = (uint64_t)count * sizeof(char*);
  for (uint32_t i = 0; i < count; ++i) {
    if (!names || !names[i]) {
      return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT, "export name %u is NULL", i);
    }
    if (!eyas_checked_add(bytes, strlen(names[i]) + 1, &bytes)) {
      return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT, "export names are too long");
    }
  }
  char** block = malloc(bytes ? bytes : 1);
  if (!block) return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory");
  char* text = (char*)(block + count);
  for (uint32_t i = 0; i < count; ++i) {
    size_t length = strlen(names[i]) + 1;
    block[i] = memcpy(text, names[i], length);
    text += length;
  }
  executable->export_names = block;
  executable->export_count = count;
  return NULL;
}

static eyas_status_t new_executable(eyas_hal_device_t* device, const char* const* names,
                                    uint32_t count, eyas_hal_executable_t** out_executable) {
  eyas_hal_executable_t* executable = calloc(1, sizeof(*executable));
  if (!executable) {
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory");
  }
  eyas_ref_initialize(&executable->ref);
  eyas_status_t status = copy_names(executable, names, count);
  if (status) {
    free(executable);
    return status;
  }
  executable->device = eyas_hal_device_retain(device);
  *out_executable = executable;
  return NULL;
}

static eyas_status_t finish(eyas_hal_executable_t* executable, eyas_status_t status,
                            eyas_hal_executable_t** out_executable) {
  if (status) {
    eyas_hal_executable_release(executable);
  } else {
    *out_executable = executable;
  }
  return status;
}

eyas_status_t eyas_hal_executable_create(eyas_hal_device_t* device, const char* format,
                                         const void* bytes, size_t length,
                                         const char* const* export_names, uint32_t export_count,
                                         eyas_hal_executable_t** out_executable) {
  *out_executable = NULL;
  EYAS_RETURN_IF_ERROR(eyas_hal_device_check_code(device, format, NULL, 0));
  if (!bytes) return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT, "executable bytes are NULL");
  eyas_hal_executable_t* executable = NULL;
  EYAS_RETURN_IF_ERROR(new_executable(device, export_names, export_count, &executable));
  return finish(executable,
                device->vtable->executable_load(device, executable, format, bytes, length),
                out_executable);
}

eyas_status_t eyas_hal_executable_create_static(eyas_hal_device_t* device,
                                                const char* const* export_names,
                                                const eyas_dispatch_fn_t* functions,
                                                uint32_t export_count,
                                                eyas_hal_executable_t** out_executable) {
  *out_executable = NULL;
  if (!device->vtable->executable_adopt) {
    return eyas_status_make(EYAS_STATUS_INCOMPATIBLE,
                            "a '%s' device cannot run functions of this process", device->driver);
  }
  for (uint32_t i = 0; i < export_count; ++i) {
    if (!functions || !functions[i]) {
      return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT, "function %u is NULL", i);
    }
  }
  eyas_hal_executable_t* executable = NULL;
  EYAS_RETURN_IF_ERROR(new_executable(device, export_names, export_count, &executable));
  return finish(executable, device->vtable->executable_adopt(device, executable, functions),
                out_executable);
}

eyas_hal_executable_t* eyas_hal_executable_retain(eyas_hal_executable_t* executable) {
  eyas_ref_retain(&executable->ref);
  return executable;
}

void eyas_hal_executable_release(eyas_hal_executable_t* executable) {
  if (!executable || !eyas_ref_release(&executable->ref)) return;
  if (executable->payload) {
    executable->device->vtable->executable_unload(executable->device, executable);
  }
  eyas_hal_device_release(executable->device);
  free(executable->export_names);
  free(executable->needs);
  free(executable);
}

uint32_t eyas_hal_executable_export_count(const eyas_hal_executable_t* executable) {
  return executable->export_count;
}

const char* eyas_hal_executable_export_name(const eyas_hal_executable_t* executable,
                                            uint32_t ordinal) {
  return ordinal < executable->export_count ? executable->export_names[ordinal] : NULL;
}

eyas_status_t eyas_hal_executable_lookup(const eyas_hal_executable_t* executable, const char* name,
                                         uint32_t* out_ordinal) {
  for (uint32_t i = 0; i < executable->export_count; ++i) {
    if (strcmp(executable->export_names[i], name) == 0) {
      *out_ordinal = i;
      return NULL;
    }
  }
  return eyas_status_make(EYAS_STATUS_NOT_FOUND, "the executable has no export '%s' among its %u",
                          name, executable->export_count);
}
