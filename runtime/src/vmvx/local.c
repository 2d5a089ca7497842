#include "vmvx/local.h"

#include <stdlib.h>
#include <string.h>

#include "vmvx/memory.h"
#include "vmvx/scalar.h"

#define LINE_BYTES 64
#define MAX_PREFETCH_LINES 64
// Bytes that count as one step of the budget.
#define BYTES_PER_STEP 64

static uint32_t first_local(const eyas_vmvx_frame_t* f) {
  return f->function->binding_count + 1;
}

// Memory from the heap starts with how much it is.
#define HEAP_HEADER_BYTES sizeof(uint64_t)

// Memory that was given back before later ones, and is large enough: a loop that carries buffers
// gives back those of the last round after it has taken those of the next.
static bool take_again(eyas_vmvx_frame_t* f, uint64_t bytes, int64_t* out_address) {
  const uint32_t first = first_local(f), count = f->buffer_count - first;
  for (uint32_t word = 0; word * 64 < count; ++word) {
    for (uint64_t bits = f->released[word]; bits; bits &= bits - 1) {
      uint32_t number = word * 64 + (uint32_t)__builtin_ctzll(bits);
      if (number >= count) break;  // left from an earlier time
      eyas_vmvx_buffer_t* buffer = &f->buffers[first + number];
      if (buffer->capacity < bytes) continue;
      f->released[word] &= ~((uint64_t)1 << number % 64);
      buffer->size = buffer->write_size = bytes;
      *out_address = (int64_t)((uint64_t)(first + number) << EYAS_VMVX_BUFFER_SHIFT);
      return true;
    }
  }
  return false;
}

static bool spend(uint64_t* budget, uint64_t bytes) {
  uint64_t steps = bytes / BYTES_PER_STEP;
  if (steps >= *budget) return false;
  *budget -= steps;
  return true;
}

int eyas_vmvx_local_take(eyas_vmvx_frame_t* f, int64_t bytes, uint64_t* budget,
                         int64_t* out_address) {
  uint32_t number = f->buffer_count - first_local(f);
  if (bytes < 0 || (uint64_t)bytes > EYAS_VMVX_MAX_LOCAL_BYTES) return EYAS_VMVX_FAIL_LOCAL;
  if (take_again(f, (uint64_t)bytes, out_address)) return 0;
  if (number >= EYAS_VMVX_MAX_LOCALS) return EYAS_VMVX_FAIL_LOCAL;
  uint64_t taken = ((uint64_t)bytes + LINE_BYTES - 1) & ~(uint64_t)(LINE_BYTES - 1);
  eyas_vmvx_buffer_t buffer = {
      .size = (uint64_t)bytes, .write_size = (uint64_t)bytes, .capacity = taken};
  if (taken <= (uint64_t)(f->local_end - f->local_at)) {
    buffer.base = f->local_at;
    f->local_at += taken;
  } else {
    if (taken > EYAS_VMVX_MAX_LOCAL_BYTES - f->local_heap_bytes) return EYAS_VMVX_FAIL_LOCAL;
    if (!spend(budget, taken)) return EYAS_VMVX_FAIL_BUDGET;
    // Zeros, not what another module has left there.
    char* heap = calloc(1, taken + HEAP_HEADER_BYTES + LINE_BYTES);
    if (!heap) return EYAS_VMVX_FAIL_MEMORY;
    memcpy(heap, &taken, sizeof(taken));
    f->local_heap_bytes += taken;
    buffer.heap = heap;
    buffer.base = heap + HEAP_HEADER_BYTES;
    buffer.base += -(uintptr_t)buffer.base & (LINE_BYTES - 1);
  }
  *out_address = (int64_t)((uint64_t)f->buffer_count << EYAS_VMVX_BUFFER_SHIFT);
  f->released[number / 64] &= ~((uint64_t)1 << number % 64);
  f->buffers[f->buffer_count++] = buffer;
  return 0;
}

static void drop_last(eyas_vmvx_frame_t* f) {
  eyas_vmvx_buffer_t* buffer = &f->buffers[--f->buffer_count];
  if (buffer->heap) {
    uint64_t taken = 0;
    memcpy(&taken, buffer->heap, sizeof(taken));
    f->local_heap_bytes -= taken;
    free(buffer->heap);
  } else {
    f->local_at = buffer->base;
  }
}

void eyas_vmvx_local_release(eyas_vmvx_frame_t* f, int64_t address) {
  uint32_t first = first_local(f);
  uint64_t number = ((uint64_t)address >> EYAS_VMVX_BUFFER_SHIFT) - first;
  if (number >= f->buffer_count - first) return;  // not local memory
  f->released[number / 64] |= (uint64_t)1 << number % 64;
  f->buffers[first + number].size = f->buffers[first + number].write_size = 0;
  while (f->buffer_count > first) {
    uint32_t last = f->buffer_count - 1 - first;
    if (!(f->released[last / 64] >> last % 64 & 1)) break;
    drop_last(f);
  }
}

void eyas_vmvx_local_reset(eyas_vmvx_frame_t* f) {
  while (f->buffer_count > first_local(f)) drop_last(f);
}

static int write_failure(const eyas_vmvx_frame_t* f, int64_t address,
                         const eyas_vmvx_span_t* span) {
  return eyas_vmvx_reach(f, address, span, false) ? EYAS_VMVX_FAIL_READ_ONLY
                                                  : EYAS_VMVX_FAIL_BOUNDS;
}

int eyas_vmvx_copy(eyas_vmvx_frame_t* f, int64_t target, int64_t source, int64_t bytes,
                   uint64_t* budget) {
  eyas_vmvx_span_t span = {0, bytes, bytes < 0 || bytes > EYAS_VMVX_MAX_REACH};
  const char* from = eyas_vmvx_reach(f, source, &span, false);
  char* to = eyas_vmvx_reach(f, target, &span, true);
  if (!from) return EYAS_VMVX_FAIL_BOUNDS;
  if (!to) return write_failure(f, target, &span);
  if (!spend(budget, (uint64_t)bytes)) return EYAS_VMVX_FAIL_BUDGET;
  if (bytes) memmove(to, from, (size_t)bytes);
  return 0;
}

int eyas_vmvx_fill(eyas_vmvx_frame_t* f, int64_t target, int64_t value, int64_t count,
                   unsigned memory, uint64_t* budget) {
  static const uint8_t sizes[EYAS_VMVX_MEMORY_COUNT] = {EYAS_VMVX_MEMORY_BYTES};
  const size_t size = sizes[memory];
  eyas_vmvx_span_t span = {0, 0, count < 0};
  eyas_vmvx_span_add(&span, count, (int64_t)size);
  char* to = eyas_vmvx_reach(f, target, &span, true);
  if (!to) return write_failure(f, target, &span);
  if (!spend(budget, (uint64_t)count * size)) return EYAS_VMVX_FAIL_BUDGET;
  if (memory == EYAS_VMVX_MEMORY_F16) value = eyas_vmvx_to_f16(value);
  if (memory == EYAS_VMVX_MEMORY_BF16) value = eyas_vmvx_to_bf16(value);
  char block[LINE_BYTES];
  for (size_t i = 0; i < LINE_BYTES; i += size) memcpy(block + i, &value, size);  // little-endian
  uint64_t left = (uint64_t)count * size;
  for (; left >= LINE_BYTES; left -= LINE_BYTES, to += LINE_BYTES) memcpy(to, block, LINE_BYTES);
  if (left) memcpy(to, block, left);
  return 0;
}

void eyas_vmvx_prefetch(const eyas_vmvx_frame_t* f, uint64_t address, int64_t bytes) {
  uint64_t number = address >> EYAS_VMVX_BUFFER_SHIFT, offset = address & EYAS_VMVX_OFFSET_MASK;
  if (number >= f->buffer_count || bytes <= 0 || offset >= f->buffers[number].size) return;
  uint64_t there = f->buffers[number].size - offset;
  uint64_t length = (uint64_t)bytes < there ? (uint64_t)bytes : there;
  if (length > MAX_PREFETCH_LINES * LINE_BYTES) length = MAX_PREFETCH_LINES * LINE_BYTES;
  const char* memory = f->buffers[number].base + offset;
  for (uint64_t i = 0; i < length; i += LINE_BYTES) __builtin_prefetch(memory + i);
}
