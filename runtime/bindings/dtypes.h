// Element types as NumPy, ml_dtypes and DLPack have them.
#ifndef EYAS_BINDINGS_DTYPES_H_
#define EYAS_BINDINGS_DTYPES_H_

#include "bindings/dlpack.h"
#include "bindings/numpy.h"
#include "eyas/module.h"

namespace eyas {

// Ours for theirs; 0 for what modules do not take.
uint32_t dtype_of_numpy(PyArray_Descr* descr);
uint32_t dtype_of_dlpack(dlpack::DataType type);

// Theirs for ours. Without ml_dtypes the bits of its types come as unsigned integers. NULL with a
// Python error set.
PyArray_Descr* numpy_of_dtype(uint32_t dtype);
dlpack::DataType dlpack_of_dtype(uint32_t dtype);

// Bits of an element's value; types of fewer than 8 have a byte each.
uint32_t bits_of_dtype(uint32_t dtype);

}  // namespace eyas

#endif  // EYAS_BINDINGS_DTYPES_H_
