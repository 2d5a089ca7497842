// The insides of a context, shared by its files: context.c (life and calls), memory.c (buffers and
// references), args.c (arguments), state.c (state variables), signature.c (what may be passed),
// interpreter.c (instructions), submit.c (submission, waiting, times).
#ifndef EYAS_VM_CONTEXT_H_
#define EYAS_VM_CONTEXT_H_

#include <pthread.h>

#include "vm/loaded.h"
#include "vm/value.h"

// The last answer of one arena_pack instruction.
typedef struct eyas_vm_pack_memo_t {
  int64_t* sizes;
  int64_t* offsets;
  uint32_t* scratch;
  int64_t total;
  bool valid;
} eyas_vm_pack_memo_t;

struct eyas_context_t {
  eyas_ref_t ref;
  pthread_mutex_t mutex;  // held during a call; guards all below
  eyas_loaded_module_t* loaded;
  eyas_module_t* module;      // the loaded module's, borrowed
  eyas_hal_device_t* device;  // likewise
  eyas_context_options_t options;
  eyas_vm_buffer_t* parameters;  // the loaded module's, counted by this context
  eyas_vm_buffer_t* states;
  bool* states_torn;                 // a call failed while it was writing
  bool state_written;                // by the call at hand, or may have been
  eyas_hal_command_buffer_t* reset;  // gives the variables their first values
  // Of asynchronous devices; see submit.c.
  eyas_hal_semaphore_t* timeline;  // NULL: nothing is under way
  uint64_t submitted;              // where the timeline is when all is done
  uint64_t state_point;  // where it is after the first submission that writes state; 0: none
  eyas_hal_command_buffer_t** timed;  // under way with profiling
  uint32_t timed_count;
  uint32_t timed_capacity;
  eyas_vm_ref_t* globals;
  eyas_vm_pack_memo_t* pack_memos;
  eyas_vm_buffer_t* args;  // as many as the greatest signature has
  // One frame: calls do not nest.
  int64_t* i64s;
  eyas_vm_ref_t* refs;
  eyas_tensor_t* results;
  int64_t* symbols;  // what the arguments bound them to
  eyas_hal_range_t* table;
  eyas_hal_profile_t profile;
  eyas_vm_buffer_t* free_transients;
  eyas_vm_buffer_t* free_headers;  // structs without memory
  uint64_t transient_bytes;
  eyas_bump_t memory;
};

// memory.c

void eyas_vm_buffer_drop(eyas_context_t* context, eyas_vm_buffer_t* buffer);
void eyas_vm_ref_clear(eyas_context_t* context, eyas_vm_ref_t* ref);
// *target = *source, holding both while it happens.
void eyas_vm_ref_assign(eyas_context_t* context, eyas_vm_ref_t* target,
                        const eyas_vm_ref_t* source);
eyas_status_t eyas_vm_allocate(eyas_context_t* context, int64_t bytes, uint32_t kind,
                               eyas_vm_ref_t* target);
eyas_status_t eyas_vm_commands_create(eyas_context_t* context, uint32_t slot_count,
                                      eyas_vm_ref_t* target);
// Makes the commands hold a buffer that was recorded into them.
eyas_status_t eyas_vm_commands_hold(eyas_vm_commands_t* commands, eyas_vm_buffer_t* buffer);
void eyas_vm_release_cached(eyas_context_t* context);

// Memory near the device that the caller may keep; mapped where that costs nothing.
eyas_status_t eyas_vm_allocate_result(eyas_context_t* context, uint64_t bytes,
                                      eyas_hal_buffer_t** out_buffer);

// state.c

// Allocates the state variables and gives them their first values.
eyas_status_t eyas_vm_create_states(eyas_context_t* context);
// Notes that nobody knows what is in them.
void eyas_vm_tear_states(eyas_context_t* context);
// Fails when one is torn.
eyas_status_t eyas_vm_check_states(eyas_context_t* context);

// signature.c

// Checks that a buffer given as a value is of the device and has at least `bytes`.
eyas_status_t eyas_vm_check_buffer(eyas_hal_device_t* device, const eyas_hal_buffer_t* buffer,
                                   uint64_t bytes);
// Checks arguments against a signature; `bound` has room for its symbols.
eyas_status_t eyas_vm_check_args(eyas_hal_device_t* device, const eyas_signature_t* signature,
                                 const eyas_tensor_t* args, uint32_t arg_count, int64_t* bound);
// Checks a result's dims, and that `available` bytes hold it; gives its size.
eyas_status_t eyas_vm_check_result(const eyas_signature_t* signature, uint32_t index,
                                   const int64_t* dims, uint64_t available, uint64_t* out_bytes);

// interpreter.c

// Runs a function on the context's frame, whose arguments are in place.
eyas_status_t eyas_vm_run(eyas_context_t* context, const eyas_function_t* function,
                          const eyas_tensor_t* args);

// args.c

// Gives every argument a buffer that the device reads.
eyas_status_t eyas_vm_import_args(eyas_context_t* context, const eyas_tensor_t* args,
                                  uint32_t count);

// submit.c

// Submits commands of the VM's own behind what the context has submitted before.
eyas_status_t eyas_vm_submit(eyas_context_t* context, const eyas_hal_submission_t* submission);
// The same for commands that the program recorded: their times are noted when the context profiles.
eyas_status_t eyas_vm_submit_recorded(eyas_context_t* context,
                                      const eyas_hal_submission_t* submission, bool writes_state);
// Waits for all that the context has submitted; its failure, if it has failed.
eyas_status_t eyas_vm_wait(eyas_context_t* context);
// Copies to the start of `target`, in the order of submissions.
eyas_status_t eyas_vm_copy(eyas_context_t* context, eyas_hal_buffer_t* source, uint64_t offset,
                           eyas_hal_buffer_t* target, uint64_t bytes);

#endif  // EYAS_VM_CONTEXT_H_
