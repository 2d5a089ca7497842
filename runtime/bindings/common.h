// What the files of the bindings share: errors, and texts from files.
#ifndef EYAS_BINDINGS_COMMON_H_
#define EYAS_BINDINGS_COMMON_H_

#include <nanobind/nanobind.h>

#include <cstring>

#include "eyas/status.h"

namespace eyas {

namespace nb = nanobind;

// The exceptions of eyas.errors.
extern PyObject* call_error;
extern PyObject* incompatible_error;  // a ModuleError
extern PyObject* module_error;
extern PyObject* usage_error;

// Raises what a status says.
inline void check(eyas_status_t status, PyObject* type) {
  if (!status) return;
  if (type == module_error && eyas_status_code(status) == EYAS_STATUS_INCOMPATIBLE) {
    type = incompatible_error;
  }
  PyErr_SetString(type, eyas_status_message(status));
  eyas_status_free(status);
  throw nb::python_error();
}

// Runs something that may take a while, and needs nothing of Python, while other threads run.
template <typename Work>
inline void check_unlocked(Work work, PyObject* type) {
  eyas_status_t status = nullptr;
  {
    nb::gil_scoped_release unlocked;
    status = work();
  }
  check(status, type);
}

// Names come from files: bytes that are not UTF-8 must not raise.
inline nb::object text(const char* data, size_t length) {
  return nb::steal(PyUnicode_DecodeUTF8(data, (Py_ssize_t)length, "replace"));
}
inline nb::object text(const char* data) {
  return text(data, strlen(data));
}

// A new reference that may be NULL, with a Python error set.
inline nb::object owned(PyObject* object) {
  if (!object) throw nb::python_error();
  return nb::steal(object);
}

// Each adds its classes to the module.
void define_device(nb::module_& m);
void define_device_tensor(nb::module_& m);
void define_module(nb::module_& m);
void define_context(nb::module_& m);

}  // namespace eyas

#endif  // EYAS_BINDINGS_COMMON_H_
