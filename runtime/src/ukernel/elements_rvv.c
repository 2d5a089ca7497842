// RISC-V with vectors: arithmetic of f32, as assembly, since compilers of today's distributions
// have neither intrinsics nor a vectoriser for them. Vectors may have any length; eight registers
// are one.
#include "ukernel/elements.h"

#if defined(__riscv) && __riscv_xlen == 64

// While elements are left: loads, the instruction, a store. No compiler here uses vector registers,
// so that none need be named as overwritten.
#define LOOP(LOADS, INSTRUCTION)                                                  \
  ".option push\n.option arch, +v\n"                                              \
  "1:\nvsetvli t0, %[count], e32, m8, ta, ma\nslli t1, t0, 2\n" LOADS INSTRUCTION \
  "\nvse32.v v0, (%[dst])\n"                                                      \
  "add %[dst], %[dst], t1\nsub %[count], %[count], t0\nbnez %[count], 1b\n"       \
  ".option pop\n"
#define LOAD(vector, name) "vle32.v " vector ", (%[" name "])\nadd %[" name "], %[" name "], t1\n"

#define DEFINE_VV(name, instruction)                                                  \
  static void name##_vv(void* dst, const void* a, const void* b, size_t count) {      \
    __asm__ volatile(LOOP(LOAD("v0", "a") LOAD("v8", "b"), instruction " v0, v0, v8") \
                     : [dst] "+r"(dst), [a] "+r"(a), [b] "+r"(b), [count] "+r"(count) \
                     :                                                                \
                     : "memory", "t0", "t1");                                         \
  }
// `a` runs along and `b` is one element.
#define DEFINE_REPEATED(name, instruction)                                   \
  static void name(void* dst, const void* a, const void* b, size_t count) {  \
    const float single = *(const float*)b;                                   \
    __asm__ volatile(LOOP(LOAD("v0", "a"), instruction " v0, v0, %[single]") \
                     : [dst] "+r"(dst), [a] "+r"(a), [count] "+r"(count)     \
                     : [single] "f"(single)                                  \
                     : "memory", "t0", "t1");                                \
  }
#define DEFINE_SWAPPED(name, other)                                         \
  static void name(void* dst, const void* a, const void* b, size_t count) { \
    other(dst, b, a, count);                                                \
  }

DEFINE_VV(add, "vfadd.vv")
DEFINE_REPEATED(add_vs, "vfadd.vf")
DEFINE_SWAPPED(add_sv, add_vs)
DEFINE_VV(sub, "vfsub.vv")
DEFINE_REPEATED(sub_vs, "vfsub.vf")
DEFINE_REPEATED(sub_of, "vfrsub.vf")
DEFINE_SWAPPED(sub_sv, sub_of)
DEFINE_VV(mul, "vfmul.vv")
DEFINE_REPEATED(mul_vs, "vfmul.vf")
DEFINE_SWAPPED(mul_sv, mul_vs)
DEFINE_VV(div, "vfdiv.vv")
DEFINE_REPEATED(div_vs, "vfdiv.vf")
DEFINE_REPEATED(div_of, "vfrdiv.vf")
DEFINE_SWAPPED(div_sv, div_of)
// The instructions are `minnum` and `maxnum`: the other operand when one is NaN.
DEFINE_VV(minnum, "vfmin.vv")
DEFINE_REPEATED(minnum_vs, "vfmin.vf")
DEFINE_SWAPPED(minnum_sv, minnum_vs)
DEFINE_VV(maxnum, "vfmax.vv")
DEFINE_REPEATED(maxnum_vs, "vfmax.vf")
DEFINE_SWAPPED(maxnum_sv, maxnum_vs)

// `maximum` with a bound that is a number, as in ReLU: what is NaN stays.
static void maximum_vs(void* dst, const void* a, const void* b, size_t count) {
  const float single = *(const float*)b;
  __asm__ volatile(LOOP(LOAD("v8", "a"),
                        "vfmax.vf v16, v8, %[single]\nvmfne.vv v0, v8, v8\n"
                        "vmerge.vvm v16, v16, v8, v0\nvmv8r.v v0, v16")
                   : [dst] "+r"(dst), [a] "+r"(a), [count] "+r"(count)
                   : [single] "f"(single)
                   : "memory", "t0", "t1");
}
static void maximum_of_bound(void* dst, const void* a, const void* b, size_t count) {
  const float single = *(const float*)b;
  if (single == single) {
    maximum_vs(dst, a, b, count);
  } else {  // NaN everywhere
    add_vs(dst, a, b, count);
  }
}
DEFINE_SWAPPED(maximum_of_first_bound, maximum_of_bound)

static void square_root(void* dst, const void* a, size_t count) {
  __asm__ volatile(LOOP(LOAD("v0", "a"), "vfsqrt.v v0, v0")
                   : [dst] "+r"(dst), [a] "+r"(a), [count] "+r"(count)
                   :
                   : "memory", "t0", "t1");
}

static void fma_f32(void* dst, const void* a, const void* b, const void* c, size_t count) {
  __asm__ volatile(LOOP(LOAD("v0", "a") LOAD("v8", "b") LOAD("v16", "c"), "vfmadd.vv v0, v8, v16")
                   : [dst] "+r"(dst), [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [count] "+r"(count)
                   :
                   : "memory", "t0", "t1");
}

void eyas_uk_elements_fill_rvv(eyas_uk_elements_t* table) {
#define PLACE(OP, name)                                      \
  table->binary[EYAS_VMVX_BINARY_##OP][EYAS_VMVX_TYPE_F32] = \
      (eyas_uk_binary_set_t){name##_vv, name##_vs, name##_sv};
  PLACE(ADD, add)
  PLACE(SUB, sub)
  PLACE(MUL, mul)
  PLACE(DIV, div)
  PLACE(MINNUM, minnum)
  PLACE(MAXNUM, maxnum)
  table->binary[EYAS_VMVX_BINARY_MAXIMUM][EYAS_VMVX_TYPE_F32].vs = maximum_of_bound;
  table->binary[EYAS_VMVX_BINARY_MAXIMUM][EYAS_VMVX_TYPE_F32].sv = maximum_of_first_bound;
  table->unary[EYAS_VMVX_UNARY_SQRT][EYAS_VMVX_TYPE_F32] = square_root;
  table->fma[EYAS_VMVX_TYPE_F32] = fma_f32;
}

#endif
