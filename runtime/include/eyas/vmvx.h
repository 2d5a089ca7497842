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

// EYAS_VMVX_KERNELS and EYAS_VMVX_WIDTH override what fits the CPU; a value that is not allowed is
// an error here and when an executable is loaded.
eyas_status_t eyas_vmvx_info(eyas_vmvx_info_t* out_info);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif  // EYAS_VMVX_H_
