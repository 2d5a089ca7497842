#include "module/program.h"

#include <stdlib.h>

#include "base/checked.h"
#include "vm/decode.h"

#define PROGRAM_VERSION 1u
#define MAX_SECTIONS 64u
#define MAX_GLOBALS 65536u
#define MAX_STATES 16384u

enum {
  SECTION_STRINGS = 1,
  SECTION_TABLES,
  SECTION_EXECUTABLES,
  SECTION_PARAMETERS,
  SECTION_GLOBALS,
  SECTION_FUNCTIONS,
  SECTION_STATES,  // only in programs that have some
  SECTION_LIMIT,
};

static const char* const section_names[SECTION_LIMIT] = {
    "", "strings", "tables", "executables", "parameters", "globals", "functions", "states",
};

static const struct {
  const char* name;
  uint32_t bytes;
} dtypes[] = {
    {"?", 0},      {"f64", 8},      {"f32", 4},        {"f16", 2},    {"bf16", 2},
    {"i1", 1},     {"i8", 1},       {"u8", 1},         {"i16", 2},    {"u16", 2},
    {"i32", 4},    {"u32", 4},      {"i64", 8},        {"u64", 8},    {"c64", 8},
    {"c128", 16},  {"f8e4m3fn", 1}, {"f8e4m3fnuz", 1}, {"f8e5m2", 1}, {"f8e5m2fnuz", 1},
    {"f8e8m0", 1}, {"f4e2m1", 1},   {"i4", 1},         {"u4", 1},     {"i2", 1},
    {"u2", 1},
};

uint32_t eyas_dtype_bytes(uint32_t dtype) {
  return dtype < sizeof(dtypes) / sizeof(dtypes[0]) ? dtypes[dtype].bytes : 0;
}

const char* eyas_dtype_name(uint32_t dtype) {
  return dtype < sizeof(dtypes) / sizeof(dtypes[0]) ? dtypes[dtype].name : "?";
}

static eyas_status_t section_damaged(const eyas_reader_t* r, int section) {
  return eyas_status_make(EYAS_STATUS_CORRUPT, "program: the %s are damaged near byte %zu",
                          section_names[section], r->at);
}

static eyas_status_t no_memory(void) {
  return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "no memory to read the program");
}

static eyas_status_t parse_strings(eyas_reader_t* r, eyas_program_t* program) {
  uint32_t count = eyas_read_count(r, 4);
  const char** strings = eyas_bump_allocate(&program->memory, count, sizeof(*strings));
  if (!strings) return no_memory();
  for (uint32_t i = 0; i < count; ++i) strings[i] = eyas_read_text(r, &program->memory);
  program->strings = strings;
  program->string_count = count;
  return r->failed ? section_damaged(r, SECTION_STRINGS) : NULL;
}

static eyas_status_t parse_tables(eyas_reader_t* r, eyas_program_t* program) {
  uint32_t count = eyas_read_count(r, 4);
  eyas_table_t* tables = eyas_bump_allocate(&program->memory, count, sizeof(*tables));
  if (!tables) return no_memory();
  for (uint32_t i = 0; i < count && !r->failed; ++i) {
    uint32_t length = eyas_read_count(r, 8);
    int64_t* values = eyas_bump_allocate(&program->memory, length, sizeof(*values));
    if (!values) return no_memory();
    for (uint32_t k = 0; k < length; ++k) values[k] = eyas_read_i64(r);
    tables[i] = (eyas_table_t){values, length};
  }
  program->tables = tables;
  program->table_count = count;
  return r->failed ? section_damaged(r, SECTION_TABLES) : NULL;
}

static eyas_status_t parse_executables(eyas_reader_t* r, eyas_program_t* program) {
  uint32_t count = eyas_read_count(r, 16);
  eyas_executable_ref_t* list = eyas_bump_allocate(&program->memory, count, sizeof(*list));
  if (!list) return no_memory();
  for (uint32_t i = 0; i < count && !r->failed; ++i) {
    list[i].name = eyas_read_text(r, &program->memory);
    list[i].format = eyas_read_text(r, &program->memory);
    list[i].feature_count = eyas_read_count(r, 4);
    const char** features =
        eyas_bump_allocate(&program->memory, list[i].feature_count, sizeof(*features));
    if (!features) return no_memory();
    for (uint32_t k = 0; k < list[i].feature_count; ++k) {
      features[k] = eyas_read_text(r, &program->memory);
    }
    list[i].features = features;
    list[i].export_count = eyas_read_count(r, 12);
    eyas_export_t* exports =
        eyas_bump_allocate(&program->memory, list[i].export_count, sizeof(*exports));
    if (!exports) return no_memory();
    for (uint32_t k = 0; k < list[i].export_count; ++k) {
      exports[k].name = eyas_read_text(r, &program->memory);
      exports[k].binding_count = eyas_read_u32(r);
      exports[k].constant_count = eyas_read_u32(r);
    }
    list[i].exports = exports;
  }
  program->executables = list;
  program->executable_count = count;
  return r->failed ? section_damaged(r, SECTION_EXECUTABLES) : NULL;
}

static eyas_status_t parse_parameters(eyas_reader_t* r, eyas_program_t* program) {
  uint32_t count = eyas_read_count(r, 36);
  eyas_parameter_t* list = eyas_bump_allocate(&program->memory, count, sizeof(*list));
  if (!list) return no_memory();
  for (uint32_t i = 0; i < count && !r->failed; ++i) {
    eyas_parameter_t* p = &list[i];
    p->name = eyas_read_text(r, &program->memory);
    p->dtype = eyas_read_u32(r);
    p->rank = eyas_read_count(r, 8);
    int64_t* dims = eyas_bump_allocate(&program->memory, p->rank, sizeof(*dims));
    if (!dims) return no_memory();
    uint64_t bytes = eyas_dtype_bytes(p->dtype);
    bool good = bytes != 0 && p->rank <= EYAS_MAX_RANK;
    for (uint32_t k = 0; k < p->rank; ++k) {
      dims[k] = eyas_read_i64(r);
      good = good && dims[k] >= 0 && eyas_checked_mul(bytes, (uint64_t)dims[k], &bytes);
    }
    p->dims = dims;
    p->offset = eyas_read_u64(r);
    p->bytes = eyas_read_u64(r);
    p->external = eyas_read_text(r, &program->memory);
    p->key = eyas_read_text(r, &program->memory);
    if (!r->failed && (!good || bytes != p->bytes || p->offset % 64 != 0)) {
      return eyas_status_make(EYAS_STATUS_CORRUPT,
                              "program: parameter %u '%s' has an impossible type, size or offset",
                              i, p->name);
    }
  }
  program->parameters = list;
  program->parameter_count = count;
  return r->failed ? section_damaged(r, SECTION_PARAMETERS) : NULL;
}

static bool has_equal_name(const eyas_state_t* states, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (strcmp(states[i].name, states[count].name) == 0) return true;
  }
  return false;
}

static eyas_status_t parse_states(eyas_reader_t* r, eyas_program_t* program) {
  uint32_t count = eyas_read_count(r, 16);
  if (count > MAX_STATES) return section_damaged(r, SECTION_STATES);
  eyas_state_t* list = eyas_bump_allocate(&program->memory, count, sizeof(*list));
  if (!list) return no_memory();
  for (uint32_t i = 0; i < count && !r->failed; ++i) {
    eyas_state_t* s = &list[i];
    s->name = eyas_read_text(r, &program->memory);
    s->dtype = eyas_read_u32(r);
    s->rank = eyas_read_count(r, 8);
    int64_t* dims = eyas_bump_allocate(&program->memory, s->rank, sizeof(*dims));
    if (!dims) return no_memory();
    s->bytes = eyas_dtype_bytes(s->dtype);
    bool good = s->bytes != 0 && s->rank <= EYAS_MAX_RANK;
    for (uint32_t k = 0; k < s->rank; ++k) {
      dims[k] = eyas_read_i64(r);
      good = good && dims[k] >= 0 && eyas_checked_mul(s->bytes, (uint64_t)dims[k], &s->bytes);
    }
    s->dims = dims;
    s->parameter = eyas_read_u32(r);
    if (r->failed) break;
    if (s->parameter != EYAS_STATE_ZEROS) {
      good = good && s->parameter < program->parameter_count &&
             program->parameters[s->parameter].bytes == s->bytes;
    }
    if (!good || has_equal_name(list, i)) {
      return eyas_status_make(EYAS_STATUS_CORRUPT,
                              "program: state %u '%s' has an impossible type, first value or name",
                              i, s->name);
    }
  }
  program->states = list;
  program->state_count = count;
  return r->failed ? section_damaged(r, SECTION_STATES) : NULL;
}

// Fills in specs; false when a record cannot be right.
static bool parse_specs(eyas_reader_t* r, eyas_program_t* program, uint32_t symbol_count,
                        const eyas_tensor_spec_t** out_specs, uint32_t* out_count) {
  uint32_t count = eyas_read_count(r, 12);
  eyas_tensor_spec_t* specs = eyas_bump_allocate(&program->memory, count, sizeof(*specs));
  if (!specs) return false;
  for (uint32_t i = 0; i < count && !r->failed; ++i) {
    specs[i].name = eyas_read_text(r, &program->memory);
    specs[i].dtype = eyas_read_u32(r);
    specs[i].rank = eyas_read_count(r, 8);
    if (r->failed || !eyas_dtype_bytes(specs[i].dtype) || specs[i].rank > EYAS_MAX_RANK)
      return false;
    int64_t* dims = eyas_bump_allocate(&program->memory, specs[i].rank, sizeof(*dims));
    if (!dims) return false;
    for (uint32_t k = 0; k < specs[i].rank; ++k) {
      dims[k] = eyas_read_i64(r);
      if (dims[k] < -1 - (int64_t)symbol_count) return false;
    }
    specs[i].dims = dims;
  }
  *out_specs = specs;
  *out_count = count;
  return !r->failed;
}

static eyas_status_t parse_functions(eyas_reader_t* r, eyas_program_t* program) {
  uint32_t count = eyas_read_count(r, 28);
  eyas_function_t* functions = eyas_bump_allocate(&program->memory, count, sizeof(*functions));
  if (!functions) return no_memory();
  for (uint32_t i = 0; i < count; ++i) {
    eyas_function_t* f = &functions[i];
    eyas_signature_t* s = &f->signature;
    s->name = eyas_read_text(r, &program->memory);
    s->symbol_count = eyas_read_count(r, 28);
    eyas_symbol_t* symbols =
        eyas_bump_allocate(&program->memory, s->symbol_count, sizeof(*symbols));
    if (!symbols) return no_memory();
    for (uint32_t k = 0; k < s->symbol_count; ++k) {
      symbols[k].name = eyas_read_text(r, &program->memory);
      symbols[k].min = eyas_read_i64(r);
      symbols[k].max = eyas_read_i64(r);
      symbols[k].multiple = eyas_read_i64(r);
      if (symbols[k].min < 0 || symbols[k].max < symbols[k].min || symbols[k].multiple < 1) {
        return section_damaged(r, SECTION_FUNCTIONS);
      }
    }
    s->symbols = symbols;
    if (!parse_specs(r, program, s->symbol_count, &s->args, &s->arg_count) ||
        !parse_specs(r, program, s->symbol_count, &s->results, &s->result_count)) {
      return section_damaged(r, SECTION_FUNCTIONS);
    }
    f->i64_count = eyas_read_u32(r);
    f->ref_count = eyas_read_u32(r);
    uint32_t code_bytes = eyas_read_u32(r);
    const uint8_t* code = eyas_read_bytes(r, code_bytes);
    if (!code) return section_damaged(r, SECTION_FUNCTIONS);
    EYAS_RETURN_IF_ERROR(eyas_status_annotate(eyas_vm_decode(program, f, code, code_bytes),
                                              "program: function '%s'", s->name));
  }
  program->functions = functions;
  program->function_count = count;
  return NULL;
}

static eyas_status_t parse(const uint8_t* data, size_t length, eyas_program_t* program) {
  eyas_reader_t head = {data, 0, length, false};
  const uint8_t* magic = eyas_read_bytes(&head, 8);
  if (!magic || memcmp(magic, "EYASPRG", 8) != 0) {
    return eyas_status_make(EYAS_STATUS_CORRUPT,
                            "program.bin does not start with a program header");
  }
  uint32_t version = eyas_read_u32(&head);
  if (!head.failed && version != PROGRAM_VERSION) {
    return eyas_status_make(EYAS_STATUS_INCOMPATIBLE,
                            "the program has format version %u, this runtime reads version %u: "
                            "recompile the model, or update the runtime",
                            version, PROGRAM_VERSION);
  }
  uint32_t section_count = eyas_read_u32(&head);
  eyas_reader_t sections[SECTION_LIMIT] = {{0}};
  if (section_count > MAX_SECTIONS) head.failed = true;
  for (uint32_t i = 0; i < section_count && !head.failed; ++i) {
    uint32_t id = eyas_read_u32(&head);
    eyas_read_u32(&head);
    uint64_t offset = eyas_read_u64(&head), size = eyas_read_u64(&head);
    if (head.failed || !eyas_range_fits(offset, size, length)) {
      head.failed = true;
    } else if (id > 0 && id < SECTION_LIMIT) {  // later versions may add sections
      sections[id] = (eyas_reader_t){data, (size_t)offset, (size_t)(offset + size), false};
    }
  }
  for (int id = 1; id < SECTION_LIMIT && !head.failed; ++id) {
    if (!sections[id].data && id != SECTION_STATES) head.failed = true;
  }
  if (head.failed) {
    return eyas_status_make(EYAS_STATUS_CORRUPT, "program: the section table is damaged");
  }
  EYAS_RETURN_IF_ERROR(parse_strings(&sections[SECTION_STRINGS], program));
  EYAS_RETURN_IF_ERROR(parse_tables(&sections[SECTION_TABLES], program));
  EYAS_RETURN_IF_ERROR(parse_executables(&sections[SECTION_EXECUTABLES], program));
  EYAS_RETURN_IF_ERROR(parse_parameters(&sections[SECTION_PARAMETERS], program));
  if (sections[SECTION_STATES].data) {
    EYAS_RETURN_IF_ERROR(parse_states(&sections[SECTION_STATES], program));
  }
  program->global_count = eyas_read_u32(&sections[SECTION_GLOBALS]);
  if (sections[SECTION_GLOBALS].failed || program->global_count > MAX_GLOBALS) {
    return section_damaged(&sections[SECTION_GLOBALS], SECTION_GLOBALS);
  }
  return parse_functions(&sections[SECTION_FUNCTIONS], program);  // last: code refers to the rest
}

eyas_status_t eyas_program_parse(const uint8_t* data, size_t length, eyas_program_t* program) {
  memset(program, 0, sizeof(*program));
  eyas_status_t status = parse(data, length, program);
  if (status) eyas_program_free(program);
  return status;
}

void eyas_program_free(eyas_program_t* program) {
  free(program->pack_sites);
  eyas_bump_free(&program->memory);
  memset(program, 0, sizeof(*program));
}
