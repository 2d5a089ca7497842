// What the machine uses on this CPU: which microkernels, and how many unit tiles an instruction
// issues. Decided once a process.
#ifndef EYAS_VMVX_SETTINGS_H_
#define EYAS_VMVX_SETTINGS_H_

#include "eyas/status.h"
#include "ukernel/ukernel.h"

typedef struct eyas_vmvx_settings_t {
  const eyas_uk_elements_t* elements;
  const eyas_uk_products_t* products;
  unsigned width;
} eyas_vmvx_settings_t;

// Reads EYAS_VMVX_WIDTH and EYAS_VMVX_KERNELS; a value that is not allowed is an error each time.
eyas_status_t eyas_vmvx_settings(eyas_vmvx_settings_t* out_settings);

#endif  // EYAS_VMVX_SETTINGS_H_
