#include "module/reader.h"

#include <stdlib.h>

struct eyas_bump_chunk_t {
  _Alignas(16) eyas_bump_chunk_t* next;
  size_t used;
  uint8_t data[];
};

#define CHUNK_BYTES ((size_t)16 * 1024)

void* eyas_bump_allocate(eyas_bump_t* bump, size_t count, size_t size) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2) return NULL;
  bytes = (bytes + 15) & ~(size_t)15;
  if (bytes == 0) bytes = 16;
  if (bytes > bump->left) {
    size_t capacity = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
    eyas_bump_chunk_t* chunk = calloc(1, sizeof(*chunk) + capacity);
    if (!chunk) return NULL;
    chunk->next = bump->chunks;
    bump->chunks = chunk;
    bump->left = capacity;
  }
  void* pointer = bump->chunks->data + bump->chunks->used;
  bump->chunks->used += bytes;
  bump->left -= bytes;
  return pointer;
}

void eyas_bump_free(eyas_bump_t* bump) {
  while (bump->chunks) {
    eyas_bump_chunk_t* next = bump->chunks->next;
    free(bump->chunks);
    bump->chunks = next;
  }
  bump->left = 0;
}

const char* eyas_read_text(eyas_reader_t* r, eyas_bump_t* bump) {
  uint32_t length = eyas_read_u32(r);
  const uint8_t* bytes = eyas_read_bytes(r, length);
  if (!bytes) return "";
  char* text = memchr(bytes, 0, length) ? NULL : eyas_bump_allocate(bump, (size_t)length + 1, 1);
  if (!text) {
    r->failed = true;
    return "";
  }
  memcpy(text, bytes, length);
  return text;
}
