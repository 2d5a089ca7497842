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

// Written by one worker, read by the lane's caller.
typedef struct done_t {
  alignas(CACHE_LINE) _Atomic uint64_t count;  // chunks it has run since the lane began
} done_t;

// How a batch runs, and why a late worker does no harm. run() writes the batch, stores the number
// of chunks in `remaining` and moves the pool's `epoch` on. A worker that takes 1 from `remaining`
// and finds it was positive owns a chunk, and as run() waits for every chunk, the batch cannot
// change while one is owned. A worker that finds nothing left touches nothing of the batch.
//
// What is written by different threads lies in different cache lines: workers poll `epoch` without
// disturbing the claims, and report in lines of their own, which run() adds up.
struct eyas_hal_pool_lane_t {
  alignas(CACHE_LINE) pthread_mutex_t taken;  // from enter to leave
  eyas_hal_pool_t* pool;
  eyas_hal_pool_worker_t caller;
  uint64_t issued;       // chunks of all batches
  uint32_t chunk_count;  // the batch
  eyas_hal_pool_fn_t function;
  void* context;
  alignas(CACHE_LINE) _Atomic int64_t remaining;       // chunks not yet claimed; below 0 is none
  alignas(CACHE_LINE) _Atomic uint32_t caller_sleeps;  // run() wants to be woken
  _Atomic uint32_t caller_word;                        // what it sleeps on
  done_t done[];                                       // by worker
};

typedef struct thread_t {
  alignas(CACHE_LINE) eyas_hal_pool_worker_t worker;
  eyas_hal_pool_t* pool;
  pthread_t thread;
  uint32_t first_lane;  // where it looks first, another each time: nobody's lane comes last always
} thread_t;

struct eyas_hal_pool_t {
  alignas(CACHE_LINE) _Atomic uint32_t epoch;  // batches so far; idle workers wait for it to move
  alignas(CACHE_LINE) _Atomic uint32_t sleepers;  // workers asleep, or about to be
  _Atomic bool stopping;
  alignas(CACHE_LINE) _Atomic uint32_t lane_count;  // grows when all are taken
  eyas_hal_pool_lane_t* lanes[EYAS_HAL_POOL_LANES];
  pthread_mutex_t growing;
  _Atomic uint32_t next_wait;  // which lane the next caller waits for when all are taken
  uint32_t worker_count;
  uint64_t spin_ns;
  uint64_t scratch_bytes;
  uint32_t fork_generation;  // of the process that owns the threads
  uint32_t thread_count;     // that were started: worker_count - 1
  thread_t* threads;         // the first is worker 1
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
static void work(eyas_hal_pool_lane_t* lane, eyas_hal_pool_worker_t* worker) {
  const uint32_t worker_count = lane->pool->worker_count;
  uint64_t done = 0;
  for (int64_t before = INT64_MAX;; ++done) {
    // Near the end look before taking: all come at once then, and reads of a cache line happen side
    // by side where claims queue up.
    if (before <= worker_count &&
        atomic_load_explicit(&lane->remaining, memory_order_relaxed) <= 0) {
      break;
    }
    before = atomic_fetch_sub_explicit(&lane->remaining, 1, memory_order_acquire);
    if (before <= 0) break;
    lane->function(lane->context, worker, lane->chunk_count - (uint32_t)before);
  }
  if (done == 0) return;
  _Atomic uint64_t* count = &lane->done[worker->index].count;
  atomic_store(count, atomic_load_explicit(count, memory_order_relaxed) + done);
  // run() sets `caller_sleeps` and then reads `done`; we do the reverse, so one sees the other.
  if (worker->index != 0 && atomic_load(&lane->caller_sleeps)) {
    atomic_fetch_add(&lane->caller_word, 1);
    eyas_futex_wake(&lane->caller_word, 1);
  }
}

static bool finished(const eyas_hal_pool_lane_t* lane) {
  uint64_t done = 0;
  for (uint32_t i = 0; i < lane->pool->worker_count; ++i) done += atomic_load(&lane->done[i].count);
  return done == lane->issued;
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

static void help_lanes(eyas_hal_pool_t* pool, thread_t* thread) {
  uint32_t count = atomic_load_explicit(&pool->lane_count, memory_order_acquire);
  uint32_t first = count > 1 ? thread->first_lane++ : 0;
  for (uint32_t i = 0; i < count; ++i) {
    eyas_hal_pool_lane_t* lane = pool->lanes[(first + i) % count];
    if (atomic_load_explicit(&lane->remaining, memory_order_relaxed) > 0) {
      work(lane, &thread->worker);
    }
  }
}

static void* thread_main(void* argument) {
  thread_t* thread = argument;
  eyas_hal_pool_t* pool = thread->pool;
  uint32_t seen = 0;
  while (!atomic_load(&pool->stopping)) {
    SPIN_UNTIL(atomic_load_explicit(&pool->epoch, memory_order_relaxed) != seen, pool->spin_ns);
    uint32_t epoch = atomic_load(&pool->epoch);
    if (epoch == seen) {
      sleep_until_moved(pool, seen);
    } else {
      seen = epoch;  // before looking: a batch that comes meanwhile moves it on
      help_lanes(pool, thread);
    }
  }
  return NULL;
}

static void wake_helpers(eyas_hal_pool_t* pool, uint32_t wanted) {
  uint32_t sleepers = atomic_load(&pool->sleepers);
  if (sleepers == 0) return;
  uint32_t threads = pool->worker_count - 1;
  uint32_t awake = threads > sleepers ? threads - sleepers : 0;
  // With several callers those that are awake may be at work for others.
  if (atomic_load_explicit(&pool->lane_count, memory_order_relaxed) > 1) awake = 0;
  if (wanted > awake) eyas_futex_wake(&pool->epoch, wanted - awake);
}

void eyas_hal_pool_run(eyas_hal_pool_lane_t* lane, eyas_hal_pool_fn_t function, void* context,
                       uint32_t chunk_count) {
  eyas_hal_pool_t* pool = lane->pool;
  if (chunk_count <= 1 || pool->worker_count == 1 ||
      pool->fork_generation != atomic_load_explicit(&fork_generation, memory_order_relaxed)) {
    for (uint32_t chunk = 0; chunk < chunk_count; ++chunk) function(context, &lane->caller, chunk);
    return;
  }
  lane->function = function;
  lane->context = context;
  lane->chunk_count = chunk_count;
  lane->issued += chunk_count;
  atomic_store_explicit(&lane->remaining, chunk_count, memory_order_release);
  atomic_fetch_add(&pool->epoch, 1);
  wake_helpers(pool, chunk_count - 1);
  work(lane, &lane->caller);

  SPIN_UNTIL(finished(lane), pool->spin_ns);
  while (!finished(lane)) {
    uint32_t seen = atomic_load(&lane->caller_word);
    atomic_store(&lane->caller_sleeps, 1);
    if (!finished(lane)) eyas_futex_wait(&lane->caller_word, seen);
    atomic_store(&lane->caller_sleeps, 0);
  }
}

eyas_hal_pool_worker_t* eyas_hal_pool_caller(eyas_hal_pool_lane_t* lane) {
  return &lane->caller;
}

static void free_lane(eyas_hal_pool_lane_t* lane) {
  if (!lane) return;
  free(lane->caller.scratch);
  free(lane);
}

// Adds a lane, which the caller is in already; NULL where there can be no more.
static eyas_hal_pool_lane_t* add_lane(eyas_hal_pool_t* pool) {
  size_t bytes = sizeof(eyas_hal_pool_lane_t) + pool->worker_count * sizeof(done_t);
  eyas_hal_pool_lane_t* lane = aligned_alloc(CACHE_LINE, bytes);
  if (!lane) return NULL;
  memset(lane, 0, bytes);
  lane->pool = pool;
  lane->caller.scratch = aligned_alloc(64, (size_t)pool->scratch_bytes);
  bool added = false;
  if (lane->caller.scratch) {
    pthread_mutex_init(&lane->taken, NULL);
    pthread_mutex_lock(&lane->taken);
    pthread_mutex_lock(&pool->growing);
    uint32_t count = atomic_load_explicit(&pool->lane_count, memory_order_relaxed);
    added = count < EYAS_HAL_POOL_LANES;
    if (added) {
      pool->lanes[count] = lane;
      atomic_store_explicit(&pool->lane_count, count + 1, memory_order_release);
    }
    pthread_mutex_unlock(&pool->growing);
    if (!added) {
      pthread_mutex_unlock(&lane->taken);
      pthread_mutex_destroy(&lane->taken);
    }
  }
  if (added) return lane;
  free_lane(lane);
  return NULL;
}

eyas_hal_pool_lane_t* eyas_hal_pool_enter(eyas_hal_pool_t* pool) {
  uint32_t count = atomic_load_explicit(&pool->lane_count, memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) {
    if (pthread_mutex_trylock(&pool->lanes[i]->taken) == 0) return pool->lanes[i];
  }
  eyas_hal_pool_lane_t* lane = count < EYAS_HAL_POOL_LANES ? add_lane(pool) : NULL;
  if (lane) return lane;
  // Waiting callers spread over the lanes, so that each of these is given on in turn.
  lane = pool->lanes[atomic_fetch_add(&pool->next_wait, 1) % count];
  pthread_mutex_lock(&lane->taken);
  return lane;
}

void eyas_hal_pool_leave(eyas_hal_pool_lane_t* lane) {
  pthread_mutex_unlock(&lane->taken);
}

void eyas_hal_pool_wait_idle(eyas_hal_pool_t* pool) {
  uint32_t count = atomic_load_explicit(&pool->lane_count, memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) {
    pthread_mutex_lock(&pool->lanes[i]->taken);
    pthread_mutex_unlock(&pool->lanes[i]->taken);
  }
}

static eyas_status_t start_thread(thread_t* thread) {
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
  int error = pthread_create(&thread->thread, &attributes, thread_main, thread);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  if (error) {
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "cannot start worker thread %u: %s",
                            thread->worker.index, strerror(error));
  }
#if defined(__linux__)
  char name[16];
  snprintf(name, sizeof(name), "eyas-%u", thread->worker.index);
  pthread_setname_np(thread->thread, name);
#endif
  return NULL;
}

static eyas_status_t start_threads(eyas_hal_pool_t* pool, uint32_t count) {
  if (count == 0) return NULL;
  pool->threads = aligned_alloc(CACHE_LINE, count * sizeof(*pool->threads));
  if (!pool->threads) {
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory for workers");
  }
  memset(pool->threads, 0, count * sizeof(*pool->threads));
  for (uint32_t i = 0; i < count; ++i) {
    thread_t* thread = &pool->threads[i];
    thread->pool = pool;
    thread->worker.index = i + 1;
    thread->first_lane = i;
    thread->worker.scratch = aligned_alloc(64, (size_t)pool->scratch_bytes);
    if (!thread->worker.scratch) {
      return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED,
                              "out of host memory for the scratch of worker %u: %llu bytes", i + 1,
                              (unsigned long long)pool->scratch_bytes);
    }
    eyas_status_t status = start_thread(thread);
    if (status) {
      free(thread->worker.scratch);
      return status;
    }
    pool->thread_count = i + 1;  // to be joined
  }
  return NULL;
}

eyas_status_t eyas_hal_pool_create(uint32_t worker_count, uint32_t spin_us, uint64_t scratch_bytes,
                                   eyas_hal_pool_t** out_pool) {
  *out_pool = NULL;
  eyas_hal_pool_t* pool = aligned_alloc(CACHE_LINE, sizeof(*pool));
  if (!pool)
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory for a pool");
  memset(pool, 0, sizeof(*pool));
  pthread_once(&fork_once, watch_forks);
  pthread_mutex_init(&pool->growing, NULL);
  pool->worker_count = worker_count;
  pool->spin_ns = (uint64_t)spin_us * 1000;
  pool->scratch_bytes = scratch_bytes;
  pool->fork_generation = atomic_load(&fork_generation);
  eyas_hal_pool_lane_t* lane = add_lane(pool);
  eyas_status_t status = NULL;
  if (lane) {
    eyas_hal_pool_leave(lane);
    status = start_threads(pool, worker_count - 1);
  } else {
    status = eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED,
                              "out of host memory for the scratch of a worker: %llu bytes",
                              (unsigned long long)scratch_bytes);
  }
  if (status) {
    eyas_hal_pool_destroy(pool);
    return status;
  }
  *out_pool = pool;
  return NULL;
}

void eyas_hal_pool_destroy(eyas_hal_pool_t* pool) {
  if (!pool) return;
  bool ours = pool->fork_generation == atomic_load(&fork_generation);
  if (ours) {
    atomic_store(&pool->stopping, true);
    atomic_fetch_add(&pool->epoch, 1);
    eyas_futex_wake(&pool->epoch, UINT32_MAX);
  }
  for (uint32_t i = 0; i < pool->thread_count; ++i) {
    if (ours) pthread_join(pool->threads[i].thread, NULL);
    free(pool->threads[i].worker.scratch);
  }
  free(pool->threads);
  for (uint32_t i = 0; i < pool->lane_count; ++i) {
    if (ours) pthread_mutex_destroy(&pool->lanes[i]->taken);  // a child may have a lost caller's
    free_lane(pool->lanes[i]);
  }
  pthread_mutex_destroy(&pool->growing);
  free(pool);
}

uint32_t eyas_hal_pool_worker_count(const eyas_hal_pool_t* pool) {
  return pool->worker_count;
}
