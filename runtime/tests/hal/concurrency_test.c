// Conformance: semaphores, many submissions, many threads, fork.
#define _GNU_SOURCE 1
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hal/fixture.h"

static void test_semaphore(eyas_hal_device_t* device) {
  eyas_hal_semaphore_t* semaphore = NULL;
  uint64_t value = 0;
  CHECK_OK(eyas_hal_semaphore_create(device, 5, &semaphore));
  CHECK_OK(eyas_hal_semaphore_query(semaphore, &value));
  CHECK(value == 5);
  CHECK_OK(eyas_hal_semaphore_wait(semaphore, 5, 0));
  CHECK_FAILS(eyas_hal_semaphore_wait(semaphore, 6, 0), UNAVAILABLE, "at 5");
  CHECK_FAILS(eyas_hal_semaphore_wait(semaphore, 6, 1000000), UNAVAILABLE, "did not reach 6");
  CHECK_FAILS(eyas_hal_semaphore_signal(semaphore, 5), INVALID_ARGUMENT, "only grows");
  CHECK_OK(eyas_hal_semaphore_signal(semaphore, 7));
  CHECK_OK(eyas_hal_semaphore_wait(semaphore, 6, EYAS_HAL_FOREVER));
  CHECK_FAILS(eyas_hal_device_submit(
                  device, &(eyas_hal_submission_t){.waits = &(eyas_hal_timepoint_t){NULL, 1},
                                                   .wait_count = 1}),
              INVALID_ARGUMENT, "wait 0");
  // A submission with nothing to run still waits and signals.
  CHECK_OK(eyas_hal_device_submit(
      device, &(eyas_hal_submission_t){.waits = &(eyas_hal_timepoint_t){semaphore, 7},
                                       .wait_count = 1,
                                       .signals = &(eyas_hal_timepoint_t){semaphore, 8},
                                       .signal_count = 1}));
  CHECK_OK(eyas_hal_semaphore_wait(semaphore, 8, EYAS_HAL_FOREVER));
  eyas_hal_semaphore_release(semaphore);
}

enum { THREADS = 4, ROUNDS = 50, COUNT = 200 };

typedef struct shared_t {
  eyas_hal_device_t* device;
  eyas_hal_command_buffer_t* commands;  // one recording for all threads
  eyas_hal_buffer_t* total;             // two halves
  eyas_hal_semaphore_t* turn;
  _Atomic uint64_t next_turn;
} shared_t;

// Replays the shared recording with buffers of its own, while others do the same with theirs.
static void* submit_many(void* argument) {
  shared_t* shared = argument;
  eyas_hal_buffer_t* mine = new_zeros(shared->device, 2 * COUNT * 8);
  int64_t data[2 * COUNT];
  for (int i = 0; i < ROUNDS; ++i) {
    CHECK_OK(run(shared->device, shared->commands,
                 (eyas_hal_range_t[]){{mine, 0, COUNT * 8}, {mine, COUNT * 8, COUNT * 8}}, 2));
  }
  int wrong = 0;
  download(mine, data, sizeof(data));
  for (int i = 0; i < COUNT; ++i) wrong += data[i] != ROUNDS || data[COUNT + i] != 2 * ROUNDS;
  CHECK(wrong == 0);
  eyas_hal_buffer_release(mine);
  return NULL;
}

// Each takes turns and passes on a timeline, so that the order is fixed across threads.
static void* submit_in_turn(void* argument) {
  shared_t* shared = argument;
  for (int i = 0; i < ROUNDS; ++i) {
    uint64_t turn = atomic_fetch_add(&shared->next_turn, 1);
    CHECK_OK(eyas_hal_device_submit(
        shared->device, &(eyas_hal_submission_t){
                            .commands = shared->commands,
                            .table = (eyas_hal_range_t[]){{shared->total, 0, COUNT * 8},
                                                          {shared->total, COUNT * 8, COUNT * 8}},
                            .table_count = 2,
                            .waits = &(eyas_hal_timepoint_t){shared->turn, turn},
                            .wait_count = 1,
                            .signals = &(eyas_hal_timepoint_t){shared->turn, turn + 1},
                            .signal_count = 1}));
  }
  return NULL;
}

static void run_threads(void* (*function)(void*), shared_t* shared) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, function, shared);
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
}

static void test_threads(eyas_hal_device_t* device) {
  shared_t shared = {.device = device, .commands = new_commands(device, 2)};
  shared.total = new_zeros(device, 2 * COUNT * 8);
  CHECK_OK(eyas_hal_semaphore_create(device, 0, &shared.turn));
  int64_t total[2 * COUNT];
  eyas_hal_executable_t* kernels = new_kernels(device);
  CHECK_OK(record_add(shared.commands, kernels, indirect(0, 0, COUNT * 8), 1, COUNT));
  CHECK_OK(record_add(shared.commands, kernels, indirect(1, 0, COUNT * 8), 2, COUNT));
  CHECK_OK(eyas_hal_command_buffer_end(shared.commands));
  run_threads(submit_many, &shared);
  run_threads(submit_in_turn, &shared);
  CHECK_OK(eyas_hal_semaphore_wait(shared.turn, THREADS * ROUNDS, EYAS_HAL_FOREVER));
  download(shared.total, total, sizeof(total));
  int wrong = 0;
  for (int i = 0; i < COUNT; ++i) {
    wrong += total[i] != THREADS * ROUNDS || total[COUNT + i] != 2 * THREADS * ROUNDS;
  }
  CHECK(wrong == 0);
  eyas_hal_semaphore_release(shared.turn);
  eyas_hal_command_buffer_release(shared.commands);
  eyas_hal_executable_release(kernels);
  eyas_hal_buffer_release(shared.total);
}

static void test_many_small(eyas_hal_device_t* device) {
  eyas_hal_buffer_t* buffer = new_zeros(device, 16 * 8);
  eyas_hal_executable_t* kernels = new_kernels(device);
  for (int64_t i = 0; i < 300; ++i) {
    eyas_hal_command_buffer_t* commands = new_commands(device, 0);
    CHECK_OK(record_add(commands, kernels, direct(buffer, 0, 16 * 8), i, 1 + (uint32_t)(i % 16)));
    CHECK_OK(eyas_hal_command_buffer_end(commands));
    CHECK_OK(run(device, commands, NULL, 0));
    eyas_hal_command_buffer_release(commands);
  }
  CHECK(count_wrong(buffer, 1, 300 * 299 / 2) == 0);
  eyas_hal_executable_release(kernels);
  eyas_hal_buffer_release(buffer);
}

// Submissions that wait, on an asynchronous device, hold up nobody; the host lets them go.
static void test_late_signal(eyas_hal_device_t* device) {
  if (!info_of(device).asynchronous) return;  // there submit itself would wait
  enum { WAITING = 3 };
  eyas_hal_buffer_t* buffer = new_zeros(device, 8);
  eyas_hal_executable_t* kernels = new_kernels(device);
  eyas_hal_command_buffer_t* commands = new_commands(device, 0);
  CHECK_OK(record_add(commands, kernels, direct(buffer, 0, 8), 1, 1));
  CHECK_OK(eyas_hal_command_buffer_end(commands));
  eyas_hal_device_t* other = NULL;  // its semaphores serve here, too
  eyas_hal_semaphore_t *gate = NULL, *done = NULL;
  CHECK_OK(eyas_hal_device_create("local-sync", NULL, &other));
  CHECK_OK(eyas_hal_semaphore_create(other, 0, &gate));
  CHECK_OK(eyas_hal_semaphore_create(device, 0, &done));
  for (uint64_t i = 1; i <= WAITING; ++i) {
    CHECK_OK(eyas_hal_device_submit(
        device,
        &(eyas_hal_submission_t){.commands = commands,
                                 .waits = (eyas_hal_timepoint_t[]){{gate, 1}, {done, i - 1}},
                                 .wait_count = 2,
                                 .signals = &(eyas_hal_timepoint_t){done, i},
                                 .signal_count = 1}));
  }
  CHECK_OK(run(device, commands, NULL, 0));
  CHECK(count_wrong(buffer, 1, 1) == 0);
  CHECK_FAILS(eyas_hal_semaphore_wait(done, 1, 1000), UNAVAILABLE, "at 0");
  CHECK_OK(eyas_hal_semaphore_signal(gate, 1));
  CHECK_OK(eyas_hal_semaphore_wait(done, WAITING, EYAS_HAL_FOREVER));
  CHECK(count_wrong(buffer, 1, 1 + WAITING) == 0);
  eyas_hal_semaphore_release(gate);
  eyas_hal_semaphore_release(done);
  eyas_hal_device_release(other);
  eyas_hal_command_buffer_release(commands);
  eyas_hal_executable_release(kernels);
  eyas_hal_buffer_release(buffer);
}

// Devices die with the last that holds them, whichever thread that is.
static void test_create_destroy(void) {
  for (size_t driver = 0; driver < eyas_hal_driver_count(); ++driver) {
    const char* name = eyas_hal_driver_name(driver);
    if (!has_device(name)) continue;
    for (int i = 0; i < 50; ++i) {
      const eyas_hal_option_t threads = {.name = "threads", .number = 1 + (uint64_t)i % 6};
      const eyas_hal_device_options_t options = {.values = &threads,
                                                 .value_count = driver_has(name, "threads")};
      eyas_hal_device_t* device = NULL;
      CHECK_OK(eyas_hal_device_create(name, &options, &device));
      eyas_hal_buffer_t* buffer = new_buffer(device, 800);
      eyas_hal_command_buffer_t* commands = new_commands(device, 0);
      CHECK_OK(eyas_hal_command_buffer_fill(commands, direct(buffer, 0, 800), "x", 1));
      CHECK_OK(eyas_hal_command_buffer_end(commands));
      if (i % 2) {
        CHECK_OK(eyas_hal_device_submit(device, &(eyas_hal_submission_t){.commands = commands}));
      }
      eyas_hal_device_release(device);  // the others keep it
      eyas_hal_command_buffer_release(commands);
      eyas_hal_buffer_release(buffer);
    }
  }
}

#if !defined(__SANITIZE_THREAD__)  // TSan does not allow threads and fork together
// A child has none of the threads. A device works on there or says that it cannot; it does not
// hang, nor when it is let go.
static void test_fork(eyas_hal_device_t* device) {
  eyas_hal_buffer_t* buffer = new_zeros(device, COUNT * 8);
  eyas_hal_executable_t* kernels = new_kernels(device);
  eyas_hal_command_buffer_t* commands = new_commands(device, 0);
  CHECK_OK(record_add(commands, kernels, direct(buffer, 0, COUNT * 8), 3, COUNT));
  CHECK_OK(eyas_hal_command_buffer_end(commands));
  CHECK_OK(run(device, commands, NULL, 0));
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    alarm(10);
    eyas_status_t status = run(device, commands, NULL, 0);
    int wrong = info_of(device).asynchronous
                    ? eyas_status_code(status) != EYAS_STATUS_FAILED_PRECONDITION
                    : status != NULL || count_wrong(buffer, COUNT, 6) != 0;
    eyas_status_free(status);
    eyas_hal_command_buffer_release(commands);
    eyas_hal_executable_release(kernels);
    eyas_hal_buffer_release(buffer);
    eyas_hal_device_release(device);
    _exit(wrong);
  }
  int state = -1;
  CHECK(waitpid(child, &state, 0) == child && state == 0);
  eyas_hal_command_buffer_release(commands);
  eyas_hal_executable_release(kernels);
  eyas_hal_buffer_release(buffer);
}
#endif

int main(void) {
  for_each_device(test_semaphore);
  for_each_device(test_threads);
  for_each_device(test_many_small);
  for_each_device(test_late_signal);
  test_create_destroy();
#if !defined(__SANITIZE_THREAD__)
  for_each_device(test_fork);
#endif
  return check_summary("hal concurrency");
}
