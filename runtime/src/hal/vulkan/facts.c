#include "hal/vulkan/facts.h"

#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"

static bool has_extension(const VkExtensionProperties* extensions, uint32_t count,
                          const char* name) {
  for (uint32_t i = 0; i < count; ++i) {
    if (strcmp(extensions[i].extensionName, name) == 0) return true;
  }
  return false;
}

// A queue that computes, preferably one that does nothing else.
static eyas_status_t find_queue(eyas_hal_vulkan_system_t* system, VkPhysicalDevice physical,
                                eyas_hal_vulkan_facts_t* facts) {
  VkQueueFamilyProperties families[32];
  uint32_t count = 32;
  bool found = false;
  system->vk.GetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
  for (uint32_t pass = 0; pass < 2 && !found; ++pass) {
    for (uint32_t i = 0; i < count && !found; ++i) {
      if (!(families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)) continue;
      if (pass == 0 && (families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT)) continue;
      facts->queue_family = i;
      facts->timestamp_bits = families[i].timestampValidBits;
      found = true;
    }
  }
  if (found) return NULL;
  return eyas_status_make(EYAS_STATUS_INCOMPATIBLE, "device '%s' has no queue that computes",
                          facts->properties.deviceName);
}

static bool keeps_monotonic_time(eyas_hal_vulkan_system_t* system, VkPhysicalDevice physical) {
  uint32_t domains[8], count = 8;
  if (!system->vk.GetPhysicalDeviceCalibrateableTimeDomainsEXT) return false;
  if (system->vk.GetPhysicalDeviceCalibrateableTimeDomainsEXT(physical, &count, domains) < 0) {
    return false;
  }
  uint32_t seen = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (domains[i] <= VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT) seen |= 1u << domains[i];
  }
  return seen == (1u << VK_TIME_DOMAIN_DEVICE_EXT | 1u << VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT);
}

// Appends a struct to a chain of them; `next` is where the last one points to its successor.
static void chain(void*** next, VkStructureType* type, VkStructureType value, void** successor) {
  *type = value;
  **next = type;
  *next = successor;
}

// Leaves the features that the driver or compiled code may use: those that stay are asked for when
// the device is opened, and others may cost something.
static void keep_used(eyas_hal_vulkan_features_t* f) {
  const VkPhysicalDeviceFeatures base = f->base.features;
  // Checks of bounds are not among them: the compiler's kernels stay inside their buffers.
  f->base.features = (VkPhysicalDeviceFeatures){
      .shaderFloat64 = base.shaderFloat64,
      .shaderInt64 = base.shaderInt64,
      .shaderInt16 = base.shaderInt16,
  };
  memset(f->v11.unused, 0, sizeof(f->v11.unused));
  memset(f->v12.unused0, 0, sizeof(f->v12.unused0));
  memset(f->v12.unused1, 0, sizeof(f->v12.unused1));
  memset(f->v12.unused2, 0, sizeof(f->v12.unused2));
  memset(f->v12.unused3, 0, sizeof(f->v12.unused3));
  memset(f->v12.unused4, 0, sizeof(f->v12.unused4));
  memset(f->v12.unused5, 0, sizeof(f->v12.unused5));
  memset(f->v12.unused6, 0, sizeof(f->v12.unused6));
  memset(f->v13.unused0, 0, sizeof(f->v13.unused0));
  memset(f->v13.unused1, 0, sizeof(f->v13.unused1));
  memset(f->atomic_float.unused, 0, sizeof(f->atomic_float.unused));
  f->matrix.cooperativeMatrixRobustBufferAccess = 0;
  f->conditional.inheritedConditionalRendering = 0;
}

static void read_features(eyas_hal_vulkan_system_t* system, VkPhysicalDevice physical,
                          const VkExtensionProperties* extensions, uint32_t extension_count,
                          eyas_hal_vulkan_facts_t* facts) {
  eyas_hal_vulkan_features_t* f = &facts->features;
#define USE(name) facts->extensions[facts->extension_count++] = (name)
#define HAS(name) has_extension(extensions, extension_count, name)
#define CHAIN(field, type) chain(&next, &f->field.sType, VK_STRUCTURE_TYPE_##type, &f->field.pNext)
  f->base.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  void** next = &f->base.pNext;
  CHAIN(v11, PHYSICAL_DEVICE_VULKAN_1_1_FEATURES);
  CHAIN(v12, PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  if (facts->properties.apiVersion >= VK_API_VERSION_1_3) {
    CHAIN(v13, PHYSICAL_DEVICE_VULKAN_1_3_FEATURES);
  }
  if (HAS("VK_EXT_conditional_rendering")) {
    USE("VK_EXT_conditional_rendering");
    CHAIN(conditional, PHYSICAL_DEVICE_CONDITIONAL_RENDERING_FEATURES_EXT);
  }
  if (HAS("VK_EXT_shader_atomic_float")) {
    USE("VK_EXT_shader_atomic_float");
    CHAIN(atomic_float, PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT);
  }
  if (HAS("VK_KHR_cooperative_matrix")) {
    USE("VK_KHR_cooperative_matrix");
    CHAIN(matrix, PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR);
  }
  if (HAS("VK_KHR_shader_bfloat16")) {
    USE("VK_KHR_shader_bfloat16");
    CHAIN(bfloat16, PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR);
  }
  system->vk.GetPhysicalDeviceFeatures2(physical, &f->base);
  if (HAS("VK_EXT_calibrated_timestamps") && keeps_monotonic_time(system, physical)) {
    USE("VK_EXT_calibrated_timestamps");
    facts->calibrated = true;
  }
#undef CHAIN
#undef HAS
#undef USE
  keep_used(f);
  facts->conditional = f->conditional.conditionalRendering;
  facts->update_after_bind = f->v12.descriptorBindingStorageBufferUpdateAfterBind;
}

static void read_properties(eyas_hal_vulkan_system_t* system, VkPhysicalDevice physical,
                            const VkExtensionProperties* extensions, uint32_t extension_count,
                            eyas_hal_vulkan_facts_t* facts) {
  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nvidia = {0};
  VkPhysicalDeviceShaderCorePropertiesAMD amd = {0};
  VkPhysicalDeviceProperties2 properties = {.sType =
                                                VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  void** next = &properties.pNext;
#define CHAIN(struct, type) chain(&next, &(struct).sType, VK_STRUCTURE_TYPE_##type, &(struct).pNext)
#define HAS(name) has_extension(extensions, extension_count, name)
  CHAIN(facts->v11, PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES);
  CHAIN(facts->v12, PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES);
  if (facts->properties.apiVersion >= VK_API_VERSION_1_3) {
    CHAIN(facts->v13, PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES);
  }
  if (HAS("VK_NV_shader_sm_builtins")) {
    CHAIN(nvidia, PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV);
  }
  if (HAS("VK_AMD_shader_core_properties")) {
    CHAIN(amd, PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD);
  }
#undef HAS
#undef CHAIN
  system->vk.GetPhysicalDeviceProperties2(physical, &properties);
  facts->properties = properties.properties;
  facts->v11.pNext = facts->v12.pNext = facts->v13.pNext = NULL;
  facts->cores = nvidia.shaderSMCount;
  if (!facts->cores) {
    facts->cores =
        amd.shaderEngineCount * amd.shaderArraysPerEngineCount * amd.computeUnitsPerShaderArray;
  }
  if (facts->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU) facts->cores = eyas_cpu_count();
}

eyas_status_t eyas_hal_vulkan_facts(eyas_hal_vulkan_system_t* system, VkPhysicalDevice physical,
                                    eyas_hal_vulkan_facts_t* facts) {
  memset(facts, 0, sizeof(*facts));
  VkPhysicalDeviceProperties2 first = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  system->vk.GetPhysicalDeviceProperties2(physical, &first);
  facts->properties = first.properties;
  EYAS_RETURN_IF_ERROR(find_queue(system, physical, facts));
  uint32_t count = 0;
  system->vk.EnumerateDeviceExtensionProperties(physical, NULL, &count, NULL);
  VkExtensionProperties* extensions = calloc(count + 1, sizeof(*extensions));
  if (!extensions) return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory");
  system->vk.EnumerateDeviceExtensionProperties(physical, NULL, &count, extensions);
  read_features(system, physical, extensions, count, facts);
  read_properties(system, physical, extensions, count, facts);
  free(extensions);
  if (!facts->features.v12.timelineSemaphore) {
    return eyas_status_make(EYAS_STATUS_INCOMPATIBLE, "device '%s' has no timeline semaphores",
                            facts->properties.deviceName);
  }
  eyas_hal_vulkan_facts_name(system, physical, facts);
  return NULL;
}
