// What the runtime itself costs: empty kernels, so that all time is overhead.
//
//   dispatch_overhead [threads]     0: all CPUs
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "eyas/hal.h"

static void nothing(const eyas_dispatch_t* dispatch, const eyas_workgroup_t* workgroup) {
  (void)dispatch, (void)workgroup;
}

// A workgroup of about a microsecond, so that helpers have time to join.
static void spin(const eyas_dispatch_t* dispatch, const eyas_workgroup_t* workgroup) {
  (void)workgroup;
  uint64_t end = eyas_clock_now_ns() + (uint64_t)dispatch->constants[0];
  while (eyas_clock_now_ns() < end) {
  }
}

static void must(eyas_status_t status) {
  if (!status) return;
  fprintf(stderr, "%s\n", eyas_status_message(status));
  exit(1);
}

static int compare(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

typedef struct bench_t {
  const char* name;
  uint32_t ordinal;
  uint32_t waves;
  uint32_t commands;    // a wave
  uint32_t workgroups;  // a command
  int64_t spin_ns;
  uint32_t idle_us;  // before each submission, so that workers sleep
} bench_t;

static void measure(eyas_hal_device_t* device, eyas_hal_executable_t* executable, uint32_t threads,
                    const bench_t* bench) {
  eyas_hal_command_buffer_t* commands = NULL;
  eyas_hal_buffer_t* buffer = NULL;
  must(eyas_hal_buffer_allocate(device, 0, EYAS_HAL_USAGE_ALL, 4096, &buffer));
  must(eyas_hal_command_buffer_create(device, 2, &commands));
  for (uint32_t wave = 0; wave < bench->waves; ++wave) {
    for (uint32_t i = 0; i < bench->commands; ++i) {
      eyas_hal_binding_t bindings[] = {
          {.slot = 0, .access = EYAS_HAL_ACCESS_READ, .length = 4096},
          {.slot = 1, .access = EYAS_HAL_ACCESS_WRITE, .length = 4096},
      };
      must(eyas_hal_command_buffer_dispatch(
          commands, &(eyas_hal_dispatch_t){.executable = executable,
                                           .ordinal = bench->ordinal,
                                           .workgroup_count = {bench->workgroups, 1, 1},
                                           .constants = &bench->spin_ns,
                                           .constant_count = 1,
                                           .bindings = bindings,
                                           .binding_count = 2}));
    }
    must(eyas_hal_command_buffer_barrier(commands));
  }
  must(eyas_hal_command_buffer_end(commands));
  eyas_hal_range_t table[] = {{buffer, 0, 4096}, {buffer, 0, 4096}};
  eyas_hal_submission_t submission = {.commands = commands, .table = table, .table_count = 2};
  enum { SAMPLES = 301 };
  double samples[SAMPLES];
  for (int i = -20; i < SAMPLES; ++i) {
    if (bench->idle_us) usleep(bench->idle_us);
    uint64_t start = eyas_clock_now_ns();
    must(eyas_hal_device_submit(device, &submission));
    if (i >= 0) samples[i] = (double)(eyas_clock_now_ns() - start) / bench->waves;
  }
  qsort(samples, SAMPLES, sizeof(samples[0]), compare);
  double ideal = (double)bench->spin_ns * bench->commands * bench->workgroups / threads;
  printf("%-48s %9.0f %9.0f %9.0f %9.0f\n", bench->name, samples[SAMPLES / 20],
         samples[SAMPLES / 2], samples[SAMPLES * 19 / 20], ideal);
  eyas_hal_command_buffer_release(commands);
  eyas_hal_buffer_release(buffer);
}

int main(int argument_count, char** arguments) {
  static const bench_t benches[] = {
      {"submit of 1 dispatch, 1 workgroup", 0, 1, 1, 1, 0, 0},
      {"wave of 1 dispatch, 1 workgroup (inline)", 0, 1000, 1, 1, 0, 0},
      {"wave of 1 dispatch, 1000 empty workgroups", 0, 1000, 1, 1000, 0, 0},
      {"wave of 1 dispatch, one empty workgroup a worker", 0, 1000, 1, UINT32_MAX, 0, 0},
      {"wave of 10 dispatches, 1 workgroup", 0, 1000, 10, 1, 0, 0},
      {"wave of one 5 us workgroup a worker", 1, 200, 1, UINT32_MAX, 5000, 0},
      {"wave of 64 workgroups of 2 us", 1, 100, 1, 64, 2000, 0},
      {"the same after 1 ms without work", 1, 1, 1, 64, 2000, 1000},
  };
  static const char* const names[] = {"nothing", "spin"};
  static const eyas_dispatch_fn_t functions[] = {nothing, spin};
  static const char* const drivers[] = {"local-sync", "local-task"};  // they run functions
  for (size_t driver = 0; driver < 2; ++driver) {
    const eyas_hal_option_t threads = {
        .name = "threads", .number = argument_count > 1 ? (uint64_t)atoi(arguments[1]) : 0};
    const eyas_hal_device_options_t options = {.values = &threads, .value_count = 1};
    eyas_hal_device_t* device = NULL;
    eyas_hal_executable_t* executable = NULL;
    must(eyas_hal_device_create(drivers[driver], &options, &device));
    must(eyas_hal_executable_create_static(device, names, functions, 2, &executable));
    eyas_hal_device_info_t info;
    eyas_hal_device_info(device, &info);
    printf("%s, %u worker(s), %s\n", info.driver, info.worker_count, info.name);
    printf("%-48s %9s %9s %9s %9s\n", "ns per wave", "p5", "median", "p95", "ideal");
    for (size_t i = 0; i < sizeof(benches) / sizeof(benches[0]); ++i) {
      bench_t bench = benches[i];
      if (bench.workgroups == UINT32_MAX) bench.workgroups = info.worker_count;
      measure(device, executable, info.worker_count, &bench);
    }
    eyas_hal_executable_release(executable);
    eyas_hal_device_release(device);
  }
  return 0;
}
