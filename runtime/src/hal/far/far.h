// The driver `far`: a device on the other side of a bus, played by a thread. It keeps the rest of
// the runtime honest about devices that are not this CPU's own memory and time:
//
// - Its memory cannot be mapped, and host pointers cannot be imported. Buffers lie in a region that
//   is closed (PROT_NONE) unless the queue works, so that an access by mistake ends the program.
//   Memory that the host sees is for transfers only.
// - submit returns at once; a thread of the device's own does the work later, in order, and
// signals.
// - Commands of a wave run last to first: a program that lacks a barrier gives wrong numbers.
//
// Code is what a CPU runs: bytecode and machine code (hal/cpu). It is for tests, not for speed.
#ifndef EYAS_HAL_FAR_FAR_H_
#define EYAS_HAL_FAR_FAR_H_

#include <pthread.h>
#include <unistd.h>

#include "hal/command_buffer.h"
#include "hal/cpu/cpu.h"

extern const eyas_hal_driver_t eyas_hal_far_driver;

// A part of the region, in use or free. The parts are a list in the order of their addresses.
typedef struct eyas_hal_far_block_t {
  uint64_t offset;
  uint64_t bytes;
  bool used;
  struct eyas_hal_far_block_t *previous, *next;
} eyas_hal_far_block_t;

typedef struct eyas_hal_far_memory_t {
  pthread_mutex_t mutex;
  char* region;
  uint64_t touched;  // bytes from the start that blocks have ever had
  eyas_hal_far_block_t* first;
} eyas_hal_far_memory_t;

// Work that was handed over. It holds what it names.
typedef struct eyas_hal_far_submission_t {
  struct eyas_hal_far_submission_t* next;
  eyas_hal_command_buffer_t* commands;
  eyas_hal_range_t* table;
  uint32_t table_count;
  eyas_hal_timepoint_t* points;  // waits, then signals
  uint32_t wait_count;
  uint32_t signal_count;
} eyas_hal_far_submission_t;

typedef struct eyas_hal_far_queue_t {
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t changed;  // something to do
  pthread_cond_t idle;
  eyas_hal_far_submission_t *first, *last;
  bool working;
  bool stopping;
  bool orphaned;  // the last reference to the device was dropped by its own thread
} eyas_hal_far_queue_t;

typedef struct eyas_hal_far_device_t {
  eyas_hal_device_t base;
  pid_t process;  // whose thread the queue is
  uint64_t delay_us;
  uint64_t step_budget;
  eyas_vmvx_settings_t vmvx;
  char* scratch;
  uint64_t scratch_owner;  // whose data is in it
  eyas_hal_far_memory_t memory;
  eyas_hal_far_queue_t queue;
} eyas_hal_far_device_t;

static inline eyas_hal_far_device_t* eyas_hal_far_device(eyas_hal_device_t* device) {
  return (eyas_hal_far_device_t*)device;
}

// A forked child has the device's handles and not its thread.
static inline bool eyas_hal_far_is_foreign(const eyas_hal_far_device_t* device) {
  return device->process != getpid();
}

// memory.c

eyas_status_t eyas_hal_far_memory_create(eyas_hal_far_memory_t* memory);
void eyas_hal_far_memory_destroy(eyas_hal_far_memory_t* memory);
eyas_status_t eyas_hal_far_buffer_allocate(eyas_hal_device_t* device, eyas_hal_buffer_t* buffer);
eyas_status_t eyas_hal_far_buffer_import(eyas_hal_device_t* device, eyas_hal_buffer_t* buffer,
                                         void* pointer);
void eyas_hal_far_buffer_free(eyas_hal_device_t* device, eyas_hal_buffer_t* buffer);
// Where a byte of a buffer is. Good while the region is open, which it is for the queue alone.
char* eyas_hal_far_address(eyas_hal_far_device_t* device, const eyas_hal_buffer_t* buffer,
                           uint64_t offset);
void eyas_hal_far_memory_open(eyas_hal_far_memory_t* memory);
void eyas_hal_far_memory_close(eyas_hal_far_memory_t* memory);

// queue.c

eyas_status_t eyas_hal_far_queue_create(eyas_hal_far_device_t* device);
// Joins the thread. False when the caller is that thread, which then destroys the device itself.
bool eyas_hal_far_queue_destroy(eyas_hal_far_device_t* device);
eyas_status_t eyas_hal_far_submit(eyas_hal_device_t* device,
                                  const eyas_hal_submission_t* submission);
eyas_status_t eyas_hal_far_wait_idle(eyas_hal_device_t* device);
void eyas_hal_far_destroy(eyas_hal_far_device_t* device);  // device.c

// commands.c

eyas_status_t eyas_hal_far_commands_prepare(eyas_hal_device_t* device,
                                            eyas_hal_command_buffer_t* commands);
void eyas_hal_far_commands_destroy(eyas_hal_device_t* device, eyas_hal_command_buffer_t* commands);
void eyas_hal_far_commands_profile(eyas_hal_device_t* device, eyas_hal_command_buffer_t* commands,
                                   eyas_hal_profile_event_t* events,
                                   eyas_hal_profile_share_t* shares,
                                   eyas_hal_profile_binding_t* bindings);
// Runs commands with a table. On the queue's thread, with the region open.
eyas_status_t eyas_hal_far_commands_run(eyas_hal_far_device_t* device,
                                        eyas_hal_command_buffer_t* commands,
                                        const eyas_hal_range_t* table);

#endif  // EYAS_HAL_FAR_FAR_H_
