// An executable image linked by the C compiler instead of eyas: constants, a table of function
// pointers, data, bss, calls between functions, imports. See run.sh for how it is built.
#include "eyas/executable.h"

float expf(float);
void* memcpy(void*, const void*, unsigned long);
void* malloc(unsigned long);
void free(void*);

static float twice(float x) {
  return 2 * x;
}

static float half(float x) {
  return x / 2;
}

static float (*const operations[])(float) = {twice, half, expf};  // relocations
static float bias[2] = {0.25f, 0.5f};
static int32_t calls[4];  // bss

// binding 1 = operations[constant 0](binding 0) + bias, 4 floats
void apply(const eyas_dispatch_t* dispatch, const eyas_workgroup_t* workgroup) {
  const float* source = dispatch->bindings[0];
  float* target = dispatch->bindings[1];
  uint32_t i = workgroup->id[0];
  target[i] = operations[dispatch->constants[0]](source[i]) + bias[i % 2];
  calls[i] += 1;
  if (calls[i] <= 0) eyas_dispatch_report(dispatch, EYAS_ERROR_FIRST_OTHER);
}

// Copies binding 0 to binding 1 by way of the heap.
void copy(const eyas_dispatch_t* dispatch, const eyas_workgroup_t* workgroup) {
  (void)workgroup;
  void* between = malloc(dispatch->binding_bytes[0]);
  if (!between) {
    eyas_dispatch_report(dispatch, EYAS_ERROR_FIRST_OTHER);
    return;
  }
  memcpy(between, dispatch->bindings[0], dispatch->binding_bytes[0]);
  memcpy(dispatch->bindings[1], between, dispatch->binding_bytes[0]);
  free(between);
}
