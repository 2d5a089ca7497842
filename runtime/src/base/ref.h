// Atomic reference counts. An object embeds one and starts it at 1.
#ifndef EYAS_BASE_REF_H_
#define EYAS_BASE_REF_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct eyas_ref_t {
  _Atomic uint32_t count;
} eyas_ref_t;

static inline void eyas_ref_initialize(eyas_ref_t* ref) {
  atomic_init(&ref->count, 1);
}

static inline void eyas_ref_retain(eyas_ref_t* ref) {
  atomic_fetch_add_explicit(&ref->count, 1, memory_order_relaxed);
}

// Returns true when this was the last reference: the caller then destroys the object. acq_rel
// orders every other owner's last use before the destruction (a fence would do, but TSan does not
// model fences).
static inline bool eyas_ref_release(eyas_ref_t* ref) {
  return atomic_fetch_sub_explicit(&ref->count, 1, memory_order_acq_rel) == 1;
}

#endif  // EYAS_BASE_REF_H_
