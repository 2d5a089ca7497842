// A command buffer as the local drivers run it. Everything is laid out when recording ends, so that
// a submission only fills in the pointers of its table and walks the waves.
#ifndef EYAS_HAL_LOCAL_COMMANDS_H_
#define EYAS_HAL_LOCAL_COMMANDS_H_

#include <stdatomic.h>

#include "hal/local/local.h"

// Bytes of one piece of a large fill or copy. A multiple of 64.
#define EYAS_HAL_LOCAL_PIECE_BYTES (256u * 1024)

// A command that has work. An item is one workgroup of a dispatch or one piece of a transfer.
typedef struct eyas_hal_local_command_t {
  eyas_hal_command_kind_t kind;
  uint32_t index;       // in the recording
  uint64_t item_begin;  // position in its wave
  uint64_t item_count;
  eyas_dispatch_fn_t function;           // dispatch of machine code
  const eyas_vmvx_function_t* bytecode;  // dispatch of bytecode
  uint64_t owner;                        // dispatch: whose data may be in the scratch memory
  eyas_dispatch_t dispatch;              // dispatch
  void* const* pointers;                 // transfers: of the bindings
  uint64_t length;                       // transfers
  const uint8_t* data;                   // fill: 8 bytes of pattern; update: the bytes
} eyas_hal_local_command_t;

// Chunks of one size, one after the other.
typedef struct eyas_hal_local_round_t {
  uint32_t chunk_begin;
  uint64_t item_begin;
  uint64_t chunk_items;  // items that are claimed together
} eyas_hal_local_round_t;

#define EYAS_HAL_LOCAL_ROUNDS 4

// The first rounds have large chunks, so that claims are few; the last has small ones, so that
// workers finish together (guided self-scheduling, Polychronopoulos and Kuck 1987).
typedef struct eyas_hal_local_wave_t {
  size_t command_begin;
  size_t command_end;
  uint64_t item_count;
  uint32_t chunk_count;  // 1: the wave runs on the caller
  eyas_hal_local_round_t rounds[EYAS_HAL_LOCAL_ROUNDS];
} eyas_hal_local_wave_t;

// A binding whose pointer comes from the table of each submission.
typedef struct eyas_hal_local_indirect_t {
  size_t binding;
  uint64_t offset;
  uint64_t length;  // or EYAS_HAL_WHOLE
  uint32_t slot;
} eyas_hal_local_indirect_t;

// The first workgroup that failed in a submission.
typedef struct eyas_hal_local_failure_t {
  uint32_t word;  // the error word; atomic
  // Of bytecode, filled in by the worker that has set the word:
  uint32_t id[3];
  int32_t code;
} eyas_hal_local_failure_t;

// Payload of a command buffer.
typedef struct eyas_hal_local_commands_t {
  pthread_mutex_t running;  // held while a submission of them runs
  size_t command_count;
  eyas_hal_local_command_t* commands;
  size_t wave_count;
  eyas_hal_local_wave_t* waves;
  void** pointers;    // of every binding
  uint64_t* lengths;  // of every binding
  size_t indirect_count;
  eyas_hal_local_indirect_t* indirects;
  // What each worker did: one row a worker, by index in the recording. NULL: no profiling.
  eyas_hal_profile_share_t* shares;
  size_t shares_of_worker;
  eyas_hal_local_failure_t failure;
} eyas_hal_local_commands_t;

#endif  // EYAS_HAL_LOCAL_COMMANDS_H_
