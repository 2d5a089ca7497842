// Processor features by LLVM's names, one table per architecture.
#define _GNU_SOURCE 1
#include <string.h>

#include "base/cpu.h"

#if defined(__x86_64__)

// __builtin_cpu_supports reads cpuid and the XCR0 mask (so that the kernel saves the registers), but
// wants a literal, and calls a few features by other names than LLVM's `-mattr`.
#define FEATURES(X)                                                                               \
  X("sse3", "sse3") X("ssse3", "ssse3") X("sse4.1", "sse4.1") X("sse4.2", "sse4.2")               \
  X("popcnt", "popcnt") X("aes", "aes") X("pclmul", "pclmul") X("avx", "avx") X("avx2", "avx2")   \
  X("fma", "fma") X("f16c", "f16c") X("bmi", "bmi") X("bmi2", "bmi2") X("lzcnt", "lzcnt")         \
  X("movbe", "movbe") X("adx", "adx") X("sha", "sha") X("gfni", "gfni") X("vaes", "vaes")         \
  X("vpclmulqdq", "vpclmulqdq") X("avxvnni", "avxvnni") X("avx512f", "avx512f")                   \
  X("avx512cd", "avx512cd") X("avx512bw", "avx512bw") X("avx512dq", "avx512dq")                   \
  X("avx512vl", "avx512vl") X("avx512ifma", "avx512ifma") X("avx512vbmi", "avx512vbmi")           \
  X("avx512vbmi2", "avx512vbmi2") X("avx512vnni", "avx512vnni")                                   \
  X("avx512bitalg", "avx512bitalg") X("avx512vpopcntdq", "avx512vpopcntdq")                       \
  X("avx512bf16", "avx512bf16") X("avx512vp2intersect", "avx512vp2intersect")

bool eyas_cpu_supports(const char* feature) {
  __builtin_cpu_init();
  if (strcmp(feature, "sse") == 0 || strcmp(feature, "sse2") == 0) return true;
#define TEST(llvm_name, gcc_name) \
  if (strcmp(feature, llvm_name) == 0) return __builtin_cpu_supports(gcc_name) != 0;
  FEATURES(TEST)
#undef TEST
  return false;
}

#elif defined(__aarch64__)

#include <sys/auxv.h>

// Bits from the kernel's asm/hwcap.h; written out, since older headers lack the newer ones.
static const struct {
  const char* name;
  int word;  // 1: AT_HWCAP, 2: AT_HWCAP2
  int bit;
} features[] = {
    {"fp-armv8", 1, 0}, {"neon", 1, 1},  {"aes", 1, 3},     {"sha2", 1, 6},      {"crc", 1, 7},
    {"lse", 1, 8},      {"rdm", 1, 12},  {"fullfp16", 1, 10}, {"dotprod", 1, 20}, {"sve", 1, 22},
    {"fp16fml", 1, 23}, {"sve2", 2, 1},  {"i8mm", 2, 13},   {"bf16", 2, 14},     {"sme", 2, 23},
};

bool eyas_cpu_supports(const char* feature) {
  for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); ++i) {
    if (strcmp(feature, features[i].name) != 0) continue;
    return getauxval(features[i].word == 1 ? AT_HWCAP : AT_HWCAP2) >> features[i].bit & 1;
  }
  return false;
}

#elif defined(__riscv)

#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

// Keys and bits of riscv_hwprobe(2), Documentation/arch/riscv/hwprobe.rst.
static const struct {
  const char* name;
  int bit;
} extensions[] = {
    {"zba", 3}, {"zbb", 4}, {"zbs", 5}, {"zbc", 7}, {"zfh", 27}, {"zfhmin", 28}, {"zvfh", 30},
    {"zvfhmin", 31},
};

bool eyas_cpu_supports(const char* feature) {
  unsigned long letters = getauxval(AT_HWCAP);
  if (feature[0] >= 'a' && feature[0] <= 'z' && feature[1] == 0) {
    return letters >> (feature[0] - 'a') & 1;
  }
  if (strncmp(feature, "zvl", 3) == 0) {  // zvl256b: vectors of at least 256 bits
    if (!(letters >> ('v' - 'a') & 1)) return false;
    unsigned long vector_bytes = 0;
    __asm__ volatile("csrr %0, 0xc22" : "=r"(vector_bytes));  // vlenb
    char* end = NULL;
    unsigned long bits = strtoul(feature + 3, &end, 10);
    return end != feature + 3 && strcmp(end, "b") == 0 && bits <= vector_bytes * 8;
  }
  struct {
    long long key;
    unsigned long long value;
  } pair = {4, 0};                                                // RISCV_HWPROBE_KEY_IMA_EXT_0
  if (syscall(258, &pair, 1, 0, NULL, 0) != 0) return false;      // riscv_hwprobe
  for (size_t i = 0; i < sizeof(extensions) / sizeof(extensions[0]); ++i) {
    if (strcmp(feature, extensions[i].name) == 0) return pair.value >> extensions[i].bit & 1;
  }
  return false;
}

#else

bool eyas_cpu_supports(const char* feature) {
  (void)feature;
  return false;
}

#endif
