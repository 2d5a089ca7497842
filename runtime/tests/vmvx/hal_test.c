// Bytecode behind the HAL: recording checks, failures with their place, scratch memory of others.
#include <string.h>

#include "hal/fixture.h"

enum { I64 = EYAS_VMVX_MEMORY_I64 };

// Three functions: `add` (binding 1 [i] = binding 0 [i] + constant, i the workgroup), `outside`
// (writes behind binding 0) and `peek` (binding 0 = the first 8 bytes of local memory).
static void make_executable(bytes_t* b) {
  static bytes_t code;
  put_start(b, 4);
  code.count = 0;
  OP(&code, BINDING, 0, 0);
  OP(&code, BINDING, 1, 1);
  OP(&code, CONSTANT, 2, 0);
  OP(&code, WORKGROUP, 3, 0);
  OP(&code, LOAD_AT, 4, 0, 3, I64);
  OP(&code, ADD, 4, 4, 2);
  OP(&code, STORE_AT, 4, 1, 3, I64);
  RETURN(&code);
  put_function(b,
               (header_t){.name = "add", .scalars = 5, .bindings = 2, .constants = 1, .writes = 2},
               &code);
  code.count = 0;
  OP(&code, BINDING, 0, 0);
  OP(&code, BINDING_BYTES, 1, 0);
  OP(&code, ADD, 0, 0, 1);
  OP(&code, STORE, 1, 0, 0, I64);
  RETURN(&code);
  put_function(b, (header_t){.name = "outside", .scalars = 2, .bindings = 1, .writes = 1}, &code);
  code.count = 0;
  OP(&code, BINDING, 0, 0);
  OP(&code, CONST, 1, 300000);
  OP(&code, LOCAL, 2, 1);
  OP(&code, CONST, 3, 299992);
  OP(&code, CONST, 4, 8);
  int64_t head = (int64_t)code.count;
  OP(&code, ADD, 6, 2, 5);
  OP(&code, LOAD, 6, 6, 0, I64);
  OP(&code, OR, 7, 7, 6);
  OP(&code, LOOP, 5, 4, 3, head);
  OP(&code, STORE, 7, 0, 0, I64);
  RETURN(&code);
  put_function(b, (header_t){.name = "peek", .scalars = 8, .bindings = 1, .writes = 1}, &code);
  code.count = 0;
  OP(&code, BR, 0);
  put_function(b, (header_t){.name = "forever"}, &code);
}

static eyas_status_t create(eyas_hal_device_t* device, const bytes_t* b,
                            eyas_hal_executable_t** out) {
  static const char* const names[] = {"add", "outside", "peek", "forever"};
  return eyas_hal_executable_create(device, "vmvx", b->data, b->count, names, 4, out);
}

static eyas_status_t record(eyas_hal_command_buffer_t* commands, eyas_hal_executable_t* executable,
                            uint32_t ordinal, const eyas_hal_binding_t* bindings,
                            uint32_t binding_count, uint32_t constant_count, uint32_t workgroups) {
  static const int64_t constants[2] = {1000, 0};
  return eyas_hal_command_buffer_dispatch(
      commands, &(eyas_hal_dispatch_t){.executable = executable,
                                       .ordinal = ordinal,
                                       .workgroup_count = {workgroups, 1, 1},
                                       .constants = constants,
                                       .constant_count = constant_count,
                                       .bindings = bindings,
                                       .binding_count = binding_count});
}

static void test_dispatch(eyas_hal_device_t* device) {
  if (strcmp(format_of(device), "vmvx")) return;
  static bytes_t b;
  enum { COUNT = 1000 };
  make_executable(&b);
  CHECK_OK(eyas_hal_device_check_code(device, "vmvx", NULL, 0));
  eyas_hal_executable_t* executable = NULL;
  if (!CHECK_OK(create(device, &b, &executable))) return;
  eyas_hal_buffer_t *in = new_buffer(device, 8 * COUNT), *out = new_buffer(device, 8 * COUNT);
  static int64_t data[COUNT];
  for (int i = 0; i < COUNT; ++i) data[i] = i;
  upload(in, data, sizeof(data));
  eyas_hal_command_buffer_t* commands = new_commands(device, 1);
  eyas_hal_binding_t source = direct(in, 0, EYAS_HAL_WHOLE);
  source.access = EYAS_HAL_ACCESS_READ;
  const eyas_hal_binding_t bindings[] = {source, indirect(0, 0, 8 * COUNT)};
  // What the code declares must be what is given.
  CHECK_FAILS(record(commands, executable, 0, bindings, 1, 1, COUNT), INVALID_ARGUMENT,
              "'add' has 1 bindings and 1 constants; its code has 2 and 1");
  CHECK_FAILS(record(commands, executable, 0, bindings, 2, 2, COUNT), INVALID_ARGUMENT,
              "has 2 and 1");
  const eyas_hal_binding_t turned[] = {bindings[1], source};
  CHECK_FAILS(record(commands, executable, 0, turned, 2, 1, COUNT), FAILED_PRECONDITION,
              "binding 1 is given for reading only, but its code writes it");
  CHECK_OK(record(commands, executable, 0, bindings, 2, 1, COUNT));
  CHECK_OK(eyas_hal_command_buffer_end(commands));
  CHECK_OK(run(device, commands, &(eyas_hal_range_t){.buffer = out, .length = EYAS_HAL_WHOLE}, 1));
  download(out, data, sizeof(data));
  for (int i = 0; i < COUNT; ++i) CHECK(data[i] == i + 1000);
  eyas_hal_command_buffer_release(commands);

  commands = new_commands(device, 0);
  const eyas_hal_binding_t target = direct(out, 0, 8 * COUNT - 8);  // there is memory behind
  CHECK_OK(record(commands, executable, 1, &target, 1, 0, 1));
  CHECK_OK(eyas_hal_command_buffer_end(commands));
  CHECK_FAILS(
      run(device, commands, NULL, 0), INTERNAL,
      "dispatch 'outside', workgroup (0, 0, 0): bytecode of 'outside': the instruction at byte 20 "
      "reads or writes outside of its buffers");
  download(out, data, sizeof(data));
  CHECK(data[COUNT - 1] == COUNT - 1 + 1000);
  eyas_hal_command_buffer_release(commands);
  eyas_hal_buffer_release(in);
  eyas_hal_buffer_release(out);
  eyas_hal_executable_release(executable);
}

static void kernel_dirty(const eyas_dispatch_t* dispatch, const eyas_workgroup_t* workgroup) {
  (void)dispatch;
  memset(workgroup->scratch, 0xEE, workgroup->scratch_bytes);
}

// Local memory never holds what other code has left in a worker's scratch memory.
static void test_scratch(eyas_hal_device_t* device) {
  if (strcmp(format_of(device), "vmvx")) return;
  static bytes_t b;
  make_executable(&b);
  if (!info_of(device).host_visible) return;  // it takes no functions of this process
  eyas_hal_executable_t *executable = NULL, *other = NULL;
  static const char* const name = "dirty";
  static const eyas_dispatch_fn_t function = kernel_dirty;
  CHECK_OK(create(device, &b, &executable));
  CHECK_OK(eyas_hal_executable_create_static(device, &name, &function, 1, &other));
  eyas_hal_buffer_t* out = new_buffer(device, 8);
  for (int again = 0; again < 2; ++again) {
    eyas_hal_command_buffer_t* commands = new_commands(device, 0);
    CHECK_OK(record(commands, other, 0, NULL, 0, 0, 64));
    CHECK_OK(eyas_hal_command_buffer_barrier(commands));
    const eyas_hal_binding_t target = direct(out, 0, 8);
    CHECK_OK(record(commands, executable, 2, &target, 1, 0, 1));
    CHECK_OK(eyas_hal_command_buffer_end(commands));
    CHECK_OK(run(device, commands, NULL, 0));
    CHECK(count_wrong(out, 1, 0) == 0);
    eyas_hal_command_buffer_release(commands);
  }
  eyas_hal_buffer_release(out);
  eyas_hal_executable_release(executable);
  eyas_hal_executable_release(other);
}

static void test_load(eyas_hal_device_t* device) {
  if (strcmp(format_of(device), "vmvx")) return;
  static bytes_t b;
  make_executable(&b);
  eyas_hal_executable_t* executable = NULL;
  static const char* const missing[] = {"add", "none"};
  CHECK_FAILS(eyas_hal_executable_create(device, "vmvx", b.data, b.count, missing, 2, &executable),
              NOT_FOUND, "no function 'none'");
  b.count -= 1;
  CHECK_FAILS(create(device, &b, &executable), CORRUPT, "ends inside");
  CHECK(executable == NULL);
}

static void test_budget(void) {
  static bytes_t b;
  make_executable(&b);
  const eyas_hal_option_t budget = {.name = "step_budget", .number = 1000};
  const eyas_hal_device_options_t options = {.values = &budget, .value_count = 1};
  eyas_hal_device_t* device = NULL;
  eyas_hal_executable_t* executable = NULL;
  CHECK_OK(eyas_hal_device_create("local-sync", &options, &device));
  CHECK_OK(create(device, &b, &executable));
  eyas_hal_command_buffer_t* commands = new_commands(device, 0);
  CHECK_OK(record(commands, executable, 3, NULL, 0, 0, 1));
  CHECK_OK(eyas_hal_command_buffer_end(commands));
  CHECK_FAILS(run(device, commands, NULL, 0), RESOURCE_EXHAUSTED, "budget");
  eyas_hal_command_buffer_release(commands);
  eyas_hal_executable_release(executable);
  eyas_hal_device_release(device);
}

int main(void) {
  for_each_device(test_dispatch);
  for_each_device(test_scratch);
  for_each_device(test_load);
  test_budget();
  return check_summary("vmvx/hal");
}
