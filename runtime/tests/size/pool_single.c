// A pool of one worker, the caller: what `local-sync` needs. Linked instead of src/hal/local/pool.c
// where a program has no threads, and so one lane.
#include <stdlib.h>

#include "hal/local/pool.h"

struct eyas_hal_pool_lane_t {
  eyas_hal_pool_worker_t caller;
};

struct eyas_hal_pool_t {
  eyas_hal_pool_lane_t lane;
};

eyas_status_t eyas_hal_pool_create(uint32_t worker_count, uint32_t spin_us, uint64_t scratch_bytes,
                                   eyas_hal_pool_t** out_pool) {
  (void)spin_us;
  *out_pool = NULL;
  if (worker_count != 1) {
    return eyas_status_make(EYAS_STATUS_UNAVAILABLE, "this runtime has no threads; use local-sync");
  }
  eyas_hal_pool_t* pool = calloc(1, sizeof(*pool));
  if (pool) pool->lane.caller.scratch = aligned_alloc(64, (size_t)scratch_bytes);
  if (!pool || !pool->lane.caller.scratch) {
    free(pool);
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory for workers");
  }
  *out_pool = pool;
  return NULL;
}

void eyas_hal_pool_destroy(eyas_hal_pool_t* pool) {
  if (pool) free(pool->lane.caller.scratch);
  free(pool);
}

uint32_t eyas_hal_pool_worker_count(const eyas_hal_pool_t* pool) {
  (void)pool;
  return 1;
}

eyas_hal_pool_lane_t* eyas_hal_pool_enter(eyas_hal_pool_t* pool) {
  return &pool->lane;
}

void eyas_hal_pool_leave(eyas_hal_pool_lane_t* lane) {
  (void)lane;
}

eyas_hal_pool_worker_t* eyas_hal_pool_caller(eyas_hal_pool_lane_t* lane) {
  return &lane->caller;
}

void eyas_hal_pool_run(eyas_hal_pool_lane_t* lane, eyas_hal_pool_fn_t function, void* context,
                       uint32_t chunk_count) {
  for (uint32_t chunk = 0; chunk < chunk_count; ++chunk) function(context, &lane->caller, chunk);
}

void eyas_hal_pool_wait_idle(eyas_hal_pool_t* pool) {
  (void)pool;
}
