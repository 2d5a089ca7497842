// The local drivers run submissions of several threads side by side. Shown by kernels that wait for
// one another: they would never end, or give up here, if one submission waited for the other.
#define _GNU_SOURCE 1
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "hal/fixture.h"
#include "hal/local/pool.h"

#define PATIENCE_NS (20ull * 1000000000ull)

// binding 0 [1]: an atomic count of those who have arrived. Returns when there are constant 0 of
// them.
static void kernel_meet(const eyas_dispatch_t* dispatch, const eyas_workgroup_t* workgroup) {
  (void)workgroup;
  _Atomic int64_t* arrived = dispatch->bindings[0];
  uint64_t begin_ns = eyas_clock_now_ns();
  atomic_fetch_add(arrived, 1);
  while (atomic_load(arrived) < dispatch->constants[0]) {
    if (eyas_clock_now_ns() - begin_ns > PATIENCE_NS) {
      eyas_dispatch_report(dispatch, 77);
      return;
    }
    usleep(100);
  }
}

// binding 0, int64 per workgroup: fails where it is negative, else adds 1.
static void kernel_check(const eyas_dispatch_t* dispatch, const eyas_workgroup_t* workgroup) {
  int64_t* data = dispatch->bindings[0];
  if (data[workgroup->id[0]] < 0) {
    eyas_dispatch_report(dispatch, 42);
    return;
  }
  data[workgroup->id[0]] += 1;
}

// binding 0, int64 per workgroup: takes a moment, and notes which worker ran it.
static void kernel_note(const eyas_dispatch_t* dispatch, const eyas_workgroup_t* workgroup) {
  usleep(500);
  ((int64_t*)dispatch->bindings[0])[workgroup->id[0]] = workgroup->worker;
}

enum { MEET, CHECK_DATA, NOTE_WORKER, LOCAL_KERNEL_COUNT };

static eyas_hal_executable_t* local_kernels(eyas_hal_device_t* device) {
  static const char* const names[] = {"meet", "check", "note"};
  static const eyas_dispatch_fn_t functions[] = {kernel_meet, kernel_check, kernel_note};
  eyas_hal_executable_t* executable = NULL;
  CHECK_OK(
      eyas_hal_executable_create_static(device, names, functions, LOCAL_KERNEL_COUNT, &executable));
  return executable;
}

static eyas_hal_command_buffer_t* recording_of(eyas_hal_device_t* device, uint32_t kernel,
                                               int64_t constant, uint32_t workgroups,
                                               uint64_t bytes) {
  eyas_hal_executable_t* kernels = local_kernels(device);
  eyas_hal_command_buffer_t* commands = new_commands(device, 1);
  eyas_hal_binding_t binding = indirect(0, 0, bytes);
  CHECK_OK(eyas_hal_command_buffer_dispatch(
      commands, &(eyas_hal_dispatch_t){.executable = kernels,
                                       .ordinal = kernel,
                                       .workgroup_count = {workgroups, 1, 1},
                                       .constants = &constant,
                                       .constant_count = 1,
                                       .bindings = &binding,
                                       .binding_count = 1}));
  CHECK_OK(eyas_hal_command_buffer_end(commands));
  eyas_hal_executable_release(kernels);
  return commands;
}

static eyas_hal_device_t* new_device(const char* driver, uint32_t threads) {
  const eyas_hal_option_t value = {.name = "threads", .number = threads};
  const eyas_hal_device_options_t options = {.values = &value, .value_count = 1};
  eyas_hal_device_t* device = NULL;
  CHECK_OK(eyas_hal_device_create(driver, &options, &device));
  return device;
}

// One thread's submissions of a recording.
typedef struct job_t {
  eyas_hal_device_t* device;
  eyas_hal_command_buffer_t* commands;
  eyas_hal_range_t range;
  int rounds;
  int failures;  // seen
} job_t;

static void* run_job(void* argument) {
  job_t* job = argument;
  for (int i = 0; i < job->rounds; ++i) {
    eyas_status_t status = run(job->device, job->commands, &job->range, 1);
    job->failures += status != NULL;
    eyas_status_free(status);
  }
  return NULL;
}

static void run_jobs(job_t* jobs, int count) {
  pthread_t threads[2 * EYAS_HAL_POOL_LANES];
  for (int i = 0; i < count; ++i) CHECK(pthread_create(&threads[i], NULL, run_job, &jobs[i]) == 0);
  for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
}

// Jobs that end only if all of them are under way at the same moment.
static void meet(eyas_hal_device_t* const* devices, int count) {
  // Imported memory is the same for every device.
  int64_t arrived = 0;
  job_t jobs[4] = {0};
  for (int i = 0; i < count; ++i) {
    jobs[i] = (job_t){.device = devices[i], .rounds = 1};
    jobs[i].commands = recording_of(devices[i], MEET, count, 1, 8);
    jobs[i].range.length = 8;
    CHECK_OK(eyas_hal_buffer_import(devices[i], EYAS_HAL_USAGE_ALL, EYAS_HAL_ACCESS_READ_WRITE,
                                    &arrived, 8, NULL, NULL, &jobs[i].range.buffer));
  }
  run_jobs(jobs, count);
  for (int i = 0; i < count; ++i) {
    CHECK(jobs[i].failures == 0);
    eyas_hal_command_buffer_release(jobs[i].commands);
    eyas_hal_buffer_release(jobs[i].range.buffer);
  }
}

static void test_one_device(eyas_hal_device_t* device) {
  meet((eyas_hal_device_t*[]){device, device, device}, 3);
}

static void test_several_devices(void) {
  eyas_hal_device_t* devices[] = {new_device("local-task", 1), new_device("local-task", 1),
                                  new_device("local-sync", 1), new_device("local-task", 3)};
  meet(devices, 4);
  for (int i = 0; i < 4; ++i) eyas_hal_device_release(devices[i]);
}

// Runs of one recording take turns, and what one meets in its data is not the other's failure.
static void test_one_recording(eyas_hal_device_t* device) {
  enum { SIZE = 64, RUNS = 100 };
  eyas_hal_command_buffer_t* commands = recording_of(device, CHECK_DATA, 0, SIZE, SIZE * 8);
  job_t jobs[4];
  int64_t* data[4];
  for (int i = 0; i < 4; ++i) {
    eyas_hal_buffer_t* buffer = new_shared_buffer(device, SIZE * 8);
    data[i] = map(buffer);
    for (int k = 0; k < SIZE; ++k) data[i][k] = i % 2 ? -1 : 0;
    jobs[i] = (job_t){device, commands, {buffer, 0, SIZE * 8}, RUNS, 0};
  }
  run_jobs(jobs, 4);
  for (int i = 0; i < 4; ++i) {
    int wrong = 0;
    for (int k = 0; k < SIZE; ++k) wrong += data[i][k] != (i % 2 ? -1 : RUNS);
    CHECK(wrong == 0);
    CHECK(jobs[i].failures == (i % 2 ? RUNS : 0));
    eyas_hal_buffer_release(jobs[i].range.buffer);
  }
  eyas_hal_command_buffer_release(commands);
}

// A pool's threads help every caller, whoever was there first.
static void test_help_is_shared(void) {
  enum { CALLERS = 3, SIZE = 32, RUNS = 8 };
  eyas_hal_device_t* device = new_device("local-task", 4);
  job_t jobs[CALLERS];
  int64_t* workers[CALLERS];
  for (int i = 0; i < CALLERS; ++i) {
    eyas_hal_buffer_t* buffer = new_shared_buffer(device, SIZE * 8);
    workers[i] = map(buffer);
    jobs[i] = (job_t){device,
                      recording_of(device, NOTE_WORKER, 0, SIZE, SIZE * 8),
                      {buffer, 0, SIZE * 8},
                      RUNS,
                      0};
  }
  run_jobs(jobs, CALLERS);
  for (int i = 0; i < CALLERS; ++i) {
    int helped = 0, impossible = 0;
    for (int k = 0; k < SIZE; ++k) {
      helped += workers[i][k] != 0;
      impossible += workers[i][k] < 0 || workers[i][k] > 3;
    }
    CHECK(helped > 0 && impossible == 0 && jobs[i].failures == 0);
    eyas_hal_command_buffer_release(jobs[i].commands);
    eyas_hal_buffer_release(jobs[i].range.buffer);
  }
  eyas_hal_device_release(device);
}

// More threads than can run at once, and waves that the pool helps with.
static void test_crowd(eyas_hal_device_t* device) {
  enum { CROWD = EYAS_HAL_POOL_LANES + 16, SIZE = 33, RUNS = 20 };
  job_t* jobs = calloc(CROWD, sizeof(*jobs));
  int64_t* data[CROWD];
  for (int i = 0; i < CROWD; ++i) {
    eyas_hal_buffer_t* buffer = new_shared_buffer(device, SIZE * 8);
    data[i] = map(buffer);
    memset(data[i], 0, SIZE * 8);
    jobs[i] = (job_t){device,
                      recording_of(device, CHECK_DATA, 0, SIZE, SIZE * 8),
                      {buffer, 0, SIZE * 8},
                      RUNS,
                      0};
  }
  run_jobs(jobs, CROWD);
  int wrong = 0;
  for (int i = 0; i < CROWD; ++i) {
    for (int k = 0; k < SIZE; ++k) wrong += data[i][k] != RUNS;
    wrong += jobs[i].failures;
    eyas_hal_command_buffer_release(jobs[i].commands);
    eyas_hal_buffer_release(jobs[i].range.buffer);
  }
  CHECK(wrong == 0);
  free(jobs);
}

// Runs `during` while a submission is under way on another thread, which ends when it returns.
static void while_one_runs(eyas_hal_device_t* device, void (*during)(eyas_hal_device_t* device)) {
  eyas_hal_buffer_t* buffer = new_shared_buffer(device, 8);
  _Atomic int64_t* arrived = map(buffer);
  atomic_store(arrived, 0);
  job_t job = {device, recording_of(device, MEET, 2, 1, 8), {buffer, 0, 8}, 1, 0};
  pthread_t thread;
  pthread_create(&thread, NULL, run_job, &job);
  while (atomic_load(arrived) == 0) usleep(100);
  during(device);
  atomic_fetch_add(arrived, 1);
  pthread_join(thread, NULL);
  CHECK(job.failures == 0);
  eyas_hal_command_buffer_release(job.commands);
  eyas_hal_buffer_release(buffer);
}

static _Atomic bool is_idle;
static pthread_t idle_waiter;

static void* wait_idle(void* device) {
  CHECK_OK(eyas_hal_device_wait_idle(device));
  atomic_store(&is_idle, true);
  return NULL;
}

static void start_waiting(eyas_hal_device_t* device) {
  atomic_store(&is_idle, false);
  pthread_create(&idle_waiter, NULL, wait_idle, device);
  usleep(20000);
  CHECK(!atomic_load(&is_idle));
}

static void test_wait_idle(eyas_hal_device_t* device) {
  while_one_runs(device, start_waiting);
  pthread_join(idle_waiter, NULL);
  CHECK(atomic_load(&is_idle));
}

#if !defined(__SANITIZE_THREAD__)  // TSan does not allow threads and fork together
// The caller that is in a lane now does not exist in the child; its lane stays taken there.
static void fork_now(eyas_hal_device_t* device) {
  int64_t data[5] = {0};
  eyas_hal_range_t range = {NULL, 0, sizeof(data)};
  CHECK_OK(eyas_hal_buffer_import(device, EYAS_HAL_USAGE_ALL, EYAS_HAL_ACCESS_READ_WRITE, data,
                                  sizeof(data), NULL, NULL, &range.buffer));
  eyas_hal_command_buffer_t* commands = recording_of(device, CHECK_DATA, 0, 5, sizeof(data));
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    alarm(10);
    eyas_status_t status = run(device, commands, &range, 1);
    _exit(status || data[0] != 1 || data[4] != 1);
  }
  int state = -1;
  CHECK(waitpid(child, &state, 0) == child && state == 0);
  eyas_hal_command_buffer_release(commands);
  eyas_hal_buffer_release(range.buffer);
}

static void test_fork(eyas_hal_device_t* device) {
  while_one_runs(device, fork_now);
}
#endif

static void on_local_devices(void (*test)(eyas_hal_device_t* device)) {
  for (uint32_t threads = 1; threads <= 4; threads += 3) {
    eyas_hal_device_t* device = new_device("local-task", threads);
    test(device);
    eyas_hal_device_release(device);
  }
  eyas_hal_device_t* device = new_device("local-sync", 1);
  test(device);
  eyas_hal_device_release(device);
}

int main(void) {
  on_local_devices(test_one_device);
  test_several_devices();
  on_local_devices(test_one_recording);
  test_help_is_shared();
  on_local_devices(test_crowd);
  on_local_devices(test_wait_idle);
#if !defined(__SANITIZE_THREAD__)
  on_local_devices(test_fork);
#endif
  return check_summary("hal overlap");
}
