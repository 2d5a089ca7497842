// What the conformance tests share: devices of every driver, kernels, and short forms.
#ifndef EYAS_TESTS_HAL_FIXTURE_H_
#define EYAS_TESTS_HAL_FIXTURE_H_

#include <stdint.h>
#include <stdlib.h>

#include "eyas/executable.h"
#include "eyas/hal.h"
#include "hal/check.h"

// Runs a test on a device of every driver, with more workers than most test machines have CPUs, and
// with workers that sleep at once as well as workers that spin.
static inline void for_each_device(void (*test)(eyas_hal_device_t* device)) {
  for (size_t i = 0; i < eyas_hal_driver_count(); ++i) {
    for (uint32_t spin_us = 0; spin_us <= 50; spin_us += 50) {
      const eyas_hal_option_t values[] = {{.name = "threads", .number = 4},
                                          {.name = "spin_us", .number = spin_us}};
      const eyas_hal_device_options_t options = {.values = values, .value_count = 2};
      eyas_hal_device_t* device = NULL;
      if (!CHECK_OK(eyas_hal_device_create(eyas_hal_driver_name(i), &options, &device))) continue;
      test(device);
      CHECK_OK(eyas_hal_device_wait_idle(device));
      eyas_hal_device_release(device);
    }
  }
}

static inline eyas_hal_buffer_t* new_buffer(eyas_hal_device_t* device, uint64_t length) {
  eyas_hal_buffer_t* buffer = NULL;
  CHECK_OK(eyas_hal_buffer_allocate(device, EYAS_HAL_MEMORY_HOST_VISIBLE, EYAS_HAL_USAGE_ALL,
                                    length, &buffer));
  return buffer;
}

static inline void* map(eyas_hal_buffer_t* buffer) {
  void* pointer = NULL;
  CHECK_OK(eyas_hal_buffer_map(buffer, EYAS_HAL_ACCESS_READ_WRITE, 0, EYAS_HAL_WHOLE, &pointer));
  return pointer;
}

static inline eyas_hal_binding_t direct(eyas_hal_buffer_t* buffer, uint64_t offset,
                                        uint64_t length) {
  return (eyas_hal_binding_t){
      .buffer = buffer, .access = EYAS_HAL_ACCESS_READ_WRITE, .offset = offset, .length = length};
}

static inline eyas_hal_binding_t indirect(uint32_t slot, uint64_t offset, uint64_t length) {
  return (eyas_hal_binding_t){
      .slot = slot, .access = EYAS_HAL_ACCESS_READ_WRITE, .offset = offset, .length = length};
}

static inline eyas_hal_command_buffer_t* new_commands(eyas_hal_device_t* device, uint32_t slots) {
  eyas_hal_command_buffer_t* commands = NULL;
  CHECK_OK(eyas_hal_command_buffer_create(device, slots, &commands));
  return commands;
}

static inline eyas_status_t run(eyas_hal_device_t* device, eyas_hal_command_buffer_t* commands,
                                const eyas_hal_range_t* table, uint32_t table_count) {
  return eyas_hal_device_submit(
      device,
      &(eyas_hal_submission_t){.commands = commands, .table = table, .table_count = table_count});
}

//===-- Kernels ---------------------------------------------------------------------------------//

// binding 0, int64 per workgroup: += constant 0. One element for each workgroup.
static void kernel_add(const eyas_dispatch_t* dispatch, const eyas_workgroup_t* workgroup) {
  int64_t* data = dispatch->bindings[0];
  uint64_t index =
      workgroup->id[0] +
      (uint64_t)dispatch->workgroup_count[0] *
          (workgroup->id[1] + (uint64_t)dispatch->workgroup_count[1] * workgroup->id[2]);
  data[index] += dispatch->constants[0];
}

// binding 1 = binding 0 read backwards, + 1: every workgroup reads what another one wrote before.
static void kernel_reverse(const eyas_dispatch_t* dispatch, const eyas_workgroup_t* workgroup) {
  const int64_t* source = dispatch->bindings[0];
  int64_t* target = dispatch->bindings[1];
  uint64_t index = workgroup->id[0], count = dispatch->workgroup_count[0];
  target[index] = source[count - 1 - index] + 1;
}

// Fails in the workgroup that constant 0 names.
static void kernel_fail(const eyas_dispatch_t* dispatch, const eyas_workgroup_t* workgroup) {
  if (workgroup->id[0] == dispatch->constants[0]) eyas_dispatch_report(dispatch, 42);
}

// binding 0 [2]: checks what it is told about itself; uses all of its scratch.
static int inspect(const eyas_dispatch_t* dispatch, const eyas_workgroup_t* workgroup) {
  if ((uintptr_t)workgroup->scratch % 64 || workgroup->scratch_bytes < EYAS_MIN_SCRATCH_BYTES) return 101;
  char* scratch = workgroup->scratch;
  memset(scratch, (int)workgroup->worker, workgroup->scratch_bytes);
  for (uint64_t i = 0; i < workgroup->scratch_bytes; i += 997) {
    if (scratch[i] != (char)workgroup->worker) return 102;
  }
  if (dispatch->binding_count != 1 || dispatch->binding_bytes[0] != 16) return 103;
  if (dispatch->constant_count != 2 || dispatch->constants[1] != INT64_MIN) return 104;
  for (int i = 0; i < 3; ++i) {
    if (workgroup->id[i] >= dispatch->workgroup_count[i]) return 105;
  }
  return 0;
}

static void kernel_inspect(const eyas_dispatch_t* dispatch, const eyas_workgroup_t* workgroup) {
  int code = inspect(dispatch, workgroup);
  if (code) eyas_dispatch_report(dispatch, (uint32_t)code);
}

// Does nothing, for the cost of a dispatch.
static void kernel_nothing(const eyas_dispatch_t* dispatch, const eyas_workgroup_t* workgroup) {
  (void)dispatch, (void)workgroup;
}

enum { ADD, REVERSE, FAIL, INSPECT, NOTHING, KERNEL_COUNT };

static inline eyas_hal_executable_t* new_kernels(eyas_hal_device_t* device) {
  static const char* const names[] = {"add", "reverse", "fail", "inspect", "nothing"};
  static const eyas_dispatch_fn_t functions[] = {kernel_add, kernel_reverse, kernel_fail,
                                                 kernel_inspect, kernel_nothing};
  eyas_hal_executable_t* executable = NULL;
  CHECK_OK(eyas_hal_executable_create_static(device, names, functions, KERNEL_COUNT, &executable));
  return executable;
}

// Records add(binding, amount) over a line of workgroups.
static inline eyas_status_t record_add(eyas_hal_command_buffer_t* commands,
                                       eyas_hal_executable_t* kernels, eyas_hal_binding_t binding,
                                       int64_t amount, uint32_t workgroups) {
  return eyas_hal_command_buffer_dispatch(
      commands, &(eyas_hal_dispatch_t){.executable = kernels,
                                       .ordinal = ADD,
                                       .workgroup_count = {workgroups, 1, 1},
                                       .constants = &amount,
                                       .constant_count = 1,
                                       .bindings = &binding,
                                       .binding_count = 1});
}

static inline eyas_status_t record_reverse(eyas_hal_command_buffer_t* commands,
                                           eyas_hal_executable_t* kernels,
                                           eyas_hal_binding_t source, eyas_hal_binding_t target,
                                           uint32_t workgroups) {
  source.access = EYAS_HAL_ACCESS_READ;
  return eyas_hal_command_buffer_dispatch(
      commands, &(eyas_hal_dispatch_t){.executable = kernels,
                                       .ordinal = REVERSE,
                                       .workgroup_count = {workgroups, 1, 1},
                                       .bindings = (eyas_hal_binding_t[]){source, target},
                                       .binding_count = 2});
}

#endif  // EYAS_TESTS_HAL_FIXTURE_H_
