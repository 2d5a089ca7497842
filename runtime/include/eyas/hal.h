// HAL: the one interface through which programs reach devices.
//
// A driver makes devices; a device makes buffers, executables, command buffers and semaphores, and
// runs recorded command buffers. The shape is Vulkan's, so that a driver can be thin.
//
// Ownership. Every object is reference counted. `create`, `allocate`, `import` and `subspan` return
// an object with one reference, which the caller owns; `retain` adds one, `release` drops one (NULL
// is allowed) and the last destroys. Objects keep alive what they need: buffers, executables,
// command buffers and semaphores retain their device, a subspan its parent, a command buffer what
// was recorded into it. Arguments are borrowed for the call unless a comment says otherwise.
//
// Threads. Devices, executables, semaphores, reference counts and submit may be used from any
// thread at once. A command buffer is recorded by one thread at a time. Contents of buffers are
// ordered by barriers, submissions and semaphores only.
#ifndef EYAS_HAL_H_
#define EYAS_HAL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eyas/executable.h"
#include "eyas/status.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct eyas_hal_device_t eyas_hal_device_t;
typedef struct eyas_hal_buffer_t eyas_hal_buffer_t;
typedef struct eyas_hal_executable_t eyas_hal_executable_t;
typedef struct eyas_hal_command_buffer_t eyas_hal_command_buffer_t;
typedef struct eyas_hal_semaphore_t eyas_hal_semaphore_t;

// Limits, the same for every driver. Crossing one gives RESOURCE_EXHAUSTED and names it.
#define EYAS_HAL_MAX_BINDINGS 256             // bindings of one dispatch
#define EYAS_HAL_MAX_CONSTANTS 256            // push constants of one dispatch
#define EYAS_HAL_MAX_SLOTS 65536              // binding-table slots of one command buffer
#define EYAS_HAL_MAX_UPDATE_BYTES 65536       // bytes of one update command
#define EYAS_HAL_MAX_COMMANDS (1u << 24)      // commands of one command buffer
#define EYAS_HAL_MAX_WORKERS 1024             // worker threads of one device
#define EYAS_HAL_MAX_WORKGROUPS (1ull << 48)  // x * y * z of one dispatch

#define EYAS_HAL_BUFFER_ALIGNMENT 64  // of the start of every allocated buffer, in bytes
#define EYAS_HAL_WHOLE UINT64_MAX     // as a length: from the offset to the end

//===-- Drivers and devices ---------------------------------------------------------------------//

// Drivers built into this runtime, in order of preference for a default.
size_t eyas_hal_driver_count(void);
const char* eyas_hal_driver_name(size_t index);  // static string; NULL beyond the last

// How many devices the named driver sees on this machine (1 for the local drivers).
eyas_status_t eyas_hal_driver_device_count(const char* driver, uint32_t* out_count);

// A setting that devices of a driver have. Which there are is the driver's own business:
// `local-task` has "threads", "scratch_bytes", "spin_us", "step_budget", "vmvx_kernels" and
// "vmvx_width".
typedef struct eyas_hal_option_info_t {
  const char* name;         // "threads"
  const char* description;  // for people
  bool is_text;             // its value is a text, which the driver judges; a number otherwise
  uint64_t default_value;   // of a number; that of a text is NULL, the driver's choice
  uint64_t min;
  uint64_t max;
} eyas_hal_option_info_t;

// NULL beyond the last, and for a driver that is not there. Static.
const eyas_hal_option_info_t* eyas_hal_driver_option(const char* driver, uint32_t index);

typedef struct eyas_hal_option_t {
  const char* name;
  uint64_t number;
  const char* text;  // needed while the device is created only
} eyas_hal_option_t;

typedef struct eyas_hal_device_options_t {
  uint32_t device_index;            // which of the driver's devices
  const eyas_hal_option_t* values;  // those that differ from the driver's defaults
  uint32_t value_count;
} eyas_hal_device_options_t;

// `options` may be NULL for the defaults. A name that the driver does not have fails with
// INVALID_ARGUMENT, a value outside the option's range with OUT_OF_RANGE.
eyas_status_t eyas_hal_device_create(const char* driver, const eyas_hal_device_options_t* options,
                                     eyas_hal_device_t** out_device);
eyas_hal_device_t* eyas_hal_device_retain(eyas_hal_device_t* device);
void eyas_hal_device_release(eyas_hal_device_t* device);

// Bits of a memory type.
typedef enum eyas_hal_memory_bits_t {
  EYAS_HAL_MEMORY_DEVICE_LOCAL = 1u << 0,  // near the device: fast for dispatches
  EYAS_HAL_MEMORY_HOST_VISIBLE = 1u << 1,  // can be mapped
  EYAS_HAL_MEMORY_HOST_CACHED = 1u << 2,   // reads by the host are fast
} eyas_hal_memory_bits_t;

#define EYAS_HAL_MAX_MEMORY_TYPES 8

typedef struct eyas_hal_device_info_t {
  const char* driver;      // "local-task"; static
  const char* name;        // for people: "AMD EPYC 7B13"; lives as long as the device
  uint32_t worker_count;   // workgroups that can run at the same moment
  uint64_t scratch_bytes;  // per worker
  uint32_t memory_type_count;
  uint32_t memory_types[EYAS_HAL_MAX_MEMORY_TYPES];  // each a set of eyas_hal_memory_bits_t
  bool host_visible;  // memory that is near the device can be mapped too: no copies to reach it
  bool asynchronous;  // submit may return before the work is done
} eyas_hal_device_info_t;

void eyas_hal_device_info(eyas_hal_device_t* device, eyas_hal_device_info_t* out_info);

// One of the things that a device has, by the names in which code says what it needs, such as
// "shared-bytes" = "32768" or "f16" = "yes", and more for people ("driver"). Texts live as long as
// the device. False beyond the last; devices that are CPUs have none.
typedef struct eyas_hal_property_t {
  const char* name;
  const char* value;
} eyas_hal_property_t;

bool eyas_hal_device_property(eyas_hal_device_t* device, uint32_t index,
                              eyas_hal_property_t* out_property);

// Asks the device whether it can run code of this format ("elf-x86_64", "vmvx") that needs all of
// these features of its processor, by the names that the format's compiler gives them ("avx512f",
// "sve", "v" for machine code). NULL: yes. INCOMPATIBLE: no, and the message says what is missing.
// Where a file has several variants of its code, the first that the device can run is the one to
// load. A yes does not look at the code itself: loading it may still find it damaged.
eyas_status_t eyas_hal_device_check_code(eyas_hal_device_t* device, const char* format,
                                         const char* const* features, uint32_t feature_count);

// Returns when all that was submitted has finished.
eyas_status_t eyas_hal_device_wait_idle(eyas_hal_device_t* device);

//===-- Buffers ---------------------------------------------------------------------------------//

typedef enum eyas_hal_usage_bits_t {
  EYAS_HAL_USAGE_DISPATCH = 1u << 0,  // bound to dispatches
  EYAS_HAL_USAGE_TRANSFER = 1u << 1,  // source or target of fill, copy, update
  EYAS_HAL_USAGE_MAP = 1u << 2,       // mapped by the host
  EYAS_HAL_USAGE_ALL = 7u,
} eyas_hal_usage_bits_t;

typedef enum eyas_hal_access_bits_t {
  EYAS_HAL_ACCESS_READ = 1u << 0,
  EYAS_HAL_ACCESS_WRITE = 1u << 1,
  EYAS_HAL_ACCESS_READ_WRITE = 3u,
} eyas_hal_access_bits_t;

// Allocates `length` bytes (0 is allowed) with undefined contents in memory that has at least the
// bits of `memory` (0: the driver's choice) and serves `usage`. EYAS_HAL_USAGE_MAP asks for memory
// that the host sees. Every device has memory near it for dispatches and transfers, and memory that
// the host sees for transfers; only where its info says host_visible are they the same, and asking
// for more elsewhere fails with INCOMPATIBLE.
eyas_status_t eyas_hal_buffer_allocate(eyas_hal_device_t* device, uint32_t memory, uint32_t usage,
                                       uint64_t length, eyas_hal_buffer_t** out_buffer);

// Called once when an imported buffer dies, from whichever thread dropped the last reference.
typedef void (*eyas_hal_release_fn_t)(void* user, void* pointer, uint64_t length);

// Wraps host memory without a copy. `access` without WRITE makes the buffer read-only: to bind it
// to something that writes is an error. The memory must stay valid until `release` (may be NULL) is
// called. When the import fails `release` is not called. A driver that cannot use the pointer as it
// is fails with INCOMPATIBLE; then allocate and eyas_hal_buffer_write.
eyas_status_t eyas_hal_buffer_import(eyas_hal_device_t* device, uint32_t usage, uint32_t access,
                                     void* pointer, uint64_t length, eyas_hal_release_fn_t release,
                                     void* user, eyas_hal_buffer_t** out_buffer);

// A view of a range of `parent`, which it retains. `length` may be EYAS_HAL_WHOLE.
eyas_status_t eyas_hal_buffer_subspan(eyas_hal_buffer_t* parent, uint64_t offset, uint64_t length,
                                      eyas_hal_buffer_t** out_buffer);

eyas_hal_buffer_t* eyas_hal_buffer_retain(eyas_hal_buffer_t* buffer);
void eyas_hal_buffer_release(eyas_hal_buffer_t* buffer);

eyas_hal_device_t* eyas_hal_buffer_device(const eyas_hal_buffer_t* buffer);  // borrowed
uint64_t eyas_hal_buffer_length(const eyas_hal_buffer_t* buffer);            // in bytes
uint32_t eyas_hal_buffer_access(const eyas_hal_buffer_t* buffer);            // allowed access bits
uint32_t eyas_hal_buffer_memory(const eyas_hal_buffer_t* buffer);  // eyas_hal_memory_bits_t

// Makes a range visible to the host. The pointer is good until the matching unmap, which makes the
// host's writes visible to the device. Several maps may be open at once. On the local drivers the
// pointer is the memory itself and both calls cost nothing.
eyas_status_t eyas_hal_buffer_map(eyas_hal_buffer_t* buffer, uint32_t access, uint64_t offset,
                                  uint64_t length, void** out_pointer);
void eyas_hal_buffer_unmap(eyas_hal_buffer_t* buffer);

// Copies between host memory and a buffer on any driver, mapped or not. Blocking.
eyas_status_t eyas_hal_buffer_write(eyas_hal_buffer_t* buffer, uint64_t offset, const void* data,
                                    uint64_t length);
eyas_status_t eyas_hal_buffer_read(eyas_hal_buffer_t* buffer, uint64_t offset, void* data,
                                   uint64_t length);

// Copies between buffers of one device, which must not overlap. Blocking.
eyas_status_t eyas_hal_buffer_copy(eyas_hal_buffer_t* source, uint64_t source_offset,
                                   eyas_hal_buffer_t* target, uint64_t target_offset,
                                   uint64_t length);

//===-- Executables -----------------------------------------------------------------------------//

// Loads compiled code. `bytes` is needed during the call only. An export's ordinal is its position
// in `export_names`; a name that the image does not have fails with NOT_FOUND, an image for another
// machine or ABI with INCOMPATIBLE, a malformed one with CORRUPT.
eyas_status_t eyas_hal_executable_create(eyas_hal_device_t* device, const char* format,
                                         const void* bytes, size_t length,
                                         const char* const* export_names, uint32_t export_count,
                                         eyas_hal_executable_t** out_executable);

// An executable made of functions of this process. Local drivers only; for tests and embedders.
eyas_status_t eyas_hal_executable_create_static(eyas_hal_device_t* device,
                                                const char* const* export_names,
                                                const eyas_dispatch_fn_t* functions,
                                                uint32_t export_count,
                                                eyas_hal_executable_t** out_executable);

eyas_hal_executable_t* eyas_hal_executable_retain(eyas_hal_executable_t* executable);
void eyas_hal_executable_release(eyas_hal_executable_t* executable);

uint32_t eyas_hal_executable_export_count(const eyas_hal_executable_t* executable);
// NULL beyond the last; lives as long as the executable.
const char* eyas_hal_executable_export_name(const eyas_hal_executable_t* executable,
                                            uint32_t ordinal);
eyas_status_t eyas_hal_executable_lookup(const eyas_hal_executable_t* executable, const char* name,
                                         uint32_t* out_ordinal);

//===-- Command buffers -------------------------------------------------------------------------//

// A range of bytes that a command touches. Direct when `buffer` is set: the command buffer retains
// it. Indirect when it is NULL: `slot` names an entry of the table given at submit, and `offset` is
// relative to that entry's offset. So one recording is replayed with other buffers.
typedef struct eyas_hal_binding_t {
  eyas_hal_buffer_t* buffer;
  uint32_t slot;    // used when buffer is NULL
  uint32_t access;  // eyas_hal_access_bits_t; read for dispatches only
  uint64_t offset;  // in bytes
  uint64_t length;  // in bytes, or EYAS_HAL_WHOLE
} eyas_hal_binding_t;

typedef struct eyas_hal_dispatch_t {
  eyas_hal_executable_t* executable;  // retained by the command buffer
  uint32_t ordinal;                   // which export
  uint32_t workgroup_count[3];        // x, y, z; a 0 anywhere means no work
  const int64_t* constants;           // copied
  uint32_t constant_count;
  const eyas_hal_binding_t* bindings;  // copied
  uint32_t binding_count;
} eyas_hal_dispatch_t;

// `slot_count` is how many entries the table of each submission has; 0 when all is direct.
eyas_status_t eyas_hal_command_buffer_create(eyas_hal_device_t* device, uint32_t slot_count,
                                             eyas_hal_command_buffer_t** out_command_buffer);
eyas_hal_command_buffer_t* eyas_hal_command_buffer_retain(eyas_hal_command_buffer_t* commands);
void eyas_hal_command_buffer_release(eyas_hal_command_buffer_t* commands);

// Recording. Commands between two barriers form a wave and may run at the same time in any order;
// they must not write what another command of the wave touches. A recording call that fails leaves
// the command buffer as it was.
eyas_status_t eyas_hal_command_buffer_dispatch(eyas_hal_command_buffer_t* commands,
                                               const eyas_hal_dispatch_t* dispatch);

// Fills `target` with a pattern of 1, 2, 4 or 8 bytes (in memory order); its length must be a
// multiple of that.
eyas_status_t eyas_hal_command_buffer_fill(eyas_hal_command_buffer_t* commands,
                                           eyas_hal_binding_t target, const void* pattern,
                                           uint32_t pattern_bytes);

// Copies `source` to `target`. Lengths must be equal, and the ranges must not overlap.
eyas_status_t eyas_hal_command_buffer_copy(eyas_hal_command_buffer_t* commands,
                                           eyas_hal_binding_t source, eyas_hal_binding_t target);

// Writes target.length bytes of `data`, which are copied into the command buffer now.
eyas_status_t eyas_hal_command_buffer_update(eyas_hal_command_buffer_t* commands, const void* data,
                                             eyas_hal_binding_t target);

// All commands before it finish, and their writes are visible, before any command after it starts.
eyas_status_t eyas_hal_command_buffer_barrier(eyas_hal_command_buffer_t* commands);

// Times every command of each submission. Call before end; costs one branch per wave when off.
eyas_status_t eyas_hal_command_buffer_enable_profiling(eyas_hal_command_buffer_t* commands);

// Ends the recording; from now on it can be submitted, any number of times, and not be changed.
eyas_status_t eyas_hal_command_buffer_end(eyas_hal_command_buffer_t* commands);

// What profiling saw of one command. Times are CLOCK_MONOTONIC.
typedef struct eyas_hal_profile_event_t {
  const char* name;      // export name, or "fill", "copy", "update"; lives with the commands
  uint32_t submission;   // which of the profile's submissions, from 0
  uint32_t wave;         // which wave of it, from 0
  uint32_t grid[3];      // workgroups of a dispatch; (pieces, 1, 1) of a transfer
  uint64_t start_ns;     // when its first workgroup started; 0 if it had no work
  uint64_t end_ns;       // when its last workgroup ended
  size_t binding_begin;  // into `bindings`
  size_t binding_count;
  size_t constant_begin;  // into `constants`
  size_t constant_count;
} eyas_hal_profile_event_t;

// One worker's share of a command.
typedef struct eyas_hal_profile_share_t {
  uint64_t workgroup_count;  // 0: it had no part
  uint64_t start_ns;
  uint64_t end_ns;
  uint64_t busy_ns;  // end - start, less what it did between two chunks of the command
} eyas_hal_profile_share_t;

// Memory that a command was given.
typedef struct eyas_hal_profile_binding_t {
  const void* address;
  uint64_t length;  // in bytes
  uint32_t access;  // eyas_hal_access_bits_t
} eyas_hal_profile_binding_t;

// Grows with each submission that is added. Starts as zeros.
typedef struct eyas_hal_profile_t {
  eyas_hal_profile_event_t* events;
  size_t event_count;
  size_t event_capacity;
  eyas_hal_profile_share_t* shares;  // worker_count of each event, one after the other
  uint32_t worker_count;
  uint32_t submission_count;
  eyas_hal_profile_binding_t* bindings;
  size_t binding_count;
  size_t binding_capacity;
  int64_t* constants;  // push constants
  size_t constant_count;
  size_t constant_capacity;
} eyas_hal_profile_t;

// Adds the commands of the latest submission, in recording order. A profile is of one device.
eyas_status_t eyas_hal_command_buffer_profile(eyas_hal_command_buffer_t* commands,
                                              eyas_hal_profile_t* profile);
// Frees what a profile holds and makes it empty.
void eyas_hal_profile_clear(eyas_hal_profile_t* profile);

//===-- Semaphores ------------------------------------------------------------------------------//

#define EYAS_HAL_FOREVER UINT64_MAX

// A timeline: a number that only grows. A submission that fails also fails the semaphores it would
// have signalled, so that waiters learn of it instead of waiting for ever.
eyas_status_t eyas_hal_semaphore_create(eyas_hal_device_t* device, uint64_t initial_value,
                                        eyas_hal_semaphore_t** out_semaphore);
eyas_hal_semaphore_t* eyas_hal_semaphore_retain(eyas_hal_semaphore_t* semaphore);
void eyas_hal_semaphore_release(eyas_hal_semaphore_t* semaphore);

// The value now, or the failure.
eyas_status_t eyas_hal_semaphore_query(eyas_hal_semaphore_t* semaphore, uint64_t* out_value);
// `value` must be greater than the present one.
eyas_status_t eyas_hal_semaphore_signal(eyas_hal_semaphore_t* semaphore, uint64_t value);
// Waits until the value is at least `value`; UNAVAILABLE when `timeout_ns` passed before that.
eyas_status_t eyas_hal_semaphore_wait(eyas_hal_semaphore_t* semaphore, uint64_t value,
                                      uint64_t timeout_ns);

//===-- Submission ------------------------------------------------------------------------------//

// One entry of a binding table. `buffer` may be NULL for a slot that no command uses.
typedef struct eyas_hal_range_t {
  eyas_hal_buffer_t* buffer;
  uint64_t offset;  // in bytes
  uint64_t length;  // in bytes, or EYAS_HAL_WHOLE
} eyas_hal_range_t;

typedef struct eyas_hal_timepoint_t {
  eyas_hal_semaphore_t* semaphore;
  uint64_t value;
} eyas_hal_timepoint_t;

typedef struct eyas_hal_submission_t {
  eyas_hal_command_buffer_t* commands;  // ended; NULL to only wait and signal
  const eyas_hal_range_t* table;        // slot_count entries
  uint32_t table_count;
  const eyas_hal_timepoint_t* waits;  // all reached before the first command starts
  uint32_t wait_count;
  const eyas_hal_timepoint_t* signals;  // set after the last command
  uint32_t signal_count;
} eyas_hal_submission_t;

// Runs the commands. The table is checked against what the recording needs: every slot's greatest
// offset + length, and that nothing read-only is written. Submissions of one thread to one device
// run one after the other. Those of several threads may overlap: what one needs of another is
// ordered by semaphores, or by waiting in between. Submissions of one command buffer never overlap.
// A submission that these checks refuse has no effect, on its semaphores neither.
//
// The device keeps what a submission names alive until it has finished: the caller may let go of
// it at once. Memory of the host behind an import is the caller's to keep.
//
// Where the device's info does not say `asynchronous` the work is done on the calling thread:
// submit blocks until its waits are reached, so what they wait for is submitted before, or by
// another thread; it returns when the work is done, and a failure of the work is its result. On an
// asynchronous device it returns at once, and the failure is that of the semaphores it would have
// signalled: wait for one before reading results. A submission whose waits are not reached yet
// holds up no other. In a forked child such a device fails with FAILED_PRECONDITION.
eyas_status_t eyas_hal_device_submit(eyas_hal_device_t* device,
                                     const eyas_hal_submission_t* submission);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif  // EYAS_HAL_H_
