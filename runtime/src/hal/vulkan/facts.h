// What a device has: the numbers that the driver works with, and the same as names and values, by
// which compiled code says what it needs.
#ifndef EYAS_HAL_VULKAN_FACTS_H_
#define EYAS_HAL_VULKAN_FACTS_H_

#include "eyas/hal.h"
#include "hal/vulkan/system.h"

#define EYAS_HAL_VULKAN_MAX_PROPERTIES 96

// Features of the device as they are asked for and then enabled, one chain.
typedef struct eyas_hal_vulkan_features_t {
  VkPhysicalDeviceFeatures2 base;
  VkPhysicalDeviceVulkan11Features v11;
  VkPhysicalDeviceVulkan12Features v12;
  VkPhysicalDeviceVulkan13Features v13;
  VkPhysicalDeviceConditionalRenderingFeaturesEXT conditional;
  VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomic_float;
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix;
  VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16;
} eyas_hal_vulkan_features_t;

typedef struct eyas_hal_vulkan_property_t {
  char name[48];
  char value[128];
} eyas_hal_vulkan_property_t;

typedef struct eyas_hal_vulkan_facts_t {
  VkPhysicalDeviceProperties properties;  // name, versions, limits
  VkPhysicalDeviceVulkan11Properties v11;
  VkPhysicalDeviceVulkan12Properties v12;
  VkPhysicalDeviceVulkan13Properties v13;  // zeros before Vulkan 1.3
  eyas_hal_vulkan_features_t features;
  uint32_t queue_family;
  uint32_t timestamp_bits;
  uint32_t cores;             // that run workgroups at the same time; 0: not known
  bool conditional;           // dispatches can depend on the error word
  bool calibrated;            // timestamps have a relation to CLOCK_MONOTONIC
  bool update_after_bind;     // descriptors can change under recorded commands
  const char* extensions[8];  // to enable; static
  uint32_t extension_count;
  uint32_t property_count;
  eyas_hal_vulkan_property_t names[EYAS_HAL_VULKAN_MAX_PROPERTIES];
} eyas_hal_vulkan_facts_t;

// INCOMPATIBLE, with the reason, for a device that the driver cannot work with.
eyas_status_t eyas_hal_vulkan_facts(eyas_hal_vulkan_system_t* system, VkPhysicalDevice physical,
                                    eyas_hal_vulkan_facts_t* out_facts);

// Fills `names`. properties.c
void eyas_hal_vulkan_facts_name(eyas_hal_vulkan_system_t* system, VkPhysicalDevice physical,
                                eyas_hal_vulkan_facts_t* facts);

// Whether all features that code needs are there; see eyas_hal_device_check_code. properties.c
eyas_status_t eyas_hal_vulkan_check_features(const eyas_hal_vulkan_facts_t* facts,
                                             const char* const* features, uint32_t feature_count);

#endif  // EYAS_HAL_VULKAN_FACTS_H_
