// Memory that only the queue reaches: a reserved region whose parts are given out first fit.
#define _GNU_SOURCE 1
#include <stdlib.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "hal/far/far.h"

#define REGION_BYTES ((uint64_t)1 << 36)  // of addresses; pages come with the first write

eyas_status_t eyas_hal_far_memory_create(eyas_hal_far_memory_t* memory) {
  eyas_hal_far_block_t* all = calloc(1, sizeof(*all));
  void* region =
      all ? mmap(NULL, REGION_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
          : MAP_FAILED;
  if (region == MAP_FAILED) {
    free(all);
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED,
                            "cannot reserve %llu bytes of addresses for the memory of a device",
                            (unsigned long long)REGION_BYTES);
  }
  all->bytes = REGION_BYTES;
  memory->region = region;
  memory->first = all;
  pthread_mutex_init(&memory->mutex, NULL);
  return NULL;
}

void eyas_hal_far_memory_destroy(eyas_hal_far_memory_t* memory) {
  for (eyas_hal_far_block_t* block = memory->first; block;) {
    eyas_hal_far_block_t* next = block->next;
    free(block);
    block = next;
  }
  munmap(memory->region, REGION_BYTES);
}

static uint64_t page_bytes(void) {
  return (uint64_t)sysconf(_SC_PAGESIZE);
}

static void protect(eyas_hal_far_memory_t* memory, int protection) {
  pthread_mutex_lock(&memory->mutex);
  uint64_t bytes = (memory->touched + page_bytes() - 1) / page_bytes() * page_bytes();
  pthread_mutex_unlock(&memory->mutex);
  if (bytes && mprotect(memory->region, bytes, protection) != 0) abort();
}

void eyas_hal_far_memory_open(eyas_hal_far_memory_t* memory) {
  protect(memory, PROT_READ | PROT_WRITE);
}

void eyas_hal_far_memory_close(eyas_hal_far_memory_t* memory) {
  protect(memory, PROT_NONE);
}

// Takes `bytes` from the start of a free block; the rest becomes a block of its own.
static bool take(eyas_hal_far_block_t* block, uint64_t bytes) {
  if (block->bytes > bytes) {
    eyas_hal_far_block_t* rest = calloc(1, sizeof(*rest));
    if (!rest) return false;
    rest->offset = block->offset + bytes;
    rest->bytes = block->bytes - bytes;
    rest->previous = block;
    rest->next = block->next;
    if (rest->next) rest->next->previous = rest;
    block->next = rest;
    block->bytes = bytes;
  }
  block->used = true;
  return true;
}

static eyas_hal_far_block_t* find_block(eyas_hal_far_memory_t* memory, uint64_t bytes) {
  eyas_hal_far_block_t* block = memory->first;
  while (block && (block->used || block->bytes < bytes)) block = block->next;
  if (!block || !take(block, bytes)) return NULL;
  uint64_t end = block->offset + bytes;
  if (end > memory->touched) memory->touched = end;
  return block;
}

// Joins a free block and the one behind it, if that is free.
static void join(eyas_hal_far_block_t* block) {
  eyas_hal_far_block_t* next = block ? block->next : NULL;
  if (!next || block->used || next->used) return;
  block->bytes += next->bytes;
  block->next = next->next;
  if (block->next) block->next->previous = block;
  free(next);
}

static eyas_status_t no_memory(const eyas_hal_buffer_t* buffer) {
  return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED,
                          "out of memory: cannot allocate a buffer of %llu bytes",
                          (unsigned long long)buffer->length);
}

// What the host sees, for transfers.
static eyas_status_t allocate_staging(eyas_hal_buffer_t* buffer, uint64_t bytes) {
  if (buffer->usage & EYAS_HAL_USAGE_DISPATCH || buffer->memory & EYAS_HAL_MEMORY_DEVICE_LOCAL) {
    return eyas_status_make(EYAS_STATUS_INCOMPATIBLE,
                            "the device has no memory that the host can map and that is near it or "
                            "bound to dispatches: ask for device-local memory without "
                            "EYAS_HAL_USAGE_MAP, and read and write it by copies");
  }
  buffer->host = bytes <= PTRDIFF_MAX ? aligned_alloc(EYAS_HAL_BUFFER_ALIGNMENT, bytes) : NULL;
  buffer->payload = buffer->host;
  buffer->memory = EYAS_HAL_MEMORY_HOST_VISIBLE | EYAS_HAL_MEMORY_HOST_CACHED;
  return buffer->host ? NULL : no_memory(buffer);
}

eyas_status_t eyas_hal_far_buffer_allocate(eyas_hal_device_t* base, eyas_hal_buffer_t* buffer) {
  eyas_hal_far_memory_t* memory = &eyas_hal_far_device(base)->memory;
  uint64_t bytes = 0;
  if (!eyas_checked_align(buffer->length ? buffer->length : 1, EYAS_HAL_BUFFER_ALIGNMENT, &bytes)) {
    return no_memory(buffer);
  }
  const uint32_t seen = EYAS_HAL_MEMORY_HOST_VISIBLE | EYAS_HAL_MEMORY_HOST_CACHED;
  if ((buffer->memory & seen) || (buffer->usage & EYAS_HAL_USAGE_MAP)) {
    return allocate_staging(buffer, bytes);
  }
  pthread_mutex_lock(&memory->mutex);
  buffer->payload = find_block(memory, bytes);
  pthread_mutex_unlock(&memory->mutex);
  buffer->memory = EYAS_HAL_MEMORY_DEVICE_LOCAL;
  return buffer->payload ? NULL : no_memory(buffer);
}

eyas_status_t eyas_hal_far_buffer_import(eyas_hal_device_t* base, eyas_hal_buffer_t* buffer,
                                         void* pointer) {
  (void)base, (void)buffer, (void)pointer;
  return eyas_status_make(EYAS_STATUS_INCOMPATIBLE,
                          "the device does not reach memory of the host: allocate and write");
}

void eyas_hal_far_buffer_free(eyas_hal_device_t* base, eyas_hal_buffer_t* buffer) {
  eyas_hal_far_device_t* device = eyas_hal_far_device(base);
  if (buffer->host) {
    free(buffer->payload);
    return;
  }
  if (eyas_hal_far_is_foreign(device))
    return;  // the mutex may be held by a thread that is not here
  eyas_hal_far_block_t* block = buffer->payload;
  pthread_mutex_lock(&device->memory.mutex);
  block->used = false;
  join(block);
  join(block->previous);
  pthread_mutex_unlock(&device->memory.mutex);
}

char* eyas_hal_far_address(eyas_hal_far_device_t* device, const eyas_hal_buffer_t* buffer,
                           uint64_t offset) {
  const eyas_hal_buffer_t* root = buffer->root;
  if (root->host) return (char*)root->host + buffer->offset + offset;
  const eyas_hal_far_block_t* block = root->payload;
  return device->memory.region + block->offset + buffer->offset + offset;
}
