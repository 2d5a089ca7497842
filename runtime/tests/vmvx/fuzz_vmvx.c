// Fuzzes the verifier and the interpreter: bytes are an executable, and whatever the loader accepts
// is run on small bindings with a budget. libFuzzer drives it (`make fuzz-vmvx`); AddressSanitizer
// and UBSan are the judges.
//
// Bytes at random are nearly always refused, so the mutator works on what the format means: it
// changes an operand to another one that is in range, a constant to a telling one, an instruction
// to one with the same operands, moves instructions about, and mends the counts and lengths around
// them. One time in eight it lets libFuzzer change bytes as it likes, for the parser.
#define EYAS_VMVX_WITH_INFOS
#include "eyas_vmvx_isa.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "eyas/executable.h"
#include "ukernel/ukernel.h"
#include "vmvx/settings.h"

enum { BINDING_BYTES = 4096, MAX_BINDINGS = 8, BUDGET = 2000, MAX_CODE_BYTES = 1 << 14 };

// Memory of the exact size at the end of its block, so that any step outside is seen.
static void* pointers[256];
static uint64_t sizes[256];
static int64_t constants[256];
static void* scratch;

static void prepare(void) {
  static const uint64_t lengths[MAX_BINDINGS] = {BINDING_BYTES, 1024, BINDING_BYTES, 64, 7, 0,
                                                 333,           4096};
  for (int i = 0; i < MAX_BINDINGS; ++i) {
    pointers[i] = malloc(lengths[i] ? lengths[i] : 1);
    sizes[i] = lengths[i];
    for (uint64_t k = 0; k < lengths[i]; ++k)
      ((uint8_t*)pointers[i])[k] = (uint8_t)(k * 7 + (uint64_t)i);
  }
  for (int i = MAX_BINDINGS; i < 256; ++i) {
    pointers[i] = pointers[1];
    sizes[i] = sizes[1];
  }
  for (int i = 0; i < 256; ++i) constants[i] = (int64_t[]){0, 1, 7, 64, -1, 1000}[i % 6];
  scratch = aligned_alloc(64, EYAS_MIN_SCRATCH_BYTES);
}

// Every set of microkernels that this CPU runs and every width: the bytes decide which.
static eyas_vmvx_settings_t choose_settings(const uint8_t* data, size_t length) {
  static const char* const sets[] = {"", "portable", "sse2", "avx2", "avx512", "neon", "rvv"};
  static const unsigned widths[] = {0, 1, 2, 4, 8};
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < length; ++i) hash = (hash ^ data[i]) * 16777619u;
  hash ^= hash >> 15;
  const char* set = sets[hash % 7];
  if (!eyas_uk_products(set)) set = "";
  eyas_vmvx_settings_t settings;
  eyas_status_t status = eyas_vmvx_settings(set, widths[hash / 7 % 5], &settings);
  if (status) abort();
  return settings;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t length) {
  if (!scratch) prepare();
  const eyas_vmvx_settings_t settings = choose_settings(data, length);
  eyas_vmvx_executable_t* executable = NULL;
  eyas_status_t status = eyas_vmvx_load(data, length, &settings, &executable);
  if (status) {
    eyas_status_free(status);
    return 0;
  }
  for (uint32_t i = 0; i < eyas_vmvx_function_count(executable) && i < 4; ++i) {
    const eyas_vmvx_function_t* function = eyas_vmvx_function(executable, i);
    eyas_dispatch_t dispatch = {.bindings = pointers,
                                .binding_bytes = sizes,
                                .constants = constants,
                                .binding_count = eyas_vmvx_function_bindings(function),
                                .constant_count = eyas_vmvx_function_constants(function),
                                .workgroup_count = {2, 1, 2}};
    eyas_workgroup_t workgroup = {.scratch = scratch, .scratch_bytes = EYAS_MIN_SCRATCH_BYTES};
    int32_t code = eyas_vmvx_run(function, &dispatch, &workgroup, 4, BUDGET);
    if (code) eyas_status_free(eyas_vmvx_failure(function, code));
  }
  eyas_vmvx_unload(executable);
  return 0;
}

//===-- The mutator -----------------------------------------------------------------------------//

size_t LLVMFuzzerMutate(uint8_t* data, size_t length, size_t max_length);
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t length, size_t max_length, unsigned seed);

static uint64_t state;

static uint32_t below(uint32_t limit) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)((state >> 33) % (limit ? limit : 1));
}

static uint32_t get(const uint8_t* p, int bytes) {
  uint32_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= (uint32_t)p[i] << (8 * i);
  return value;
}

static void set(uint8_t* p, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) p[i] = (uint8_t)(value >> (8 * i));
}

static int units_of(char kind) {
  return kind == 'q' ? 4 : kind == 'L' ? 2 : 1;
}

// Bytes of the instruction at `at`, 0 when there is none.
static size_t instruction_bytes(const uint8_t* code, size_t at, size_t end) {
  if (end - at < 2) return 0;
  uint32_t op = get(code + at, 2);
  if (!eyas_vmvx_op_info(op).name) return 0;
  size_t bytes = 2;
  for (const char* kind = eyas_vmvx_op_info(op).format; *kind; ++kind)
    bytes += 2 * (size_t)units_of(*kind);
  return bytes <= end - at ? bytes : 0;
}

// The first function of an executable.
typedef struct parts_t {
  size_t counts;  // scalars, tiles, bindings, constants; then the writes mask
  size_t data, data_bytes;
  size_t code, code_bytes;
} parts_t;

static int find_parts(const uint8_t* b, size_t length, parts_t* p) {
  if (length < 16) return 0;
  size_t at = 12, name = get(b + at, 4);
  at += 4;
  if (name > 4096 || length < at + name + 24 + 8) return 0;
  p->counts = at + name;
  at = p->counts + 24;
  p->data_bytes = get(b + at, 4);
  p->data = at + 4;
  if (p->data_bytes > length - p->data || length - p->data - p->data_bytes < 4) return 0;
  at = p->data + p->data_bytes;
  p->code_bytes = get(b + at, 4);
  p->code = at + 4;
  return p->code_bytes <= length - p->code && p->code_bytes >= 2;
}

static int64_t telling(void) {
  static const int64_t values[] = {0,
                                   1,
                                   -1,
                                   2,
                                   3,
                                   4,
                                   7,
                                   8,
                                   15,
                                   16,
                                   17,
                                   31,
                                   32,
                                   63,
                                   64,
                                   65,
                                   100,
                                   127,
                                   128,
                                   255,
                                   256,
                                   512,
                                   1000,
                                   1023,
                                   1024,
                                   1025,
                                   4095,
                                   4096,
                                   4097,
                                   65536,
                                   INT32_MAX,
                                   INT64_MAX,
                                   INT64_MIN,
                                   (int64_t)1 << 47,
                                   (int64_t)1 << 48,
                                   -((int64_t)1 << 48),
                                   (int64_t)1 << 62,
                                   0x3F800000,
                                   0x7F800000,
                                   0x7FC00000,
                                   0x80000000,
                                   0xBF800000,
                                   0x40000000,
                                   0x3F000000,
                                   0x477FE000};
  int64_t value = values[below(sizeof(values) / sizeof(values[0]))];
  switch (below(6)) {
    case 0: return (int64_t)(0 - (uint64_t)value);
    case 1: return (int64_t)((uint64_t)value + ((uint64_t)below(16) << 48));
    case 2: return (int64_t)((uint64_t)value + below(9) - 4);
    default: return value;
  }
}

static void change_operand(uint8_t* b, const parts_t* p, size_t at) {
  uint32_t op = get(b + at, 2);
  const char* format = eyas_vmvx_op_info(op).format;
  uint32_t count = (uint32_t)strlen(format);
  if (!count) return;
  uint32_t chosen = below(count);
  size_t where = at + 2;
  for (uint32_t i = 0; i < chosen; ++i) where += 2 * (size_t)units_of(format[i]);
  switch (format[chosen]) {
    case 'S':
    case 's': set(b + where, below(get(b + p->counts, 4)), 2); break;
    case 'T':
    case 't': set(b + where, below(get(b + p->counts + 4, 4)), 2); break;
    case 'm': set(b + where, below(256), 2); break;
    case 'n': set(b + where, below(below(2) ? 4 : 12), 2); break;
    case 'q': set(b + where, (uint64_t)telling(), 8); break;
    default: {  // a label: the start of some instruction
      size_t target = 0, steps = below(64);
      while (steps-- > 0) {
        size_t bytes = instruction_bytes(b + p->code, target, p->code_bytes);
        if (!bytes || target + bytes >= p->code_bytes) break;
        target += bytes;
      }
      set(b + where, target, 4);
    }
  }
}

// Another instruction with the same operands.
static void change_op(uint8_t* at) {
  uint32_t op = get(at, 2);
  for (int tries = 0; tries < 64; ++tries) {
    uint32_t other = below(2) ? below(EYAS_VMVX_OP_LIMIT) : (op & ~31u) + below(32);
    if (!eyas_vmvx_op_info(other).name) continue;
    if (strcmp(eyas_vmvx_op_info(other).format, eyas_vmvx_op_info(op).format) != 0) continue;
    set(at, other, 2);
    return;
  }
}

static size_t random_instruction(const uint8_t* b, const parts_t* p) {
  size_t at = 0, found = 0;
  uint32_t seen = 0;
  while (at < p->code_bytes) {
    size_t bytes = instruction_bytes(b + p->code, at, p->code_bytes);
    if (!bytes) break;
    if (below(++seen) == 0) found = at;
    at += bytes;
  }
  return p->code + found;
}

// Moves labels at or behind `from` by `by` bytes.
static void move_labels(uint8_t* code, size_t code_bytes, size_t from, int64_t by) {
  for (size_t at = 0; at < code_bytes;) {
    size_t bytes = instruction_bytes(code, at, code_bytes);
    if (!bytes) return;
    const char* format = eyas_vmvx_op_info(get(code + at, 2)).format;
    if (strchr(format, 'L')) {
      int64_t target = get(code + at + bytes - 4, 4);
      if (target >= (int64_t)from) set(code + at + bytes - 4, (uint64_t)(target + by), 4);
    }
    at += bytes;
  }
}

// Puts an instruction, made up or copied, before the one at `at`. The new length.
static size_t insert(uint8_t* b, size_t length, size_t max_length, const parts_t* p, size_t at) {
  uint8_t made[64];
  size_t bytes = 0;
  if (below(2)) {
    size_t from = random_instruction(b, p);
    bytes = instruction_bytes(b, from, p->code + p->code_bytes);
    if (bytes > sizeof(made)) return length;
    memcpy(made, b + from, bytes);
  } else {
    uint32_t op = 0;
    do op = below(4) ? below(EYAS_VMVX_OP_LIMIT) : below(0x40);
    while (!eyas_vmvx_op_info(op).name);
    set(made, op, 2);
    bytes = 2;
    for (const char* kind = eyas_vmvx_op_info(op).format; *kind; ++kind) {
      int units = units_of(*kind);
      uint64_t value = *kind == 'q'                   ? (uint64_t)telling()
                       : *kind == 'S' || *kind == 's' ? below(get(b + p->counts, 4))
                       : *kind == 'T' || *kind == 't' ? below(get(b + p->counts + 4, 4))
                       : *kind == 'L'                 ? 0
                                                      : below(6);
      set(made + bytes, value, 2 * units);
      bytes += 2 * (size_t)units;
    }
  }
  if (!bytes || length + bytes > max_length || p->code_bytes + bytes > MAX_CODE_BYTES)
    return length;
  move_labels(b + p->code, p->code_bytes, at - p->code, (int64_t)bytes);
  memmove(b + at + bytes, b + at, length - at);
  memcpy(b + at, made, bytes);
  set(b + p->code - 4, p->code_bytes + bytes, 4);
  return length + bytes;
}

static size_t erase(uint8_t* b, size_t length, const parts_t* p, size_t at) {
  size_t bytes = instruction_bytes(b, at, p->code + p->code_bytes);
  if (!bytes || at + bytes >= p->code + p->code_bytes) return length;
  memmove(b + at, b + at + bytes, length - at - bytes);
  set(b + p->code - 4, p->code_bytes - bytes, 4);
  move_labels(b + p->code, p->code_bytes - bytes, at - p->code + bytes, -(int64_t)bytes);
  return length - bytes;
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t length, size_t max_length, unsigned seed) {
  state = seed * 2654435761u + 1;
  parts_t p;
  if (below(8) == 0 || !find_parts(data, length, &p)) {
    return LLVMFuzzerMutate(data, length, max_length);
  }
  for (uint32_t times = 1 + below(4); times > 0 && find_parts(data, length, &p); --times) {
    size_t at = random_instruction(data, &p);
    if (!instruction_bytes(data, at, p.code + p.code_bytes)) break;
    switch (below(12)) {
      case 0:
      case 1: length = insert(data, length, max_length, &p, at); break;
      case 2: length = erase(data, length, &p, at); break;
      case 3:
      case 4:
      case 5: change_op(data + at); break;
      case 6: set(data + p.counts + 4 * below(4), below(40), 4); break;
      case 7: set(data + p.counts + 16, below(256), 1); break;  // the writes mask
      default: change_operand(data, &p, at); break;
    }
  }
  return length;
}
