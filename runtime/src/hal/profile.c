// What profiling saw, gathered over submissions.
#include <stdlib.h>
#include <string.h>

#include "hal/command_buffer.h"

// Makes room for `count` more elements; true when it worked.
static bool reserve(void** data, size_t used, size_t count, size_t capacity, size_t element_bytes) {
  if (capacity - used >= count) return true;
  void* grown = reallocarray(*data, used + count + capacity, element_bytes);
  if (grown) *data = grown;
  return grown != NULL;
}

static bool reserve_all(eyas_hal_profile_t* profile, size_t events, size_t bindings,
                        size_t constants) {
  const size_t share_bytes = profile->worker_count * sizeof(*profile->shares);
  void *event_data = profile->events, *share_data = profile->shares;
  void* binding_data = profile->bindings;
  size_t used = profile->event_count, capacity = profile->event_capacity;
  bool shares_fit = reserve(&share_data, used, events, capacity, share_bytes);
  bool events_fit =
      shares_fit && reserve(&event_data, used, events, capacity, sizeof(*profile->events));
  bool bindings_fit = reserve(&binding_data, profile->binding_count, bindings,
                              profile->binding_capacity, sizeof(*profile->bindings));
  void* constant_data = profile->constants;
  bool constants_fit = reserve(&constant_data, profile->constant_count, constants,
                               profile->constant_capacity, sizeof(*profile->constants));
  profile->constants = constant_data;
  profile->shares = share_data;
  profile->events = event_data;
  profile->bindings = binding_data;
  if (events_fit && capacity - used < events) profile->event_capacity = used + events + capacity;
  if (bindings_fit && profile->binding_capacity - profile->binding_count < bindings) {
    profile->binding_capacity += profile->binding_count + bindings;
  }
  if (constants_fit && profile->constant_capacity - profile->constant_count < constants) {
    profile->constant_capacity += profile->constant_count + constants;
  }
  return events_fit && bindings_fit && constants_fit;
}

eyas_status_t eyas_hal_command_buffer_profile(eyas_hal_command_buffer_t* commands,
                                              eyas_hal_profile_t* profile) {
  if (!commands->profiling || !commands->ended) {
    return eyas_status_make(EYAS_STATUS_FAILED_PRECONDITION,
                            "no profile: enable profiling before ending the command buffer");
  }
  eyas_hal_device_info_t info;
  eyas_hal_device_info(commands->device, &info);
  if (profile->event_count > 0 && profile->worker_count != info.worker_count) {
    return eyas_status_make(
        EYAS_STATUS_INVALID_ARGUMENT,
        "the profile is of a device with %u workers, the commands of one with %u",
        profile->worker_count, info.worker_count);
  }
  profile->worker_count = info.worker_count;
  const size_t count = commands->commands.count;
  if (!reserve_all(profile, count, commands->bindings.count, commands->constants.count)) {
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "no memory for a profile");
  }
  eyas_hal_profile_event_t* events = profile->events + profile->event_count;
  for (size_t i = 0; i < count; ++i) {
    const eyas_hal_command_t* command = &eyas_hal_commands(commands)[i];
    events[i] = (eyas_hal_profile_event_t){
        .name = eyas_hal_command_name(command),
        .submission = profile->submission_count,
        .wave = command->wave,
        .binding_begin = profile->binding_count + command->binding_begin,
        .binding_count = command->binding_count,
        .constant_begin = profile->constant_count + command->constant_begin,
        .constant_count = command->constant_count,
    };
  }
  if (count > 0) {
    commands->device->vtable->commands_profile(
        commands->device, commands, events,
        profile->shares + profile->event_count * profile->worker_count,
        profile->bindings + profile->binding_count);
  }
  if (commands->constants.count > 0) {
    memcpy(profile->constants + profile->constant_count, commands->constants.data,
           commands->constants.count * sizeof(*profile->constants));
  }
  profile->event_count += count;
  profile->binding_count += commands->bindings.count;
  profile->constant_count += commands->constants.count;
  profile->submission_count += 1;
  return NULL;
}

void eyas_hal_profile_clear(eyas_hal_profile_t* profile) {
  free(profile->events);
  free(profile->shares);
  free(profile->bindings);
  free(profile->constants);
  memset(profile, 0, sizeof(*profile));
}
