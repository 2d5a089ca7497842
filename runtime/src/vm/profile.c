#include <string.h>

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
      if (strcmp(name, p->executables[i].exports[k].name) == 0)
        return p->executables[i].exports[k].name;
    }
  }
  return "?";
}

static eyas_status_t collect(eyas_context_t* c, eyas_hal_command_buffer_t* commands) {
  size_t first = c->profile.event_count;
  EYAS_RETURN_IF_ERROR(eyas_hal_command_buffer_profile(commands, &c->profile));
  for (size_t i = first; i < c->profile.event_count; ++i) {
    c->profile.events[i].name = lasting_name(c, c->profile.events[i].name);
  }
  return NULL;
}

eyas_status_t eyas_vm_submit(eyas_context_t* context, const eyas_hal_submission_t* submission) {
  EYAS_RETURN_IF_ERROR(eyas_hal_device_submit(context->device, submission));
  if (context->loaded->info.asynchronous) {
    EYAS_RETURN_IF_ERROR(eyas_hal_device_wait_idle(context->device));
  }
  return context->options.profile ? collect(context, submission->commands) : NULL;
}

eyas_status_t eyas_context_profile(eyas_context_t* context, eyas_hal_profile_t* out_profile) {
  if (!context->options.profile) {
    return eyas_status_make(EYAS_STATUS_FAILED_PRECONDITION,
                            "the context was made without profiling");
  }
  pthread_mutex_lock(&context->mutex);
  *out_profile = context->profile;
  memset(&context->profile, 0, sizeof(context->profile));
  pthread_mutex_unlock(&context->mutex);
  return NULL;
}
