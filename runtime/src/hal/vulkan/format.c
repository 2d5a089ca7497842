// The executable format "spirv" (docs/container.md; src/eyas/module/spirv_executable.py writes it).
// Nothing in a file is believed: every range is checked against the file, every count against the
// limits of the HAL.
#include <string.h>

#include "base/checked.h"
#include "hal/vulkan/vulkan.h"

enum { HEADER_BYTES = 16, RECORD_BYTES = 128, TERM_BYTES = 32, VERSION = 1 };

#define SPIRV_MAGIC 0x07230203u
#define SPIRV_HEADER_BYTES 20

static uint32_t read_u32(const uint8_t* bytes) {
  return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static uint64_t read_u64(const uint8_t* bytes) {
  return read_u32(bytes) | (uint64_t)read_u32(bytes + 4) << 32;
}

eyas_status_t eyas_hal_vulkan_format_count(const void* file, size_t length, uint32_t* out_count) {
  const uint8_t* bytes = file;
  if (length < HEADER_BYTES || memcmp(bytes, "EYSV", 4) != 0) {
    return eyas_status_make(EYAS_STATUS_CORRUPT,
                            "not an executable of SPIR-V: it does not start with EYSV");
  }
  const uint32_t version = read_u32(bytes + 4), count = read_u32(bytes + 8);
  if (version != VERSION) {
    return eyas_status_make(EYAS_STATUS_INCOMPATIBLE,
                            "the executable has version %u of its format; this runtime reads %u",
                            version, VERSION);
  }
  if (read_u32(bytes + 12) != length || (length - HEADER_BYTES) / RECORD_BYTES < count) {
    return eyas_status_make(EYAS_STATUS_CORRUPT,
                            "an executable of %zu bytes says that it has %u, with %u exports",
                            length, read_u32(bytes + 12), count);
  }
  *out_count = count;
  return NULL;
}

static eyas_status_t corrupt(uint32_t index, const char* what, uint64_t value) {
  return eyas_status_make(EYAS_STATUS_CORRUPT, "export %u of an executable: %s (%llu)", index, what,
                          (unsigned long long)value);
}

static eyas_status_t check_terms(uint32_t index, const eyas_hal_vulkan_record_t* record) {
  for (uint32_t i = 0; i < record->term_count; ++i) {
    eyas_hal_vulkan_term_t term;
    eyas_hal_vulkan_format_term(record, i, &term);
    if (term.symbol_count > 5) return corrupt(index, "too many symbols", term.symbol_count);
    for (uint32_t k = 0; k < term.symbol_count; ++k) {
      if (term.symbols[k] >= record->constant_count) {
        return corrupt(index, "a size of scratch memory names no constant", term.symbols[k]);
      }
    }
  }
  return NULL;
}

// Instructions follow each other without a gap, and one of them is the entry point: what a driver
// takes for granted. Code that lies in its operands is beyond this; files have digests.
static eyas_status_t check_code(uint32_t index, const eyas_hal_vulkan_record_t* record) {
  enum { OP_ENTRY_POINT = 15, GL_COMPUTE = 5, MAX_IDS = 1 << 22 };
  const uint8_t* code = record->code;
  if (record->code_bytes < SPIRV_HEADER_BYTES || record->code_bytes % 4) {
    return corrupt(index, "code of a wrong size", record->code_bytes);
  }
  if (read_u32(code) != SPIRV_MAGIC)
    return corrupt(index, "code that is no SPIR-V", read_u32(code));
  if (read_u32(code + 12) > MAX_IDS) return corrupt(index, "too many ids", read_u32(code + 12));
  bool has_entry = false;
  for (uint64_t at = SPIRV_HEADER_BYTES; at < record->code_bytes;) {
    const uint32_t first = read_u32(code + at);
    const uint64_t bytes = 4 * (uint64_t)(first >> 16);
    if (bytes == 0 || bytes > record->code_bytes - at) {
      return corrupt(index, "an instruction that does not end inside its code", at);
    }
    if ((first & 0xffff) == OP_ENTRY_POINT && bytes >= 20 &&
        read_u32(code + at + 4) == GL_COMPUTE) {
      has_entry |= memcmp(code + at + 12, "main", 5) == 0;
    }
    at += bytes;
  }
  return has_entry ? NULL : corrupt(index, "code without an entry point 'main'", 0);
}

eyas_status_t eyas_hal_vulkan_format_record(const void* file, size_t length, uint32_t index,
                                            eyas_hal_vulkan_record_t* out_record) {
  const uint8_t *bytes = file, *r = bytes + HEADER_BYTES + (size_t)index * RECORD_BYTES;
  enum {
    NAME,
    NAME_BYTES,
    CODE,
    CODE_BYTES,
    BINDINGS,
    CONSTANTS,
    SIZE_X,
    FLAGS = 9,
    TERMS,
    TERM_COUNT,
    SUBGROUP
  };
  uint32_t field[SUBGROUP + 1];
  for (uint32_t i = 0; i <= SUBGROUP; ++i) field[i] = read_u32(r + 4 * (size_t)i);
  if (!eyas_range_fits(field[NAME], field[NAME_BYTES], length) || field[NAME_BYTES] == 0) {
    return corrupt(index, "its name is outside of the file", field[NAME]);
  }
  if (!eyas_range_fits(field[CODE], field[CODE_BYTES], length) || field[CODE] % 4) {
    return corrupt(index, "its code is outside of the file or not aligned", field[CODE]);
  }
  if (!eyas_range_fits(field[TERMS], (uint64_t)field[TERM_COUNT] * TERM_BYTES, length)) {
    return corrupt(index, "its terms are outside of the file", field[TERMS]);
  }
  if (field[BINDINGS] > EYAS_HAL_MAX_BINDINGS) {
    return corrupt(index, "too many bindings", field[BINDINGS]);
  }
  if (field[CONSTANTS] > EYAS_HAL_MAX_CONSTANTS) {
    return corrupt(index, "too many constants", field[CONSTANTS]);
  }
  const uint32_t known =
      EYAS_HAL_VULKAN_REPORTS | EYAS_HAL_VULKAN_WORDS_IN_BUFFER | EYAS_HAL_VULKAN_HAS_SCRATCH;
  if (field[FLAGS] & ~known) return corrupt(index, "unknown flags", field[FLAGS]);
  *out_record = (eyas_hal_vulkan_record_t){
      .name = (const char*)bytes + field[NAME],
      .name_bytes = field[NAME_BYTES],
      .code = bytes + field[CODE],
      .code_bytes = field[CODE_BYTES],
      .binding_count = field[BINDINGS],
      .constant_count = field[CONSTANTS],
      .local_size = {field[SIZE_X], field[SIZE_X + 1], field[SIZE_X + 2]},
      .flags = field[FLAGS],
      .terms = bytes + field[TERMS],
      .term_count = field[FLAGS] & EYAS_HAL_VULKAN_HAS_SCRATCH ? field[TERM_COUNT] : 0,
      .subgroup_size = field[SUBGROUP],
  };
  for (uint32_t i = 0; i < EYAS_HAL_MAX_BINDINGS; ++i) {
    const uint64_t writes = read_u64(r + 64 + i / 64 * 8) >> i % 64 & 1;
    const uint64_t unaligned = read_u64(r + 96 + i / 64 * 8) >> i % 64 & 1;
    if ((writes || unaligned) && i >= field[BINDINGS]) {
      return corrupt(index, "it writes a binding that it does not have", i);
    }
    out_record->writes[i / 64] |= writes << i % 64;
    out_record->unaligned[i / 64] |= unaligned << i % 64;
  }
  const uint32_t* size = out_record->local_size;
  if (!size[0] || !size[1] || !size[2]) return corrupt(index, "workgroups without threads", 0);
  EYAS_RETURN_IF_ERROR(check_code(index, out_record));
  return check_terms(index, out_record);
}

void eyas_hal_vulkan_format_term(const eyas_hal_vulkan_record_t* record, uint32_t index,
                                 eyas_hal_vulkan_term_t* out_term) {
  const uint8_t* bytes = record->terms + (size_t)index * TERM_BYTES;
  out_term->factor = read_u64(bytes);
  out_term->symbol_count = read_u32(bytes + 8);
  for (uint32_t i = 0; i < 5; ++i) out_term->symbols[i] = read_u32(bytes + 12 + 4 * (size_t)i);
}
