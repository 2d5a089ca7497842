// Conformance: drivers, devices and buffers.
#include "hal/fixture.h"

static void test_drivers(void) {
  CHECK(eyas_hal_driver_count() >= 2);
  CHECK(eyas_hal_driver_name(eyas_hal_driver_count()) == NULL);
  eyas_hal_device_t* device = NULL;
  CHECK_FAILS(eyas_hal_device_create("quantum", NULL, &device), NOT_FOUND, "local-task");
  CHECK_FAILS(eyas_hal_device_create(NULL, NULL, &device), INVALID_ARGUMENT, "NULL");
  CHECK_FAILS(eyas_hal_device_create("local-sync", &(eyas_hal_device_options_t){.device_index = 9},
                                     &device),
              OUT_OF_RANGE, "index 9");
  eyas_hal_option_t value = {.name = "threads", .number = EYAS_HAL_MAX_WORKERS + 1};
  const eyas_hal_device_options_t options = {.values = &value, .value_count = 1};
  CHECK_FAILS(eyas_hal_device_create("local-task", &options, &device), OUT_OF_RANGE,
              "threads=1025 for a 'local-task' device; allowed is 0 to 1024");
  value = (eyas_hal_option_t){.name = "scratch_bytes", .number = UINT64_MAX / 2};
  CHECK_FAILS(eyas_hal_device_create("local-task", &options, &device), RESOURCE_EXHAUSTED,
              "scratch");
  value = (eyas_hal_option_t){.name = "warp"};
  CHECK_FAILS(eyas_hal_device_create("local-task", &options, &device), INVALID_ARGUMENT,
              "no option 'warp'; it has: threads, scratch_bytes, spin_us, step_budget");
  value = (eyas_hal_option_t){.name = "threads", .text = "many"};
  CHECK_FAILS(eyas_hal_device_create("local-task", &options, &device), INVALID_ARGUMENT,
              "threads of a 'local-task' device is a number");
  CHECK(strcmp(eyas_hal_driver_option("local-task", 0)->name, "threads") == 0);
  CHECK(!eyas_hal_driver_option("local-task", 99) && !eyas_hal_driver_option("quantum", 0));
  CHECK(device == NULL);
  uint32_t count = 0;
  CHECK_OK(eyas_hal_driver_device_count("local-task", &count));
  CHECK(count == 1);
  CHECK_OK(eyas_hal_device_create("local-task", NULL, &device));
  eyas_hal_device_info_t info;
  eyas_hal_device_info(device, &info);
  CHECK(info.worker_count >= 1 && info.scratch_bytes == EYAS_MIN_SCRATCH_BYTES);
  CHECK(strcmp(info.driver, "local-task") == 0 && info.name[0] != 0);
  CHECK(info.memory_type_count == 1 && (info.memory_types[0] & EYAS_HAL_MEMORY_HOST_VISIBLE));
  CHECK(info.host_visible && !info.asynchronous);
  CHECK(!eyas_hal_device_supports_format(device, "spirv"));
  CHECK(!eyas_hal_device_supports_format(device, NULL));
  eyas_hal_device_release(device);
  eyas_hal_device_release(NULL);
}

static void test_allocate(eyas_hal_device_t* device) {
  static const uint64_t lengths[] = {0, 1, 63, 64, 4096, 5 << 20};
  for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); ++i) {
    eyas_hal_buffer_t* buffer = new_buffer(device, lengths[i]);
    CHECK(eyas_hal_buffer_length(buffer) == lengths[i]);
    CHECK(eyas_hal_buffer_device(buffer) == device);
    CHECK(eyas_hal_buffer_access(buffer) == EYAS_HAL_ACCESS_READ_WRITE);
    char* data = map(buffer);
    CHECK((uintptr_t)data % EYAS_HAL_BUFFER_ALIGNMENT == 0);
    memset(data, 7, lengths[i]);
    eyas_hal_buffer_unmap(buffer);
    eyas_hal_buffer_release(buffer);
  }
  eyas_hal_buffer_t* buffer = NULL;
  CHECK_FAILS(eyas_hal_buffer_allocate(device, 0, EYAS_HAL_USAGE_ALL, UINT64_MAX, &buffer),
              RESOURCE_EXHAUSTED, "18446744073709551615");
  CHECK_FAILS(eyas_hal_buffer_allocate(device, 0, 0xff00, 8, &buffer), INVALID_ARGUMENT, "usage");
  CHECK_FAILS(eyas_hal_buffer_allocate(device, 0xff00, 0, 8, &buffer), INVALID_ARGUMENT, "memory");
  CHECK(buffer == NULL);
}

static void* allocate_mapped(eyas_hal_device_t* device, uint64_t bytes,
                             eyas_hal_buffer_t** buffer) {
  *buffer = new_buffer(device, bytes);
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

static void test_ranges(eyas_hal_device_t* device) {
  eyas_hal_buffer_t* buffer = new_buffer(device, 100);
  void* pointer = NULL;
  CHECK_FAILS(eyas_hal_buffer_map(buffer, EYAS_HAL_ACCESS_READ, 90, 11, &pointer), OUT_OF_RANGE,
              "offset 90 + length 11 is beyond the buffer's 100");
  CHECK_FAILS(eyas_hal_buffer_map(buffer, EYAS_HAL_ACCESS_READ, 101, EYAS_HAL_WHOLE, &pointer),
              OUT_OF_RANGE, "101");
  CHECK_FAILS(eyas_hal_buffer_map(buffer, EYAS_HAL_ACCESS_READ, 8, UINT64_MAX - 4, &pointer),
              OUT_OF_RANGE, "beyond");
  CHECK_OK(eyas_hal_buffer_map(buffer, EYAS_HAL_ACCESS_READ, 100, EYAS_HAL_WHOLE, &pointer));
  CHECK_FAILS(eyas_hal_buffer_map(buffer, 8, 0, 1, &pointer), INVALID_ARGUMENT, "access");
  CHECK_FAILS(eyas_hal_buffer_write(buffer, 98, "abcd", 4), OUT_OF_RANGE, "98");
  CHECK_FAILS(eyas_hal_buffer_read(buffer, 0, &pointer, EYAS_HAL_WHOLE), INVALID_ARGUMENT,
              "length");

  char back[5] = "";
  CHECK_OK(eyas_hal_buffer_write(buffer, 96, "abcd", 4));
  CHECK_OK(eyas_hal_buffer_read(buffer, 96, back, 4));
  CHECK(strcmp(back, "abcd") == 0);

  // A subspan of a subspan keeps the allocation alive on its own.
  eyas_hal_buffer_t *half = NULL, *quarter = NULL, *none = NULL;
  CHECK_OK(eyas_hal_buffer_subspan(buffer, 50, EYAS_HAL_WHOLE, &half));
  CHECK_OK(eyas_hal_buffer_subspan(half, 25, 25, &quarter));
  CHECK_FAILS(eyas_hal_buffer_subspan(quarter, 25, 1, &none), OUT_OF_RANGE, "subspan");
  eyas_hal_buffer_release(buffer);
  eyas_hal_buffer_release(half);
  CHECK_OK(eyas_hal_buffer_read(quarter, 21, back, 4));
  CHECK(strcmp(back, "abcd") == 0);
  eyas_hal_buffer_release(quarter);

  CHECK_OK(eyas_hal_buffer_allocate(device, 0, EYAS_HAL_USAGE_DISPATCH, 8, &buffer));
  CHECK_FAILS(eyas_hal_buffer_map(buffer, EYAS_HAL_ACCESS_READ, 0, 8, &pointer),
              FAILED_PRECONDITION, "EYAS_HAL_USAGE_MAP");
  eyas_hal_buffer_release(buffer);
}

static void count_release(void* user, void* pointer, uint64_t length) {
  CHECK(length == 16 && pointer != NULL);
  ++*(int*)user;
}

static void test_import(eyas_hal_device_t* device) {
  static const char constant[16] = "read-only bytes";
  int released = 0;
  eyas_hal_buffer_t *buffer = NULL, *view = NULL;
  CHECK_OK(eyas_hal_buffer_import(device, EYAS_HAL_USAGE_ALL, EYAS_HAL_ACCESS_READ,
                                  (void*)(uintptr_t)constant, 16, count_release, &released,
                                  &buffer));
  void* pointer = NULL;
  CHECK_OK(eyas_hal_buffer_map(buffer, EYAS_HAL_ACCESS_READ, 0, 16, &pointer));
  CHECK(pointer == constant);
  CHECK_FAILS(eyas_hal_buffer_map(buffer, EYAS_HAL_ACCESS_WRITE, 0, 16, &pointer),
              FAILED_PRECONDITION, "read-only");
  CHECK_FAILS(eyas_hal_buffer_write(buffer, 0, "x", 1), FAILED_PRECONDITION, "read-only");
  CHECK_OK(eyas_hal_buffer_subspan(buffer, 4, 4, &view));
  eyas_hal_command_buffer_t* commands = new_commands(device, 1);
  CHECK_FAILS(eyas_hal_command_buffer_fill(commands, direct(view, 0, 4), "\0", 1),
              FAILED_PRECONDITION, "read-only");
  CHECK_OK(eyas_hal_command_buffer_fill(commands, indirect(0, 0, 4), "\0", 1));
  CHECK_OK(eyas_hal_command_buffer_end(commands));
  CHECK_FAILS(run(device, commands, &(eyas_hal_range_t){view, 0, 4}, 1), FAILED_PRECONDITION,
              "slot 0 is written");
  eyas_hal_command_buffer_release(commands);
  eyas_hal_buffer_release(buffer);
  CHECK(released == 0);
  eyas_hal_buffer_release(view);
  CHECK(released == 1);
  CHECK_FAILS(eyas_hal_buffer_import(device, EYAS_HAL_USAGE_ALL, EYAS_HAL_ACCESS_READ, NULL, 8,
                                     count_release, &released, &buffer),
              INVALID_ARGUMENT, "import 8 bytes");
  CHECK_OK(eyas_hal_buffer_import(device, EYAS_HAL_USAGE_ALL, EYAS_HAL_ACCESS_READ, NULL, 0, NULL,
                                  NULL, &buffer));
  eyas_hal_buffer_release(buffer);
  CHECK(released == 1);
}

static void test_executables(eyas_hal_device_t* device) {
  eyas_hal_executable_t *kernels = new_kernels(device), *none = NULL;
  uint32_t ordinal = 99;
  CHECK(eyas_hal_executable_export_count(kernels) == KERNEL_COUNT);
  CHECK_OK(eyas_hal_executable_lookup(kernels, "reverse", &ordinal));
  CHECK(ordinal == REVERSE);
  CHECK(strcmp(eyas_hal_executable_export_name(kernels, FAIL), "fail") == 0);
  CHECK(eyas_hal_executable_export_name(kernels, KERNEL_COUNT) == NULL);
  CHECK_FAILS(eyas_hal_executable_lookup(kernels, "nope", &ordinal), NOT_FOUND, "nope");
  CHECK_FAILS(eyas_hal_executable_create(device, "spirv", "x", 1, NULL, 0, &none), INCOMPATIBLE,
              "spirv");
  const char* null_name[] = {NULL};
  eyas_dispatch_fn_t function[] = {kernel_nothing}, null_function[] = {NULL};
  CHECK_FAILS(eyas_hal_executable_create_static(device, null_name, function, 1, &none),
              INVALID_ARGUMENT, "name 0");
  CHECK_FAILS(eyas_hal_executable_create_static(device, null_name, null_function, 1, &none),
              INVALID_ARGUMENT, "function 0");
  eyas_hal_executable_release(kernels);
}

int main(void) {
  test_drivers();
  for_each_device(test_allocate);
  for_each_device(test_reuse);
  for_each_device(test_ranges);
  for_each_device(test_import);
  for_each_device(test_executables);
  return check_summary("hal buffers");
}
