#include <stdlib.h>

#include "vm/context.h"

// The events' names live with their command buffer; ours must outlive it.
static const char* lasting_name(const eyas_context_t* c, const char* name) {
  static const char* const transfers[] = {"fill", "copy", "update"};
  for (size_t i = 0; i < sizeof(transfers) / sizeof(transfers[0]); ++i) {
    if (strcmp(name, transfers[i]) == 0) return transfers[i];
  }
  const eyas_program_t* p = &c->module->program;
  for (uint32_t i = 0; i < p->executable_count; ++i) {
    for (uint32_t k = 0; k < p->executables[i].export_count; ++k) {
      if (strcmp(name, p->executables[i].exports[k].name) == 0) return p->executables[i].exports[k].name;
    }
  }
  return "?";
}

static eyas_status_t collect(eyas_context_t* c, eyas_hal_command_buffer_t* commands) {
  size_t count = 0;
  EYAS_RETURN_IF_ERROR(eyas_hal_command_buffer_profile(commands, 0, NULL, &count));
  if (c->event_capacity - c->event_count < count) {
    size_t capacity = 2 * (c->event_capacity + count);
    eyas_hal_profile_event_t* events = realloc(c->events, capacity * sizeof(*events));
    if (!events) return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "no memory for a profile");
    c->events = events;
    c->event_capacity = capacity;
  }
  eyas_hal_profile_event_t* added = c->events + c->event_count;
  EYAS_RETURN_IF_ERROR(eyas_hal_command_buffer_profile(commands, count, added, &count));
  for (size_t i = 0; i < count; ++i) added[i].name = lasting_name(c, added[i].name);
  c->event_count += count;
  return NULL;
}

eyas_status_t eyas_vm_submit(eyas_context_t* context, const eyas_hal_submission_t* submission) {
  EYAS_RETURN_IF_ERROR(eyas_hal_device_submit(context->device, submission));
  if (!context->submit_is_synchronous) {
    EYAS_RETURN_IF_ERROR(eyas_hal_device_wait_idle(context->device));
  }
  return context->options.profile ? collect(context, submission->commands) : NULL;
}

eyas_status_t eyas_context_profile(eyas_context_t* context, size_t capacity,
                                   eyas_hal_profile_event_t* events, size_t* out_count) {
  if (!context->options.profile) {
    return eyas_status_make(EYAS_STATUS_FAILED_PRECONDITION, "the context was made without profiling");
  }
  pthread_mutex_lock(&context->mutex);
  size_t count = context->event_count < capacity ? context->event_count : capacity;
  if (count) memcpy(events, context->events, count * sizeof(*events));
  *out_count = context->event_count;
  pthread_mutex_unlock(&context->mutex);
  return NULL;
}

void eyas_context_profile_clear(eyas_context_t* context) {
  pthread_mutex_lock(&context->mutex);
  context->event_count = 0;
  pthread_mutex_unlock(&context->mutex);
}
