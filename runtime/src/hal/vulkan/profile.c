// When commands ran: timestamps of the device in the time of the host.
#include "hal/vulkan/vulkan.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

// A moment in both times. Without a common clock: the first command started when it was submitted.
static void find_moment(eyas_hal_vulkan_device_t* device, uint64_t first_tick,
                        uint64_t submitted_ns, uint64_t* out_tick, uint64_t* out_ns) {
  *out_tick = first_tick;
  *out_ns = submitted_ns;
  if (!device->facts.calibrated || !device->vk.GetCalibratedTimestampsEXT) return;
  const VkCalibratedTimestampInfoEXT clocks[2] = {
      {.sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT,
       .timeDomain = VK_TIME_DOMAIN_DEVICE_EXT},
      {.sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT,
       .timeDomain = VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT},
  };
  uint64_t now[2], deviation = 0;
  if (device->vk.GetCalibratedTimestampsEXT(device->handle, 2, clocks, now, &deviation) < 0) return;
  *out_tick = now[0];
  *out_ns = now[1];
}

void eyas_hal_vulkan_profile_collect(eyas_hal_vulkan_device_t* device,
                                     const eyas_hal_command_buffer_t* commands,
                                     const eyas_hal_vulkan_instance_t* instance,
                                     uint64_t submitted_ns) {
  eyas_hal_vulkan_recording_t* recording = commands->payload;
  const size_t count = commands->commands.count + 1;
  uint64_t* times = recording->profile.times_ns;
  memset(times, 0, count * sizeof(*times));
  memcpy(recording->profile.places, instance->places,
         commands->bindings.count * sizeof(*instance->places));
  if (!instance->queries ||
      device->vk.GetQueryPoolResults(device->handle, instance->queries, 0, (uint32_t)count,
                                     count * sizeof(*times), times, sizeof(*times),
                                     VK_QUERY_RESULT_64_BIT) != VK_SUCCESS) {
    return;
  }
  uint64_t tick = 0, now_ns = 0;
  find_moment(device, times[0], submitted_ns, &tick, &now_ns);
  const double period_ns = (double)device->facts.properties.limits.timestampPeriod;
  const uint32_t unused_bits = 64 - device->facts.timestamp_bits;
  for (size_t i = 0; i < count; ++i) {
    // The counter may have wrapped around between the two moments: the difference has not.
    const int64_t ticks = (int64_t)((times[i] - tick) << unused_bits) >> unused_bits;
    times[i] = now_ns + (uint64_t)(int64_t)((double)ticks * period_ns);
  }
}

static bool has_work(const eyas_hal_command_t* command, const eyas_hal_vulkan_step_t* step,
                     const eyas_hal_vulkan_place_t* places) {
  if (command->kind == EYAS_HAL_COMMAND_DISPATCH) return step->export != NULL;
  return places[command->binding_begin].length > 0;
}

void eyas_hal_vulkan_commands_profile(eyas_hal_device_t* base, eyas_hal_command_buffer_t* commands,
                                      eyas_hal_profile_event_t* events,
                                      eyas_hal_profile_share_t* shares,
                                      eyas_hal_profile_binding_t* bindings) {
  eyas_hal_vulkan_device_t* device = eyas_hal_vulkan_device(base);
  const eyas_hal_vulkan_recording_t* recording = commands->payload;
  const uint64_t* times = recording->profile.times_ns;
  pthread_mutex_lock(&device->queue.mutex);
  for (size_t i = 0; i < commands->commands.count; ++i) {
    const eyas_hal_command_t* command = &eyas_hal_commands(commands)[i];
    static const uint32_t one[3] = {1, 1, 1};
    const bool dispatch = command->kind == EYAS_HAL_COMMAND_DISPATCH;
    const bool worked = has_work(command, &recording->steps[i], recording->profile.places);
    memcpy(events[i].grid, dispatch ? command->workgroup_count : one, sizeof(one));
    const uint32_t* grid = events[i].grid;
    const uint64_t start_ns = worked ? times[i] : 0, end_ns = worked ? times[i + 1] : 0;
    events[i].start_ns = start_ns;
    events[i].end_ns = end_ns;
    shares[i] = (eyas_hal_profile_share_t){(uint64_t)grid[0] * grid[1] * grid[2], start_ns, end_ns,
                                           end_ns - start_ns};
  }
  for (size_t i = 0; i < commands->bindings.count; ++i) {
    const eyas_hal_vulkan_place_t* place = &recording->profile.places[i];
    // Not an address that could be followed, but the same one for the same memory.
    bindings[i] = (eyas_hal_profile_binding_t){
        .address = (const char*)place->buffer + place->offset,
        .length = place->length,
        .access = eyas_hal_bindings(commands)[i].access,
    };
  }
  pthread_mutex_unlock(&device->queue.mutex);
}
