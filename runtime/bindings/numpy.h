// NumPy's C API, one import for all files: core.cc has it.
#ifndef EYAS_BINDINGS_NUMPY_H_
#define EYAS_BINDINGS_NUMPY_H_

#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_25_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL eyas_numpy_api
#ifndef EYAS_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#endif  // EYAS_BINDINGS_NUMPY_H_
