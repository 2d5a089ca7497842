// The insides of a module, for the VM.
#ifndef EYAS_MODULE_MODULE_H_
#define EYAS_MODULE_MODULE_H_

#include "base/ref.h"
#include "module/container.h"
#include "module/program.h"
#include "module/variants.h"

struct eyas_module_t {
  eyas_ref_t ref;
  eyas_container_t container;
  eyas_variants_t variants;  // empty unless the module is a fat one
  uint32_t variant;          // which of them is open
  char folder[256];          // of the program's entries: "" or "variants/NAME/"
  eyas_program_t program;
  const eyas_entry_t* manifest;
  const eyas_entry_t* parameters;    // NULL when the module has none of its own
  const eyas_entry_t** executables;  // one per executable of the program
  const uint8_t** parameter_data;    // one per parameter; NULL: external and not bound yet
  void (*release)(void* user);
  void* user;
};

#endif  // EYAS_MODULE_MODULE_H_
