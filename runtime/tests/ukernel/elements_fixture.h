// What the tests of element microkernels share: values that are likely to be wrong, tiles with
// canaries, and comparisons.
#ifndef EYAS_TESTS_ELEMENTS_FIXTURE_H_
#define EYAS_TESTS_ELEMENTS_FIXTURE_H_

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "hal/check.h"
#include "ukernel/ukernel.h"
#include "ukernel/ulps.h"

enum { CAPACITY = EYAS_VMVX_MAX_ELEMENTS, CANARY = 64 };

static const char* const set_names[] = {"portable", "sse2", "avx2", "avx512", "neon", "rvv"};
enum { SET_COUNT = sizeof(set_names) / sizeof(set_names[0]) };

static const size_t type_bytes[EYAS_VMVX_TYPE_COUNT] = {4, 8, 1, 2, 4, 8};

typedef struct tile_t {
  _Alignas(64) char bytes[CAPACITY * 8 + CANARY];
} tile_t;

static uint64_t random_state = 88172645463325252u;

static inline uint64_t random_bits(void) {  // Marsaglia's xorshift
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

static inline double random_real(double low, double high) {
  return low + (high - low) * (double)(random_bits() >> 11) * 0x1p-53;
}

static const double real_edges[] = {0.0,          -0.0,          1.0,
                                    -1.0,         0.5,           -0.5,
                                    1.5,          2.5,           -2.5,
                                    INFINITY,     -INFINITY,     NAN,
                                    0x1p-149,     -0x1p-149,     0x1p-127,
                                    0x1p-126,     88.72284,      -103.972,
                                    127.5,        128.0,         -128.5,
                                    255.5,        256.0,         32767.5,
                                    65504.0,      65519.0,       65520.0,
                                    0x1p-24,      0x1p-25,       2147483520.0,
                                    2147483648.0, -2147483648.0, 4294967040.0,
                                    4294967296.0, 9.2233715e18,  0x1p63,
                                    -0x1p63,      0x1p64,        3.4028234663852886e38,
                                    1e30};
static const int64_t integer_edges[] = {
    0,      1,     -1,        2,         7,          8,         15,        16,
    31,     32,    63,        64,        127,        -128,      255,       32767,
    -32768, 65535, INT32_MAX, INT32_MIN, UINT32_MAX, INT64_MAX, INT64_MIN, INT64_MIN + 1};

static inline int is_float(int type) {
  return type == EYAS_VMVX_TYPE_F32 || type == EYAS_VMVX_TYPE_F64;
}

static inline double get_real(const void* tile, int type, size_t i) {
  return type == EYAS_VMVX_TYPE_F32 ? (double)((const float*)tile)[i] : ((const double*)tile)[i];
}

static inline int64_t get_integer(const void* tile, int type, size_t i) {
  switch (type) {
    case EYAS_VMVX_TYPE_I8: return ((const int8_t*)tile)[i];
    case EYAS_VMVX_TYPE_I16: return ((const int16_t*)tile)[i];
    case EYAS_VMVX_TYPE_I32: return ((const int32_t*)tile)[i];
    default: return ((const int64_t*)tile)[i];
  }
}

// Sign-extends or cuts to the type, as all tiles hold integers.
static inline int64_t wrapped(uint64_t value, int type) {
  const unsigned shift = 64 - 8 * (unsigned)type_bytes[type];
  return (int64_t)(value << shift) >> shift;
}

static inline uint64_t without_sign(int64_t value, int type) {
  const unsigned shift = 64 - 8 * (unsigned)type_bytes[type];
  return (uint64_t)value << shift >> shift;
}

static inline void put_real(void* tile, int type, size_t i, double value) {
  if (type == EYAS_VMVX_TYPE_F32) {
    ((float*)tile)[i] = (float)value;
  } else {
    ((double*)tile)[i] = value;
  }
}

static inline void put_integer(void* tile, int type, size_t i, int64_t value) {
  memcpy((char*)tile + i * type_bytes[type], &value, type_bytes[type]);  // little-endian
}

// Edges, any bits, and numbers of everyday size, mixed.
static inline void fill_random(void* tile, int type, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const uint64_t bits = random_bits(), kind = random_bits() % 4;
    if (is_float(type)) {
      const size_t edges = sizeof(real_edges) / sizeof(real_edges[0]);
      if (kind == 0) put_real(tile, type, i, real_edges[bits % edges]);
      if (kind == 1) {
        memcpy((char*)tile + i * type_bytes[type], &bits, type_bytes[type]);
        const double value = get_real(tile, type, i);
        if (value != value) put_real(tile, type, i, NAN);  // pow tells signalling NaNs from others
      }
      if (kind >= 2) put_real(tile, type, i, random_real(-12.0, 12.0));
    } else {
      const size_t edges = sizeof(integer_edges) / sizeof(integer_edges[0]);
      put_integer(tile, type, i,
                  kind == 0   ? integer_edges[bits % edges]
                  : kind == 1 ? (int64_t)(bits % 20) - 9
                              : (int64_t)bits);
    }
  }
}

static inline void put_canary(tile_t* tile, size_t bytes) {
  memset(tile->bytes + bytes, 0x5a, CANARY);
}

static inline int canary_lives(const tile_t* tile, size_t bytes) {
  for (size_t i = 0; i < CANARY; ++i) {
    if (tile->bytes[bytes + i] != 0x5a) return 0;
  }
  return 1;
}

// Equal to the last bit; one NaN is as good as another.
static inline int same_real(double a, double b) {
  return (a != a && b != b) || (a == b && !signbit(a) == !signbit(b));
}

#endif  // EYAS_TESTS_ELEMENTS_FIXTURE_H_
