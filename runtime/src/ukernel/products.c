// Which set of product microkernels this CPU runs.
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "ukernel/products.h"

// Best first. A set needs every feature that it names.
static const struct {
  const eyas_uk_products_t* table;
  const char* features[6];
} sets[] = {
#if defined(__x86_64__)
    {&eyas_uk_products_avx512, {"avx512f", "avx512bw", "avx512dq", "avx512vl", NULL}},
    {&eyas_uk_products_avx2, {"avx2", "fma", "f16c", NULL}},
#endif
    {&eyas_uk_products_portable, {NULL}},
};

static int runs_here(const char* const* features) {
  for (; *features; ++features) {
    if (!eyas_cpu_supports(*features)) return 0;
  }
  return 1;
}

const eyas_uk_products_t* eyas_uk_products(const char* name) {
  if (!name) name = getenv("EYAS_VMVX_KERNELS");
  for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); ++i) {
    const int wanted = !name || !*name || strcmp(name, sets[i].table->name) == 0;
    if (wanted && runs_here(sets[i].features)) return sets[i].table;
  }
  return NULL;
}

int eyas_uk_products_available(const eyas_uk_products_t** out, int capacity) {
  int count = 0;
  for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); ++i) {
    if (count < capacity && runs_here(sets[i].features)) out[count++] = sets[i].table;
  }
  return count;
}
