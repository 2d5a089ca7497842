// Memory in large blocks, given out in parts best fit: a device allows few allocations, and each
// takes long. A block has one VkBuffer over all of it, so that a part is an offset and no object.
// Blocks that nothing uses any more are kept for the next that asks, up to a bound.
#include "hal/vulkan/vulkan.h"

#include <stdlib.h>

#include "base/checked.h"

#define FIRST_BLOCK_BYTES ((uint64_t)4 << 20)  // each next one of a type is twice as large
#define MAX_BLOCK_BYTES ((uint64_t)64 << 20)   // and what needs half of this has a block by itself
#define MAX_IDLE_BYTES ((uint64_t)256 << 20)   // of each type

typedef unsigned long long ull;

static const uint32_t unusable =
    VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT | VK_MEMORY_PROPERTY_PROTECTED_BIT;

// The first type that has all of `bits`; the loader lists faster ones first. False: there is none.
static bool find_type(const VkPhysicalDeviceMemoryProperties* memory, uint32_t bits,
                      uint32_t* out_type) {
  for (uint32_t i = 0; i < memory->memoryTypeCount; ++i) {
    const uint32_t flags = memory->memoryTypes[i].propertyFlags;
    if ((flags & bits) != bits || (flags & unusable)) continue;
    *out_type = i;
    return true;
  }
  return false;
}

eyas_status_t eyas_hal_vulkan_memory_create(eyas_hal_vulkan_device_t* device, bool staging) {
  enum {
    NEAR = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
    SEEN = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
    COHERENT = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
    CACHED = VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
  };
  eyas_hal_vulkan_memory_t* memory = &device->memory;
  VkPhysicalDeviceMemoryProperties* types = &memory->properties;
  device->system->vk.GetPhysicalDeviceMemoryProperties(device->physical, types);
  if (!find_type(types, SEEN | COHERENT | CACHED, &memory->host_type) &&
      !find_type(types, SEEN | CACHED, &memory->host_type) &&
      !find_type(types, SEEN | COHERENT, &memory->host_type)) {
    return eyas_status_make(EYAS_STATUS_INCOMPATIBLE,
                            "the device has no memory that the host can map");
  }
  // Memory of a GPU of its own may be visible through a window, but slow to read for the host:
  // such a device is reached by copies.
  memory->host_visible =
      !staging && (find_type(types, NEAR | SEEN | COHERENT | CACHED, &memory->near_type) ||
                   find_type(types, NEAR | SEEN | CACHED, &memory->near_type));
  if (!memory->host_visible && !find_type(types, NEAR, &memory->near_type)) {
    memory->near_type = memory->host_type;
  }
  if (!find_type(types, NEAR | SEEN | COHERENT, &memory->constant_type)) {
    memory->constant_type = memory->host_type;
  }
  const VkPhysicalDeviceLimits* limits = &device->facts.properties.limits;
  memory->alignment = EYAS_HAL_BUFFER_ALIGNMENT;
  if (limits->minStorageBufferOffsetAlignment > memory->alignment) {
    memory->alignment = limits->minStorageBufferOffsetAlignment;
  }
  if (limits->nonCoherentAtomSize > memory->alignment) {
    memory->alignment = limits->nonCoherentAtomSize;
  }
  return NULL;
}

//===-- Blocks ----------------------------------------------------------------------------------//

static void free_block(eyas_hal_vulkan_device_t* device, eyas_hal_vulkan_block_t* block) {
  for (eyas_hal_vulkan_range_t* range = block->first; range;) {
    eyas_hal_vulkan_range_t* next = range->next;
    free(range);
    range = next;
  }
  if (eyas_hal_vulkan_is_ours(device)) {
    if (block->buffer) device->vk.DestroyBuffer(device->handle, block->buffer, NULL);
    if (block->memory) device->vk.FreeMemory(device->handle, block->memory, NULL);
  }
  free(block);
}

void eyas_hal_vulkan_memory_destroy(eyas_hal_vulkan_device_t* device) {
  for (uint32_t type = 0; type < 32; ++type) {
    for (eyas_hal_vulkan_block_t* block = device->memory.blocks[type]; block;) {
      eyas_hal_vulkan_block_t* next = block->next;
      free_block(device, block);
      block = next;
    }
  }
}

static eyas_status_t back_block(eyas_hal_vulkan_device_t* device, eyas_hal_vulkan_block_t* block) {
  const eyas_vk_device_functions_t* vk = &device->vk;
  const uint32_t flags = device->memory.properties.memoryTypes[block->type].propertyFlags;
  VkFlags usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                  VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  if (device->facts.conditional) usage |= VK_BUFFER_USAGE_CONDITIONAL_RENDERING_BIT_EXT;
  const VkBufferCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = block->bytes, .usage = usage};
  EYAS_RETURN_IF_ERROR(eyas_hal_vulkan_status(
      vk->CreateBuffer(device->handle, &info, NULL, &block->buffer), "vkCreateBuffer"));
  VkMemoryRequirements needs;
  vk->GetBufferMemoryRequirements(device->handle, block->buffer, &needs);
  if (!(needs.memoryTypeBits >> block->type & 1)) {
    return eyas_status_make(EYAS_STATUS_INCOMPATIBLE,
                            "memory of type %u cannot hold storage buffers", block->type);
  }
  const VkMemoryAllocateInfo allocation = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                           .allocationSize = needs.size,
                                           .memoryTypeIndex = block->type};
  EYAS_RETURN_IF_ERROR(eyas_hal_vulkan_status(
      vk->AllocateMemory(device->handle, &allocation, NULL, &block->memory), "vkAllocateMemory"));
  EYAS_RETURN_IF_ERROR(eyas_hal_vulkan_status(
      vk->BindBufferMemory(device->handle, block->buffer, block->memory, 0), "vkBindBufferMemory"));
  block->coherent = flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  if (!(flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)) return NULL;
  void* host = NULL;
  eyas_status_t status = eyas_hal_vulkan_status(
      vk->MapMemory(device->handle, block->memory, 0, VK_WHOLE_SIZE, 0, &host), "vkMapMemory");
  block->host = host;
  return status;
}

static eyas_status_t new_block(eyas_hal_vulkan_device_t* device, uint32_t type, uint64_t bytes,
                               eyas_hal_vulkan_block_t** out_block) {
  eyas_hal_vulkan_block_t* block = calloc(1, sizeof(*block));
  eyas_hal_vulkan_range_t* all = calloc(1, sizeof(*all));
  if (!block || !all) {
    free(block);
    free(all);
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory");
  }
  *all = (eyas_hal_vulkan_range_t){.block = block, .bytes = bytes};
  *block = (eyas_hal_vulkan_block_t){.bytes = bytes, .type = type, .first = all};
  eyas_status_t status = back_block(device, block);
  if (status) {
    free_block(device, block);
    return status;
  }
  *out_block = block;
  return NULL;
}

//===-- Ranges ----------------------------------------------------------------------------------//

// Takes the front of a free range.
static bool take(eyas_hal_vulkan_range_t* range, uint64_t bytes) {
  if (range->bytes > bytes) {
    eyas_hal_vulkan_range_t* rest = calloc(1, sizeof(*rest));
    if (!rest) return false;
    *rest = (eyas_hal_vulkan_range_t){.block = range->block,
                                      .offset = range->offset + bytes,
                                      .bytes = range->bytes - bytes,
                                      .previous = range,
                                      .next = range->next};
    if (rest->next) rest->next->previous = rest;
    range->next = rest;
    range->bytes = bytes;
  }
  range->used = true;
  return true;
}

static bool is_empty(const eyas_hal_vulkan_block_t* block) {
  return !block->first->used && !block->first->next;
}

// The smallest free range that is large enough; the rest of it stays free.
static eyas_hal_vulkan_range_t* find_range(eyas_hal_vulkan_memory_t* memory, uint32_t type,
                                           uint64_t bytes) {
  eyas_hal_vulkan_range_t* best = NULL;
  for (eyas_hal_vulkan_block_t* block = memory->blocks[type]; block; block = block->next) {
    for (eyas_hal_vulkan_range_t* range = block->first; range; range = range->next) {
      if (range->used || range->bytes < bytes) continue;
      if (!best || range->bytes < best->bytes) best = range;
    }
  }
  if (!best) return NULL;
  const bool was_idle = is_empty(best->block);
  if (!take(best, bytes)) return NULL;
  if (was_idle) memory->idle_bytes[type] -= best->block->bytes;
  return best;
}

// Gives back what is kept, of every type: they may share a heap.
static void free_idle(eyas_hal_vulkan_device_t* device) {
  eyas_hal_vulkan_memory_t* memory = &device->memory;
  for (uint32_t type = 0; type < 32; ++type) {
    eyas_hal_vulkan_block_t** next = &memory->blocks[type];
    while (*next) {
      eyas_hal_vulkan_block_t* block = *next;
      if (!is_empty(block)) {
        next = &block->next;
        continue;
      }
      *next = block->next;
      free_block(device, block);
    }
    memory->idle_bytes[type] = 0;
  }
}

// Adds a block that has room for `bytes`; near the end of memory one that has no more than that.
static eyas_status_t grow(eyas_hal_vulkan_device_t* device, uint32_t type, uint64_t bytes) {
  eyas_hal_vulkan_block_t** blocks = &device->memory.blocks[type];
  uint64_t wanted = *blocks ? (*blocks)->bytes * 2 : FIRST_BLOCK_BYTES;
  if (wanted > MAX_BLOCK_BYTES) wanted = MAX_BLOCK_BYTES;
  while (wanted < bytes * 2 && wanted < MAX_BLOCK_BYTES) wanted *= 2;
  if (wanted < bytes || bytes >= MAX_BLOCK_BYTES / 2) wanted = bytes;
  eyas_hal_vulkan_block_t* block = NULL;
  eyas_status_t status = new_block(device, type, wanted, &block);
  if (status) {
    eyas_status_free(status);
    free_idle(device);
    status = new_block(device, type, bytes, &block);
  }
  if (status) return status;
  block->next = *blocks;
  *blocks = block;
  device->memory.idle_bytes[type] += block->bytes;  // until a part of it is taken
  return NULL;
}

static eyas_status_t too_large(uint64_t bytes, const char* why) {
  return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED,
                          "out of memory: cannot allocate a buffer of %llu bytes on the device: %s",
                          (ull)bytes, why);
}

eyas_status_t eyas_hal_vulkan_range_allocate(eyas_hal_vulkan_device_t* device, uint32_t type,
                                             uint64_t length, eyas_hal_vulkan_range_t** out_range) {
  eyas_hal_vulkan_memory_t* memory = &device->memory;
  uint64_t bytes = 0;
  const uint64_t most = device->facts.v11.maxMemoryAllocationSize;
  const uint64_t most_buffer = device->facts.v13.maxBufferSize;  // 0 before Vulkan 1.3
  if (!eyas_checked_align(length ? length : 1, memory->alignment, &bytes) || bytes > most ||
      (most_buffer && bytes > most_buffer)) {
    return too_large(length, "that is more than it allows at once");
  }
  pthread_mutex_lock(&memory->mutex);
  eyas_status_t status = NULL;
  eyas_hal_vulkan_range_t* range = find_range(memory, type, bytes);
  if (!range) {
    status = grow(device, type, bytes);
    if (!status) range = find_range(memory, type, bytes);
  }
  pthread_mutex_unlock(&memory->mutex);
  if (status) {
    eyas_status_t full = too_large(length, eyas_status_message(status));
    eyas_status_free(status);
    return full;
  }
  *out_range = range;
  return range ? NULL : eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory");
}

// Joins a free range and the one behind it, if that is free.
static void join(eyas_hal_vulkan_range_t* range) {
  eyas_hal_vulkan_range_t* next = range ? range->next : NULL;
  if (!next || range->used || next->used) return;
  range->bytes += next->bytes;
  range->next = next->next;
  if (range->next) range->next->previous = range;
  free(next);
}

void eyas_hal_vulkan_range_free(eyas_hal_vulkan_device_t* device, eyas_hal_vulkan_range_t* range) {
  // In a child the mutex may be held by a thread that is not there.
  if (!range || eyas_hal_vulkan_is_foreign(device)) return;
  eyas_hal_vulkan_memory_t* memory = &device->memory;
  pthread_mutex_lock(&memory->mutex);
  eyas_hal_vulkan_block_t *block = range->block, *empty = NULL;
  range->used = false;
  join(range);
  join(range->previous);
  if (is_empty(block)) {
    uint64_t* idle_bytes = &memory->idle_bytes[block->type];
    if (*idle_bytes + block->bytes <= MAX_IDLE_BYTES) {
      *idle_bytes += block->bytes;
    } else {
      eyas_hal_vulkan_block_t** next = &memory->blocks[block->type];
      while (*next != block) next = &(*next)->next;
      *next = block->next;
      empty = block;
    }
  }
  pthread_mutex_unlock(&memory->mutex);
  if (empty) free_block(device, empty);
}

//===-- Memory that the host sees ---------------------------------------------------------------//

static VkMappedMemoryRange mapped(const eyas_hal_vulkan_device_t* device,
                                  const eyas_hal_vulkan_range_t* range, uint64_t offset,
                                  uint64_t length) {
  // Ranges start and end at whole atoms, so that rounding never touches a neighbour.
  const uint64_t atom = device->facts.properties.limits.nonCoherentAtomSize;
  const uint64_t begin = (range->offset + offset) / atom * atom;
  uint64_t end = (range->offset + offset + length + atom - 1) / atom * atom;
  if (end > range->block->bytes) end = range->block->bytes;
  return (VkMappedMemoryRange){.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
                               .memory = range->block->memory,
                               .offset = begin,
                               .size = end - begin};
}

eyas_status_t eyas_hal_vulkan_range_flush(eyas_hal_vulkan_device_t* device,
                                          const eyas_hal_vulkan_range_t* range) {
  if (range->block->coherent || !range->block->host || !eyas_hal_vulkan_is_ours(device)) {
    return NULL;
  }
  const VkMappedMemoryRange all = mapped(device, range, 0, range->bytes);
  return eyas_hal_vulkan_status(device->vk.FlushMappedMemoryRanges(device->handle, 1, &all),
                                "vkFlushMappedMemoryRanges");
}

eyas_status_t eyas_hal_vulkan_range_invalidate(eyas_hal_vulkan_device_t* device,
                                               const eyas_hal_vulkan_range_t* range,
                                               uint64_t offset, uint64_t length) {
  if (range->block->coherent || !range->block->host || length == 0 ||
      !eyas_hal_vulkan_is_ours(device)) {
    return NULL;
  }
  const VkMappedMemoryRange part = mapped(device, range, offset, length);
  return eyas_hal_vulkan_status(device->vk.InvalidateMappedMemoryRanges(device->handle, 1, &part),
                                "vkInvalidateMappedMemoryRanges");
}
