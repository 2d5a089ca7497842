// The part of the Vulkan API that the driver uses, declared from its specification: nothing of
// Vulkan is needed to build. Names, values and layouts are Khronos', those of 64-bit machines;
// fields that the driver never looks at are put together as `unused`. Where Khronos' own headers
// are installed runtime/tests/hal/vk_api_test.c compares them with this file.
#ifndef EYAS_HAL_VULKAN_VK_API_H_
#define EYAS_HAL_VULKAN_VK_API_H_

#include <stddef.h>
#include <stdint.h>

typedef uint32_t VkBool32;
typedef uint32_t VkFlags;
typedef uint64_t VkDeviceSize;

typedef struct VkInstance_T* VkInstance;
typedef struct VkPhysicalDevice_T* VkPhysicalDevice;
typedef struct VkDevice_T* VkDevice;
typedef struct VkQueue_T* VkQueue;
typedef struct VkCommandBuffer_T* VkCommandBuffer;
typedef struct VkBuffer_T* VkBuffer;
typedef struct VkDeviceMemory_T* VkDeviceMemory;
typedef struct VkSemaphore_T* VkSemaphore;
typedef struct VkQueryPool_T* VkQueryPool;
typedef struct VkShaderModule_T* VkShaderModule;
typedef struct VkPipelineCache_T* VkPipelineCache;
typedef struct VkPipelineLayout_T* VkPipelineLayout;
typedef struct VkPipeline_T* VkPipeline;
typedef struct VkDescriptorSetLayout_T* VkDescriptorSetLayout;
typedef struct VkDescriptorPool_T* VkDescriptorPool;
typedef struct VkDescriptorSet_T* VkDescriptorSet;
typedef struct VkCommandPool_T* VkCommandPool;
typedef struct VkDebugUtilsMessengerEXT_T* VkDebugUtilsMessengerEXT;

//===-- Values ----------------------------------------------------------------------------------//

#define VK_API_VERSION_MAJOR(version) ((version) >> 22 & 0x7f)
#define VK_API_VERSION_MINOR(version) ((version) >> 12 & 0x3ff)
#define VK_API_VERSION_PATCH(version) ((version) & 0xfff)
#define VK_API_VERSION_1_2 (1u << 22 | 2u << 12)
#define VK_API_VERSION_1_3 (1u << 22 | 3u << 12)
#define VK_WHOLE_SIZE (~0ull)

typedef enum VkResult {
  VK_SUCCESS = 0,
  VK_TIMEOUT = 2,
  VK_ERROR_OUT_OF_HOST_MEMORY = -1,
  VK_ERROR_OUT_OF_DEVICE_MEMORY = -2,
  VK_ERROR_INITIALIZATION_FAILED = -3,
  VK_ERROR_DEVICE_LOST = -4,
  VK_ERROR_LAYER_NOT_PRESENT = -6,
  VK_ERROR_EXTENSION_NOT_PRESENT = -7,
  VK_ERROR_FEATURE_NOT_PRESENT = -8,
  VK_ERROR_INCOMPATIBLE_DRIVER = -9,
  VK_ERROR_TOO_MANY_OBJECTS = -10,
  VK_ERROR_OUT_OF_POOL_MEMORY = -1000069000,
  VK_RESULT_MAX_ENUM = 0x7fffffff
} VkResult;

typedef enum VkStructureType {
  VK_STRUCTURE_TYPE_APPLICATION_INFO = 0,
  VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO = 1,
  VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO = 2,
  VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO = 3,
  VK_STRUCTURE_TYPE_SUBMIT_INFO = 4,
  VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO = 5,
  VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE = 6,
  VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO = 9,
  VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO = 11,
  VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO = 12,
  VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO = 16,
  VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO = 17,
  VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO = 18,
  VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO = 29,
  VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO = 30,
  VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO = 32,
  VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO = 33,
  VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO = 34,
  VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET = 35,
  VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO = 39,
  VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO = 40,
  VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO = 42,
  VK_STRUCTURE_TYPE_MEMORY_BARRIER = 46,
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES = 49,
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES = 50,
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES = 51,
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES = 52,
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES = 53,
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES = 54,
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2 = 1000059000,
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2 = 1000059001,
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_CONDITIONAL_RENDERING_FEATURES_EXT = 1000081001,
  VK_STRUCTURE_TYPE_CONDITIONAL_RENDERING_BEGIN_INFO_EXT = 1000081002,
  VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT = 1000128004,
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR = 1000141000,
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV = 1000154001,
  VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_BINDING_FLAGS_CREATE_INFO = 1000161000,
  VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT = 1000184000,
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD = 1000185000,
  VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO = 1000207002,
  VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO = 1000207003,
  VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO = 1000207004,
  VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO = 1000225001,
  VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT = 1000247000,
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT = 1000260000,
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR = 1000506000,
  VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR = 1000506001,
  VK_STRUCTURE_TYPE_MAX_ENUM = 0x7fffffff
} VkStructureType;

enum {
  VK_QUEUE_GRAPHICS_BIT = 0x1,
  VK_QUEUE_COMPUTE_BIT = 0x2,

  VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT = 0x1,
  VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT = 0x2,
  VK_MEMORY_PROPERTY_HOST_COHERENT_BIT = 0x4,
  VK_MEMORY_PROPERTY_HOST_CACHED_BIT = 0x8,
  VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT = 0x10,
  VK_MEMORY_PROPERTY_PROTECTED_BIT = 0x20,

  VK_BUFFER_USAGE_TRANSFER_SRC_BIT = 0x1,
  VK_BUFFER_USAGE_TRANSFER_DST_BIT = 0x2,
  VK_BUFFER_USAGE_STORAGE_BUFFER_BIT = 0x20,
  VK_BUFFER_USAGE_CONDITIONAL_RENDERING_BIT_EXT = 0x200,

  VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT = 0x800,
  VK_PIPELINE_STAGE_TRANSFER_BIT = 0x1000,
  VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT = 0x2000,
  VK_PIPELINE_STAGE_HOST_BIT = 0x4000,
  VK_PIPELINE_STAGE_ALL_COMMANDS_BIT = 0x10000,
  VK_PIPELINE_STAGE_CONDITIONAL_RENDERING_BIT_EXT = 0x40000,

  VK_ACCESS_SHADER_READ_BIT = 0x20,
  VK_ACCESS_SHADER_WRITE_BIT = 0x40,
  VK_ACCESS_TRANSFER_READ_BIT = 0x800,
  VK_ACCESS_TRANSFER_WRITE_BIT = 0x1000,
  VK_ACCESS_HOST_READ_BIT = 0x2000,
  VK_ACCESS_MEMORY_WRITE_BIT = 0x10000,
  VK_ACCESS_CONDITIONAL_RENDERING_READ_BIT_EXT = 0x100000,

  VK_SHADER_STAGE_COMPUTE_BIT = 0x20,
  VK_PIPELINE_BIND_POINT_COMPUTE = 1,
  VK_DESCRIPTOR_TYPE_STORAGE_BUFFER = 7,
  VK_DESCRIPTOR_BINDING_UPDATE_AFTER_BIND_BIT = 0x1,
  VK_DESCRIPTOR_SET_LAYOUT_CREATE_UPDATE_AFTER_BIND_POOL_BIT = 0x2,
  VK_DESCRIPTOR_POOL_CREATE_UPDATE_AFTER_BIND_BIT = 0x2,
  VK_COMMAND_BUFFER_LEVEL_PRIMARY = 0,
  VK_SEMAPHORE_TYPE_TIMELINE = 1,
  VK_QUERY_TYPE_TIMESTAMP = 2,
  VK_QUERY_RESULT_64_BIT = 0x1,
  VK_TIME_DOMAIN_DEVICE_EXT = 0,
  VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT = 1,
  VK_CONDITIONAL_RENDERING_INVERTED_BIT_EXT = 0x1,

  VK_SUBGROUP_FEATURE_BASIC_BIT = 0x1,
  VK_SUBGROUP_FEATURE_VOTE_BIT = 0x2,
  VK_SUBGROUP_FEATURE_ARITHMETIC_BIT = 0x4,
  VK_SUBGROUP_FEATURE_BALLOT_BIT = 0x8,
  VK_SUBGROUP_FEATURE_SHUFFLE_BIT = 0x10,

  VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU = 1,
  VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU = 2,
  VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU = 3,
  VK_PHYSICAL_DEVICE_TYPE_CPU = 4,

  VK_SCOPE_SUBGROUP_KHR = 3,
  VK_COMPONENT_TYPE_FLOAT16_KHR = 0,
  VK_COMPONENT_TYPE_FLOAT32_KHR = 1,
  VK_COMPONENT_TYPE_SINT8_KHR = 3,
  VK_COMPONENT_TYPE_SINT32_KHR = 5,
  VK_COMPONENT_TYPE_BFLOAT16_KHR = 1000141000,

  VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT = 0x100,
  VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT = 0x1000,
  VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT = 0x2,
  VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT = 0x4,
  VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT = 4,
};

//===-- Instances and devices -------------------------------------------------------------------//

typedef struct VkApplicationInfo {
  VkStructureType sType;
  const void* pNext;
  const char* pApplicationName;
  uint32_t applicationVersion;
  const char* pEngineName;
  uint32_t engineVersion;
  uint32_t apiVersion;
} VkApplicationInfo;

typedef struct VkInstanceCreateInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  const VkApplicationInfo* pApplicationInfo;
  uint32_t enabledLayerCount;
  const char* const* ppEnabledLayerNames;
  uint32_t enabledExtensionCount;
  const char* const* ppEnabledExtensionNames;
} VkInstanceCreateInfo;

typedef struct VkExtensionProperties {
  char extensionName[256];
  uint32_t specVersion;
} VkExtensionProperties;

typedef struct VkLayerProperties {
  char layerName[256];
  uint32_t specVersion;
  uint32_t implementationVersion;
  char description[256];
} VkLayerProperties;

typedef struct VkPhysicalDeviceLimits {
  uint32_t unused0[7];
  uint32_t maxStorageBufferRange;
  uint32_t maxPushConstantsSize;
  uint32_t maxMemoryAllocationCount;
  uint32_t unused1;
  VkDeviceSize unused2[2];
  uint32_t unused3[3];
  uint32_t maxPerStageDescriptorStorageBuffers;
  uint32_t unused4[3];
  uint32_t maxPerStageResources;
  uint32_t unused5[3];
  uint32_t maxDescriptorSetStorageBuffers;
  uint32_t unused6[26];
  uint32_t maxComputeSharedMemorySize;
  uint32_t maxComputeWorkGroupCount[3];
  uint32_t maxComputeWorkGroupInvocations;
  uint32_t maxComputeWorkGroupSize[3];
  uint32_t unused7[13];
  size_t minMemoryMapAlignment;
  VkDeviceSize unused8[2];
  VkDeviceSize minStorageBufferOffsetAlignment;
  uint32_t unused9[21];
  VkBool32 timestampComputeAndGraphics;
  float timestampPeriod;
  uint32_t unused10[12];
  VkDeviceSize unused11[2];
  VkDeviceSize nonCoherentAtomSize;
} VkPhysicalDeviceLimits;

typedef struct VkPhysicalDeviceProperties {
  uint32_t apiVersion;
  uint32_t driverVersion;
  uint32_t vendorID;
  uint32_t deviceID;
  uint32_t deviceType;
  char deviceName[256];
  uint8_t pipelineCacheUUID[16];
  VkPhysicalDeviceLimits limits;
  VkBool32 sparseProperties[5];
} VkPhysicalDeviceProperties;

typedef struct VkPhysicalDeviceProperties2 {
  VkStructureType sType;
  void* pNext;
  VkPhysicalDeviceProperties properties;
} VkPhysicalDeviceProperties2;

typedef struct VkPhysicalDeviceVulkan11Properties {
  VkStructureType sType;
  void* pNext;
  uint8_t deviceUUID[16];
  uint8_t driverUUID[16];
  uint8_t deviceLUID[8];
  uint32_t unused0[2];
  uint32_t subgroupSize;
  VkFlags subgroupSupportedStages;
  VkFlags subgroupSupportedOperations;
  uint32_t unused1[5];
  uint32_t maxPerSetDescriptors;
  VkDeviceSize maxMemoryAllocationSize;
} VkPhysicalDeviceVulkan11Properties;

typedef struct VkPhysicalDeviceVulkan12Properties {
  VkStructureType sType;
  void* pNext;
  uint32_t driverID;
  char driverName[256];
  char driverInfo[256];
  uint32_t unused0[4];
  VkBool32 shaderSignedZeroInfNanPreserveFloat32;
  uint32_t unused1[42];
  uint64_t maxTimelineSemaphoreValueDifference;
  uint32_t unused2;
} VkPhysicalDeviceVulkan12Properties;

typedef struct VkPhysicalDeviceVulkan13Properties {
  VkStructureType sType;
  void* pNext;
  uint32_t minSubgroupSize;
  uint32_t maxSubgroupSize;
  uint32_t maxComputeWorkgroupSubgroups;
  VkFlags requiredSubgroupSizeStages;
  uint32_t unused0[36];
  VkDeviceSize unused1[4];
  VkDeviceSize maxBufferSize;
} VkPhysicalDeviceVulkan13Properties;

typedef struct VkPhysicalDeviceShaderSMBuiltinsPropertiesNV {
  VkStructureType sType;
  void* pNext;
  uint32_t shaderSMCount;
  uint32_t shaderWarpsPerSM;
} VkPhysicalDeviceShaderSMBuiltinsPropertiesNV;

typedef struct VkPhysicalDeviceShaderCorePropertiesAMD {
  VkStructureType sType;
  void* pNext;
  uint32_t shaderEngineCount;
  uint32_t shaderArraysPerEngineCount;
  uint32_t computeUnitsPerShaderArray;
  uint32_t unused[11];
} VkPhysicalDeviceShaderCorePropertiesAMD;

typedef struct VkPhysicalDeviceFeatures {
  VkBool32 robustBufferAccess;
  VkBool32 unused0[38];
  VkBool32 shaderFloat64;
  VkBool32 shaderInt64;
  VkBool32 shaderInt16;
  VkBool32 unused1[13];
} VkPhysicalDeviceFeatures;

typedef struct VkPhysicalDeviceFeatures2 {
  VkStructureType sType;
  void* pNext;
  VkPhysicalDeviceFeatures features;
} VkPhysicalDeviceFeatures2;

typedef struct VkPhysicalDeviceVulkan11Features {
  VkStructureType sType;
  void* pNext;
  VkBool32 storageBuffer16BitAccess;
  VkBool32 unused[11];
} VkPhysicalDeviceVulkan11Features;

typedef struct VkPhysicalDeviceVulkan12Features {
  VkStructureType sType;
  void* pNext;
  VkBool32 unused0[2];
  VkBool32 storageBuffer8BitAccess;
  VkBool32 unused1[4];
  VkBool32 shaderFloat16;
  VkBool32 shaderInt8;
  VkBool32 unused2[14];
  VkBool32 descriptorBindingStorageBufferUpdateAfterBind;
  VkBool32 unused3[10];
  VkBool32 shaderSubgroupExtendedTypes;
  VkBool32 unused4[2];
  VkBool32 timelineSemaphore;
  VkBool32 unused5[3];
  VkBool32 vulkanMemoryModel;
  VkBool32 vulkanMemoryModelDeviceScope;
  VkBool32 unused6[4];
} VkPhysicalDeviceVulkan12Features;

typedef struct VkPhysicalDeviceVulkan13Features {
  VkStructureType sType;
  void* pNext;
  VkBool32 unused0[7];
  VkBool32 subgroupSizeControl;
  VkBool32 computeFullSubgroups;
  VkBool32 unused1[4];
  VkBool32 shaderIntegerDotProduct;
  VkBool32 maintenance4;
} VkPhysicalDeviceVulkan13Features;

typedef struct VkPhysicalDeviceConditionalRenderingFeaturesEXT {
  VkStructureType sType;
  void* pNext;
  VkBool32 conditionalRendering;
  VkBool32 inheritedConditionalRendering;
} VkPhysicalDeviceConditionalRenderingFeaturesEXT;

typedef struct VkPhysicalDeviceShaderAtomicFloatFeaturesEXT {
  VkStructureType sType;
  void* pNext;
  VkBool32 shaderBufferFloat32Atomics;
  VkBool32 shaderBufferFloat32AtomicAdd;
  VkBool32 unused[10];
} VkPhysicalDeviceShaderAtomicFloatFeaturesEXT;

typedef struct VkPhysicalDeviceCooperativeMatrixFeaturesKHR {
  VkStructureType sType;
  void* pNext;
  VkBool32 cooperativeMatrix;
  VkBool32 cooperativeMatrixRobustBufferAccess;
} VkPhysicalDeviceCooperativeMatrixFeaturesKHR;

typedef struct VkPhysicalDeviceShaderBfloat16FeaturesKHR {
  VkStructureType sType;
  void* pNext;
  VkBool32 shaderBFloat16Type;
  VkBool32 shaderBFloat16DotProduct;
  VkBool32 shaderBFloat16CooperativeMatrix;
} VkPhysicalDeviceShaderBfloat16FeaturesKHR;

typedef struct VkCooperativeMatrixPropertiesKHR {
  VkStructureType sType;
  void* pNext;
  uint32_t MSize;
  uint32_t NSize;
  uint32_t KSize;
  uint32_t AType;
  uint32_t BType;
  uint32_t CType;
  uint32_t ResultType;
  VkBool32 saturatingAccumulation;
  uint32_t scope;
} VkCooperativeMatrixPropertiesKHR;

typedef struct VkQueueFamilyProperties {
  VkFlags queueFlags;
  uint32_t queueCount;
  uint32_t timestampValidBits;
  uint32_t minImageTransferGranularity[3];
} VkQueueFamilyProperties;

typedef struct VkMemoryType {
  VkFlags propertyFlags;
  uint32_t heapIndex;
} VkMemoryType;

typedef struct VkMemoryHeap {
  VkDeviceSize size;
  VkFlags flags;
} VkMemoryHeap;

typedef struct VkPhysicalDeviceMemoryProperties {
  uint32_t memoryTypeCount;
  VkMemoryType memoryTypes[32];
  uint32_t memoryHeapCount;
  VkMemoryHeap memoryHeaps[16];
} VkPhysicalDeviceMemoryProperties;

typedef struct VkDeviceQueueCreateInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  uint32_t queueFamilyIndex;
  uint32_t queueCount;
  const float* pQueuePriorities;
} VkDeviceQueueCreateInfo;

typedef struct VkDeviceCreateInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  uint32_t queueCreateInfoCount;
  const VkDeviceQueueCreateInfo* pQueueCreateInfos;
  uint32_t enabledLayerCount;
  const char* const* ppEnabledLayerNames;
  uint32_t enabledExtensionCount;
  const char* const* ppEnabledExtensionNames;
  const VkPhysicalDeviceFeatures* pEnabledFeatures;
} VkDeviceCreateInfo;

//===-- Memory ----------------------------------------------------------------------------------//

typedef struct VkMemoryAllocateInfo {
  VkStructureType sType;
  const void* pNext;
  VkDeviceSize allocationSize;
  uint32_t memoryTypeIndex;
} VkMemoryAllocateInfo;

typedef struct VkMappedMemoryRange {
  VkStructureType sType;
  const void* pNext;
  VkDeviceMemory memory;
  VkDeviceSize offset;
  VkDeviceSize size;
} VkMappedMemoryRange;

typedef struct VkMemoryRequirements {
  VkDeviceSize size;
  VkDeviceSize alignment;
  uint32_t memoryTypeBits;
} VkMemoryRequirements;

typedef struct VkBufferCreateInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  VkDeviceSize size;
  VkFlags usage;
  uint32_t sharingMode;
  uint32_t queueFamilyIndexCount;
  const uint32_t* pQueueFamilyIndices;
} VkBufferCreateInfo;

//===-- Pipelines and descriptors ---------------------------------------------------------------//

typedef struct VkShaderModuleCreateInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  size_t codeSize;
  const uint32_t* pCode;
} VkShaderModuleCreateInfo;

typedef struct VkPipelineCacheCreateInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  size_t initialDataSize;
  const void* pInitialData;
} VkPipelineCacheCreateInfo;

typedef struct VkPipelineShaderStageCreateInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  uint32_t stage;
  VkShaderModule module;
  const char* pName;
  const void* pSpecializationInfo;
} VkPipelineShaderStageCreateInfo;

typedef struct VkPipelineShaderStageRequiredSubgroupSizeCreateInfo {
  VkStructureType sType;
  void* pNext;
  uint32_t requiredSubgroupSize;
} VkPipelineShaderStageRequiredSubgroupSizeCreateInfo;

typedef struct VkComputePipelineCreateInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  VkPipelineShaderStageCreateInfo stage;
  VkPipelineLayout layout;
  VkPipeline basePipelineHandle;
  int32_t basePipelineIndex;
} VkComputePipelineCreateInfo;

typedef struct VkPushConstantRange {
  VkFlags stageFlags;
  uint32_t offset;
  uint32_t size;
} VkPushConstantRange;

typedef struct VkPipelineLayoutCreateInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  uint32_t setLayoutCount;
  const VkDescriptorSetLayout* pSetLayouts;
  uint32_t pushConstantRangeCount;
  const VkPushConstantRange* pPushConstantRanges;
} VkPipelineLayoutCreateInfo;

typedef struct VkDescriptorSetLayoutBinding {
  uint32_t binding;
  uint32_t descriptorType;
  uint32_t descriptorCount;
  VkFlags stageFlags;
  const void* pImmutableSamplers;
} VkDescriptorSetLayoutBinding;

typedef struct VkDescriptorSetLayoutBindingFlagsCreateInfo {
  VkStructureType sType;
  const void* pNext;
  uint32_t bindingCount;
  const VkFlags* pBindingFlags;
} VkDescriptorSetLayoutBindingFlagsCreateInfo;

typedef struct VkDescriptorSetLayoutCreateInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  uint32_t bindingCount;
  const VkDescriptorSetLayoutBinding* pBindings;
} VkDescriptorSetLayoutCreateInfo;

typedef struct VkDescriptorPoolSize {
  uint32_t type;
  uint32_t descriptorCount;
} VkDescriptorPoolSize;

typedef struct VkDescriptorPoolCreateInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  uint32_t maxSets;
  uint32_t poolSizeCount;
  const VkDescriptorPoolSize* pPoolSizes;
} VkDescriptorPoolCreateInfo;

typedef struct VkDescriptorSetAllocateInfo {
  VkStructureType sType;
  const void* pNext;
  VkDescriptorPool descriptorPool;
  uint32_t descriptorSetCount;
  const VkDescriptorSetLayout* pSetLayouts;
} VkDescriptorSetAllocateInfo;

typedef struct VkDescriptorBufferInfo {
  VkBuffer buffer;
  VkDeviceSize offset;
  VkDeviceSize range;
} VkDescriptorBufferInfo;

typedef struct VkWriteDescriptorSet {
  VkStructureType sType;
  const void* pNext;
  VkDescriptorSet dstSet;
  uint32_t dstBinding;
  uint32_t dstArrayElement;
  uint32_t descriptorCount;
  uint32_t descriptorType;
  const void* pImageInfo;
  const VkDescriptorBufferInfo* pBufferInfo;
  const void* pTexelBufferView;
} VkWriteDescriptorSet;

//===-- Commands and queues ---------------------------------------------------------------------//

typedef struct VkCommandPoolCreateInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  uint32_t queueFamilyIndex;
} VkCommandPoolCreateInfo;

typedef struct VkCommandBufferAllocateInfo {
  VkStructureType sType;
  const void* pNext;
  VkCommandPool commandPool;
  uint32_t level;
  uint32_t commandBufferCount;
} VkCommandBufferAllocateInfo;

typedef struct VkCommandBufferBeginInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  const void* pInheritanceInfo;
} VkCommandBufferBeginInfo;

typedef struct VkBufferCopy {
  VkDeviceSize srcOffset;
  VkDeviceSize dstOffset;
  VkDeviceSize size;
} VkBufferCopy;

typedef struct VkMemoryBarrier {
  VkStructureType sType;
  const void* pNext;
  VkFlags srcAccessMask;
  VkFlags dstAccessMask;
} VkMemoryBarrier;

typedef struct VkConditionalRenderingBeginInfoEXT {
  VkStructureType sType;
  const void* pNext;
  VkBuffer buffer;
  VkDeviceSize offset;
  VkFlags flags;
} VkConditionalRenderingBeginInfoEXT;

typedef struct VkQueryPoolCreateInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  uint32_t queryType;
  uint32_t queryCount;
  VkFlags pipelineStatistics;
} VkQueryPoolCreateInfo;

typedef struct VkSemaphoreCreateInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
} VkSemaphoreCreateInfo;

typedef struct VkSemaphoreTypeCreateInfo {
  VkStructureType sType;
  const void* pNext;
  uint32_t semaphoreType;
  uint64_t initialValue;
} VkSemaphoreTypeCreateInfo;

typedef struct VkSemaphoreWaitInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  uint32_t semaphoreCount;
  const VkSemaphore* pSemaphores;
  const uint64_t* pValues;
} VkSemaphoreWaitInfo;

typedef struct VkTimelineSemaphoreSubmitInfo {
  VkStructureType sType;
  const void* pNext;
  uint32_t waitSemaphoreValueCount;
  const uint64_t* pWaitSemaphoreValues;
  uint32_t signalSemaphoreValueCount;
  const uint64_t* pSignalSemaphoreValues;
} VkTimelineSemaphoreSubmitInfo;

typedef struct VkSubmitInfo {
  VkStructureType sType;
  const void* pNext;
  uint32_t waitSemaphoreCount;
  const VkSemaphore* pWaitSemaphores;
  const VkFlags* pWaitDstStageMask;
  uint32_t commandBufferCount;
  const VkCommandBuffer* pCommandBuffers;
  uint32_t signalSemaphoreCount;
  const VkSemaphore* pSignalSemaphores;
} VkSubmitInfo;

typedef struct VkCalibratedTimestampInfoEXT {
  VkStructureType sType;
  const void* pNext;
  uint32_t timeDomain;
} VkCalibratedTimestampInfoEXT;

//===-- Validation ------------------------------------------------------------------------------//

typedef struct VkDebugUtilsMessengerCallbackDataEXT {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  const char* pMessageIdName;
  int32_t messageIdNumber;
  const char* pMessage;
  struct {
    uint32_t count;
    const void* elements;
  } unused[3];
} VkDebugUtilsMessengerCallbackDataEXT;

typedef VkBool32 (*PFN_vkDebugUtilsMessengerCallbackEXT)(
    uint32_t severity, VkFlags types, const VkDebugUtilsMessengerCallbackDataEXT* data, void* user);

typedef struct VkDebugUtilsMessengerCreateInfoEXT {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  VkFlags messageSeverity;
  VkFlags messageType;
  PFN_vkDebugUtilsMessengerCallbackEXT pfnUserCallback;
  void* pUserData;
} VkDebugUtilsMessengerCreateInfoEXT;

typedef struct VkValidationFeaturesEXT {
  VkStructureType sType;
  const void* pNext;
  uint32_t enabledValidationFeatureCount;
  const uint32_t* pEnabledValidationFeatures;
  uint32_t disabledValidationFeatureCount;
  const uint32_t* pDisabledValidationFeatures;
} VkValidationFeaturesEXT;

#endif  // EYAS_HAL_VULKAN_VK_API_H_
