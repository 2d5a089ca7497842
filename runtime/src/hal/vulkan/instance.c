// Instances of recordings: all that one run at a time needs of its own.
#include "hal/vulkan/vulkan.h"

#include <stdlib.h>

// Submissions of one recording that are under way at the same time; more wait for these.
#define MAX_INSTANCES 4

static eyas_status_t no_memory(void) {
  return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory for commands");
}

static eyas_status_t acquire_pool(eyas_hal_vulkan_device_t* device,
                                  eyas_hal_vulkan_pool_t** out_pool) {
  eyas_hal_vulkan_pool_t* pool = device->queue.pools;
  if (pool) {
    device->queue.pools = pool->next;
    *out_pool = pool;
    return NULL;
  }
  pool = calloc(1, sizeof(*pool));
  if (!pool) return no_memory();
  const VkCommandPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                        .queueFamilyIndex = device->facts.queue_family};
  eyas_status_t status =
      eyas_hal_vulkan_status(device->vk.CreateCommandPool(device->handle, &info, NULL, &pool->pool),
                             "vkCreateCommandPool");
  const VkCommandBufferAllocateInfo buffer = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
      .commandPool = pool->pool,
      .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
      .commandBufferCount = 1,
  };
  if (!status) {
    status = eyas_hal_vulkan_status(
        device->vk.AllocateCommandBuffers(device->handle, &buffer, &pool->commands),
        "vkAllocateCommandBuffers");
  }
  if (status) {
    if (pool->pool) device->vk.DestroyCommandPool(device->handle, pool->pool, NULL);
    free(pool);
    return status;
  }
  *out_pool = pool;
  return NULL;
}

static void release_pool(eyas_hal_vulkan_device_t* device, eyas_hal_vulkan_pool_t* pool) {
  if (!pool || !eyas_hal_vulkan_is_ours(device)) return;
  pthread_mutex_lock(&device->queue.mutex);
  pool->next = device->queue.pools;
  device->queue.pools = pool;
  pthread_mutex_unlock(&device->queue.mutex);
}

void eyas_hal_vulkan_instance_free(eyas_hal_vulkan_device_t* device,
                                   eyas_hal_vulkan_instance_t* instance) {
  if (eyas_hal_vulkan_is_ours(device)) {
    if (instance->descriptors) {
      device->vk.DestroyDescriptorPool(device->handle, instance->descriptors, NULL);
    }
    if (instance->queries) device->vk.DestroyQueryPool(device->handle, instance->queries, NULL);
  }
  release_pool(device, instance->pool);
  eyas_hal_vulkan_range_free(device, instance->words);
  free(instance->sets);
  free(instance->places);
  free(instance);
}

static eyas_status_t new_sets(eyas_hal_vulkan_device_t* device,
                              const eyas_hal_command_buffer_t* commands,
                              eyas_hal_vulkan_instance_t* instance) {
  const eyas_hal_vulkan_recording_t* recording = commands->payload;
  if (recording->set_count == 0) return NULL;
  const VkDescriptorPoolSize size = {
      .type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
      .descriptorCount = recording->descriptor_count ? recording->descriptor_count : 1,
  };
  const VkDescriptorPoolCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
      .flags =
          device->facts.update_after_bind ? VK_DESCRIPTOR_POOL_CREATE_UPDATE_AFTER_BIND_BIT : 0,
      .maxSets = recording->set_count,
      .poolSizeCount = 1,
      .pPoolSizes = &size,
  };
  EYAS_RETURN_IF_ERROR(eyas_hal_vulkan_status(
      device->vk.CreateDescriptorPool(device->handle, &info, NULL, &instance->descriptors),
      "vkCreateDescriptorPool"));
  VkDescriptorSetLayout* layouts = calloc(recording->set_count, sizeof(*layouts));
  instance->sets = calloc(recording->set_count, sizeof(*instance->sets));
  eyas_status_t status = NULL;
  if (!layouts || !instance->sets) {
    status = no_memory();
  } else {
    for (size_t i = 0; i < commands->commands.count; ++i) {
      const eyas_hal_vulkan_step_t* step = &recording->steps[i];
      if (step->export) layouts[step->set] = step->export->set_layout;
    }
    const VkDescriptorSetAllocateInfo sets = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = instance->descriptors,
        .descriptorSetCount = recording->set_count,
        .pSetLayouts = layouts,
    };
    status = eyas_hal_vulkan_status(
        device->vk.AllocateDescriptorSets(device->handle, &sets, instance->sets),
        "vkAllocateDescriptorSets");
  }
  free(layouts);
  return status;
}

static eyas_status_t new_words(eyas_hal_vulkan_device_t* device,
                               const eyas_hal_vulkan_recording_t* recording,
                               eyas_hal_vulkan_instance_t* instance) {
  const eyas_hal_vulkan_memory_t* memory = &device->memory;
  const uint64_t bytes = recording->word_bytes;
  eyas_status_t status =
      eyas_hal_vulkan_range_allocate(device, memory->constant_type, bytes, &instance->words);
  if (!status || memory->constant_type == memory->host_type) return status;
  eyas_status_free(status);  // the window into a GPU's memory may be small
  return eyas_hal_vulkan_range_allocate(device, memory->host_type, bytes, &instance->words);
}

static eyas_status_t fill_instance(eyas_hal_vulkan_device_t* device,
                                   const eyas_hal_command_buffer_t* commands,
                                   eyas_hal_vulkan_instance_t* instance) {
  const eyas_hal_vulkan_recording_t* recording = commands->payload;
  instance->places = calloc(commands->bindings.count + 1, sizeof(*instance->places));
  if (!instance->places) return no_memory();
  EYAS_RETURN_IF_ERROR(acquire_pool(device, &instance->pool));
  EYAS_RETURN_IF_ERROR(new_sets(device, commands, instance));
  if (recording->word_bytes) EYAS_RETURN_IF_ERROR(new_words(device, recording, instance));
  if (!commands->profiling || !device->facts.timestamp_bits) return NULL;
  const VkQueryPoolCreateInfo queries = {
      .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
      .queryType = VK_QUERY_TYPE_TIMESTAMP,
      .queryCount = (uint32_t)commands->commands.count + 1,
  };
  return eyas_hal_vulkan_status(
      device->vk.CreateQueryPool(device->handle, &queries, NULL, &instance->queries),
      "vkCreateQueryPool");
}

static eyas_status_t new_instance(eyas_hal_vulkan_device_t* device,
                                  const eyas_hal_command_buffer_t* commands,
                                  eyas_hal_vulkan_instance_t** out_instance) {
  eyas_hal_vulkan_recording_t* recording = commands->payload;
  eyas_hal_vulkan_instance_t* instance = calloc(1, sizeof(*instance));
  if (!instance) return no_memory();
  // It belongs to the recording at once: what it got before a failure is freed with it.
  instance->next = recording->instances;
  recording->instances = instance;
  ++recording->instance_count;
  eyas_status_t status = fill_instance(device, commands, instance);
  if (status) {
    instance->busy = true;  // never to be used
  } else {
    *out_instance = instance;
  }
  return status;
}

eyas_status_t eyas_hal_vulkan_instance_acquire(eyas_hal_vulkan_device_t* device,
                                               const eyas_hal_command_buffer_t* commands,
                                               const eyas_hal_range_t* table,
                                               eyas_hal_vulkan_instance_t** out_instance) {
  eyas_hal_vulkan_recording_t* recording = commands->payload;
  eyas_hal_vulkan_instance_t* oldest = NULL;
  *out_instance = NULL;
  for (eyas_hal_vulkan_instance_t* i = recording->instances; i; i = i->next) {
    if (i->busy) continue;
    if (eyas_hal_vulkan_instance_fits(commands, i, table)) {
      *out_instance = i;
      return NULL;
    }
    if (!oldest || i->last_used < oldest->last_used) oldest = i;
  }
  // Where another table means to record again, tables that take turns have an instance each.
  const bool full = recording->instance_count == MAX_INSTANCES;
  if (full || (oldest && device->facts.update_after_bind)) {
    *out_instance = oldest;
    return NULL;
  }
  return new_instance(device, commands, out_instance);
}
