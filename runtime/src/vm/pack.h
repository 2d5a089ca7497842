// Packs buffers with known sizes and lifetimes into one arena, at run time, where sizes are
// dynamic.
//
// Largest first, each at the lowest offset where it meets no placed buffer that lives at the same
// time: the rule that Pisarchyk & Lee, "Efficient Memory Management for Deep Neural Net Inference"
// (2020), found closest to the lower bound.
#ifndef EYAS_VM_PACK_H_
#define EYAS_VM_PACK_H_

#include <stdbool.h>
#include <stdint.h>

#define EYAS_VM_PACK_ALIGNMENT 64

// `lifetimes` holds `count` closed intervals (first, last). Fills `offsets`, multiples of 64, and
// the arena's size. `scratch` has room for 2 * count. False when a size is negative or the sum
// overflows.
bool eyas_vm_pack(uint32_t count, const int64_t* sizes, const int64_t* lifetimes, int64_t* offsets,
                  int64_t* out_total, uint32_t* scratch);

#endif  // EYAS_VM_PACK_H_
