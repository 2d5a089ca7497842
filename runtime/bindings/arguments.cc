#include "bindings/arguments.h"

#include <cmath>
#include <cstring>

#include "bindings/common.h"
#include "bindings/device_tensor.h"
#include "bindings/dtypes.h"

namespace eyas {

PyObject* torch_from_dlpack = nullptr;

namespace {

PyObject* dlpack_name = nullptr;  // "__dlpack__"

// Resolved when the first torch tensor comes by; never imported by us before that.
PyTypeObject* torch_tensor_type = nullptr;
PyObject* torch_to_dlpack = nullptr;

bool wrong(const eyas_tensor_spec_t& spec, uint32_t index, const char* format, PyObject* object) {
  PyObject* detail = PyUnicode_FromFormat(format, object);
  if (detail) {
    PyErr_Format(call_error, "argument %u '%s': %U", index, spec.name, detail);
    Py_DECREF(detail);
  }
  return false;
}

// What the bytes of an argument count as: raw bytes may stand for any type of one byte that has no
// type of its own.
uint32_t count_as(uint32_t dtype, const eyas_tensor_spec_t& spec) {
  const bool raw = dtype == EYAS_DTYPE_U8 || dtype == EYAS_DTYPE_I8;
  return raw && spec.dtype >= EYAS_DTYPE_F8E4M3FN ? spec.dtype : dtype;
}

bool read_numpy(PyArrayObject* array, const eyas_tensor_spec_t& spec, uint32_t index,
                Argument& argument, eyas_tensor_t& tensor) {
  PyArray_Descr* descr = PyArray_DESCR(array);
  const uint32_t dtype = dtype_of_numpy(descr);
  if (!dtype) {
    return wrong(spec, index, "an array of %R cannot be passed; convert it with .astype",
                 (PyObject*)descr);
  }
  int rank = PyArray_NDIM(array);
  if (rank > EYAS_MAX_RANK)
    return wrong(spec, index, "an array of %R has too many dimensions", (PyObject*)descr);
  const bool swapped = !PyArray_ISNOTSWAPPED(array);
  if (swapped || !PyArray_IS_C_CONTIGUOUS(array) || !PyArray_ISALIGNED(array)) {
    PyArray_Descr* native = descr;
    if (swapped) {
      native = PyArray_DescrNewByteorder(descr, NPY_NATIVE);
      if (!native) return false;
    } else {
      Py_INCREF(native);
    }
    argument.object = PyArray_FromArray(
        array, native, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | NPY_ARRAY_NOTSWAPPED);
    if (!argument.object) return false;
    array = (PyArrayObject*)argument.object;
  } else {
    Py_INCREF(array);
    argument.object = (PyObject*)array;
  }
  tensor.data = PyArray_DATA(array);
  tensor.dtype = count_as(dtype, spec);
  tensor.rank = (uint32_t)rank;
  for (int i = 0; i < rank; ++i) tensor.dims[i] = PyArray_DIM(array, i);
  return true;
}

void store_bfloat16(double value, unsigned char* out) {
  float single = (float)value;
  uint32_t bits;
  memcpy(&bits, &single, 4);
  if (std::isnan(single)) {
    bits |= 0x00400000u;
  } else {
    bits += 0x7FFFu + ((bits >> 16) & 1);  // to nearest, ties to even
  }
  uint16_t top = (uint16_t)(bits >> 16);
  memcpy(out, &top, 2);
}

// A Python number for a tensor without dimensions.
bool read_scalar(PyObject* object, const eyas_tensor_spec_t& spec, uint32_t index,
                 Argument& argument, eyas_tensor_t& tensor) {
  unsigned char* out = argument.scalar;
  tensor.data = out;
  tensor.dtype = spec.dtype;
  tensor.rank = 0;
  switch (spec.dtype) {
    case EYAS_DTYPE_F64:
    case EYAS_DTYPE_F32:
    case EYAS_DTYPE_F16:
    case EYAS_DTYPE_BF16: {
      if (PyComplex_Check(object))
        return wrong(spec, index, "the complex number %R does not fit a real tensor", object);
      double value = PyFloat_AsDouble(object);
      if (value == -1.0 && PyErr_Occurred()) return false;
      if (spec.dtype == EYAS_DTYPE_F64) {
        memcpy(out, &value, 8);
      } else if (spec.dtype == EYAS_DTYPE_F32) {
        float single = (float)value;
        memcpy(out, &single, 4);
      } else if (spec.dtype == EYAS_DTYPE_BF16) {
        store_bfloat16(value, out);
      } else if (PyFloat_Pack2(value, (char*)out, 1) != 0) {
        PyErr_Clear();
        return wrong(spec, index, "%R does not fit f16", object);
      }
      return true;
    }
    case EYAS_DTYPE_C64:
    case EYAS_DTYPE_C128: {
      Py_complex value = PyComplex_AsCComplex(object);
      if (PyErr_Occurred()) return false;
      if (spec.dtype == EYAS_DTYPE_C128) {
        memcpy(out, &value, 16);
      } else {
        float parts[2] = {(float)value.real, (float)value.imag};
        memcpy(out, parts, 8);
      }
      return true;
    }
    case EYAS_DTYPE_I1:
      if (!PyBool_Check(object)) return wrong(spec, index, "%R is not a bool", object);
      out[0] = object == Py_True;
      return true;
    case EYAS_DTYPE_F8E4M3FN:
    case EYAS_DTYPE_F8E4M3FNUZ:
    case EYAS_DTYPE_F8E5M2:
    case EYAS_DTYPE_F8E5M2FNUZ:
    case EYAS_DTYPE_F8E8M0:
    case EYAS_DTYPE_F4E2M1:
      return wrong(spec, index,
                   "%R has to be an array of the argument's type, for example of ml_dtypes",
                   object);
    default: {
      if (!PyLong_Check(object)) return wrong(spec, index, "%R is not an integer", object);
      const uint32_t bits = bits_of_dtype(spec.dtype);
      const bool is_signed = spec.dtype == EYAS_DTYPE_I8 || spec.dtype == EYAS_DTYPE_I16 ||
                             spec.dtype == EYAS_DTYPE_I32 || spec.dtype == EYAS_DTYPE_I64 ||
                             spec.dtype == EYAS_DTYPE_I4 || spec.dtype == EYAS_DTYPE_I2;
      bool fits = true;
      uint64_t value = 0;
      if (is_signed) {
        int overflow = 0;
        long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
        value = (uint64_t)number;
        fits = !overflow &&
               (bits == 64 || (number >= -(1ll << (bits - 1)) && number < (1ll << (bits - 1))));
      } else {
        value = PyLong_AsUnsignedLongLong(object);
        fits = !PyErr_Occurred() && (bits == 64 || value < (1ull << bits));
        PyErr_Clear();
      }
      if (!fits)
        return wrong(spec, index, "%R is outside the range of the argument's type", object);
      if (bits < 8) value &= (1u << bits) - 1;
      memcpy(out, &value, bits < 8 ? 1 : bits / 8);  // little-endian
      return true;
    }
  }
}

bool is_row_major(const dlpack::Tensor& t) {
  if (!t.strides) return true;
  for (int i = 0; i < t.ndim; ++i) {
    if (t.shape[i] == 0) return true;  // no elements; torch keeps any strides then
  }
  int64_t expected = 1;
  for (int i = t.ndim - 1; i >= 0; --i) {
    if (t.shape[i] != 1 && t.strides[i] != expected) return false;
    expected *= t.shape[i];
  }
  return true;
}

bool is_torch_tensor(PyObject* object) {
  return find_torch() && PyObject_TypeCheck(object, torch_tensor_type);
}

// What a framework says of a tensor that it cannot hand out: a sparse one, one without values, one
// that needs a gradient.
bool unreadable(PyObject* object, const eyas_tensor_spec_t& spec, uint32_t index) {
  PyObject *type = nullptr, *reason = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &reason, &trace);
  PyErr_Format(
      call_error,
      "argument %u '%s': this tensor (%R) cannot be read: %S; pass a dense one with values "
      "in CPU memory, such as x.to_dense() or x.detach().cpu()",
      index, spec.name, (PyObject*)Py_TYPE(object), reason ? reason : type);
  Py_XDECREF(type);
  Py_XDECREF(reason);
  Py_XDECREF(trace);
  return false;
}

bool read_dlpack(PyObject* object, const eyas_tensor_spec_t& spec, uint32_t index,
                 Argument& argument, eyas_tensor_t& tensor, bool is_torch, bool retry) {
  PyObject* capsule = is_torch ? PyObject_CallOneArg(torch_to_dlpack, object)
                               : PyObject_CallMethodNoArgs(object, dlpack_name);
  if (!capsule) return unreadable(object, spec, index);
  auto* managed = (dlpack::ManagedTensor*)PyCapsule_GetPointer(capsule, "dltensor");
  if (!managed || PyCapsule_SetName(capsule, "used_dltensor") != 0) {
    Py_DECREF(capsule);
    return false;
  }
  Py_DECREF(capsule);
  argument.managed = managed;
  const dlpack::Tensor& t = managed->tensor;
  PyObject* type = (PyObject*)Py_TYPE(object);
  if (t.device_type != dlpack::kCpu) {
    return wrong(
        spec, index,
        "the tensor (%R) is not in CPU memory; move it there first, for example with .cpu()", type);
  }
  uint32_t dtype = dtype_of_dlpack(t.dtype);
  if (!dtype)
    return wrong(spec, index, "the element type of this tensor (%R) is not one that modules take",
                 type);
  if (t.ndim > EYAS_MAX_RANK)
    return wrong(spec, index, "this tensor (%R) has too many dimensions", type);
  uintptr_t data = (uintptr_t)t.data + t.byte_offset;
  uint32_t element = eyas_dtype_bytes(dtype);
  if (!is_row_major(t) || data % (element < 8 ? element : 8) != 0) {
    managed->deleter(managed);
    argument.managed = nullptr;
    if (retry)
      return wrong(spec, index, "this tensor (%R) cannot be brought into row-major order", type);
    PyObject* copy = nullptr;
    if (is_torch) {
      copy = PyObject_CallMethod(object, "contiguous", nullptr);
    } else {
      PyObject* numpy = PyImport_ImportModule("numpy");
      PyObject* view = numpy ? PyObject_CallMethod(numpy, "from_dlpack", "O", object) : nullptr;
      copy = view ? PyArray_FROM_OF(view, NPY_ARRAY_CARRAY_RO) : nullptr;
      Py_XDECREF(view);
      Py_XDECREF(numpy);
    }
    if (!copy) return false;
    bool good = is_torch ? read_dlpack(copy, spec, index, argument, tensor, true, true)
                         : read_numpy((PyArrayObject*)copy, spec, index, argument, tensor);
    Py_DECREF(copy);  // the managed tensor, or argument.object, holds it
    return good;
  }
  tensor.data = (const void*)data;
  tensor.dtype = count_as(dtype, spec);
  tensor.rank = (uint32_t)t.ndim;
  for (int i = 0; i < t.ndim; ++i) tensor.dims[i] = t.shape[i];
  return true;
}

}  // namespace

bool find_torch() {
  if (torch_tensor_type) return true;
  PyObject* torch = PyDict_GetItemString(PyImport_GetModuleDict(), "torch");
  if (!torch) return false;
  PyObject* type = PyObject_GetAttrString(torch, "Tensor");
  PyObject* to = PyObject_GetAttrString(torch, "to_dlpack");
  PyObject* from = PyObject_GetAttrString(torch, "from_dlpack");
  PyObject* ours = PyObject_GetAttrString(torch, "_C");
  PyObject* direct = ours ? PyObject_GetAttrString(ours, "_from_dlpack") : nullptr;
  PyErr_Clear();  // a torch that is still being imported lacks some
  Py_XDECREF(ours);
  if (direct) {  // takes a capsule without the detour through Python code
    Py_XDECREF(from);
    from = direct;
  }
  if (!type || !to || !from || !PyType_Check(type)) {
    Py_XDECREF(type);
    Py_XDECREF(to);
    Py_XDECREF(from);
    return false;
  }
  torch_tensor_type = (PyTypeObject*)type;
  torch_to_dlpack = to;
  torch_from_dlpack = from;
  return true;
}

bool initialize_arguments() {
  dlpack_name = PyUnicode_InternFromString("__dlpack__");
  return dlpack_name != nullptr;
}

bool read_argument(PyObject* object, const eyas_tensor_spec_t& spec, uint32_t index,
                   Argument& argument, eyas_tensor_t& tensor, Form& form) {
  tensor.buffer = nullptr;
  if (PyArray_Check(object))
    return read_numpy((PyArrayObject*)object, spec, index, argument, tensor);
  if (const DeviceTensor* kept = as_device_tensor(object)) {
    form = Form::kDevice;
    argument.object = Py_NewRef(object);
    tensor = kept->tensor;
    tensor.dtype = count_as(tensor.dtype, spec);
    return true;
  }
  if (PyArray_IsScalar(object, Generic)) {
    PyObject* array = PyArray_FromScalar(object, nullptr);
    if (!array) return false;
    bool good = read_numpy((PyArrayObject*)array, spec, index, argument, tensor);
    Py_DECREF(array);
    return good;
  }
  if (PyFloat_Check(object) || PyLong_Check(object) || PyComplex_Check(object)) {
    if (spec.rank == 0) return read_scalar(object, spec, index, argument, tensor);
    return wrong(spec, index, "the number %R is not an array; this argument has dimensions",
                 object);
  }
  if (is_torch_tensor(object)) {
    if (form < Form::kTorch) form = Form::kTorch;
    return read_dlpack(object, spec, index, argument, tensor, true, false);
  }
  if (PyObject_HasAttr(object, dlpack_name)) {
    if (spec.dtype >= EYAS_DTYPE_F4E2M1) {  // DLPack packs these; NumPy gives each a byte
      PyObject* array = PyArray_FROM_O(object);
      if (!array) return false;
      bool good = read_numpy((PyArrayObject*)array, spec, index, argument, tensor);
      Py_DECREF(array);
      return good;
    }
    return read_dlpack(object, spec, index, argument, tensor, false, false);
  }
  return wrong(spec, index, "expected an array (NumPy, torch, or anything with __dlpack__), got %R",
               (PyObject*)Py_TYPE(object));
}

}  // namespace eyas
