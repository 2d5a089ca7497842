// The DLPack ABI (https://dmlc.github.io/dlpack), as much of it as we use; unversioned structs.
#ifndef EYAS_BINDINGS_DLPACK_H_
#define EYAS_BINDINGS_DLPACK_H_

#include <cstdint>

namespace dlpack {

constexpr int32_t kCpu = 1;
enum Code : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kComplex = 5,
  kBool = 6,
  kFloat8E4m3fn = 10,
  kFloat8E4m3fnuz = 11,
  kFloat8E5m2 = 12,
  kFloat8E5m2fnuz = 13,
  kFloat8E8m0fnu = 14,
};

struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct Tensor {
  void* data;
  int32_t device_type;
  int32_t device_id;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; NULL for row-major
  uint64_t byte_offset;
};

struct ManagedTensor {
  Tensor tensor;
  void* manager;
  void (*deleter)(ManagedTensor*);
};

}  // namespace dlpack

#endif  // EYAS_BINDINGS_DLPACK_H_
