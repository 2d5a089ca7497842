// Running modules. Three objects, from what is shared most to what is shared least:
//
// - eyas_module_t (module.h): the file, verified. Knows no device.
// - eyas_loaded_module_t: a module on a device, immutable: its executables loaded and its weights
//   where the device reaches them. Made once for a module and a device, shared by any number of
//   contexts. On devices that read host memory the weights stay in the mapped file.
// - eyas_context_t: what calls work on: recorded command buffers, transient memory, state
//   variables. Calls on one context run one after the other; make several contexts of one loaded
//   module to run side by side, each with a state of its own.
//
// All are reference counted; a context retains its loaded module, which retains module and device.
#ifndef EYAS_VM_H_
#define EYAS_VM_H_

#include "eyas/hal.h"
#include "eyas/module.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

// A tensor that goes in or comes out: dense, row-major.
//
// In: either `buffer`, of the context's device, whose first bytes are the elements: it is read
// where it is, so that a result stays on the device and feeds the next call. A buffer of another
// device is refused (INVALID_ARGUMENT): read it to the host first. Or, when `buffer` is NULL,
// `data`: memory of the host, which a device that cannot read it gets a copy of. Both are borrowed
// for the call, and read-only in it. Out: `buffer` holds the elements from its start on; the caller
// owns the reference. It is in memory near the device: map it where eyas_hal_buffer_memory says
// HOST_VISIBLE, eyas_hal_buffer_read it otherwise. `data` is NULL.
typedef struct eyas_tensor_t {
  const void* data;
  eyas_hal_buffer_t* buffer;
  uint32_t dtype;
  uint32_t rank;
  int64_t dims[EYAS_MAX_RANK];
} eyas_tensor_t;

typedef struct eyas_loaded_module_t eyas_loaded_module_t;

// Retains both. Fails with INCOMPATIBLE when the module's code needs another processor or features
// that the device lacks, and with FAILED_PRECONDITION when an external parameter was not given.
eyas_status_t eyas_loaded_module_create(eyas_module_t* module, eyas_hal_device_t* device,
                                        eyas_loaded_module_t** out_loaded);
eyas_loaded_module_t* eyas_loaded_module_retain(eyas_loaded_module_t* loaded);
void eyas_loaded_module_release(eyas_loaded_module_t* loaded);
eyas_module_t* eyas_loaded_module_module(const eyas_loaded_module_t* loaded);      // borrowed
eyas_hal_device_t* eyas_loaded_module_device(const eyas_loaded_module_t* loaded);  // borrowed

typedef struct eyas_context_t eyas_context_t;

typedef struct eyas_context_options_t {
  uint64_t instruction_budget;  // a call that runs more instructions fails; 0: no limit
  bool profile;                 // time every command; see eyas_context_profile
  uint64_t state_limit_bytes;   // a module with more state is refused; 0: no limit
} eyas_context_options_t;

// `options` may be NULL for the defaults. Retains the loaded module. Cheap: memory for state
// variables, and little else until the first call.
eyas_status_t eyas_context_create(eyas_loaded_module_t* loaded,
                                  const eyas_context_options_t* options,
                                  eyas_context_t** out_context);
eyas_context_t* eyas_context_retain(eyas_context_t* context);
void eyas_context_release(eyas_context_t* context);

// Calls a function and waits for it. Arguments are checked against the signature: INVALID_ARGUMENT
// names the argument, what was expected and what came. On success `results` holds the signature's
// results; on failure it is untouched. Any thread may call; the context's mutex orders them.
eyas_status_t eyas_context_invoke(eyas_context_t* context, uint32_t function,
                                  const eyas_tensor_t* args, uint32_t arg_count,
                                  eyas_tensor_t* results, uint32_t result_count);

// State variables, by their ordinal in the module. A call that fails before it has submitted work
// that writes state leaves all of it as it was. One that fails later leaves it undefined: calls
// that use state, and reads, then fail with FAILED_PRECONDITION until it is reset or each variable
// is set.

// A copy of the value, as a result of a call is; the caller owns its buffer.
eyas_status_t eyas_context_state_get(eyas_context_t* context, uint32_t index, eyas_tensor_t* out);
// Type and dims must be the variable's; `value` is an argument as of a call.
eyas_status_t eyas_context_state_set(eyas_context_t* context, uint32_t index,
                                     const eyas_tensor_t* value);
// Gives every variable its first value again.
eyas_status_t eyas_context_state_reset(eyas_context_t* context);

// Bytes of transient memory that the context holds, in use or cached.
uint64_t eyas_context_transient_bytes(eyas_context_t* context);

// What the calls since the last call of this took, one event per command in the order of
// submission, when the context was made with `profile`. The caller clears what it gets; names live
// with the context.
eyas_status_t eyas_context_profile(eyas_context_t* context, eyas_hal_profile_t* out_profile);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif  // EYAS_VM_H_
