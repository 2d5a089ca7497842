// A timeline semaphore on a mutex and a condition variable.
#define _GNU_SOURCE 1
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/checked.h"
#include "base/clock.h"
#include "hal/cpu/cpu.h"

typedef struct cpu_semaphore_t {
  eyas_hal_semaphore_t base;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  uint64_t value;
  eyas_status_t failure;  // owned; once set it stays
} cpu_semaphore_t;

static cpu_semaphore_t* cpu(eyas_hal_semaphore_t* semaphore) {
  return (cpu_semaphore_t*)semaphore;
}

eyas_status_t eyas_hal_cpu_semaphore_create(eyas_hal_device_t* device, uint64_t initial_value,
                                            eyas_hal_semaphore_t** out_semaphore) {
  (void)device;
  cpu_semaphore_t* semaphore = calloc(1, sizeof(*semaphore));
  if (!semaphore) return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory");
  semaphore->value = initial_value;
  pthread_mutex_init(&semaphore->mutex, NULL);
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&semaphore->changed, &attributes);
  pthread_condattr_destroy(&attributes);
  *out_semaphore = &semaphore->base;
  return NULL;
}

void eyas_hal_cpu_semaphore_destroy(eyas_hal_semaphore_t* base) {
  cpu_semaphore_t* semaphore = cpu(base);
  pthread_cond_destroy(&semaphore->changed);
  pthread_mutex_destroy(&semaphore->mutex);
  eyas_status_free(semaphore->failure);
  free(semaphore);
}

static eyas_status_t failure_of(const cpu_semaphore_t* semaphore) {
  return eyas_status_clone(semaphore->failure);
}

eyas_status_t eyas_hal_cpu_semaphore_query(eyas_hal_semaphore_t* base, uint64_t* out_value) {
  cpu_semaphore_t* semaphore = cpu(base);
  pthread_mutex_lock(&semaphore->mutex);
  *out_value = semaphore->value;
  eyas_status_t status = failure_of(semaphore);
  pthread_mutex_unlock(&semaphore->mutex);
  return status;
}

eyas_status_t eyas_hal_cpu_semaphore_signal(eyas_hal_semaphore_t* base, uint64_t value) {
  cpu_semaphore_t* semaphore = cpu(base);
  pthread_mutex_lock(&semaphore->mutex);
  eyas_status_t status = failure_of(semaphore);
  if (!status && value <= semaphore->value) {
    status = eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT,
                              "signal of value %llu; the semaphore is at %llu and only grows",
                              (unsigned long long)value, (unsigned long long)semaphore->value);
  }
  if (!status) {
    semaphore->value = value;
    pthread_cond_broadcast(&semaphore->changed);
  }
  pthread_mutex_unlock(&semaphore->mutex);
  return status;
}

void eyas_hal_cpu_semaphore_fail(eyas_hal_semaphore_t* base, eyas_status_t status) {
  cpu_semaphore_t* semaphore = cpu(base);
  pthread_mutex_lock(&semaphore->mutex);
  if (!semaphore->failure) semaphore->failure = eyas_status_clone(status);
  pthread_cond_broadcast(&semaphore->changed);
  pthread_mutex_unlock(&semaphore->mutex);
}

eyas_status_t eyas_hal_cpu_semaphore_wait(eyas_hal_semaphore_t* base, uint64_t value,
                                          uint64_t timeout_ns) {
  cpu_semaphore_t* semaphore = cpu(base);
  uint64_t deadline_ns = 0;
  bool bounded = timeout_ns != EYAS_HAL_FOREVER &&
                 eyas_checked_add(eyas_clock_now_ns(), timeout_ns, &deadline_ns);
  struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / 1000000000u),
                              .tv_nsec = (long)(deadline_ns % 1000000000u)};
  int error = 0;
  pthread_mutex_lock(&semaphore->mutex);
  while (semaphore->value < value && !semaphore->failure && error == 0) {
    error = bounded ? pthread_cond_timedwait(&semaphore->changed, &semaphore->mutex, &deadline)
                    : pthread_cond_wait(&semaphore->changed, &semaphore->mutex);
  }
  eyas_status_t status = NULL;
  if (semaphore->value < value) {
    status = failure_of(semaphore);
    if (!status) {
      status = eyas_status_make(EYAS_STATUS_UNAVAILABLE,
                                "the semaphore is at %llu and did not reach %llu within %llu ns",
                                (unsigned long long)semaphore->value, (unsigned long long)value,
                                (unsigned long long)timeout_ns);
    }
  }
  pthread_mutex_unlock(&semaphore->mutex);
  return status;
}
