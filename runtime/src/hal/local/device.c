#define _GNU_SOURCE 1
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "hal/local/local.h"

#define HUGE_PAGE_BYTES (2u << 20)

static void destroy(eyas_hal_device_t* base) {
  eyas_hal_local_device_t* device = eyas_hal_local_device(base);
  eyas_hal_pool_destroy(device->pool);
  pthread_mutex_destroy(&device->spares_mutex);
  for (uint32_t i = 0; i < EYAS_HAL_LOCAL_SPARES; ++i) free(device->spares[i].memory);
  free(device);
}

static void info(eyas_hal_device_t* base, eyas_hal_device_info_t* out_info) {
  eyas_hal_local_device_t* device = eyas_hal_local_device(base);
  out_info->name = device->name;
  out_info->worker_count = eyas_hal_pool_worker_count(device->pool);
  out_info->scratch_bytes = device->scratch_bytes;
  out_info->memory_type_count = 1;
  out_info->memory_types[0] =
      EYAS_HAL_MEMORY_DEVICE_LOCAL | EYAS_HAL_MEMORY_HOST_VISIBLE | EYAS_HAL_MEMORY_HOST_CACHED;
  out_info->host_visible = true;
}

static eyas_status_t wait_idle(eyas_hal_device_t* base) {
  eyas_hal_local_device_t* device = eyas_hal_local_device(base);
  eyas_hal_pool_wait_idle(device->pool);
  return NULL;
}

// Memory of exactly `bytes` that was released before, or NULL.
static void* take_spare(eyas_hal_local_device_t* device, size_t bytes) {
  if (bytes < EYAS_HAL_LOCAL_SPARE_MIN_BYTES) return NULL;
  void* found = NULL;
  pthread_mutex_lock(&device->spares_mutex);
  for (uint32_t i = 0; i < EYAS_HAL_LOCAL_SPARES && !found; ++i) {
    eyas_hal_local_spare_t* spare = &device->spares[i];
    if (!spare->memory || spare->bytes != bytes) continue;
    found = spare->memory;
    size_t behind = EYAS_HAL_LOCAL_SPARES - 1 - i;
    memmove(spare, spare + 1, behind * sizeof(*spare));
    device->spares[EYAS_HAL_LOCAL_SPARES - 1] = (eyas_hal_local_spare_t){NULL, 0};
  }
  pthread_mutex_unlock(&device->spares_mutex);
  return found;
}

// Keeps memory for the next buffer of its size; frees what was kept longest when that is too much.
static void keep_spare(eyas_hal_local_device_t* device, void* memory, size_t bytes) {
  eyas_hal_local_spare_t dropped[EYAS_HAL_LOCAL_SPARES + 1] = {{NULL, 0}};
  uint32_t drop_count = 0;
  if (bytes < EYAS_HAL_LOCAL_SPARE_MIN_BYTES || bytes > EYAS_HAL_LOCAL_SPARE_MAX_BYTES) {
    free(memory);
    return;
  }
  pthread_mutex_lock(&device->spares_mutex);
  dropped[drop_count++] = device->spares[EYAS_HAL_LOCAL_SPARES - 1];
  memmove(device->spares + 1, device->spares,
          (EYAS_HAL_LOCAL_SPARES - 1) * sizeof(device->spares[0]));
  device->spares[0] = (eyas_hal_local_spare_t){memory, bytes};
  size_t total = 0;
  for (uint32_t i = 0; i < EYAS_HAL_LOCAL_SPARES; ++i) {
    total += device->spares[i].bytes;
    if (total <= EYAS_HAL_LOCAL_SPARE_MAX_BYTES) continue;
    total -= device->spares[i].bytes;
    dropped[drop_count++] = device->spares[i];
    device->spares[i] = (eyas_hal_local_spare_t){NULL, 0};
  }
  pthread_mutex_unlock(&device->spares_mutex);
  for (uint32_t i = 0; i < drop_count; ++i) free(dropped[i].memory);
}

static eyas_status_t buffer_allocate(eyas_hal_device_t* base, eyas_hal_buffer_t* buffer) {
  eyas_hal_local_device_t* device = eyas_hal_local_device(base);
  // Large buffers start on a huge page: arenas and weights are walked end to end, and 4 KiB pages
  // cost TLB misses there.
  bool huge = buffer->length >= 2 * HUGE_PAGE_BYTES;
  uint64_t bytes = 0;
  if (eyas_checked_align(buffer->length ? buffer->length : 1, EYAS_HAL_BUFFER_ALIGNMENT, &bytes) &&
      bytes <= PTRDIFF_MAX) {
    buffer->host = take_spare(device, (size_t)bytes);
    huge = huge && !buffer->host;
    size_t alignment = huge ? HUGE_PAGE_BYTES : EYAS_HAL_BUFFER_ALIGNMENT;
    if (!buffer->host && posix_memalign(&buffer->host, alignment, (size_t)bytes) != 0) {
      buffer->host = NULL;
    }
  }
  if (!buffer->host) {
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED,
                            "out of memory: cannot allocate a buffer of %llu bytes",
                            (unsigned long long)buffer->length);
  }
#if defined(MADV_HUGEPAGE)
  if (huge) madvise(buffer->host, (size_t)bytes / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES, MADV_HUGEPAGE);
#endif
  buffer->payload = buffer->host;  // what to free
  buffer->memory =
      EYAS_HAL_MEMORY_DEVICE_LOCAL | EYAS_HAL_MEMORY_HOST_VISIBLE | EYAS_HAL_MEMORY_HOST_CACHED;
  return NULL;
}

static eyas_status_t buffer_import(eyas_hal_device_t* base, eyas_hal_buffer_t* buffer,
                                   void* pointer) {
  (void)base;
  buffer->host = pointer;
  buffer->memory =
      EYAS_HAL_MEMORY_DEVICE_LOCAL | EYAS_HAL_MEMORY_HOST_VISIBLE | EYAS_HAL_MEMORY_HOST_CACHED;
  return NULL;
}

static void buffer_free(eyas_hal_device_t* base, eyas_hal_buffer_t* buffer) {
  uint64_t bytes = 0;
  if (!buffer->payload) return;  // imported
  if (!eyas_checked_align(buffer->length ? buffer->length : 1, EYAS_HAL_BUFFER_ALIGNMENT, &bytes)) {
    bytes = 0;
  }
  keep_spare(eyas_hal_local_device(base), buffer->payload, (size_t)bytes);
}

static eyas_status_t executable_load(eyas_hal_device_t* base, eyas_hal_executable_t* executable,
                                     const char* format, const void* bytes, size_t length) {
  return eyas_hal_cpu_executable_load(executable, format, bytes, length,
                                      &eyas_hal_local_device(base)->vmvx);
}

static eyas_status_t signal_all(const eyas_hal_submission_t* submission) {
  eyas_status_t status = NULL;
  for (uint32_t i = 0; i < submission->signal_count; ++i) {
    const eyas_hal_timepoint_t* point = &submission->signals[i];
    status = eyas_status_join(status, eyas_hal_semaphore_signal(point->semaphore, point->value));
  }
  return status;
}

static void fail_all(const eyas_hal_submission_t* submission, eyas_status_t status) {
  for (uint32_t i = 0; i < submission->signal_count; ++i) {
    eyas_hal_semaphore_t* semaphore = submission->signals[i].semaphore;
    semaphore->device->vtable->semaphore_fail(semaphore, status);
  }
}

static eyas_status_t submit(eyas_hal_device_t* base, const eyas_hal_submission_t* submission) {
  eyas_hal_local_device_t* device = eyas_hal_local_device(base);
  eyas_status_t status = NULL;
  for (uint32_t i = 0; i < submission->wait_count && !status; ++i) {
    const eyas_hal_timepoint_t* point = &submission->waits[i];
    status = eyas_hal_semaphore_wait(point->semaphore, point->value, EYAS_HAL_FOREVER);
  }
  if (!status && submission->commands) {
    status = eyas_hal_local_commands_run(device, submission->commands, submission->table);
  }
  if (!status) return signal_all(submission);
  fail_all(submission, status);
  return status;
}

static const eyas_hal_device_vtable_t vtable = {
    .destroy = destroy,
    .info = info,
    .check_code = eyas_hal_cpu_check_code,
    .wait_idle = wait_idle,
    .buffer_allocate = buffer_allocate,
    .buffer_import = buffer_import,
    .buffer_free = buffer_free,
    .executable_load = executable_load,
    .executable_adopt = eyas_hal_cpu_executable_adopt,
    .executable_unload = eyas_hal_cpu_executable_unload,
    .commands_prepare = eyas_hal_local_commands_prepare,
    .commands_destroy = eyas_hal_local_commands_destroy,
    .commands_profile = eyas_hal_local_commands_profile,
    .semaphore_create = eyas_hal_cpu_semaphore_create,
    .semaphore_destroy = eyas_hal_cpu_semaphore_destroy,
    .semaphore_query = eyas_hal_cpu_semaphore_query,
    .semaphore_signal = eyas_hal_cpu_semaphore_signal,
    .semaphore_fail = eyas_hal_cpu_semaphore_fail,
    .semaphore_wait = eyas_hal_cpu_semaphore_wait,
    .submit = submit,
};

enum { THREADS, SCRATCH_BYTES, SPIN_US, STEP_BUDGET, VMVX_KERNELS, VMVX_WIDTH, OPTION_COUNT };

// One table for both drivers, so that a program's settings serve either.
static const eyas_hal_option_info_t options[OPTION_COUNT] = {
    [THREADS] = {.name = "threads",
                 .description =
                     "workers including the caller; 0: the CPUs that this process may use. "
                     "Of no effect on local-sync, which has the caller alone",
                 .max = EYAS_HAL_MAX_WORKERS},
    [SCRATCH_BYTES] = {.name = "scratch_bytes",
                       .description = "memory of each worker for executables",
                       .default_value = EYAS_MIN_SCRATCH_BYTES,
                       .min = EYAS_MIN_SCRATCH_BYTES,
                       .max = UINT64_MAX},
    [SPIN_US] = {.name = "spin_us",
                 .description = "how long an idle worker spins before it sleeps",
                 .default_value = 50,
                 .max = UINT32_MAX},
    [STEP_BUDGET] = {.name = "step_budget",
                     .description =
                         "steps of each workgroup of bytecode, so that strange files end; "
                         "0: no bound",
                     .max = UINT64_MAX},
    [VMVX_KERNELS] = {.name = "vmvx_kernels",
                      .description = "microkernels that bytecode runs with; default: the best of "
                                     "this CPU",
                      .is_text = true},
    [VMVX_WIDTH] = {.name = "vmvx_width",
                    .description = "unit tiles that one instruction of bytecode issues: 1, 2, 4 or "
                                   "8; 0: what suits the microkernels",
                    .max = 8},
};

static eyas_status_t create(const char* driver, uint32_t worker_count,
                            const eyas_hal_option_t* values, eyas_hal_device_t** out_device) {
  uint64_t scratch_bytes = values[SCRATCH_BYTES].number, total = 0;
  eyas_vmvx_settings_t vmvx;
  EYAS_RETURN_IF_ERROR(
      eyas_vmvx_settings(values[VMVX_KERNELS].text, (unsigned)values[VMVX_WIDTH].number, &vmvx));
  if (!eyas_checked_align(scratch_bytes, 64, &scratch_bytes) ||
      !eyas_checked_mul(scratch_bytes, worker_count, &total) || total > PTRDIFF_MAX) {
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED,
                            "%llu bytes of scratch for each of %u workers",
                            (unsigned long long)values[SCRATCH_BYTES].number, worker_count);
  }
  eyas_hal_local_device_t* device = calloc(1, sizeof(*device));
  if (!device) {
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory for a device");
  }
  eyas_status_t status = eyas_hal_pool_create(worker_count, (uint32_t)values[SPIN_US].number,
                                              scratch_bytes, &device->pool);
  if (status) {
    free(device);
    return status;
  }
  eyas_ref_initialize(&device->base.ref);
  device->base.vtable = &vtable;
  device->base.driver = driver;
  device->scratch_bytes = scratch_bytes;
  device->step_budget = values[STEP_BUDGET].number;
  device->vmvx = vmvx;
  eyas_cpu_name(device->name, sizeof(device->name));
  pthread_mutex_init(&device->spares_mutex, NULL);
  *out_device = &device->base;
  return NULL;
}

static eyas_status_t device_count(uint32_t* out_count) {
  *out_count = 1;
  return NULL;
}

static eyas_status_t create_sync(uint32_t index, const eyas_hal_option_t* values,
                                 eyas_hal_device_t** out_device) {
  (void)index;
  return create("local-sync", 1, values, out_device);
}

static eyas_status_t create_task(uint32_t index, const eyas_hal_option_t* values,
                                 eyas_hal_device_t** out_device) {
  (void)index;
  uint32_t workers = (uint32_t)values[THREADS].number;
  if (workers == 0) workers = eyas_cpu_count();
  if (workers > EYAS_HAL_MAX_WORKERS) workers = EYAS_HAL_MAX_WORKERS;
  return create("local-task", workers, values, out_device);
}

const eyas_hal_driver_t eyas_hal_local_sync_driver = {
    .name = "local-sync",
    .device_count = device_count,
    .options = options,
    .option_count = OPTION_COUNT,
    .device_create = create_sync,
};

const eyas_hal_driver_t eyas_hal_local_task_driver = {
    .name = "local-task",
    .device_count = device_count,
    .options = options,
    .option_count = OPTION_COUNT,
    .device_create = create_task,
};
