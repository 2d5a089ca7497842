// A parsed and verified program.bin. After eyas_program_parse nothing in it needs checking again,
// save what depends on values at run time.
#ifndef EYAS_MODULE_PROGRAM_H_
#define EYAS_MODULE_PROGRAM_H_

#include "eyas/module.h"
#include "module/reader.h"

typedef struct eyas_export_t {
  const char* name;
  uint32_t binding_count;
  uint32_t constant_count;
} eyas_export_t;

typedef struct eyas_executable_ref_t {
  const char* name;
  const char* format;
  const char* const* features;
  const eyas_export_t* exports;
  uint32_t feature_count;
  uint32_t export_count;
} eyas_executable_ref_t;

typedef struct eyas_table_t {
  const int64_t* values;
  uint32_t count;
} eyas_table_t;

// One arena_pack instruction: its result is kept per context, see vm/pack.h.
typedef struct eyas_pack_site_t {
  const int64_t* lifetimes;  // (first, last) pairs
  uint32_t count;            // buffers
} eyas_pack_site_t;

typedef struct eyas_function_t {
  eyas_signature_t signature;
  const uint32_t* words;   // decoded instructions, see vm/decode.h
  const int64_t* initial;  // what the i64 registers hold at entry
  uint32_t word_count;
  uint32_t entry;  // first word to run
  uint32_t i64_count;
  uint32_t ref_count;
  bool uses_state;
} eyas_function_t;

typedef struct eyas_program_t {
  const char* const* strings;
  const eyas_table_t* tables;
  const eyas_executable_ref_t* executables;
  const eyas_parameter_t* parameters;
  const eyas_state_t* states;
  const eyas_function_t* functions;
  eyas_pack_site_t* pack_sites;
  uint32_t string_count;
  uint32_t table_count;
  uint32_t executable_count;
  uint32_t parameter_count;
  uint32_t state_count;
  uint32_t function_count;
  uint32_t global_count;
  uint32_t pack_site_count;
  uint32_t pack_site_capacity;
  uint32_t submit_limit;  // entries of the largest binding table
  eyas_bump_t memory;
} eyas_program_t;

// Parses and verifies. On failure `program` is empty and owns nothing.
eyas_status_t eyas_program_parse(const uint8_t* data, size_t length, eyas_program_t* program);
void eyas_program_free(eyas_program_t* program);

#endif  // EYAS_MODULE_PROGRAM_H_
