// What VM references point to. Counts are plain integers: only the thread that holds the context's
// mutex touches them.
#ifndef EYAS_VM_VALUE_H_
#define EYAS_VM_VALUE_H_

#include "eyas/hal.h"

typedef enum eyas_vm_kind_t {
  EYAS_VM_NULL = 0,
  EYAS_VM_BUFFER,
  EYAS_VM_COMMANDS,
} eyas_vm_kind_t;

typedef enum eyas_vm_origin_t {
  EYAS_VM_ORIGIN_ARGUMENT,   // the caller's memory: must not outlive the call
  EYAS_VM_ORIGIN_PARAMETER,  // the module's memory
  EYAS_VM_ORIGIN_STATE,      // the context's memory, changed by calls
  EYAS_VM_ORIGIN_TRANSIENT,  // goes back to the context's cache
  EYAS_VM_ORIGIN_RESULT,     // may be handed to the caller
} eyas_vm_origin_t;

typedef struct eyas_vm_buffer_t {
  uint32_t references;
  eyas_vm_origin_t origin;
  eyas_hal_buffer_t* hal;
  uint64_t capacity;
  struct eyas_vm_buffer_t* next;  // in the context's lists of free ones
} eyas_vm_buffer_t;

typedef struct eyas_vm_commands_t {
  uint32_t references;
  uint32_t slot_count;
  bool ended;
  bool is_global;       // some global slot held it: it must not get an argument bound
  bool holds_argument;  // an argument is bound to it: it must not go into a global slot
  bool writes_state;    // a state variable is bound to it for writing
  eyas_hal_command_buffer_t* hal;
  eyas_vm_buffer_t** buffers;  // what was recorded directly; keeps transients out of the cache
  uint32_t buffer_count;
  uint32_t buffer_capacity;
} eyas_vm_commands_t;

// A register. For a buffer, the span [offset, offset + length) of it.
typedef struct eyas_vm_ref_t {
  eyas_vm_kind_t kind;
  union {
    eyas_vm_buffer_t* buffer;
    eyas_vm_commands_t* commands;
  };
  uint64_t offset;
  uint64_t length;
} eyas_vm_ref_t;

#endif  // EYAS_VM_VALUE_H_
