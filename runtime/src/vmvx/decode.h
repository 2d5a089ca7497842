// Between reading an instruction (decode.c) and choosing its handler (select.c).
#ifndef EYAS_VMVX_DECODE_H_
#define EYAS_VMVX_DECODE_H_

#include "vmvx/function.h"
#include "vmvx/settings.h"

#define EYAS_VMVX_MAX_OPERANDS 16

typedef struct eyas_vmvx_decoder_t {
  eyas_vmvx_function_t* function;
  eyas_vmvx_settings_t settings;
  const void* const* handlers;
  eyas_vmvx_cell_t* cells;
  uint32_t cell_count;
  uint32_t cell_capacity;
  bool out_of_memory;
  // The instruction at hand.
  uint32_t byte;
  uint32_t op;
  const char* format;
  uint8_t family, number, type;
  uint32_t operand_count;
  int64_t operands[EYAS_VMVX_MAX_OPERANDS];  // registers as they stand in cells
} eyas_vmvx_decoder_t;

// Appends the cells of the instruction at hand; a static text that says what is wrong, or NULL.
// A label's cell holds the byte offset.
const char* eyas_vmvx_select(eyas_vmvx_decoder_t* decoder);

#endif  // EYAS_VMVX_DECODE_H_
