// Verifies the code of a function and decodes it into cells.
#define EYAS_VMVX_WITH_INFOS
#include "vmvx/decode.h"

#include <stdlib.h>
#include <string.h>

#define NOT_A_START UINT32_MAX

static const char* read_operand(eyas_vmvx_decoder_t* d, eyas_reader_t* r, char kind) {
  int64_t v = 0;
  switch (kind) {
    case 'S':
    case 's':
      v = eyas_read_u16(r);
      if (v >= d->function->scalar_count) return "a scalar register is out of range";
      v *= (int64_t)sizeof(int64_t);
      break;
    case 'T':
    case 't':
      v = eyas_read_u16(r);
      if (v >= d->function->tile_count) return "a tile register is out of range";
      v *= EYAS_VMVX_TILE_STRIDE >> EYAS_VMVX_TILE_SHIFT;
      break;
    case 'm':
      v = eyas_read_u16(r);
      if (v > 255) return "modes have unknown bits";
      break;
    case 'n': v = eyas_read_u16(r); break;
    case 'q': v = eyas_read_i64(r); break;
    case 'L': v = eyas_read_u32(r); break;
    default: return "the runtime's own table is wrong";
  }
  if (d->operand_count == EYAS_VMVX_MAX_OPERANDS) return "the runtime's own table is wrong";
  d->operands[d->operand_count++] = v;
  return r->failed ? "the code ends inside it" : NULL;
}

static const char* read_instruction(eyas_vmvx_decoder_t* d, eyas_reader_t* r) {
  d->byte = (uint32_t)r->at;
  d->op = eyas_read_u16(r);
  d->operand_count = 0;
  if (r->failed) return "the code ends inside it";
  if (!eyas_vmvx_op_info(d->op).name) return "it is not an instruction";
  const eyas_vmvx_op_info_t info = eyas_vmvx_op_info(d->op);
  d->format = info.format;
  d->family = info.family;
  d->number = info.number;
  d->type = info.type;
  for (const char* kind = info.format; *kind; ++kind) {
    const char* wrong = read_operand(d, r, *kind);
    if (wrong) return wrong;
  }
  return eyas_vmvx_select(d);
}

static eyas_status_t instruction_status(const eyas_vmvx_decoder_t* d, const char* wrong) {
  const char* name = eyas_vmvx_op_info(d->op).name;
  return eyas_status_make(EYAS_STATUS_CORRUPT, "instruction at byte %u (0x%03X %s): %s", d->byte,
                          d->op, name ? name : "unknown", wrong);
}

// Constants that are set at the very start are in the registers already when a workgroup starts.
static bool fold_constant(const eyas_vmvx_decoder_t* d, uint32_t cell, int64_t* initial) {
  const eyas_vmvx_cell_t* at = &d->cells[cell];
  switch (d->op) {
    case EYAS_VMVX_OP_CONST:
    case EYAS_VMVX_OP_BINDING:
    case EYAS_VMVX_OP_DATA:
    case EYAS_VMVX_OP_WIDTH: initial[at[1].u[0] / sizeof(int64_t)] = at[2].i; return true;
    default: return false;
  }
}

// Labels are the last cell of their instruction.
static const char* resolve_label(eyas_vmvx_cell_t* cells, uint32_t label, const uint32_t* starts,
                                 uint32_t code_bytes) {
  uint64_t byte = (uint64_t)cells[label].i;
  if (byte >= code_bytes || byte % 2 || starts[byte / 2] == NOT_A_START) {
    return "a branch goes to something that is not an instruction";
  }
  cells[label].target = cells + starts[byte / 2];
  return NULL;
}

static eyas_status_t finish(eyas_vmvx_decoder_t* d, eyas_bump_t* memory, const uint32_t* starts,
                            uint32_t code_bytes, uint32_t place_count) {
  eyas_vmvx_function_t* f = d->function;
  f->cells = eyas_bump_allocate(memory, d->cell_count, sizeof(*f->cells));
  eyas_vmvx_place_t* places = eyas_bump_allocate(memory, place_count, sizeof(*places));
  if (!f->cells || !places) {
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "no memory for its code");
  }
  memcpy(f->cells, d->cells, d->cell_count * sizeof(*f->cells));
  f->cell_count = d->cell_count;
  for (uint32_t i = 0; i < code_bytes / 2; ++i) {
    if (starts[i] != NOT_A_START) {
      places[f->place_count++] = (eyas_vmvx_place_t){.cell = starts[i], .byte = 2 * i};
    }
  }
  f->places = places;
  return NULL;
}

static eyas_status_t decode(eyas_vmvx_decoder_t* d, eyas_bump_t* memory, eyas_reader_t* r,
                            uint32_t* starts) {
  eyas_vmvx_function_t* f = d->function;
  int64_t* initial = eyas_bump_allocate(memory, f->scalar_count, sizeof(*initial));
  if (!initial) return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "no memory for its code");
  f->initial = initial;
  uint32_t places = 0;
  bool at_entry = true;
  while (r->at < r->end) {
    uint32_t cell = d->cell_count;
    starts[r->at / 2] = cell;
    ++places;
    const char* wrong = read_instruction(d, r);
    if (d->out_of_memory) {
      return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "no memory for its code");
    }
    if (wrong) return instruction_status(d, wrong);
    at_entry = at_entry && fold_constant(d, cell, initial);
    if (at_entry) f->entry = d->cell_count;
  }
  if (!eyas_vmvx_op_info(d->op).terminator) {
    return eyas_status_make(EYAS_STATUS_CORRUPT, "the code runs off its end");
  }
  uint32_t code_bytes = (uint32_t)r->end;
  EYAS_RETURN_IF_ERROR(finish(d, memory, starts, code_bytes, places));
  for (uint32_t i = 0; i < f->place_count; ++i) {
    d->byte = f->places[i].byte;
    d->op = eyas_load_u16(r->data + d->byte);
    if (!strchr(eyas_vmvx_op_info(d->op).format, 'L')) continue;
    uint32_t next = i + 1 < f->place_count ? f->places[i + 1].cell : f->cell_count;
    const char* wrong = resolve_label(f->cells, next - 1, starts, code_bytes);
    if (wrong) return instruction_status(d, wrong);
  }
  return NULL;
}

eyas_status_t eyas_vmvx_decode(eyas_bump_t* memory, const eyas_vmvx_settings_t* settings,
                               eyas_vmvx_function_t* function, const uint8_t* code,
                               uint32_t code_bytes) {
  if (code_bytes % 2 || code_bytes == 0 || code_bytes > EYAS_VMVX_MAX_CODE_BYTES) {
    return eyas_status_make(EYAS_STATUS_CORRUPT, "its code has an impossible length of %u bytes",
                            code_bytes);
  }
  eyas_vmvx_decoder_t d = {.function = function, .settings = *settings};
  eyas_vmvx_interpret(NULL, NULL, &d.handlers);
  uint32_t* starts = malloc((size_t)code_bytes / 2 * sizeof(*starts));
  if (!starts) return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "no memory for its code");
  memset(starts, 0xFF, (size_t)code_bytes / 2 * sizeof(*starts));
  eyas_reader_t reader = {.data = code, .at = 0, .end = code_bytes, .failed = false};
  eyas_status_t status = decode(&d, memory, &reader, starts);
  free(starts);
  free(d.cells);
  return status;
}
