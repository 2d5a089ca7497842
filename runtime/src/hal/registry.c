// The drivers of this build, and the parts of a device that are the same for all.
#include <string.h>

#include "hal/driver.h"
#include "hal/local/local.h"

// In order of preference. A new driver is one line here.
static const eyas_hal_driver_t* const drivers[] = {
    &eyas_hal_local_task_driver,
    &eyas_hal_local_sync_driver,
};

size_t eyas_hal_driver_count(void) {
  return sizeof(drivers) / sizeof(drivers[0]);
}

const char* eyas_hal_driver_name(size_t index) {
  return index < eyas_hal_driver_count() ? drivers[index]->name : NULL;
}

static eyas_status_t find_driver(const char* name, const eyas_hal_driver_t** out_driver) {
  if (!name) return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT, "driver name is NULL");
  char known[256] = "";
  for (size_t i = 0; i < eyas_hal_driver_count(); ++i) {
    if (strcmp(drivers[i]->name, name) == 0) {
      *out_driver = drivers[i];
      return NULL;
    }
    strncat(known, i ? ", " : "", sizeof(known) - strlen(known) - 1);
    strncat(known, drivers[i]->name, sizeof(known) - strlen(known) - 1);
  }
  return eyas_status_make(EYAS_STATUS_NOT_FOUND, "no driver '%s'; this runtime has: %s", name,
                          known);
}

eyas_status_t eyas_hal_driver_device_count(const char* driver, uint32_t* out_count) {
  const eyas_hal_driver_t* found = NULL;
  EYAS_RETURN_IF_ERROR(find_driver(driver, &found));
  return found->device_count(out_count);
}

void eyas_hal_device_options_initialize(eyas_hal_device_options_t* options) {
  memset(options, 0, sizeof(*options));
  options->scratch_bytes = EYAS_MIN_SCRATCH_BYTES;
  options->spin_us = 50;
}

eyas_status_t eyas_hal_device_create(const char* driver, const eyas_hal_device_options_t* options,
                                     eyas_hal_device_t** out_device) {
  *out_device = NULL;
  const eyas_hal_driver_t* found = NULL;
  EYAS_RETURN_IF_ERROR(find_driver(driver, &found));
  eyas_hal_device_options_t defaults;
  eyas_hal_device_options_initialize(&defaults);
  uint32_t count = 0;
  EYAS_RETURN_IF_ERROR(found->device_count(&count));
  if (!options) options = &defaults;
  if (options->device_index >= count) {
    return eyas_status_make(count ? EYAS_STATUS_OUT_OF_RANGE : EYAS_STATUS_UNAVAILABLE,
                            "driver '%s' has %u device(s); there is no index %u", driver, count,
                            options->device_index);
  }
  return found->device_create(options, out_device);
}

eyas_hal_device_t* eyas_hal_device_retain(eyas_hal_device_t* device) {
  eyas_ref_retain(&device->ref);
  return device;
}

void eyas_hal_device_release(eyas_hal_device_t* device) {
  if (device && eyas_ref_release(&device->ref)) device->vtable->destroy(device);
}

void eyas_hal_device_info(eyas_hal_device_t* device, eyas_hal_device_info_t* out_info) {
  memset(out_info, 0, sizeof(*out_info));
  out_info->driver = device->driver;
  device->vtable->info(device, out_info);
}

bool eyas_hal_device_supports_format(eyas_hal_device_t* device, const char* format) {
  return format && device->vtable->supports_format(device, format);
}

bool eyas_hal_device_supports_feature(eyas_hal_device_t* device, const char* feature) {
  return feature && device->vtable->supports_feature(device, feature);
}

eyas_status_t eyas_hal_device_wait_idle(eyas_hal_device_t* device) {
  return device->vtable->wait_idle(device);
}
