// What the conformance tests share: devices of every driver, kernels, and short forms.
//
// The tests assume nothing that a driver may lack: memory is written and read by copies, work is
// waited for, and kernels come as a format that the device runs.
#ifndef EYAS_TESTS_HAL_FIXTURE_H_
#define EYAS_TESTS_HAL_FIXTURE_H_

#include "vmvx/assemble.h"  // first: it asks for the table of instructions

#include <stdint.h>
#include <stdlib.h>

#include "eyas/executable.h"
#include "eyas/hal.h"
#include "hal/check.h"
#include "hal/spirv_kernels.h"
#include "hal/vulkan/system.h"

// Layers and drivers of the system are not ours to mend.
#if defined(__SANITIZE_ADDRESS__)
const char* __lsan_default_suppressions(void);
const char* __lsan_default_suppressions(void) {
  return "leak:libVkLayer_khronos_validation.so\n";
}
#endif

static inline bool driver_has(const char* driver, const char* option) {
  const eyas_hal_option_info_t* info = NULL;
  for (uint32_t i = 0; (info = eyas_hal_driver_option(driver, i)); ++i) {
    if (strcmp(info->name, option) == 0) return true;
  }
  return false;
}

static inline bool has_device(const char* driver) {
  uint32_t count = 0;
  CHECK_OK(eyas_hal_driver_device_count(driver, &count));
  return count > 0;
}

// Whether what is done with the driver's devices can be checked by a layer of theirs.
static inline bool validates(const char* driver) {
  static bool known, works;
  if (!driver_has(driver, "validation")) return false;
  if (known) return works;
  const eyas_hal_option_t value = {.name = "validation", .number = 1};
  const eyas_hal_device_options_t options = {.values = &value, .value_count = 1};
  eyas_hal_device_t* device = NULL;
  eyas_status_t status = eyas_hal_device_create(driver, &options, &device);
  eyas_hal_device_release(device);
  known = true;
  works = !status;
  eyas_status_free(status);
  return works;
}

// How kernels reach a device: as code of a format, or as functions of this process.
static bool kernels_are_functions;

static inline const char* format_of(eyas_hal_device_t* device) {
  eyas_status_t status = eyas_hal_device_check_code(device, "vmvx", NULL, 0);
  const char* format = status ? "spirv" : "vmvx";
  eyas_status_free(status);
  return format;
}

// Runs a test on devices of every driver: with more workers than most test machines have CPUs, with
// workers that sleep at once and workers that spin, with work that starts at once and work that is
// late, with memory that the host sees and memory that it does not; and with every kind of kernels
// that the device takes. A driver without a device here is left out.
static inline void for_each_device(void (*test)(eyas_hal_device_t* device)) {
  static const eyas_hal_option_t settings[] = {
      {.name = "spin_us", .number = 0},  {.name = "spin_us", .number = 50},
      {.name = "delay_us", .number = 0}, {.name = "delay_us", .number = 300},
      {.name = "staging", .number = 0},  {.name = "staging", .number = 1},
  };
  for (size_t i = 0; i < eyas_hal_driver_count(); ++i) {
    const char* driver = eyas_hal_driver_name(i);
    if (!has_device(driver)) continue;
    for (size_t k = 0; k < sizeof(settings) / sizeof(settings[0]); ++k) {
      if (!driver_has(driver, settings[k].name)) continue;
      eyas_hal_option_t values[3] = {settings[k]};
      eyas_hal_device_options_t options = {.values = values, .value_count = 1};
      if (driver_has(driver, "threads")) {
        values[options.value_count++] = (eyas_hal_option_t){.name = "threads", .number = 4};
      }
      if (settings[k].number && validates(driver)) {
        values[options.value_count++] = (eyas_hal_option_t){.name = "validation", .number = 1};
      }
      eyas_hal_device_t* device = NULL;
      if (!CHECK_OK(eyas_hal_device_create(driver, &options, &device))) continue;
      for (int functions = 0; functions < (driver_has(driver, "spin_us") ? 2 : 1); ++functions) {
        kernels_are_functions = functions;
        test(device);
        CHECK_OK(eyas_hal_device_wait_idle(device));
      }
      CHECK(eyas_hal_vulkan_validation_messages() == 0);
      eyas_hal_device_release(device);
    }
  }
}

static inline eyas_hal_device_info_t info_of(eyas_hal_device_t* device) {
  eyas_hal_device_info_t info;
  eyas_hal_device_info(device, &info);
  return info;
}

static inline const char* property_of(eyas_hal_device_t* device, const char* name) {
  eyas_hal_property_t property;
  for (uint32_t i = 0; eyas_hal_device_property(device, i, &property); ++i) {
    if (strcmp(property.name, name) == 0) return property.value;
  }
  return NULL;
}

// Whether waves after one that failed are skipped. A GPU without conditional dispatches runs them.
static inline bool stops_at_failures(eyas_hal_device_t* device) {
  return strcmp(format_of(device), "spirv") != 0 || property_of(device, "conditional");
}

// Memory near the device, for dispatches and copies.
static inline eyas_hal_buffer_t* new_buffer(eyas_hal_device_t* device, uint64_t length) {
  eyas_hal_buffer_t* buffer = NULL;
  CHECK_OK(eyas_hal_buffer_allocate(device, EYAS_HAL_MEMORY_DEVICE_LOCAL,
                                    EYAS_HAL_USAGE_DISPATCH | EYAS_HAL_USAGE_TRANSFER, length,
                                    &buffer));
  return buffer;
}

static inline eyas_hal_buffer_t* new_zeros(eyas_hal_device_t* device, uint64_t length) {
  eyas_hal_buffer_t* buffer = new_buffer(device, length);
  void* zeros = calloc(1, length + 1);
  CHECK_OK(eyas_hal_buffer_write(buffer, 0, zeros, length));
  free(zeros);
  return buffer;
}

static inline void upload(eyas_hal_buffer_t* buffer, const void* data, uint64_t length) {
  CHECK_OK(eyas_hal_buffer_write(buffer, 0, data, length));
}

static inline void download(eyas_hal_buffer_t* buffer, void* data, uint64_t length) {
  CHECK_OK(eyas_hal_buffer_read(buffer, 0, data, length));
}

// How many of the first `count` int64 of a buffer are not `expected`.
static inline uint64_t count_wrong(eyas_hal_buffer_t* buffer, uint64_t count, int64_t expected) {
  int64_t* data = malloc(count * 8);
  download(buffer, data, count * 8);
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < count; ++i) wrong += data[i] != expected;
  free(data);
  return wrong;
}

// Memory that host and device share, on devices that have it (host_visible).
static inline eyas_hal_buffer_t* new_shared_buffer(eyas_hal_device_t* device, uint64_t length) {
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

// Submits and waits.
static inline eyas_status_t run(eyas_hal_device_t* device, eyas_hal_command_buffer_t* commands,
                                const eyas_hal_range_t* table, uint32_t table_count) {
  eyas_hal_semaphore_t* done = NULL;
  EYAS_RETURN_IF_ERROR(eyas_hal_semaphore_create(device, 0, &done));
  eyas_status_t status = eyas_hal_device_submit(
      device, &(eyas_hal_submission_t){.commands = commands,
                                       .table = table,
                                       .table_count = table_count,
                                       .signals = &(eyas_hal_timepoint_t){done, 1},
                                       .signal_count = 1});
  if (!status) status = eyas_hal_semaphore_wait(done, 1, EYAS_HAL_FOREVER);
  eyas_hal_semaphore_release(done);
  return status;
}

//===-- Kernels ---------------------------------------------------------------------------------//

// binding 0, one int64 for each workgroup: += constant 0. Constants 1 and 2: the grid's x and y.
static void kernel_add(const eyas_dispatch_t* dispatch, const eyas_workgroup_t* workgroup) {
  int64_t* data = dispatch->bindings[0];
  const int64_t* size = dispatch->constants + 1;
  data[workgroup->id[0] + size[0] * (workgroup->id[1] + size[1] * (int64_t)workgroup->id[2])] +=
      dispatch->constants[0];
}

// binding 1 = binding 0 read backwards, + 1: every workgroup reads what another one wrote before.
// Constant 0: the number of workgroups.
static void kernel_reverse(const eyas_dispatch_t* dispatch, const eyas_workgroup_t* workgroup) {
  const int64_t* source = dispatch->bindings[0];
  int64_t* target = dispatch->bindings[1];
  target[workgroup->id[0]] = source[dispatch->constants[0] - 1 - workgroup->id[0]] + 1;
}

// Finds bad data in the workgroup that constant 0 names.
static void kernel_fail(const eyas_dispatch_t* dispatch, const eyas_workgroup_t* workgroup) {
  if (workgroup->id[0] != dispatch->constants[0]) return;
  eyas_dispatch_report(dispatch, EYAS_ERROR_BAD_DATA);
}

// binding 0 [1] = its own size in bytes.
static void kernel_size(const eyas_dispatch_t* dispatch, const eyas_workgroup_t* workgroup) {
  (void)workgroup;
  *(uint64_t*)dispatch->bindings[0] = dispatch->binding_bytes[0];
}

enum { ADD, REVERSE, FAIL, SIZE, KERNEL_COUNT };

// The same four as bytecode.
static inline void assemble_kernels(bytes_t* b) {
  enum { I64 = EYAS_VMVX_MEMORY_I64 };
  static bytes_t code;
  put_start(b, KERNEL_COUNT);
  code.count = 0;
  OP(&code, BINDING, 0, 0);
  for (int i = 0; i < 3; ++i) OP(&code, CONSTANT, 1 + i, i);
  for (int i = 0; i < 3; ++i) OP(&code, WORKGROUP, 4 + i, i);
  OP(&code, MADD, 7, 6, 3, 5);  // z * size y + y
  OP(&code, MADD, 7, 7, 2, 4);  // that * size x + x
  OP(&code, LOAD_AT, 8, 0, 7, I64);
  OP(&code, ADD, 8, 8, 1);
  OP(&code, STORE_AT, 8, 0, 7, I64);
  RETURN(&code);
  put_function(b,
               (header_t){.name = "add", .scalars = 9, .bindings = 1, .constants = 3, .writes = 1},
               &code);
  code.count = 0;
  for (int i = 0; i < 2; ++i) OP(&code, BINDING, i, i);
  OP(&code, CONSTANT, 2, 0);
  OP(&code, WORKGROUP, 3, 0);
  OP(&code, CONST, 4, 1);
  OP(&code, SUB, 2, 2, 4);
  OP(&code, SUB, 2, 2, 3);
  OP(&code, LOAD_AT, 5, 0, 2, I64);
  OP(&code, ADD, 5, 5, 4);
  OP(&code, STORE_AT, 5, 1, 3, I64);
  RETURN(&code);
  put_function(
      b, (header_t){.name = "reverse", .scalars = 6, .bindings = 2, .constants = 1, .writes = 2},
      &code);
  code.count = 0;
  OP(&code, CONSTANT, 0, 0);
  OP(&code, WORKGROUP, 1, 0);
  OP(&code, NE, 0, 0, 1);
  OP(&code, CHECK, 0);
  RETURN(&code);
  put_function(b, (header_t){.name = "fail", .scalars = 2, .constants = 1}, &code);
  code.count = 0;
  OP(&code, BINDING, 0, 0);
  OP(&code, BINDING_BYTES, 1, 0);
  OP(&code, CONST, 2, 0);
  OP(&code, STORE_AT, 1, 0, 2, I64);
  RETURN(&code);
  put_function(b, (header_t){.name = "size", .scalars = 3, .bindings = 1, .writes = 1}, &code);
}

static inline eyas_hal_executable_t* new_kernels(eyas_hal_device_t* device) {
  static const char* const names[] = {"add", "reverse", "fail", "size"};
  static const eyas_dispatch_fn_t functions[] = {kernel_add, kernel_reverse, kernel_fail,
                                                 kernel_size};
  eyas_hal_executable_t* executable = NULL;
  if (kernels_are_functions) {
    CHECK_OK(
        eyas_hal_executable_create_static(device, names, functions, KERNEL_COUNT, &executable));
    return executable;
  }
  if (strcmp(format_of(device), "spirv") == 0) {
    spirv_file_t* file = calloc(1, sizeof(*file));
    spirv_write_kernels(file);
    CHECK_OK(eyas_hal_executable_create(device, "spirv", file->words, 4 * file->count, names,
                                        KERNEL_COUNT, &executable));
    free(file);
    return executable;
  }
  bytes_t* bytes = calloc(1, sizeof(*bytes));
  assemble_kernels(bytes);
  CHECK_OK(eyas_hal_executable_create(device, "vmvx", bytes->data, bytes->count, names,
                                      KERNEL_COUNT, &executable));
  free(bytes);
  return executable;
}

// Records add(binding, amount) over a grid.
static inline eyas_status_t record_add_3d(eyas_hal_command_buffer_t* commands,
                                          eyas_hal_executable_t* kernels,
                                          eyas_hal_binding_t binding, int64_t amount, uint32_t x,
                                          uint32_t y, uint32_t z) {
  const int64_t constants[] = {amount, x, y};
  return eyas_hal_command_buffer_dispatch(commands,
                                          &(eyas_hal_dispatch_t){.executable = kernels,
                                                                 .ordinal = ADD,
                                                                 .workgroup_count = {x, y, z},
                                                                 .constants = constants,
                                                                 .constant_count = 3,
                                                                 .bindings = &binding,
                                                                 .binding_count = 1});
}

static inline eyas_status_t record_add(eyas_hal_command_buffer_t* commands,
                                       eyas_hal_executable_t* kernels, eyas_hal_binding_t binding,
                                       int64_t amount, uint32_t workgroups) {
  return record_add_3d(commands, kernels, binding, amount, workgroups, 1, 1);
}

static inline eyas_status_t record_reverse(eyas_hal_command_buffer_t* commands,
                                           eyas_hal_executable_t* kernels,
                                           eyas_hal_binding_t source, eyas_hal_binding_t target,
                                           uint32_t workgroups) {
  source.access = EYAS_HAL_ACCESS_READ;
  const int64_t count = workgroups;
  return eyas_hal_command_buffer_dispatch(
      commands, &(eyas_hal_dispatch_t){.executable = kernels,
                                       .ordinal = REVERSE,
                                       .workgroup_count = {workgroups, 1, 1},
                                       .constants = &count,
                                       .constant_count = 1,
                                       .bindings = (eyas_hal_binding_t[]){source, target},
                                       .binding_count = 2});
}

#endif  // EYAS_TESTS_HAL_FIXTURE_H_
