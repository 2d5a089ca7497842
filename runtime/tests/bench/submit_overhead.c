// What a call costs the host: a recording of small dispatches with a barrier after each, submitted
// with the same table, with tables that take turns, and without one.
//
//   submit_overhead [driver] [dispatches]     vulkan 100
#define _GNU_SOURCE 1
#include "hal/fixture.h"

#include "base/clock.h"

enum { ROUNDS = 300, BYTES = 4096 };

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* values, int count) {
  qsort(values, (size_t)count, sizeof(*values), compare);
  return values[count / 2];
}

// `slots`: 0: all is direct; 1: one table; 2: two that take turns.
static void measure(eyas_hal_device_t* device, uint32_t dispatches, uint32_t slots) {
  eyas_hal_executable_t* kernels = new_kernels(device);
  eyas_hal_buffer_t* buffers[2] = {new_zeros(device, BYTES), new_zeros(device, BYTES)};
  eyas_hal_buffer_t* fixed = new_zeros(device, BYTES);
  eyas_hal_command_buffer_t* commands = new_commands(device, slots > 0);
  for (uint32_t i = 0; i < dispatches; ++i) {
    // As in a model: the first and the last dispatch see arguments and results.
    const bool edge = slots > 0 && (i == 0 || i + 1 == dispatches);
    CHECK_OK(record_reverse(commands, kernels, direct(fixed, 0, BYTES / 2),
                            edge ? indirect(0, 0, BYTES / 2) : direct(fixed, BYTES / 2, BYTES / 2),
                            1));
    CHECK_OK(eyas_hal_command_buffer_barrier(commands));
  }
  CHECK_OK(eyas_hal_command_buffer_end(commands));
  eyas_hal_semaphore_t* done = NULL;
  CHECK_OK(eyas_hal_semaphore_create(device, 0, &done));
  static double submit_us[ROUNDS], call_us[ROUNDS];
  for (uint64_t i = 0; i < ROUNDS; ++i) {
    const uint64_t start = eyas_clock_now_ns();
    CHECK_OK(eyas_hal_device_submit(
        device, &(eyas_hal_submission_t){
                    .commands = commands,
                    .table = &(eyas_hal_range_t){buffers[slots == 2 ? i % 2 : 0], 0, BYTES},
                    .table_count = slots > 0,
                    .signals = &(eyas_hal_timepoint_t){done, i + 1},
                    .signal_count = 1}));
    const uint64_t submitted = eyas_clock_now_ns();
    CHECK_OK(eyas_hal_semaphore_wait(done, i + 1, EYAS_HAL_FOREVER));
    submit_us[i] = (double)(submitted - start) / 1e3;
    call_us[i] = (double)(eyas_clock_now_ns() - start) / 1e3;
  }
  static const char* const names[] = {"direct", "one table", "two tables"};
  printf("%-10s %u dispatches: submit %.1f us, until done %.1f us\n", names[slots], dispatches,
         median(submit_us, ROUNDS), median(call_us, ROUNDS));
  eyas_hal_semaphore_release(done);
  eyas_hal_command_buffer_release(commands);
  for (int i = 0; i < 2; ++i) eyas_hal_buffer_release(buffers[i]);
  eyas_hal_buffer_release(fixed);
  eyas_hal_executable_release(kernels);
}

int main(int argc, char** argv) {
  const char* driver = argc > 1 ? argv[1] : "vulkan";
  const uint32_t dispatches = argc > 2 ? (uint32_t)atoi(argv[2]) : 100;
  eyas_hal_device_t* device = NULL;
  if (!CHECK_OK(eyas_hal_device_create(driver, NULL, &device))) return 1;
  printf("%s: %s\n", driver, info_of(device).name);
  for (uint32_t slots = 0; slots < 3; ++slots) measure(device, dispatches, slots);
  measure(device, 1, 0);
  eyas_hal_device_release(device);
  return check_failed != 0;
}
