// What only the local drivers promise: shared memory, functions of this process, scratch of
// workers.
#include <time.h>

#include "hal/fixture.h"

static int inspect(const eyas_dispatch_t* dispatch, const eyas_workgroup_t* workgroup) {
  if ((uintptr_t)workgroup->scratch % 64) return 101;
  if (workgroup->scratch_bytes < EYAS_MIN_SCRATCH_BYTES) return 102;
  char* scratch = workgroup->scratch;
  memset(scratch, (int)workgroup->worker, workgroup->scratch_bytes);
  for (uint64_t i = 0; i < workgroup->scratch_bytes; i += 997) {
    if (scratch[i] != (char)workgroup->worker) return 103;
  }
  if (dispatch->binding_count != 1 || dispatch->binding_bytes[0] != 16) return 104;
  if (dispatch->constant_count != 2 || dispatch->constants[1] != INT64_MIN) return 105;
  for (int i = 0; i < 3; ++i) {
    if (workgroup->id[i] >= dispatch->workgroup_count[i]) return 106;
  }
  return 0;
}

// binding 0 [2]: checks what it is told about itself; uses all of its scratch.
static void kernel_inspect(const eyas_dispatch_t* dispatch, const eyas_workgroup_t* workgroup) {
  int code = inspect(dispatch, workgroup);
  if (code) eyas_dispatch_report(dispatch, (uint32_t)code);
}

// Every workgroup reports an error of its own.
static void kernel_report(const eyas_dispatch_t* dispatch, const eyas_workgroup_t* workgroup) {
  eyas_dispatch_report(dispatch, 42 + workgroup->id[0]);
}

// binding 0: the worker that ran it, after a time in which others would have found work.
static void kernel_note_worker(const eyas_dispatch_t* dispatch, const eyas_workgroup_t* workgroup) {
  nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  ((uint32_t*)dispatch->bindings[0])[0] = workgroup->worker;
}

static eyas_hal_executable_t* new_functions(eyas_hal_device_t* device) {
  static const char* const names[] = {"inspect", "report", "note_worker"};
  static const eyas_dispatch_fn_t functions[] = {kernel_inspect, kernel_report, kernel_note_worker};
  eyas_hal_executable_t* executable = NULL;
  CHECK_OK(eyas_hal_executable_create_static(device, names, functions, 3, &executable));
  return executable;
}

// Three dimensions, constants, scratch and sizes as the kernel sees them.
static void test_inspect(eyas_hal_device_t* device) {
  eyas_hal_executable_t* functions = new_functions(device);
  eyas_hal_buffer_t* buffer = new_buffer(device, 24);
  eyas_hal_command_buffer_t* commands = new_commands(device, 0);
  eyas_hal_binding_t binding = direct(buffer, 8, 16);
  CHECK_OK(eyas_hal_command_buffer_dispatch(
      commands, &(eyas_hal_dispatch_t){.executable = functions,
                                       .workgroup_count = {5, 3, 2},
                                       .constants = (int64_t[]){1, INT64_MIN},
                                       .constant_count = 2,
                                       .bindings = &binding,
                                       .binding_count = 1}));
  CHECK_OK(eyas_hal_command_buffer_end(commands));
  CHECK_OK(run(device, commands, NULL, 0));
  eyas_hal_command_buffer_release(commands);
  eyas_hal_executable_release(functions);
  eyas_hal_buffer_release(buffer);
}

// Of many errors one is told, whole: its code is one that a workgroup reported.
static void test_first_error(eyas_hal_device_t* device) {
  eyas_hal_executable_t* functions = new_functions(device);
  eyas_hal_command_buffer_t* commands = new_commands(device, 0);
  eyas_hal_dispatch_t dispatch = {
      .executable = functions, .ordinal = 1, .workgroup_count = {0, 1, 1}};
  CHECK_OK(eyas_hal_command_buffer_dispatch(commands, &dispatch));
  dispatch.workgroup_count[0] = 100;
  CHECK_OK(eyas_hal_command_buffer_dispatch(commands, &dispatch));
  CHECK_OK(eyas_hal_command_buffer_end(commands));
  for (int i = 0; i < 20; ++i) {
    eyas_status_t status = run(device, commands, NULL, 0);
    unsigned code = 0;
    const char* told = strstr(eyas_status_message(status), "(command 1) reported error ");
    CHECK(told && sscanf(told, "(command 1) reported error %u", &code) == 1);
    CHECK(code >= 42 && code < 142);
    CHECK_FAILS(status, INTERNAL, "dispatch 'report'");
  }
  eyas_hal_command_buffer_release(commands);
  eyas_hal_executable_release(functions);
}

// A wave of dispatches of one workgroup and few bytes each is one worker's alone.
static void test_tiny_wave(eyas_hal_device_t* device) {
  enum { COUNT = 8, BYTES = 64 };
  eyas_hal_executable_t* functions = new_functions(device);
  eyas_hal_buffer_t* buffer = new_shared_buffer(device, COUNT * BYTES);
  eyas_hal_command_buffer_t* commands = new_commands(device, 0);
  for (int i = 0; i < COUNT; ++i) {
    eyas_hal_binding_t binding = direct(buffer, (uint64_t)i * BYTES, BYTES);
    CHECK_OK(eyas_hal_command_buffer_dispatch(commands,
                                              &(eyas_hal_dispatch_t){.executable = functions,
                                                                     .ordinal = 2,
                                                                     .workgroup_count = {1, 1, 1},
                                                                     .bindings = &binding,
                                                                     .binding_count = 1}));
  }
  CHECK_OK(eyas_hal_command_buffer_end(commands));
  for (int repeat = 0; repeat < 5; ++repeat) {
    CHECK_OK(run(device, commands, NULL, 0));
    const uint32_t* workers = map(buffer);
    for (int i = 0; i < COUNT; ++i) CHECK(workers[(size_t)i * BYTES / 4] == workers[0]);
    eyas_hal_buffer_unmap(buffer);
  }
  eyas_hal_command_buffer_release(commands);
  eyas_hal_executable_release(functions);
  eyas_hal_buffer_release(buffer);
}

static void* allocate_mapped(eyas_hal_device_t* device, uint64_t bytes,
                             eyas_hal_buffer_t** buffer) {
  *buffer = new_shared_buffer(device, bytes);
  void* pointer = map(*buffer);
  memset(pointer, 1, bytes);
  eyas_hal_buffer_unmap(*buffer);
  return pointer;
}

// Released memory serves the next buffer of the same size, one at a time; and nothing is lost when
// more is released than is kept.
static void test_reuse(eyas_hal_device_t* device) {
  const uint64_t bytes = 1 << 20;
  eyas_hal_buffer_t *first = NULL, *second = NULL, *third = NULL;
  void* memory = allocate_mapped(device, bytes, &first);
  eyas_hal_buffer_release(first);
  CHECK(allocate_mapped(device, bytes, &first) == memory);
  CHECK(allocate_mapped(device, bytes, &second) != memory);
  eyas_hal_buffer_release(first);
  CHECK(allocate_mapped(device, 2 * bytes, &third) != memory);
  CHECK(allocate_mapped(device, bytes, &first) == memory);
  eyas_hal_buffer_release(first);
  eyas_hal_buffer_release(second);
  eyas_hal_buffer_release(third);
  eyas_hal_buffer_t* many[12] = {NULL};
  for (uint32_t i = 0; i < 12; ++i) allocate_mapped(device, bytes * (1 + i), &many[i]);
  for (uint32_t i = 0; i < 12; ++i) eyas_hal_buffer_release(many[i]);
  for (uint32_t i = 0; i < 12; ++i) allocate_mapped(device, bytes * (12 - i), &many[i]);
  for (uint32_t i = 0; i < 12; ++i) eyas_hal_buffer_release(many[i]);
}

static void on_local(void (*test)(eyas_hal_device_t* device)) {
  static const char* const drivers[] = {"local-sync", "local-task"};
  for (int i = 0; i < 2; ++i) {
    eyas_hal_device_t* device = NULL;
    const eyas_hal_option_t threads = {.name = "threads", .number = 4};
    const eyas_hal_device_options_t options = {.values = &threads, .value_count = 1};
    CHECK_OK(eyas_hal_device_create(drivers[i], &options, &device));
    test(device);
    eyas_hal_device_release(device);
  }
}

int main(void) {
  on_local(test_inspect);
  on_local(test_first_error);
  on_local(test_tiny_wave);
  on_local(test_reuse);
  return check_summary("hal local");
}
