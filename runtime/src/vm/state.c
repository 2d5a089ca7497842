// State variables: buffers of a context that calls read and write, and that live until it ends.
#include <string.h>

#include "vm/context.h"

// Records what gives every variable its first value.
static eyas_status_t record_reset(eyas_context_t* c) {
  const eyas_program_t* p = &c->module->program;
  EYAS_RETURN_IF_ERROR(eyas_hal_command_buffer_create(c->device, 0, &c->reset));
  for (uint32_t i = 0; i < p->state_count; ++i) {
    const eyas_state_t* s = &p->states[i];
    const eyas_hal_binding_t target = {.buffer = c->states[i].hal, .length = s->bytes};
    if (s->parameter == EYAS_STATE_ZEROS) {
      EYAS_RETURN_IF_ERROR(eyas_hal_command_buffer_fill(c->reset, target, "\0", 1));
    } else {
      const eyas_hal_binding_t source = {.buffer = c->loaded->parameters[s->parameter],
                                         .length = s->bytes};
      EYAS_RETURN_IF_ERROR(eyas_hal_command_buffer_copy(c->reset, source, target));
    }
  }
  return eyas_hal_command_buffer_end(c->reset);
}

static eyas_status_t reset(eyas_context_t* c) {
  if (!c->reset) return NULL;
  EYAS_RETURN_IF_ERROR(eyas_vm_submit(c, &(eyas_hal_submission_t){.commands = c->reset}));
  return eyas_vm_wait(c);
}

eyas_status_t eyas_vm_create_states(eyas_context_t* c) {
  const eyas_program_t* p = &c->module->program;
  uint64_t limit = c->options.state_limit_bytes ? c->options.state_limit_bytes : UINT64_MAX;
  if (p->state_count == 0) return NULL;
  for (uint32_t i = 0; i < p->state_count; ++i) {
    if (p->states[i].bytes > limit) {
      return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED,
                              "state '%s' of %llu bytes is over the limit of %llu for all state",
                              p->states[i].name, (unsigned long long)p->states[i].bytes,
                              (unsigned long long)c->options.state_limit_bytes);
    }
    limit -= p->states[i].bytes;
    eyas_vm_buffer_t* buffer = &c->states[i];
    buffer->references = 1;
    buffer->origin = EYAS_VM_ORIGIN_STATE;
    buffer->capacity = p->states[i].bytes;
    EYAS_RETURN_IF_ERROR(eyas_status_annotate(
        eyas_hal_buffer_allocate(c->device, EYAS_HAL_MEMORY_DEVICE_LOCAL,
                                 EYAS_HAL_USAGE_DISPATCH | EYAS_HAL_USAGE_TRANSFER,
                                 buffer->capacity, &buffer->hal),
        "state '%s'", p->states[i].name));
  }
  EYAS_RETURN_IF_ERROR(record_reset(c));
  return reset(c);
}

void eyas_vm_tear_states(eyas_context_t* c) {
  for (uint32_t i = 0; i < c->module->program.state_count; ++i) c->states_torn[i] = true;
}

static eyas_status_t torn(const eyas_state_t* s) {
  return eyas_status_make(
      EYAS_STATUS_FAILED_PRECONDITION,
      "state '%s' is undefined, because a call failed while it was writing: reset "
      "the module's state, or set it",
      s->name);
}

eyas_status_t eyas_vm_check_states(eyas_context_t* c) {
  const eyas_program_t* p = &c->module->program;
  for (uint32_t i = 0; i < p->state_count; ++i) {
    if (c->states_torn[i]) return torn(&p->states[i]);
  }
  return NULL;
}

static eyas_status_t find(eyas_context_t* c, uint32_t index, const eyas_state_t** out_state) {
  *out_state = eyas_module_state(c->module, index);
  if (*out_state) return NULL;
  return eyas_status_make(EYAS_STATUS_NOT_FOUND, "state %u of %u", index,
                          c->module->program.state_count);
}

eyas_status_t eyas_context_state_get(eyas_context_t* context, uint32_t index, eyas_tensor_t* out) {
  const eyas_state_t* s = NULL;
  EYAS_RETURN_IF_ERROR(find(context, index, &s));
  eyas_tensor_t tensor = {.dtype = s->dtype, .rank = s->rank};
  memcpy(tensor.dims, s->dims, s->rank * sizeof(*s->dims));
  pthread_mutex_lock(&context->mutex);
  eyas_status_t status = context->states_torn[index] ? torn(s) : NULL;
  if (!status) status = eyas_vm_allocate_result(context, s->bytes, &tensor.buffer);
  if (!status) {
    status = eyas_vm_copy(context, context->states[index].hal, 0, tensor.buffer, s->bytes);
  }
  if (!status) status = eyas_vm_wait(context);
  pthread_mutex_unlock(&context->mutex);
  if (status) {
    eyas_hal_buffer_release(tensor.buffer);
    return status;
  }
  *out = tensor;
  return NULL;
}

static eyas_status_t write_state(eyas_context_t* c, uint32_t index, const eyas_tensor_t* value) {
  eyas_hal_buffer_t* target = c->states[index].hal;
  const uint64_t bytes = c->states[index].capacity;
  if (!value->buffer) return eyas_hal_buffer_write(target, 0, value->data, bytes);
  EYAS_RETURN_IF_ERROR(eyas_vm_copy(c, value->buffer, 0, target, bytes));
  return eyas_vm_wait(c);
}

eyas_status_t eyas_context_state_set(eyas_context_t* context, uint32_t index,
                                     const eyas_tensor_t* value) {
  const eyas_state_t* s = NULL;
  EYAS_RETURN_IF_ERROR(find(context, index, &s));
  if (value->dtype != s->dtype || value->rank != s->rank ||
      memcmp(value->dims, s->dims, s->rank * sizeof(*s->dims)) != 0) {
    return eyas_status_make(
        EYAS_STATUS_INVALID_ARGUMENT,
        "state '%s': a %s of rank %u was given, it is a %s of rank %u, or the sizes "
        "differ",
        s->name, eyas_dtype_name(value->dtype), value->rank, eyas_dtype_name(s->dtype), s->rank);
  }
  if (value->buffer) {
    EYAS_RETURN_IF_ERROR(eyas_status_annotate(
        eyas_vm_check_buffer(context->device, value->buffer, s->bytes), "state '%s'", s->name));
  }
  pthread_mutex_lock(&context->mutex);
  eyas_status_t status = write_state(context, index, value);
  if (!status) context->states_torn[index] = false;
  pthread_mutex_unlock(&context->mutex);
  return status;
}

eyas_status_t eyas_context_state_reset(eyas_context_t* context) {
  pthread_mutex_lock(&context->mutex);
  eyas_status_t status = reset(context);
  for (uint32_t i = 0; i < context->module->program.state_count && !status; ++i) {
    context->states_torn[i] = false;
  }
  pthread_mutex_unlock(&context->mutex);
  return status;
}
