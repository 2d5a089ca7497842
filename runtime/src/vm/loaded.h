// The insides of a module on a device, for the VM.
#ifndef EYAS_VM_LOADED_H_
#define EYAS_VM_LOADED_H_

#include "base/ref.h"
#include "eyas/vm.h"
#include "module/module.h"

struct eyas_loaded_module_t {
  eyas_ref_t ref;
  eyas_module_t* module;
  eyas_hal_device_t* device;
  eyas_hal_device_info_t info;
  eyas_hal_executable_t** executables;  // by ordinal in the program
  eyas_hal_buffer_t** parameters;       // read-only, by ordinal in the program
};

#endif  // EYAS_VM_LOADED_H_
