// eyas.runtime._core: modules, devices and calls for Python. The Python face is src/eyas/runtime.
#define EYAS_IMPORTS_NUMPY
#include "bindings/arguments.h"
#include "bindings/common.h"
#include "bindings/numpy.h"

namespace eyas {

PyObject* call_error = nullptr;
PyObject* incompatible_error = nullptr;
PyObject* module_error = nullptr;
PyObject* usage_error = nullptr;

}  // namespace eyas

NB_MODULE(_core, m) {
  using namespace eyas;
  nb::set_leak_warnings(false);  // modules may live in globals until the process ends
  nb::module_ errors = nb::module_::import_("eyas.errors");
  call_error = nb::object(errors.attr("CallError")).release().ptr();
  incompatible_error = nb::object(errors.attr("IncompatibleError")).release().ptr();
  module_error = nb::object(errors.attr("ModuleError")).release().ptr();
  usage_error = nb::object(errors.attr("UsageError")).release().ptr();
  if (_import_array() < 0 || !initialize_arguments()) throw nb::python_error();
  define_device(m);
  define_device_tensor(m);
  define_module(m);
  define_context(m);
}
