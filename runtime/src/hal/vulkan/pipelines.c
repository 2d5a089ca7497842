// What pipelines of a device share: layouts, and a cache that is kept on disk.
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "hal/vulkan/vulkan.h"

#define MAX_CACHE_BYTES ((size_t)256 << 20)

//===-- Layouts ---------------------------------------------------------------------------------//

static eyas_status_t new_layout(eyas_hal_vulkan_device_t* device, uint32_t count) {
  eyas_hal_vulkan_pipelines_t* shared = &device->pipelines;
  const bool update_after_bind = device->facts.update_after_bind;
  VkDescriptorSetLayoutBinding bindings[EYAS_HAL_VULKAN_MAX_DESCRIPTORS];
  VkFlags flags[EYAS_HAL_VULKAN_MAX_DESCRIPTORS];
  for (uint32_t i = 0; i < count; ++i) {
    flags[i] = VK_DESCRIPTOR_BINDING_UPDATE_AFTER_BIND_BIT;
    bindings[i] = (VkDescriptorSetLayoutBinding){
        .binding = i,
        .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
        .descriptorCount = 1,
        .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
    };
  }
  const VkDescriptorSetLayoutBindingFlagsCreateInfo binding_flags = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_BINDING_FLAGS_CREATE_INFO,
      .bindingCount = count,
      .pBindingFlags = flags,
  };
  const VkDescriptorSetLayoutCreateInfo set_info = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
      .pNext = update_after_bind ? &binding_flags : NULL,
      .flags = update_after_bind ? VK_DESCRIPTOR_SET_LAYOUT_CREATE_UPDATE_AFTER_BIND_POOL_BIT : 0,
      .bindingCount = count,
      .pBindings = bindings,
  };
  VkDescriptorSetLayout set_layout = NULL;
  EYAS_RETURN_IF_ERROR(eyas_hal_vulkan_status(
      device->vk.CreateDescriptorSetLayout(device->handle, &set_info, NULL, &set_layout),
      "vkCreateDescriptorSetLayout"));
  // All that the device has: then a layout fits every kernel with this number of descriptors.
  const VkPushConstantRange push = {
      .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
      .size = device->facts.properties.limits.maxPushConstantsSize / 4 * 4,
  };
  const VkPipelineLayoutCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
      .setLayoutCount = 1,
      .pSetLayouts = &set_layout,
      .pushConstantRangeCount = 1,
      .pPushConstantRanges = &push,
  };
  VkPipelineLayout layout = NULL;
  eyas_status_t status =
      eyas_hal_vulkan_status(device->vk.CreatePipelineLayout(device->handle, &info, NULL, &layout),
                             "vkCreatePipelineLayout");
  if (status) {
    device->vk.DestroyDescriptorSetLayout(device->handle, set_layout, NULL);
    return status;
  }
  shared->set_layouts[count] = set_layout;
  shared->layouts[count] = layout;
  return NULL;
}

eyas_status_t eyas_hal_vulkan_layout(eyas_hal_vulkan_device_t* device, uint32_t descriptor_count,
                                     VkDescriptorSetLayout* out_set_layout,
                                     VkPipelineLayout* out_layout) {
  eyas_hal_vulkan_pipelines_t* shared = &device->pipelines;
  pthread_mutex_lock(&shared->mutex);
  eyas_status_t status = NULL;
  if (!shared->layouts[descriptor_count]) status = new_layout(device, descriptor_count);
  *out_set_layout = shared->set_layouts[descriptor_count];
  *out_layout = shared->layouts[descriptor_count];
  pthread_mutex_unlock(&shared->mutex);
  return status;
}

//===-- The cache -------------------------------------------------------------------------------//

// One file for each device and version of its driver. What drivers put in it they check themselves.
static char* cache_path(const eyas_hal_vulkan_device_t* device, const char* folder) {
  const VkPhysicalDeviceProperties* properties = &device->facts.properties;
  char uuid[33], *path = NULL;
  for (int i = 0; i < 16; ++i) sprintf(uuid + 2 * i, "%02x", properties->pipelineCacheUUID[i]);
  if (asprintf(&path, "%s/vulkan-%s-%08x-%x.bin", folder, uuid, properties->driverVersion,
               properties->deviceID) < 0) {
    return NULL;
  }
  return path;
}

// The file's bytes; NULL where there is none. A cache that cannot be read is an empty one.
static void* read_file(const char* path, size_t* out_bytes) {
  FILE* file = fopen(path, "rb");
  if (!file) return NULL;
  struct stat about;
  void* bytes = NULL;
  if (fstat(fileno(file), &about) == 0 && about.st_size > 0 &&
      (uint64_t)about.st_size <= MAX_CACHE_BYTES) {
    bytes = malloc((size_t)about.st_size);
    if (bytes && fread(bytes, 1, (size_t)about.st_size, file) != (size_t)about.st_size) {
      free(bytes);
      bytes = NULL;
    }
    *out_bytes = bytes ? (size_t)about.st_size : 0;
  }
  fclose(file);
  return bytes;
}

// Replaces the file in one step, so that no process ever reads half of one.
static bool write_file(const char* path, const void* bytes, size_t count) {
  char* temporary = NULL;
  // Its own for each device of each process.
  if (asprintf(&temporary, "%s.%ld.%p.tmp", path, (long)getpid(), (const void*)path) < 0) {
    return false;
  }
  FILE* file = fopen(temporary, "wb");
  bool written = file && fwrite(bytes, 1, count, file) == count;
  if (file && fclose(file) != 0) written = false;
  if (written) written = rename(temporary, path) == 0;
  if (!written) unlink(temporary);
  free(temporary);
  return written;
}

static void make_folders(const char* folder) {
  char* path = strdup(folder);
  for (char* slash = path; path && slash;) {
    slash = strchr(slash + 1, '/');
    if (slash) *slash = 0;
    mkdir(path, 0777);  // what cannot be made is seen when the file is written
    if (slash) *slash = '/';
  }
  free(path);
}

eyas_status_t eyas_hal_vulkan_pipelines_create(eyas_hal_vulkan_device_t* device,
                                               const char* folder) {
  eyas_hal_vulkan_pipelines_t* shared = &device->pipelines;
  size_t bytes = 0;
  void* saved = NULL;
  if (folder && *folder) {
    make_folders(folder);
    shared->path = cache_path(device, folder);
    if (shared->path) saved = read_file(shared->path, &bytes);
  }
  VkPipelineCacheCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
      .initialDataSize = bytes,
      .pInitialData = saved,
  };
  VkResult result = device->vk.CreatePipelineCache(device->handle, &info, NULL, &shared->cache);
  if (result < 0 && saved) {
    info.initialDataSize = 0;
    result = device->vk.CreatePipelineCache(device->handle, &info, NULL, &shared->cache);
  }
  free(saved);
  shared->saved_bytes = bytes;
  return eyas_hal_vulkan_status(result, "vkCreatePipelineCache");
}

void eyas_hal_vulkan_pipelines_save(eyas_hal_vulkan_device_t* device) {
  eyas_hal_vulkan_pipelines_t* shared = &device->pipelines;
  size_t bytes = 0;
  if (!shared->path) return;
  pthread_mutex_lock(&shared->mutex);
  device->vk.GetPipelineCacheData(device->handle, shared->cache, &bytes, NULL);
  void* data = bytes > shared->saved_bytes && bytes <= MAX_CACHE_BYTES ? malloc(bytes) : NULL;
  if (data &&
      device->vk.GetPipelineCacheData(device->handle, shared->cache, &bytes, data) == VK_SUCCESS &&
      write_file(shared->path, data, bytes)) {
    shared->saved_bytes = bytes;
  }
  free(data);
  pthread_mutex_unlock(&shared->mutex);
}

void eyas_hal_vulkan_pipelines_destroy(eyas_hal_vulkan_device_t* device) {
  eyas_hal_vulkan_pipelines_t* shared = &device->pipelines;
  if (eyas_hal_vulkan_is_ours(device)) {
    for (uint32_t i = 0; i <= EYAS_HAL_VULKAN_MAX_DESCRIPTORS; ++i) {
      if (!shared->layouts[i]) continue;
      device->vk.DestroyPipelineLayout(device->handle, shared->layouts[i], NULL);
      device->vk.DestroyDescriptorSetLayout(device->handle, shared->set_layouts[i], NULL);
    }
    if (shared->cache) device->vk.DestroyPipelineCache(device->handle, shared->cache, NULL);
  }
  free(shared->path);
}
