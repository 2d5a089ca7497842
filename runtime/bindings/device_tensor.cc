#include "bindings/device_tensor.h"

#include <vector>

#include "bindings/common.h"
#include "bindings/dtypes.h"
#include "bindings/results.h"

namespace eyas {
namespace {

PyTypeObject* device_tensor_type = nullptr;

// The tensor with a reference of its own, for those who take one.
eyas_tensor_t shared(const DeviceTensor& self) {
  eyas_tensor_t tensor = self.tensor;
  eyas_hal_buffer_retain(tensor.buffer);
  return tensor;
}

nb::tuple shape(const DeviceTensor& self) {
  nb::list dims;
  for (uint32_t i = 0; i < self.tensor.rank; ++i) dims.append(self.tensor.dims[i]);
  return nb::tuple(dims);
}

nb::object dtype(const DeviceTensor& self) {
  return owned((PyObject*)numpy_of_dtype(self.tensor.dtype));
}

// Read-only, whether it is a view or a copy: what is on the device does not change under anybody's
// feet.
nb::object to_numpy(const DeviceTensor& self) {
  nb::object array = owned(write_numpy(shared(self)));
  PyArray_CLEARFLAGS((PyArrayObject*)array.ptr(), NPY_ARRAY_WRITEABLE);
  return array;
}

nb::object to_torch(const DeviceTensor& self) {
  nb::module_::import_("torch");
  return owned(write_torch(shared(self)));
}

nb::object to_array(const DeviceTensor& self, nb::object dtype, nb::object copy) {
  nb::object array = to_numpy(self);
  if (!dtype.is_none()) array = array.attr("astype")(dtype, nb::arg("copy") = false);
  return nb::cast<bool>(nb::bool_(copy)) ? nb::object(array.attr("copy")()) : array;
}

void check_visible(const DeviceTensor& self) {
  if (eyas_hal_buffer_memory(self.tensor.buffer) & EYAS_HAL_MEMORY_HOST_VISIBLE) return;
  throw nb::buffer_error(
      "the host does not see the memory of this tensor; .numpy() or .torch() copies it");
}

nb::object to_dlpack(const DeviceTensor& self, const nb::kwargs&) {
  check_visible(self);
  return owned(write_dlpack(shared(self)));
}

nb::tuple dlpack_device(const DeviceTensor& self) {
  check_visible(self);
  return nb::make_tuple(dlpack::kCpu, 0);
}

}  // namespace

const DeviceTensor* as_device_tensor(PyObject* object) {
  return Py_TYPE(object) == device_tensor_type ? nb::inst_ptr<DeviceTensor>(object) : nullptr;
}

PyObject* write_device(const eyas_tensor_t& tensor, nb::handle device) {
  try {
    return nb::cast(new DeviceTensor(tensor, device), nb::rv_policy::take_ownership)
        .release()
        .ptr();
  } catch (nb::python_error& error) {
    error.restore();
    return nullptr;
  }
}

nb::object put_on_device(eyas_hal_device_t* handle, nb::handle device, nb::handle value) {
  const eyas_tensor_spec_t any = {"value", 0, 0, nullptr};
  Argument argument;
  eyas_tensor_t tensor = {};
  Form form = Form::kNumpy;
  if (!read_argument(value.ptr(), any, 0, argument, tensor, form)) throw nb::python_error();
  const uint64_t bytes = tensor_bytes(tensor);
  eyas_hal_buffer_t* source = tensor.buffer;  // the argument holds it
  const void* data = tensor.data;
  tensor.buffer = nullptr;
  tensor.data = nullptr;
  check_unlocked(
      [&]() -> eyas_status_t {
        std::vector<char> copy;
        if (source) {
          copy.resize(bytes);
          EYAS_RETURN_IF_ERROR(eyas_hal_buffer_read(source, 0, copy.data(), bytes));
          data = copy.data();
        }
        const uint32_t usage = EYAS_HAL_USAGE_DISPATCH | EYAS_HAL_USAGE_TRANSFER;
        eyas_hal_device_info_t info;
        eyas_hal_device_info(handle, &info);
        EYAS_RETURN_IF_ERROR(eyas_hal_buffer_allocate(
            handle, EYAS_HAL_MEMORY_DEVICE_LOCAL,
            info.host_visible ? (uint32_t)EYAS_HAL_USAGE_ALL : usage, bytes, &tensor.buffer));
        eyas_status_t status = eyas_hal_buffer_write(tensor.buffer, 0, data, bytes);
        if (status) eyas_hal_buffer_release(tensor.buffer);
        return status;
      },
      call_error);
  return owned(write_device(tensor, device));
}

void define_device_tensor(nb::module_& m) {
  nb::class_<DeviceTensor> cls(
      m, "DeviceTensor", nb::is_final(),
      "A tensor in the memory of a device: a result that stays there, and an argument.");
  cls.def_prop_ro("shape", shape)
      .def_prop_ro("dtype", dtype)
      .def_prop_ro("ndim", [](const DeviceTensor& self) { return self.tensor.rank; })
      .def_prop_ro("nbytes", [](const DeviceTensor& self) { return tensor_bytes(self.tensor); })
      .def_ro("device", &DeviceTensor::device)
      .def("numpy", to_numpy,
           "The elements as a read-only array: a view where the host sees them, else a copy.")
      .def("torch", to_torch, "The elements as a torch tensor, which must not be written to.")
      .def("__array__", to_array, nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none())
      .def("__dlpack__", to_dlpack)
      .def("__dlpack_device__", dlpack_device);
  device_tensor_type = (PyTypeObject*)cls.ptr();
}

}  // namespace eyas
