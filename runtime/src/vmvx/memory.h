// Addresses to pointers. An address is a buffer's number and an offset; nothing is read or written
// without passing here.
#ifndef EYAS_VMVX_MEMORY_H_
#define EYAS_VMVX_MEMORY_H_

#include "vmvx/function.h"

#define EYAS_VMVX_OFFSET_MASK (((uint64_t)1 << EYAS_VMVX_BUFFER_SHIFT) - 1)
// Buffers are smaller than this, so offsets and what is added to them never wrap around.
#define EYAS_VMVX_MAX_BUFFER_BYTES ((uint64_t)1 << 47)
#define EYAS_VMVX_MAX_REACH ((int64_t)1 << 56)

#define EYAS_VMVX_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

// The bytes [first, end) around an address, relative to it.
typedef struct eyas_vmvx_span_t {
  int64_t first, end;
  bool too_far;
} eyas_vmvx_span_t;

// Widens a span by `steps` steps of `bytes`. 64 of these do not overflow.
static inline void eyas_vmvx_span_add(eyas_vmvx_span_t* span, int64_t steps, int64_t bytes) {
  int64_t reach = 0;
  if (EYAS_VMVX_UNLIKELY(__builtin_mul_overflow(steps, bytes, &reach) ||
                         reach > EYAS_VMVX_MAX_REACH || reach < -EYAS_VMVX_MAX_REACH)) {
    span->too_far = true;
    return;
  }
  span->first += reach < 0 ? reach : 0;
  span->end += reach > 0 ? reach : 0;
}

// `bytes` bytes at an address, for reading; NULL when they are not inside a buffer.
static inline char* eyas_vmvx_read(const eyas_vmvx_buffer_t* buffers, uint32_t count,
                                   uint64_t address, uint64_t bytes) {
  uint64_t number = address >> EYAS_VMVX_BUFFER_SHIFT, offset = address & EYAS_VMVX_OFFSET_MASK;
  if (EYAS_VMVX_UNLIKELY(number >= count)) return NULL;
  const eyas_vmvx_buffer_t* buffer = &buffers[number];
  return EYAS_VMVX_UNLIKELY(offset + bytes > buffer->size) ? NULL : buffer->base + offset;
}

static inline char* eyas_vmvx_write(const eyas_vmvx_buffer_t* buffers, uint32_t count,
                                    uint64_t address, uint64_t bytes) {
  uint64_t number = address >> EYAS_VMVX_BUFFER_SHIFT, offset = address & EYAS_VMVX_OFFSET_MASK;
  if (EYAS_VMVX_UNLIKELY(number >= count)) return NULL;
  const eyas_vmvx_buffer_t* buffer = &buffers[number];
  return EYAS_VMVX_UNLIKELY(offset + bytes > buffer->write_size) ? NULL : buffer->base + offset;
}

// The pointer of an address around which a span is accessed; NULL when some of it is outside.
static inline char* eyas_vmvx_reach(const eyas_vmvx_frame_t* frame, int64_t address,
                                    const eyas_vmvx_span_t* span, bool write) {
  uint64_t number = (uint64_t)address >> EYAS_VMVX_BUFFER_SHIFT;
  int64_t offset = (int64_t)((uint64_t)address & EYAS_VMVX_OFFSET_MASK);
  if (EYAS_VMVX_UNLIKELY(number >= frame->buffer_count || span->too_far)) return NULL;
  const eyas_vmvx_buffer_t* buffer = &frame->buffers[number];
  int64_t size = (int64_t)(write ? buffer->write_size : buffer->size);
  if (EYAS_VMVX_UNLIKELY(offset + span->first < 0 || offset + span->end > size)) return NULL;
  return buffer->base + offset;
}

#endif  // EYAS_VMVX_MEMORY_H_
