// How fast a device can be at best: what `eyas explain` compares dispatches with.
//
// Measured by kernels of the runtime's own on the device's workers, so that the numbers hold for as
// many cores as it uses. Local drivers only.
#ifndef EYAS_MEASURE_H_
#define EYAS_MEASURE_H_

#include "eyas/hal.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

// f32 multiply-adds in registers, two operations each, of all workers together. The best of several
// tries within `milliseconds`.
eyas_status_t eyas_measure_fma(eyas_hal_device_t* device, uint32_t milliseconds,
                               double* out_flops_per_s);

// Reads of all workers together. With `shared` they read one buffer of `bytes`, each another part;
// else each reads a buffer of its own again and again, which finds it in a cache that holds
// `bytes`.
eyas_status_t eyas_measure_read(eyas_hal_device_t* device, uint64_t bytes, bool shared,
                                uint32_t milliseconds, double* out_bytes_per_s);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif  // EYAS_MEASURE_H_
