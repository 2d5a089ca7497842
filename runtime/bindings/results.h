// Tensors to Python objects.
#ifndef EYAS_BINDINGS_RESULTS_H_
#define EYAS_BINDINGS_RESULTS_H_

#include <nanobind/nanobind.h>

#include "bindings/arguments.h"
#include "bindings/dlpack.h"

namespace eyas {

// A NumPy array or a torch tensor. It has the result's own memory where the host sees that, and a
// copy otherwise. These take `tensor.buffer`; NULL with a Python error set.
PyObject* write_numpy(const eyas_tensor_t& tensor);
PyObject* write_torch(const eyas_tensor_t& tensor);

// A DLPack capsule of the same.
PyObject* write_dlpack(const eyas_tensor_t& tensor);

// The result of a call on `device` in any form.
PyObject* write_result(const eyas_tensor_t& tensor, Form form, nanobind::handle device);

// Elements times bytes of each.
uint64_t tensor_bytes(const eyas_tensor_t& tensor);

}  // namespace eyas

#endif  // EYAS_BINDINGS_RESULTS_H_
