#include "bindings/results.h"

#include <cstdlib>
#include <cstring>

#include "bindings/common.h"
#include "bindings/device_tensor.h"
#include "bindings/dtypes.h"

namespace eyas {
namespace {

// Results up to this size are copied into memory of NumPy's own, which is cheaper than a capsule.
constexpr uint64_t kCopyBytes = 512;

bool failed(eyas_status_t status) {
  if (!status) return false;
  PyErr_SetString(call_error, eyas_status_message(status));
  eyas_status_free(status);
  return true;
}

bool host_sees(const eyas_hal_buffer_t* buffer) {
  return eyas_hal_buffer_memory(buffer) & EYAS_HAL_MEMORY_HOST_VISIBLE;
}

// The buffer's memory itself, which stays mapped for good.
void* map_buffer(eyas_hal_buffer_t* buffer) {
  void* data = nullptr;
  return failed(
             eyas_hal_buffer_map(buffer, eyas_hal_buffer_access(buffer), 0, EYAS_HAL_WHOLE, &data))
             ? nullptr
             : data;
}

bool read_buffer(eyas_hal_buffer_t* buffer, void* target, uint64_t bytes) {
  eyas_status_t status = nullptr;
  if (host_sees(buffer)) {
    status = eyas_hal_buffer_read(buffer, 0, target, bytes);
  } else {
    Py_BEGIN_ALLOW_THREADS;
    status = eyas_hal_buffer_read(buffer, 0, target, bytes);
    Py_END_ALLOW_THREADS;
  }
  return !failed(status);
}

// A result's elements where the host can reach them. Releases them when it goes, unless they were
// given on.
struct Memory {
  void* data = nullptr;
  void* owner = nullptr;  // a buffer, or memory of the C library
  bool is_copy = false;

  // Takes the buffer; `owner` is NULL with a Python error set when it fails.
  Memory(eyas_hal_buffer_t* buffer, uint64_t bytes) : is_copy(!host_sees(buffer)) {
    if (!is_copy) {
      owner = buffer;
      data = map_buffer(buffer);
      if (PyErr_Occurred()) release();
      return;
    }
    if (posix_memalign(&data, EYAS_HAL_BUFFER_ALIGNMENT, bytes ? bytes : 1) == 0) {
      owner = data;
      if (!read_buffer(buffer, data, bytes)) release();
    } else {
      PyErr_NoMemory();
    }
    eyas_hal_buffer_release(buffer);
  }
  Memory(const Memory&) = delete;
  Memory(Memory&& other) : data(other.data), owner(other.owner), is_copy(other.is_copy) {
    other.owner = nullptr;
  }
  ~Memory() { release(); }

  void release() {
    if (is_copy) {
      free(owner);
    } else {
      eyas_hal_buffer_release((eyas_hal_buffer_t*)owner);
    }
    owner = nullptr;
  }
};

void release_capsule(PyObject* capsule) {
  delete (Memory*)PyCapsule_GetPointer(capsule, "eyas_memory");
}

PyObject* numpy_of_own_memory(const eyas_tensor_t& tensor, PyArray_Descr* descr, npy_intp* dims,
                              uint64_t bytes) {
  PyObject* array = PyArray_NewFromDescr(&PyArray_Type, descr, (int)tensor.rank, dims, nullptr,
                                         nullptr, 0, nullptr);
  if (array && bytes && !read_buffer(tensor.buffer, PyArray_DATA((PyArrayObject*)array), bytes))
    Py_CLEAR(array);
  eyas_hal_buffer_release(tensor.buffer);
  return array;
}

}  // namespace

uint64_t tensor_bytes(const eyas_tensor_t& tensor) {
  uint64_t bytes = eyas_dtype_bytes(tensor.dtype);
  for (uint32_t i = 0; i < tensor.rank; ++i) bytes *= (uint64_t)tensor.dims[i];
  return bytes;
}

PyObject* write_numpy(const eyas_tensor_t& tensor) {
  PyArray_Descr* descr = numpy_of_dtype(tensor.dtype);
  if (!descr) {
    eyas_hal_buffer_release(tensor.buffer);
    return nullptr;
  }
  const uint64_t bytes = tensor_bytes(tensor);
  npy_intp dims[EYAS_MAX_RANK];
  for (uint32_t i = 0; i < tensor.rank; ++i) dims[i] = (npy_intp)tensor.dims[i];
  if (bytes <= kCopyBytes || !host_sees(tensor.buffer))
    return numpy_of_own_memory(tensor, descr, dims, bytes);
  Memory memory(tensor.buffer, bytes);
  void* data = memory.data;
  PyObject* capsule = nullptr;
  if (memory.owner) {
    auto* kept = new Memory(std::move(memory));
    capsule = PyCapsule_New(kept, "eyas_memory", release_capsule);
    if (!capsule) delete kept;
  }
  if (!capsule) {
    Py_DECREF(descr);
    return nullptr;
  }
  PyObject* array = PyArray_NewFromDescr(&PyArray_Type, descr, (int)tensor.rank, dims, nullptr,
                                         data, NPY_ARRAY_CARRAY, nullptr);
  if (!array || PyArray_SetBaseObject((PyArrayObject*)array, capsule) != 0) {  // steals the capsule
    if (!array) Py_DECREF(capsule);
    Py_XDECREF(array);
    return nullptr;
  }
  return array;
}

PyObject* write_dlpack(const eyas_tensor_t& tensor) {
  struct Result {
    dlpack::ManagedTensor managed;
    int64_t dims[EYAS_MAX_RANK];
    int64_t strides[EYAS_MAX_RANK];
    Memory memory;
    explicit Result(Memory&& memory) : managed(), dims(), strides(), memory(std::move(memory)) {}
  };
  Memory memory(tensor.buffer, tensor_bytes(tensor));
  if (!memory.owner) return nullptr;
  auto* result = new Result(std::move(memory));
  int64_t stride = 1;
  for (uint32_t i = tensor.rank; i-- > 0;) {
    result->dims[i] = tensor.dims[i];
    result->strides[i] = stride;
    stride *= tensor.dims[i] > 0 ? tensor.dims[i] : 1;
  }
  result->managed.tensor = {
      result->memory.data, dlpack::kCpu,    0, (int32_t)tensor.rank, dlpack_of_dtype(tensor.dtype),
      result->dims,        result->strides, 0};
  result->managed.deleter = [](dlpack::ManagedTensor* self) { delete (Result*)(void*)self; };
  PyObject* capsule = PyCapsule_New(&result->managed, "dltensor", [](PyObject* self) {
    if (!PyCapsule_IsValid(self, "dltensor")) return;  // somebody took it
    auto* managed = (dlpack::ManagedTensor*)PyCapsule_GetPointer(self, "dltensor");
    managed->deleter(managed);
  });
  if (!capsule) result->managed.deleter(&result->managed);
  return capsule;
}

PyObject* write_torch(const eyas_tensor_t& tensor) {
  if (!find_torch()) {
    eyas_hal_buffer_release(tensor.buffer);
    PyErr_SetString(usage_error, "torch is not loaded: import torch first");
    return nullptr;
  }
  PyObject* capsule = write_dlpack(tensor);
  if (!capsule) return nullptr;
  PyObject* object = PyObject_CallOneArg(torch_from_dlpack, capsule);
  Py_DECREF(capsule);
  return object;
}

PyObject* write_result(const eyas_tensor_t& tensor, Form form, nb::handle device) {
  switch (form) {
    case Form::kNumpy: return write_numpy(tensor);
    case Form::kTorch: return write_torch(tensor);
    case Form::kDevice: return write_device(tensor, device);
  }
  return nullptr;
}

}  // namespace eyas
