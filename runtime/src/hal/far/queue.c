// The queue: submissions wait in a list until a thread of the device gets to them.
#define _GNU_SOURCE 1
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "hal/far/far.h"

// How often a thread that has nothing but blocked submissions looks whether what they wait for has
// come: the semaphores may be of any device.
#define POLL_NS 100000

static void free_submission(eyas_hal_far_submission_t* submission) {
  free(submission->table);
  free(submission->points);
  free(submission);
}

static eyas_status_t copy_submission(const eyas_hal_submission_t* given,
                                     eyas_hal_far_submission_t** out_submission) {
  eyas_hal_far_submission_t* copy = calloc(1, sizeof(*copy));
  const size_t points = (size_t)given->wait_count + given->signal_count;
  if (copy) {
    copy->table = calloc((size_t)given->table_count + 1, sizeof(*copy->table));
    copy->points = calloc(points + 1, sizeof(*copy->points));
  }
  if (!copy || !copy->table || !copy->points) {
    if (copy) free_submission(copy);
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory for a submission");
  }
  if (given->commands) copy->commands = eyas_hal_command_buffer_retain(given->commands);
  copy->table_count = given->table ? given->table_count : 0;
  for (uint32_t i = 0; i < copy->table_count; ++i) {
    copy->table[i] = given->table[i];
    if (copy->table[i].buffer) eyas_hal_buffer_retain(copy->table[i].buffer);
  }
  copy->wait_count = given->wait_count;
  copy->signal_count = given->signal_count;
  for (uint32_t i = 0; i < given->wait_count; ++i) copy->points[i] = given->waits[i];
  for (uint32_t i = 0; i < given->signal_count; ++i) {
    copy->points[given->wait_count + i] = given->signals[i];
  }
  for (size_t i = 0; i < points; ++i) eyas_hal_semaphore_retain(copy->points[i].semaphore);
  *out_submission = copy;
  return NULL;
}

// Whether all that it waits for has come, or will never: then `out_status` is the failure.
static bool is_ready(const eyas_hal_far_submission_t* submission, eyas_status_t* out_status) {
  for (uint32_t i = 0; i < submission->wait_count; ++i) {
    uint64_t value = 0;
    eyas_status_t status = eyas_hal_semaphore_query(submission->points[i].semaphore, &value);
    if (value >= submission->points[i].value) {
      eyas_status_free(status);
    } else {
      *out_status = status;
      return status != NULL;
    }
  }
  return true;
}

// Takes the first submission that is ready out of the list; NULL when there is none.
static eyas_hal_far_submission_t* take(eyas_hal_far_queue_t* queue, eyas_status_t* out_status) {
  eyas_hal_far_submission_t* before = NULL;
  for (eyas_hal_far_submission_t* s = queue->first; s; before = s, s = s->next) {
    if (!is_ready(s, out_status)) continue;
    *(before ? &before->next : &queue->first) = s->next;
    if (queue->last == s) queue->last = before;
    return s;
  }
  return NULL;
}

static eyas_status_t run(eyas_hal_far_device_t* device,
                         const eyas_hal_far_submission_t* submission) {
  if (!submission->commands) return NULL;
  eyas_hal_far_memory_open(&device->memory);
  eyas_status_t status = eyas_hal_far_commands_run(device, submission->commands, submission->table);
  eyas_hal_far_memory_close(&device->memory);
  return status;
}

// Lets go of everything before it signals: who waits for the signal finds the memory free.
static void finish(eyas_hal_far_submission_t* submission, eyas_status_t status) {
  eyas_hal_command_buffer_release(submission->commands);
  for (uint32_t i = 0; i < submission->table_count; ++i) {
    eyas_hal_buffer_release(submission->table[i].buffer);
  }
  for (uint32_t i = 0; i < submission->wait_count + submission->signal_count; ++i) {
    eyas_hal_semaphore_t* semaphore = submission->points[i].semaphore;
    if (i >= submission->wait_count) {
      eyas_status_t failure = eyas_status_clone(status);
      if (!failure) failure = eyas_hal_semaphore_signal(semaphore, submission->points[i].value);
      if (failure) semaphore->device->vtable->semaphore_fail(semaphore, failure);
      eyas_status_free(failure);
    }
    eyas_hal_semaphore_release(semaphore);
  }
  eyas_status_free(status);
  free_submission(submission);
}

static void wait_for_change(eyas_hal_far_queue_t* queue) {
  if (!queue->first) {
    pthread_cond_wait(&queue->changed, &queue->mutex);
    return;
  }
  uint64_t until_ns = eyas_clock_now_ns() + POLL_NS;
  struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u),
                           .tv_nsec = (long)(until_ns % 1000000000u)};
  pthread_cond_timedwait(&queue->changed, &queue->mutex, &until);
}

static void* work(void* argument) {
  eyas_hal_far_device_t* device = argument;
  eyas_hal_far_queue_t* queue = &device->queue;
  pthread_mutex_lock(&queue->mutex);
  while (!queue->orphaned && !(queue->stopping && !queue->first)) {
    eyas_status_t status = NULL;
    eyas_hal_far_submission_t* submission = take(queue, &status);
    if (!submission) {
      wait_for_change(queue);
      continue;
    }
    queue->working = true;
    pthread_mutex_unlock(&queue->mutex);
    if (device->delay_us) usleep((useconds_t)device->delay_us);
    if (!status) status = run(device, submission);
    finish(submission, status);
    pthread_mutex_lock(&queue->mutex);
    queue->working = false;
    pthread_cond_broadcast(&queue->idle);
  }
  const bool orphaned = queue->orphaned;
  pthread_mutex_unlock(&queue->mutex);
  if (orphaned) {
    pthread_detach(pthread_self());
    eyas_hal_far_destroy(device);
  }
  return NULL;
}

eyas_status_t eyas_hal_far_queue_create(eyas_hal_far_device_t* device) {
  eyas_hal_far_queue_t* queue = &device->queue;
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_mutex_init(&queue->mutex, NULL);
  pthread_cond_init(&queue->changed, &attributes);
  pthread_cond_init(&queue->idle, NULL);
  pthread_condattr_destroy(&attributes);
  // Signals belong to the application's threads, but for those that faults of our own raise.
  sigset_t mask, before;
  sigfillset(&mask);
  static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGPROF};
  for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); ++i) sigdelset(&mask, own[i]);
  pthread_sigmask(SIG_SETMASK, &mask, &before);
  int error = pthread_create(&queue->thread, NULL, work, device);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (!error) return NULL;
  return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "cannot start the thread of a queue: %s",
                          strerror(error));
}

bool eyas_hal_far_queue_destroy(eyas_hal_far_device_t* device) {
  eyas_hal_far_queue_t* queue = &device->queue;
  if (eyas_hal_far_is_foreign(device)) return true;
  const bool own = pthread_equal(pthread_self(), queue->thread);
  pthread_mutex_lock(&queue->mutex);
  queue->stopping = true;
  queue->orphaned = own;
  pthread_cond_broadcast(&queue->changed);
  pthread_mutex_unlock(&queue->mutex);
  if (!own) pthread_join(queue->thread, NULL);
  return !own;
}

static eyas_status_t foreign(void) {
  return eyas_status_make(EYAS_STATUS_FAILED_PRECONDITION,
                          "the device's queue is a thread of the process that this one was forked "
                          "from: create the device after the fork");
}

eyas_status_t eyas_hal_far_submit(eyas_hal_device_t* base, const eyas_hal_submission_t* given) {
  eyas_hal_far_device_t* device = eyas_hal_far_device(base);
  eyas_hal_far_queue_t* queue = &device->queue;
  eyas_hal_far_submission_t* submission = NULL;
  if (eyas_hal_far_is_foreign(device)) return foreign();
  EYAS_RETURN_IF_ERROR(copy_submission(given, &submission));
  pthread_mutex_lock(&queue->mutex);
  *(queue->last ? &queue->last->next : &queue->first) = submission;
  queue->last = submission;
  pthread_cond_signal(&queue->changed);
  pthread_mutex_unlock(&queue->mutex);
  return NULL;
}

eyas_status_t eyas_hal_far_wait_idle(eyas_hal_device_t* base) {
  eyas_hal_far_device_t* device = eyas_hal_far_device(base);
  eyas_hal_far_queue_t* queue = &device->queue;
  if (eyas_hal_far_is_foreign(device)) return foreign();
  pthread_mutex_lock(&queue->mutex);
  while (queue->first || queue->working) pthread_cond_wait(&queue->idle, &queue->mutex);
  pthread_mutex_unlock(&queue->mutex);
  return NULL;
}
