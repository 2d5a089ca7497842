// Which set of element microkernels this CPU runs, and what all sets call.
#include "ukernel/elements.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"

enum { MAX_SETS = 3, CHUNK = 128 };

// Made once, simplest first; each starts as a copy of the one before it.
static eyas_uk_elements_t sets[MAX_SETS];
static size_t set_count;
static pthread_once_t made = PTHREAD_ONCE_INIT;

static void add_set(const char* name, void (*fill)(eyas_uk_elements_t*),
                    const char* const* features) {
  for (; *features; ++features) {
    if (!eyas_cpu_supports(*features)) return;
  }
  eyas_uk_elements_t* set = &sets[set_count];
  if (set_count) *set = sets[set_count - 1];
  fill(set);
  set->name = name;
  ++set_count;
}

static void make_sets(void) {
  add_set("portable", eyas_uk_elements_fill_portable, (const char* const[]){NULL});
#if defined(__x86_64__)
  add_set("avx2", eyas_uk_elements_fill_avx2,
          (const char* const[]){"avx2", "fma", "f16c", NULL});
  add_set("avx512", eyas_uk_elements_fill_avx512,
          (const char* const[]){"avx2", "fma", "f16c", "avx512f", "avx512dq", "avx512bw",
                                "avx512vl", NULL});
#endif
}

const eyas_uk_elements_t* eyas_uk_elements(const char* name) {
  pthread_once(&made, make_sets);
  if (!name) name = getenv("EYAS_VMVX_KERNELS");
  for (size_t i = set_count; i-- > 0;) {
    if (!name || !*name || strcmp(name, sets[i].name) == 0) return &sets[i];
  }
  return NULL;
}

// CHUNK copies of one element.
static void repeat(char* out, const void* element, size_t size) {
  memcpy(out, element, size);
  for (size_t filled = size; filled < CHUNK * size; filled *= 2) memcpy(out + filled, out, filled);
}

void eyas_uk_repeat_second(eyas_uk_binary_t function, eyas_uk_sizes_t sizes, void* dst,
                           const void* a, const void* b, size_t count) {
  _Alignas(64) char repeated[CHUNK * sizeof(int64_t)];
  repeat(repeated, b, sizes.operand);
  for (size_t i = 0; i < count; i += CHUNK) {
    function((char*)dst + i * sizes.dst, (const char*)a + i * sizes.operand, repeated,
             count - i < CHUNK ? count - i : CHUNK);
  }
}

void eyas_uk_repeat_first(eyas_uk_binary_t function, eyas_uk_sizes_t sizes, void* dst,
                          const void* a, const void* b, size_t count) {
  _Alignas(64) char repeated[CHUNK * sizeof(int64_t)];
  repeat(repeated, a, sizes.operand);
  for (size_t i = 0; i < count; i += CHUNK) {
    function((char*)dst + i * sizes.dst, repeated, (const char*)b + i * sizes.operand,
             count - i < CHUNK ? count - i : CHUNK);
  }
}

void eyas_uk_widen_in_place(eyas_uk_unary_t function, eyas_uk_sizes_t sizes, void* tile,
                            size_t count) {
  _Alignas(64) char copy[CHUNK * sizeof(int32_t)];
  for (size_t end = count; end > 0;) {
    const size_t first = (end - 1) / CHUNK * CHUNK;
    memcpy(copy, (char*)tile + first * sizes.operand, (end - first) * sizes.operand);
    function((char*)tile + first * sizes.dst, copy, end - first);
    end = first;
  }
}
