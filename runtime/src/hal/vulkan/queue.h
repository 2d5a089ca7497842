// The parts of the queue: submissions (submission.c), and who moves them on (queue.c).
#ifndef EYAS_HAL_VULKAN_QUEUE_H_
#define EYAS_HAL_VULKAN_QUEUE_H_

#include "hal/vulkan/vulkan.h"

eyas_status_t eyas_hal_vulkan_submission_copy(const eyas_hal_submission_t* given,
                                              eyas_hal_vulkan_submission_t** out_submission);
// Whether it will bring the semaphore to `value`.
bool eyas_hal_vulkan_submission_signals(const eyas_hal_vulkan_submission_t* submission,
                                        const eyas_hal_semaphore_t* semaphore, uint64_t value);
// Lets go of what it holds, signals or fails its semaphores, and frees it.
void eyas_hal_vulkan_submission_finish(eyas_hal_vulkan_submission_t* submission);

#endif  // EYAS_HAL_VULKAN_QUEUE_H_
