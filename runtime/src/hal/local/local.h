// The two CPU drivers. They are one device: `local-sync` has one worker, the caller; `local-task`
// has a pool.
#ifndef EYAS_HAL_LOCAL_LOCAL_H_
#define EYAS_HAL_LOCAL_LOCAL_H_

#include <pthread.h>

#include "hal/command_buffer.h"
#include "hal/cpu/cpu.h"
#include "hal/local/pool.h"

extern const eyas_hal_driver_t eyas_hal_local_sync_driver;
extern const eyas_hal_driver_t eyas_hal_local_task_driver;

// Memory of released buffers that the next ones of the same size are given: pages that the system
// has just taken back would have to be cleared and mapped again, which for the results of a call
// costs more than writing them.
#define EYAS_HAL_LOCAL_SPARES 64  // a decoder gives back a key and a value for each layer
#define EYAS_HAL_LOCAL_SPARE_MIN_BYTES ((size_t)128 << 10)  // below, the C library does the same
#define EYAS_HAL_LOCAL_SPARE_MAX_BYTES ((size_t)64 << 20)   // of all together

typedef struct eyas_hal_local_spare_t {
  void* memory;  // NULL: none
  size_t bytes;
} eyas_hal_local_spare_t;

typedef struct eyas_hal_local_device_t {
  eyas_hal_device_t base;
  char name[128];
  eyas_hal_pool_t* pool;
  uint64_t scratch_bytes;     // per worker, a multiple of 64
  uint64_t step_budget;       // of a workgroup of bytecode; 0: none
  eyas_vmvx_settings_t vmvx;  // what bytecode runs with
  pthread_mutex_t spares_mutex;
  eyas_hal_local_spare_t spares[EYAS_HAL_LOCAL_SPARES];  // the last released first
} eyas_hal_local_device_t;

static inline eyas_hal_local_device_t* eyas_hal_local_device(eyas_hal_device_t* device) {
  return (eyas_hal_local_device_t*)device;
}

eyas_status_t eyas_hal_local_commands_prepare(eyas_hal_device_t* device,
                                              eyas_hal_command_buffer_t* commands);
void eyas_hal_local_commands_destroy(eyas_hal_device_t* device,
                                     eyas_hal_command_buffer_t* commands);
void eyas_hal_local_commands_profile(eyas_hal_device_t* device, eyas_hal_command_buffer_t* commands,
                                     eyas_hal_profile_event_t* events,
                                     eyas_hal_profile_share_t* shares,
                                     eyas_hal_profile_binding_t* bindings);
// Runs prepared commands on the caller and the pool, beside those of other callers.
eyas_status_t eyas_hal_local_commands_run(eyas_hal_local_device_t* device,
                                          eyas_hal_command_buffer_t* commands,
                                          const eyas_hal_range_t* table);

#endif  // EYAS_HAL_LOCAL_LOCAL_H_
