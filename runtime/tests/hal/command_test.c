// Conformance: recording, transfers, waves, replay, failures, profiling.
#include "hal/fixture.h"

static void test_transfers(eyas_hal_device_t* device) {
  // Large enough to be cut into pieces, with an odd tail.
  const uint64_t length = 3 * 256 * 1024 + 24;
  eyas_hal_buffer_t *a = new_buffer(device, length + 8), *b = new_buffer(device, length + 8);
  uint8_t *x = malloc(length + 8), *y = malloc(length + 8);
  memset(x, 0xee, length + 8);
  upload(a, x, length + 8);
  upload(b, x, length + 8);
  eyas_hal_command_buffer_t* commands = new_commands(device, 0);
  CHECK_OK(eyas_hal_command_buffer_fill(commands, direct(a, 4, length), "\1\2\3\4", 4));
  CHECK_OK(eyas_hal_command_buffer_barrier(commands));
  CHECK_OK(eyas_hal_command_buffer_copy(commands, direct(a, 4, length), direct(b, 4, length)));
  CHECK_OK(eyas_hal_command_buffer_barrier(commands));
  char text[] = "hello";
  CHECK_OK(eyas_hal_command_buffer_update(commands, text, direct(b, 100, 5)));
  text[0] = 'j';  // the command buffer has its own copy
  CHECK_OK(eyas_hal_command_buffer_end(commands));
  CHECK_OK(run(device, commands, NULL, 0));
  download(a, x, length + 8);
  download(b, y, length + 8);
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < length; ++i) {
    wrong += x[4 + i] != i % 4 + 1;
    if (i + 4 < 100 || i + 4 >= 105) wrong += y[4 + i] != i % 4 + 1;
  }
  CHECK(wrong == 0);
  CHECK(memcmp(y + 100, "hello", 5) == 0);
  CHECK(x[3] == 0xee && x[length + 4] == 0xee && y[3] == 0xee && y[length + 4] == 0xee);
  eyas_hal_command_buffer_release(commands);

  // Patterns of every size, and lengths that are no multiple of 8.
  const char* pattern = "abcdefgh";
  for (uint32_t bytes = 1; bytes <= 8; bytes *= 2) {
    commands = new_commands(device, 0);
    CHECK_OK(eyas_hal_command_buffer_fill(commands, direct(a, 0, 13 * bytes), pattern, bytes));
    CHECK_OK(eyas_hal_command_buffer_end(commands));
    memset(x, 0, 200);
    upload(a, x, 200);
    CHECK_OK(run(device, commands, NULL, 0));
    download(a, x, 200);
    wrong = 0;
    for (uint32_t i = 0; i < 13 * bytes; ++i) wrong += x[i] != pattern[i % bytes];
    CHECK(wrong == 0 && x[13 * bytes] == 0);
    eyas_hal_command_buffer_release(commands);
  }
  free(x);
  free(y);
  eyas_hal_buffer_release(a);
  eyas_hal_buffer_release(b);
}

// Transfers that begin and end anywhere leave the bytes around them alone.
static void test_odd_transfers(eyas_hal_device_t* device) {
  enum { BYTES = 64 };
  const char* pattern = "ABCDEFGH";
  uint8_t before[BYTES], after[BYTES];
  memset(before, 0xee, sizeof(before));
  eyas_hal_buffer_t *a = new_buffer(device, BYTES), *b = new_buffer(device, BYTES);
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t pattern_bytes = 1u << i % 4, offset = i % 7,
                   length = pattern_bytes * (1 + i % 5);
    eyas_hal_command_buffer_t* commands = new_commands(device, 1);
    upload(a, before, BYTES);
    upload(b, before, BYTES);
    CHECK_OK(eyas_hal_command_buffer_fill(
        commands, i % 2 ? direct(a, offset, length) : indirect(0, offset, length), pattern,
        pattern_bytes));
    CHECK_OK(eyas_hal_command_buffer_update(commands, pattern, direct(b, 40 + offset, 1 + i % 8)));
    CHECK_OK(eyas_hal_command_buffer_barrier(commands));
    CHECK_OK(eyas_hal_command_buffer_copy(commands, direct(a, offset, length),
                                          direct(b, i % 3, length)));
    CHECK_OK(eyas_hal_command_buffer_end(commands));
    CHECK_OK(run(device, commands, &(eyas_hal_range_t){a, 0, EYAS_HAL_WHOLE}, 1));
    download(a, after, BYTES);
    int wrong = 0;
    for (uint32_t k = 0; k < BYTES; ++k) {
      const bool inside = k >= offset && k < offset + length;
      wrong += after[k] != (inside ? (uint8_t)pattern[(k - offset) % pattern_bytes] : 0xee);
    }
    download(b, after, BYTES);
    for (uint32_t k = 0; k < BYTES; ++k) {
      uint8_t expected = 0xee;
      if (k >= i % 3 && k < i % 3 + length) {
        expected = (uint8_t)pattern[(k - i % 3) % pattern_bytes];
      } else if (k >= 40 + offset && k < 40 + offset + 1 + i % 8) {
        expected = (uint8_t)pattern[k - 40 - offset];
      }
      wrong += after[k] != expected;
    }
    CHECK(wrong == 0);
    eyas_hal_command_buffer_release(commands);
  }
  eyas_hal_buffer_release(a);
  eyas_hal_buffer_release(b);
}

// A long pattern that no word repeats.
static void test_long_fill(eyas_hal_device_t* device) {
  const uint64_t bytes = (9 << 20) + 24;
  eyas_hal_buffer_t* buffer = new_zeros(device, bytes + 16);
  eyas_hal_command_buffer_t* commands = new_commands(device, 0);
  const int64_t number = 0x0123456789abcdef;
  CHECK_OK(eyas_hal_command_buffer_fill(commands, direct(buffer, 8, bytes), &number, 8));
  CHECK_OK(eyas_hal_command_buffer_end(commands));
  CHECK_OK(run(device, commands, NULL, 0));
  int64_t* data = malloc(bytes + 16);
  download(buffer, data, bytes + 16);
  uint64_t wrong = data[0] != 0 || data[bytes / 8 + 1] != 0;
  for (uint64_t i = 1; i <= bytes / 8; ++i) wrong += data[i] != number;
  CHECK(wrong == 0);
  free(data);
  eyas_hal_command_buffer_release(commands);
  eyas_hal_buffer_release(buffer);
}

static void test_bad_recording(eyas_hal_device_t* device) {
  eyas_hal_buffer_t* buffer = new_buffer(device, 64);
  eyas_hal_executable_t* kernels = new_kernels(device);
  eyas_hal_command_buffer_t* commands = new_commands(device, 2);
  CHECK_FAILS(eyas_hal_command_buffer_fill(commands, direct(buffer, 0, 7), "ab", 2),
              INVALID_ARGUMENT, "fill of 7");
  CHECK_FAILS(eyas_hal_command_buffer_fill(commands, direct(buffer, 0, 9), "abc", 3),
              INVALID_ARGUMENT, "pattern of 3");
  CHECK_FAILS(eyas_hal_command_buffer_fill(commands, direct(buffer, 60, 8), "a", 1), OUT_OF_RANGE,
              "target of fill: offset 60 + length 8");
  CHECK_FAILS(eyas_hal_command_buffer_copy(commands, direct(buffer, 0, 8), direct(buffer, 32, 4)),
              INVALID_ARGUMENT, "lengths");
  CHECK_FAILS(eyas_hal_command_buffer_copy(commands, direct(buffer, 0, 8), direct(buffer, 7, 8)),
              INVALID_ARGUMENT, "overlap");
  CHECK_FAILS(
      eyas_hal_command_buffer_copy(commands, indirect(0, 0, EYAS_HAL_WHOLE), direct(buffer, 0, 8)),
      INVALID_ARGUMENT, "needs a length");
  CHECK_FAILS(eyas_hal_command_buffer_update(commands, NULL, direct(buffer, 0, 4)),
              INVALID_ARGUMENT, "data is NULL");
  CHECK_FAILS(eyas_hal_command_buffer_update(commands, "x", indirect(0, 0, 1 << 20)),
              RESOURCE_EXHAUSTED, "EYAS_HAL_MAX_UPDATE_BYTES");
  CHECK_FAILS(record_add(commands, kernels, indirect(2, 0, 8), 1, 1), OUT_OF_RANGE, "slot 2");
  CHECK_FAILS(record_add(commands, kernels, indirect(1, 16, UINT64_MAX - 15), 1, 1), OUT_OF_RANGE,
              "dispatch 'add', binding 0");
  CHECK_FAILS(record_add(commands, kernels, direct(buffer, 0, 72), 1, 1), OUT_OF_RANGE,
              "dispatch 'add', binding 0: the range: offset 0 + length 72");

  eyas_hal_binding_t binding = direct(buffer, 0, 8);
  eyas_hal_dispatch_t dispatch = {.executable = kernels,
                                  .ordinal = KERNEL_COUNT,
                                  .workgroup_count = {1, 1, 1},
                                  .bindings = &binding,
                                  .binding_count = 1};
  CHECK_FAILS(eyas_hal_command_buffer_dispatch(commands, &dispatch), OUT_OF_RANGE, "ordinal 4");
  dispatch.ordinal = SIZE;
  binding.access = 0xf;
  CHECK_FAILS(eyas_hal_command_buffer_dispatch(commands, &dispatch), INVALID_ARGUMENT, "access");
  dispatch.binding_count = EYAS_HAL_MAX_BINDINGS + 1;
  CHECK_FAILS(eyas_hal_command_buffer_dispatch(commands, &dispatch), RESOURCE_EXHAUSTED,
              "EYAS_HAL_MAX_BINDINGS");
  dispatch.binding_count = 0;
  dispatch.constant_count = EYAS_HAL_MAX_CONSTANTS + 1;
  CHECK_FAILS(eyas_hal_command_buffer_dispatch(commands, &dispatch), RESOURCE_EXHAUSTED,
              "EYAS_HAL_MAX_CONSTANTS");
  dispatch.constant_count = 1;
  CHECK_FAILS(eyas_hal_command_buffer_dispatch(commands, &dispatch), INVALID_ARGUMENT, "NULL");
  dispatch.constant_count = 0;
  for (int i = 0; i < 3; ++i) dispatch.workgroup_count[i] = UINT32_MAX;
  CHECK_FAILS(eyas_hal_command_buffer_dispatch(commands, &dispatch), RESOURCE_EXHAUSTED,
              "EYAS_HAL_MAX_WORKGROUPS");
  dispatch.executable = NULL;
  CHECK_FAILS(eyas_hal_command_buffer_dispatch(commands, &dispatch), INVALID_ARGUMENT, "NULL");

  // What failed left no trace: the two unused slots need nothing.
  CHECK_FAILS(run(device, commands, NULL, 0), FAILED_PRECONDITION, "not ended");
  CHECK_OK(eyas_hal_command_buffer_end(commands));
  CHECK_FAILS(eyas_hal_command_buffer_end(commands), FAILED_PRECONDITION, "ended");
  CHECK_FAILS(eyas_hal_command_buffer_barrier(commands), FAILED_PRECONDITION, "ended");
  CHECK_OK(run(device, commands, (eyas_hal_range_t[2]){{0}}, 2));
  CHECK_FAILS(run(device, commands, NULL, 0), INVALID_ARGUMENT, "0 entries");
  eyas_hal_command_buffer_release(commands);

  eyas_hal_device_t* other = NULL;
  CHECK_OK(eyas_hal_device_create("local-sync", NULL, &other));
  commands = new_commands(other, 0);
  CHECK_FAILS(eyas_hal_command_buffer_fill(commands, direct(buffer, 0, 8), "a", 1),
              INVALID_ARGUMENT, "another device");
  CHECK_FAILS(record_add(commands, kernels, direct(buffer, 0, 8), 1, 1), INVALID_ARGUMENT,
              "another device");
  CHECK_FAILS(run(device, commands, NULL, 0), INVALID_ARGUMENT, "another device");
  eyas_hal_command_buffer_release(commands);
  eyas_hal_device_release(other);
  CHECK_FAILS(eyas_hal_command_buffer_create(device, EYAS_HAL_MAX_SLOTS + 1, &commands),
              RESOURCE_EXHAUSTED, "EYAS_HAL_MAX_SLOTS");
  eyas_hal_executable_release(kernels);
  eyas_hal_buffer_release(buffer);
}

// A long chain where each wave reads, in another order, what the wave before wrote.
static void test_hazards(eyas_hal_device_t* device) {
  enum { COUNT = 1000, WAVES = 200 };
  static int64_t data[COUNT];
  eyas_hal_buffer_t* buffers[2] = {new_buffer(device, COUNT * 8), new_buffer(device, COUNT * 8)};
  for (int64_t i = 0; i < COUNT; ++i) data[i] = i * 1000;
  upload(buffers[0], data, sizeof(data));
  eyas_hal_executable_t* kernels = new_kernels(device);
  eyas_hal_command_buffer_t* commands = new_commands(device, 0);
  for (int wave = 0; wave < WAVES; ++wave) {
    CHECK_OK(record_reverse(commands, kernels, direct(buffers[wave % 2], 0, COUNT * 8),
                            direct(buffers[(wave + 1) % 2], 0, COUNT * 8), COUNT));
    CHECK_OK(eyas_hal_command_buffer_barrier(commands));
    CHECK_OK(eyas_hal_command_buffer_barrier(commands));  // a second one changes nothing
  }
  CHECK_OK(eyas_hal_command_buffer_end(commands));
  for (int repeat = 1; repeat <= 3; ++repeat) {
    CHECK_OK(run(device, commands, NULL, 0));
    download(buffers[0], data, sizeof(data));
    int wrong = 0;
    for (int64_t i = 0; i < COUNT; ++i) wrong += data[i] != i * 1000 + WAVES * repeat;
    CHECK(wrong == 0);
  }
  eyas_hal_command_buffer_release(commands);
  eyas_hal_executable_release(kernels);
  eyas_hal_buffer_release(buffers[0]);
  eyas_hal_buffer_release(buffers[1]);
}

// Many commands of unequal size in one wave: each workgroup runs exactly once.
static void test_wide_wave(eyas_hal_device_t* device) {
  enum { COMMANDS = 50 };
  static int64_t data[COMMANDS * 1000];
  eyas_hal_buffer_t* buffer = new_zeros(device, sizeof(data));
  eyas_hal_executable_t* kernels = new_kernels(device);
  eyas_hal_command_buffer_t* commands = new_commands(device, 0);
  for (uint32_t i = 0; i < COMMANDS; ++i) {
    // From none to some hundreds, in three dimensions.
    CHECK_OK(record_add_3d(commands, kernels, direct(buffer, i * 8000, 8000), i + 1, i % 7, i % 11,
                           i % 13));
  }
  CHECK_OK(eyas_hal_command_buffer_end(commands));
  CHECK_OK(run(device, commands, NULL, 0));
  download(buffer, data, sizeof(data));
  int wrong = 0;
  for (uint32_t i = 0; i < COMMANDS; ++i) {
    for (uint32_t j = 0; j < 1000; ++j) {
      bool inside = j < (i % 7) * (i % 11) * (i % 13);
      wrong += data[i * 1000 + j] != (inside ? (int64_t)i + 1 : 0);
    }
  }
  CHECK(wrong == 0);
  eyas_hal_command_buffer_release(commands);
  eyas_hal_executable_release(kernels);
  eyas_hal_buffer_release(buffer);
}

static void test_replay(eyas_hal_device_t* device) {
  enum { COUNT = 64, BYTES = COUNT * 8 };
  eyas_hal_executable_t* kernels = new_kernels(device);
  eyas_hal_command_buffer_t* commands = new_commands(device, 3);  // slot 2 is not used
  CHECK_OK(record_add(commands, kernels, indirect(0, 8, BYTES), 5, COUNT));
  CHECK_OK(eyas_hal_command_buffer_barrier(commands));
  CHECK_OK(eyas_hal_command_buffer_copy(commands, indirect(0, 8, BYTES), indirect(1, 0, BYTES)));
  CHECK_OK(eyas_hal_command_buffer_end(commands));
  for (int64_t round = 0; round < 4; ++round) {
    eyas_hal_buffer_t *in = new_buffer(device, BYTES + 24), *out = new_buffer(device, BYTES);
    int64_t x[COUNT + 3], y[COUNT];
    for (int64_t i = 0; i < COUNT + 3; ++i) x[i] = round * 100 + i;
    upload(in, x, sizeof(x));
    CHECK_OK(run(device, commands,
                 (eyas_hal_range_t[]){{in, 16, EYAS_HAL_WHOLE}, {out, 0, BYTES}, {0}}, 3));
    download(in, x, sizeof(x));
    download(out, y, sizeof(y));
    int wrong = 0;
    for (int64_t i = 0; i < COUNT; ++i) wrong += y[i] != round * 100 + i + 3 + 5;
    CHECK(wrong == 0 && x[2] == round * 100 + 2);

    CHECK_FAILS(
        run(device, commands, (eyas_hal_range_t[]){{in, 24, BYTES}, {out, 0, BYTES}, {0}}, 3),
        OUT_OF_RANGE, "binding slot 0: the commands need 520 bytes, the table gives 512");
    CHECK_FAILS(run(device, commands, (eyas_hal_range_t[]){{in, 0, BYTES + 8}, {0}, {0}}, 3),
                INVALID_ARGUMENT, "binding slot 1 is empty");
    CHECK_FAILS(
        run(device, commands, (eyas_hal_range_t[]){{in, 0, BYTES + 8}, {out, 8, BYTES}, {0}}, 3),
        OUT_OF_RANGE, "binding slot 1: offset 8 + length 512");
    CHECK_FAILS(
        run(device, commands, (eyas_hal_range_t[]){{in, 0, BYTES + 8}, {in, 16, BYTES}, {0}}, 3),
        INVALID_ARGUMENT, "overlap");
    CHECK_FAILS(run(device, commands, (eyas_hal_range_t[]){{in, 0, BYTES + 8}}, 1),
                INVALID_ARGUMENT, "1 entries");
    eyas_hal_buffer_release(in);
    eyas_hal_buffer_release(out);
  }
  eyas_hal_command_buffer_release(commands);

  // A whole indirect binding gets what the table gives.
  eyas_hal_buffer_t* buffer = new_zeros(device, 32);
  int64_t sizes[4] = {0};
  commands = new_commands(device, 1);
  eyas_hal_binding_t binding = indirect(0, 8, EYAS_HAL_WHOLE);
  CHECK_OK(eyas_hal_command_buffer_dispatch(commands,
                                            &(eyas_hal_dispatch_t){.executable = kernels,
                                                                   .ordinal = SIZE,
                                                                   .workgroup_count = {1, 1, 1},
                                                                   .bindings = &binding,
                                                                   .binding_count = 1}));
  CHECK_OK(eyas_hal_command_buffer_end(commands));
  CHECK_OK(run(device, commands, &(eyas_hal_range_t){buffer, 0, EYAS_HAL_WHOLE}, 1));
  CHECK_OK(run(device, commands, &(eyas_hal_range_t){buffer, 8, 20}, 1));
  download(buffer, sizes, sizeof(sizes));
  CHECK(sizes[0] == 0 && sizes[1] == 24 && sizes[2] == 12 && sizes[3] == 0);
  CHECK_FAILS(run(device, commands, &(eyas_hal_range_t){buffer, 0, 7}, 1), OUT_OF_RANGE, "need 8");
  eyas_hal_command_buffer_release(commands);
  eyas_hal_buffer_release(buffer);
  eyas_hal_executable_release(kernels);
}

// What a submission names lives until it is done, whoever lets go of it before.
static void test_lifetime(eyas_hal_device_t* device) {
  enum { COUNT = 100, ROUNDS = 20 };
  eyas_hal_executable_t* kernels = new_kernels(device);
  eyas_hal_buffer_t* total = new_zeros(device, COUNT * 8);
  eyas_hal_semaphore_t* done = NULL;
  CHECK_OK(eyas_hal_semaphore_create(device, 0, &done));
  for (uint64_t round = 1; round <= ROUNDS; ++round) {
    eyas_hal_buffer_t* own = new_zeros(device, COUNT * 8);
    eyas_hal_command_buffer_t* commands = new_commands(device, 2);
    CHECK_OK(record_add(commands, kernels, indirect(0, 0, COUNT * 8), 7, COUNT));
    CHECK_OK(record_add(commands, kernels, indirect(1, 0, COUNT * 8), 1, COUNT));
    CHECK_OK(eyas_hal_command_buffer_end(commands));
    CHECK_OK(eyas_hal_device_submit(
        device, &(eyas_hal_submission_t){.commands = commands,
                                         .table = (eyas_hal_range_t[]){{own, 0, EYAS_HAL_WHOLE},
                                                                       {total, 0, EYAS_HAL_WHOLE}},
                                         .table_count = 2,
                                         .signals = &(eyas_hal_timepoint_t){done, round},
                                         .signal_count = 1}));
    eyas_hal_buffer_release(own);
    eyas_hal_command_buffer_release(commands);
  }
  eyas_hal_executable_release(kernels);
  CHECK_OK(eyas_hal_semaphore_wait(done, ROUNDS, EYAS_HAL_FOREVER));
  eyas_hal_semaphore_release(done);
  CHECK(count_wrong(total, COUNT, ROUNDS) == 0);
  eyas_hal_buffer_release(total);
}

// One recording submitted again and again with other buffers, while those before may still run.
static void test_many_under_way(eyas_hal_device_t* device) {
  enum { COUNT = 50, ROUNDS = 24 };
  eyas_hal_executable_t* kernels = new_kernels(device);
  eyas_hal_command_buffer_t* commands = new_commands(device, 2);
  CHECK_OK(record_add(commands, kernels, indirect(0, 0, COUNT * 8), 3, COUNT));
  CHECK_OK(eyas_hal_command_buffer_barrier(commands));
  CHECK_OK(
      eyas_hal_command_buffer_copy(commands, indirect(0, 0, COUNT * 8), indirect(1, 0, COUNT * 8)));
  CHECK_OK(eyas_hal_command_buffer_end(commands));
  eyas_hal_semaphore_t* done = NULL;
  CHECK_OK(eyas_hal_semaphore_create(device, 0, &done));
  eyas_hal_buffer_t *in[3], *out[ROUNDS];
  for (int i = 0; i < 3; ++i) in[i] = new_zeros(device, COUNT * 8);
  for (uint64_t i = 0; i < ROUNDS; ++i) {
    out[i] = new_buffer(device, COUNT * 8);
    CHECK_OK(eyas_hal_device_submit(
        device,
        &(eyas_hal_submission_t){.commands = commands,
                                 .table = (eyas_hal_range_t[]){{in[i % 3], 0, EYAS_HAL_WHOLE},
                                                               {out[i], 0, EYAS_HAL_WHOLE}},
                                 .table_count = 2,
                                 .signals = &(eyas_hal_timepoint_t){done, i + 1},
                                 .signal_count = 1}));
  }
  CHECK_OK(eyas_hal_semaphore_wait(done, ROUNDS, EYAS_HAL_FOREVER));
  for (int i = 0; i < ROUNDS; ++i) {
    CHECK(count_wrong(out[i], COUNT, 3 * (i / 3 + 1)) == 0);
    eyas_hal_buffer_release(out[i]);
  }
  for (int i = 0; i < 3; ++i) eyas_hal_buffer_release(in[i]);
  eyas_hal_semaphore_release(done);
  eyas_hal_command_buffer_release(commands);
  eyas_hal_executable_release(kernels);
}

// A failing dispatch is named, the waves after it do not run, and the device works on.
static void test_failure(eyas_hal_device_t* device) {
  eyas_hal_buffer_t* buffer = new_zeros(device, 800);
  eyas_hal_executable_t* kernels = new_kernels(device);
  eyas_hal_command_buffer_t* commands = new_commands(device, 0);
  CHECK_OK(record_add(commands, kernels, direct(buffer, 0, 800), 1, 100));
  CHECK_OK(eyas_hal_command_buffer_barrier(commands));
  CHECK_OK(eyas_hal_command_buffer_dispatch(commands,
                                            &(eyas_hal_dispatch_t){.executable = kernels,
                                                                   .ordinal = FAIL,
                                                                   .workgroup_count = {100, 1, 1},
                                                                   .constants = (int64_t[]){77},
                                                                   .constant_count = 1}));
  CHECK_OK(eyas_hal_command_buffer_barrier(commands));
  CHECK_OK(record_add(commands, kernels, direct(buffer, 0, 800), 1, 100));
  CHECK_OK(eyas_hal_command_buffer_end(commands));
  eyas_hal_executable_release(kernels);
  for (int64_t i = 1; i <= 5; ++i) {
    eyas_hal_semaphore_t *first = NULL, *second = NULL;
    CHECK_OK(eyas_hal_semaphore_create(device, 0, &first));
    CHECK_OK(eyas_hal_semaphore_create(device, 0, &second));
    eyas_status_t status = eyas_hal_device_submit(
        device,
        &(eyas_hal_submission_t){
            .commands = commands, .signals = &(eyas_hal_timepoint_t){first, 1}, .signal_count = 1});
    if (info_of(device).asynchronous) {
      CHECK_OK(status);
    } else {
      CHECK_FAILS(status, INVALID_ARGUMENT, "dispatch 'fail'");
    }
    // What waits for it fails with it, and does not run.
    status = eyas_hal_device_submit(
        device, &(eyas_hal_submission_t){.commands = commands,
                                         .waits = &(eyas_hal_timepoint_t){first, 1},
                                         .wait_count = 1,
                                         .signals = &(eyas_hal_timepoint_t){second, 1},
                                         .signal_count = 1});
    eyas_status_free(status);
    CHECK_FAILS(eyas_hal_semaphore_wait(second, 1, EYAS_HAL_FOREVER), INVALID_ARGUMENT,
                "dispatch 'fail'");
    CHECK_FAILS(eyas_hal_semaphore_wait(first, 1, EYAS_HAL_FOREVER), INVALID_ARGUMENT,
                "a value in the data is not allowed");
    uint64_t value = 9;
    CHECK_FAILS(eyas_hal_semaphore_query(first, &value), INVALID_ARGUMENT, "dispatch 'fail'");
    CHECK(value == 0);
    // The wave before ran, the one after did not.
    CHECK(count_wrong(buffer, 100, stops_at_failures(device) ? i : 2 * i) == 0);
    eyas_hal_semaphore_release(first);
    eyas_hal_semaphore_release(second);
  }
  eyas_hal_command_buffer_release(commands);
  eyas_hal_buffer_release(buffer);
}

static void test_profile(eyas_hal_device_t* device) {
  eyas_hal_buffer_t* buffer = new_zeros(device, 800);
  eyas_hal_executable_t* kernels = new_kernels(device);
  eyas_hal_command_buffer_t* commands = new_commands(device, 1);
  eyas_hal_profile_t profile = {0};
  CHECK_FAILS(eyas_hal_command_buffer_profile(commands, &profile), FAILED_PRECONDITION, "enable");
  CHECK_OK(eyas_hal_command_buffer_enable_profiling(commands));
  CHECK_OK(eyas_hal_command_buffer_fill(commands, direct(buffer, 0, 800), "\0", 1));
  CHECK_OK(eyas_hal_command_buffer_barrier(commands));
  CHECK_OK(record_add(commands, kernels, indirect(0, 0, 800), 1, 100));
  CHECK_OK(record_add(commands, kernels, direct(buffer, 0, 800), 5, 0));
  CHECK_OK(eyas_hal_command_buffer_end(commands));
  eyas_hal_range_t table = {buffer, 0, 800};
  for (uint32_t i = 0; i < 3; ++i) {
    CHECK_OK(run(device, commands, &table, 1));
    CHECK_OK(eyas_hal_command_buffer_profile(commands, &profile));
    CHECK(profile.event_count == 3 * (i + 1) && profile.submission_count == i + 1);
    const eyas_hal_profile_event_t* events = profile.events + 3 * i;
    CHECK(strcmp(events[0].name, "fill") == 0 && strcmp(events[1].name, "add") == 0);
    CHECK(events[0].wave == 0 && events[1].wave == 1 && events[1].submission == i);
    CHECK(events[0].grid[0] == 1 && events[1].grid[0] == 100 && events[1].grid[2] == 1);
    CHECK(events[0].start_ns > 0 && events[0].start_ns <= events[0].end_ns);
    CHECK(events[0].end_ns <= events[1].start_ns && events[1].start_ns <= events[1].end_ns);
    CHECK(events[2].grid[0] == 0 && events[2].start_ns == 0 && events[2].end_ns == 0);
    uint64_t workgroups = 0;
    for (uint32_t worker = 0; worker < profile.worker_count; ++worker) {
      const eyas_hal_profile_share_t* share =
          &profile.shares[(3 * i + 1) * profile.worker_count + worker];
      workgroups += share->workgroup_count;
      if (share->workgroup_count == 0) continue;
      CHECK(share->start_ns >= events[1].start_ns && share->end_ns <= events[1].end_ns);
      CHECK(share->busy_ns <= share->end_ns - share->start_ns);
    }
    CHECK(workgroups == 100);
    const eyas_hal_profile_binding_t* binding = &profile.bindings[events[1].binding_begin];
    CHECK(events[1].binding_count == 1 && binding->length == 800);
    CHECK(binding->address == profile.bindings[events[0].binding_begin].address);
    CHECK(binding->access == EYAS_HAL_ACCESS_READ_WRITE);
    CHECK(events[0].constant_count == 0 && events[1].constant_count == 3);
    CHECK(profile.constants[events[1].constant_begin] == 1 &&
          profile.constants[events[2].constant_begin] == 5);
  }
  eyas_hal_profile_clear(&profile);
  CHECK(profile.event_count == 0 && !profile.events);
  eyas_hal_command_buffer_release(commands);
  eyas_hal_executable_release(kernels);
  eyas_hal_buffer_release(buffer);
}

int main(void) {
  for_each_device(test_transfers);
  for_each_device(test_odd_transfers);
  for_each_device(test_long_fill);
  for_each_device(test_bad_recording);
  for_each_device(test_hazards);
  for_each_device(test_wide_wave);
  for_each_device(test_replay);
  for_each_device(test_lifetime);
  for_each_device(test_many_under_way);
  for_each_device(test_failure);
  for_each_device(test_profile);
  return check_summary("hal commands");
}
