// Recordings: what can be laid out before the table is known.
#include "hal/vulkan/vulkan.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

static eyas_status_t no_memory(void) {
  return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory for commands");
}

//===-- Layout ----------------------------------------------------------------------------------//

static eyas_status_t check_dispatch(const eyas_hal_vulkan_device_t* device,
                                    const eyas_hal_command_buffer_t* commands,
                                    const eyas_hal_command_t* command) {
  const uint32_t* most = device->facts.properties.limits.maxComputeWorkGroupCount;
  const uint32_t* grid = command->workgroup_count;
  for (int i = 0; i < 3; ++i) {
    if (grid[i] <= most[i]) continue;
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED,
                            "dispatch '%s' has %u x %u x %u workgroups; the device '%s' allows "
                            "%u x %u x %u",
                            eyas_hal_command_name(command), grid[0], grid[1], grid[2],
                            device->facts.properties.deviceName, most[0], most[1], most[2]);
  }
  const int64_t* constants = (const int64_t*)commands->constants.data + command->constant_begin;
  for (uint32_t i = 0; i < command->constant_count; ++i) {
    if (constants[i] == (int32_t)constants[i]) continue;
    return eyas_status_make(EYAS_STATUS_OUT_OF_RANGE,
                            "dispatch '%s', constant %u is %lld; kernels of this device take "
                            "constants of 32 bits",
                            eyas_hal_command_name(command), i, (long long)constants[i]);
  }
  return NULL;
}

// Bytes of scratch memory that a dispatch needs, a multiple of `alignment`.
static eyas_status_t scratch_bytes(const eyas_hal_command_buffer_t* commands,
                                   const eyas_hal_command_t* command,
                                   const eyas_hal_vulkan_export_t* export, uint64_t alignment,
                                   uint64_t* out_bytes) {
  const int64_t* constants = (const int64_t*)commands->constants.data + command->constant_begin;
  uint64_t total = 0;
  bool fits = true;
  for (uint32_t i = 0; i < export->term_count; ++i) {
    const eyas_hal_vulkan_term_t* term = &export->terms[i];
    uint64_t bytes = term->factor;
    for (uint32_t k = 0; k < term->symbol_count; ++k) {
      const int64_t size = constants[term->symbols[k]];
      fits = fits && size >= 0 && eyas_checked_mul(bytes, (uint64_t)size, &bytes);
    }
    fits = fits && eyas_checked_add(total, bytes, &total);
  }
  if (fits && eyas_checked_align(total ? total : 1, alignment, out_bytes)) return NULL;
  return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED,
                          "dispatch '%s' needs more scratch memory than can be counted",
                          eyas_hal_command_name(command));
}

// Counters of the layout.
typedef struct layout_t {
  uint64_t wave_scratch;  // given out in the present wave
  uint32_t wave;
  uint64_t data_bytes;
} layout_t;

static eyas_status_t lay_out_dispatch(eyas_hal_vulkan_device_t* device,
                                      const eyas_hal_command_buffer_t* commands, size_t index,
                                      eyas_hal_vulkan_recording_t* recording, layout_t* layout) {
  const eyas_hal_command_t* command = &eyas_hal_commands(commands)[index];
  const eyas_hal_vulkan_executable_t* executable = command->executable->payload;
  const eyas_hal_vulkan_export_t* export = &executable->exports[command->ordinal];
  const uint32_t* grid = command->workgroup_count;
  eyas_hal_vulkan_step_t* step = &recording->steps[index];
  const uint64_t alignment = device->memory.alignment;
  if (!grid[0] || !grid[1] || !grid[2]) return NULL;
  EYAS_RETURN_IF_ERROR(check_dispatch(device, commands, command));
  step->export = export;
  step->set = recording->set_count++;
  recording->descriptor_count += export->descriptor_count;
  recording->reports |= export->reports;
  if (export->words_in_buffer) {
    step->word_begin = recording->word_bytes;
    recording->word_bytes += (4 * export->word_count + alignment - 1) / alignment * alignment;
  }
  if (export->has_scratch) {
    // Waves are ordered, so each may have the memory of the one before.
    if (layout->wave != command->wave) layout->wave_scratch = 0;
    layout->wave = command->wave;
    EYAS_RETURN_IF_ERROR(scratch_bytes(commands, command, export, alignment, &step->scratch_bytes));
    step->scratch_offset = layout->wave_scratch;
    if (!eyas_checked_add(layout->wave_scratch, step->scratch_bytes, &layout->wave_scratch)) {
      return no_memory();
    }
    if (layout->wave_scratch > recording->scratch_bytes) {
      recording->scratch_bytes = layout->wave_scratch;
    }
  }
  return NULL;
}

static eyas_status_t lay_out(eyas_hal_vulkan_device_t* device,
                             const eyas_hal_command_buffer_t* commands,
                             eyas_hal_vulkan_recording_t* recording, uint64_t* out_data_bytes) {
  layout_t layout = {0};
  const uint64_t alignment = device->memory.alignment;
  recording->word_bytes = (EYAS_HAL_VULKAN_ERROR_BYTES + alignment - 1) / alignment * alignment;
  const size_t error_bytes = recording->word_bytes;
  for (size_t i = 0; i < commands->commands.count; ++i) {
    if (eyas_hal_commands(commands)[i].kind == EYAS_HAL_COMMAND_DISPATCH) {
      EYAS_RETURN_IF_ERROR(lay_out_dispatch(device, commands, i, recording, &layout));
    } else {
      recording->steps[i].data_offset = layout.data_bytes;
      layout.data_bytes += eyas_hal_vulkan_transfer_data_bytes(commands, i);
    }
  }
  if (!recording->reports && recording->word_bytes == error_bytes) recording->word_bytes = 0;
  for (size_t i = 0; i < commands->bindings.count; ++i) {
    recording->changes |= !eyas_hal_bindings(commands)[i].buffer;
  }
  *out_data_bytes = layout.data_bytes;
  return NULL;
}

static eyas_status_t write_data(eyas_hal_vulkan_device_t* device,
                                const eyas_hal_command_buffer_t* commands,
                                eyas_hal_vulkan_recording_t* recording, uint64_t bytes) {
  if (!bytes) return NULL;
  EYAS_RETURN_IF_ERROR(
      eyas_hal_vulkan_range_allocate(device, device->memory.host_type, bytes, &recording->data));
  char* host = eyas_hal_vulkan_range_host(recording->data);
  for (size_t i = 0; i < commands->commands.count; ++i) {
    if (eyas_hal_commands(commands)[i].kind == EYAS_HAL_COMMAND_DISPATCH) continue;
    eyas_hal_vulkan_transfer_write_data(commands, i, host + recording->steps[i].data_offset);
  }
  return eyas_hal_vulkan_range_flush(device, recording->data);
}

static eyas_status_t prepare(eyas_hal_vulkan_device_t* device,
                             const eyas_hal_command_buffer_t* commands,
                             eyas_hal_vulkan_recording_t* recording) {
  uint64_t data_bytes = 0;
  recording->steps = calloc(commands->commands.count + 1, sizeof(*recording->steps));
  if (!recording->steps) return no_memory();
  if (commands->profiling) {
    recording->profile.places =
        calloc(commands->bindings.count + 1, sizeof(*recording->profile.places));
    recording->profile.times_ns =
        calloc(commands->commands.count + 1, sizeof(*recording->profile.times_ns));
    if (!recording->profile.places || !recording->profile.times_ns) return no_memory();
  }
  EYAS_RETURN_IF_ERROR(lay_out(device, commands, recording, &data_bytes));
  EYAS_RETURN_IF_ERROR(write_data(device, commands, recording, data_bytes));
  if (recording->scratch_bytes) {
    EYAS_RETURN_IF_ERROR(eyas_hal_vulkan_range_allocate(
        device, device->memory.near_type, recording->scratch_bytes, &recording->scratch));
  }
  if (recording->changes) return NULL;
  // All is known: what can be refused is refused now, and the first submission finds it ready.
  eyas_hal_vulkan_instance_t* instance = NULL;
  pthread_mutex_lock(&device->queue.mutex);
  eyas_status_t status = eyas_hal_vulkan_instance_acquire(device, commands, NULL, &instance);
  if (!status) status = eyas_hal_vulkan_instance_bind(device, commands, instance, NULL);
  pthread_mutex_unlock(&device->queue.mutex);
  return status;
}

eyas_status_t eyas_hal_vulkan_commands_prepare(eyas_hal_device_t* base,
                                               eyas_hal_command_buffer_t* commands) {
  eyas_hal_vulkan_device_t* device = eyas_hal_vulkan_device(base);
  if (eyas_hal_vulkan_is_foreign(device)) return eyas_hal_vulkan_foreign();
  commands->payload = calloc(1, sizeof(eyas_hal_vulkan_recording_t));
  if (!commands->payload) return no_memory();
  eyas_status_t status = prepare(device, commands, commands->payload);
  if (status) {
    eyas_hal_vulkan_commands_destroy(base, commands);
    commands->payload = NULL;
  }
  return status;
}

void eyas_hal_vulkan_commands_destroy(eyas_hal_device_t* base,
                                      eyas_hal_command_buffer_t* commands) {
  eyas_hal_vulkan_device_t* device = eyas_hal_vulkan_device(base);
  eyas_hal_vulkan_recording_t* recording = commands->payload;
  for (eyas_hal_vulkan_instance_t* instance = recording->instances; instance;) {
    eyas_hal_vulkan_instance_t* next = instance->next;
    eyas_hal_vulkan_instance_free(device, instance);
    instance = next;
  }
  eyas_hal_vulkan_range_free(device, recording->data);
  eyas_hal_vulkan_range_free(device, recording->scratch);
  free(recording->profile.places);
  free(recording->profile.times_ns);
  free(recording->steps);
  free(recording);
}
