// Processor features by LLVM's names, one table per architecture.
#define _GNU_SOURCE 1
#include <string.h>

#include "base/cpu.h"

#if defined(__x86_64__)

#include <cpuid.h>

enum { EAX, EBX, ECX, EDX };

// Registers that the kernel must save for a feature to be usable: bits of XCR0.
enum { NONE = 0, YMM = 0x6, ZMM = 0xe6, TILES = 0x60006 };

// Intel SDM volume 2, CPUID, and AMD APM volume 3, appendix E; names as in LLVM's
// TargetParser/Host.cpp.
static const struct {
  const char* name;
  uint32_t leaf;
  uint8_t subleaf;
  uint8_t output;
  uint8_t bit;
  uint32_t state;
} features[] = {
    {"cx8", 1, 0, EDX, 8, NONE},
    {"cmov", 1, 0, EDX, 15, NONE},
    {"mmx", 1, 0, EDX, 23, NONE},
    {"fxsr", 1, 0, EDX, 24, NONE},
    {"sse", 1, 0, EDX, 25, NONE},
    {"sse2", 1, 0, EDX, 26, NONE},
    {"sse3", 1, 0, ECX, 0, NONE},
    {"pclmul", 1, 0, ECX, 1, NONE},
    {"ssse3", 1, 0, ECX, 9, NONE},
    {"fma", 1, 0, ECX, 12, YMM},
    {"cx16", 1, 0, ECX, 13, NONE},
    {"sse4.1", 1, 0, ECX, 19, NONE},
    {"sse4.2", 1, 0, ECX, 20, NONE},
    {"crc32", 1, 0, ECX, 20, NONE},
    {"movbe", 1, 0, ECX, 22, NONE},
    {"popcnt", 1, 0, ECX, 23, NONE},
    {"aes", 1, 0, ECX, 25, NONE},
    {"xsave", 1, 0, ECX, 26, YMM},
    {"avx", 1, 0, ECX, 28, YMM},
    {"f16c", 1, 0, ECX, 29, YMM},
    {"rdrnd", 1, 0, ECX, 30, NONE},
    {"fsgsbase", 7, 0, EBX, 0, NONE},
    {"bmi", 7, 0, EBX, 3, NONE},
    {"avx2", 7, 0, EBX, 5, YMM},
    {"bmi2", 7, 0, EBX, 8, NONE},
    {"invpcid", 7, 0, EBX, 10, NONE},
    {"rtm", 7, 0, EBX, 11, NONE},
    {"avx512f", 7, 0, EBX, 16, ZMM},
    {"avx512dq", 7, 0, EBX, 17, ZMM},
    {"rdseed", 7, 0, EBX, 18, NONE},
    {"adx", 7, 0, EBX, 19, NONE},
    {"avx512ifma", 7, 0, EBX, 21, ZMM},
    {"clflushopt", 7, 0, EBX, 23, NONE},
    {"clwb", 7, 0, EBX, 24, NONE},
    {"avx512cd", 7, 0, EBX, 28, ZMM},
    {"sha", 7, 0, EBX, 29, NONE},
    {"avx512bw", 7, 0, EBX, 30, ZMM},
    {"avx512vl", 7, 0, EBX, 31, ZMM},
    {"avx512vbmi", 7, 0, ECX, 1, ZMM},
    {"pku", 7, 0, ECX, 4, NONE},
    {"waitpkg", 7, 0, ECX, 5, NONE},
    {"avx512vbmi2", 7, 0, ECX, 6, ZMM},
    {"shstk", 7, 0, ECX, 7, NONE},
    {"gfni", 7, 0, ECX, 8, NONE},
    {"vaes", 7, 0, ECX, 9, YMM},
    {"vpclmulqdq", 7, 0, ECX, 10, YMM},
    {"avx512vnni", 7, 0, ECX, 11, ZMM},
    {"avx512bitalg", 7, 0, ECX, 12, ZMM},
    {"avx512vpopcntdq", 7, 0, ECX, 14, ZMM},
    {"rdpid", 7, 0, ECX, 22, NONE},
    {"cldemote", 7, 0, ECX, 25, NONE},
    {"movdiri", 7, 0, ECX, 27, NONE},
    {"movdir64b", 7, 0, ECX, 28, NONE},
    {"avx512vp2intersect", 7, 0, EDX, 8, ZMM},
    {"serialize", 7, 0, EDX, 14, NONE},
    {"amx-bf16", 7, 0, EDX, 22, TILES},
    {"avx512fp16", 7, 0, EDX, 23, ZMM},
    {"amx-tile", 7, 0, EDX, 24, TILES},
    {"amx-int8", 7, 0, EDX, 25, TILES},
    {"avxvnni", 7, 1, EAX, 4, YMM},
    {"avx512bf16", 7, 1, EAX, 5, ZMM},
    {"cmpccxadd", 7, 1, EAX, 7, NONE},
    {"amx-fp16", 7, 1, EAX, 21, TILES},
    {"avxifma", 7, 1, EAX, 23, YMM},
    {"avxvnniint8", 7, 1, EDX, 4, YMM},
    {"avxneconvert", 7, 1, EDX, 5, YMM},
    {"avxvnniint16", 7, 1, EDX, 10, YMM},
    {"prefetchi", 7, 1, EDX, 14, NONE},
    {"xsaveopt", 0xd, 1, EAX, 0, YMM},
    {"xsavec", 0xd, 1, EAX, 1, YMM},
    {"xsaves", 0xd, 1, EAX, 3, YMM},
    {"sahf", 0x80000001, 0, ECX, 0, NONE},
    {"lzcnt", 0x80000001, 0, ECX, 5, NONE},
    {"sse4a", 0x80000001, 0, ECX, 6, NONE},
    {"prfchw", 0x80000001, 0, ECX, 8, NONE},
    {"xop", 0x80000001, 0, ECX, 11, YMM},
    {"fma4", 0x80000001, 0, ECX, 16, YMM},
    {"tbm", 0x80000001, 0, ECX, 21, NONE},
    {"mwaitx", 0x80000001, 0, ECX, 29, NONE},
    {"64bit", 0x80000001, 0, EDX, 29, NONE},
    {"clzero", 0x80000008, 0, EBX, 0, NONE},
    {"rdpru", 0x80000008, 0, EBX, 4, NONE},
    {"wbnoinvd", 0x80000008, 0, EBX, 9, NONE},
};

// XCR0, the register state that the kernel saves; 0 when it cannot be asked.
static uint32_t saved_state(void) {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return 0;  // OSXSAVE
  __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  return a;
}

bool eyas_cpu_supports(const char* feature) {
  if (strcmp(feature, "x87") == 0) return true;
  for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); ++i) {
    if (strcmp(feature, features[i].name) != 0) continue;
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
