#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "hal/driver.h"

static eyas_status_t check_bits(const char* what, uint32_t bits, uint32_t allowed) {
  if ((bits & ~allowed) == 0) return NULL;
  return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT, "%s 0x%x has unknown bits; allowed: 0x%x",
                          what, bits, allowed);
}

eyas_status_t eyas_hal_buffer_check_range(const eyas_hal_buffer_t* buffer, uint64_t offset,
                                          uint64_t* length, const char* what) {
  uint64_t size = buffer->length;
  if (*length == EYAS_HAL_WHOLE && offset <= size) *length = size - offset;
  if (eyas_range_fits(offset, *length, size)) return NULL;
  return eyas_status_make(
      EYAS_STATUS_OUT_OF_RANGE, "%s: offset %llu + length %llu is beyond the buffer's %llu bytes",
      what, (unsigned long long)offset, (unsigned long long)*length, (unsigned long long)size);
}

static eyas_hal_buffer_t* new_buffer(eyas_hal_device_t* device, uint32_t usage, uint32_t access,
                                     uint64_t length) {
  eyas_hal_buffer_t* buffer = calloc(1, sizeof(*buffer));
  if (!buffer) return NULL;
  eyas_ref_initialize(&buffer->ref);
  buffer->device = eyas_hal_device_retain(device);
  buffer->root = buffer;
  buffer->length = length;
  buffer->usage = usage;
  buffer->access = access;
  return buffer;
}

static eyas_status_t discard(eyas_hal_buffer_t* buffer, eyas_status_t status) {
  eyas_hal_device_release(buffer->device);
  free(buffer);
  return status;
}

static eyas_status_t no_memory(void) {
  return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory for a buffer");
}

eyas_status_t eyas_hal_buffer_allocate(eyas_hal_device_t* device, uint32_t memory, uint32_t usage,
                                       uint64_t length, eyas_hal_buffer_t** out_buffer) {
  *out_buffer = NULL;
  EYAS_RETURN_IF_ERROR(check_bits(
      "memory type", memory,
      EYAS_HAL_MEMORY_DEVICE_LOCAL | EYAS_HAL_MEMORY_HOST_VISIBLE | EYAS_HAL_MEMORY_HOST_CACHED));
  EYAS_RETURN_IF_ERROR(check_bits("usage", usage, EYAS_HAL_USAGE_ALL));
  eyas_hal_buffer_t* buffer = new_buffer(device, usage, EYAS_HAL_ACCESS_READ_WRITE, length);
  if (!buffer) return no_memory();
  buffer->memory = memory;
  eyas_status_t status = device->vtable->buffer_allocate(device, buffer);
  if (status) return discard(buffer, status);
  *out_buffer = buffer;
  return NULL;
}

eyas_status_t eyas_hal_buffer_import(eyas_hal_device_t* device, uint32_t usage, uint32_t access,
                                     void* pointer, uint64_t length, eyas_hal_release_fn_t release,
                                     void* user, eyas_hal_buffer_t** out_buffer) {
  *out_buffer = NULL;
  EYAS_RETURN_IF_ERROR(check_bits("usage", usage, EYAS_HAL_USAGE_ALL));
  EYAS_RETURN_IF_ERROR(check_bits("access", access, EYAS_HAL_ACCESS_READ_WRITE));
  uint64_t end = 0;
  if ((!pointer && length > 0) || !eyas_checked_add((uint64_t)(uintptr_t)pointer, length, &end)) {
    return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT,
                            "cannot import %llu bytes at %p: not a range of memory",
                            (unsigned long long)length, pointer);
  }
  eyas_hal_buffer_t* buffer = new_buffer(device, usage, access, length);
  if (!buffer) return no_memory();
  eyas_status_t status = device->vtable->buffer_import(device, buffer, pointer);
  if (status) return discard(buffer, status);
  buffer->release = release;
  buffer->release_user = user;
  *out_buffer = buffer;
  return NULL;
}

eyas_status_t eyas_hal_buffer_subspan(eyas_hal_buffer_t* parent, uint64_t offset, uint64_t length,
                                      eyas_hal_buffer_t** out_buffer) {
  return eyas_hal_buffer_view(parent, parent->access, offset, length, out_buffer);
}

eyas_status_t eyas_hal_buffer_view(eyas_hal_buffer_t* parent, uint32_t access, uint64_t offset,
                                   uint64_t length, eyas_hal_buffer_t** out_buffer) {
  *out_buffer = NULL;
  EYAS_RETURN_IF_ERROR(eyas_hal_buffer_check_range(parent, offset, &length, "subspan"));
  eyas_hal_buffer_t* buffer =
      new_buffer(parent->device, parent->usage, parent->access & access, length);
  if (!buffer) return no_memory();
  buffer->memory = parent->memory;
  buffer->root = eyas_hal_buffer_retain(parent->root);
  buffer->offset = parent->offset + offset;
  buffer->host = parent->host ? (char*)parent->host + offset : NULL;
  *out_buffer = buffer;
  return NULL;
}

eyas_hal_buffer_t* eyas_hal_buffer_retain(eyas_hal_buffer_t* buffer) {
  eyas_ref_retain(&buffer->ref);
  return buffer;
}

void eyas_hal_buffer_release(eyas_hal_buffer_t* buffer) {
  if (!buffer || !eyas_ref_release(&buffer->ref)) return;
  if (buffer->root != buffer) {
    eyas_hal_buffer_release(buffer->root);
  } else {
    void* host = buffer->host;
    buffer->device->vtable->buffer_free(buffer->device, buffer);
    if (buffer->release) buffer->release(buffer->release_user, host, buffer->length);
  }
  eyas_hal_device_release(buffer->device);
  free(buffer);
}

eyas_hal_device_t* eyas_hal_buffer_device(const eyas_hal_buffer_t* buffer) {
  return buffer->device;
}

uint64_t eyas_hal_buffer_length(const eyas_hal_buffer_t* buffer) {
  return buffer->length;
}

uint32_t eyas_hal_buffer_access(const eyas_hal_buffer_t* buffer) {
  return buffer->access;
}

uint32_t eyas_hal_buffer_memory(const eyas_hal_buffer_t* buffer) {
  return buffer->memory;
}

static eyas_status_t check_access(const eyas_hal_buffer_t* buffer, uint32_t access) {
  EYAS_RETURN_IF_ERROR(check_bits("access", access, EYAS_HAL_ACCESS_READ_WRITE));
  if ((access & EYAS_HAL_ACCESS_WRITE) && !(buffer->access & EYAS_HAL_ACCESS_WRITE)) {
    return eyas_status_make(EYAS_STATUS_FAILED_PRECONDITION, "the buffer is read-only");
  }
  return NULL;
}

eyas_status_t eyas_hal_buffer_map(eyas_hal_buffer_t* buffer, uint32_t access, uint64_t offset,
                                  uint64_t length, void** out_pointer) {
  *out_pointer = NULL;
  EYAS_RETURN_IF_ERROR(eyas_hal_buffer_check_range(buffer, offset, &length, "map"));
  EYAS_RETURN_IF_ERROR(check_access(buffer, access));
  if (!(buffer->usage & EYAS_HAL_USAGE_MAP)) {
    return eyas_status_make(EYAS_STATUS_FAILED_PRECONDITION,
                            "cannot map a buffer made without EYAS_HAL_USAGE_MAP");
  }
  if (!buffer->host && length > 0) {
    return eyas_status_make(EYAS_STATUS_FAILED_PRECONDITION,
                            "cannot map memory that the host does not see; use "
                            "eyas_hal_buffer_read and eyas_hal_buffer_write");
  }
  const eyas_hal_device_vtable_t* vtable = buffer->device->vtable;
  if (vtable->buffer_invalidate && (access & EYAS_HAL_ACCESS_READ)) {
    EYAS_RETURN_IF_ERROR(vtable->buffer_invalidate(buffer->device, buffer, offset, length));
  }
  *out_pointer = buffer->host ? (char*)buffer->host + offset : NULL;
  return NULL;
}

void eyas_hal_buffer_unmap(eyas_hal_buffer_t* buffer) {
  const eyas_hal_device_vtable_t* vtable = buffer->device->vtable;
  if (vtable->buffer_flush) vtable->buffer_flush(buffer->device, buffer);
}

// Submits a copy that brings `done` to `value`.
static eyas_status_t submit_copy(eyas_hal_buffer_t* source, uint64_t source_offset,
                                 eyas_hal_buffer_t* target, uint64_t target_offset, uint64_t length,
                                 eyas_hal_semaphore_t* done, uint64_t value) {
  eyas_hal_device_t* device = source->device;
  eyas_hal_command_buffer_t* commands = NULL;
  EYAS_RETURN_IF_ERROR(eyas_hal_command_buffer_create(device, 0, &commands));
  eyas_status_t status = eyas_hal_command_buffer_copy(
      commands, (eyas_hal_binding_t){.buffer = source, .offset = source_offset, .length = length},
      (eyas_hal_binding_t){.buffer = target, .offset = target_offset, .length = length});
  if (!status) status = eyas_hal_command_buffer_end(commands);
  const eyas_hal_timepoint_t signal = {done, value};
  if (!status) {
    status = eyas_hal_device_submit(
        device,
        &(eyas_hal_submission_t){.commands = commands, .signals = &signal, .signal_count = 1});
  }
  eyas_hal_command_buffer_release(commands);
  return status;
}

static eyas_status_t copy_now(eyas_hal_buffer_t* source, uint64_t source_offset,
                              eyas_hal_buffer_t* target, uint64_t target_offset, uint64_t length) {
  eyas_hal_semaphore_t* done = NULL;
  EYAS_RETURN_IF_ERROR(eyas_hal_semaphore_create(source->device, 0, &done));
  eyas_status_t status = submit_copy(source, source_offset, target, target_offset, length, done, 1);
  if (!status) status = eyas_hal_semaphore_wait(done, 1, EYAS_HAL_FOREVER);
  eyas_hal_semaphore_release(done);
  return status;
}

//===-- Memory that the host does not see -------------------------------------------------------//

// It is reached through windows of this size. There are two, so that the host fills or empties one
// while the device copies the other.
#define WINDOW_BYTES ((uint64_t)8 << 20)

typedef struct staging_t {
  eyas_hal_buffer_t* buffer;
  uint64_t offset;
  uint64_t length;
  char* data;
  eyas_hal_buffer_t* windows[2];
  eyas_hal_semaphore_t* done;  // how many pieces the device has copied
} staging_t;

static uint64_t piece_bytes(const staging_t* s, uint64_t piece) {
  const uint64_t left = s->length - piece * WINDOW_BYTES;
  return left < WINDOW_BYTES ? left : WINDOW_BYTES;
}

static eyas_status_t write_pieces(const staging_t* s, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    eyas_hal_buffer_t* window = s->windows[i % 2];
    const uint64_t at = i * WINDOW_BYTES, bytes = piece_bytes(s, i);
    if (i >= 2) EYAS_RETURN_IF_ERROR(eyas_hal_semaphore_wait(s->done, i - 1, EYAS_HAL_FOREVER));
    EYAS_RETURN_IF_ERROR(eyas_hal_buffer_write(window, 0, s->data + at, bytes));
    EYAS_RETURN_IF_ERROR(submit_copy(window, 0, s->buffer, s->offset + at, bytes, s->done, i + 1));
  }
  return eyas_hal_semaphore_wait(s->done, count, EYAS_HAL_FOREVER);
}

static eyas_status_t read_pieces(const staging_t* s, uint64_t count) {
  for (uint64_t i = 0; i <= count; ++i) {
    if (i < count) {
      EYAS_RETURN_IF_ERROR(submit_copy(s->buffer, s->offset + i * WINDOW_BYTES, s->windows[i % 2],
                                       0, piece_bytes(s, i), s->done, i + 1));
    }
    if (i == 0) continue;
    EYAS_RETURN_IF_ERROR(eyas_hal_semaphore_wait(s->done, i, EYAS_HAL_FOREVER));
    EYAS_RETURN_IF_ERROR(eyas_hal_buffer_read(
        s->windows[(i - 1) % 2], 0, s->data + (i - 1) * WINDOW_BYTES, piece_bytes(s, i - 1)));
  }
  return NULL;
}

static eyas_status_t transfer_staged(eyas_hal_buffer_t* buffer, bool write, uint64_t offset,
                                     char* data, uint64_t length) {
  staging_t s = {.buffer = buffer, .offset = offset, .length = length, .data = data};
  const uint64_t count = (length + WINDOW_BYTES - 1) / WINDOW_BYTES;
  eyas_status_t status = eyas_hal_semaphore_create(buffer->device, 0, &s.done);
  for (uint64_t i = 0; i < 2 && i < count && !status; ++i) {
    status = eyas_hal_buffer_allocate(buffer->device, EYAS_HAL_MEMORY_HOST_VISIBLE,
                                      EYAS_HAL_USAGE_TRANSFER | EYAS_HAL_USAGE_MAP,
                                      piece_bytes(&s, i), &s.windows[i]);
  }
  if (!status) status = write ? write_pieces(&s, count) : read_pieces(&s, count);
  for (int i = 0; i < 2; ++i) eyas_hal_buffer_release(s.windows[i]);
  eyas_hal_semaphore_release(s.done);
  return status;
}

static eyas_status_t transfer(eyas_hal_buffer_t* buffer, uint32_t access, uint64_t offset,
                              void* data, uint64_t length) {
  if (length == EYAS_HAL_WHOLE) {
    return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT,
                            "a transfer to or from host memory needs its length");
  }
  EYAS_RETURN_IF_ERROR(eyas_hal_buffer_check_range(buffer, offset, &length, "transfer"));
  EYAS_RETURN_IF_ERROR(check_access(buffer, access));
  if (length == 0) return NULL;
  const bool write = access & EYAS_HAL_ACCESS_WRITE;
  const eyas_hal_device_vtable_t* vtable = buffer->device->vtable;
  if (buffer->host) {
    char* host = (char*)buffer->host + offset;
    if (!write && vtable->buffer_invalidate) {
      EYAS_RETURN_IF_ERROR(vtable->buffer_invalidate(buffer->device, buffer, offset, length));
    }
    memmove(write ? host : data, write ? data : host, length);
    if (write) eyas_hal_buffer_unmap(buffer);
    return NULL;
  }
  return transfer_staged(buffer, write, offset, data, length);
}

eyas_status_t eyas_hal_buffer_write(eyas_hal_buffer_t* buffer, uint64_t offset, const void* data,
                                    uint64_t length) {
  return transfer(buffer, EYAS_HAL_ACCESS_WRITE, offset, (void*)(uintptr_t)data, length);
}

eyas_status_t eyas_hal_buffer_read(eyas_hal_buffer_t* buffer, uint64_t offset, void* data,
                                   uint64_t length) {
  return transfer(buffer, EYAS_HAL_ACCESS_READ, offset, data, length);
}

eyas_status_t eyas_hal_buffer_copy(eyas_hal_buffer_t* source, uint64_t source_offset,
                                   eyas_hal_buffer_t* target, uint64_t target_offset,
                                   uint64_t length) {
  EYAS_RETURN_IF_ERROR(eyas_hal_buffer_check_range(source, source_offset, &length, "source"));
  EYAS_RETURN_IF_ERROR(eyas_hal_buffer_check_range(target, target_offset, &length, "target"));
  EYAS_RETURN_IF_ERROR(check_access(target, EYAS_HAL_ACCESS_WRITE));
  if (source->device != target->device) {
    return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT, "the buffers are of two devices");
  }
  if (length == 0) return NULL;
  if (!source->host || !target->host) {
    return copy_now(source, source_offset, target, target_offset, length);
  }
  return eyas_hal_buffer_write(target, target_offset, (char*)source->host + source_offset, length);
}
