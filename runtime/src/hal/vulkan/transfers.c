// Fills, copies and updates. Vulkan fills and updates whole words at addresses that are multiples
// of 4; copies have no such bounds. So what is odd comes by copies out of the recording's data.
#include "hal/vulkan/vulkan.h"

#include <string.h>

#define PATTERN_BYTES 16               // of which any 3 in a row are copied
#define LONG_PATTERN_BYTES (64 << 10)  // of a pattern of 8 bytes that no word repeats
#define MAX_REGIONS 64

static const char* pattern_of(const eyas_hal_command_buffer_t* commands,
                              const eyas_hal_command_t* command) {
  return (const char*)commands->data.data + command->data_begin;
}

// Whether a repeated word of 4 bytes makes the pattern.
static bool repeats_word(const char* pattern) {
  return memcmp(pattern, pattern + 4, 4) == 0;
}

static const eyas_hal_binding_t* target_of(const eyas_hal_command_buffer_t* commands,
                                           const eyas_hal_command_t* command) {
  return &eyas_hal_bindings(commands)[command->binding_begin];
}

// Whether it is known now that the target has whole words only.
static bool has_whole_words(const eyas_hal_binding_t* target) {
  return target->buffer && (target->buffer->offset + target->offset) % 4 == 0 &&
         target->length % 4 == 0;
}

uint64_t eyas_hal_vulkan_transfer_data_bytes(const eyas_hal_command_buffer_t* commands,
                                             size_t index) {
  const eyas_hal_command_t* command = &eyas_hal_commands(commands)[index];
  const eyas_hal_binding_t* target = target_of(commands, command);
  uint64_t bytes = 0;
  if (command->kind == EYAS_HAL_COMMAND_UPDATE) {
    bytes = has_whole_words(target) ? 0 : target->length;
  } else if (command->kind == EYAS_HAL_COMMAND_FILL) {
    if (!repeats_word(pattern_of(commands, command))) {
      bytes = target->length < LONG_PATTERN_BYTES ? target->length : LONG_PATTERN_BYTES;
    } else {
      bytes = has_whole_words(target) ? 0 : PATTERN_BYTES;
    }
  }
  return (bytes + 7) / 8 * 8;
}

void eyas_hal_vulkan_transfer_write_data(const eyas_hal_command_buffer_t* commands, size_t index,
                                         char* target) {
  const eyas_hal_command_t* command = &eyas_hal_commands(commands)[index];
  const uint64_t bytes = eyas_hal_vulkan_transfer_data_bytes(commands, index);
  const char* data = pattern_of(commands, command);
  if (bytes == 0) return;
  if (command->kind == EYAS_HAL_COMMAND_UPDATE) {
    memcpy(target, data, target_of(commands, command)->length);
  } else {
    for (uint64_t i = 0; i < bytes; i += 8) memcpy(target + i, data, 8);
  }
}

static void copy_data(eyas_hal_vulkan_device_t* device, VkCommandBuffer target,
                      const eyas_hal_vulkan_recording_t* recording, uint64_t data_offset,
                      const eyas_hal_vulkan_place_t* place, uint64_t offset, uint64_t length) {
  if (length == 0) return;
  const VkBufferCopy region = {.srcOffset = recording->data->offset + data_offset,
                               .dstOffset = place->offset + offset,
                               .size = length};
  device->vk.CmdCopyBuffer(target, recording->data->block->buffer, place->buffer, 1, &region);
}

// A pattern of 8 bytes: as many copies of the data as it takes.
static void fill_by_copies(eyas_hal_vulkan_device_t* device, VkCommandBuffer target,
                           const eyas_hal_vulkan_recording_t* recording, uint64_t data_offset,
                           const eyas_hal_vulkan_place_t* place) {
  VkBufferCopy regions[MAX_REGIONS];
  uint32_t count = 0;
  for (uint64_t done = 0; done < place->length;) {
    const uint64_t left = place->length - done;
    const uint64_t piece = left < LONG_PATTERN_BYTES ? left : LONG_PATTERN_BYTES;
    regions[count++] = (VkBufferCopy){.srcOffset = recording->data->offset + data_offset,
                                      .dstOffset = place->offset + done,
                                      .size = piece};
    done += piece;
    if (count < MAX_REGIONS && done < place->length) continue;
    device->vk.CmdCopyBuffer(target, recording->data->block->buffer, place->buffer, count, regions);
    count = 0;
  }
}

static void fill(eyas_hal_vulkan_device_t* device, VkCommandBuffer target,
                 const eyas_hal_vulkan_recording_t* recording, const char* pattern,
                 uint64_t data_offset, const eyas_hal_vulkan_place_t* place) {
  if (!repeats_word(pattern)) {
    fill_by_copies(device, target, recording, data_offset, place);
    return;
  }
  // An odd head, whole words, an odd tail; each begins where the pattern is by then.
  uint64_t head = (4 - place->offset % 4) % 4;
  if (head > place->length) head = place->length;
  const uint64_t tail = (place->length - head) % 4;
  const uint64_t middle = place->length - head - tail;
  copy_data(device, target, recording, data_offset, place, 0, head);
  if (middle) {
    char word[4];
    for (uint64_t i = 0; i < 4; ++i) word[i] = pattern[(head + i) % 4];
    uint32_t value;
    memcpy(&value, word, 4);
    device->vk.CmdFillBuffer(target, place->buffer, place->offset + head, middle, value);
  }
  copy_data(device, target, recording, data_offset + (head + middle) % 4, place, head + middle,
            tail);
}

void eyas_hal_vulkan_record_transfer(eyas_hal_vulkan_device_t* device,
                                     const eyas_hal_command_buffer_t* commands, size_t index,
                                     const eyas_hal_vulkan_instance_t* instance) {
  const eyas_hal_vulkan_recording_t* recording = commands->payload;
  const eyas_hal_command_t* command = &eyas_hal_commands(commands)[index];
  const eyas_hal_vulkan_place_t* place = &instance->places[command->binding_begin];
  const uint64_t data_offset = recording->steps[index].data_offset;
  VkCommandBuffer target = instance->pool->commands;
  if (place->length == 0) return;
  switch (command->kind) {
    case EYAS_HAL_COMMAND_FILL:
      fill(device, target, recording, pattern_of(commands, command), data_offset, place);
      break;
    case EYAS_HAL_COMMAND_UPDATE:
      if (has_whole_words(target_of(commands, command))) {
        device->vk.CmdUpdateBuffer(target, place->buffer, place->offset, place->length,
                                   pattern_of(commands, command));
      } else {
        copy_data(device, target, recording, data_offset, place, 0, place->length);
      }
      break;
    case EYAS_HAL_COMMAND_COPY: {
      const VkBufferCopy region = {
          .srcOffset = place[0].offset, .dstOffset = place[1].offset, .size = place->length};
      device->vk.CmdCopyBuffer(target, place[0].buffer, place[1].buffer, 1, &region);
      break;
    }
    case EYAS_HAL_COMMAND_DISPATCH: break;
  }
}
