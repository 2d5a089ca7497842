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
  static const char* const features[] = {"feature-of-tomorrow"};
  CHECK_OK(eyas_hal_device_check_code(device, "vmvx", NULL, 0));
  CHECK_FAILS(eyas_hal_device_check_code(device, "spirv", NULL, 0), INCOMPATIBLE,
              "format spirv, which device local-task");
  CHECK_FAILS(eyas_hal_device_check_code(device, "vmvx", features, 1), INCOMPATIBLE,
              "'feature-of-tomorrow'");
  CHECK_FAILS(eyas_hal_device_check_code(device, NULL, NULL, 0), INVALID_ARGUMENT, "NULL");
  eyas_hal_device_release(device);
  eyas_hal_device_release(NULL);
}

static void test_allocate(eyas_hal_device_t* device) {
  static const uint64_t lengths[] = {0, 1, 63, 64, 4096, 5 << 20};
  const eyas_hal_device_info_t info = info_of(device);
  for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); ++i) {
    eyas_hal_buffer_t* buffer = new_buffer(device, lengths[i]);
    CHECK(eyas_hal_buffer_length(buffer) == lengths[i]);
    CHECK(eyas_hal_buffer_device(buffer) == device);
    CHECK(eyas_hal_buffer_access(buffer) == EYAS_HAL_ACCESS_READ_WRITE);
    CHECK(eyas_hal_buffer_memory(buffer) & EYAS_HAL_MEMORY_DEVICE_LOCAL);
    CHECK(!!(eyas_hal_buffer_memory(buffer) & EYAS_HAL_MEMORY_HOST_VISIBLE) == info.host_visible);
    eyas_hal_buffer_release(buffer);
    // What the host sees, for transfers, is there on every device.
    CHECK_OK(eyas_hal_buffer_allocate(device, EYAS_HAL_MEMORY_HOST_VISIBLE,
                                      EYAS_HAL_USAGE_TRANSFER | EYAS_HAL_USAGE_MAP, lengths[i],
                                      &buffer));
    char* data = map(buffer);
    CHECK((uintptr_t)data % EYAS_HAL_BUFFER_ALIGNMENT == 0);
    memset(data, 7, lengths[i]);
    eyas_hal_buffer_unmap(buffer);
    eyas_hal_buffer_release(buffer);
  }
  eyas_hal_buffer_t* buffer = NULL;
  const uint32_t near = EYAS_HAL_USAGE_DISPATCH | EYAS_HAL_USAGE_TRANSFER;
  CHECK_FAILS(eyas_hal_buffer_allocate(device, 0, near, UINT64_MAX, &buffer), RESOURCE_EXHAUSTED,
              "18446744073709551615");
  CHECK_FAILS(eyas_hal_buffer_allocate(device, 0, 0xff00, 8, &buffer), INVALID_ARGUMENT, "usage");
  CHECK_FAILS(eyas_hal_buffer_allocate(device, 0xff00, 0, 8, &buffer), INVALID_ARGUMENT, "memory");
  CHECK(buffer == NULL);
  eyas_status_t status = eyas_hal_buffer_allocate(device, 0, EYAS_HAL_USAGE_ALL, 8, &buffer);
  if (info.host_visible) {
    CHECK_OK(status);
    eyas_hal_buffer_release(buffer);
  } else {
    CHECK_FAILS(status, INCOMPATIBLE, "no memory that the host can map");
  }
}

// Released memory is given out again, and what is in use stays what it was: many buffers of many
// sizes, released in another order than they came.
static void test_many(eyas_hal_device_t* device) {
  enum { COUNT = 40, ROUNDS = 5 };
  eyas_hal_buffer_t* buffers[COUNT] = {NULL};
  int64_t numbers[COUNT];
  uint32_t random = 1;
  for (int round = 0; round < ROUNDS; ++round) {
    for (int i = 0; i < COUNT; ++i) {
      random = random * 1664525 + 1013904223;
      if (buffers[i] && random >> 30) continue;  // three in four stay
      eyas_hal_buffer_release(buffers[i]);
      buffers[i] = new_buffer(device, 8 + (random >> 8) % 300000);
      numbers[i] = random;
      uint64_t end = eyas_hal_buffer_length(buffers[i]) - 8;
      CHECK_OK(eyas_hal_buffer_write(buffers[i], end, &numbers[i], 8));
    }
    int wrong = 0;
    for (int i = 0; i < COUNT; ++i) {
      int64_t number = 0;
      uint64_t end = eyas_hal_buffer_length(buffers[i]) - 8;
      CHECK_OK(eyas_hal_buffer_read(buffers[i], end, &number, 8));
      wrong += number != numbers[i];
    }
    CHECK(wrong == 0);
  }
  for (int i = 0; i < COUNT; ++i) eyas_hal_buffer_release(buffers[i]);
}

// Copies between host and device that are larger than the window between them.
static void test_large_transfer(eyas_hal_device_t* device) {
  const uint64_t bytes = (33 << 20) + 5;
  uint8_t *there = malloc(bytes), *back = calloc(1, bytes);
  for (uint64_t i = 0; i < bytes; ++i) there[i] = (uint8_t)(i * 2654435761u >> 24);
  eyas_hal_buffer_t* buffer = new_buffer(device, bytes + 3);
  CHECK_OK(eyas_hal_buffer_write(buffer, 3, there, bytes));
  CHECK_OK(eyas_hal_buffer_read(buffer, 3, back, bytes));
  CHECK(memcmp(there, back, bytes) == 0);
  eyas_hal_buffer_release(buffer);
  free(there);
  free(back);
}

static void test_ranges(eyas_hal_device_t* device) {
  eyas_hal_buffer_t* buffer = NULL;
  void* pointer = NULL;
  CHECK_OK(eyas_hal_buffer_allocate(device, EYAS_HAL_MEMORY_HOST_VISIBLE,
                                    EYAS_HAL_USAGE_TRANSFER | EYAS_HAL_USAGE_MAP, 100, &buffer));
  CHECK_FAILS(eyas_hal_buffer_map(buffer, EYAS_HAL_ACCESS_READ, 90, 11, &pointer), OUT_OF_RANGE,
              "offset 90 + length 11 is beyond the buffer's 100");
  CHECK_FAILS(eyas_hal_buffer_map(buffer, EYAS_HAL_ACCESS_READ, 101, EYAS_HAL_WHOLE, &pointer),
              OUT_OF_RANGE, "101");
  CHECK_FAILS(eyas_hal_buffer_map(buffer, EYAS_HAL_ACCESS_READ, 8, UINT64_MAX - 4, &pointer),
              OUT_OF_RANGE, "beyond");
  CHECK_OK(eyas_hal_buffer_map(buffer, EYAS_HAL_ACCESS_READ, 100, EYAS_HAL_WHOLE, &pointer));
  CHECK_FAILS(eyas_hal_buffer_map(buffer, 8, 0, 1, &pointer), INVALID_ARGUMENT, "access");
  eyas_hal_buffer_release(buffer);

  buffer = new_buffer(device, 100);
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
  CHECK_FAILS(eyas_hal_buffer_import(device, EYAS_HAL_USAGE_ALL, EYAS_HAL_ACCESS_READ, NULL, 8,
                                     count_release, &released, &buffer),
              INVALID_ARGUMENT, "import 8 bytes");
  eyas_status_t status =
      eyas_hal_buffer_import(device, EYAS_HAL_USAGE_ALL, EYAS_HAL_ACCESS_READ,
                             (void*)(uintptr_t)constant, 16, count_release, &released, &buffer);
  if (eyas_status_code(status) == EYAS_STATUS_INCOMPATIBLE) {
    CHECK_FAILS(status, INCOMPATIBLE, "allocate and write");  // what the caller does then
    CHECK(released == 0 && !buffer);
    return;
  }
  CHECK_OK(status);
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
  CHECK_FAILS(eyas_hal_executable_create(device, "tape", "x", 1, NULL, 0, &none), INCOMPATIBLE,
              "tape");
  const char *null_name[] = {NULL}, *format = format_of(device);
  CHECK_FAILS(eyas_hal_executable_create(device, format, "EYVX", 4, null_name, 1, &none),
              INVALID_ARGUMENT, "name 0");
  CHECK_FAILS(eyas_hal_executable_create(device, format, "abcd", 4, NULL, 0, &none), CORRUPT,
              strcmp(format, "vmvx") ? "EYSV" : "EYVX");
  eyas_dispatch_fn_t function[] = {kernel_add}, null_function[] = {NULL};
  if (kernels_are_functions) {
    CHECK_FAILS(eyas_hal_executable_create_static(device, null_name, function, 1, &none),
                INVALID_ARGUMENT, "name 0");
    CHECK_FAILS(eyas_hal_executable_create_static(device, null_name, null_function, 1, &none),
                INVALID_ARGUMENT, "function 0");
  } else if (info_of(device).asynchronous) {
    CHECK_FAILS(eyas_hal_executable_create_static(device, null_name, function, 1, &none),
                INCOMPATIBLE, "functions of this process");
  }
  eyas_hal_executable_release(kernels);
}

int main(void) {
  test_drivers();
  for_each_device(test_allocate);
  for_each_device(test_many);
  for_each_device(test_large_transfer);
  for_each_device(test_ranges);
  for_each_device(test_import);
  for_each_device(test_executables);
  return check_summary("hal buffers");
}
