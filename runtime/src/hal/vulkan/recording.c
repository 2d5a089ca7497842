// Recordings: what can be laid out before the table is known, and the instances that are run.
#include "hal/vulkan/vulkan.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

// Submissions of one recording that are under way at the same time; more wait for these.
#define MAX_INSTANCES 4

typedef unsigned long long ull;

static eyas_status_t no_memory(void) {
  return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory for commands");
}

//===-- Layout ----------------------------------------------------------------------------------//

static eyas_status_t check_dispatch(const eyas_hal_vulkan_device_t* device,
                                    const eyas_hal_command_buffer_t* commands,
                                    const eyas_hal_command_t* command) {
  const uint32_t* most = device->facts.properties.limits.maxComputeWorkGroupCount;
  const uint32_t* grid = command->workgroup_count;
  for (int i = 0; i < 3; ++i) {
    if (grid[i] <= most[i]) continue;
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED,
                            "dispatch '%s' has %u x %u x %u workgroups; the device '%s' allows "
                            "%u x %u x %u",
                            eyas_hal_command_name(command), grid[0], grid[1], grid[2],
                            device->facts.properties.deviceName, most[0], most[1], most[2]);
  }
  const int64_t* constants = (const int64_t*)commands->constants.data + command->constant_begin;
  for (uint32_t i = 0; i < command->constant_count; ++i) {
    if (constants[i] == (int32_t)constants[i]) continue;
    return eyas_status_make(EYAS_STATUS_OUT_OF_RANGE,
                            "dispatch '%s', constant %u is %lld; kernels of this device take "
                            "constants of 32 bits",
                            eyas_hal_command_name(command), i, (long long)constants[i]);
  }
  return NULL;
}

// Bytes of scratch memory that a dispatch needs, a multiple of `alignment`.
static eyas_status_t scratch_bytes(const eyas_hal_command_buffer_t* commands,
                                   const eyas_hal_command_t* command,
                                   const eyas_hal_vulkan_export_t* export, uint64_t alignment,
                                   uint64_t* out_bytes) {
  const int64_t* constants = (const int64_t*)commands->constants.data + command->constant_begin;
  uint64_t total = 0;
  bool fits = true;
  for (uint32_t i = 0; i < export->term_count; ++i) {
    const eyas_hal_vulkan_term_t* term = &export->terms[i];
    uint64_t bytes = term->factor;
    for (uint32_t k = 0; k < term->symbol_count; ++k) {
      const int64_t size = constants[term->symbols[k]];
      fits = fits && size >= 0 && eyas_checked_mul(bytes, (uint64_t)size, &bytes);
    }
    fits = fits && eyas_checked_add(total, bytes, &total);
  }
  if (fits && eyas_checked_align(total ? total : 1, alignment, out_bytes)) return NULL;
  return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED,
                          "dispatch '%s' needs more scratch memory than can be counted",
                          eyas_hal_command_name(command));
}

// Counters of the layout.
typedef struct layout_t {
  uint64_t wave_scratch;  // given out in the present wave
  uint32_t wave;
  uint64_t data_bytes;
} layout_t;

static eyas_status_t lay_out_dispatch(eyas_hal_vulkan_device_t* device,
                                      const eyas_hal_command_buffer_t* commands, size_t index,
                                      eyas_hal_vulkan_recording_t* recording, layout_t* layout) {
  const eyas_hal_command_t* command = &eyas_hal_commands(commands)[index];
  const eyas_hal_vulkan_executable_t* executable = command->executable->payload;
  const eyas_hal_vulkan_export_t* export = &executable->exports[command->ordinal];
  const uint32_t* grid = command->workgroup_count;
  eyas_hal_vulkan_step_t* step = &recording->steps[index];
  const uint64_t alignment = device->memory.alignment;
  if (!grid[0] || !grid[1] || !grid[2]) return NULL;
  EYAS_RETURN_IF_ERROR(check_dispatch(device, commands, command));
  step->export = export;
  step->set = recording->set_count++;
  recording->descriptor_count += export->descriptor_count;
  recording->reports |= export->reports;
  if (export->words_in_buffer) {
    step->word_begin = recording->word_bytes;
    recording->word_bytes += (4 * export->word_count + alignment - 1) / alignment * alignment;
  }
  if (export->has_scratch) {
    // Waves are ordered, so each may have the memory of the one before.
    if (layout->wave != command->wave) layout->wave_scratch = 0;
    layout->wave = command->wave;
    EYAS_RETURN_IF_ERROR(scratch_bytes(commands, command, export, alignment, &step->scratch_bytes));
    step->scratch_offset = layout->wave_scratch;
    if (!eyas_checked_add(layout->wave_scratch, step->scratch_bytes, &layout->wave_scratch)) {
      return no_memory();
    }
    if (layout->wave_scratch > recording->scratch_bytes) {
      recording->scratch_bytes = layout->wave_scratch;
    }
  }
  return NULL;
}

static eyas_status_t lay_out(eyas_hal_vulkan_device_t* device,
                             const eyas_hal_command_buffer_t* commands,
                             eyas_hal_vulkan_recording_t* recording, uint64_t* out_data_bytes) {
  layout_t layout = {0};
  const uint64_t alignment = device->memory.alignment;
  recording->word_bytes = (EYAS_HAL_VULKAN_ERROR_BYTES + alignment - 1) / alignment * alignment;
  const size_t error_bytes = recording->word_bytes;
  for (size_t i = 0; i < commands->commands.count; ++i) {
    if (eyas_hal_commands(commands)[i].kind == EYAS_HAL_COMMAND_DISPATCH) {
      EYAS_RETURN_IF_ERROR(lay_out_dispatch(device, commands, i, recording, &layout));
    } else {
      recording->steps[i].data_offset = layout.data_bytes;
      layout.data_bytes += eyas_hal_vulkan_transfer_data_bytes(commands, i);
    }
  }
  if (!recording->reports && recording->word_bytes == error_bytes) recording->word_bytes = 0;
  for (size_t i = 0; i < commands->bindings.count; ++i) {
    recording->changes |= !eyas_hal_bindings(commands)[i].buffer;
  }
  *out_data_bytes = layout.data_bytes;
  return NULL;
}

static eyas_status_t write_data(eyas_hal_vulkan_device_t* device,
                                const eyas_hal_command_buffer_t* commands,
                                eyas_hal_vulkan_recording_t* recording, uint64_t bytes) {
  if (!bytes) return NULL;
  EYAS_RETURN_IF_ERROR(
      eyas_hal_vulkan_range_allocate(device, device->memory.host_type, bytes, &recording->data));
  char* host = eyas_hal_vulkan_range_host(recording->data);
  for (size_t i = 0; i < commands->commands.count; ++i) {
    if (eyas_hal_commands(commands)[i].kind == EYAS_HAL_COMMAND_DISPATCH) continue;
    eyas_hal_vulkan_transfer_write_data(commands, i, host + recording->steps[i].data_offset);
  }
  return eyas_hal_vulkan_range_flush(device, recording->data);
}

static eyas_status_t prepare(eyas_hal_vulkan_device_t* device,
                             const eyas_hal_command_buffer_t* commands,
                             eyas_hal_vulkan_recording_t* recording) {
  uint64_t data_bytes = 0;
  recording->steps = calloc(commands->commands.count + 1, sizeof(*recording->steps));
  if (!recording->steps) return no_memory();
  if (commands->profiling) {
    recording->profile.places =
        calloc(commands->bindings.count + 1, sizeof(*recording->profile.places));
    recording->profile.times_ns =
        calloc(commands->commands.count + 1, sizeof(*recording->profile.times_ns));
    if (!recording->profile.places || !recording->profile.times_ns) return no_memory();
  }
  EYAS_RETURN_IF_ERROR(lay_out(device, commands, recording, &data_bytes));
  EYAS_RETURN_IF_ERROR(write_data(device, commands, recording, data_bytes));
  if (recording->scratch_bytes) {
    EYAS_RETURN_IF_ERROR(eyas_hal_vulkan_range_allocate(
        device, device->memory.near_type, recording->scratch_bytes, &recording->scratch));
  }
  if (recording->changes) return NULL;
  // All is known: what can be refused is refused now, and the first submission finds it ready.
  eyas_hal_vulkan_instance_t* instance = NULL;
  pthread_mutex_lock(&device->queue.mutex);
  eyas_status_t status = eyas_hal_vulkan_instance_acquire(device, commands, NULL, &instance);
  if (!status) status = eyas_hal_vulkan_instance_bind(device, commands, instance, NULL);
  pthread_mutex_unlock(&device->queue.mutex);
  return status;
}

eyas_status_t eyas_hal_vulkan_commands_prepare(eyas_hal_device_t* base,
                                               eyas_hal_command_buffer_t* commands) {
  eyas_hal_vulkan_device_t* device = eyas_hal_vulkan_device(base);
  if (eyas_hal_vulkan_is_foreign(device)) return eyas_hal_vulkan_foreign();
  commands->payload = calloc(1, sizeof(eyas_hal_vulkan_recording_t));
  if (!commands->payload) return no_memory();
  eyas_status_t status = prepare(device, commands, commands->payload);
  if (status) {
    eyas_hal_vulkan_commands_destroy(base, commands);
    commands->payload = NULL;
  }
  return status;
}

//===-- Instances -------------------------------------------------------------------------------//

eyas_status_t eyas_hal_vulkan_pool_acquire(eyas_hal_vulkan_device_t* device,
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

void eyas_hal_vulkan_pool_release(eyas_hal_vulkan_device_t* device, eyas_hal_vulkan_pool_t* pool) {
  if (!pool || !eyas_hal_vulkan_is_ours(device)) return;
  pthread_mutex_lock(&device->queue.mutex);
  pool->next = device->queue.pools;
  device->queue.pools = pool;
  pthread_mutex_unlock(&device->queue.mutex);
}

static void free_instance(eyas_hal_vulkan_device_t* device, eyas_hal_vulkan_instance_t* instance) {
  if (eyas_hal_vulkan_is_ours(device)) {
    if (instance->descriptors) {
      device->vk.DestroyDescriptorPool(device->handle, instance->descriptors, NULL);
    }
    if (instance->queries) device->vk.DestroyQueryPool(device->handle, instance->queries, NULL);
  }
  eyas_hal_vulkan_pool_release(device, instance->pool);
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
  EYAS_RETURN_IF_ERROR(eyas_hal_vulkan_pool_acquire(device, &instance->pool));
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

void eyas_hal_vulkan_commands_destroy(eyas_hal_device_t* base,
                                      eyas_hal_command_buffer_t* commands) {
  eyas_hal_vulkan_device_t* device = eyas_hal_vulkan_device(base);
  eyas_hal_vulkan_recording_t* recording = commands->payload;
  for (eyas_hal_vulkan_instance_t* instance = recording->instances; instance;) {
    eyas_hal_vulkan_instance_t* next = instance->next;
    free_instance(device, instance);
    instance = next;
  }
  eyas_hal_vulkan_range_free(device, recording->data);
  eyas_hal_vulkan_range_free(device, recording->scratch);
  free(recording->profile.places);
  free(recording->profile.times_ns);
  free(recording->steps);
  free(recording);
}
