// The device's thread: finishes work that nobody waits for, issues what waits for semaphores of
// other devices, and gives up a device that hangs.
#define _GNU_SOURCE 1
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "hal/vulkan/queue.h"

// How often it looks whether what submissions wait for has come: semaphores may be of any device.
#define POLL_NS 100000

// Gives up a device whose first submission has run for longer than it may.
static void check_hang(eyas_hal_vulkan_device_t* device) {
  eyas_hal_vulkan_queue_t* queue = &device->queue;
  const eyas_hal_vulkan_submission_t* first = queue->issued.first;
  if (!first || eyas_clock_now_ns() - queue->head_since_ns < device->timeout_ns) return;
  uint64_t value = 0;
  if (device->vk.GetSemaphoreCounterValue(device->handle, queue->timeline, &value) < 0 ||
      value >= first->value) {
    return;
  }
  const char* name = "none";
  if (first->commands && first->commands->commands.count > 0) {
    name = eyas_hal_command_name(&eyas_hal_commands(first->commands)[0]);
  }
  atomic_store(&device->abandoned, true);
  eyas_hal_vulkan_queue_fail(
      device,
      eyas_status_make(EYAS_STATUS_UNAVAILABLE,
                       "the device '%s' has not finished a submission (%zu commands, the first "
                       "is '%s') within %llu ms, and is given up: a kernel that never ends, or "
                       "timeout_ms of the device is too short for it",
                       device->facts.properties.deviceName,
                       first->commands ? first->commands->commands.count : 0, name,
                       (unsigned long long)(device->timeout_ns / 1000000)));
}

static void wait_for_work(eyas_hal_vulkan_queue_t* queue) {
  if (!queue->waiting.first) {
    pthread_cond_wait(&queue->changed, &queue->mutex);
    return;
  }
  const uint64_t until_ns = eyas_clock_now_ns() + POLL_NS;
  const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u),
                                 .tv_nsec = (long)(until_ns % 1000000000u)};
  pthread_cond_timedwait(&queue->changed, &queue->mutex, &until);
}

static void* work(void* argument) {
  eyas_hal_vulkan_device_t* device = argument;
  eyas_hal_vulkan_queue_t* queue = &device->queue;
  pthread_mutex_lock(&queue->mutex);
  while (!queue->orphaned && !(queue->stopping && eyas_hal_vulkan_queue_is_idle(queue))) {
    if (queue->issued.first) {
      const uint64_t value = queue->issued.first->value;
      const uint64_t timeout_ns = queue->waiting.first ? POLL_NS : EYAS_HAL_VULKAN_LOOK_NS;
      pthread_mutex_unlock(&queue->mutex);
      const VkResult result = eyas_hal_vulkan_queue_wait_value(device, value, 0, timeout_ns);
      pthread_mutex_lock(&queue->mutex);
      if (result == VK_TIMEOUT) check_hang(device);
    } else if (!queue->refused.first) {
      wait_for_work(queue);
    }
    pthread_mutex_unlock(&queue->mutex);
    eyas_hal_vulkan_queue_advance(device);
    pthread_mutex_lock(&queue->mutex);
  }
  const bool orphaned = queue->orphaned;
  pthread_mutex_unlock(&queue->mutex);
  if (orphaned) {
    pthread_detach(pthread_self());
    eyas_hal_vulkan_destroy(device);
    eyas_hal_vulkan_orphan_ends();
  }
  return NULL;
}

static eyas_status_t start_thread(eyas_hal_vulkan_device_t* device) {
  // Signals belong to the application's threads, but for those that faults of our own raise.
  sigset_t mask, before;
  sigfillset(&mask);
  static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGPROF};
  for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); ++i) sigdelset(&mask, own[i]);
  pthread_sigmask(SIG_SETMASK, &mask, &before);
  const int error = pthread_create(&device->queue.thread, NULL, work, device);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (!error) return NULL;
  return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "cannot start the thread of a queue: %s",
                          strerror(error));
}

eyas_status_t eyas_hal_vulkan_queue_create(eyas_hal_vulkan_device_t* device) {
  const VkSemaphoreTypeCreateInfo type = {
      .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
      .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
  };
  const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                      .pNext = &type};
  EYAS_RETURN_IF_ERROR(eyas_hal_vulkan_status(
      device->vk.CreateSemaphore(device->handle, &info, NULL, &device->queue.timeline),
      "vkCreateSemaphore"));
  return start_thread(device);
}

bool eyas_hal_vulkan_queue_stop(eyas_hal_vulkan_device_t* device) {
  eyas_hal_vulkan_queue_t* queue = &device->queue;
  if (eyas_hal_vulkan_is_foreign(device)) return true;
  const bool own = pthread_equal(pthread_self(), queue->thread);
  if (own) eyas_hal_vulkan_orphan_begins();
  pthread_mutex_lock(&queue->mutex);
  queue->stopping = true;
  queue->orphaned = own;
  pthread_cond_broadcast(&queue->changed);
  pthread_mutex_unlock(&queue->mutex);
  if (!own) pthread_join(queue->thread, NULL);
  return !own;
}

void eyas_hal_vulkan_queue_destroy(eyas_hal_vulkan_device_t* device) {
  eyas_hal_vulkan_queue_t* queue = &device->queue;
  const bool ours = eyas_hal_vulkan_is_ours(device);
  for (eyas_hal_vulkan_pool_t* pool = queue->pools; pool;) {
    eyas_hal_vulkan_pool_t* next = pool->next;
    if (ours) device->vk.DestroyCommandPool(device->handle, pool->pool, NULL);
    free(pool);
    pool = next;
  }
  if (ours && queue->timeline) device->vk.DestroySemaphore(device->handle, queue->timeline, NULL);
  eyas_status_free(queue->failure);
}
