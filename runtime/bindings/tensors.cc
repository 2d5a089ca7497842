#include "bindings/tensors.h"

#include <cmath>
#include <cstring>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_25_API_VERSION
#include <numpy/arrayobject.h>

namespace eyas {

PyObject* call_error = nullptr;
PyObject* module_error = nullptr;

namespace {

// Results up to this size are copied into memory of NumPy's own, which is cheaper than a capsule.
constexpr uint64_t kCopyBytes = 512;

PyObject* dlpack_name = nullptr;  // "__dlpack__"

// Resolved when the first torch tensor comes by; never imported by us before that.
PyTypeObject* torch_tensor_type = nullptr;
PyObject* torch_to_dlpack = nullptr;
PyObject* torch_from_dlpack = nullptr;

// Types that NumPy has from ml_dtypes. Without that package the bits come as unsigned integers.
struct Extension {
  uint32_t dtype;
  const char* name;
  uint8_t bits;
  PyArray_Descr* descr;  // resolved when the first such result is made
  bool missing;
};
Extension extensions[] = {
    {EYAS_DTYPE_BF16, "bfloat16", 16, nullptr, false},
    {EYAS_DTYPE_F8E4M3FN, "float8_e4m3fn", 8, nullptr, false},
    {EYAS_DTYPE_F8E4M3FNUZ, "float8_e4m3fnuz", 8, nullptr, false},
    {EYAS_DTYPE_F8E5M2, "float8_e5m2", 8, nullptr, false},
    {EYAS_DTYPE_F8E5M2FNUZ, "float8_e5m2fnuz", 8, nullptr, false},
    {EYAS_DTYPE_F8E8M0, "float8_e8m0fnu", 8, nullptr, false},
    {EYAS_DTYPE_F4E2M1, "float4_e2m1fn", 4, nullptr, false},
    {EYAS_DTYPE_I4, "int4", 4, nullptr, false},
    {EYAS_DTYPE_U4, "uint4", 4, nullptr, false},
    {EYAS_DTYPE_I2, "int2", 2, nullptr, false},
    {EYAS_DTYPE_U2, "uint2", 2, nullptr, false},
};

Extension* extension_of_dtype(uint32_t dtype) {
  for (Extension& extension : extensions) {
    if (extension.dtype == dtype) return &extension;
  }
  return nullptr;
}

uint32_t dtype_of_type_num(int type_num) {
  switch (type_num) {
    case NPY_DOUBLE: return EYAS_DTYPE_F64;
    case NPY_FLOAT: return EYAS_DTYPE_F32;
    case NPY_HALF: return EYAS_DTYPE_F16;
    case NPY_BOOL: return EYAS_DTYPE_I1;
    case NPY_BYTE: return EYAS_DTYPE_I8;
    case NPY_UBYTE: return EYAS_DTYPE_U8;
    case NPY_SHORT: return EYAS_DTYPE_I16;
    case NPY_USHORT: return EYAS_DTYPE_U16;
    case NPY_INT: return EYAS_DTYPE_I32;
    case NPY_UINT: return EYAS_DTYPE_U32;
    case NPY_LONG: return sizeof(long) == 8 ? EYAS_DTYPE_I64 : EYAS_DTYPE_I32;
    case NPY_ULONG: return sizeof(long) == 8 ? EYAS_DTYPE_U64 : EYAS_DTYPE_U32;
    case NPY_LONGLONG: return EYAS_DTYPE_I64;
    case NPY_ULONGLONG: return EYAS_DTYPE_U64;
    case NPY_CFLOAT: return EYAS_DTYPE_C64;
    case NPY_CDOUBLE: return EYAS_DTYPE_C128;
    default: return 0;
  }
}

int type_num_of_dtype(uint32_t dtype) {
  switch (dtype) {
    case EYAS_DTYPE_F64: return NPY_DOUBLE;
    case EYAS_DTYPE_F32: return NPY_FLOAT;
    case EYAS_DTYPE_F16: return NPY_HALF;
    case EYAS_DTYPE_I1: return NPY_BOOL;
    case EYAS_DTYPE_I8: return NPY_INT8;
    case EYAS_DTYPE_U8: return NPY_UINT8;
    case EYAS_DTYPE_I16: return NPY_INT16;
    case EYAS_DTYPE_U16: return NPY_UINT16;
    case EYAS_DTYPE_I32: return NPY_INT32;
    case EYAS_DTYPE_U32: return NPY_UINT32;
    case EYAS_DTYPE_I64: return NPY_INT64;
    case EYAS_DTYPE_U64: return NPY_UINT64;
    case EYAS_DTYPE_C64: return NPY_CFLOAT;
    case EYAS_DTYPE_C128: return NPY_CDOUBLE;
    default: return NPY_NOTYPE;
  }
}

const dlpack::DataType dlpack_types[] = {
    {0, 0, 0},
    {dlpack::kFloat, 64, 1},
    {dlpack::kFloat, 32, 1},
    {dlpack::kFloat, 16, 1},
    {dlpack::kBfloat, 16, 1},
    {dlpack::kBool, 8, 1},
    {dlpack::kInt, 8, 1},
    {dlpack::kUInt, 8, 1},
    {dlpack::kInt, 16, 1},
    {dlpack::kUInt, 16, 1},
    {dlpack::kInt, 32, 1},
    {dlpack::kUInt, 32, 1},
    {dlpack::kInt, 64, 1},
    {dlpack::kUInt, 64, 1},
    {dlpack::kComplex, 64, 1},
    {dlpack::kComplex, 128, 1},
    {dlpack::kFloat8E4m3fn, 8, 1},
    {dlpack::kFloat8E4m3fnuz, 8, 1},
    {dlpack::kFloat8E5m2, 8, 1},
    {dlpack::kFloat8E5m2fnuz, 8, 1},
    {dlpack::kFloat8E8m0fnu, 8, 1},
    // DLPack packs these; ours have a byte each, and leave as bytes.
    {dlpack::kUInt, 8, 1},
    {dlpack::kUInt, 8, 1},
    {dlpack::kUInt, 8, 1},
    {dlpack::kUInt, 8, 1},
    {dlpack::kUInt, 8, 1},
};

uint32_t dtype_of_dlpack(dlpack::DataType type) {
  for (uint32_t i = 1; i < sizeof(dlpack_types) / sizeof(dlpack_types[0]); ++i) {
    const dlpack::DataType& t = dlpack_types[i];
    if (t.code == type.code && t.bits == type.bits && t.lanes == type.lanes) return i;
  }
  return 0;
}

bool wrong(const eyas_tensor_spec_t& spec, uint32_t index, const char* format, PyObject* object) {
  PyObject* detail = PyUnicode_FromFormat(format, object);
  if (detail) {
    PyErr_Format(call_error, "argument %u '%s': %U", index, spec.name, detail);
    Py_DECREF(detail);
  }
  return false;
}

// The dtype of one of ml_dtypes' types; 0 for others.
uint32_t dtype_of_extension(PyArray_Descr* descr) {
  if (descr->type_num < NPY_USERDEF) return 0;
  for (const Extension& extension : extensions) {
    if (extension.descr && descr->typeobj == extension.descr->typeobj) return extension.dtype;
  }
  const char* dot = strrchr(descr->typeobj->tp_name, '.');
  const char* name = dot ? dot + 1 : descr->typeobj->tp_name;
  for (const Extension& extension : extensions) {
    if (strcmp(name, extension.name) == 0 &&
        PyDataType_ELSIZE(descr) == eyas_dtype_bytes(extension.dtype)) {
      return extension.dtype;
    }
  }
  return 0;
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
  uint32_t dtype = dtype_of_type_num(descr->type_num);
  if (!dtype) dtype = dtype_of_extension(descr);
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
      const Extension* extension = extension_of_dtype(spec.dtype);
      const uint32_t bits = extension ? extension->bits : 8 * eyas_dtype_bytes(spec.dtype);
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
  if (torch_tensor_type) return PyObject_TypeCheck(object, torch_tensor_type);
  // Its module is loaded when a tensor exists; do not import it to find out.
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
  return PyObject_TypeCheck(object, torch_tensor_type);
}

bool read_dlpack(PyObject* object, const eyas_tensor_spec_t& spec, uint32_t index,
                 Argument& argument, eyas_tensor_t& tensor, bool is_torch, bool retry) {
  PyObject* capsule = is_torch ? PyObject_CallOneArg(torch_to_dlpack, object)
                               : PyObject_CallMethodNoArgs(object, dlpack_name);
  if (!capsule) return false;
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

void release_capsule(PyObject* capsule) {
  eyas_hal_buffer_release((eyas_hal_buffer_t*)PyCapsule_GetPointer(capsule, "eyas_buffer"));
}

// The result's memory. Local devices only hand out mappable buffers, which stay mapped for good.
void* map_result(const eyas_tensor_t& tensor) {
  void* data = nullptr;
  eyas_status_t status =
      eyas_hal_buffer_map(tensor.buffer, EYAS_HAL_ACCESS_READ_WRITE, 0, EYAS_HAL_WHOLE, &data);
  if (!status) return data;
  PyErr_SetString(call_error, eyas_status_message(status));
  eyas_status_free(status);
  eyas_hal_buffer_release(tensor.buffer);
  return nullptr;
}

PyArray_Descr* result_descr(uint32_t dtype) {
  Extension* extension = extension_of_dtype(dtype);
  if (!extension) return PyArray_DescrFromType(type_num_of_dtype(dtype));
  if (!extension->descr && !extension->missing) {
    PyObject* module = PyImport_ImportModule("ml_dtypes");
    PyObject* type = module ? PyObject_GetAttrString(module, extension->name) : nullptr;
    if (!type || !PyArray_DescrConverter(type, &extension->descr)) {
      PyErr_Clear();
      extension->missing = true;
    }
    Py_XDECREF(type);
    Py_XDECREF(module);
  }
  if (!extension->descr)
    return PyArray_DescrFromType(extension->bits == 16 ? NPY_UINT16 : NPY_UINT8);
  Py_INCREF(extension->descr);
  return extension->descr;
}

}  // namespace

bool initialize_tensors() {
  if (_import_array() < 0) return false;
  dlpack_name = PyUnicode_InternFromString("__dlpack__");
  return dlpack_name != nullptr;
}

bool read_argument(PyObject* object, const eyas_tensor_spec_t& spec, uint32_t index,
                   Argument& argument, eyas_tensor_t& tensor, bool& is_torch) {
  if (PyArray_Check(object))
    return read_numpy((PyArrayObject*)object, spec, index, argument, tensor);
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
    is_torch = true;
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

PyObject* write_numpy(const eyas_tensor_t& tensor) {
  void* data = map_result(tensor);
  if (!data && PyErr_Occurred()) return nullptr;
  uint64_t bytes = eyas_dtype_bytes(tensor.dtype);
  npy_intp dims[EYAS_MAX_RANK];
  for (uint32_t i = 0; i < tensor.rank; ++i) {
    dims[i] = (npy_intp)tensor.dims[i];
    bytes *= (uint64_t)tensor.dims[i];
  }
  PyArray_Descr* descr = result_descr(tensor.dtype);
  if (!descr) {
    eyas_hal_buffer_release(tensor.buffer);
    return nullptr;
  }
  if (bytes <= kCopyBytes) {
    PyObject* array = PyArray_NewFromDescr(&PyArray_Type, descr, (int)tensor.rank, dims, nullptr,
                                           nullptr, 0, nullptr);
    if (array && bytes) memcpy(PyArray_DATA((PyArrayObject*)array), data, bytes);
    eyas_hal_buffer_release(tensor.buffer);
    return array;
  }
  PyObject* capsule = PyCapsule_New(tensor.buffer, "eyas_buffer", release_capsule);
  if (!capsule) {
    Py_DECREF(descr);
    eyas_hal_buffer_release(tensor.buffer);
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

PyObject* write_torch(const eyas_tensor_t& tensor) {
  struct Result {
    dlpack::ManagedTensor managed;
    int64_t dims[EYAS_MAX_RANK];
    int64_t strides[EYAS_MAX_RANK];
  };
  void* data = map_result(tensor);
  if (!data && PyErr_Occurred()) return nullptr;
  auto* result = new Result();
  int64_t stride = 1;
  for (uint32_t i = tensor.rank; i-- > 0;) {
    result->dims[i] = tensor.dims[i];
    result->strides[i] = stride;
    stride *= tensor.dims[i] > 0 ? tensor.dims[i] : 1;
  }
  result->managed.tensor = {
      data,         dlpack::kCpu,    0, (int32_t)tensor.rank, dlpack_types[tensor.dtype],
      result->dims, result->strides, 0};
  result->managed.manager = tensor.buffer;
  result->managed.deleter = [](dlpack::ManagedTensor* self) {
    eyas_hal_buffer_release((eyas_hal_buffer_t*)self->manager);
    delete (Result*)(void*)self;
  };
  PyObject* capsule = PyCapsule_New(&result->managed, "dltensor", [](PyObject* self) {
    if (!PyCapsule_IsValid(self, "dltensor")) return;  // somebody took it
    auto* managed = (dlpack::ManagedTensor*)PyCapsule_GetPointer(self, "dltensor");
    managed->deleter(managed);
  });
  if (!capsule) {
    result->managed.deleter(&result->managed);
    return nullptr;
  }
  PyObject* object = PyObject_CallOneArg(torch_from_dlpack, capsule);
  Py_DECREF(capsule);
  return object;
}

}  // namespace eyas
