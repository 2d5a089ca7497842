// Buffers of the HAL: ranges of memory of the type that they ask for.
#include "hal/vulkan/vulkan.h"

static uint32_t bits_of(const eyas_hal_vulkan_memory_t* memory, uint32_t type) {
  const uint32_t flags = memory->properties.memoryTypes[type].propertyFlags;
  uint32_t bits = 0;
  if (type == memory->near_type) bits |= EYAS_HAL_MEMORY_DEVICE_LOCAL;
  if (type == memory->near_type && !memory->host_visible) return bits;
  if (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) bits |= EYAS_HAL_MEMORY_HOST_VISIBLE;
  if (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) bits |= EYAS_HAL_MEMORY_HOST_CACHED;
  return bits;
}

eyas_status_t eyas_hal_vulkan_buffer_allocate(eyas_hal_device_t* base, eyas_hal_buffer_t* buffer) {
  eyas_hal_vulkan_device_t* device = eyas_hal_vulkan_device(base);
  const eyas_hal_vulkan_memory_t* memory = &device->memory;
  if (eyas_hal_vulkan_is_foreign(device)) return eyas_hal_vulkan_foreign();
  const bool seen =
      (buffer->memory & (EYAS_HAL_MEMORY_HOST_VISIBLE | EYAS_HAL_MEMORY_HOST_CACHED)) ||
      (buffer->usage & EYAS_HAL_USAGE_MAP);
  uint32_t type = memory->near_type;
  if (seen && !memory->host_visible) {
    if (buffer->usage & EYAS_HAL_USAGE_DISPATCH || buffer->memory & EYAS_HAL_MEMORY_DEVICE_LOCAL) {
      return eyas_status_make(
          EYAS_STATUS_INCOMPATIBLE,
          "the device has no memory that the host can map and that is near it or bound to "
          "dispatches: ask for device-local memory without EYAS_HAL_USAGE_MAP, and read and write "
          "it by copies");
    }
    type = memory->host_type;
  }
  eyas_hal_vulkan_range_t* range = NULL;
  EYAS_RETURN_IF_ERROR(eyas_hal_vulkan_range_allocate(device, type, buffer->length, &range));
  buffer->payload = range;
  buffer->memory = bits_of(memory, type);
  const bool visible = memory->host_visible || seen;
  buffer->host = visible ? eyas_hal_vulkan_range_host(range) : NULL;
  return NULL;
}

eyas_status_t eyas_hal_vulkan_buffer_import(eyas_hal_device_t* base, eyas_hal_buffer_t* buffer,
                                            void* pointer) {
  (void)base, (void)buffer, (void)pointer;
  return eyas_status_make(EYAS_STATUS_INCOMPATIBLE,
                          "the device does not reach this memory of the host: allocate and write");
}

void eyas_hal_vulkan_buffer_free(eyas_hal_device_t* base, eyas_hal_buffer_t* buffer) {
  eyas_hal_vulkan_range_free(eyas_hal_vulkan_device(base), buffer->payload);
}

eyas_status_t eyas_hal_vulkan_buffer_invalidate(eyas_hal_device_t* base, eyas_hal_buffer_t* buffer,
                                                uint64_t offset, uint64_t length) {
  return eyas_hal_vulkan_range_invalidate(eyas_hal_vulkan_device(base), buffer->root->payload,
                                          buffer->offset + offset, length);
}

void eyas_hal_vulkan_buffer_flush(eyas_hal_device_t* base, eyas_hal_buffer_t* buffer) {
  // What the host wrote stays in its caches if this fails, and the next call says why.
  eyas_status_free(
      eyas_hal_vulkan_range_flush(eyas_hal_vulkan_device(base), buffer->root->payload));
}
