// Decoding and verification of bytecode, once, on load.
//
// A function becomes 32-bit words: the opcode, then its operands. A register, ordinal or immediate
// is one word, an i64 immediate two (low first), a label the index of a word, a list its count and
// then its elements, a binding five. Every register, ordinal, label and enum in the words is in
// range and the last instruction does not fall off the end, so the interpreter checks values only.
#ifndef EYAS_VM_DECODE_H_
#define EYAS_VM_DECODE_H_

#include "module/program.h"

// Fills in words, initial, word_count and entry of `function`, whose signature and register counts
// are set. The program's strings, tables, executables, parameters and globals must be parsed.
eyas_status_t eyas_vm_decode(eyas_program_t* program, eyas_function_t* function,
                             const uint8_t* code, uint32_t code_bytes);

// Of an instruction that was decoded, for messages.
const char* eyas_vm_op_name(uint32_t op);

#endif  // EYAS_VM_DECODE_H_
