// The recorded form of a command buffer: flat arrays that a driver reads once, when recording ends.
#ifndef EYAS_HAL_COMMAND_BUFFER_H_
#define EYAS_HAL_COMMAND_BUFFER_H_

#include "hal/driver.h"

typedef enum eyas_hal_command_kind_t {
  EYAS_HAL_COMMAND_DISPATCH,  // bindings: as given
  EYAS_HAL_COMMAND_FILL,      // bindings: target
  EYAS_HAL_COMMAND_COPY,      // bindings: source, target
  EYAS_HAL_COMMAND_UPDATE,    // bindings: target
} eyas_hal_command_kind_t;

typedef struct eyas_hal_command_t {
  eyas_hal_command_kind_t kind;
  uint32_t wave;         // barriers before it
  size_t binding_begin;  // into `bindings`
  uint32_t binding_count;
  uint32_t ordinal;                   // dispatch
  eyas_hal_executable_t* executable;  // dispatch; retained
  uint32_t workgroup_count[3];        // dispatch
  uint32_t constant_count;            // dispatch
  size_t constant_begin;              // dispatch; into `constants`
  size_t data_begin;                  // fill: of the 8-byte pattern; update: of its bytes
  uint32_t pattern_bytes;             // fill
} eyas_hal_command_t;

// What the commands need of one entry of the table.
typedef struct eyas_hal_slot_need_t {
  uint64_t length;  // greatest offset + length
  uint32_t access;  // union of the bits
  uint32_t usage;   // union of the bits; 0: the slot is not used
} eyas_hal_slot_need_t;

// A growing array.
typedef struct eyas_hal_list_t {
  void* data;
  size_t count;
  size_t capacity;
} eyas_hal_list_t;

struct eyas_hal_command_buffer_t {
  eyas_ref_t ref;
  eyas_hal_device_t* device;  // retained
  bool ended;
  bool profiling;
  bool copies_between_slots;  // some copy's overlap can be judged at submit only
  uint32_t wave;              // of the next command
  uint32_t slot_count;
  eyas_hal_slot_need_t* slots;
  eyas_hal_list_t commands;   // eyas_hal_command_t
  eyas_hal_list_t bindings;   // eyas_hal_binding_t; direct buffers retained, lengths resolved
  eyas_hal_list_t constants;  // int64_t
  eyas_hal_list_t data;       // bytes
  void* payload;              // the driver's, from commands_prepare
};

static inline eyas_hal_command_t* eyas_hal_commands(const eyas_hal_command_buffer_t* buffer) {
  return (eyas_hal_command_t*)buffer->commands.data;
}

static inline eyas_hal_binding_t* eyas_hal_bindings(const eyas_hal_command_buffer_t* buffer) {
  return (eyas_hal_binding_t*)buffer->bindings.data;
}

// "fill", an export's name and so on. Lives as long as the command buffer.
const char* eyas_hal_command_name(const eyas_hal_command_t* command);

// What an error word that is not 0 says (eyas/executable.h): the command, and the failure as it is
// told to the user.
const eyas_hal_command_t* eyas_hal_error_command(const eyas_hal_command_buffer_t* commands,
                                                 uint32_t word);
eyas_status_t eyas_hal_error_status(const eyas_hal_command_buffer_t* commands, uint32_t word);

// Checks a table against what the commands need of it.
eyas_status_t eyas_hal_command_buffer_check_table(const eyas_hal_command_buffer_t* commands,
                                                  const eyas_hal_range_t* table, uint32_t count);

#endif  // EYAS_HAL_COMMAND_BUFFER_H_
