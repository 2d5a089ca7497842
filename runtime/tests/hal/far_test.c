// What `far` is for: memory that the host cannot touch, and work that is done later.
#define _GNU_SOURCE 1
#include "hal/fixture.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hal/far/far.h"

static void test_info(eyas_hal_device_t* device) {
  const eyas_hal_device_info_t info = info_of(device);
  CHECK(!info.host_visible && info.asynchronous && info.memory_type_count == 2);
  CHECK(!(info.memory_types[0] & EYAS_HAL_MEMORY_HOST_VISIBLE));
}

#if !defined(__SANITIZE_THREAD__)  // TSan does not allow threads and fork together
// Who reads a buffer through an address, however he came by it, dies of it.
static void test_closed(eyas_hal_device_t* device) {
  eyas_hal_buffer_t* buffer = new_zeros(device, 8);
  CHECK_OK(eyas_hal_device_wait_idle(device));
  volatile char* address = eyas_hal_far_address(eyas_hal_far_device(device), buffer, 0);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    _exit(*address);
  }
  int state = 0;
  CHECK(waitpid(child, &state, 0) == child);
  CHECK(WIFSIGNALED(state) && WTERMSIG(state) == SIGSEGV);
  eyas_hal_buffer_release(buffer);
}
#endif

// submit returns before the work is done.
static void test_later(eyas_hal_device_t* device) {
  eyas_hal_buffer_t* buffer = new_zeros(device, 8);
  eyas_hal_command_buffer_t* commands = new_commands(device, 0);
  CHECK_OK(eyas_hal_command_buffer_fill(commands, direct(buffer, 0, 8), "\1", 1));
  CHECK_OK(eyas_hal_command_buffer_end(commands));
  eyas_hal_semaphore_t* done = NULL;
  CHECK_OK(eyas_hal_semaphore_create(device, 0, &done));
  CHECK_OK(eyas_hal_device_submit(
      device,
      &(eyas_hal_submission_t){
          .commands = commands, .signals = &(eyas_hal_timepoint_t){done, 1}, .signal_count = 1}));
  uint64_t value = 9;
  CHECK_OK(eyas_hal_semaphore_query(done, &value));
  CHECK(value == 0);
  CHECK_OK(eyas_hal_device_wait_idle(device));
  CHECK_OK(eyas_hal_semaphore_wait(done, 1, 0));
  CHECK(count_wrong(buffer, 1, 0x0101010101010101) == 0);
  eyas_hal_semaphore_release(done);
  eyas_hal_command_buffer_release(commands);
  eyas_hal_buffer_release(buffer);
}

// Commands of a wave run last to first: what lacks a barrier is seen.
static void test_order(eyas_hal_device_t* device) {
  eyas_hal_buffer_t* buffer = new_zeros(device, 8);
  eyas_hal_command_buffer_t* commands = new_commands(device, 0);
  CHECK_OK(eyas_hal_command_buffer_fill(commands, direct(buffer, 0, 8), "\1", 1));
  CHECK_OK(eyas_hal_command_buffer_fill(commands, direct(buffer, 0, 8), "\2", 1));
  CHECK_OK(eyas_hal_command_buffer_end(commands));
  CHECK_OK(run(device, commands, NULL, 0));
  CHECK(count_wrong(buffer, 1, 0x0101010101010101) == 0);
  eyas_hal_command_buffer_release(commands);
  eyas_hal_buffer_release(buffer);
}

int main(void) {
  const eyas_hal_option_t delay = {.name = "delay_us", .number = 20000};
  const eyas_hal_device_options_t options = {.values = &delay, .value_count = 1};
  eyas_hal_device_t* device = NULL;
  CHECK_OK(eyas_hal_device_create("far", &options, &device));
  test_info(device);
#if !defined(__SANITIZE_THREAD__)
  test_closed(device);
#endif
  test_later(device);
  test_order(device);
  eyas_hal_device_release(device);
  return check_summary("hal far");
}
