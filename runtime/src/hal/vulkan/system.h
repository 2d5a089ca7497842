// The loader of Vulkan and its instances. "System" because an `instance` is something else here.
#ifndef EYAS_HAL_VULKAN_SYSTEM_H_
#define EYAS_HAL_VULKAN_SYSTEM_H_

#include <stdbool.h>
#include <sys/types.h>

#include "eyas/status.h"
#include "hal/vulkan/vk_functions.h"

typedef struct eyas_hal_vulkan_system_t {
  VkInstance handle;
  pid_t process;
  eyas_vk_instance_functions_t vk;
} eyas_hal_vulkan_system_t;

// The instance of this process, made when it is first asked for and kept; with the validation layer
// it is another one. UNAVAILABLE says what to install.
eyas_status_t eyas_hal_vulkan_system(bool validation, eyas_hal_vulkan_system_t** out_system);

// Devices with Vulkan 1.2, the best kind first (GPUs of their own, then those in a processor, then
// CPUs that play one), otherwise in the loader's order.
#define EYAS_HAL_VULKAN_MAX_DEVICES 16
eyas_status_t eyas_hal_vulkan_system_devices(
    eyas_hal_vulkan_system_t* system, uint32_t* out_count,
    VkPhysicalDevice out_devices[EYAS_HAL_VULKAN_MAX_DEVICES]);

// Devices that their own threads destroy, after the last reference was dropped there: the process
// does not end while one is about it, because the loader takes its state away then.
void eyas_hal_vulkan_orphan_begins(void);
void eyas_hal_vulkan_orphan_ends(void);

// How many messages the validation layer has printed in this process.
uint32_t eyas_hal_vulkan_validation_messages(void);

// What a call of Vulkan returned as a status; NULL for success. `what` says what was tried.
eyas_status_t eyas_hal_vulkan_status(VkResult result, const char* what);

#endif  // EYAS_HAL_VULKAN_SYSTEM_H_
