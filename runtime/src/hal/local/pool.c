#define _GNU_SOURCE 1
#include "hal/local/pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/futex.h"

// Two lines of 64 bytes: adjacent-line prefetch pulls them in pairs.
#define CACHE_LINE 128
#define STACK_BYTES (8u << 20)

typedef struct worker_t {
  alignas(CACHE_LINE) _Atomic uint64_t done;  // chunks it has run since the pool began
  eyas_hal_pool_t* pool;
  pthread_t thread;
  uint32_t index;
} worker_t;

// How a batch runs, and why a late worker does no harm. run() writes the batch, stores the number
// of chunks in `remaining` and moves `epoch` on. A worker that takes 1 from `remaining` and finds
// it was positive owns a chunk, and as run() waits for every chunk, the batch cannot change while
// one is owned. A worker that finds nothing left touches nothing of the batch.
//
// What is written by different threads lies in different cache lines: workers poll `epoch` without
// disturbing the claims, and report in lines of their own, which run() adds up.
struct eyas_hal_pool_t {
  alignas(CACHE_LINE) _Atomic uint32_t epoch;  // batches so far; idle workers wait for it to move
  uint32_t chunk_count;                        // the batch
  eyas_hal_pool_fn_t function;
  void* context;
  alignas(CACHE_LINE) _Atomic int64_t remaining;  // chunks not yet claimed; below 0 is none
  alignas(CACHE_LINE) _Atomic uint32_t sleepers;  // workers asleep, or about to be
  _Atomic uint32_t caller_sleeps;                 // run() wants to be woken
  _Atomic uint32_t caller_word;                   // what it sleeps on
  _Atomic bool stopping;
  alignas(CACHE_LINE) uint64_t issued;  // chunks of all batches
  uint32_t worker_count;
  uint64_t spin_ns;
  uint32_t fork_generation;  // of the process that owns the threads
  worker_t* workers;         // worker_count; the first is the caller
};

// A forked child has none of its parent's threads. It must neither wait for them nor join them.
static _Atomic uint32_t fork_generation;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void on_fork(void) {
  atomic_fetch_add(&fork_generation, 1);
}

static void watch_forks(void) {
  pthread_atfork(NULL, NULL, on_fork);
}

// Claims and runs chunks until none are left, then reports them together: while they are not
// reported run() does not start another batch, so they all belong to one.
static void work(eyas_hal_pool_t* pool, worker_t* worker) {
  uint64_t done = 0;
  for (int64_t before = INT64_MAX;; ++done) {
    // Near the end look before taking: all come at once then, and reads of a cache line happen side
    // by side where claims queue up.
    if (before <= pool->worker_count &&
        atomic_load_explicit(&pool->remaining, memory_order_relaxed) <= 0) {
      break;
    }
    before = atomic_fetch_sub_explicit(&pool->remaining, 1, memory_order_acquire);
    if (before <= 0) break;
    pool->function(pool->context, worker->index, pool->chunk_count - (uint32_t)before);
  }
  if (done == 0) return;
  uint64_t total = atomic_load_explicit(&worker->done, memory_order_relaxed) + done;
  atomic_store(&worker->done, total);
  // run() sets `caller_sleeps` and then reads `done`; we do the reverse, so one sees the other.
  if (worker->index != 0 && atomic_load(&pool->caller_sleeps)) {
    atomic_fetch_add(&pool->caller_word, 1);
    eyas_futex_wake(&pool->caller_word, 1);
  }
}

static bool finished(const eyas_hal_pool_t* pool) {
  uint64_t done = 0;
  for (uint32_t i = 0; i < pool->worker_count; ++i) done += atomic_load(&pool->workers[i].done);
  return done == pool->issued;
}

// Spins until `ready` holds or the time is over; looks at the clock only now and then.
#define SPIN_UNTIL(ready, spin_ns)                                 \
  do {                                                             \
    uint64_t give_up_ns = 0;                                       \
    for (uint32_t round = 1; (spin_ns) > 0 && !(ready); ++round) { \
      eyas_cpu_pause();                                            \
      if (round % 64) continue;                                    \
      uint64_t now_ns = eyas_clock_now_ns();                       \
      if (give_up_ns == 0) give_up_ns = now_ns + (spin_ns);        \
      if (now_ns >= give_up_ns) break;                             \
    }                                                              \
  } while (0)

static void sleep_until_moved(eyas_hal_pool_t* pool, uint32_t seen) {
  // Announce the sleep, then look again: run() moves `epoch` and then reads `sleepers`, so one of
  // the two sides sees the other (all four are sequentially consistent).
  atomic_fetch_add(&pool->sleepers, 1);
  if (atomic_load(&pool->epoch) == seen) eyas_futex_wait(&pool->epoch, seen);
  atomic_fetch_sub(&pool->sleepers, 1);
}

static void* worker_main(void* argument) {
  worker_t* worker = argument;
  eyas_hal_pool_t* pool = worker->pool;
  uint32_t seen = 0;
  while (!atomic_load(&pool->stopping)) {
    SPIN_UNTIL(atomic_load_explicit(&pool->epoch, memory_order_relaxed) != seen, pool->spin_ns);
    uint32_t epoch = atomic_load(&pool->epoch);
    if (epoch == seen) {
      sleep_until_moved(pool, seen);
    } else {
      seen = epoch;
      work(pool, worker);
    }
  }
  return NULL;
}

static void wake_helpers(eyas_hal_pool_t* pool, uint32_t wanted) {
  uint32_t sleepers = atomic_load(&pool->sleepers);
  if (sleepers == 0) return;
  uint32_t threads = pool->worker_count - 1;
  uint32_t awake = threads > sleepers ? threads - sleepers : 0;
  if (wanted > awake) eyas_futex_wake(&pool->epoch, wanted - awake);
}

void eyas_hal_pool_run(eyas_hal_pool_t* pool, eyas_hal_pool_fn_t function, void* context,
                       uint32_t chunk_count) {
  if (chunk_count <= 1 || pool->worker_count == 1 ||
      pool->fork_generation != atomic_load_explicit(&fork_generation, memory_order_relaxed)) {
    for (uint32_t chunk = 0; chunk < chunk_count; ++chunk) function(context, 0, chunk);
    return;
  }
  pool->function = function;
  pool->context = context;
  pool->chunk_count = chunk_count;
  pool->issued += chunk_count;
  atomic_store_explicit(&pool->remaining, chunk_count, memory_order_release);
  atomic_fetch_add(&pool->epoch, 1);
  wake_helpers(pool, chunk_count - 1);
  work(pool, &pool->workers[0]);

  SPIN_UNTIL(finished(pool), pool->spin_ns);
  while (!finished(pool)) {
    uint32_t seen = atomic_load(&pool->caller_word);
    atomic_store(&pool->caller_sleeps, 1);
    if (!finished(pool)) eyas_futex_wait(&pool->caller_word, seen);
    atomic_store(&pool->caller_sleeps, 0);
  }
}

static eyas_status_t start_worker(worker_t* worker) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  // Signals belong to the application's threads: workers inherit a mask that blocks all but those
  // that their own faults raise, for which the application may have a handler.
  sigset_t mask, before;
  sigfillset(&mask);
  static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGPROF};
  for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); ++i) sigdelset(&mask, own[i]);
  pthread_sigmask(SIG_SETMASK, &mask, &before);
  int error = pthread_create(&worker->thread, &attributes, worker_main, worker);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  if (error) {
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "cannot start worker thread %u: %s",
                            worker->index, strerror(error));
  }
#if defined(__linux__)
  char name[16];
  snprintf(name, sizeof(name), "eyas-%u", worker->index);
  pthread_setname_np(worker->thread, name);
#endif
  return NULL;
}

eyas_status_t eyas_hal_pool_create(uint32_t worker_count, uint32_t spin_us,
                                   eyas_hal_pool_t** out_pool) {
  *out_pool = NULL;
  eyas_hal_pool_t* pool = aligned_alloc(CACHE_LINE, sizeof(*pool));
  worker_t* workers = aligned_alloc(CACHE_LINE, worker_count * sizeof(*workers));
  if (!pool || !workers) {
    free(pool);
    free(workers);
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory for workers");
  }
  pthread_once(&fork_once, watch_forks);
  memset(pool, 0, sizeof(*pool));
  memset(workers, 0, worker_count * sizeof(*workers));
  pool->workers = workers;
  pool->spin_ns = (uint64_t)spin_us * 1000;
  pool->fork_generation = atomic_load(&fork_generation);
  pool->worker_count = worker_count;
  for (uint32_t index = 0; index < worker_count; ++index) {
    workers[index].pool = pool;
    workers[index].index = index;
  }
  for (uint32_t index = 1; index < worker_count; ++index) {
    eyas_status_t status = start_worker(&workers[index]);
    if (status) {
      pool->worker_count = index;  // join the ones that run
      eyas_hal_pool_destroy(pool);
      return status;
    }
  }
  *out_pool = pool;
  return NULL;
}

void eyas_hal_pool_destroy(eyas_hal_pool_t* pool) {
  if (!pool) return;
  if (pool->fork_generation == atomic_load(&fork_generation)) {
    atomic_store(&pool->stopping, true);
    atomic_fetch_add(&pool->epoch, 1);
    eyas_futex_wake(&pool->epoch, UINT32_MAX);
    for (uint32_t i = 1; i < pool->worker_count; ++i) pthread_join(pool->workers[i].thread, NULL);
  }
  free(pool->workers);
  free(pool);
}

uint32_t eyas_hal_pool_worker_count(const eyas_hal_pool_t* pool) {
  return pool->worker_count;
}
