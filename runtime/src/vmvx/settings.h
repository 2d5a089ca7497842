// What a device runs bytecode with: which microkernels, and how many unit tiles an instruction
// issues. Code is decoded for them.
#ifndef EYAS_VMVX_SETTINGS_H_
#define EYAS_VMVX_SETTINGS_H_

#include "eyas/status.h"
#include "ukernel/ukernel.h"
#include "vmvx/vmvx.h"

struct eyas_vmvx_settings_t {
  const eyas_uk_elements_t* elements;
  const eyas_uk_products_t* products;
  unsigned width;
};

#endif  // EYAS_VMVX_SETTINGS_H_
