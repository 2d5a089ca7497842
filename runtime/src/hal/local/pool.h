// A pool of persistent threads that helps several callers at once.
//
// A caller takes a lane, runs batches of chunks in it and leaves. It works on its own chunks, and
// the pool's threads go round the lanes and take what is left: so callers run side by side, alone
// where the threads are busy elsewhere. Chunks are claimed with one atomic counter of their lane;
// there are no locks and no allocation while a batch runs. Idle threads spin for a short time, so
// that batches that follow each other closely start at once, and then sleep.
#ifndef EYAS_HAL_LOCAL_POOL_H_
#define EYAS_HAL_LOCAL_POOL_H_

#include <stdint.h>

#include "eyas/status.h"

// Callers that run at the same time; more wait.
#define EYAS_HAL_POOL_LANES 64

typedef struct eyas_hal_pool_t eyas_hal_pool_t;
typedef struct eyas_hal_pool_lane_t eyas_hal_pool_lane_t;

// Who runs a chunk, and the memory that is its own meanwhile.
typedef struct eyas_hal_pool_worker_t {
  uint32_t index;  // 0: the lane's caller; below the worker count
  char* scratch;   // 64-byte aligned
  uint64_t owner;  // who last used the scratch memory; the user's to set
} eyas_hal_pool_worker_t;

// Runs one chunk. No two calls with one worker overlap, and none with one index in one lane.
typedef void (*eyas_hal_pool_fn_t)(void* context, eyas_hal_pool_worker_t* worker, uint32_t chunk);

// `worker_count` includes the caller of run, so one less thread is started. With 1 everything runs
// on the callers. `scratch_bytes` of each worker are a multiple of 64.
eyas_status_t eyas_hal_pool_create(uint32_t worker_count, uint32_t spin_us, uint64_t scratch_bytes,
                                   eyas_hal_pool_t** out_pool);

// Joins the threads.
void eyas_hal_pool_destroy(eyas_hal_pool_t* pool);

uint32_t eyas_hal_pool_worker_count(const eyas_hal_pool_t* pool);

// Takes a lane that nobody is in; waits where there are no more.
eyas_hal_pool_lane_t* eyas_hal_pool_enter(eyas_hal_pool_t* pool);
void eyas_hal_pool_leave(eyas_hal_pool_lane_t* lane);

// The caller as a worker, for what it runs outside of batches.
eyas_hal_pool_worker_t* eyas_hal_pool_caller(eyas_hal_pool_lane_t* lane);

// Runs chunks 0 to chunk_count - 1 and returns when all have finished; their writes are visible to
// the caller and to the lane's next batch. The caller is worker 0.
void eyas_hal_pool_run(eyas_hal_pool_lane_t* lane, eyas_hal_pool_fn_t function, void* context,
                       uint32_t chunk_count);

// Returns when everyone who was in a lane has left it.
void eyas_hal_pool_wait_idle(eyas_hal_pool_t* pool);

#endif  // EYAS_HAL_LOCAL_POOL_H_
