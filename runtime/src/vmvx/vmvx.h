// The VMVX machine: executables of format `vmvx`, which are bytecode and the same for every CPU
// (docs/vmvx.md). The bytes are not trusted: loading refuses what is malformed, and running stays
// inside the buffers of the dispatch whatever the code does.
#ifndef EYAS_VMVX_VMVX_H_
#define EYAS_VMVX_VMVX_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eyas/executable.h"
#include "eyas/status.h"

#define EYAS_VMVX_FORMAT "vmvx"

typedef struct eyas_vmvx_settings_t eyas_vmvx_settings_t;  // settings.h
typedef struct eyas_vmvx_executable_t eyas_vmvx_executable_t;
typedef struct eyas_vmvx_function_t eyas_vmvx_function_t;

// Chooses microkernels by name (NULL or "": the best of this CPU) and a width (0: what suits them);
// what is not allowed is an error that says what is.
eyas_status_t eyas_vmvx_settings(const char* kernels, unsigned width,
                                 eyas_vmvx_settings_t* out_settings);

// `bytes` is needed during the call only.
eyas_status_t eyas_vmvx_load(const void* bytes, size_t length, const eyas_vmvx_settings_t* settings,
                             eyas_vmvx_executable_t** out_executable);
void eyas_vmvx_unload(eyas_vmvx_executable_t* executable);  // NULL is allowed

uint32_t eyas_vmvx_function_count(const eyas_vmvx_executable_t* executable);
const eyas_vmvx_function_t* eyas_vmvx_function(const eyas_vmvx_executable_t* executable,
                                               uint32_t index);
// Functions live as long as the executable.
eyas_status_t eyas_vmvx_lookup(const eyas_vmvx_executable_t* executable, const char* name,
                               const eyas_vmvx_function_t** out_function);

const char* eyas_vmvx_function_name(const eyas_vmvx_function_t* function);
uint32_t eyas_vmvx_function_bindings(const eyas_vmvx_function_t* function);
uint32_t eyas_vmvx_function_constants(const eyas_vmvx_function_t* function);
// Bit i: binding i may be written. Bindings from 64 on are read-only.
bool eyas_vmvx_function_writes(const eyas_vmvx_function_t* function, uint32_t binding);

// Runs `count` workgroups, one after the other in the order x, y, z, from `workgroup->id` on. The
// dispatch has the function's number of bindings and constants. Scratch memory holds registers and
// local memory while they fit. `budget` bounds the steps of each workgroup (jumps back, and work
// inside an instruction that a number in a register decides); 0: no bound.
//
// 0 when all succeeded. Otherwise `workgroup->id` is the one that failed, and the code is
// EYAS_ERROR_BAD_DATA or one that eyas_vmvx_failure explains.
int32_t eyas_vmvx_run(const eyas_vmvx_function_t* function, const eyas_dispatch_t* dispatch,
                      eyas_workgroup_t* workgroup, uint64_t count, uint64_t budget);

// What a code of eyas_vmvx_run means: the reason and the place in the code.
eyas_status_t eyas_vmvx_failure(const eyas_vmvx_function_t* function, int32_t code);

#endif  // EYAS_VMVX_VMVX_H_
