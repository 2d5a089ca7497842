#include <stdlib.h>

#include "eyas_isa.h"
#include "vm/context.h"

void eyas_vm_buffer_drop(eyas_context_t* context, eyas_vm_buffer_t* buffer) {
  if (--buffer->references) return;
  switch (buffer->origin) {
    case EYAS_VM_ORIGIN_TRANSIENT:
      buffer->next = context->free_transients;
      context->free_transients = buffer;
      break;
    case EYAS_VM_ORIGIN_RESULT:
      eyas_hal_buffer_release(buffer->hal);
      buffer->hal = NULL;
      buffer->next = context->free_headers;
      context->free_headers = buffer;
      break;
    case EYAS_VM_ORIGIN_ARGUMENT:
    case EYAS_VM_ORIGIN_PARAMETER:
    case EYAS_VM_ORIGIN_STATE: break;  // the context itself holds one, so this is not reached
  }
}

static void commands_drop(eyas_context_t* context, eyas_vm_commands_t* commands) {
  if (--commands->references) return;
  eyas_hal_command_buffer_release(commands->hal);
  for (uint32_t i = 0; i < commands->buffer_count; ++i) {
    eyas_vm_buffer_drop(context, commands->buffers[i]);
  }
  free(commands->buffers);
  free(commands);
}

void eyas_vm_ref_clear(eyas_context_t* context, eyas_vm_ref_t* ref) {
  if (ref->kind == EYAS_VM_NULL) return;
  eyas_vm_ref_t old = *ref;
  *ref = (eyas_vm_ref_t){0};
  if (old.kind == EYAS_VM_BUFFER) {
    eyas_vm_buffer_drop(context, old.buffer);
  } else {
    commands_drop(context, old.commands);
  }
}

void eyas_vm_ref_assign(eyas_context_t* context, eyas_vm_ref_t* target,
                        const eyas_vm_ref_t* source) {
  eyas_vm_ref_t value = *source;
  if (value.kind == EYAS_VM_BUFFER) {
    ++value.buffer->references;
  } else if (value.kind == EYAS_VM_COMMANDS) {
    ++value.commands->references;
  }
  eyas_vm_ref_clear(context, target);
  *target = value;
}

#define SLACK_BYTES ((uint64_t)1 << 20)

static eyas_vm_buffer_t* new_header(eyas_context_t* context) {
  eyas_vm_buffer_t* buffer = context->free_headers;
  if (!buffer) return calloc(1, sizeof(*buffer));
  context->free_headers = buffer->next;
  buffer->next = NULL;
  return buffer;
}

static void free_transient(eyas_context_t* context, eyas_vm_buffer_t** link) {
  eyas_vm_buffer_t* buffer = *link;
  *link = buffer->next;
  context->transient_bytes -= buffer->capacity;
  eyas_hal_buffer_release(buffer->hal);
  free(buffer);
}

// The smallest cached buffer that is large enough, or NULL; one that is far too large stays for who
// needs it. What a growing workload has left behind is let go: a new buffer replaces the largest
// one that was too small.
static eyas_vm_buffer_t* take_transient(eyas_context_t* context, uint64_t bytes) {
  eyas_vm_buffer_t** best = NULL;
  eyas_vm_buffer_t** too_small = NULL;
  for (eyas_vm_buffer_t** link = &context->free_transients; *link; link = &(*link)->next) {
    uint64_t capacity = (*link)->capacity;
    if (capacity < bytes) {
      if (!too_small || capacity > (*too_small)->capacity) too_small = link;
    } else if (capacity / 2 <= bytes + SLACK_BYTES && (!best || capacity < (*best)->capacity)) {
      best = link;
    }
  }
  if (!best) {
    if (too_small) free_transient(context, too_small);
    return NULL;
  }
  eyas_vm_buffer_t* buffer = *best;
  *best = buffer->next;
  buffer->next = NULL;
  return buffer;
}

eyas_status_t eyas_vm_allocate_result(eyas_context_t* context, uint64_t bytes,
                                      eyas_hal_buffer_t** out_buffer) {
  uint32_t usage = EYAS_HAL_USAGE_DISPATCH | EYAS_HAL_USAGE_TRANSFER;
  if (context->loaded->info.host_visible) usage |= EYAS_HAL_USAGE_MAP;
  return eyas_hal_buffer_allocate(context->device, EYAS_HAL_MEMORY_DEVICE_LOCAL, usage, bytes,
                                  out_buffer);
}

eyas_status_t eyas_vm_allocate(eyas_context_t* context, int64_t bytes, uint32_t kind,
                               eyas_vm_ref_t* target) {
  if (bytes < 0) {
    return eyas_status_make(EYAS_STATUS_OUT_OF_RANGE, "cannot allocate %lld bytes",
                            (long long)bytes);
  }
  bool transient = kind == EYAS_VM_ALLOC_TRANSIENT;
  eyas_vm_buffer_t* buffer = transient ? take_transient(context, (uint64_t)bytes) : NULL;
  if (!buffer) {
    buffer = new_header(context);
    if (!buffer) return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "no memory for a buffer");
    buffer->capacity = (uint64_t)bytes;
    buffer->origin = transient ? EYAS_VM_ORIGIN_TRANSIENT : EYAS_VM_ORIGIN_RESULT;
    eyas_status_t status =
        transient ? eyas_hal_buffer_allocate(context->device, EYAS_HAL_MEMORY_DEVICE_LOCAL,
                                             EYAS_HAL_USAGE_DISPATCH | EYAS_HAL_USAGE_TRANSFER,
                                             (uint64_t)bytes, &buffer->hal)
                  : eyas_vm_allocate_result(context, (uint64_t)bytes, &buffer->hal);
    if (status) {
      buffer->next = context->free_headers;
      context->free_headers = buffer;
      return status;
    }
    if (transient) context->transient_bytes += buffer->capacity;
  }
  buffer->references = 1;
  eyas_vm_ref_clear(context, target);
  *target = (eyas_vm_ref_t){.kind = EYAS_VM_BUFFER, .buffer = buffer, .length = (uint64_t)bytes};
  return NULL;
}

eyas_status_t eyas_vm_commands_create(eyas_context_t* context, uint32_t slot_count,
                                      eyas_vm_ref_t* target) {
  eyas_vm_commands_t* commands = calloc(1, sizeof(*commands));
  if (!commands) return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "no memory for commands");
  eyas_status_t status =
      eyas_hal_command_buffer_create(context->device, slot_count, &commands->hal);
  if (!status && context->options.profile) {
    status = eyas_hal_command_buffer_enable_profiling(commands->hal);
    if (status) eyas_hal_command_buffer_release(commands->hal);
  }
  if (status) {
    free(commands);
    return status;
  }
  commands->references = 1;
  commands->slot_count = slot_count;
  eyas_vm_ref_clear(context, target);
  *target = (eyas_vm_ref_t){.kind = EYAS_VM_COMMANDS, .commands = commands};
  return NULL;
}

eyas_status_t eyas_vm_commands_hold(eyas_vm_commands_t* commands, eyas_vm_buffer_t* buffer) {
  // Neighbouring dispatches bind the same arena again and again.
  uint32_t count = commands->buffer_count;
  for (uint32_t i = count; i > 0 && i + 4 > count; --i) {
    if (commands->buffers[i - 1] == buffer) return NULL;
  }
  if (count == commands->buffer_capacity) {
    uint32_t capacity = count ? 2 * count : 8;
    eyas_vm_buffer_t** buffers = realloc(commands->buffers, capacity * sizeof(*buffers));
    if (!buffers) return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "no memory for commands");
    commands->buffers = buffers;
    commands->buffer_capacity = capacity;
  }
  commands->buffers[commands->buffer_count++] = buffer;
  ++buffer->references;
  return NULL;
}

void eyas_vm_release_cached(eyas_context_t* context) {
  while (context->free_transients) free_transient(context, &context->free_transients);
  while (context->free_headers) {
    eyas_vm_buffer_t* next = context->free_headers->next;
    free(context->free_headers);
    context->free_headers = next;
  }
}
