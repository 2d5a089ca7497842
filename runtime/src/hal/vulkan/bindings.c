// Descriptors: an instance is given the places that a table names. Only what changed is written,
// and commands are recorded again only where something changed that they carry themselves.
#include "hal/vulkan/vulkan.h"

#include <string.h>

typedef unsigned long long ull;

static void resolve(const eyas_hal_binding_t* binding, const eyas_hal_range_t* table,
                    eyas_hal_vulkan_place_t* out_place) {
  const eyas_hal_buffer_t* buffer = binding->buffer;
  uint64_t offset = binding->offset, length = binding->length;
  if (!buffer) {
    const eyas_hal_range_t* range = &table[binding->slot];
    buffer = range->buffer;
    const uint64_t given =
        range->length == EYAS_HAL_WHOLE ? buffer->length - range->offset : range->length;
    if (length == EYAS_HAL_WHOLE) length = given - offset;
    offset += range->offset;
  }
  const eyas_hal_vulkan_range_t* memory = buffer->root->payload;
  *out_place = (eyas_hal_vulkan_place_t){
      .buffer = memory->block->buffer,
      .offset = memory->offset + buffer->offset + offset,
      .length = length,
  };
}

bool eyas_hal_vulkan_instance_fits(const eyas_hal_command_buffer_t* commands,
                                   const eyas_hal_vulkan_instance_t* instance,
                                   const eyas_hal_range_t* table) {
  const eyas_hal_vulkan_recording_t* recording = commands->payload;
  if (!instance->recorded || !recording->changes) return instance->recorded;
  for (size_t i = 0; i < commands->bindings.count; ++i) {
    const eyas_hal_binding_t* binding = &eyas_hal_bindings(commands)[i];
    if (binding->buffer) continue;
    eyas_hal_vulkan_place_t place;
    resolve(binding, table, &place);
    if (memcmp(&place, &instance->places[i], sizeof(place)) != 0) return false;
  }
  return true;
}

static bool is_unaligned(const eyas_hal_vulkan_export_t* export, uint32_t binding) {
  return export->unaligned[binding / 64] >> binding % 64 & 1;
}

// A place as a descriptor: it starts at what the device allows, and `residual` is the rest.
static eyas_status_t describe(const eyas_hal_vulkan_device_t* device,
                              const eyas_hal_vulkan_place_t* place, bool unaligned,
                              VkDescriptorBufferInfo* out_info, uint32_t* out_residual) {
  const VkPhysicalDeviceLimits* limits = &device->facts.properties.limits;
  *out_residual = 0;
  if (place->length == 0) {  // no element is ever touched, but some range must be named
    *out_info = (VkDescriptorBufferInfo){.buffer = place->buffer, .range = 4};
    return NULL;
  }
  const uint64_t residual = place->offset % limits->minStorageBufferOffsetAlignment;
  if (residual && !unaligned) {
    return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT,
                            "it starts at %llu bytes over a multiple of %llu, the alignment of the "
                            "device, and its kernel was compiled for aligned buffers",
                            (ull)residual, (ull)limits->minStorageBufferOffsetAlignment);
  }
  const uint64_t bytes = (place->length + residual + 3) / 4 * 4;  // memory has whole words
  if (bytes > limits->maxStorageBufferRange) {
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED,
                            "it has %llu bytes; one binding of the device '%s' can have %u: split "
                            "the tensor, or use another device",
                            (ull)bytes, device->facts.properties.deviceName,
                            limits->maxStorageBufferRange);
  }
  *out_info = (VkDescriptorBufferInfo){
      .buffer = place->buffer, .offset = place->offset - residual, .range = bytes};
  *out_residual = (uint32_t)residual;
  return NULL;
}

//===-- Writing descriptors ---------------------------------------------------------------------//

#define BATCH 64

typedef struct batch_t {
  eyas_hal_vulkan_device_t* device;
  uint32_t count;
  bool any;
  VkWriteDescriptorSet writes[BATCH];
  VkDescriptorBufferInfo infos[BATCH];
} batch_t;

static void flush(batch_t* batch) {
  if (!batch->count) return;
  batch->device->vk.UpdateDescriptorSets(batch->device->handle, batch->count, batch->writes, 0,
                                         NULL);
  batch->count = 0;
}

static void write_descriptor(batch_t* batch, VkDescriptorSet set, uint32_t binding,
                             const VkDescriptorBufferInfo* info) {
  if (batch->count == BATCH) flush(batch);
  batch->any = true;
  batch->infos[batch->count] = *info;
  batch->writes[batch->count] = (VkWriteDescriptorSet){
      .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
      .dstSet = set,
      .dstBinding = binding,
      .descriptorCount = 1,
      .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
      .pBufferInfo = &batch->infos[batch->count],
  };
  ++batch->count;
}

// Those beside the bindings: scratch memory, error word, constants. They never change.
static eyas_status_t write_own(batch_t* batch, const eyas_hal_vulkan_recording_t* recording,
                               const eyas_hal_vulkan_step_t* step,
                               const eyas_hal_vulkan_instance_t* instance) {
  const eyas_hal_vulkan_export_t* export = step->export;
  const uint64_t most = batch->device->facts.properties.limits.maxStorageBufferRange;
  uint32_t binding = export->binding_count;
  if (export->has_scratch) {
    if (step->scratch_bytes > most) {
      return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED,
                              "it needs %llu bytes of scratch memory; one binding of the device "
                              "can have %llu",
                              (ull)step->scratch_bytes, (ull)most);
    }
    write_descriptor(batch, instance->sets[step->set], binding++,
                     &(VkDescriptorBufferInfo){recording->scratch->block->buffer,
                                               recording->scratch->offset + step->scratch_offset,
                                               step->scratch_bytes});
  }
  if (export->reports) {
    write_descriptor(
        batch, instance->sets[step->set], binding++,
        &(VkDescriptorBufferInfo){instance->words->block->buffer, instance->words->offset, 4});
  }
  if (export->words_in_buffer) {
    write_descriptor(batch, instance->sets[step->set], binding,
                     &(VkDescriptorBufferInfo){instance->words->block->buffer,
                                               instance->words->offset + step->word_begin,
                                               export->word_count ? 4 * export->word_count : 4});
  }
  return NULL;
}

//===-- Words -----------------------------------------------------------------------------------//

uint32_t eyas_hal_vulkan_dispatch_words(const eyas_hal_vulkan_device_t* device,
                                        const eyas_hal_command_buffer_t* commands, size_t index,
                                        const eyas_hal_vulkan_instance_t* instance,
                                        uint32_t* out_words) {
  const eyas_hal_vulkan_recording_t* recording = commands->payload;
  const eyas_hal_command_t* command = &eyas_hal_commands(commands)[index];
  const eyas_hal_vulkan_export_t* export = recording->steps[index].export;
  const int64_t* constants = (const int64_t*)commands->constants.data + command->constant_begin;
  const uint64_t alignment = device->facts.properties.limits.minStorageBufferOffsetAlignment;
  uint32_t count = 0;
  for (uint32_t i = 0; i < export->constant_count; ++i) out_words[count++] = (uint32_t)constants[i];
  for (uint32_t i = 0; i < export->binding_count; ++i) {
    if (!is_unaligned(export, i)) continue;
    const eyas_hal_vulkan_place_t* place = &instance->places[command->binding_begin + i];
    out_words[count++] = place->length ? (uint32_t)(place->offset % alignment) : 0;
  }
  if (export->reports) out_words[count++] = (uint32_t)index << EYAS_ERROR_CODE_BITS;
  return count;
}

static void write_words(eyas_hal_vulkan_device_t* device, const eyas_hal_command_buffer_t* commands,
                        size_t index, const eyas_hal_vulkan_instance_t* instance) {
  uint32_t words[EYAS_HAL_VULKAN_MAX_WORDS];
  const eyas_hal_vulkan_recording_t* recording = commands->payload;
  const uint32_t count = eyas_hal_vulkan_dispatch_words(device, commands, index, instance, words);
  memcpy(eyas_hal_vulkan_range_host(instance->words) + recording->steps[index].word_begin, words,
         4 * (size_t)count);
}

//===-- Binding ---------------------------------------------------------------------------------//

// What binding an instance found out.
typedef struct change_t {
  batch_t batch;
  bool first;     // nothing was bound before
  bool rerecord;  // commands carry something that changed
  bool words;     // the constants buffer was written
} change_t;

static eyas_status_t bind_dispatch(change_t* change, const eyas_hal_command_buffer_t* commands,
                                   size_t index, eyas_hal_vulkan_instance_t* instance,
                                   const eyas_hal_range_t* table) {
  const eyas_hal_vulkan_device_t* device = change->batch.device;
  const eyas_hal_vulkan_recording_t* recording = commands->payload;
  const eyas_hal_command_t* command = &eyas_hal_commands(commands)[index];
  const eyas_hal_vulkan_step_t* step = &recording->steps[index];
  bool residuals_changed = change->first;
  for (uint32_t i = 0; i < command->binding_count; ++i) {
    const eyas_hal_binding_t* binding = &eyas_hal_bindings(commands)[command->binding_begin + i];
    if (binding->buffer && !change->first) continue;
    eyas_hal_vulkan_place_t place, *old = &instance->places[command->binding_begin + i];
    resolve(binding, table, &place);
    if (!change->first && memcmp(&place, old, sizeof(place)) == 0) continue;
    VkDescriptorBufferInfo info, before;
    uint32_t residual = 0, residual_before = 0;
    const bool unaligned = is_unaligned(step->export, i);
    eyas_status_t status = describe(device, &place, unaligned, &info, &residual);
    if (status) {
      return eyas_status_annotate(status, "dispatch '%s', binding %u",
                                  eyas_hal_command_name(command), i);
    }
    if (unaligned && !change->first) {
      status = describe(device, old, unaligned, &before, &residual_before);
      eyas_status_free(status);  // it was good
      residuals_changed |= residual != residual_before;
    }
    *old = place;
    write_descriptor(&change->batch, instance->sets[step->set], i, &info);
  }
  if (change->first) {
    eyas_status_t status = write_own(&change->batch, recording, step, instance);
    if (status) {
      return eyas_status_annotate(status, "dispatch '%s'", eyas_hal_command_name(command));
    }
  }
  if (!residuals_changed) return NULL;
  if (step->export->words_in_buffer) {
    write_words(change->batch.device, commands, index, instance);
    change->words = true;
  } else {
    change->rerecord = true;
  }
  return NULL;
}

// A command that has its places in itself, or none at all because it has no work.
static void bind_other(change_t* change, const eyas_hal_command_buffer_t* commands,
                       const eyas_hal_command_t* command, eyas_hal_vulkan_instance_t* instance,
                       const eyas_hal_range_t* table) {
  for (uint32_t i = 0; i < command->binding_count; ++i) {
    eyas_hal_vulkan_place_t place, *old = &instance->places[command->binding_begin + i];
    resolve(&eyas_hal_bindings(commands)[command->binding_begin + i], table, &place);
    if (memcmp(&place, old, sizeof(place)) == 0) continue;
    *old = place;
    change->rerecord |= command->kind != EYAS_HAL_COMMAND_DISPATCH;
  }
}

eyas_status_t eyas_hal_vulkan_instance_bind(eyas_hal_vulkan_device_t* device,
                                            const eyas_hal_command_buffer_t* commands,
                                            eyas_hal_vulkan_instance_t* instance,
                                            const eyas_hal_range_t* table) {
  const eyas_hal_vulkan_recording_t* recording = commands->payload;
  if (eyas_hal_vulkan_instance_fits(commands, instance, table)) return NULL;
  change_t change;
  change.batch.device = device;
  change.batch.count = 0;
  change.batch.any = change.rerecord = change.words = false;
  change.first = !instance->recorded;
  instance->recorded = false;  // until all of it is right again
  for (size_t i = 0; i < commands->commands.count; ++i) {
    const eyas_hal_command_t* command = &eyas_hal_commands(commands)[i];
    if (recording->steps[i].export) {
      EYAS_RETURN_IF_ERROR(bind_dispatch(&change, commands, i, instance, table));
    } else {
      bind_other(&change, commands, command, instance, table);
    }
  }
  flush(&change.batch);
  if (change.words) {
    EYAS_RETURN_IF_ERROR(eyas_hal_vulkan_range_flush(device, instance->words));
  }
  if (change.first || change.rerecord || (change.batch.any && !device->facts.update_after_bind)) {
    EYAS_RETURN_IF_ERROR(eyas_hal_vulkan_instance_record(device, commands, instance));
  }
  instance->recorded = true;
  return NULL;
}
