// Python objects to tensors and back: NumPy through its C API, everything else through DLPack.
#ifndef EYAS_BINDINGS_TENSORS_H_
#define EYAS_BINDINGS_TENSORS_H_

#include <Python.h>

#include "bindings/dlpack.h"
#include "eyas/vm.h"

namespace eyas {

// What keeps one argument's memory valid during a call.
struct Argument {
  PyObject* object = nullptr;                // owned
  dlpack::ManagedTensor* managed = nullptr;  // owned
  alignas(16) unsigned char scalar[16];

  Argument() = default;
  Argument(const Argument&) = delete;
  Argument& operator=(const Argument&) = delete;
  ~Argument() {
    if (managed && managed->deleter) managed->deleter(managed);
    Py_XDECREF(object);
  }
};

// Loads NumPy's C API. False with a Python error set.
bool initialize_tensors();

// Reads an argument for `spec`. False with a Python error set (CallError, or what the object
// raised). Sets `is_torch` when the object is a torch tensor.
bool read_argument(PyObject* object, const eyas_tensor_spec_t& spec, uint32_t index,
                   Argument& argument, eyas_tensor_t& tensor, bool& is_torch);

// A NumPy array or a torch tensor that owns the result's memory; takes `tensor.buffer`. NULL with a
// Python error set.
PyObject* write_numpy(const eyas_tensor_t& tensor);
PyObject* write_torch(const eyas_tensor_t& tensor);

// The exceptions of eyas.errors.
extern PyObject* call_error;
extern PyObject* module_error;

}  // namespace eyas

#endif  // EYAS_BINDINGS_TENSORS_H_
