#include "vm/decode.h"

#include <stdlib.h>

#include "eyas/hal.h"
#include "eyas_isa.h"

#define MAX_CODE_BYTES (1u << 30)
#define NOT_A_START UINT32_MAX

typedef struct decoder_t {
  eyas_program_t* program;
  eyas_function_t* function;
  eyas_reader_t reader;
  uint32_t* words;
  uint32_t count;
  // Of the instruction at hand, for checks between operands.
  uint32_t executable;
  uint32_t export_ordinal;
} decoder_t;

static void push(decoder_t* d, uint32_t word) {
  d->words[d->count++] = word;  // room: no operand takes more words than 16-bit units
}

// Reads one operand; a static text that says what is wrong, or NULL.
static const char* decode_operand(decoder_t* d, char kind) {
  const eyas_program_t* p = d->program;
  const eyas_function_t* f = d->function;
  eyas_reader_t* r = &d->reader;
  uint32_t v = 0;
  switch (kind) {
    case 'I':
    case 'i':
      v = eyas_read_u16(r);
      if (v >= f->i64_count) return "an i64 register is out of range";
      break;
    case 'j':
      v = eyas_read_u16(r);
      if (v >= f->i64_count && v != EYAS_VM_NO_REGISTER) return "an i64 register is out of range";
      break;
    case 'R':
    case 'r':
      v = eyas_read_u16(r);
      if (v >= f->ref_count) return "a reference register is out of range";
      break;
    case 'q':
      push(d, eyas_read_u32(r));
      v = eyas_read_u32(r);
      break;
    case 'u':
    case 'L':  // resolved when all starts are known
      v = eyas_read_u32(r);
      break;
    case 's':
      v = eyas_read_u32(r);
      if (v >= p->string_count) return "a string ordinal is out of range";
      break;
    case 't':
      v = eyas_read_u32(r);
      if (v >= p->table_count) return "a table ordinal is out of range";
      break;
    case 'x':
      v = d->executable = eyas_read_u32(r);
      if (v >= p->executable_count) return "an executable ordinal is out of range";
      break;
    case 'e':
      v = d->export_ordinal = eyas_read_u32(r);
      if (v >= p->executables[d->executable].export_count)
        return "an export ordinal is out of range";
      break;
    case 'p':
      v = eyas_read_u32(r);
      if (v >= p->parameter_count) return "a parameter ordinal is out of range";
      break;
    case 'v':
      v = eyas_read_u32(r);
      if (v >= p->state_count) return "a state ordinal is out of range";
      d->function->uses_state = true;
      break;
    case 'a':
      v = eyas_read_u32(r);
      if (v >= f->signature.arg_count) return "an argument ordinal is out of range";
      break;
    case 'o':
      v = eyas_read_u32(r);
      if (v >= f->signature.result_count) return "a result ordinal is out of range";
      break;
    case 'g':
      v = eyas_read_u32(r);
      if (v >= p->global_count) return "a global slot is out of range";
      break;
    case 'w':
      v = eyas_read_u16(r);
      if (v != 1 && v != 8 && v != 16 && v != 32) return "a width is not 1, 8, 16 or 32";
      break;
    case 'f':
      v = eyas_read_u16(r);
      if (v > EYAS_VM_FLOAT_BF16) return "a float type is unknown";
      break;
    case 'k':
      v = eyas_read_u16(r);
      if (v > EYAS_VM_ALLOC_RESULT) return "an allocation kind is unknown";
      break;
    case 'm':
      v = eyas_read_u16(r);
      if (v > EYAS_VM_ELEMENT_I64) return "an element kind is unknown";
      break;
    case 'b': {
      uint32_t place = eyas_read_u16(r);
      uint32_t access = eyas_read_u16(r);
      uint32_t where = eyas_read_u16(r);
      if (place > 1) return "a binding kind is unknown";
      if (access < 1 || access > 3) return "a binding's access is unknown";
      if (place == 0 && where >= f->ref_count) return "a reference register is out of range";
      push(d, place);
      push(d, access);
      push(d, where);
      const char* wrong = decode_operand(d, 'j');
      return wrong ? wrong : decode_operand(d, 'j');
    }
    default: return "the runtime's own table is wrong";
  }
  push(d, v);
  return NULL;
}

// Remembers an arena_pack and puts the number of its site in place of the table's ordinal.
static const char* decode_pack(decoder_t* d, uint32_t at) {
  eyas_program_t* p = d->program;
  uint32_t offsets = d->words[at + 2];
  uint32_t sizes = d->words[at + 3 + offsets];
  uint32_t* table = &d->words[d->count - 1];
  const eyas_table_t* lifetimes = &p->tables[*table];
  if (offsets != sizes || lifetimes->count != 2 * sizes) {
    return "sizes, offsets and lifetimes do not have one length";
  }
  for (uint32_t i = 0; i < sizes; ++i) {
    if (lifetimes->values[2 * i] > lifetimes->values[2 * i + 1])
      return "a lifetime ends before it starts";
  }
  if (p->pack_site_count == p->pack_site_capacity) {
    uint32_t capacity = p->pack_site_capacity ? 2 * p->pack_site_capacity : 4;
    eyas_pack_site_t* sites = realloc(p->pack_sites, capacity * sizeof(*sites));
    if (!sites) return "there is no memory";
    p->pack_sites = sites;
    p->pack_site_capacity = capacity;
  }
  p->pack_sites[p->pack_site_count] = (eyas_pack_site_t){lifetimes->values, sizes};
  *table = p->pack_site_count++;
  return NULL;
}

// Checks that need several operands of one instruction, whose words start at `at`.
static const char* check_instruction(decoder_t* d, uint32_t op, uint32_t at) {
  const eyas_signature_t* s = &d->function->signature;
  const uint32_t* w = d->words + at;
  switch (op) {
    case EYAS_VM_OP_ARG_DIM:
      if (w[3] >= s->args[w[2]].rank) return "a dimension is out of range";
      break;
    case EYAS_VM_OP_SET_RESULT:
      if (w[3] != s->results[w[1]].rank) return "the number of dimensions is not the result's rank";
      break;
    case EYAS_VM_OP_CMD_CREATE:
      if (w[2] > EYAS_HAL_MAX_SLOTS) return "too many slots";
      break;
    case EYAS_VM_OP_CMD_FILL: {
      uint32_t width = w[8];
      if (width != 1 && width != 2 && width != 4 && width != 8)
        return "a fill width is not 1, 2, 4 or 8";
      break;
    }
    case EYAS_VM_OP_CMD_DISPATCH: {
      const eyas_export_t* e = &d->program->executables[d->executable].exports[d->export_ordinal];
      uint32_t constants = w[7], bindings = w[8 + constants];
      if (constants != e->constant_count) return "the number of constants is not the export's";
      if (bindings != e->binding_count) return "the number of bindings is not the export's";
      if (constants > EYAS_HAL_MAX_CONSTANTS || bindings > EYAS_HAL_MAX_BINDINGS) {
        return "too many constants or bindings";
      }
      break;
    }
    case EYAS_VM_OP_SUBMIT:
      if (w[2] > d->program->submit_limit) d->program->submit_limit = w[2];
      break;
    case EYAS_VM_OP_ARENA_PACK: return decode_pack(d, at);
    default: break;
  }
  return NULL;
}

// Reads one instruction and gives its opcode.
static const char* decode_instruction(decoder_t* d, uint32_t* out_op) {
  eyas_reader_t* r = &d->reader;
  uint32_t at = d->count;
  uint32_t op = eyas_read_u16(r);
  *out_op = op;
  if (op >= EYAS_VM_OP_LIMIT || !eyas_vm_op_infos[op].name) return "it is not an instruction";
  push(d, op);
  for (const char* format = eyas_vm_op_infos[op].format; *format; ++format) {
    uint32_t repeat = 1;
    if (format[1] == '*') {
      repeat = eyas_read_u16(r);
      push(d, repeat);
    }
    for (uint32_t i = 0; i < repeat; ++i) {
      const char* wrong = decode_operand(d, *format);
      if (wrong) return wrong;
      if (r->failed) return "the code ends inside it";
    }
    if (format[1] == '*') ++format;
  }
  if (r->failed) return "the code ends inside it";
  return check_instruction(d, op, at);
}

// Turns the byte offsets of labels into word indices.
static const char* resolve_labels(decoder_t* d, const uint32_t* starts, uint32_t code_bytes,
                                  uint32_t at) {
  const char* format = eyas_vm_op_infos[d->words[at]].format;
  uint32_t word = at + 1;
  for (; *format; ++format) {  // labels stand in instructions without lists before them
    if (*format == 'L') {
      uint32_t target = d->words[word];
      if (target >= code_bytes || target % 2 || starts[target / 2] == NOT_A_START) {
        return "a branch goes to something that is not an instruction";
      }
      d->words[word] = starts[target / 2];
    }
    word += *format == 'q' ? 2 : 1;
  }
  return NULL;
}

static eyas_status_t decode(decoder_t* d, uint32_t* starts, uint32_t code_bytes) {
  eyas_function_t* f = d->function;
  uint32_t op = 0;
  bool in_prologue = true;
  while (d->reader.at < d->reader.end) {
    uint32_t byte = (uint32_t)d->reader.at;
    uint32_t at = d->count;
    starts[byte / 2] = at;
    const char* wrong = decode_instruction(d, &op);
    if (wrong) {
      const char* name = op < EYAS_VM_OP_LIMIT ? eyas_vm_op_infos[op].name : NULL;
      return eyas_status_make(EYAS_STATUS_CORRUPT, "instruction at byte %u (0x%02X %s): %s", byte,
                              op, name ? name : "unknown", wrong);
    }
    // Constants set at the very start need not be interpreted on every call.
    in_prologue = in_prologue && op == EYAS_VM_OP_CONST_I64;
    if (in_prologue) {
      ((int64_t*)f->initial)[d->words[at + 1]] =
          (int64_t)((uint64_t)d->words[at + 2] | (uint64_t)d->words[at + 3] << 32);
      f->entry = d->count;
    }
  }
  if (!d->count || !eyas_vm_op_infos[op].terminator) {
    return eyas_status_make(EYAS_STATUS_CORRUPT, "the code runs off its end");
  }
  for (uint32_t i = 0; i < code_bytes / 2; ++i) {
    if (starts[i] == NOT_A_START || !strchr(eyas_vm_op_infos[d->words[starts[i]]].format, 'L')) {
      continue;
    }
    const char* wrong = resolve_labels(d, starts, code_bytes, starts[i]);
    if (wrong)
      return eyas_status_make(EYAS_STATUS_CORRUPT, "instruction at byte %u: %s", 2 * i, wrong);
  }
  f->words = d->words;
  f->word_count = d->count;
  return NULL;
}

eyas_status_t eyas_vm_decode(eyas_program_t* program, eyas_function_t* function,
                             const uint8_t* code, uint32_t code_bytes) {
  if (function->i64_count > EYAS_VM_NO_REGISTER || function->ref_count > EYAS_VM_NO_REGISTER) {
    return eyas_status_make(EYAS_STATUS_CORRUPT, "it asks for %u and %u registers; the limit is %u",
                            function->i64_count, function->ref_count, EYAS_VM_NO_REGISTER);
  }
  if (code_bytes % 2 || code_bytes == 0 || code_bytes > MAX_CODE_BYTES) {
    return eyas_status_make(EYAS_STATUS_CORRUPT, "its code has an impossible length of %u bytes",
                            code_bytes);
  }
  decoder_t d = {.program = program, .function = function, .reader = {code, 0, code_bytes, false}};
  // An operand that is cut off still pushes its words, at most 5 of a binding and a list's count.
  d.words = eyas_bump_allocate(&program->memory, (size_t)code_bytes / 2 + 8, sizeof(*d.words));
  function->initial =
      eyas_bump_allocate(&program->memory, function->i64_count, sizeof(*function->initial));
  uint32_t* starts = malloc((size_t)code_bytes / 2 * sizeof(*starts));
  eyas_status_t status = NULL;
  if (!d.words || !function->initial || !starts) {
    status = eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "no memory for its code");
  } else {
    memset(starts, 0xFF, (size_t)code_bytes / 2 * sizeof(*starts));
    status = decode(&d, starts, code_bytes);
  }
  free(starts);
  return status;
}

const char* eyas_vm_op_name(uint32_t op) {
  return eyas_vm_op_infos[op].name;
}
