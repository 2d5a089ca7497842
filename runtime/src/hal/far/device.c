#include <stdlib.h>
#include <string.h>

#include "hal/far/far.h"

enum { DELAY_US, STEP_BUDGET, OPTION_COUNT };

static const eyas_hal_option_info_t options[OPTION_COUNT] = {
    [DELAY_US] = {.name = "delay_us",
                  .description = "how long a submission waits before the device starts with it",
                  .max = 1000000},
    [STEP_BUDGET] = {.name = "step_budget",
                     .description =
                         "steps of each workgroup of bytecode, so that strange files end; "
                         "0: no bound",
                     .max = UINT64_MAX},
};

void eyas_hal_far_destroy(eyas_hal_far_device_t* device) {
  eyas_hal_far_memory_destroy(&device->memory);
  if (!eyas_hal_far_is_foreign(device)) {  // a child may have them in any state
    pthread_mutex_destroy(&device->memory.mutex);
    pthread_mutex_destroy(&device->queue.mutex);
    pthread_cond_destroy(&device->queue.changed);
    pthread_cond_destroy(&device->queue.idle);
  }
  free(device->scratch);
  free(device);
}

static void destroy(eyas_hal_device_t* base) {
  eyas_hal_far_device_t* device = eyas_hal_far_device(base);
  if (eyas_hal_far_queue_destroy(device)) eyas_hal_far_destroy(device);
}

static void info(eyas_hal_device_t* device, eyas_hal_device_info_t* out_info) {
  (void)device;
  out_info->name = "far, a device for tests";
  out_info->worker_count = 1;
  out_info->scratch_bytes = EYAS_MIN_SCRATCH_BYTES;
  out_info->memory_type_count = 2;
  out_info->memory_types[0] = EYAS_HAL_MEMORY_DEVICE_LOCAL;
  out_info->memory_types[1] = EYAS_HAL_MEMORY_HOST_VISIBLE | EYAS_HAL_MEMORY_HOST_CACHED;
  out_info->asynchronous = true;
}

static eyas_status_t executable_load(eyas_hal_device_t* base, eyas_hal_executable_t* executable,
                                     const char* format, const void* bytes, size_t length) {
  return eyas_hal_cpu_executable_load(executable, format, bytes, length,
                                      &eyas_hal_far_device(base)->vmvx);
}

static const eyas_hal_device_vtable_t vtable = {
    .destroy = destroy,
    .info = info,
    .check_code = eyas_hal_cpu_check_code,
    .wait_idle = eyas_hal_far_wait_idle,
    .buffer_allocate = eyas_hal_far_buffer_allocate,
    .buffer_import = eyas_hal_far_buffer_import,
    .buffer_free = eyas_hal_far_buffer_free,
    .executable_load = executable_load,
    .executable_unload = eyas_hal_cpu_executable_unload,
    .commands_prepare = eyas_hal_far_commands_prepare,
    .commands_destroy = eyas_hal_far_commands_destroy,
    .commands_profile = eyas_hal_far_commands_profile,
    .semaphore_create = eyas_hal_cpu_semaphore_create,
    .semaphore_destroy = eyas_hal_cpu_semaphore_destroy,
    .semaphore_query = eyas_hal_cpu_semaphore_query,
    .semaphore_signal = eyas_hal_cpu_semaphore_signal,
    .semaphore_fail = eyas_hal_cpu_semaphore_fail,
    .semaphore_wait = eyas_hal_cpu_semaphore_wait,
    .submit = eyas_hal_far_submit,
};

static eyas_status_t device_count(uint32_t* out_count) {
  *out_count = 1;
  return NULL;
}

static eyas_status_t create(uint32_t index, const eyas_hal_option_t* values,
                            eyas_hal_device_t** out_device) {
  (void)index;
  eyas_hal_far_device_t* device = calloc(1, sizeof(*device));
  if (device) device->scratch = aligned_alloc(64, EYAS_MIN_SCRATCH_BYTES);
  if (!device || !device->scratch) {
    free(device);
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory for a device");
  }
  eyas_ref_initialize(&device->base.ref);
  device->base.vtable = &vtable;
  device->base.driver = eyas_hal_far_driver.name;
  device->process = getpid();
  device->delay_us = values[DELAY_US].number;
  device->step_budget = values[STEP_BUDGET].number;
  eyas_status_t status = eyas_vmvx_settings(NULL, 0, &device->vmvx);
  if (!status) status = eyas_hal_far_memory_create(&device->memory);
  if (status) {
    free(device->scratch);
    free(device);
    return status;
  }
  status = eyas_hal_far_queue_create(device);
  if (status) {
    eyas_hal_far_destroy(device);
    return status;
  }
  *out_device = &device->base;
  return NULL;
}

const eyas_hal_driver_t eyas_hal_far_driver = {
    .name = "far",
    .device_count = device_count,
    .options = options,
    .option_count = OPTION_COUNT,
    .device_create = create,
};
