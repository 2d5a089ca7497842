// What runs bytecode (executables of format `vmvx`) on this CPU.
#ifndef EYAS_VMVX_H_
#define EYAS_VMVX_H_

#include "eyas/status.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct eyas_vmvx_info_t {
  const char* kernels;  // the set of microkernels: "portable", "avx512"; static
  unsigned width;       // unit tiles that one instruction issues: 1, 2, 4 or 8
} eyas_vmvx_info_t;

// What a device with these options (vmvx_kernels, vmvx_width) runs bytecode with; NULL and 0 are
// what fits the CPU. Values that are not allowed are an error here and when the device is made.
eyas_status_t eyas_vmvx_info(const char* kernels, unsigned width, eyas_vmvx_info_t* out_info);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif  // EYAS_VMVX_H_
