// The `.eyas` container: a zip of stored entries that the runtime reads without unzipping.
//
// The first entry is index.bin, whose bytes start at offset 64 of the file. It lists every other
// entry with its place and SHA-256, and ends with the SHA-256 of itself. So one hash tells that the
// index is whole, one hash each that the entries are, and the zip's own structures, which are there
// for people and their tools, are never parsed here. src/eyas/module/container.py writes it.
#ifndef EYAS_MODULE_CONTAINER_H_
#define EYAS_MODULE_CONTAINER_H_

#include "eyas/module.h"
#include "module/reader.h"

#define EYAS_CONTAINER_VERSION 1u      // one program
#define EYAS_CONTAINER_FAT_VERSION 2u  // several, in variants/, see variants.h
#define EYAS_CONTAINER_INDEX_OFFSET 64u

typedef struct eyas_entry_t {
  const char* name;
  const uint8_t* data;
  uint64_t length;
  const uint8_t* digest;  // 32 bytes
} eyas_entry_t;

typedef struct eyas_container_t {
  const uint8_t* data;
  size_t length;
  eyas_entry_t* entries;
  uint32_t entry_count;
  uint32_t version;
  eyas_bump_t memory;
} eyas_container_t;

// Reads the index. `data` is borrowed. With `check_digest` off a damaged index may still parse, and
// is still safe to use.
eyas_status_t eyas_container_parse(const uint8_t* data, size_t length, bool check_digest,
                                   eyas_container_t* container);
void eyas_container_free(eyas_container_t* container);

// NULL when there is no such entry.
const eyas_entry_t* eyas_container_find(const eyas_container_t* container, const char* name);

// Fails with CORRUPT when the entry's bytes are not those that were written.
eyas_status_t eyas_container_check(const eyas_entry_t* entry);

#endif  // EYAS_MODULE_CONTAINER_H_
