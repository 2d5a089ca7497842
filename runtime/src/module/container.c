#include "module/container.h"

#include "base/checked.h"
#include "base/sha256.h"

#define INDEX_NAME "index.bin"
#define INDEX_HEADER_BYTES 20u  // magic, version, entry count, length
#define ENTRY_MINIMUM_BYTES (32u + 8u + 8u + 4u)

static eyas_status_t not_a_module(const char* why) {
  return eyas_status_make(EYAS_STATUS_CORRUPT, "not an .eyas module: %s", why);
}

static eyas_status_t parse(const uint8_t* data, size_t length, bool check_digest,
                           eyas_container_t* c) {
  if (length < EYAS_CONTAINER_INDEX_OFFSET + INDEX_HEADER_BYTES + 32) {
    return eyas_status_make(EYAS_STATUS_CORRUPT, "not an .eyas module: it has only %zu bytes",
                            length);
  }
  if (memcmp(data, "PK\3\4", 4) != 0) return not_a_module("it does not start as a zip does");
  const uint8_t* index = data + EYAS_CONTAINER_INDEX_OFFSET;
  if (memcmp(data + 30, INDEX_NAME, sizeof(INDEX_NAME) - 1) != 0 ||
      memcmp(index, "EYASIDX", 8) != 0) {
    return not_a_module(
        "the zip's first entry is not index.bin (was it packed again by another tool?)");
  }
  uint32_t version = eyas_load_u32(index + 8);
  if (version != EYAS_CONTAINER_VERSION && version != EYAS_CONTAINER_FAT_VERSION) {
    return eyas_status_make(
        EYAS_STATUS_INCOMPATIBLE,
        "the module has container version %u, this runtime reads versions %u and "
        "%u: recompile the model, or update the runtime",
        version, EYAS_CONTAINER_VERSION, EYAS_CONTAINER_FAT_VERSION);
  }
  c->version = version;
  uint32_t count = eyas_load_u32(index + 12);
  uint32_t index_length = eyas_load_u32(index + 16);  // with the digest at its end
  if (index_length < INDEX_HEADER_BYTES + 32 ||
      index_length > length - EYAS_CONTAINER_INDEX_OFFSET ||
      count > (index_length - INDEX_HEADER_BYTES - 32) / ENTRY_MINIMUM_BYTES) {
    return not_a_module("its index is damaged");
  }
  if (check_digest) {
    uint8_t digest[32];
    eyas_sha256(index, index_length - 32, digest);
    if (memcmp(digest, index + index_length - 32, 32) != 0) {
      return not_a_module("its index was altered after it was written");
    }
  }
  c->data = data;
  c->length = length;
  c->entries = eyas_bump_allocate(&c->memory, count, sizeof(*c->entries));
  if (!c->entries) {
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "no memory for a module's index");
  }
  eyas_reader_t r = {index, INDEX_HEADER_BYTES, index_length - 32, false};
  for (uint32_t i = 0; i < count; ++i) {
    eyas_entry_t* e = &c->entries[i];
    e->digest = eyas_read_bytes(&r, 32);
    uint64_t offset = eyas_read_u64(&r);
    e->length = eyas_read_u64(&r);
    e->name = eyas_read_text(&r, &c->memory);
    if (r.failed || offset % 64 != 0) return not_a_module("its index is damaged");
    if (!eyas_range_fits(offset, e->length, length)) {
      return eyas_status_make(
          EYAS_STATUS_CORRUPT,
          "the module is truncated: '%s' ends at byte %llu, the file at byte %zu", e->name,
          (unsigned long long)(offset + e->length), length);
    }
    e->data = data + offset;
  }
  c->entry_count = count;
  return NULL;
}

eyas_status_t eyas_container_parse(const uint8_t* data, size_t length, bool check_digest,
                                   eyas_container_t* container) {
  memset(container, 0, sizeof(*container));
  eyas_status_t status = parse(data, length, check_digest, container);
  if (status) eyas_container_free(container);
  return status;
}

void eyas_container_free(eyas_container_t* container) {
  eyas_bump_free(&container->memory);
  memset(container, 0, sizeof(*container));
}

const eyas_entry_t* eyas_container_find(const eyas_container_t* container, const char* name) {
  for (uint32_t i = 0; i < container->entry_count; ++i) {
    if (strcmp(container->entries[i].name, name) == 0) return &container->entries[i];
  }
  return NULL;
}

eyas_status_t eyas_container_check(const eyas_entry_t* entry) {
  uint8_t digest[32];
  eyas_sha256(entry->data, entry->length, digest);
  if (memcmp(digest, entry->digest, 32) == 0) return NULL;
  return eyas_status_make(
      EYAS_STATUS_CORRUPT,
      "'%s' was altered after the module was written: its SHA-256 is not the one "
      "in the index",
      entry->name);
}
