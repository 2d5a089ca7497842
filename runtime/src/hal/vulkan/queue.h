// The parts of the queue: submissions (submission.c), who moves them on (queue.c), and the thread
// that does when nobody else is there (worker.c).
#ifndef EYAS_HAL_VULKAN_QUEUE_H_
#define EYAS_HAL_VULKAN_QUEUE_H_

#include "hal/vulkan/vulkan.h"

// How long anybody waits without looking whether the device is given up.
#define EYAS_HAL_VULKAN_LOOK_NS 50000000

eyas_status_t eyas_hal_vulkan_submission_copy(const eyas_hal_submission_t* given,
                                              eyas_hal_vulkan_submission_t** out_submission);
// Whether it will bring the semaphore to `value`.
bool eyas_hal_vulkan_submission_signals(const eyas_hal_vulkan_submission_t* submission,
                                        const eyas_hal_semaphore_t* semaphore, uint64_t value);
// Lets go of what it holds, signals or fails its semaphores, and frees it.
void eyas_hal_vulkan_submission_finish(eyas_hal_vulkan_submission_t* submission);

// Finishes what is done, and issues what could not go on before.
void eyas_hal_vulkan_queue_advance(eyas_hal_vulkan_device_t* device);
// Waits until the device's timeline has a value; on a GPU without a pause for the first `poll_ns`.
VkResult eyas_hal_vulkan_queue_wait_value(eyas_hal_vulkan_device_t* device, uint64_t value,
                                          uint64_t poll_ns, uint64_t timeout_ns);
// With the mutex: whether there is nothing to do, and the end of everything under way.
bool eyas_hal_vulkan_queue_is_idle(const eyas_hal_vulkan_queue_t* queue);
void eyas_hal_vulkan_queue_fail(eyas_hal_vulkan_device_t* device, eyas_status_t status);

#endif  // EYAS_HAL_VULKAN_QUEUE_H_
