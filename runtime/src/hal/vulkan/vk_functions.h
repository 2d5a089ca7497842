// The functions of Vulkan that the driver calls, as tables of pointers: of the loader, of an
// instance, of a device. What is optional is NULL where it is missing.
#ifndef EYAS_HAL_VULKAN_VK_FUNCTIONS_H_
#define EYAS_HAL_VULKAN_VK_FUNCTIONS_H_

#include "hal/vulkan/vk_api.h"

typedef void (*PFN_vkVoidFunction)(void);

// X(result, name, (parameters)). `const void*` before an out-parameter: the allocator, always NULL.
#define EYAS_VK_GLOBAL_FUNCTIONS(X)                                                    \
  X(VkResult, CreateInstance, (const VkInstanceCreateInfo*, const void*, VkInstance*)) \
  X(VkResult, EnumerateInstanceVersion, (uint32_t*))                                   \
  X(VkResult, EnumerateInstanceLayerProperties, (uint32_t*, VkLayerProperties*))       \
  X(VkResult, EnumerateInstanceExtensionProperties,                                    \
    (const char*, uint32_t*, VkExtensionProperties*))

#define EYAS_VK_INSTANCE_FUNCTIONS(X)                                                              \
  X(void, DestroyInstance, (VkInstance, const void*))                                              \
  X(VkResult, EnumeratePhysicalDevices, (VkInstance, uint32_t*, VkPhysicalDevice*))                \
  X(void, GetPhysicalDeviceFeatures2, (VkPhysicalDevice, VkPhysicalDeviceFeatures2*))              \
  X(void, GetPhysicalDeviceProperties2, (VkPhysicalDevice, VkPhysicalDeviceProperties2*))          \
  X(void, GetPhysicalDeviceQueueFamilyProperties,                                                  \
    (VkPhysicalDevice, uint32_t*, VkQueueFamilyProperties*))                                       \
  X(void, GetPhysicalDeviceMemoryProperties,                                                       \
    (VkPhysicalDevice, VkPhysicalDeviceMemoryProperties*))                                         \
  X(VkResult, EnumerateDeviceExtensionProperties,                                                  \
    (VkPhysicalDevice, const char*, uint32_t*, VkExtensionProperties*))                            \
  X(VkResult, CreateDevice, (VkPhysicalDevice, const VkDeviceCreateInfo*, const void*, VkDevice*)) \
  X(PFN_vkVoidFunction, GetDeviceProcAddr, (VkDevice, const char*))

#define EYAS_VK_OPTIONAL_INSTANCE_FUNCTIONS(X)                           \
  X(VkResult, CreateDebugUtilsMessengerEXT,                              \
    (VkInstance, const VkDebugUtilsMessengerCreateInfoEXT*, const void*, \
     VkDebugUtilsMessengerEXT*))                                         \
  X(VkResult, GetPhysicalDeviceCalibrateableTimeDomainsEXT,              \
    (VkPhysicalDevice, uint32_t*, uint32_t*))                            \
  X(VkResult, GetPhysicalDeviceCooperativeMatrixPropertiesKHR,           \
    (VkPhysicalDevice, uint32_t*, VkCooperativeMatrixPropertiesKHR*))

#define EYAS_VK_DEVICE_FUNCTIONS(X)                                                            \
  X(void, DestroyDevice, (VkDevice, const void*))                                              \
  X(void, GetDeviceQueue, (VkDevice, uint32_t, uint32_t, VkQueue*))                            \
  X(VkResult, DeviceWaitIdle, (VkDevice))                                                      \
  X(VkResult, QueueSubmit, (VkQueue, uint32_t, const VkSubmitInfo*, void* fence))              \
  X(VkResult, AllocateMemory,                                                                  \
    (VkDevice, const VkMemoryAllocateInfo*, const void*, VkDeviceMemory*))                     \
  X(void, FreeMemory, (VkDevice, VkDeviceMemory, const void*))                                 \
  X(VkResult, MapMemory,                                                                       \
    (VkDevice, VkDeviceMemory, VkDeviceSize offset, VkDeviceSize size, VkFlags, void**))       \
  X(VkResult, FlushMappedMemoryRanges, (VkDevice, uint32_t, const VkMappedMemoryRange*))       \
  X(VkResult, InvalidateMappedMemoryRanges, (VkDevice, uint32_t, const VkMappedMemoryRange*))  \
  X(VkResult, CreateBuffer, (VkDevice, const VkBufferCreateInfo*, const void*, VkBuffer*))     \
  X(void, DestroyBuffer, (VkDevice, VkBuffer, const void*))                                    \
  X(void, GetBufferMemoryRequirements, (VkDevice, VkBuffer, VkMemoryRequirements*))            \
  X(VkResult, BindBufferMemory, (VkDevice, VkBuffer, VkDeviceMemory, VkDeviceSize))            \
  X(VkResult, CreateShaderModule,                                                              \
    (VkDevice, const VkShaderModuleCreateInfo*, const void*, VkShaderModule*))                 \
  X(void, DestroyShaderModule, (VkDevice, VkShaderModule, const void*))                        \
  X(VkResult, CreatePipelineCache,                                                             \
    (VkDevice, const VkPipelineCacheCreateInfo*, const void*, VkPipelineCache*))               \
  X(void, DestroyPipelineCache, (VkDevice, VkPipelineCache, const void*))                      \
  X(VkResult, GetPipelineCacheData, (VkDevice, VkPipelineCache, size_t*, void*))               \
  X(VkResult, CreateComputePipelines,                                                          \
    (VkDevice, VkPipelineCache, uint32_t, const VkComputePipelineCreateInfo*, const void*,     \
     VkPipeline*))                                                                             \
  X(void, DestroyPipeline, (VkDevice, VkPipeline, const void*))                                \
  X(VkResult, CreatePipelineLayout,                                                            \
    (VkDevice, const VkPipelineLayoutCreateInfo*, const void*, VkPipelineLayout*))             \
  X(void, DestroyPipelineLayout, (VkDevice, VkPipelineLayout, const void*))                    \
  X(VkResult, CreateDescriptorSetLayout,                                                       \
    (VkDevice, const VkDescriptorSetLayoutCreateInfo*, const void*, VkDescriptorSetLayout*))   \
  X(void, DestroyDescriptorSetLayout, (VkDevice, VkDescriptorSetLayout, const void*))          \
  X(VkResult, CreateDescriptorPool,                                                            \
    (VkDevice, const VkDescriptorPoolCreateInfo*, const void*, VkDescriptorPool*))             \
  X(void, DestroyDescriptorPool, (VkDevice, VkDescriptorPool, const void*))                    \
  X(VkResult, AllocateDescriptorSets,                                                          \
    (VkDevice, const VkDescriptorSetAllocateInfo*, VkDescriptorSet*))                          \
  X(void, UpdateDescriptorSets,                                                                \
    (VkDevice, uint32_t, const VkWriteDescriptorSet*, uint32_t, const void*))                  \
  X(VkResult, CreateCommandPool,                                                               \
    (VkDevice, const VkCommandPoolCreateInfo*, const void*, VkCommandPool*))                   \
  X(void, DestroyCommandPool, (VkDevice, VkCommandPool, const void*))                          \
  X(VkResult, ResetCommandPool, (VkDevice, VkCommandPool, VkFlags))                            \
  X(VkResult, AllocateCommandBuffers,                                                          \
    (VkDevice, const VkCommandBufferAllocateInfo*, VkCommandBuffer*))                          \
  X(VkResult, BeginCommandBuffer, (VkCommandBuffer, const VkCommandBufferBeginInfo*))          \
  X(VkResult, EndCommandBuffer, (VkCommandBuffer))                                             \
  X(void, CmdBindPipeline, (VkCommandBuffer, uint32_t point, VkPipeline))                      \
  X(void, CmdBindDescriptorSets,                                                               \
    (VkCommandBuffer, uint32_t point, VkPipelineLayout, uint32_t first, uint32_t count,        \
     const VkDescriptorSet*, uint32_t offset_count, const uint32_t* offsets))                  \
  X(void, CmdPushConstants,                                                                    \
    (VkCommandBuffer, VkPipelineLayout, VkFlags stages, uint32_t offset, uint32_t size,        \
     const void*))                                                                             \
  X(void, CmdDispatch, (VkCommandBuffer, uint32_t x, uint32_t y, uint32_t z))                  \
  X(void, CmdCopyBuffer, (VkCommandBuffer, VkBuffer, VkBuffer, uint32_t, const VkBufferCopy*)) \
  X(void, CmdUpdateBuffer,                                                                     \
    (VkCommandBuffer, VkBuffer, VkDeviceSize offset, VkDeviceSize size, const void*))          \
  X(void, CmdFillBuffer,                                                                       \
    (VkCommandBuffer, VkBuffer, VkDeviceSize offset, VkDeviceSize size, uint32_t word))        \
  X(void, CmdPipelineBarrier,                                                                  \
    (VkCommandBuffer, VkFlags source, VkFlags target, VkFlags flags, uint32_t count,           \
     const VkMemoryBarrier*, uint32_t, const void*, uint32_t, const void*))                    \
  X(VkResult, CreateQueryPool,                                                                 \
    (VkDevice, const VkQueryPoolCreateInfo*, const void*, VkQueryPool*))                       \
  X(void, DestroyQueryPool, (VkDevice, VkQueryPool, const void*))                              \
  X(void, CmdResetQueryPool, (VkCommandBuffer, VkQueryPool, uint32_t first, uint32_t count))   \
  X(void, CmdWriteTimestamp, (VkCommandBuffer, uint32_t stage, VkQueryPool, uint32_t query))   \
  X(VkResult, GetQueryPoolResults,                                                             \
    (VkDevice, VkQueryPool, uint32_t first, uint32_t count, size_t bytes, void*,               \
     VkDeviceSize stride, VkFlags))                                                            \
  X(VkResult, CreateSemaphore,                                                                 \
    (VkDevice, const VkSemaphoreCreateInfo*, const void*, VkSemaphore*))                       \
  X(void, DestroySemaphore, (VkDevice, VkSemaphore, const void*))                              \
  X(VkResult, GetSemaphoreCounterValue, (VkDevice, VkSemaphore, uint64_t*))                    \
  X(VkResult, WaitSemaphores, (VkDevice, const VkSemaphoreWaitInfo*, uint64_t timeout_ns))

#define EYAS_VK_OPTIONAL_DEVICE_FUNCTIONS(X)                      \
  X(void, CmdBeginConditionalRenderingEXT,                        \
    (VkCommandBuffer, const VkConditionalRenderingBeginInfoEXT*)) \
  X(void, CmdEndConditionalRenderingEXT, (VkCommandBuffer))       \
  X(VkResult, GetCalibratedTimestampsEXT,                         \
    (VkDevice, uint32_t, const VkCalibratedTimestampInfoEXT*, uint64_t*, uint64_t*))

#define EYAS_VK_FIELD(result, name, parameters) result(*name) parameters;

typedef struct eyas_vk_instance_functions_t {
  EYAS_VK_INSTANCE_FUNCTIONS(EYAS_VK_FIELD)
  EYAS_VK_OPTIONAL_INSTANCE_FUNCTIONS(EYAS_VK_FIELD)
} eyas_vk_instance_functions_t;

typedef struct eyas_vk_device_functions_t {
  EYAS_VK_DEVICE_FUNCTIONS(EYAS_VK_FIELD)
  EYAS_VK_OPTIONAL_DEVICE_FUNCTIONS(EYAS_VK_FIELD)
} eyas_vk_device_functions_t;

#endif  // EYAS_HAL_VULKAN_VK_FUNCTIONS_H_
