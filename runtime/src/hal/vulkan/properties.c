// A device's facts as names and values, and the features of code compared with them.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/vulkan/facts.h"

__attribute__((format(printf, 3, 4))) static void add(eyas_hal_vulkan_facts_t* facts,
                                                      const char* name, const char* format, ...) {
  if (facts->property_count == EYAS_HAL_VULKAN_MAX_PROPERTIES) return;
  eyas_hal_vulkan_property_t* property = &facts->names[facts->property_count++];
  va_list arguments;
  va_start(arguments, format);
  snprintf(property->name, sizeof(property->name), "%s", name);
  vsnprintf(property->value, sizeof(property->value), format, arguments);
  va_end(arguments);
}

static void add_flag(eyas_hal_vulkan_facts_t* facts, const char* name, bool has) {
  if (has) add(facts, name, "yes");
}

static void name_types(eyas_hal_vulkan_facts_t* facts) {
  const eyas_hal_vulkan_features_t* f = &facts->features;
  add_flag(facts, "f16", f->v12.shaderFloat16);
  add_flag(facts, "f64", f->base.features.shaderFloat64);
  add_flag(facts, "i8", f->v12.shaderInt8);
  add_flag(facts, "i16", f->base.features.shaderInt16);
  add_flag(facts, "i64", f->base.features.shaderInt64);
  add_flag(facts, "storage8", f->v12.storageBuffer8BitAccess);
  add_flag(facts, "storage16", f->v11.storageBuffer16BitAccess);
  add_flag(facts, "bf16", f->bfloat16.shaderBFloat16Type);
  add_flag(facts, "dot8", f->v13.shaderIntegerDotProduct);
  add_flag(facts, "memory-model", f->v12.vulkanMemoryModel && f->v12.vulkanMemoryModelDeviceScope);
  add_flag(facts, "atomic-f32-add", f->atomic_float.shaderBufferFloat32AtomicAdd);
  add_flag(facts, "float-controls", facts->v12.shaderSignedZeroInfNanPreserveFloat32);
}

static void name_subgroups(eyas_hal_vulkan_facts_t* facts) {
  static const struct {
    const char* name;
    VkFlags bit;
  } operations[] = {
      {"subgroup-basic", VK_SUBGROUP_FEATURE_BASIC_BIT},
      {"subgroup-vote", VK_SUBGROUP_FEATURE_VOTE_BIT},
      {"subgroup-arithmetic", VK_SUBGROUP_FEATURE_ARITHMETIC_BIT},
      {"subgroup-ballot", VK_SUBGROUP_FEATURE_BALLOT_BIT},
      {"subgroup-shuffle", VK_SUBGROUP_FEATURE_SHUFFLE_BIT},
  };
  add(facts, "subgroup", "%u", facts->v11.subgroupSize);
  if (facts->features.v13.subgroupSizeControl &&
      (facts->v13.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT)) {
    add(facts, "subgroup-min", "%u", facts->v13.minSubgroupSize);
    add(facts, "subgroup-max", "%u", facts->v13.maxSubgroupSize);
  }
  if (!(facts->v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT)) return;
  for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); ++i) {
    add_flag(facts, operations[i].name, facts->v11.subgroupSupportedOperations & operations[i].bit);
  }
}

static void name_limits(eyas_hal_vulkan_facts_t* facts) {
  const VkPhysicalDeviceLimits* limits = &facts->properties.limits;
  uint32_t bindings = limits->maxPerStageDescriptorStorageBuffers;
  if (limits->maxDescriptorSetStorageBuffers < bindings) {
    bindings = limits->maxDescriptorSetStorageBuffers;
  }
  if (limits->maxPerStageResources < bindings) bindings = limits->maxPerStageResources;
  add(facts, "shared-bytes", "%u", limits->maxComputeSharedMemorySize);
  add(facts, "threads", "%u", limits->maxComputeWorkGroupInvocations);
  add(facts, "push-bytes", "%u", limits->maxPushConstantsSize);
  add(facts, "bindings", "%u", bindings);
  add(facts, "offset-alignment", "%llu",
      (unsigned long long)limits->minStorageBufferOffsetAlignment);
  add(facts, "storage-bytes", "%u", limits->maxStorageBufferRange);
  add(facts, "allocation-bytes", "%llu", (unsigned long long)facts->v11.maxMemoryAllocationSize);
  if (facts->cores) add(facts, "cores", "%u", facts->cores);
  add(facts, "grid", "%ux%ux%u", limits->maxComputeWorkGroupCount[0],
      limits->maxComputeWorkGroupCount[1], limits->maxComputeWorkGroupCount[2]);
  add(facts, "workgroup", "%ux%ux%u", limits->maxComputeWorkGroupSize[0],
      limits->maxComputeWorkGroupSize[1], limits->maxComputeWorkGroupSize[2]);
}

static const char* component_name(uint32_t type) {
  switch (type) {
    case VK_COMPONENT_TYPE_FLOAT16_KHR: return "f16";
    case VK_COMPONENT_TYPE_FLOAT32_KHR: return "f32";
    case VK_COMPONENT_TYPE_SINT8_KHR: return "i8";
    case VK_COMPONENT_TYPE_SINT32_KHR: return "i32";
    case VK_COMPONENT_TYPE_BFLOAT16_KHR: return "bf16";
    default: return NULL;
  }
}

static void name_matrices(eyas_hal_vulkan_system_t* system, VkPhysicalDevice physical,
                          eyas_hal_vulkan_facts_t* facts) {
  VkCooperativeMatrixPropertiesKHR shapes[64];
  uint32_t count = 64;
  if (!facts->features.matrix.cooperativeMatrix ||
      !system->vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR) {
    return;
  }
  for (uint32_t i = 0; i < count; ++i) {
    shapes[i] = (VkCooperativeMatrixPropertiesKHR){
        .sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR};
  }
  if (system->vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR(physical, &count, shapes) < 0) {
    return;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const VkCooperativeMatrixPropertiesKHR* m = &shapes[i];
    const char *a = component_name(m->AType), *c = component_name(m->CType);
    if (m->scope != VK_SCOPE_SUBGROUP_KHR || !a || !c || m->AType != m->BType ||
        m->CType != m->ResultType || m->saturatingAccumulation) {
      continue;
    }
    char name[48];
    snprintf(name, sizeof(name), "matrix:%s:%s:%ux%ux%u", a, c, m->MSize, m->NSize, m->KSize);
    add(facts, name, "yes");
  }
}

static const char* device_kind(uint32_t type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return "integrated";
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return "discrete";
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return "virtual";
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return "cpu";
    default: return "other";
  }
}

void eyas_hal_vulkan_facts_name(eyas_hal_vulkan_system_t* system, VkPhysicalDevice physical,
                                eyas_hal_vulkan_facts_t* facts) {
  const VkPhysicalDeviceProperties* p = &facts->properties;
  add(facts, "api", "%u.%u.%u", VK_API_VERSION_MAJOR(p->apiVersion),
      VK_API_VERSION_MINOR(p->apiVersion), VK_API_VERSION_PATCH(p->apiVersion));
  // What each version of Vulkan guarantees.
  add(facts, "spirv", p->apiVersion >= VK_API_VERSION_1_3 ? "1.6" : "1.5");
  add(facts, "driver", "%s %s", facts->v12.driverName, facts->v12.driverInfo);
  add(facts, "type", "%s", device_kind(p->deviceType));
  add(facts, "vendor", "0x%x", p->vendorID);
  add(facts, "device-id", "0x%x", p->deviceID);
  VkPhysicalDeviceMemoryProperties memory;
  system->vk.GetPhysicalDeviceMemoryProperties(physical, &memory);
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
    const VkMemoryHeap* heap = &memory.memoryHeaps[i];
    if ((heap->flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) && heap->size > bytes) {
      bytes = heap->size;
    }
  }
  add(facts, "memory-bytes", "%llu", (unsigned long long)bytes);
  add_flag(facts, "conditional", facts->conditional);
  name_limits(facts);
  name_subgroups(facts);
  name_types(facts);
  name_matrices(system, physical, facts);
}

//===-- Features of code ------------------------------------------------------------------------//

static const char* value_of(const eyas_hal_vulkan_facts_t* facts, const char* name, size_t bytes) {
  for (uint32_t i = 0; i < facts->property_count; ++i) {
    const char* candidate = facts->names[i].name;
    if (strlen(candidate) == bytes && memcmp(candidate, name, bytes) == 0) {
      return facts->names[i].value;
    }
  }
  return NULL;
}

static bool is_number(const char* text, uint64_t* out_value) {
  char* end = NULL;
  *out_value = strtoull(text, &end, 10);
  return *text >= '0' && *text <= '9' && *end == 0;
}

static bool subgroup_can_be(const eyas_hal_vulkan_facts_t* facts, uint64_t size) {
  if (size == facts->v11.subgroupSize) return true;
  return value_of(facts, "subgroup-min", 12) && size >= facts->v13.minSubgroupSize &&
         size <= facts->v13.maxSubgroupSize && (size & (size - 1)) == 0;
}

// `name`=`needed` against what the device has.
static bool has_enough(const eyas_hal_vulkan_facts_t* facts, const char* name, size_t bytes,
                       const char* needed, const char* has) {
  static const char* const at_least[] = {"shared-bytes", "threads", "push-bytes", "bindings"};
  uint64_t need = 0, have = 0;
  if (bytes == 5 && memcmp(name, "spirv", 5) == 0) {
    return strlen(needed) == 3 && strcmp(needed, "1.0") >= 0 && strcmp(needed, has) <= 0;
  }
  if (!is_number(needed, &need) || !is_number(has, &have)) return false;
  if (bytes == 8 && memcmp(name, "subgroup", 8) == 0) return subgroup_can_be(facts, need);
  if (bytes == 16 && memcmp(name, "offset-alignment", 16) == 0) {
    return have > 0 && need % have == 0;
  }
  for (size_t i = 0; i < sizeof(at_least) / sizeof(at_least[0]); ++i) {
    if (strlen(at_least[i]) == bytes && memcmp(at_least[i], name, bytes) == 0) return need <= have;
  }
  return false;
}

eyas_status_t eyas_hal_vulkan_check_features(const eyas_hal_vulkan_facts_t* facts,
                                             const char* const* features, uint32_t feature_count) {
  const char* device = facts->properties.deviceName;
  for (uint32_t i = 0; i < feature_count; ++i) {
    const char* feature = features[i];
    const char* equals = strchr(feature, '=');
    const size_t bytes = equals ? (size_t)(equals - feature) : strlen(feature);
    const char* has = value_of(facts, feature, bytes);
    if (has &&
        (equals ? has_enough(facts, feature, bytes, equals + 1, has) : strcmp(has, "yes") == 0)) {
      continue;
    }
    char seen[192] = "does not have";
    if (has && equals) snprintf(seen, sizeof(seen), "has %.*s=%s", (int)bytes, feature, has);
    return eyas_status_make(
        EYAS_STATUS_INCOMPATIBLE,
        "it needs '%s', and the device '%s' %s%s: compile on this machine for "
        "the target 'vulkan', or for 'vulkan:baseline', which every device runs",
        feature, device, seen, has && equals ? "" : " it");
  }
  return NULL;
}
