// What the sets of product microkernels share: the tables, and the portable functions that stand in
// where an instruction set has nothing better.
#ifndef EYAS_UKERNEL_PRODUCTS_H_
#define EYAS_UKERNEL_PRODUCTS_H_

#include "ukernel/ukernel.h"

extern const eyas_uk_products_t eyas_uk_products_portable;
#if defined(__x86_64__)
extern const eyas_uk_products_t eyas_uk_products_sse2, eyas_uk_products_avx2;
extern const eyas_uk_products_t eyas_uk_products_avx512, eyas_uk_products_avx512_vnni,
    eyas_uk_products_avx512_bf16;
#elif defined(__aarch64__)
extern const eyas_uk_products_t eyas_uk_products_neon, eyas_uk_products_neon_dotprod,
    eyas_uk_products_neon_i8mm;
#elif defined(__riscv) && __riscv_xlen == 64
extern const eyas_uk_products_t eyas_uk_products_rvv;
#endif

// Every set that this CPU runs, best first: for tests and benchmarks. Returns how many.
int eyas_uk_products_available(const eyas_uk_products_t** out, int capacity);

#define EYAS_UK_CONTRACT_DECLARE(set)                               \
  void eyas_uk_contract_f32_##set(const eyas_uk_contract_t* call);  \
  void eyas_uk_contract_f16_##set(const eyas_uk_contract_t* call);  \
  void eyas_uk_contract_bf16_##set(const eyas_uk_contract_t* call); \
  void eyas_uk_contract_s8s8_##set(const eyas_uk_contract_t* call); \
  void eyas_uk_contract_u8s8_##set(const eyas_uk_contract_t* call); \
  void eyas_uk_contract_s8u8_##set(const eyas_uk_contract_t* call); \
  void eyas_uk_contract_u8u8_##set(const eyas_uk_contract_t* call); \
  void eyas_uk_contract_f64_##set(const eyas_uk_contract_t* call);
EYAS_UK_CONTRACT_DECLARE(portable)
EYAS_UK_CONTRACT_DECLARE(sse2)
EYAS_UK_CONTRACT_DECLARE(avx2)
EYAS_UK_CONTRACT_DECLARE(avx512)
EYAS_UK_CONTRACT_DECLARE(vnni)
EYAS_UK_CONTRACT_DECLARE(neon)
EYAS_UK_CONTRACT_DECLARE(dotprod)
EYAS_UK_CONTRACT_DECLARE(i8mm)
EYAS_UK_CONTRACT_DECLARE(rvv)
#undef EYAS_UK_CONTRACT_DECLARE

// Numbers in memory at any alignment.
typedef float eyas_uk_f32_t __attribute__((aligned(1), may_alias));
typedef double eyas_uk_f64_t __attribute__((aligned(1), may_alias));
typedef int32_t eyas_uk_i32_t __attribute__((aligned(1), may_alias));
typedef uint16_t eyas_uk_u16_t __attribute__((aligned(1), may_alias));
typedef int16_t eyas_uk_i16_t __attribute__((aligned(1), may_alias));

#define EYAS_UK_WINDOW_DECLARE(name)                                       \
  void eyas_uk_window_##name##_f32_portable(const eyas_uk_window_t* call); \
  void eyas_uk_window_##name##_f64_portable(const eyas_uk_window_t* call); \
  void eyas_uk_window_##name##_i8_portable(const eyas_uk_window_t* call);  \
  void eyas_uk_window_##name##_i32_portable(const eyas_uk_window_t* call);
EYAS_UK_WINDOW_DECLARE(muladd)
EYAS_UK_WINDOW_DECLARE(add)
EYAS_UK_WINDOW_DECLARE(maximum)
EYAS_UK_WINDOW_DECLARE(minimum)
void eyas_uk_window_maxnum_f32_portable(const eyas_uk_window_t* call);
void eyas_uk_window_maxnum_f64_portable(const eyas_uk_window_t* call);
void eyas_uk_window_minnum_f32_portable(const eyas_uk_window_t* call);
void eyas_uk_window_minnum_f64_portable(const eyas_uk_window_t* call);
#undef EYAS_UK_WINDOW_DECLARE

// The tables of a set. Contractions: which set serves f32, f16, bf16, bytes of the same and of
// mixed signs, and f64.
#define EYAS_UK_CONTRACTS(f32, f16, bf16, same, mixed, f64)      \
  {                                                              \
      [EYAS_VMVX_CONTRACT_F32] = eyas_uk_contract_f32_##f32,     \
      [EYAS_VMVX_CONTRACT_F16] = eyas_uk_contract_f16_##f16,     \
      [EYAS_VMVX_CONTRACT_BF16] = eyas_uk_contract_bf16_##bf16,  \
      [EYAS_VMVX_CONTRACT_S8S8] = eyas_uk_contract_s8s8_##same,  \
      [EYAS_VMVX_CONTRACT_U8S8] = eyas_uk_contract_u8s8_##mixed, \
      [EYAS_VMVX_CONTRACT_S8U8] = eyas_uk_contract_s8u8_##mixed, \
      [EYAS_VMVX_CONTRACT_U8U8] = eyas_uk_contract_u8u8_##same,  \
      [EYAS_VMVX_CONTRACT_F64] = eyas_uk_contract_f64_##f64,     \
  }

// Windows: OF_F32(name) is the set's own for f32. Other types, and what no network pools by, are in
// the portable set alone.
#define EYAS_UK_WINDOWS(OF_F32)                                                      \
  {                                                                                  \
      [EYAS_VMVX_WINDOW_MULADD] = EYAS_UK_WINDOW(OF_F32, muladd),                    \
      [EYAS_VMVX_WINDOW_ADD] = EYAS_UK_WINDOW(OF_F32, add),                          \
      [EYAS_VMVX_WINDOW_MAXIMUM] = EYAS_UK_WINDOW(OF_F32, maximum),                  \
      [EYAS_VMVX_WINDOW_MINIMUM] = EYAS_UK_WINDOW(EYAS_UK_WINDOW_PORTABLE, minimum), \
      [EYAS_VMVX_WINDOW_MAXNUM] = EYAS_UK_WINDOW_FLOAT(maxnum),                      \
      [EYAS_VMVX_WINDOW_MINNUM] = EYAS_UK_WINDOW_FLOAT(minnum),                      \
  }
#define EYAS_UK_WINDOW(OF_F32, name)                            \
  {[EYAS_VMVX_TYPE_F32] = OF_F32(name),                         \
   [EYAS_VMVX_TYPE_F64] = eyas_uk_window_##name##_f64_portable, \
   [EYAS_VMVX_TYPE_I8] = eyas_uk_window_##name##_i8_portable,   \
   [EYAS_VMVX_TYPE_I32] = eyas_uk_window_##name##_i32_portable}
#define EYAS_UK_WINDOW_FLOAT(name)                              \
  {[EYAS_VMVX_TYPE_F32] = eyas_uk_window_##name##_f32_portable, \
   [EYAS_VMVX_TYPE_F64] = eyas_uk_window_##name##_f64_portable}
#define EYAS_UK_WINDOW_PORTABLE(name) eyas_uk_window_##name##_f32_portable

#define EYAS_UK_INLINE static inline __attribute__((always_inline))

// The compiler must not see how a pointer or vector came about: it then keeps it in a register
// instead of computing or loading it again.
#define EYAS_UK_OPAQUE(value, constraint) __asm__("" : "+" constraint(value))

// Rows and panels by threes, so that few registers address many: base, base + s, base + 2 s.
EYAS_UK_INLINE const char* eyas_uk_at(const char* const* bases, int i, int64_t step) {
  return bases[i / 3] + (i % 3 == 0 ? 0 : i % 3 == 1 ? step : 2 * step);
}

// Some steps of the innermost loop, then the same again so many `turns`, each moved on from the end
// of the one before; at first 0 for blocks that know one turn alone. While they run, what lies
// `ahead` bytes behind the panels is asked for.
typedef struct eyas_uk_block_t {
  char* acc;
  const char *a, *b;
  int64_t steps, ahead;
  int64_t turns, a_turn, b_turn;
} eyas_uk_block_t;

typedef void (*eyas_uk_block_fn_t)(const eyas_uk_contract_t*, eyas_uk_block_t);

// Rows that are a multiple of 2 KiB apart lie in one or two sets of a first-level cache whose ways
// are 4 KiB: of more than 6 at a time, each would push out another before its line is read to the
// end.
enum { EYAS_UK_CROWDED_ROWS = 6 };
EYAS_UK_INLINE int eyas_uk_crowds(const eyas_uk_contract_t* call) {
  return call->rows > 8 && call->a_row_bytes % 2048 == 0;
}

// All steps of a block of panels.
void eyas_uk_run_loops(const eyas_uk_contract_t* call, eyas_uk_block_t block, int64_t panels,
                       eyas_uk_block_fn_t run);

// The same steps in the same order with fewer loops: one that runs once, or whose steps go on where
// those inside it end, joins them.
eyas_uk_contract_t eyas_uk_with_merged_loops(const eyas_uk_contract_t* call);

#endif  // EYAS_UKERNEL_PRODUCTS_H_
