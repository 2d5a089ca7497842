// The dispatch path: no allocation, and no locks after the first two.
#include <string.h>

#include "base/clock.h"
#include "hal/local/commands.h"

// What the workers need of the wave that runs.
typedef struct wave_run_t {
  const eyas_hal_local_device_t* device;
  eyas_hal_local_commands_t* commands;
  const eyas_hal_local_wave_t* wave;
} wave_run_t;

static bool has_failed(const eyas_hal_local_commands_t* commands) {
  return __builtin_expect(__atomic_load_n(&commands->failure.word, __ATOMIC_RELAXED) != 0, 0);
}

static void run_bytecode(wave_run_t* run, const eyas_hal_local_command_t* command,
                         eyas_workgroup_t* workgroup, uint64_t count) {
  const eyas_dispatch_t* dispatch = &command->dispatch;
  int32_t code =
      eyas_vmvx_run(command->bytecode, dispatch, workgroup, count, run->device->step_budget);
  if (__builtin_expect(code == 0, 1)) return;
  bool bad_data = code == EYAS_ERROR_BAD_DATA;
  if (!eyas_dispatch_report(dispatch, bad_data ? EYAS_ERROR_BAD_DATA : EYAS_ERROR_BYTECODE)) return;
  memcpy(run->commands->failure.id, workgroup->id, sizeof(workgroup->id));
  run->commands->failure.code = code;
}

// Bytecode must not see what others have left in the scratch memory.
static void own_scratch(const eyas_hal_local_device_t* device, eyas_hal_pool_worker_t* worker,
                        uint64_t owner) {
  if (__builtin_expect(worker->owner == owner, 1)) return;
  worker->owner = owner;
  if (owner) memset(worker->scratch, 0, device->scratch_bytes);
}

static void run_workgroups(wave_run_t* run, const eyas_hal_local_command_t* command,
                           eyas_hal_pool_worker_t* worker, uint64_t begin, uint64_t count) {
  const eyas_dispatch_t* dispatch = &command->dispatch;
  const uint32_t size_x = dispatch->workgroup_count[0], size_y = dispatch->workgroup_count[1];
  const uint64_t rows = begin / size_x;
  eyas_workgroup_t workgroup = {
      .id = {(uint32_t)(begin % size_x), (uint32_t)(rows % size_y), (uint32_t)(rows / size_y)},
      .worker = worker->index,
      .scratch = worker->scratch,
      .scratch_bytes = run->device->scratch_bytes,
  };
  own_scratch(run->device, worker, command->owner);
  if (command->bytecode) {
    run_bytecode(run, command, &workgroup, count);
    return;
  }
  for (; count > 0; --count) {
    command->function(dispatch, &workgroup);
    if (has_failed(run->commands)) return;
    if (++workgroup.id[0] < size_x) continue;
    workgroup.id[0] = 0;
    if (++workgroup.id[1] < size_y) continue;
    workgroup.id[1] = 0;
    ++workgroup.id[2];
  }
}

static void fill(char* target, uint64_t length, const uint8_t* pattern) {
  char block[64];
  for (size_t i = 0; i < sizeof(block); i += 8) memcpy(block + i, pattern, 8);
  for (; length >= sizeof(block); length -= sizeof(block), target += sizeof(block)) {
    memcpy(target, block, sizeof(block));
  }
  memcpy(target, block, length);
}

static void run_pieces(const eyas_hal_local_command_t* command, uint64_t begin, uint64_t count) {
  uint64_t offset = begin * EYAS_HAL_LOCAL_PIECE_BYTES;
  uint64_t length = count * EYAS_HAL_LOCAL_PIECE_BYTES;
  if (length > command->length - offset) length = command->length - offset;
  char* first = (char*)command->pointers[0] + offset;
  switch (command->kind) {
    case EYAS_HAL_COMMAND_FILL: fill(first, length, command->data); break;
    case EYAS_HAL_COMMAND_COPY: memcpy((char*)command->pointers[1] + offset, first, length); break;
    case EYAS_HAL_COMMAND_UPDATE: memcpy(first, command->data + offset, length); break;
    case EYAS_HAL_COMMAND_DISPATCH: break;
  }
}

static void run_items(wave_run_t* run, const eyas_hal_local_command_t* command,
                      eyas_hal_pool_worker_t* worker, uint64_t begin, uint64_t count) {
  if (command->kind == EYAS_HAL_COMMAND_DISPATCH) {
    run_workgroups(run, command, worker, begin, count);
  } else {
    run_pieces(command, begin, count);
  }
}

static void run_items_timed(wave_run_t* run, const eyas_hal_local_command_t* command,
                            eyas_hal_pool_worker_t* worker, uint64_t begin, uint64_t count) {
  eyas_hal_profile_share_t* share =
      &run->commands->shares[worker->index * run->commands->shares_of_worker + command->index];
  uint64_t start_ns = eyas_clock_now_ns();
  run_items(run, command, worker, begin, count);
  uint64_t end_ns = eyas_clock_now_ns();
  if (share->workgroup_count == 0) share->start_ns = start_ns;
  share->end_ns = end_ns;
  share->busy_ns += end_ns - start_ns;
  share->workgroup_count += count;
}

// The command of a wave that holds an item: the last that begins at or before it.
static const eyas_hal_local_command_t* find_command(const wave_run_t* run, uint64_t item) {
  size_t low = run->wave->command_begin, high = run->wave->command_end;
  while (high - low > 1) {
    size_t middle = low + (high - low) / 2;
    if (run->commands->commands[middle].item_begin <= item) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return &run->commands->commands[low];
}

static void run_chunk(void* context, eyas_hal_pool_worker_t* worker, uint32_t chunk) {
  wave_run_t* run = context;
  const eyas_hal_local_wave_t* wave = run->wave;
  int i = EYAS_HAL_LOCAL_ROUNDS - 1;
  while (chunk < wave->rounds[i].chunk_begin) --i;
  const eyas_hal_local_round_t* round = &wave->rounds[i];
  uint64_t item = round->item_begin + (chunk - round->chunk_begin) * round->chunk_items;
  uint64_t left = wave->item_count - item;
  if (left > round->chunk_items) left = round->chunk_items;
  const bool timed = run->commands->shares != NULL;
  for (const eyas_hal_local_command_t* command = find_command(run, item); left > 0; ++command) {
    // After a failure the rest of the wave has no purpose.
    if (has_failed(run->commands)) return;
    uint64_t begin = item - command->item_begin;
    uint64_t count = command->item_count - begin;
    if (count > left) count = left;
    if (timed) {
      run_items_timed(run, command, worker, begin, count);
    } else {
      run_items(run, command, worker, begin, count);
    }
    item += count;
    left -= count;
  }
}

static void resolve_table(eyas_hal_local_commands_t* commands, const eyas_hal_range_t* table) {
  for (size_t i = 0; i < commands->indirect_count; ++i) {
    const eyas_hal_local_indirect_t* indirect = &commands->indirects[i];
    const eyas_hal_range_t* range = &table[indirect->slot];
    uint64_t given =
        range->length == EYAS_HAL_WHOLE ? range->buffer->length - range->offset : range->length;
    char* host = range->buffer->host;
    commands->pointers[indirect->binding] = host ? host + range->offset + indirect->offset : NULL;
    commands->lengths[indirect->binding] =
        indirect->length == EYAS_HAL_WHOLE ? given - indirect->offset : indirect->length;
  }
}

static eyas_status_t failure_status(const eyas_hal_command_buffer_t* recording,
                                    const eyas_hal_local_failure_t* failure) {
  const eyas_hal_command_t* command = eyas_hal_error_command(recording, failure->word);
  const eyas_hal_cpu_executable_t* executable = command->executable->payload;
  if (!executable->bytecode) return eyas_hal_error_status(recording, failure->word);
  return eyas_status_annotate(
      eyas_vmvx_failure(executable->exports[command->ordinal].bytecode, failure->code),
      "dispatch '%s', workgroup (%u, %u, %u)", eyas_hal_command_name(command), failure->id[0],
      failure->id[1], failure->id[2]);
}

static eyas_status_t run_waves(const eyas_hal_local_device_t* device,
                               const eyas_hal_command_buffer_t* recording,
                               const eyas_hal_range_t* table, eyas_hal_pool_lane_t* lane) {
  eyas_hal_local_commands_t* commands = recording->payload;
  resolve_table(commands, table);
  if (commands->shares) {
    uint32_t workers = eyas_hal_pool_worker_count(device->pool);
    memset(commands->shares, 0, workers * commands->shares_of_worker * sizeof(*commands->shares));
  }
  commands->failure.word = 0;
  wave_run_t run = {.device = device, .commands = commands};
  for (size_t i = 0; i < commands->wave_count; ++i) {
    run.wave = &commands->waves[i];
    if (run.wave->chunk_count == 1) {
      run_chunk(&run, eyas_hal_pool_caller(lane), 0);
    } else {
      eyas_hal_pool_run(lane, run_chunk, &run, run.wave->chunk_count);
    }
    if (has_failed(commands)) return failure_status(recording, &commands->failure);
  }
  return NULL;
}

eyas_status_t eyas_hal_local_commands_run(eyas_hal_local_device_t* device,
                                          eyas_hal_command_buffer_t* recording,
                                          const eyas_hal_range_t* table) {
  eyas_hal_local_commands_t* commands = recording->payload;
  // What a run fills in belongs to the recording, so another run of it waits; runs of others do
  // not.
  pthread_mutex_lock(&commands->running);
  eyas_hal_pool_lane_t* lane = eyas_hal_pool_enter(device->pool);
  eyas_status_t status = run_waves(device, recording, table, lane);
  eyas_hal_pool_leave(lane);
  pthread_mutex_unlock(&commands->running);
  return status;
}
