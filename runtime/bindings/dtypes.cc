#include "bindings/dtypes.h"

#include <cstring>

namespace eyas {
namespace {

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

}  // namespace

uint32_t dtype_of_numpy(PyArray_Descr* descr) {
  uint32_t dtype = dtype_of_type_num(descr->type_num);
  return dtype ? dtype : dtype_of_extension(descr);
}

uint32_t dtype_of_dlpack(dlpack::DataType type) {
  for (uint32_t i = 1; i < sizeof(dlpack_types) / sizeof(dlpack_types[0]); ++i) {
    const dlpack::DataType& t = dlpack_types[i];
    if (t.code == type.code && t.bits == type.bits && t.lanes == type.lanes) return i;
  }
  return 0;
}

PyArray_Descr* numpy_of_dtype(uint32_t dtype) {
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

dlpack::DataType dlpack_of_dtype(uint32_t dtype) {
  return dlpack_types[dtype];
}

uint32_t bits_of_dtype(uint32_t dtype) {
  const Extension* extension = extension_of_dtype(dtype);
  return extension ? extension->bits : 8 * eyas_dtype_bytes(dtype);
}

}  // namespace eyas
