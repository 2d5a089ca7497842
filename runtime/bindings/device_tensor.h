// A tensor in the memory of a device, as Python holds it: a result that was kept, or what was put
// there.
#ifndef EYAS_BINDINGS_DEVICE_TENSOR_H_
#define EYAS_BINDINGS_DEVICE_TENSOR_H_

#include <nanobind/nanobind.h>

#include "eyas/vm.h"

namespace eyas {

struct DeviceTensor {
  eyas_tensor_t tensor;     // owns its buffer
  nanobind::object device;  // Python's

  // Takes `tensor.buffer`.
  DeviceTensor(const eyas_tensor_t& tensor, nanobind::handle device)
      : tensor(tensor), device(nanobind::borrow(device)) {}
  DeviceTensor(const DeviceTensor&) = delete;
  ~DeviceTensor() { eyas_hal_buffer_release(tensor.buffer); }
};

// NULL when the object is something else.
const DeviceTensor* as_device_tensor(PyObject* object);

// Takes `tensor.buffer`. NULL with a Python error set.
PyObject* write_device(const eyas_tensor_t& tensor, nanobind::handle device);

// A copy of an array, or of a tensor of any device, in the memory of `device`. Throws.
nanobind::object put_on_device(eyas_hal_device_t* handle, nanobind::handle device,
                               nanobind::handle value);

}  // namespace eyas

#endif  // EYAS_BINDINGS_DEVICE_TENSOR_H_
