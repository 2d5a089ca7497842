// Recordings are run as they are: nothing is laid out before.
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "hal/far/far.h"

// What one run of a recording works with.
typedef struct run_t {
  eyas_hal_far_device_t* device;
  const eyas_hal_command_buffer_t* recording;
  void** pointers;    // of every binding
  uint64_t* lengths;  // of every binding
  uint32_t error;     // the error word
  int32_t code;       // of bytecode that failed
  uint32_t id[3];     // the workgroup that did
} run_t;

// Payload of a recording: what the latest run was, for profiles. The queue's mutex guards it.
typedef struct recording_t {
  eyas_hal_profile_event_t* times;  // start_ns and end_ns, by command; NULL: no profiling
  void** pointers;
  uint64_t* lengths;
} recording_t;

static void free_recording(recording_t* recording) {
  if (!recording) return;
  free(recording->times);
  free(recording->pointers);
  free(recording->lengths);
  free(recording);
}

eyas_status_t eyas_hal_far_commands_prepare(eyas_hal_device_t* device,
                                            eyas_hal_command_buffer_t* commands) {
  (void)device;
  recording_t* recording = calloc(1, sizeof(*recording));
  if (recording) {
    recording->pointers = calloc(commands->bindings.count + 1, sizeof(*recording->pointers));
    recording->lengths = calloc(commands->bindings.count + 1, sizeof(*recording->lengths));
    if (commands->profiling) {
      recording->times = calloc(commands->commands.count + 1, sizeof(*recording->times));
    }
  }
  if (!recording || !recording->pointers || !recording->lengths ||
      (commands->profiling && !recording->times)) {
    free_recording(recording);
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory for %zu commands",
                            commands->commands.count);
  }
  commands->payload = recording;
  return NULL;
}

void eyas_hal_far_commands_destroy(eyas_hal_device_t* device, eyas_hal_command_buffer_t* commands) {
  (void)device;
  free_recording(commands->payload);
}

void eyas_hal_far_commands_profile(eyas_hal_device_t* base, eyas_hal_command_buffer_t* commands,
                                   eyas_hal_profile_event_t* events,
                                   eyas_hal_profile_share_t* shares,
                                   eyas_hal_profile_binding_t* bindings) {
  eyas_hal_far_queue_t* queue = &eyas_hal_far_device(base)->queue;
  const recording_t* recording = commands->payload;
  pthread_mutex_lock(&queue->mutex);
  for (size_t i = 0; i < commands->commands.count; ++i) {
    const eyas_hal_command_t* command = &eyas_hal_commands(commands)[i];
    static const uint32_t one[3] = {1, 1, 1};
    const bool dispatch = command->kind == EYAS_HAL_COMMAND_DISPATCH;
    memcpy(events[i].grid, dispatch ? command->workgroup_count : one, sizeof(one));
    const uint32_t* grid = events[i].grid;
    const uint64_t start_ns = recording->times[i].start_ns, end_ns = recording->times[i].end_ns;
    events[i].start_ns = start_ns;
    events[i].end_ns = end_ns;
    shares[i] = (eyas_hal_profile_share_t){(uint64_t)grid[0] * grid[1] * grid[2], start_ns, end_ns,
                                           end_ns - start_ns};
  }
  for (size_t i = 0; i < commands->bindings.count; ++i) {
    bindings[i] = (eyas_hal_profile_binding_t){
        .address = recording->pointers[i],
        .length = recording->lengths[i],
        .access = eyas_hal_bindings(commands)[i].access,
    };
  }
  pthread_mutex_unlock(&queue->mutex);
}

static void resolve(run_t* run, const eyas_hal_range_t* table) {
  for (size_t i = 0; i < run->recording->bindings.count; ++i) {
    const eyas_hal_binding_t* binding = &eyas_hal_bindings(run->recording)[i];
    const eyas_hal_buffer_t* buffer = binding->buffer;
    uint64_t offset = binding->offset, length = binding->length;
    if (!buffer) {
      const eyas_hal_range_t* range = &table[binding->slot];
      buffer = range->buffer;
      uint64_t given =
          range->length == EYAS_HAL_WHOLE ? buffer->length - range->offset : range->length;
      if (length == EYAS_HAL_WHOLE) length = given - offset;
      offset += range->offset;
    }
    run->pointers[i] = eyas_hal_far_address(run->device, buffer, offset);
    run->lengths[i] = length;
  }
}

static void run_workgroups(run_t* run, const eyas_hal_cpu_executable_t* executable,
                           uint32_t ordinal, const eyas_dispatch_t* dispatch) {
  const uint32_t* grid = dispatch->workgroup_count;
  eyas_workgroup_t workgroup = {.scratch = run->device->scratch,
                                .scratch_bytes = EYAS_MIN_SCRATCH_BYTES};
  if (executable->bytecode) {
    run->code = eyas_vmvx_run(executable->exports[ordinal].bytecode, dispatch, &workgroup,
                              (uint64_t)grid[0] * grid[1] * grid[2], run->device->step_budget);
    if (run->code == 0) return;
    memcpy(run->id, workgroup.id, sizeof(run->id));
    eyas_dispatch_report(
        dispatch, run->code == EYAS_ERROR_BAD_DATA ? EYAS_ERROR_BAD_DATA : EYAS_ERROR_BYTECODE);
    return;
  }
  uint32_t* id = workgroup.id;
  for (id[2] = 0; id[2] < grid[2]; ++id[2]) {
    for (id[1] = 0; id[1] < grid[1]; ++id[1]) {
      for (id[0] = 0; id[0] < grid[0] && !run->error; ++id[0]) {
        executable->exports[ordinal].function(dispatch, &workgroup);
      }
    }
  }
}

static void run_dispatch(run_t* run, size_t index) {
  const eyas_hal_command_t* command = &eyas_hal_commands(run->recording)[index];
  const eyas_hal_cpu_executable_t* executable = command->executable->payload;
  eyas_dispatch_t dispatch = {
      .bindings = run->pointers + command->binding_begin,
      .binding_bytes = run->lengths + command->binding_begin,
      .constants = (const int64_t*)run->recording->constants.data + command->constant_begin,
      .binding_count = command->binding_count,
      .constant_count = command->constant_count,
      .error_tag = (uint32_t)index << EYAS_ERROR_CODE_BITS,
      .error = &run->error,
  };
  if (!command->constant_count) dispatch.constants = NULL;
  memcpy(dispatch.workgroup_count, command->workgroup_count, sizeof(dispatch.workgroup_count));
  const uint32_t* grid = dispatch.workgroup_count;
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0) return;
  // Bytecode must not see what others have left in the scratch memory.
  if (executable->owner && run->device->scratch_owner != executable->owner) {
    memset(run->device->scratch, 0, EYAS_MIN_SCRATCH_BYTES);
  }
  run->device->scratch_owner = executable->owner;
  run_workgroups(run, executable, command->ordinal, &dispatch);
}

static void run_transfer(run_t* run, const eyas_hal_command_t* command) {
  char* first = run->pointers[command->binding_begin];
  const uint64_t length = run->lengths[command->binding_begin];
  const char* data = (const char*)run->recording->data.data + command->data_begin;
  if (length == 0) return;
  switch (command->kind) {
    case EYAS_HAL_COMMAND_FILL:
      for (uint64_t i = 0; i < length; ++i) first[i] = data[i % 8];
      break;
    case EYAS_HAL_COMMAND_COPY:
      memcpy(run->pointers[command->binding_begin + 1], first, length);
      break;
    case EYAS_HAL_COMMAND_UPDATE: memcpy(first, data, length); break;
    case EYAS_HAL_COMMAND_DISPATCH: break;
  }
}

static bool has_work(const run_t* run, const eyas_hal_command_t* command) {
  const uint32_t* grid = command->workgroup_count;
  if (command->kind == EYAS_HAL_COMMAND_DISPATCH) return grid[0] && grid[1] && grid[2];
  return run->lengths[command->binding_begin] > 0;
}

static void run_command(run_t* run, size_t index) {
  const eyas_hal_command_t* command = &eyas_hal_commands(run->recording)[index];
  const recording_t* recording = run->recording->payload;
  const uint64_t start_ns = recording->times ? eyas_clock_now_ns() : 0;
  if (command->kind == EYAS_HAL_COMMAND_DISPATCH) {
    run_dispatch(run, index);
  } else {
    run_transfer(run, command);
  }
  if (!recording->times) return;
  const bool worked = has_work(run, command);
  pthread_mutex_lock(&run->device->queue.mutex);
  recording->times[index].start_ns = worked ? start_ns : 0;
  recording->times[index].end_ns = worked ? eyas_clock_now_ns() : 0;
  pthread_mutex_unlock(&run->device->queue.mutex);
}

static eyas_status_t failure_status(const run_t* run) {
  const eyas_hal_command_t* command = eyas_hal_error_command(run->recording, run->error);
  const eyas_hal_cpu_executable_t* executable = command->executable->payload;
  if (!executable->bytecode) return eyas_hal_error_status(run->recording, run->error);
  return eyas_status_annotate(
      eyas_vmvx_failure(executable->exports[command->ordinal].bytecode, run->code),
      "dispatch '%s', workgroup (%u, %u, %u)", eyas_hal_command_name(command), run->id[0],
      run->id[1], run->id[2]);
}

eyas_status_t eyas_hal_far_commands_run(eyas_hal_far_device_t* device,
                                        eyas_hal_command_buffer_t* commands,
                                        const eyas_hal_range_t* table) {
  const size_t count = commands->commands.count, binding_count = commands->bindings.count;
  recording_t* recording = commands->payload;
  // One queue, one run at a time: the recording's own arrays serve it.
  run_t run = {.device = device,
               .recording = commands,
               .pointers = recording->pointers,
               .lengths = recording->lengths};
  pthread_mutex_lock(&device->queue.mutex);
  if (binding_count) resolve(&run, table);
  pthread_mutex_unlock(&device->queue.mutex);
  for (size_t begin = 0, end = 0; begin < count && !run.error; begin = end) {
    const uint32_t wave = eyas_hal_commands(commands)[begin].wave;
    while (end < count && eyas_hal_commands(commands)[end].wave == wave) ++end;
    for (size_t i = end; i > begin && !run.error; --i) run_command(&run, i - 1);
  }
  return run.error ? failure_status(&run) : NULL;
}
