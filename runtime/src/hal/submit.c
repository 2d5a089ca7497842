// Submission: checks the binding table against the recording, then hands over to the driver.
#include "base/checked.h"
#include "hal/command_buffer.h"

typedef unsigned long long ull;

static eyas_status_t check_slot(const eyas_hal_command_buffer_t* commands, uint32_t slot,
                                const eyas_hal_range_t* range) {
  const eyas_hal_slot_need_t* need = &commands->slots[slot];
  const eyas_hal_buffer_t* buffer = range->buffer;
  if (!buffer) {
    return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT,
                            "binding slot %u is empty; the commands use %llu bytes of it", slot,
                            (ull)need->length);
  }
  if (buffer->device != commands->device) {
    return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT,
                            "binding slot %u has a buffer of another device", slot);
  }
  uint64_t length = range->length;
  if (length == EYAS_HAL_WHOLE && range->offset <= buffer->length) {
    length = buffer->length - range->offset;
  }
  if (!eyas_range_fits(range->offset, length, buffer->length)) {
    return eyas_status_make(EYAS_STATUS_OUT_OF_RANGE,
                            "binding slot %u: offset %llu + length %llu is beyond the buffer's "
                            "%llu bytes",
                            slot, (ull)range->offset, (ull)length, (ull)buffer->length);
  }
  if (length < need->length) {
    return eyas_status_make(EYAS_STATUS_OUT_OF_RANGE,
                            "binding slot %u: the commands need %llu bytes, the table gives %llu",
                            slot, (ull)need->length, (ull)length);
  }
  if ((need->access & EYAS_HAL_ACCESS_WRITE) && !(buffer->access & EYAS_HAL_ACCESS_WRITE)) {
    return eyas_status_make(EYAS_STATUS_FAILED_PRECONDITION,
                            "binding slot %u is written, but its buffer is read-only", slot);
  }
  if (need->usage & ~buffer->usage) {
    return eyas_status_make(EYAS_STATUS_FAILED_PRECONDITION,
                            "binding slot %u: the buffer was made with usage 0x%x; the commands "
                            "need 0x%x",
                            slot, buffer->usage, need->usage);
  }
  return NULL;
}

// The allocation and the position in it that a binding stands for.
static const eyas_hal_buffer_t* resolve(const eyas_hal_binding_t* binding,
                                        const eyas_hal_range_t* table, uint64_t* out_offset) {
  const eyas_hal_buffer_t* buffer = binding->buffer;
  uint64_t offset = binding->offset;
  if (!buffer) {
    buffer = table[binding->slot].buffer;
    offset += table[binding->slot].offset;
  }
  *out_offset = buffer->offset + offset;
  return buffer->root;
}

static eyas_status_t check_copies(const eyas_hal_command_buffer_t* commands,
                                  const eyas_hal_range_t* table) {
  for (size_t i = 0; i < commands->commands.count; ++i) {
    const eyas_hal_command_t* command = &eyas_hal_commands(commands)[i];
    if (command->kind != EYAS_HAL_COMMAND_COPY) continue;
    const eyas_hal_binding_t* source = &eyas_hal_bindings(commands)[command->binding_begin];
    uint64_t from = 0, to = 0;
    if (resolve(source, table, &from) != resolve(source + 1, table, &to)) continue;
    if (from < to + source->length && to < from + source->length) {
      return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT,
                              "copy (command %llu): source at %llu and target at %llu of one "
                              "buffer overlap in %llu bytes",
                              (ull)i, (ull)from, (ull)to, (ull)source->length);
    }
  }
  return NULL;
}

eyas_status_t eyas_hal_command_buffer_check_table(const eyas_hal_command_buffer_t* commands,
                                                  const eyas_hal_range_t* table, uint32_t count) {
  if (count < commands->slot_count || (commands->slot_count && !table)) {
    return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT,
                            "the binding table has %u entries; the command buffer has %u slots",
                            table ? count : 0, commands->slot_count);
  }
  for (uint32_t slot = 0; slot < commands->slot_count; ++slot) {
    if (commands->slots[slot].usage == 0) continue;
    EYAS_RETURN_IF_ERROR(check_slot(commands, slot, &table[slot]));
  }
  return commands->copies_between_slots ? check_copies(commands, table) : NULL;
}

static eyas_status_t check_timepoints(const eyas_hal_timepoint_t* points, uint32_t count,
                                      const char* what) {
  for (uint32_t i = 0; i < count; ++i) {
    if (!points || !points[i].semaphore) {
      return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT, "%s %u has no semaphore", what, i);
    }
  }
  return NULL;
}

eyas_status_t eyas_hal_device_submit(eyas_hal_device_t* device,
                                     const eyas_hal_submission_t* submission) {
  const eyas_hal_command_buffer_t* commands = submission->commands;
  EYAS_RETURN_IF_ERROR(check_timepoints(submission->waits, submission->wait_count, "wait"));
  EYAS_RETURN_IF_ERROR(check_timepoints(submission->signals, submission->signal_count, "signal"));
  if (commands) {
    if (commands->device != device) {
      return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT,
                              "the command buffer belongs to another device");
    }
    if (!commands->ended) {
      return eyas_status_make(EYAS_STATUS_FAILED_PRECONDITION,
                              "the command buffer was not ended before submit");
    }
    EYAS_RETURN_IF_ERROR(
        eyas_hal_command_buffer_check_table(commands, submission->table, submission->table_count));
  }
  return device->vtable->submit(device, submission);
}
