// Processor features by LLVM's names, one table per architecture.
#define _GNU_SOURCE 1
#include <string.h>

#include "base/cpu.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <stdlib.h>

enum { EAX, EBX, ECX, EDX };

// Registers that the kernel must save for a feature to be usable: bits of XCR0.
enum { NONE = 0, YMM = 0x6, ZMM = 0xe6, TILES = 0x60006 };

enum { V1 = 1, V2, V3, V4, ALL };

// Intel SDM volume 2, CPUID, and AMD APM volume 3, appendix E; names as in LLVM's
// TargetParser/Host.cpp.
static const struct {
  const char* name;
  uint32_t leaf;
  uint8_t subleaf;
  uint8_t output;
  uint8_t bit;
  uint32_t state;
  uint8_t level;  // the first of x86-64's levels (psABI 4.1) that has it; 0: none
} features[] = {
    {"cx8", 1, 0, EDX, 8, NONE, V1},
    {"cmov", 1, 0, EDX, 15, NONE, V1},
    {"mmx", 1, 0, EDX, 23, NONE, V1},
    {"fxsr", 1, 0, EDX, 24, NONE, V1},
    {"sse", 1, 0, EDX, 25, NONE, V1},
    {"sse2", 1, 0, EDX, 26, NONE, V1},
    {"sse3", 1, 0, ECX, 0, NONE, V2},
    {"pclmul", 1, 0, ECX, 1, NONE, 0},
    {"ssse3", 1, 0, ECX, 9, NONE, V2},
    {"fma", 1, 0, ECX, 12, YMM, V3},
    {"cx16", 1, 0, ECX, 13, NONE, V2},
    {"sse4.1", 1, 0, ECX, 19, NONE, V2},
    {"sse4.2", 1, 0, ECX, 20, NONE, V2},
    {"crc32", 1, 0, ECX, 20, NONE, V2},
    {"movbe", 1, 0, ECX, 22, NONE, V3},
    {"popcnt", 1, 0, ECX, 23, NONE, V2},
    {"aes", 1, 0, ECX, 25, NONE, 0},
    {"xsave", 1, 0, ECX, 26, YMM, V3},
    {"avx", 1, 0, ECX, 28, YMM, V3},
    {"f16c", 1, 0, ECX, 29, YMM, V3},
    {"rdrnd", 1, 0, ECX, 30, NONE, 0},
    {"fsgsbase", 7, 0, EBX, 0, NONE, 0},
    {"bmi", 7, 0, EBX, 3, NONE, V3},
    {"avx2", 7, 0, EBX, 5, YMM, V3},
    {"bmi2", 7, 0, EBX, 8, NONE, V3},
    {"invpcid", 7, 0, EBX, 10, NONE, 0},
    {"rtm", 7, 0, EBX, 11, NONE, 0},
    {"avx512f", 7, 0, EBX, 16, ZMM, V4},
    {"avx512dq", 7, 0, EBX, 17, ZMM, V4},
    {"rdseed", 7, 0, EBX, 18, NONE, 0},
    {"adx", 7, 0, EBX, 19, NONE, 0},
    {"avx512ifma", 7, 0, EBX, 21, ZMM, 0},
    {"clflushopt", 7, 0, EBX, 23, NONE, 0},
    {"clwb", 7, 0, EBX, 24, NONE, 0},
    {"avx512cd", 7, 0, EBX, 28, ZMM, V4},
    {"sha", 7, 0, EBX, 29, NONE, 0},
    {"avx512bw", 7, 0, EBX, 30, ZMM, V4},
    {"avx512vl", 7, 0, EBX, 31, ZMM, V4},
    {"avx512vbmi", 7, 0, ECX, 1, ZMM, 0},
    {"pku", 7, 0, ECX, 4, NONE, 0},
    {"waitpkg", 7, 0, ECX, 5, NONE, 0},
    {"avx512vbmi2", 7, 0, ECX, 6, ZMM, 0},
    {"shstk", 7, 0, ECX, 7, NONE, 0},
    {"gfni", 7, 0, ECX, 8, NONE, 0},
    {"vaes", 7, 0, ECX, 9, YMM, 0},
    {"vpclmulqdq", 7, 0, ECX, 10, YMM, 0},
    {"avx512vnni", 7, 0, ECX, 11, ZMM, 0},
    {"avx512bitalg", 7, 0, ECX, 12, ZMM, 0},
    {"avx512vpopcntdq", 7, 0, ECX, 14, ZMM, 0},
    {"rdpid", 7, 0, ECX, 22, NONE, 0},
    {"cldemote", 7, 0, ECX, 25, NONE, 0},
    {"movdiri", 7, 0, ECX, 27, NONE, 0},
    {"movdir64b", 7, 0, ECX, 28, NONE, 0},
    {"avx512vp2intersect", 7, 0, EDX, 8, ZMM, 0},
    {"serialize", 7, 0, EDX, 14, NONE, 0},
    {"amx-bf16", 7, 0, EDX, 22, TILES, 0},
    {"avx512fp16", 7, 0, EDX, 23, ZMM, 0},
    {"amx-tile", 7, 0, EDX, 24, TILES, 0},
    {"amx-int8", 7, 0, EDX, 25, TILES, 0},
    {"avxvnni", 7, 1, EAX, 4, YMM, 0},
    {"avx512bf16", 7, 1, EAX, 5, ZMM, 0},
    {"cmpccxadd", 7, 1, EAX, 7, NONE, 0},
    {"amx-fp16", 7, 1, EAX, 21, TILES, 0},
    {"avxifma", 7, 1, EAX, 23, YMM, 0},
    {"avxvnniint8", 7, 1, EDX, 4, YMM, 0},
    {"avxneconvert", 7, 1, EDX, 5, YMM, 0},
    {"avxvnniint16", 7, 1, EDX, 10, YMM, 0},
    {"prefetchi", 7, 1, EDX, 14, NONE, 0},
    {"xsaveopt", 0xd, 1, EAX, 0, YMM, 0},
    {"xsavec", 0xd, 1, EAX, 1, YMM, 0},
    {"xsaves", 0xd, 1, EAX, 3, YMM, 0},
    {"sahf", 0x80000001, 0, ECX, 0, NONE, V2},
    {"lzcnt", 0x80000001, 0, ECX, 5, NONE, V3},
    {"sse4a", 0x80000001, 0, ECX, 6, NONE, 0},
    {"prfchw", 0x80000001, 0, ECX, 8, NONE, 0},
    {"xop", 0x80000001, 0, ECX, 11, YMM, 0},
    {"fma4", 0x80000001, 0, ECX, 16, YMM, 0},
    {"tbm", 0x80000001, 0, ECX, 21, NONE, 0},
    {"mwaitx", 0x80000001, 0, ECX, 29, NONE, 0},
    {"64bit", 0x80000001, 0, EDX, 29, NONE, V1},
    {"clzero", 0x80000008, 0, EBX, 0, NONE, 0},
    {"rdpru", 0x80000008, 0, EBX, 4, NONE, 0},
    {"wbnoinvd", 0x80000008, 0, EBX, 9, NONE, 0},
};

// XCR0, the register state that the kernel saves; 0 when it cannot be asked.
static uint32_t saved_state(void) {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return 0;  // OSXSAVE
  __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  return a;
}

// The level that the process is to be content with: EYAS_HOST=x86-64-v3 makes this machine one with
// AVX2, for tests. Other names say nothing here; the compiler refuses them.
static uint8_t allowed_level(void) {
  static const char* const names[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
  const char* host = getenv("EYAS_HOST");
  for (uint8_t i = 0; host && i < 4; ++i) {
    if (strcmp(host, names[i]) == 0) return V1 + i;
  }
  return ALL;
}

bool eyas_cpu_supports(const char* feature) {
  if (strcmp(feature, "x87") == 0) return true;
  const uint8_t allowed = allowed_level();
  for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); ++i) {
    if (strcmp(feature, features[i].name) != 0) continue;
    if (allowed != ALL && (!features[i].level || features[i].level > allowed)) return false;
    uint32_t out[4] = {0};
    return __get_cpuid_count(features[i].leaf, features[i].subleaf, &out[EAX], &out[EBX], &out[ECX],
                             &out[EDX]) &&
           (out[features[i].output] >> features[i].bit & 1) &&
           (saved_state() & features[i].state) == features[i].state;
  }
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
    {"fp-armv8", 1, 0},     {"neon", 1, 1},       {"aes", 1, 3},       {"sha2", 1, 6},
    {"crc", 1, 7},          {"lse", 1, 8},        {"fullfp16", 1, 10}, {"rdm", 1, 12},
    {"jsconv", 1, 13},      {"complxnum", 1, 14}, {"rcpc", 1, 15},     {"ccpp", 1, 16},
    {"sha3", 1, 17},        {"sm4", 1, 19},       {"dotprod", 1, 20},  {"sve", 1, 22},
    {"fp16fml", 1, 23},     {"dit", 1, 24},       {"flagm", 1, 27},    {"ssbs", 1, 28},
    {"sb", 1, 29},          {"pauth", 1, 30},     {"sve2", 2, 1},      {"sve2-aes", 2, 2},
    {"sve2-bitperm", 2, 4}, {"sve2-sha3", 2, 5},  {"sve2-sm4", 2, 6},  {"altnzcv", 2, 7},
    {"fptoint", 2, 8},      {"f32mm", 2, 11},     {"f64mm", 2, 12},    {"i8mm", 2, 13},
    {"bf16", 2, 14},        {"rand", 2, 16},      {"bti", 2, 17},      {"mte", 2, 18},
    {"sme", 2, 23},
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
    {"zba", 3},  {"zbb", 4},     {"zbs", 5},   {"zbc", 7},
    {"zfh", 27}, {"zfhmin", 28}, {"zvfh", 30}, {"zvfhmin", 31},
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
  } pair = {4, 0};                                            // RISCV_HWPROBE_KEY_IMA_EXT_0
  if (syscall(258, &pair, 1, 0, NULL, 0) != 0) return false;  // riscv_hwprobe
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
