// Arguments on their way to the device.
#include "hal/driver.h"
#include "vm/context.h"

#define NEAR_USAGE (EYAS_HAL_USAGE_DISPATCH | EYAS_HAL_USAGE_TRANSFER)

// Records the copy of an argument into memory of the device, by way of memory that both see.
static eyas_status_t record_copy(eyas_context_t* c, eyas_hal_command_buffer_t* commands,
                                 const void* data, uint64_t bytes, eyas_hal_buffer_t* buffer) {
  eyas_hal_buffer_t* staging = NULL;
  EYAS_RETURN_IF_ERROR(eyas_hal_buffer_allocate(c->device, EYAS_HAL_MEMORY_HOST_VISIBLE,
                                                EYAS_HAL_USAGE_TRANSFER | EYAS_HAL_USAGE_MAP, bytes,
                                                &staging));
  eyas_status_t status = eyas_hal_buffer_write(staging, 0, data, bytes);
  if (!status) {
    status = eyas_hal_command_buffer_copy(commands,
                                          (eyas_hal_binding_t){.buffer = staging, .length = bytes},
                                          (eyas_hal_binding_t){.buffer = buffer, .length = bytes});
  }
  eyas_hal_buffer_release(staging);
  return status;
}

// Gives an argument memory of the device; with `commands` its contents come when these have run.
static eyas_status_t place(eyas_context_t* c, eyas_hal_command_buffer_t* commands, const void* data,
                           uint64_t bytes, eyas_hal_buffer_t** out_buffer) {
  eyas_hal_buffer_t* buffer = NULL;
  EYAS_RETURN_IF_ERROR(eyas_hal_buffer_allocate(c->device, EYAS_HAL_MEMORY_DEVICE_LOCAL, NEAR_USAGE,
                                                bytes, &buffer));
  eyas_status_t status = commands ? record_copy(c, commands, data, bytes, buffer)
                                  : eyas_hal_buffer_write(buffer, 0, data, bytes);
  if (!status) status = eyas_hal_buffer_view(buffer, EYAS_HAL_ACCESS_READ, 0, bytes, out_buffer);
  eyas_hal_buffer_release(buffer);
  return status;
}

// Copies the arguments that have no buffer yet: directly where the host sees the device's memory,
// otherwise all with one submission.
static eyas_status_t upload(eyas_context_t* c, const eyas_tensor_t* args, uint32_t count) {
  eyas_hal_command_buffer_t* commands = NULL;
  if (!c->loaded->info.host_visible) {
    EYAS_RETURN_IF_ERROR(eyas_hal_command_buffer_create(c->device, 0, &commands));
  }
  eyas_status_t status = NULL;
  for (uint32_t i = 0; i < count && !status; ++i) {
    eyas_vm_buffer_t* buffer = &c->args[i];
    if (!buffer->hal) status = place(c, commands, args[i].data, buffer->capacity, &buffer->hal);
  }
  if (!commands) return status;
  if (!status) status = eyas_hal_command_buffer_end(commands);
  if (!status) status = eyas_vm_submit(c, &(eyas_hal_submission_t){.commands = commands});
  eyas_hal_command_buffer_release(commands);
  return status;
}

// Uses the caller's memory as it is; leaves `buffer` without one where the device cannot.
static eyas_status_t import_arg(eyas_context_t* c, const eyas_tensor_t* arg,
                                eyas_vm_buffer_t* buffer) {
  static uint8_t nothing[64] __attribute__((aligned(64)));  // without elements it needs no memory
  if (arg->buffer) {                                        // checked before
    return eyas_hal_buffer_view(arg->buffer, EYAS_HAL_ACCESS_READ, 0, buffer->capacity,
                                &buffer->hal);
  }
  if (!c->loaded->info.host_visible) return NULL;
  eyas_status_t status = eyas_hal_buffer_import(c->device, EYAS_HAL_USAGE_ALL, EYAS_HAL_ACCESS_READ,
                                                arg->data ? (void*)arg->data : nothing,
                                                buffer->capacity, NULL, NULL, &buffer->hal);
  if (eyas_status_code(status) != EYAS_STATUS_INCOMPATIBLE) return status;
  eyas_status_free(status);
  return NULL;
}

eyas_status_t eyas_vm_import_args(eyas_context_t* c, const eyas_tensor_t* args, uint32_t count) {
  bool all = true;
  for (uint32_t i = 0; i < count; ++i) {
    uint64_t bytes = eyas_dtype_bytes(args[i].dtype);
    for (uint32_t k = 0; k < args[i].rank; ++k) {
      bytes *= (uint64_t)args[i].dims[k];  // checked before
    }
    eyas_vm_buffer_t* buffer = &c->args[i];
    buffer->references = 1;
    buffer->origin = EYAS_VM_ORIGIN_ARGUMENT;
    buffer->capacity = bytes;
    EYAS_RETURN_IF_ERROR(import_arg(c, &args[i], buffer));
    all = all && buffer->hal;
  }
  return all ? NULL : upload(c, args, count);
}
