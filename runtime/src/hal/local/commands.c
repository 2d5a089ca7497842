// From a recording to waves of work: what end() does on the local drivers.
#include "hal/local/commands.h"

#include <stdlib.h>
#include <string.h>

// Waves of transfers alone below this are done sooner than a second worker would start.
#define INLINE_TRANSFER_BYTES (128u * 1024)
// The same of dispatches of one workgroup each that touch no more than this.
#define INLINE_DISPATCH_BYTES (8u * 1024)

static uint64_t count_items(const eyas_hal_command_t* command, const eyas_hal_binding_t* bindings) {
  if (command->kind == EYAS_HAL_COMMAND_DISPATCH) {
    const uint32_t* count = command->workgroup_count;
    return (uint64_t)count[0] * count[1] * count[2];
  }
  uint64_t length = bindings[command->binding_begin].length;
  return length / EYAS_HAL_LOCAL_PIECE_BYTES + (length % EYAS_HAL_LOCAL_PIECE_BYTES != 0);
}

static void prepare_command(const eyas_hal_command_buffer_t* recording,
                            eyas_hal_local_commands_t* prepared, size_t index,
                            eyas_hal_local_command_t* out_command) {
  const eyas_hal_command_t* command = &eyas_hal_commands(recording)[index];
  out_command->kind = command->kind;
  out_command->index = (uint32_t)index;
  out_command->pointers = prepared->pointers + command->binding_begin;
  if (command->kind != EYAS_HAL_COMMAND_DISPATCH) {
    out_command->length = eyas_hal_bindings(recording)[command->binding_begin].length;
    if (command->kind != EYAS_HAL_COMMAND_COPY) {
      out_command->data = (const uint8_t*)recording->data.data + command->data_begin;
    }
    return;
  }
  const eyas_hal_cpu_executable_t* executable = command->executable->payload;
  if (executable->bytecode) {
    out_command->bytecode = executable->exports[command->ordinal].bytecode;
  } else {
    out_command->function = executable->exports[command->ordinal].function;
  }
  out_command->owner = executable->owner;
  eyas_dispatch_t* dispatch = &out_command->dispatch;
  dispatch->bindings = out_command->pointers;
  dispatch->binding_bytes = prepared->lengths + command->binding_begin;
  dispatch->binding_count = command->binding_count;
  if (command->constant_count) {
    dispatch->constants = (const int64_t*)recording->constants.data + command->constant_begin;
  }
  dispatch->constant_count = command->constant_count;
  memcpy(dispatch->workgroup_count, command->workgroup_count, sizeof(dispatch->workgroup_count));
  dispatch->error = &prepared->failure.word;
  dispatch->error_tag = (uint32_t)index << EYAS_ERROR_CODE_BITS;
}

static void prepare_bindings(const eyas_hal_command_buffer_t* recording,
                             eyas_hal_local_commands_t* prepared) {
  for (size_t i = 0; i < recording->bindings.count; ++i) {
    const eyas_hal_binding_t* binding = &eyas_hal_bindings(recording)[i];
    if (binding->buffer) {
      char* host = binding->buffer->host;
      prepared->pointers[i] = host ? host + binding->offset : NULL;
      prepared->lengths[i] = binding->length;
    } else {
      prepared->indirects[prepared->indirect_count++] = (eyas_hal_local_indirect_t){
          .binding = i,
          .offset = binding->offset,
          .length = binding->length,
          .slot = binding->slot,
      };
    }
  }
}

// Bytes that a dispatch is given; a binding of which that is not known yet is more than any limit.
static uint64_t count_bytes(const eyas_hal_command_buffer_t* recording, size_t index) {
  const eyas_hal_command_t* command = &eyas_hal_commands(recording)[index];
  const eyas_hal_binding_t* bindings = eyas_hal_bindings(recording) + command->binding_begin;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < command->binding_count; ++i) {
    if (bindings[i].length > INLINE_TRANSFER_BYTES) return INLINE_TRANSFER_BYTES;
    bytes += bindings[i].length;
  }
  return bytes;
}

// Whether one worker is done with a wave sooner than a second one would start.
static bool is_short(const eyas_hal_command_buffer_t* recording,
                     const eyas_hal_local_commands_t* prepared, const eyas_hal_local_wave_t* wave) {
  uint64_t transfer_bytes = 0, dispatch_bytes = 0;
  for (size_t i = wave->command_begin; i < wave->command_end; ++i) {
    const eyas_hal_local_command_t* command = &prepared->commands[i];
    if (command->kind != EYAS_HAL_COMMAND_DISPATCH) {
      transfer_bytes += command->length;
    } else if (command->item_count == 1) {
      dispatch_bytes += count_bytes(recording, command->index);
    } else {
      return false;
    }
    if (transfer_bytes > INLINE_TRANSFER_BYTES || dispatch_bytes > INLINE_DISPATCH_BYTES) {
      return false;
    }
  }
  return true;
}

static void finish_wave(const eyas_hal_command_buffer_t* recording,
                        const eyas_hal_local_commands_t* prepared, uint32_t worker_count,
                        eyas_hal_local_wave_t* wave) {
  if (worker_count == 1 || is_short(recording, prepared, wave)) {
    wave->chunk_count = 1;
    for (int i = 0; i < EYAS_HAL_LOCAL_ROUNDS; ++i) {
      wave->rounds[i] = (eyas_hal_local_round_t){.chunk_begin = i > 0, .chunk_items = UINT64_MAX};
    }
    return;
  }
  // Each worker takes a half of its share, a quarter, an eighth, and then sixteenths.
  uint64_t item = 0;
  for (int i = 0; i < EYAS_HAL_LOCAL_ROUNDS; ++i) {
    uint64_t size = wave->item_count / ((uint64_t)worker_count << (i + 1));
    if (size == 0) size = 1;
    uint64_t left = wave->item_count - item;
    uint64_t count = left / size;
    if (i + 1 == EYAS_HAL_LOCAL_ROUNDS) {
      count += left % size != 0;
    } else if (count > worker_count) {
      count = worker_count;
    }
    wave->rounds[i] = (eyas_hal_local_round_t){wave->chunk_count, item, size};
    wave->chunk_count += (uint32_t)count;
    item += count * size;
  }
}

static void prepare_waves(const eyas_hal_command_buffer_t* recording, uint32_t worker_count,
                          eyas_hal_local_commands_t* prepared) {
  uint32_t recorded_wave = UINT32_MAX;
  for (size_t i = 0; i < recording->commands.count; ++i) {
    const eyas_hal_command_t* command = &eyas_hal_commands(recording)[i];
    uint64_t item_count = count_items(command, eyas_hal_bindings(recording));
    if (item_count == 0) continue;
    if (command->wave != recorded_wave) {
      prepared->waves[prepared->wave_count++].command_begin = prepared->command_count;
      recorded_wave = command->wave;
    }
    eyas_hal_local_wave_t* wave = &prepared->waves[prepared->wave_count - 1];
    eyas_hal_local_command_t* out_command = &prepared->commands[prepared->command_count++];
    prepare_command(recording, prepared, i, out_command);
    out_command->item_begin = wave->item_count;
    out_command->item_count = item_count;
    // At most 2^24 commands of 2^48 items do not fit in 64 bits; nobody can run them either.
    if (__builtin_add_overflow(wave->item_count, item_count, &wave->item_count)) {
      wave->item_count = UINT64_MAX;
    }
    wave->command_end = prepared->command_count;
  }
  for (size_t i = 0; i < prepared->wave_count; ++i) {
    finish_wave(recording, prepared, worker_count, &prepared->waves[i]);
  }
}

static void free_prepared(eyas_hal_local_commands_t* prepared) {
  if (!prepared) return;
  free(prepared->commands);
  free(prepared->waves);
  free(prepared->pointers);
  free(prepared->lengths);
  free(prepared->indirects);
  free(prepared->shares);
  pthread_mutex_destroy(&prepared->running);
  free(prepared);
}

static void* aligned_zeros(size_t bytes) {
  void* memory = aligned_alloc(128, bytes);
  if (memory) memset(memory, 0, bytes);
  return memory;
}

eyas_status_t eyas_hal_local_commands_prepare(eyas_hal_device_t* device,
                                              eyas_hal_command_buffer_t* commands) {
  size_t command_capacity = commands->commands.count + 1;
  size_t binding_capacity = commands->bindings.count + 1;
  size_t wave_capacity = (size_t)commands->wave + 1;
  uint32_t worker_count = eyas_hal_pool_worker_count(eyas_hal_local_device(device)->pool);
  eyas_hal_local_commands_t* prepared = calloc(1, sizeof(*prepared));
  if (prepared) {
    pthread_mutex_init(&prepared->running, NULL);
    prepared->commands = calloc(command_capacity, sizeof(*prepared->commands));
    prepared->waves = calloc(wave_capacity, sizeof(*prepared->waves));
    prepared->pointers = calloc(binding_capacity, sizeof(*prepared->pointers));
    prepared->lengths = calloc(binding_capacity, sizeof(*prepared->lengths));
    prepared->indirects = calloc(binding_capacity, sizeof(*prepared->indirects));
    if (commands->profiling) {
      // Whole pairs of cache lines, so that no two workers write to one.
      prepared->shares_of_worker = (command_capacity + 3) & ~(size_t)3;
      prepared->shares =
          aligned_zeros(worker_count * prepared->shares_of_worker * sizeof(*prepared->shares));
    }
  }
  if (!prepared || !prepared->commands || !prepared->waves || !prepared->pointers ||
      !prepared->lengths || !prepared->indirects || (commands->profiling && !prepared->shares)) {
    free_prepared(prepared);
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory for %zu commands",
                            commands->commands.count);
  }
  prepare_bindings(commands, prepared);
  prepare_waves(commands, worker_count, prepared);
  commands->payload = prepared;
  return NULL;
}

void eyas_hal_local_commands_destroy(eyas_hal_device_t* device,
                                     eyas_hal_command_buffer_t* commands) {
  (void)device;
  free_prepared(commands->payload);
}

void eyas_hal_local_commands_profile(eyas_hal_device_t* device, eyas_hal_command_buffer_t* commands,
                                     eyas_hal_profile_event_t* events,
                                     eyas_hal_profile_share_t* shares,
                                     eyas_hal_profile_binding_t* bindings) {
  eyas_hal_local_commands_t* prepared = commands->payload;
  eyas_hal_local_device_t* local = eyas_hal_local_device(device);
  const uint32_t worker_count = eyas_hal_pool_worker_count(local->pool);
  pthread_mutex_lock(&prepared->running);
  for (size_t i = 0; i < commands->commands.count; ++i) {
    const eyas_hal_command_t* command = &eyas_hal_commands(commands)[i];
    eyas_hal_profile_event_t* event = &events[i];
    if (command->kind == EYAS_HAL_COMMAND_DISPATCH) {
      memcpy(event->grid, command->workgroup_count, sizeof(event->grid));
    } else {
      event->grid[0] = (uint32_t)count_items(command, eyas_hal_bindings(commands));
      event->grid[1] = event->grid[2] = 1;
    }
    for (uint32_t worker = 0; worker < worker_count; ++worker) {
      const eyas_hal_profile_share_t* share =
          &prepared->shares[worker * prepared->shares_of_worker + i];
      shares[i * worker_count + worker] = *share;
      if (share->workgroup_count == 0) continue;
      if (event->end_ns == 0 || share->start_ns < event->start_ns)
        event->start_ns = share->start_ns;
      if (share->end_ns > event->end_ns) event->end_ns = share->end_ns;
    }
  }
  for (size_t i = 0; i < commands->bindings.count; ++i) {
    bindings[i] = (eyas_hal_profile_binding_t){
        .address = prepared->pointers[i],
        .length = prepared->lengths[i],
        .access = eyas_hal_bindings(commands)[i].access,
    };
  }
  pthread_mutex_unlock(&prepared->running);
}
