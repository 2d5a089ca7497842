// A pool of one worker, the caller: what `local-sync` needs. Linked instead of src/hal/local/pool.c
// where a program has no threads.
#include <stdlib.h>

#include "hal/local/pool.h"

struct eyas_hal_pool_t {
  uint32_t worker_count;
};

eyas_status_t eyas_hal_pool_create(uint32_t worker_count, uint32_t spin_us,
                                   eyas_hal_pool_t** out_pool) {
  (void)spin_us;
  *out_pool = NULL;
  if (worker_count != 1) {
    return eyas_status_make(EYAS_STATUS_UNAVAILABLE, "this runtime has no threads; use local-sync");
  }
  eyas_hal_pool_t* pool = malloc(sizeof(*pool));
  if (!pool)
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory for workers");
  pool->worker_count = worker_count;
  *out_pool = pool;
  return NULL;
}

void eyas_hal_pool_destroy(eyas_hal_pool_t* pool) {
  free(pool);
}

uint32_t eyas_hal_pool_worker_count(const eyas_hal_pool_t* pool) {
  return pool->worker_count;
}

void eyas_hal_pool_run(eyas_hal_pool_t* pool, eyas_hal_pool_fn_t function, void* context,
                       uint32_t chunk_count) {
  (void)pool;
  for (uint32_t chunk = 0; chunk < chunk_count; ++chunk) function(context, 0, chunk);
}
