// Arithmetic on numbers that come from files and callers: every function returns false instead of
// wrapping around.
#ifndef EYAS_BASE_CHECKED_H_
#define EYAS_BASE_CHECKED_H_

#include <stdbool.h>
#include <stdint.h>

static inline bool eyas_checked_add(uint64_t a, uint64_t b, uint64_t* out) {
  return !__builtin_add_overflow(a, b, out);
}

static inline bool eyas_checked_mul(uint64_t a, uint64_t b, uint64_t* out) {
  return !__builtin_mul_overflow(a, b, out);
}

// Rounds up to a multiple of `alignment`, a power of two.
static inline bool eyas_checked_align(uint64_t value, uint64_t alignment, uint64_t* out) {
  uint64_t sum = 0;
  if (__builtin_add_overflow(value, alignment - 1, &sum)) return false;
  *out = sum & ~(alignment - 1);
  return true;
}

// Whether [offset, offset + length) lies inside [0, size).
static inline bool eyas_range_fits(uint64_t offset, uint64_t length, uint64_t size) {
  return offset <= size && length <= size - offset;
}

#endif  // EYAS_BASE_CHECKED_H_
