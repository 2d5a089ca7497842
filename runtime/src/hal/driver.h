// What a driver implements, and what the drivers share. Private to the runtime.
//
// The public functions of hal.h check every argument and keep the reference counts; a driver sees
// only calls that are already valid. Recording is shared too: a driver gets the finished list of
// commands once, when recording ends, and turns it into what its device wants.
#ifndef EYAS_HAL_DRIVER_H_
#define EYAS_HAL_DRIVER_H_

#include "base/ref.h"
#include "eyas/hal.h"

typedef struct eyas_hal_device_vtable_t {
  void (*destroy)(eyas_hal_device_t* device);
  void (*info)(eyas_hal_device_t* device, eyas_hal_device_info_t* out_info);
  // See eyas_hal_device_property; NULL: it has none.
  bool (*property)(eyas_hal_device_t* device, uint32_t index, eyas_hal_property_t* out_property);
  // NULL, or why not (INCOMPATIBLE); see eyas_hal_device_check_code.
  eyas_status_t (*check_code)(eyas_hal_device_t* device, const char* format,
                              const char* const* features, uint32_t feature_count);
  eyas_status_t (*wait_idle)(eyas_hal_device_t* device);

  // The buffer's common fields are set already; the driver sets `host`, `memory` and `payload`.
  eyas_status_t (*buffer_allocate)(eyas_hal_device_t* device, eyas_hal_buffer_t* buffer);
  eyas_status_t (*buffer_import)(eyas_hal_device_t* device, eyas_hal_buffer_t* buffer,
                                 void* pointer);
  void (*buffer_free)(eyas_hal_device_t* device, eyas_hal_buffer_t* buffer);
  // Make the device's writes visible to the host and back; NULL where memory is coherent.
  eyas_status_t (*buffer_invalidate)(eyas_hal_device_t* device, eyas_hal_buffer_t* buffer,
                                     uint64_t offset, uint64_t length);
  void (*buffer_flush)(eyas_hal_device_t* device, eyas_hal_buffer_t* buffer);

  // Loads code; the driver sets `payload` and leaves the names to the caller.
  eyas_status_t (*executable_load)(eyas_hal_device_t* device, eyas_hal_executable_t* executable,
                                   const char* format, const void* bytes, size_t length);
  eyas_status_t (*executable_adopt)(eyas_hal_device_t* device, eyas_hal_executable_t* executable,
                                    const eyas_dispatch_fn_t* functions);  // NULL: not a CPU
  void (*executable_unload)(eyas_hal_device_t* device, eyas_hal_executable_t* executable);

  // Prepares an ended command buffer; the driver sets `payload`.
  eyas_status_t (*commands_prepare)(eyas_hal_device_t* device, eyas_hal_command_buffer_t* commands);
  void (*commands_destroy)(eyas_hal_device_t* device, eyas_hal_command_buffer_t* commands);
  // After a submission: completes one event for each command (grid and times; the rest is set),
  // `worker_count` shares of each, and one entry for each recorded binding.
  void (*commands_profile)(eyas_hal_device_t* device, eyas_hal_command_buffer_t* commands,
                           eyas_hal_profile_event_t* events, eyas_hal_profile_share_t* shares,
                           eyas_hal_profile_binding_t* bindings);

  eyas_status_t (*semaphore_create)(eyas_hal_device_t* device, uint64_t initial_value,
                                    eyas_hal_semaphore_t** out_semaphore);
  void (*semaphore_destroy)(eyas_hal_semaphore_t* semaphore);
  eyas_status_t (*semaphore_query)(eyas_hal_semaphore_t* semaphore, uint64_t* out_value);
  eyas_status_t (*semaphore_signal)(eyas_hal_semaphore_t* semaphore, uint64_t value);
  void (*semaphore_fail)(eyas_hal_semaphore_t* semaphore, eyas_status_t status);  // borrows status
  eyas_status_t (*semaphore_wait)(eyas_hal_semaphore_t* semaphore, uint64_t value,
                                  uint64_t timeout_ns);

  eyas_status_t (*submit)(eyas_hal_device_t* device, const eyas_hal_submission_t* submission);
} eyas_hal_device_vtable_t;

// Drivers put these first in their own structs.
struct eyas_hal_device_t {
  eyas_ref_t ref;
  const eyas_hal_device_vtable_t* vtable;
  const char* driver;  // static
};

struct eyas_hal_semaphore_t {
  eyas_ref_t ref;
  eyas_hal_device_t* device;  // retained
};

struct eyas_hal_buffer_t {
  eyas_ref_t ref;
  eyas_hal_device_t* device;  // retained
  eyas_hal_buffer_t* root;    // the allocation that a subspan looks into (retained), or itself
  uint64_t offset;            // in the root
  uint64_t length;
  uint32_t memory;
  uint32_t usage;
  uint32_t access;
  void* host;     // address of this buffer's first byte; NULL when the host cannot see it
  void* payload;  // the driver's, in the root only
  eyas_hal_release_fn_t release;  // of an import
  void* release_user;
};

// What a dispatch of an export must be given, where the code itself says so.
typedef struct eyas_hal_export_needs_t {
  uint32_t binding_count;
  uint32_t constant_count;
  uint64_t writes[EYAS_HAL_MAX_BINDINGS / 64];  // bit i % 64 of i / 64: binding i is written
} eyas_hal_export_needs_t;

struct eyas_hal_executable_t {
  eyas_ref_t ref;
  eyas_hal_device_t* device;  // retained
  uint32_t export_count;
  char** export_names;             // owned, one block
  eyas_hal_export_needs_t* needs;  // by ordinal, owned, from the driver; NULL: unknown
  void* payload;                   // the driver's
};

typedef struct eyas_hal_driver_t {
  const char* name;
  eyas_status_t (*device_count)(uint32_t* out_count);
  const eyas_hal_option_info_t* options;
  uint32_t option_count;
  // `values` has one of each option, in their order, numbers checked against their range. Called
  // also when there is no device, to say why.
  eyas_status_t (*device_create)(uint32_t device_index, const eyas_hal_option_t* values,
                                 eyas_hal_device_t** out_device);
} eyas_hal_driver_t;

#define EYAS_HAL_MAX_OPTIONS 16  // of one driver

// Resolves EYAS_HAL_WHOLE and checks the range; `what` names it in the error.
eyas_status_t eyas_hal_buffer_check_range(const eyas_hal_buffer_t* buffer, uint64_t offset,
                                          uint64_t* length, const char* what);

// A subspan that allows at most `access`.
eyas_status_t eyas_hal_buffer_view(eyas_hal_buffer_t* parent, uint32_t access, uint64_t offset,
                                   uint64_t length, eyas_hal_buffer_t** out_buffer);

#endif  // EYAS_HAL_DRIVER_H_
