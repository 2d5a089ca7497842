// Recording: checks each command, then appends it to flat arrays.
#include "hal/command_buffer.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

typedef unsigned long long ull;

// Makes room for `more` elements, so that the append that follows cannot fail.
static eyas_status_t reserve(eyas_hal_list_t* list, size_t more, size_t element_bytes) {
  if (more <= list->capacity - list->count) return NULL;
  uint64_t capacity = list->capacity ? list->capacity : 16, bytes = 0;
  while (capacity - list->count < more) capacity *= 2;
  if (!eyas_checked_mul(capacity, element_bytes, &bytes)) bytes = UINT64_MAX;
  void* data = bytes < SIZE_MAX / 2 ? realloc(list->data, (size_t)bytes) : NULL;
  if (!data) {
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED,
                            "out of host memory while recording commands");
  }
  list->data = data;
  list->capacity = (size_t)capacity;
  return NULL;
}

eyas_status_t eyas_hal_command_buffer_create(eyas_hal_device_t* device, uint32_t slot_count,
                                             eyas_hal_command_buffer_t** out_command_buffer) {
  *out_command_buffer = NULL;
  if (slot_count > EYAS_HAL_MAX_SLOTS) {
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED,
                            "%u binding slots; EYAS_HAL_MAX_SLOTS is %u", slot_count,
                            EYAS_HAL_MAX_SLOTS);
  }
  eyas_hal_command_buffer_t* commands = calloc(1, sizeof(*commands));
  eyas_hal_slot_need_t* slots = calloc(slot_count ? slot_count : 1, sizeof(*slots));
  if (!commands || !slots) {
    free(commands);
    free(slots);
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory");
  }
  eyas_ref_initialize(&commands->ref);
  commands->device = eyas_hal_device_retain(device);
  commands->slot_count = slot_count;
  commands->slots = slots;
  *out_command_buffer = commands;
  return NULL;
}

eyas_hal_command_buffer_t* eyas_hal_command_buffer_retain(eyas_hal_command_buffer_t* commands) {
  eyas_ref_retain(&commands->ref);
  return commands;
}

void eyas_hal_command_buffer_release(eyas_hal_command_buffer_t* commands) {
  if (!commands || !eyas_ref_release(&commands->ref)) return;
  if (commands->payload) commands->device->vtable->commands_destroy(commands->device, commands);
  for (size_t i = 0; i < commands->commands.count; ++i) {
    eyas_hal_executable_release(eyas_hal_commands(commands)[i].executable);
  }
  for (size_t i = 0; i < commands->bindings.count; ++i) {
    eyas_hal_buffer_release(eyas_hal_bindings(commands)[i].buffer);
  }
  eyas_hal_device_release(commands->device);
  free(commands->commands.data);
  free(commands->bindings.data);
  free(commands->constants.data);
  free(commands->data.data);
  free(commands->slots);
  free(commands);
}

const char* eyas_hal_command_name(const eyas_hal_command_t* command) {
  switch (command->kind) {
    case EYAS_HAL_COMMAND_FILL: return "fill";
    case EYAS_HAL_COMMAND_COPY: return "copy";
    case EYAS_HAL_COMMAND_UPDATE: return "update";
    default: return command->executable->export_names[command->ordinal];
  }
}

static eyas_status_t check_recording(const eyas_hal_command_buffer_t* commands) {
  if (commands->ended) {
    return eyas_status_make(EYAS_STATUS_FAILED_PRECONDITION,
                            "the command buffer was ended; record into a new one");
  }
  if (commands->commands.count >= EYAS_HAL_MAX_COMMANDS) {
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED,
                            "too many commands; EYAS_HAL_MAX_COMMANDS is %u",
                            EYAS_HAL_MAX_COMMANDS);
  }
  return NULL;
}

static eyas_status_t check_direct(const eyas_hal_command_buffer_t* commands,
                                  eyas_hal_binding_t* binding, uint32_t usage, const char* what) {
  const eyas_hal_buffer_t* buffer = binding->buffer;
  if (buffer->device != commands->device) {
    return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT, "%s is a buffer of another device", what);
  }
  if ((buffer->usage & usage) != usage) {
    return eyas_status_make(EYAS_STATUS_FAILED_PRECONDITION,
                            "%s: the buffer was made with usage 0x%x; this command needs 0x%x",
                            what, buffer->usage, usage);
  }
  if ((binding->access & EYAS_HAL_ACCESS_WRITE) && !(buffer->access & EYAS_HAL_ACCESS_WRITE)) {
    return eyas_status_make(EYAS_STATUS_FAILED_PRECONDITION,
                            "%s is written, but its buffer is read-only", what);
  }
  return eyas_hal_buffer_check_range(buffer, binding->offset, &binding->length, what);
}

static eyas_status_t check_indirect(const eyas_hal_command_buffer_t* commands,
                                    const eyas_hal_binding_t* binding, uint32_t usage,
                                    const char* what) {
  if (binding->slot >= commands->slot_count) {
    return eyas_status_make(EYAS_STATUS_OUT_OF_RANGE,
                            "%s has no buffer and slot %u; the command buffer has %u slot(s)", what,
                            binding->slot, commands->slot_count);
  }
  uint64_t end = 0;
  if (binding->length == EYAS_HAL_WHOLE) {
    // How a transfer is cut up is decided when recording ends.
    if (!(usage & EYAS_HAL_USAGE_TRANSFER)) return NULL;
    return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT,
                            "%s of a transfer is indirect and needs a length", what);
  }
  if (!eyas_checked_add(binding->offset, binding->length, &end)) {
    return eyas_status_make(EYAS_STATUS_OUT_OF_RANGE, "%s: offset %llu + length %llu overflows",
                            what, (ull)binding->offset, (ull)binding->length);
  }
  return NULL;
}

// Checks a binding and resolves the length of a direct one; `what` names it in errors.
static eyas_status_t check_binding(const eyas_hal_command_buffer_t* commands,
                                   eyas_hal_binding_t* binding, uint32_t usage, const char* what) {
  if (binding->access == 0 || (binding->access & ~(uint32_t)EYAS_HAL_ACCESS_READ_WRITE)) {
    return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT,
                            "%s has access 0x%x; allowed: READ, WRITE or both", what,
                            binding->access);
  }
  return binding->buffer ? check_direct(commands, binding, usage, what)
                         : check_indirect(commands, binding, usage, what);
}

// Appends a binding that was checked; room for it was reserved.
static void append_binding(eyas_hal_command_buffer_t* commands, const eyas_hal_binding_t* binding,
                           uint32_t usage) {
  eyas_hal_bindings(commands)[commands->bindings.count++] = *binding;
  if (binding->buffer) {
    eyas_hal_buffer_retain(binding->buffer);
    return;
  }
  eyas_hal_slot_need_t* need = &commands->slots[binding->slot];
  uint64_t end = binding->offset + (binding->length == EYAS_HAL_WHOLE ? 0 : binding->length);
  if (end > need->length) need->length = end;
  need->access |= binding->access;
  need->usage |= usage;
}

static void append_command(eyas_hal_command_buffer_t* commands, eyas_hal_command_t command) {
  command.wave = commands->wave;
  eyas_hal_commands(commands)[commands->commands.count++] = command;
}

// Code that is not trusted says what it writes; whoever lends it memory must agree.
static eyas_status_t check_needs(const eyas_hal_dispatch_t* dispatch) {
  const eyas_hal_executable_t* executable = dispatch->executable;
  if (!executable->needs) return NULL;
  const eyas_hal_export_needs_t* needs = &executable->needs[dispatch->ordinal];
  const char* name = executable->export_names[dispatch->ordinal];
  if (dispatch->binding_count != needs->binding_count ||
      dispatch->constant_count != needs->constant_count) {
    return eyas_status_make(
        EYAS_STATUS_INVALID_ARGUMENT,
        "dispatch '%s' has %u bindings and %u constants; its code has %u and %u", name,
        dispatch->binding_count, dispatch->constant_count, needs->binding_count,
        needs->constant_count);
  }
  for (uint32_t i = 0; i < dispatch->binding_count; ++i) {
    if (!(needs->writes[i / 64] >> i % 64 & 1)) continue;
    if (dispatch->bindings[i].access & EYAS_HAL_ACCESS_WRITE) continue;
    return eyas_status_make(
        EYAS_STATUS_FAILED_PRECONDITION,
        "dispatch '%s', binding %u is given for reading only, but its code writes it", name, i);
  }
  return NULL;
}

static eyas_status_t check_dispatch(const eyas_hal_command_buffer_t* commands,
                                    const eyas_hal_dispatch_t* dispatch) {
  const eyas_hal_executable_t* executable = dispatch->executable;
  if (!executable || executable->device != commands->device) {
    return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT, "dispatch: the executable %s",
                            executable ? "belongs to another device" : "is NULL");
  }
  if (dispatch->ordinal >= executable->export_count) {
    return eyas_status_make(EYAS_STATUS_OUT_OF_RANGE,
                            "dispatch: export ordinal %u; the executable has %u export(s)",
                            dispatch->ordinal, executable->export_count);
  }
  const char* name = executable->export_names[dispatch->ordinal];
  if (dispatch->binding_count > EYAS_HAL_MAX_BINDINGS) {
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED,
                            "dispatch '%s' has %u bindings; EYAS_HAL_MAX_BINDINGS is %u", name,
                            dispatch->binding_count, EYAS_HAL_MAX_BINDINGS);
  }
  if (dispatch->constant_count > EYAS_HAL_MAX_CONSTANTS) {
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED,
                            "dispatch '%s' has %u constants; EYAS_HAL_MAX_CONSTANTS is %u", name,
                            dispatch->constant_count, EYAS_HAL_MAX_CONSTANTS);
  }
  if ((dispatch->binding_count && !dispatch->bindings) ||
      (dispatch->constant_count && !dispatch->constants)) {
    return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT,
                            "dispatch '%s': bindings or constants are NULL", name);
  }
  const uint32_t* count = dispatch->workgroup_count;
  uint64_t total = (uint64_t)count[0] * count[1];
  if (!eyas_checked_mul(total, count[2], &total) || total > EYAS_HAL_MAX_WORKGROUPS) {
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED,
                            "dispatch '%s' has %u x %u x %u workgroups; EYAS_HAL_MAX_WORKGROUPS is "
                            "%llu",
                            name, count[0], count[1], count[2], EYAS_HAL_MAX_WORKGROUPS);
  }
  return check_needs(dispatch);
}

eyas_status_t eyas_hal_command_buffer_dispatch(eyas_hal_command_buffer_t* commands,
                                               const eyas_hal_dispatch_t* dispatch) {
  EYAS_RETURN_IF_ERROR(check_recording(commands));
  EYAS_RETURN_IF_ERROR(check_dispatch(commands, dispatch));
  EYAS_RETURN_IF_ERROR(reserve(&commands->commands, 1, sizeof(eyas_hal_command_t)));
  EYAS_RETURN_IF_ERROR(
      reserve(&commands->bindings, dispatch->binding_count, sizeof(eyas_hal_binding_t)));
  EYAS_RETURN_IF_ERROR(reserve(&commands->constants, dispatch->constant_count, sizeof(int64_t)));

  // The checked bindings are staged beyond the end of the list: nothing counts until all are good.
  eyas_hal_binding_t* staged = eyas_hal_bindings(commands) + commands->bindings.count;
  for (uint32_t i = 0; i < dispatch->binding_count; ++i) {
    staged[i] = dispatch->bindings[i];
    eyas_status_t status =
        check_binding(commands, &staged[i], EYAS_HAL_USAGE_DISPATCH, "the range");
    if (status) {
      return eyas_status_annotate(status, "dispatch '%s', binding %u",
                                  dispatch->executable->export_names[dispatch->ordinal], i);
    }
  }
  eyas_hal_command_t command = {
      .kind = EYAS_HAL_COMMAND_DISPATCH,
      .binding_begin = commands->bindings.count,
      .binding_count = dispatch->binding_count,
      .ordinal = dispatch->ordinal,
      .executable = eyas_hal_executable_retain(dispatch->executable),
      .constant_count = dispatch->constant_count,
      .constant_begin = commands->constants.count,
  };
  memcpy(command.workgroup_count, dispatch->workgroup_count, sizeof(command.workgroup_count));
  for (uint32_t i = 0; i < dispatch->binding_count; ++i) {
    append_binding(commands, &staged[i], EYAS_HAL_USAGE_DISPATCH);
  }
  if (dispatch->constant_count) {
    memcpy((int64_t*)commands->constants.data + commands->constants.count, dispatch->constants,
           dispatch->constant_count * sizeof(int64_t));
    commands->constants.count += dispatch->constant_count;
  }
  append_command(commands, command);
  return NULL;
}

// The part that fill and update share: a target, and bytes that the command buffer keeps.
static eyas_status_t record_write(eyas_hal_command_buffer_t* commands, eyas_hal_command_t command,
                                  eyas_hal_binding_t target, const void* data, size_t data_bytes) {
  EYAS_RETURN_IF_ERROR(reserve(&commands->commands, 1, sizeof(eyas_hal_command_t)));
  EYAS_RETURN_IF_ERROR(reserve(&commands->bindings, 1, sizeof(eyas_hal_binding_t)));
  EYAS_RETURN_IF_ERROR(reserve(&commands->data, data_bytes, 1));
  command.binding_begin = commands->bindings.count;
  command.binding_count = 1;
  command.data_begin = commands->data.count;
  if (data_bytes) memcpy((char*)commands->data.data + commands->data.count, data, data_bytes);
  commands->data.count += data_bytes;
  append_binding(commands, &target, EYAS_HAL_USAGE_TRANSFER);
  append_command(commands, command);
  return NULL;
}

eyas_status_t eyas_hal_command_buffer_fill(eyas_hal_command_buffer_t* commands,
                                           eyas_hal_binding_t target, const void* pattern,
                                           uint32_t pattern_bytes) {
  EYAS_RETURN_IF_ERROR(check_recording(commands));
  target.access = EYAS_HAL_ACCESS_WRITE;
  EYAS_RETURN_IF_ERROR(check_binding(commands, &target, EYAS_HAL_USAGE_TRANSFER, "target of fill"));
  bool size_ok =
      pattern_bytes == 1 || pattern_bytes == 2 || pattern_bytes == 4 || pattern_bytes == 8;
  if (!pattern || !size_ok || target.length % pattern_bytes) {
    return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT,
                            "fill of %llu bytes with a pattern of %u; a pattern has 1, 2, 4 or 8 "
                            "bytes and divides the length",
                            (ull)target.length, pattern_bytes);
  }
  uint8_t repeated[8];
  for (uint32_t i = 0; i < 8; ++i) repeated[i] = ((const uint8_t*)pattern)[i % pattern_bytes];
  return record_write(
      commands, (eyas_hal_command_t){.kind = EYAS_HAL_COMMAND_FILL, .pattern_bytes = pattern_bytes},
      target, repeated, sizeof(repeated));
}

eyas_status_t eyas_hal_command_buffer_update(eyas_hal_command_buffer_t* commands, const void* data,
                                             eyas_hal_binding_t target) {
  EYAS_RETURN_IF_ERROR(check_recording(commands));
  target.access = EYAS_HAL_ACCESS_WRITE;
  EYAS_RETURN_IF_ERROR(
      check_binding(commands, &target, EYAS_HAL_USAGE_TRANSFER, "target of update"));
  if (target.length > EYAS_HAL_MAX_UPDATE_BYTES) {
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED,
                            "update of %llu bytes; EYAS_HAL_MAX_UPDATE_BYTES is %u",
                            (ull)target.length, EYAS_HAL_MAX_UPDATE_BYTES);
  }
  if (!data && target.length) {
    return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT, "update: data is NULL");
  }
  return record_write(commands, (eyas_hal_command_t){.kind = EYAS_HAL_COMMAND_UPDATE}, target, data,
                      (size_t)target.length);
}

eyas_status_t eyas_hal_command_buffer_copy(eyas_hal_command_buffer_t* commands,
                                           eyas_hal_binding_t source, eyas_hal_binding_t target) {
  EYAS_RETURN_IF_ERROR(check_recording(commands));
  source.access = EYAS_HAL_ACCESS_READ;
  target.access = EYAS_HAL_ACCESS_WRITE;
  EYAS_RETURN_IF_ERROR(check_binding(commands, &source, EYAS_HAL_USAGE_TRANSFER, "source of copy"));
  EYAS_RETURN_IF_ERROR(check_binding(commands, &target, EYAS_HAL_USAGE_TRANSFER, "target of copy"));
  if (source.length != target.length) {
    return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT,
                            "copy of %llu bytes to a range of %llu; lengths must be equal",
                            (ull)source.length, (ull)target.length);
  }
  if (source.buffer && target.buffer && source.buffer->root == target.buffer->root) {
    uint64_t from = source.buffer->offset + source.offset;
    uint64_t to = target.buffer->offset + target.offset;
    if (from < to + target.length && to < from + source.length) {
      return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT,
                              "copy: source at %llu and target at %llu of one buffer overlap in "
                              "%llu bytes",
                              (ull)from, (ull)to, (ull)source.length);
    }
  }
  EYAS_RETURN_IF_ERROR(reserve(&commands->commands, 1, sizeof(eyas_hal_command_t)));
  EYAS_RETURN_IF_ERROR(reserve(&commands->bindings, 2, sizeof(eyas_hal_binding_t)));
  if (!source.buffer || !target.buffer) commands->copies_between_slots = true;
  eyas_hal_command_t command = {
      .kind = EYAS_HAL_COMMAND_COPY, .binding_begin = commands->bindings.count, .binding_count = 2};
  append_binding(commands, &source, EYAS_HAL_USAGE_TRANSFER);
  append_binding(commands, &target, EYAS_HAL_USAGE_TRANSFER);
  append_command(commands, command);
  return NULL;
}

eyas_status_t eyas_hal_command_buffer_barrier(eyas_hal_command_buffer_t* commands) {
  EYAS_RETURN_IF_ERROR(check_recording(commands));
  // A barrier with nothing before it, or right after another one, orders nothing new.
  size_t count = commands->commands.count;
  if (count > 0 && eyas_hal_commands(commands)[count - 1].wave == commands->wave) ++commands->wave;
  return NULL;
}

eyas_status_t eyas_hal_command_buffer_enable_profiling(eyas_hal_command_buffer_t* commands) {
  EYAS_RETURN_IF_ERROR(check_recording(commands));
  commands->profiling = true;
  return NULL;
}

eyas_status_t eyas_hal_command_buffer_end(eyas_hal_command_buffer_t* commands) {
  if (commands->ended) {
    return eyas_status_make(EYAS_STATUS_FAILED_PRECONDITION, "the command buffer was ended before");
  }
  EYAS_RETURN_IF_ERROR(commands->device->vtable->commands_prepare(commands->device, commands));
  commands->ended = true;
  return NULL;
}
