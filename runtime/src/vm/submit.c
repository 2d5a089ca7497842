// Submission, and what the host waits for.
//
// Where the device works inside submit there is nothing to wait for. Elsewhere each submission of a
// context waits for the one before on a timeline of the context's own, so that after a failure none
// runs; the call waits at its end, and before that only for values that the host itself needs.
#include <stdlib.h>
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

// Takes the times of what has finished since they were taken last.
static eyas_status_t collect_pending(eyas_context_t* c, bool good) {
  eyas_status_t status = NULL;
  for (uint32_t i = 0; i < c->timed_count; ++i) {
    if (good && !status) status = collect(c, c->timed[i]);
    eyas_hal_command_buffer_release(c->timed[i]);
  }
  c->timed_count = 0;
  return status;
}

// The times of a recording are those of its latest run: they are taken before it runs again.
static eyas_status_t note_timed(eyas_context_t* c, eyas_hal_command_buffer_t* commands) {
  for (uint32_t i = 0; i < c->timed_count; ++i) {
    if (c->timed[i] != commands) continue;
    EYAS_RETURN_IF_ERROR(eyas_vm_wait(c));
    break;
  }
  if (c->timed_count == c->timed_capacity) {
    uint32_t capacity = c->timed_capacity ? 2 * c->timed_capacity : 8;
    eyas_hal_command_buffer_t** timed = realloc(c->timed, capacity * sizeof(*timed));
    if (!timed) return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "no memory for a profile");
    c->timed = timed;
    c->timed_capacity = capacity;
  }
  c->timed[c->timed_count++] = eyas_hal_command_buffer_retain(commands);
  return NULL;
}

static eyas_status_t submit_later(eyas_context_t* c, const eyas_hal_submission_t* submission) {
  if (!c->timeline) {
    EYAS_RETURN_IF_ERROR(eyas_hal_semaphore_create(c->device, 0, &c->timeline));
    c->submitted = 0;
  }
  const eyas_hal_timepoint_t wait = {c->timeline, c->submitted};
  const eyas_hal_timepoint_t signal = {c->timeline, c->submitted + 1};
  eyas_hal_submission_t ordered = *submission;
  ordered.waits = &wait;
  ordered.wait_count = 1;
  ordered.signals = &signal;
  ordered.signal_count = 1;
  EYAS_RETURN_IF_ERROR(eyas_hal_device_submit(c->device, &ordered));
  ++c->submitted;
  return NULL;
}

eyas_status_t eyas_vm_submit(eyas_context_t* c, const eyas_hal_submission_t* submission) {
  if (c->loaded->info.asynchronous) return submit_later(c, submission);
  return eyas_hal_device_submit(c->device, submission);
}

eyas_status_t eyas_vm_submit_recorded(eyas_context_t* c, const eyas_hal_submission_t* submission,
                                      bool writes_state) {
  if (!c->loaded->info.asynchronous) {
    c->state_written |= writes_state;
    EYAS_RETURN_IF_ERROR(eyas_hal_device_submit(c->device, submission));
    return c->options.profile ? collect(c, submission->commands) : NULL;
  }
  if (c->options.profile) EYAS_RETURN_IF_ERROR(note_timed(c, submission->commands));
  EYAS_RETURN_IF_ERROR(submit_later(c, submission));
  if (writes_state && !c->state_point) c->state_point = c->submitted;
  return NULL;
}

eyas_status_t eyas_vm_wait(eyas_context_t* c) {
  if (!c->timeline) return NULL;
  eyas_status_t status = eyas_hal_semaphore_wait(c->timeline, c->submitted, EYAS_HAL_FOREVER);
  uint64_t reached = c->submitted;
  if (status) {
    eyas_status_free(eyas_hal_semaphore_query(c->timeline, &reached));
    eyas_hal_semaphore_release(c->timeline);  // a failure stays: the next call has a new one
    c->timeline = NULL;
  }
  // The one after what was reached has failed, and those behind it did not run.
  if (c->state_point && reached + 1 >= c->state_point) c->state_written = true;
  c->state_point = 0;
  eyas_status_t times = collect_pending(c, !status);
  return eyas_status_annotate(eyas_status_join(status, times), "submit");
}

eyas_status_t eyas_vm_copy(eyas_context_t* c, eyas_hal_buffer_t* source, uint64_t offset,
                           eyas_hal_buffer_t* target, uint64_t bytes) {
  if (!c->loaded->info.asynchronous) {
    return eyas_hal_buffer_copy(source, offset, target, 0, bytes);
  }
  eyas_hal_command_buffer_t* commands = NULL;
  EYAS_RETURN_IF_ERROR(eyas_hal_command_buffer_create(c->device, 0, &commands));
  eyas_status_t status = eyas_hal_command_buffer_copy(
      commands, (eyas_hal_binding_t){.buffer = source, .offset = offset, .length = bytes},
      (eyas_hal_binding_t){.buffer = target, .length = bytes});
  if (!status) status = eyas_hal_command_buffer_end(commands);
  if (!status) status = eyas_vm_submit(c, &(eyas_hal_submission_t){.commands = commands});
  eyas_hal_command_buffer_release(commands);
  return status;
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
