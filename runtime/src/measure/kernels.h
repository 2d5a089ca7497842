// Kernels that do nothing but multiply and add, or read. See eyas/measure.h.
#ifndef EYAS_MEASURE_KERNELS_H_
#define EYAS_MEASURE_KERNELS_H_

#include <stddef.h>
#include <stdint.h>

// The widest that this processor has. The result depends on all of the work, so that none can be
// left out.
typedef struct eyas_measure_kernels_t {
  float (*fma)(uint64_t rounds);
  uint64_t (*read)(const void* data,
                   size_t bytes);  // `bytes` is a multiple of EYAS_MEASURE_READ_STEP
  uint64_t flops_per_round;
} eyas_measure_kernels_t;

#define EYAS_MEASURE_READ_STEP 512u

eyas_measure_kernels_t eyas_measure_kernels(void);

#endif  // EYAS_MEASURE_KERNELS_H_
