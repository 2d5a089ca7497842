// The drivers of this build, and the parts of a device that are the same for all.
#include <string.h>

#include "hal/driver.h"
#if !defined(EYAS_WITHOUT_FAR)
#include "hal/far/far.h"
#endif
#include "hal/local/local.h"
#if !defined(EYAS_WITHOUT_VULKAN)
#include "hal/vulkan/vulkan.h"
#endif

// In order of preference. A new driver is one line here.
static const eyas_hal_driver_t* const drivers[] = {
    &eyas_hal_local_task_driver,
    &eyas_hal_local_sync_driver,
#if !defined(EYAS_WITHOUT_FAR)
    &eyas_hal_far_driver,
#endif
#if !defined(EYAS_WITHOUT_VULKAN)
    &eyas_hal_vulkan_driver,
#endif
};

size_t eyas_hal_driver_count(void) {
  return sizeof(drivers) / sizeof(drivers[0]);
}

const char* eyas_hal_driver_name(size_t index) {
  return index < eyas_hal_driver_count() ? drivers[index]->name : NULL;
}

// Adds a name to a list in a text of `size` bytes.
static void append_name(char* text, size_t size, const char* name) {
  strncat(text, *text ? ", " : "", size - strlen(text) - 1);
  strncat(text, name, size - strlen(text) - 1);
}

static eyas_status_t find_driver(const char* name, const eyas_hal_driver_t** out_driver) {
  if (!name) return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT, "driver name is NULL");
  char known[256] = "";
  for (size_t i = 0; i < eyas_hal_driver_count(); ++i) {
    if (strcmp(drivers[i]->name, name) == 0) {
      *out_driver = drivers[i];
      return NULL;
    }
    append_name(known, sizeof(known), drivers[i]->name);
  }
  return eyas_status_make(EYAS_STATUS_NOT_FOUND, "no driver '%s'; this runtime has: %s", name,
                          known);
}

eyas_status_t eyas_hal_driver_device_count(const char* driver, uint32_t* out_count) {
  const eyas_hal_driver_t* found = NULL;
  EYAS_RETURN_IF_ERROR(find_driver(driver, &found));
  return found->device_count(out_count);
}

const eyas_hal_option_info_t* eyas_hal_driver_option(const char* driver, uint32_t index) {
  const eyas_hal_driver_t* found = NULL;
  eyas_status_t status = find_driver(driver, &found);
  eyas_status_free(status);
  return found && index < found->option_count ? &found->options[index] : NULL;
}

// Puts the value of one option in its place.
static eyas_status_t set_option(const eyas_hal_driver_t* driver, const eyas_hal_option_t* option,
                                eyas_hal_option_t* values) {
  char known[256] = "";
  for (uint32_t i = 0; i < driver->option_count; ++i) {
    const eyas_hal_option_info_t* info = &driver->options[i];
    append_name(known, sizeof(known), info->name);
    if (!option->name || strcmp(option->name, info->name) != 0) continue;
    if (info->is_text != (option->text != NULL)) {
      return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT, "%s of a '%s' device is a %s",
                              info->name, driver->name, info->is_text ? "text" : "number");
    }
    if (!info->is_text && (option->number < info->min || option->number > info->max)) {
      return eyas_status_make(EYAS_STATUS_OUT_OF_RANGE,
                              "%s=%llu for a '%s' device; allowed is %llu to %llu", info->name,
                              (unsigned long long)option->number, driver->name,
                              (unsigned long long)info->min, (unsigned long long)info->max);
    }
    values[i] = *option;
    return NULL;
  }
  return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT,
                          "a '%s' device has no option '%s'; it has: %s", driver->name,
                          option->name ? option->name : "(null)", known);
}

eyas_status_t eyas_hal_device_create(const char* driver, const eyas_hal_device_options_t* options,
                                     eyas_hal_device_t** out_device) {
  *out_device = NULL;
  const eyas_hal_driver_t* found = NULL;
  EYAS_RETURN_IF_ERROR(find_driver(driver, &found));
  const eyas_hal_device_options_t defaults = {0};
  if (!options) options = &defaults;
  eyas_hal_option_t values[EYAS_HAL_MAX_OPTIONS];
  for (uint32_t i = 0; i < found->option_count; ++i) {
    const eyas_hal_option_info_t* info = &found->options[i];
    values[i] = (eyas_hal_option_t){.name = info->name, .number = info->default_value};
  }
  for (uint32_t i = 0; i < options->value_count; ++i) {
    EYAS_RETURN_IF_ERROR(set_option(found, &options->values[i], values));
  }
  uint32_t count = 0;
  EYAS_RETURN_IF_ERROR(found->device_count(&count));
  if (count && options->device_index >= count) {
    return eyas_status_make(EYAS_STATUS_OUT_OF_RANGE,
                            "driver '%s' has %u device(s); there is no index %u", driver, count,
                            options->device_index);
  }
  return found->device_create(options->device_index, values, out_device);
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

bool eyas_hal_device_property(eyas_hal_device_t* device, uint32_t index,
                              eyas_hal_property_t* out_property) {
  return device->vtable->property && device->vtable->property(device, index, out_property);
}

eyas_status_t eyas_hal_device_check_code(eyas_hal_device_t* device, const char* format,
                                         const char* const* features, uint32_t feature_count) {
  if (!format) return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT, "the format of code is NULL");
  return device->vtable->check_code(device, format, features, feature_count);
}

eyas_status_t eyas_hal_device_wait_idle(eyas_hal_device_t* device) {
  return device->vtable->wait_idle(device);
}
