// Which set of product microkernels this CPU runs.
#include <string.h>

#include "base/cpu.h"
#include "ukernel/products.h"

// Best first. A set needs every feature that it names.
static const struct {
  const eyas_uk_products_t* table;
  const char* features[8];
} sets[] = {
#if defined(__x86_64__)
    {&eyas_uk_products_avx512_bf16,
     {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vnni", "avx512bf16", NULL}},
    {&eyas_uk_products_avx512_vnni,
     {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vnni", NULL}},
    {&eyas_uk_products_avx512, {"avx512f", "avx512bw", "avx512dq", "avx512vl", NULL}},
    {&eyas_uk_products_avx2, {"avx2", "fma", "f16c", NULL}},
    {&eyas_uk_products_sse2, {NULL}},
#elif defined(__aarch64__)
    {&eyas_uk_products_neon_i8mm, {"dotprod", "i8mm", NULL}},
    {&eyas_uk_products_neon_dotprod, {"dotprod", NULL}},
    {&eyas_uk_products_neon, {"neon", NULL}},
#elif defined(__riscv) && __riscv_xlen == 64
    {&eyas_uk_products_rvv, {"v", NULL}},
#endif
    {&eyas_uk_products_portable, {NULL}},
};

static int runs_here(const char* const* features) {
  for (; *features; ++features) {
    if (!eyas_cpu_supports(*features)) return 0;
  }
  return 1;
}

// A name stands for itself and for what extends it: "avx512" also for "avx512-vnni".
static int is_named(const char* name, const char* wanted) {
  const size_t length = strlen(wanted);
  return strncmp(name, wanted, length) == 0 && (name[length] == 0 || name[length] == '-');
}

const eyas_uk_products_t* eyas_uk_products(const char* name) {
  for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); ++i) {
    const int wanted = !name || !*name || is_named(sets[i].table->name, name);
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
