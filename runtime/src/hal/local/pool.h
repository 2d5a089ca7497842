// A pool of persistent threads that runs one batch of chunks at a time.
//
// Chunks are claimed with one atomic counter; there are no locks and no allocation while a batch
// runs. Idle workers spin for a short time, so that batches that follow each other closely start at
// once, and then sleep.
#ifndef EYAS_HAL_LOCAL_POOL_H_
#define EYAS_HAL_LOCAL_POOL_H_

#include <stdint.h>

#include "eyas/status.h"

typedef struct eyas_hal_pool_t eyas_hal_pool_t;

// Runs one chunk. `worker` is below the worker count; no two calls with one worker overlap.
typedef void (*eyas_hal_pool_fn_t)(void* context, uint32_t worker, uint32_t chunk);

// `worker_count` includes the caller of run, so one less thread is started. With 1 everything runs
// on the caller.
eyas_status_t eyas_hal_pool_create(uint32_t worker_count, uint32_t spin_us,
                                   eyas_hal_pool_t** out_pool);

// Joins the threads.
void eyas_hal_pool_destroy(eyas_hal_pool_t* pool);

uint32_t eyas_hal_pool_worker_count(const eyas_hal_pool_t* pool);

// Runs chunks 0 to chunk_count - 1 and returns when all have finished; their writes are visible to
// the caller and to the next batch. The caller is worker 0. One run at a time.
void eyas_hal_pool_run(eyas_hal_pool_t* pool, eyas_hal_pool_fn_t function, void* context,
                       uint32_t chunk_count);

#endif  // EYAS_HAL_LOCAL_POOL_H_
