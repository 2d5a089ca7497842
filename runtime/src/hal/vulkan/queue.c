// The queue. A submission whose waits are reached is issued to the device by whoever sees this
// first: the thread that submits it, one that waits for something, or the device's own. The device
// runs what is issued in order, and counts it on a timeline; who sees the count finishes the work.
#define _GNU_SOURCE 1
#include "hal/vulkan/queue.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "hal/cpu/cpu.h"

// Between two looks at a GPU's timeline.
#define MIN_SLEEP_NS 10000
#define MAX_SLEEP_NS 500000

static void append(eyas_hal_vulkan_list_t* list, eyas_hal_vulkan_submission_t* submission) {
  submission->next = NULL;
  *(list->last ? &list->last->next : &list->first) = submission;
  list->last = submission;
}

static eyas_hal_vulkan_submission_t* take_first(eyas_hal_vulkan_list_t* list) {
  eyas_hal_vulkan_submission_t* first = list->first;
  if (!first) return NULL;
  list->first = first->next;
  if (!list->first) list->last = NULL;
  return first;
}

//===-- Issuing; with the mutex -----------------------------------------------------------------//

// Whether work that the device has and that cannot fail will bring a semaphore to a value: then
// the order of the queue is all the waiting that is needed.
static bool is_promised(const eyas_hal_vulkan_queue_t* queue, const eyas_hal_timepoint_t* point) {
  for (const eyas_hal_vulkan_submission_t* s = queue->issued.first; s; s = s->next) {
    if (s->may_fail) continue;
    if (eyas_hal_vulkan_submission_signals(s, point->semaphore, point->value)) return true;
  }
  return false;
}

// Whether all that it waits for has come, or will never: then `status` is the failure.
static bool is_ready(const eyas_hal_vulkan_queue_t* queue,
                     eyas_hal_vulkan_submission_t* submission) {
  for (uint32_t i = 0; i < submission->wait_count; ++i) {
    uint64_t value = 0;
    eyas_status_t status = eyas_hal_semaphore_query(submission->points[i].semaphore, &value);
    if (value >= submission->points[i].value) {
      eyas_status_free(status);
    } else if (status) {
      submission->status = status;
      return true;
    } else if (!is_promised(queue, &submission->points[i])) {
      return false;
    }
  }
  return true;
}

static eyas_status_t issue(eyas_hal_vulkan_device_t* device,
                           eyas_hal_vulkan_submission_t* submission) {
  eyas_hal_vulkan_queue_t* queue = &device->queue;
  eyas_hal_vulkan_instance_t* instance = submission->instance;
  if (instance) {
    EYAS_RETURN_IF_ERROR(
        eyas_hal_vulkan_instance_bind(device, submission->commands, instance, submission->table));
    if (submission->may_fail) {
      memset(eyas_hal_vulkan_range_host(instance->words), 0, sizeof(uint32_t));
      EYAS_RETURN_IF_ERROR(eyas_hal_vulkan_range_flush(device, instance->words));
    }
  }
  const uint64_t value = queue->last_value + 1;
  const VkTimelineSemaphoreSubmitInfo timeline = {
      .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
      .signalSemaphoreValueCount = 1,
      .pSignalSemaphoreValues = &value,
  };
  const VkSubmitInfo info = {
      .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
      .pNext = &timeline,
      .commandBufferCount = instance ? 1 : 0,
      .pCommandBuffers = instance ? &instance->pool->commands : NULL,
      .signalSemaphoreCount = 1,
      .pSignalSemaphores = &queue->timeline,
  };
  submission->issued_ns = eyas_clock_now_ns();
  EYAS_RETURN_IF_ERROR(eyas_hal_vulkan_status(
      device->vk.QueueSubmit(device->queue_handle, 1, &info, NULL), "vkQueueSubmit"));
  if (instance) {
    instance->busy = true;
    instance->last_used = value;
  }
  if (!queue->issued.first) queue->head_since_ns = submission->issued_ns;
  queue->last_value = submission->value = value;
  return NULL;
}

// Nothing goes on: what is under way and what waits has failed.
void eyas_hal_vulkan_queue_fail(eyas_hal_vulkan_device_t* device, eyas_status_t status) {
  eyas_hal_vulkan_queue_t* queue = &device->queue;
  eyas_hal_vulkan_list_t* lists[] = {&queue->issued, &queue->waiting};
  for (size_t i = 0; i < 2; ++i) {
    eyas_hal_vulkan_submission_t* submission = NULL;
    while ((submission = take_first(lists[i]))) {
      submission->status = eyas_status_clone(status);
      append(&queue->refused, submission);
    }
  }
  queue->failure = eyas_status_join(queue->failure, status);
}

// Issues all that can be, in order. What waits for semaphores is passed by others; what waits for
// an instance of its recording is not, because it could run already.
static void issue_ready(eyas_hal_vulkan_device_t* device) {
  eyas_hal_vulkan_queue_t* queue = &device->queue;
  eyas_hal_vulkan_submission_t *before = NULL, *next = NULL;
  for (eyas_hal_vulkan_submission_t* s = queue->waiting.first; s; s = next) {
    next = s->next;
    if (!is_ready(queue, s)) {
      before = s;
      continue;
    }
    if (!s->status && s->commands) {
      s->status = eyas_hal_vulkan_instance_acquire(device, s->commands, s->table, &s->instance);
      if (!s->status && !s->instance) return;
    }
    *(before ? &before->next : &queue->waiting.first) = next;
    if (queue->waiting.last == s) queue->waiting.last = before;
    if (!s->status) s->status = issue(device, s);
    append(s->status ? &queue->refused : &queue->issued, s);
  }
}

//===-- Finishing -------------------------------------------------------------------------------//

// What became of work that the device has done.
static eyas_status_t result_of(eyas_hal_vulkan_device_t* device,
                               const eyas_hal_vulkan_submission_t* submission) {
  const eyas_hal_vulkan_instance_t* instance = submission->instance;
  if (!instance) return NULL;
  if (submission->commands->profiling) {
    eyas_hal_vulkan_profile_collect(device, submission->commands, instance, submission->issued_ns);
  }
  if (!submission->may_fail) return NULL;
  EYAS_RETURN_IF_ERROR(
      eyas_hal_vulkan_range_invalidate(device, instance->words, 0, sizeof(uint32_t)));
  uint32_t word = 0;
  memcpy(&word, eyas_hal_vulkan_range_host(instance->words), sizeof(word));
  return word ? eyas_hal_error_status(submission->commands, word) : NULL;
}

// Takes what is done, and what was refused.
static eyas_hal_vulkan_list_t take_done(eyas_hal_vulkan_device_t* device) {
  eyas_hal_vulkan_queue_t* queue = &device->queue;
  eyas_hal_vulkan_list_t done = {NULL, NULL};
  uint64_t value = 0;
  if (queue->issued.first) {
    VkResult result = device->vk.GetSemaphoreCounterValue(device->handle, queue->timeline, &value);
    if (result < 0) {
      eyas_hal_vulkan_queue_fail(device, eyas_hal_vulkan_status(result, "waiting for the device"));
    } else if (value > queue->last_value) {  // what a lost device may count to
      eyas_hal_vulkan_queue_fail(
          device, eyas_hal_vulkan_status(VK_ERROR_DEVICE_LOST, "waiting for the device"));
    }
  }
  while (queue->issued.first && queue->issued.first->value <= value) {
    eyas_hal_vulkan_submission_t* submission = take_first(&queue->issued);
    submission->status = result_of(device, submission);
    if (submission->instance) submission->instance->busy = false;
    queue->head_since_ns = eyas_clock_now_ns();
    append(&done, submission);
    ++queue->unfinished;
  }
  eyas_hal_vulkan_submission_t* refused = NULL;
  while ((refused = take_first(&queue->refused))) {
    append(&done, refused);
    ++queue->unfinished;
  }
  return done;
}

bool eyas_hal_vulkan_queue_is_idle(const eyas_hal_vulkan_queue_t* queue) {
  return !queue->waiting.first && !queue->issued.first && !queue->refused.first &&
         !queue->unfinished;
}

// Finishes what is done, and issues what could not go on before.
void eyas_hal_vulkan_queue_advance(eyas_hal_vulkan_device_t* device) {
  eyas_hal_vulkan_queue_t* queue = &device->queue;
  pthread_mutex_lock(&queue->finishing);
  pthread_mutex_lock(&queue->mutex);
  for (;;) {
    eyas_hal_vulkan_list_t done = take_done(device);
    issue_ready(device);
    if (!done.first && !queue->refused.first) break;
    pthread_mutex_unlock(&queue->mutex);
    uint32_t count = 0;
    eyas_hal_vulkan_submission_t* submission = NULL;
    while ((submission = take_first(&done))) {
      eyas_hal_vulkan_submission_finish(submission);
      ++count;
    }
    pthread_mutex_lock(&queue->mutex);
    queue->unfinished -= count;
  }
  if (eyas_hal_vulkan_queue_is_idle(queue)) pthread_cond_broadcast(&queue->idle);
  pthread_mutex_unlock(&queue->mutex);
  pthread_mutex_unlock(&queue->finishing);
}

// Looks at the timeline again and again: NVIDIA's vkWaitSemaphores may return as late as 10 ms
// after the work. Sleeps grow with the time that has passed, so that they add a few percent to it.
static VkResult poll_value(eyas_hal_vulkan_device_t* device, uint64_t value, uint64_t poll_ns,
                           uint64_t timeout_ns) {
  const uint64_t start_ns = eyas_clock_now_ns();
  for (;;) {
    uint64_t seen = 0;
    const VkResult result =
        device->vk.GetSemaphoreCounterValue(device->handle, device->queue.timeline, &seen);
    if (result != VK_SUCCESS || seen >= value) return result;
    const uint64_t passed_ns = eyas_clock_now_ns() - start_ns;
    if (passed_ns >= timeout_ns) return VK_TIMEOUT;
    if (passed_ns < poll_ns) {
      eyas_cpu_pause();
      continue;
    }
    uint64_t sleep_ns = passed_ns / 32 + MIN_SLEEP_NS;
    if (sleep_ns > MAX_SLEEP_NS) sleep_ns = MAX_SLEEP_NS;
    if (sleep_ns > timeout_ns - passed_ns) sleep_ns = timeout_ns - passed_ns;
    nanosleep(&(struct timespec){.tv_nsec = (long)sleep_ns}, NULL);
  }
}

VkResult eyas_hal_vulkan_queue_wait_value(eyas_hal_vulkan_device_t* device, uint64_t value,
                                          uint64_t poll_ns, uint64_t timeout_ns) {
  if (device->is_polled) return poll_value(device, value, poll_ns, timeout_ns);
  const VkSemaphoreWaitInfo info = {
      .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
      .semaphoreCount = 1,
      .pSemaphores = &device->queue.timeline,
      .pValues = &value,
  };
  return device->vk.WaitSemaphores(device->handle, &info, timeout_ns);
}

//===-- What the HAL calls ----------------------------------------------------------------------//

eyas_status_t eyas_hal_vulkan_submit(eyas_hal_device_t* base, const eyas_hal_submission_t* given) {
  eyas_hal_vulkan_device_t* device = eyas_hal_vulkan_device(base);
  eyas_hal_vulkan_queue_t* queue = &device->queue;
  eyas_hal_vulkan_submission_t* submission = NULL;
  if (eyas_hal_vulkan_is_foreign(device)) return eyas_hal_vulkan_foreign();
  EYAS_RETURN_IF_ERROR(eyas_hal_vulkan_submission_copy(given, &submission));
  pthread_mutex_lock(&queue->mutex);
  eyas_status_t status = eyas_status_clone(queue->failure);
  if (status) {
    submission->status = eyas_status_clone(status);
    append(&queue->refused, submission);
  } else {
    append(&queue->waiting, submission);
    issue_ready(device);
  }
  pthread_cond_signal(&queue->changed);
  pthread_mutex_unlock(&queue->mutex);
  return status;
}

eyas_status_t eyas_hal_vulkan_wait_idle(eyas_hal_device_t* base) {
  eyas_hal_vulkan_device_t* device = eyas_hal_vulkan_device(base);
  eyas_hal_vulkan_queue_t* queue = &device->queue;
  if (eyas_hal_vulkan_is_foreign(device)) return eyas_hal_vulkan_foreign();
  pthread_mutex_lock(&queue->mutex);
  while (!eyas_hal_vulkan_queue_is_idle(queue)) pthread_cond_wait(&queue->idle, &queue->mutex);
  eyas_status_t status = eyas_status_clone(queue->failure);
  pthread_mutex_unlock(&queue->mutex);
  return status;
}

// The value of the timeline after which a semaphore is signalled; 0: not by what is issued.
static uint64_t promise_of(eyas_hal_vulkan_queue_t* queue, const eyas_hal_semaphore_t* semaphore,
                           uint64_t value) {
  uint64_t promised = 0;
  pthread_mutex_lock(&queue->mutex);
  for (const eyas_hal_vulkan_submission_t* s = queue->issued.first; s && !promised; s = s->next) {
    if (eyas_hal_vulkan_submission_signals(s, semaphore, value)) promised = s->value;
  }
  pthread_mutex_unlock(&queue->mutex);
  return promised;
}

eyas_status_t eyas_hal_vulkan_semaphore_wait(eyas_hal_semaphore_t* semaphore, uint64_t value,
                                             uint64_t timeout_ns) {
  eyas_hal_vulkan_device_t* device = eyas_hal_vulkan_device(semaphore->device);
  const uint64_t start_ns = eyas_clock_now_ns();
  uint64_t promised = 0, passed_ns = 0;
  // Who waits for the device itself need not be woken by its thread.
  while (!eyas_hal_vulkan_is_foreign(device) && passed_ns < timeout_ns &&
         (promised = promise_of(&device->queue, semaphore, value))) {
    const uint64_t left_ns = timeout_ns - passed_ns;
    const VkResult result = eyas_hal_vulkan_queue_wait_value(
        device, promised, passed_ns == 0 ? device->poll_ns : 0,
        left_ns < EYAS_HAL_VULKAN_LOOK_NS ? left_ns : EYAS_HAL_VULKAN_LOOK_NS);
    if (result != VK_TIMEOUT) eyas_hal_vulkan_queue_advance(device);
    passed_ns = eyas_clock_now_ns() - start_ns;
  }
  uint64_t left_ns = passed_ns < timeout_ns ? timeout_ns - passed_ns : 0;
  if (timeout_ns == EYAS_HAL_FOREVER) left_ns = EYAS_HAL_FOREVER;
  return eyas_hal_cpu_semaphore_wait(semaphore, value, left_ns);
}
