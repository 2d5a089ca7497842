// Python objects to tensors: NumPy through its C API, tensors of devices as they are, everything
// else through DLPack.
#ifndef EYAS_BINDINGS_ARGUMENTS_H_
#define EYAS_BINDINGS_ARGUMENTS_H_

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

// What results come as: what went in, and of a mixture the last of these.
enum class Form { kNumpy, kTorch, kDevice };

// False with a Python error set.
bool initialize_arguments();

// Reads an argument for `spec`, and raises `form` to its own. False with a Python error set
// (CallError, or what the object raised).
bool read_argument(PyObject* object, const eyas_tensor_spec_t& spec, uint32_t index,
                   Argument& argument, eyas_tensor_t& tensor, Form& form);

// Whether torch is loaded; it is never imported by us, as its module is there when a tensor exists.
bool find_torch();
extern PyObject* torch_from_dlpack;  // its function, once it was found

}  // namespace eyas

#endif  // EYAS_BINDINGS_ARGUMENTS_H_
