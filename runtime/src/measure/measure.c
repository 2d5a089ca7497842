#include "eyas/measure.h"

#include "base/checked.h"
#include "base/clock.h"
#include "measure/kernels.h"

// Several workgroups a worker, so that one that is held up does not hold up the others.
#define WORKGROUPS_PER_WORKER 8
#define FMA_ROUNDS 40000  // some 0.15 ms
// What a workgroup reads at least of a small buffer.
#define READ_BYTES (UINT64_C(2) << 20)

enum { FMA, READ_SHARED, READ_OWN, KERNEL_COUNT };

// Push constants: the address of the kernels, then what each kernel says.
static const eyas_measure_kernels_t* kernels_of(const eyas_dispatch_t* dispatch) {
  return (const eyas_measure_kernels_t*)(intptr_t)dispatch->constants[0];
}

// Results go to cache lines of their own.
static uint64_t* result_of(const eyas_dispatch_t* dispatch, const eyas_workgroup_t* workgroup) {
  return (uint64_t*)dispatch->bindings[0] + 16 * workgroup->worker;
}

// [1]: rounds.
static void run_fma(const eyas_dispatch_t* dispatch, const eyas_workgroup_t* workgroup) {
  float value = kernels_of(dispatch)->fma((uint64_t)dispatch->constants[1]);
  *result_of(dispatch, workgroup) = (uint64_t)(value * 1e6f);
}

// [1]: bytes of a slice. Each workgroup reads its own.
static void run_read_shared(const eyas_dispatch_t* dispatch, const eyas_workgroup_t* workgroup) {
  uint64_t bytes = (uint64_t)dispatch->constants[1];
  const char* data = (const char*)dispatch->bindings[1] + bytes * workgroup->id[0];
  *result_of(dispatch, workgroup) = kernels_of(dispatch)->read(data, bytes);
}

// [1]: bytes of a slice, [2]: how often it is read. Each worker has its own.
static void run_read_own(const eyas_dispatch_t* dispatch, const eyas_workgroup_t* workgroup) {
  uint64_t bytes = (uint64_t)dispatch->constants[1], sum = 0;
  const char* data = (const char*)dispatch->bindings[1] + bytes * workgroup->worker;
  for (int64_t i = 0; i < dispatch->constants[2]; ++i)
    sum += kernels_of(dispatch)->read(data, bytes);
  *result_of(dispatch, workgroup) = sum;
}

typedef struct setting_t {
  uint32_t kernel;
  uint32_t workgroups;
  int64_t constants[3];
  uint64_t data_bytes;  // of the buffer that is read
  double amount;        // of work in one submission
} setting_t;

static eyas_hal_binding_t whole(eyas_hal_buffer_t* buffer, uint32_t access) {
  return (eyas_hal_binding_t){.buffer = buffer, .access = access, .length = EYAS_HAL_WHOLE};
}

// Submits until the time is over; `best` is the greatest amount per second.
static eyas_status_t repeat(eyas_hal_device_t* device, eyas_hal_command_buffer_t* commands,
                            uint32_t milliseconds, double amount, double* out_best) {
  const uint64_t end_ns = eyas_clock_now_ns() + (uint64_t)milliseconds * 1000000;
  const eyas_hal_submission_t submission = {.commands = commands};
  double best = 0;
  do {
    eyas_hal_profile_t profile = {0};
    eyas_status_t status = eyas_hal_device_submit(device, &submission);
    if (!status) status = eyas_hal_device_wait_idle(device);
    if (!status) status = eyas_hal_command_buffer_profile(commands, &profile);
    if (status) return status;
    uint64_t took_ns = profile.events[0].end_ns - profile.events[0].start_ns;
    if (took_ns > 0 && amount / (double)took_ns > best) best = amount / (double)took_ns;
    eyas_hal_profile_clear(&profile);
  } while (eyas_clock_now_ns() < end_ns);
  *out_best = best * 1e9;
  return NULL;
}

static eyas_status_t record(eyas_hal_command_buffer_t* commands, eyas_hal_executable_t* executable,
                            const setting_t* setting, eyas_hal_buffer_t* results,
                            eyas_hal_buffer_t* data) {
  const eyas_hal_binding_t bindings[] = {whole(results, EYAS_HAL_ACCESS_WRITE),
                                         whole(data, EYAS_HAL_ACCESS_READ)};
  const eyas_hal_dispatch_t dispatch = {
      .executable = executable,
      .ordinal = setting->kernel,
      .workgroup_count = {setting->workgroups, 1, 1},
      .constants = setting->constants,
      .constant_count = 3,
      .bindings = bindings,
      .binding_count = 2,
  };
  EYAS_RETURN_IF_ERROR(eyas_hal_command_buffer_enable_profiling(commands));
  EYAS_RETURN_IF_ERROR(eyas_hal_command_buffer_dispatch(commands, &dispatch));
  return eyas_hal_command_buffer_end(commands);
}

// Writes the buffer once, so that there are pages of its own to read.
static eyas_status_t fill(eyas_hal_device_t* device, eyas_hal_buffer_t* data) {
  eyas_hal_command_buffer_t* commands = NULL;
  EYAS_RETURN_IF_ERROR(eyas_hal_command_buffer_create(device, 0, &commands));
  eyas_status_t status =
      eyas_hal_command_buffer_fill(commands, whole(data, EYAS_HAL_ACCESS_WRITE), "\1", 1);
  if (!status) status = eyas_hal_command_buffer_end(commands);
  if (!status) {
    status = eyas_hal_device_submit(device, &(eyas_hal_submission_t){.commands = commands});
  }
  if (!status) status = eyas_hal_device_wait_idle(device);
  eyas_hal_command_buffer_release(commands);
  return status;
}

static eyas_status_t measure(eyas_hal_device_t* device, uint32_t workers, const setting_t* setting,
                             uint32_t milliseconds, double* out_best) {
  static const char* const names[] = {"fma", "read_shared", "read_own"};
  static const eyas_dispatch_fn_t functions[] = {run_fma, run_read_shared, run_read_own};
  const uint32_t usage = EYAS_HAL_USAGE_DISPATCH | EYAS_HAL_USAGE_TRANSFER;
  eyas_hal_executable_t* executable = NULL;
  eyas_hal_buffer_t *results = NULL, *data = NULL;
  eyas_hal_command_buffer_t* commands = NULL;
  eyas_status_t status =
      eyas_hal_executable_create_static(device, names, functions, KERNEL_COUNT, &executable);
  if (!status) status = eyas_hal_buffer_allocate(device, 0, usage, 128 * workers, &results);
  if (!status) status = eyas_hal_buffer_allocate(device, 0, usage, setting->data_bytes, &data);
  if (!status) status = fill(device, data);
  if (!status) status = eyas_hal_command_buffer_create(device, 0, &commands);
  if (!status) status = record(commands, executable, setting, results, data);
  if (!status) status = repeat(device, commands, milliseconds, setting->amount, out_best);
  eyas_hal_command_buffer_release(commands);
  eyas_hal_buffer_release(data);
  eyas_hal_buffer_release(results);
  eyas_hal_executable_release(executable);
  return status;
}

eyas_status_t eyas_measure_fma(eyas_hal_device_t* device, uint32_t milliseconds,
                               double* out_flops_per_s) {
  const eyas_measure_kernels_t kernels = eyas_measure_kernels();
  eyas_hal_device_info_t info;
  eyas_hal_device_info(device, &info);
  setting_t setting = {
      .kernel = FMA,
      .workgroups = info.worker_count * WORKGROUPS_PER_WORKER,
      .constants = {(int64_t)(intptr_t)&kernels, FMA_ROUNDS, 0},
      .data_bytes = EYAS_MEASURE_READ_STEP,
  };
  setting.amount = (double)setting.workgroups * FMA_ROUNDS * (double)kernels.flops_per_round;
  return measure(device, info.worker_count, &setting, milliseconds, out_flops_per_s);
}

eyas_status_t eyas_measure_read(eyas_hal_device_t* device, uint64_t bytes, bool shared,
                                uint32_t milliseconds, double* out_bytes_per_s) {
  const eyas_measure_kernels_t kernels = eyas_measure_kernels();
  eyas_hal_device_info_t info;
  eyas_hal_device_info(device, &info);
  setting_t setting = {
      .kernel = shared ? READ_SHARED : READ_OWN,
      .workgroups = info.worker_count * WORKGROUPS_PER_WORKER,
  };
  const uint32_t parts = shared ? setting.workgroups : 1;
  const uint64_t slice = bytes / parts / EYAS_MEASURE_READ_STEP * EYAS_MEASURE_READ_STEP;
  if (slice == 0 ||
      !eyas_checked_mul(slice, shared ? parts : info.worker_count, &setting.data_bytes)) {
    return eyas_status_make(
        EYAS_STATUS_INVALID_ARGUMENT,
        "cannot measure reads of %llu bytes on %u workers; at least %u are needed",
        (unsigned long long)bytes, info.worker_count, parts * EYAS_MEASURE_READ_STEP);
  }
  const uint64_t times = shared || slice >= READ_BYTES ? 1 : READ_BYTES / slice;
  setting.constants[0] = (int64_t)(intptr_t)&kernels;
  setting.constants[1] = (int64_t)slice;
  setting.constants[2] = (int64_t)times;
  setting.amount = (double)setting.workgroups * (double)slice * (double)times;
  return measure(device, info.worker_count, &setting, milliseconds, out_bytes_per_s);
}
