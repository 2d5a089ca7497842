// Submissions: what was handed over, and how it ends.
#include <stdlib.h>

#include "hal/vulkan/queue.h"

static void free_submission(eyas_hal_vulkan_submission_t* submission) {
  eyas_status_free(submission->status);
  free(submission->table);
  free(submission->points);
  free(submission);
}

eyas_status_t eyas_hal_vulkan_submission_copy(const eyas_hal_submission_t* given,
                                              eyas_hal_vulkan_submission_t** out_submission) {
  eyas_hal_vulkan_submission_t* copy = calloc(1, sizeof(*copy));
  const size_t points = (size_t)given->wait_count + given->signal_count;
  if (copy) {
    copy->table = calloc((size_t)given->table_count + 1, sizeof(*copy->table));
    copy->points = calloc(points + 1, sizeof(*copy->points));
  }
  if (!copy || !copy->table || !copy->points) {
    if (copy) free_submission(copy);
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory for a submission");
  }
  if (given->commands) {
    const eyas_hal_vulkan_recording_t* recording = given->commands->payload;
    copy->commands = eyas_hal_command_buffer_retain(given->commands);
    copy->may_fail = recording->reports;
  }
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

bool eyas_hal_vulkan_submission_signals(const eyas_hal_vulkan_submission_t* submission,
                                        const eyas_hal_semaphore_t* semaphore, uint64_t value) {
  const eyas_hal_timepoint_t* signals = submission->points + submission->wait_count;
  for (uint32_t i = 0; i < submission->signal_count; ++i) {
    if (signals[i].semaphore == semaphore && signals[i].value >= value) return true;
  }
  return false;
}

// Lets go of everything before it signals: who waits for the signal finds the memory free.
void eyas_hal_vulkan_submission_finish(eyas_hal_vulkan_submission_t* submission) {
  eyas_hal_command_buffer_release(submission->commands);
  for (uint32_t i = 0; i < submission->table_count; ++i) {
    eyas_hal_buffer_release(submission->table[i].buffer);
  }
  for (uint32_t i = 0; i < submission->wait_count + submission->signal_count; ++i) {
    eyas_hal_semaphore_t* semaphore = submission->points[i].semaphore;
    if (i >= submission->wait_count) {
      eyas_status_t failure = eyas_status_clone(submission->status);
      if (!failure) failure = eyas_hal_semaphore_signal(semaphore, submission->points[i].value);
      if (failure) semaphore->device->vtable->semaphore_fail(semaphore, failure);
      eyas_status_free(failure);
    }
    eyas_hal_semaphore_release(semaphore);
  }
  free_submission(submission);
}
