// Which set of element microkernels this CPU runs, and what all sets call.
#include "ukernel/elements.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"

enum { MAX_SETS = 4, CHUNK = 128 };

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
  add_set("sse2", eyas_uk_elements_fill_sse2, (const char* const[]){NULL});
  add_set("avx2", eyas_uk_elements_fill_avx2, (const char* const[]){"avx2", "fma", "f16c", NULL});
  add_set("avx512", eyas_uk_elements_fill_avx512,
          (const char* const[]){"avx2", "fma", "f16c", "avx512f", "avx512dq", "avx512bw",
                                "avx512vl", NULL});
#elif defined(__aarch64__)
  // The compiler made vectors of the portable set there; products have a set of that name.
  add_set("neon", eyas_uk_elements_fill_portable, (const char* const[]){"neon", NULL});
#elif defined(__riscv) && __riscv_xlen == 64
  add_set("rvv", eyas_uk_elements_fill_rvv, (const char* const[]){"v", NULL});
#endif
}

const eyas_uk_elements_t* eyas_uk_elements(const char* name) {
  pthread_once(&made, make_sets);
  for (size_t i = set_count; i-- > 0;) {
    if (!name || !*name || strcmp(name, sets[i].name) == 0) return &sets[i];
  }
  return NULL;
}

typedef struct sizes_t {
  size_t block, dst, operand;
} sizes_t;

static inline sizes_t unpack(unsigned sizes) {
  return (sizes_t){sizes >> 16, sizes >> 8 & 0xff, sizes & 0xff};
}

void eyas_uk_blocks_vv(void* dst, const void* a, const void* b, size_t count, eyas_uk_binary_t loop,
                       unsigned packed) {
  const sizes_t sizes = unpack(packed);
  const size_t rest = count & (sizes.block - 1), whole = count - rest;
  if (whole) loop(dst, a, b, whole);
  if (rest == 0) return;
  _Alignas(64) char from[2][CHUNK / 2 * sizeof(int64_t)] = {0}, to[CHUNK / 2 * sizeof(int64_t)];
  memcpy(from[0], (const char*)a + whole * sizes.operand, rest * sizes.operand);
  memcpy(from[1], (const char*)b + whole * sizes.operand, rest * sizes.operand);
  loop(to, from[0], from[1], sizes.block);
  memcpy((char*)dst + whole * sizes.dst, to, rest * sizes.dst);
}

// From the end where elements become wider in place, so that nothing is overwritten unread.
void eyas_uk_blocks_v(void* dst, const void* a, size_t count, eyas_uk_unary_t loop,
                      unsigned packed) {
  const sizes_t sizes = unpack(packed);
  const int backwards = dst == a && sizes.dst > sizes.operand;
  size_t whole = backwards ? 0 : count & ~(sizes.block - 1);
  if (whole) loop(dst, a, whole);
  _Alignas(64) char from[CHUNK * sizeof(int64_t)], to[CHUNK * sizeof(int64_t)];
  while (count > whole) {
    const size_t first = backwards ? (count - 1) / CHUNK * CHUNK : whole, rest = count - first;
    const size_t padded = (rest + sizes.block - 1) & ~(sizes.block - 1);
    memcpy(from, (const char*)a + first * sizes.operand, rest * sizes.operand);
    memset(from + rest * sizes.operand, 0, (padded - rest) * sizes.operand);
    loop(to, from, padded);
    memcpy((char*)dst + first * sizes.dst, to, rest * sizes.dst);
    count = first;
  }
}
