// From a dispatch to frames: lays registers and buffers out in the worker's scratch memory.
#include <stdlib.h>
#include <string.h>

#include "vmvx/function.h"
#include "vmvx/local.h"
#include "vmvx/memory.h"
#include "vmvx/tile.h"

#define ALIGN_UP(value) (((value) + 63) & ~(size_t)63)

// The table of buffers has the only pointers in scratch memory. It is first and has one size for
// every function, since all that lies behind it can be read as local memory by the next function.
#define MAX_BUFFERS (EYAS_VMVX_MAX_BINDINGS + 1 + EYAS_VMVX_MAX_LOCALS)

static int32_t failure_code(const eyas_vmvx_function_t* function, int reason,
                            const eyas_vmvx_cell_t* at) {
  if (reason == EYAS_VMVX_FAIL_DATA) return EYAS_ERROR_BAD_DATA;
  uint32_t byte = 0;
  if (at) {
    uint32_t cell = (uint32_t)(at - function->cells), low = 0, high = function->place_count;
    while (high - low > 1) {
      uint32_t middle = low + (high - low) / 2;
      if (function->places[middle].cell <= cell) {
        low = middle;
      } else {
        high = middle;
      }
    }
    byte = function->places[low].byte;
  }
  return -(int32_t)((uint32_t)reason + byte / 2 * 64);
}

static bool bind(eyas_vmvx_frame_t* f) {
  const eyas_vmvx_function_t* function = f->function;
  const eyas_dispatch_t* dispatch = f->dispatch;
  if (dispatch->binding_count != function->binding_count ||
      dispatch->constant_count != function->constant_count) {
    return false;
  }
  for (uint32_t i = 0; i < function->binding_count; ++i) {
    uint64_t size = dispatch->binding_bytes[i];
    if (size > EYAS_VMVX_MAX_BUFFER_BYTES) return false;
    bool writable = eyas_vmvx_function_writes(function, i);
    f->buffers[i] = (eyas_vmvx_buffer_t){
        .base = dispatch->bindings[i], .size = size, .write_size = writable ? size : 0};
  }
  f->buffers[function->binding_count] = (eyas_vmvx_buffer_t){
      .base = (char*)function->data, .size = function->data_bytes, .write_size = 0};
  f->buffer_count = function->binding_count + 1;
  return true;
}

static void next_workgroup(const eyas_dispatch_t* dispatch, eyas_workgroup_t* workgroup) {
  if (++workgroup->id[0] < dispatch->workgroup_count[0]) return;
  workgroup->id[0] = 0;
  if (++workgroup->id[1] < dispatch->workgroup_count[1]) return;
  workgroup->id[1] = 0;
  ++workgroup->id[2];
}

int32_t eyas_vmvx_run(const eyas_vmvx_function_t* function, const eyas_dispatch_t* dispatch,
                      eyas_workgroup_t* workgroup, uint64_t count, uint64_t budget) {
  const size_t scalar_bytes = ALIGN_UP(function->scalar_count * sizeof(int64_t));
  const size_t buffers_bytes = ALIGN_UP(MAX_BUFFERS * sizeof(eyas_vmvx_buffer_t));
  const size_t tiles_bytes = function->tile_count ? (function->tile_count + EYAS_VMVX_SPARE_TILES) *
                                                        (size_t)EYAS_VMVX_TILE_STRIDE
                                                  : 0;
  const size_t bytes = buffers_bytes + scalar_bytes + tiles_bytes;
  char* memory = workgroup->scratch;
  char* heap = NULL;
  uint64_t released[EYAS_VMVX_MAX_LOCALS / 64] = {0};
  eyas_vmvx_frame_t frame = {
      .function = function, .dispatch = dispatch, .workgroup = workgroup, .released = released};
  if (bytes <= workgroup->scratch_bytes) {
    frame.local_at = memory + bytes;
    frame.local_end = memory + (workgroup->scratch_bytes & ~(uint64_t)63);
  } else {  // local memory comes from the heap, too
    memory = heap = aligned_alloc(64, bytes);
    if (!heap) return failure_code(function, EYAS_VMVX_FAIL_MEMORY, NULL);
    memset(heap, 0, bytes);
    frame.local_at = frame.local_end = memory + bytes;
  }
  frame.buffers = (eyas_vmvx_buffer_t*)memory;
  frame.scalars = (int64_t*)(memory + buffers_bytes);
  frame.tiles = memory + buffers_bytes + scalar_bytes;
  int reason = bind(&frame) ? 0 : EYAS_VMVX_FAIL_DISPATCH;
  const eyas_vmvx_cell_t* at = NULL;
  for (; count > 0 && !reason; --count) {
    memcpy(frame.scalars, function->initial, function->scalar_count * sizeof(int64_t));
    frame.budget = budget ? budget : UINT64_MAX;
    eyas_vmvx_set_shape(&frame, 1, 1);
    reason = eyas_vmvx_interpret(&frame, &at, NULL);
    eyas_vmvx_local_reset(&frame);
    if (!reason) next_workgroup(dispatch, workgroup);
  }
  free(heap);
  return reason ? failure_code(function, reason, at) : 0;
}

eyas_status_t eyas_vmvx_failure(const eyas_vmvx_function_t* function, int32_t code) {
  static const char* const texts[EYAS_VMVX_FAIL_COUNT] = {
      [EYAS_VMVX_FAIL_BOUNDS] = "reads or writes outside of its buffers",
      [EYAS_VMVX_FAIL_READ_ONLY] = "writes to memory that it may only read",
      [EYAS_VMVX_FAIL_SHAPE] = "sets a shape that is empty or has more than 1024 elements",
      [EYAS_VMVX_FAIL_DISTINCT] =
          "claims that elements it stores have addresses of their own, but they overlap",
      [EYAS_VMVX_FAIL_INDEX] = "asks for an element that a tile does not have",
      [EYAS_VMVX_FAIL_LOCAL] = "asks for too much local memory",
      [EYAS_VMVX_FAIL_MEMORY] = "asks for memory that this machine does not have",
      [EYAS_VMVX_FAIL_BUDGET] = "has used up the workgroup's budget of steps",
      [EYAS_VMVX_FAIL_DISPATCH] = "was given other bindings or constants than it declares",
  };
  if (code == EYAS_ERROR_BAD_DATA) {
    return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT,
                            "a value in the data is not allowed, such as an index out of range");
  }
  uint32_t packed = (uint32_t)-code, reason = packed % 64, byte = packed / 64 * 2;
  eyas_status_code_t kind = EYAS_STATUS_INTERNAL;
  if (reason == EYAS_VMVX_FAIL_LOCAL || reason == EYAS_VMVX_FAIL_MEMORY ||
      reason == EYAS_VMVX_FAIL_BUDGET) {
    kind = EYAS_STATUS_RESOURCE_EXHAUSTED;
  }
  const char* text = reason < EYAS_VMVX_FAIL_COUNT && texts[reason] ? texts[reason] : "failed";
  return eyas_status_make(kind, "bytecode of '%s': the instruction at byte %u %s", function->name,
                          byte, text);
}
