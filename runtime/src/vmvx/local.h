// Local memory of a workgroup, and instructions that move bytes.
#ifndef EYAS_VMVX_LOCAL_H_
#define EYAS_VMVX_LOCAL_H_

#include "vmvx/function.h"

int eyas_vmvx_local_take(eyas_vmvx_frame_t* f, int64_t bytes, uint64_t* budget,
                         int64_t* out_address);
// Gives memory back: nothing can reach it any more, and it is used again when all that was taken
// after it has been given back too.
void eyas_vmvx_local_release(eyas_vmvx_frame_t* f, int64_t address);
// Gives back all.
void eyas_vmvx_local_reset(eyas_vmvx_frame_t* f);

int eyas_vmvx_copy(eyas_vmvx_frame_t* f, int64_t target, int64_t source, int64_t bytes,
                   uint64_t* budget);
int eyas_vmvx_fill(eyas_vmvx_frame_t* f, int64_t target, int64_t value, int64_t count,
                   unsigned memory, uint64_t* budget);
void eyas_vmvx_prefetch(const eyas_vmvx_frame_t* f, uint64_t address, int64_t bytes);

#endif  // EYAS_VMVX_LOCAL_H_
