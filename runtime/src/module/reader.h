// A cursor over untrusted little-endian bytes. A read past the end sets `failed` and gives zero, so
// that a parser may read a record and check once. And the bump memory that parsed records live in.
#ifndef EYAS_MODULE_READER_H_
#define EYAS_MODULE_READER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct eyas_reader_t {
  const uint8_t* data;
  size_t at;
  size_t end;
  bool failed;
} eyas_reader_t;

static inline size_t eyas_reader_left(const eyas_reader_t* r) {
  return r->end - r->at;
}

static inline const uint8_t* eyas_read_bytes(eyas_reader_t* r, size_t count) {
  if (r->failed || count > r->end - r->at) {
    r->failed = true;
    return NULL;
  }
  r->at += count;
  return r->data + (r->at - count);
}

static inline uint32_t eyas_load_u16(const uint8_t* p) {
  return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static inline uint32_t eyas_load_u32(const uint8_t* p) {
  return eyas_load_u16(p) | eyas_load_u16(p + 2) << 16;
}

static inline uint64_t eyas_load_u64(const uint8_t* p) {
  return (uint64_t)eyas_load_u32(p) | (uint64_t)eyas_load_u32(p + 4) << 32;
}

static inline uint32_t eyas_read_u16(eyas_reader_t* r) {
  const uint8_t* p = eyas_read_bytes(r, 2);
  return p ? eyas_load_u16(p) : 0;
}

static inline uint32_t eyas_read_u32(eyas_reader_t* r) {
  const uint8_t* p = eyas_read_bytes(r, 4);
  return p ? eyas_load_u32(p) : 0;
}

static inline uint64_t eyas_read_u64(eyas_reader_t* r) {
  const uint8_t* p = eyas_read_bytes(r, 8);
  return p ? eyas_load_u64(p) : 0;
}

static inline int64_t eyas_read_i64(eyas_reader_t* r) {
  return (int64_t)eyas_read_u64(r);
}

// A count of records that take at least `minimum_bytes` each: more than the rest of the section can
// hold is a failure, so that no count makes us allocate much more than the file itself.
static inline uint32_t eyas_read_count(eyas_reader_t* r, size_t minimum_bytes) {
  uint32_t count = eyas_read_u32(r);
  if (!r->failed && count > eyas_reader_left(r) / minimum_bytes) r->failed = true;
  return r->failed ? 0 : count;
}

// Memory that is freed all at once.
typedef struct eyas_bump_chunk_t eyas_bump_chunk_t;
typedef struct eyas_bump_t {
  eyas_bump_chunk_t* chunks;
  size_t left;
} eyas_bump_t;

// Zeroed, 16-byte aligned; NULL when there is no memory or count * size overflows.
void* eyas_bump_allocate(eyas_bump_t* bump, size_t count, size_t size);
void eyas_bump_free(eyas_bump_t* bump);

// A length-prefixed text, copied and zero-terminated. A NUL inside is a failure. Never NULL.
const char* eyas_read_text(eyas_reader_t* r, eyas_bump_t* bump);

#endif  // EYAS_MODULE_READER_H_
