#ifndef EYAS_BINDINGS_MODULE_H_
#define EYAS_BINDINGS_MODULE_H_

#include <nanobind/nanobind.h>

#include "eyas/module.h"

namespace eyas {

struct Module {
  Module() = default;
  ~Module() { eyas_module_release(handle); }
  Module(const Module&) = delete;

  eyas_module_t* handle = nullptr;
  nanobind::list external;  // memory of parameters that are not in the file
};

}  // namespace eyas

#endif  // EYAS_BINDINGS_MODULE_H_
