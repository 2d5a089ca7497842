// Sums of products with RISC-V's vectors, of any length from 128 bits on. Compilers that know no
// vector registers assemble these instructions but never use the registers, so none is named as
// changed.
#if defined(__riscv) && __riscv_xlen == 64

#include "ukernel/products.h"

// A panel is one group of four registers: v4 to v7 hold its columns, v8, v12, v16 and v20 the
// accumulators of up to four rows. `n` is the number of columns.
typedef struct place_t {
  char* acc[4];
  const char* a[4];
  const char* b;
  int64_t steps, a_step, b_step, n;
} place_t;

static place_t place_of(const eyas_uk_contract_t* call, const eyas_uk_block_t* block, int rows,
                        size_t n) {
  place_t place = {
      {0}, {0}, block->b, block->steps, call->loops[2].a_bytes, call->loops[2].b_bytes, (int64_t)n};
  for (int r = 0; r < 4; ++r) {  // what is behind the last row is the last row again
    const int row = r < rows ? r : rows - 1;
    place.acc[r] = block->acc + (size_t)row * call->columns * 4;
    place.a[r] = block->a + row * call->a_row_bytes;
  }
  return place;
}

#define ROWS_1(X) X(0, v8)
#define ROWS_2(X) ROWS_1(X) X(1, v12)
#define ROWS_4(X) ROWS_2(X) X(2, v16) X(3, v20)
#define LOAD(r, v) "vle32.v " #v ", (%[acc" #r "])\n"
#define STORE(r, v) "vse32.v " #v ", (%[acc" #r "])\n"
#define ADVANCE(r, v) "add %[a" #r "], %[a" #r "], %[a_step]\n"

// One block: the accumulators, the loop around BODY (a step of all rows), and back.
#define RUN(ROWS, BODY) \
  __asm__ volatile(                                                                             \
      ".option push\n.option arch, +v\n"                                                        \
      "vsetvli zero, %[n], e32, m4, ta, ma\n" ROWS(LOAD) "1:\n" BODY ROWS(ADVANCE)              \
      "add %[b], %[b], %[b_step]\naddi %[steps], %[steps], -1\nbnez %[steps], 1b\n"             \
      "vsetvli zero, %[n], e32, m4, ta, ma\n" ROWS(STORE) ".option pop\n"                       \
      : [a0] "+r"(p.a[0]), [a1] "+r"(p.a[1]), [a2] "+r"(p.a[2]), [a3] "+r"(p.a[3]),             \
        [b] "+r"(p.b), [steps] "+r"(p.steps)                                                    \
      : [acc0] "r"(p.acc[0]), [acc1] "r"(p.acc[1]), [acc2] "r"(p.acc[2]), [acc3] "r"(p.acc[3]), \
        [a_step] "r"(p.a_step), [b_step] "r"(p.b_step), [n] "r"(p.n)                            \
      : "memory", "t0", "t1", "t2", "t3", "ft0")

#define DEFINE_BLOCK(name, rows, n, BODY)                                           \
  static void block_##name(const eyas_uk_contract_t* call, eyas_uk_block_t block) { \
    for (; block.turns > 0; --block.turns) {                                        \
      place_t p = place_of(call, &block, rows, n);                                  \
      RUN(ROWS_##rows, BODY(ROWS_##rows));                                          \
      block.a += block.steps * call->loops[2].a_bytes + block.a_turn;               \
      block.b += block.steps * call->loops[2].b_bytes + block.b_turn;               \
    }                                                                               \
  }
#define DEFINE_CONTRACT(name, align, BODY)                                                \
  DEFINE_BLOCK(name##_1, 1, EYAS_VMVX_PANEL, BODY)                                        \
  DEFINE_BLOCK(name##_2, 2, EYAS_VMVX_PANEL, BODY)                                        \
  DEFINE_BLOCK(name##_4, 4, EYAS_VMVX_PANEL, BODY)                                        \
  DEFINE_BLOCK(name##_tail, 1, call->columns % EYAS_VMVX_PANEL, BODY)                     \
  void eyas_uk_contract_##name##_rvv(const eyas_uk_contract_t* call) {                    \
    static const eyas_uk_block_fn_t blocks[] = {0, block_##name##_1, block_##name##_2, 0, \
                                                block_##name##_4};                        \
    if (is_aligned(call, align)) {                                                        \
      contract(call, blocks, block_##name##_tail);                                        \
    } else {                                                                              \
      eyas_uk_contract_##name##_portable(call);                                           \
    }                                                                                     \
  }

// Processors may refuse vectors that are not aligned to their elements.
static int is_aligned(const eyas_uk_contract_t* call, int64_t align) {
  int64_t bits = (int64_t)(intptr_t)call->a | (int64_t)(intptr_t)call->b | call->a_row_bytes |
                 call->b_panel_bytes;
  for (int i = 0; i < 3; ++i) bits |= call->loops[i].a_bytes | call->loops[i].b_bytes;
  return (bits & (align - 1)) == 0;
}

static void contract(const eyas_uk_contract_t* given, const eyas_uk_block_fn_t* blocks,
                     eyas_uk_block_fn_t tail) {
  const eyas_uk_contract_t merged = eyas_uk_with_merged_loops(given), *call = &merged;
  const size_t whole = call->columns / EYAS_VMVX_PANEL;
  for (size_t row = 0, rows; row < call->rows; row += rows) {
    const size_t left = call->rows - row;
    rows = left >= 4 ? 4 : left >= 2 ? 2 : 1;
    eyas_uk_block_t block = {(char*)call->acc + row * call->columns * 4,
                             call->a + (int64_t)row * call->a_row_bytes,
                             call->b,
                             0,
                             0,
                             1,
                             0,
                             0};
    for (size_t panel = 0; panel < whole; ++panel) {
      eyas_uk_run_loops(call, block, 1, blocks[rows]);
      block.acc += EYAS_VMVX_PANEL * 4;
      block.b += call->b_panel_bytes;
    }
    for (size_t r = 0; call->columns % EYAS_VMVX_PANEL && r < rows; ++r) {
      eyas_uk_run_loops(call, block, 1, tail);
      block.acc += call->columns * 4;
      block.a += call->a_row_bytes;
    }
  }
}

#define F32_ROW(r, v) "flw ft0, 0(%[a" #r "])\nvfmacc.vf " #v ", ft0, v4\n"
#define F32_BODY(ROWS) "vle32.v v4, (%[b])\n" ROWS(F32_ROW)
DEFINE_CONTRACT(f32, 4, F32_BODY)

// Two bf16 of a column lie together, each the upper half of an f32: v4 has the first, v24 the
// second.
#define BF16_ROW(r, v)                      \
  "lhu t0, 0(%[a" #r "])\nlhu t1, 2(%[a" #r \
  "])\nslli t0, t0, 16\nslli t1, t1, 16\n"  \
  "fmv.w.x ft0, t0\nvfmacc.vf " #v ", ft0, v4\nfmv.w.x ft0, t1\nvfmacc.vf " #v ", ft0, v24\n"
#define BF16_BODY(ROWS)                                                                       \
  "vle32.v v4, (%[b])\nvsrl.vi v24, v4, 16\nvsll.vi v24, v24, 16\nvsll.vi v4, v4, 16\n" ROWS( \
      BF16_ROW)
DEFINE_CONTRACT(bf16, 4, BF16_BODY)

// Four bytes of a column lie together: v4 to v7 get one of each. Products have 16 bits (in v28),
// and are added into 32.
#define PRODUCT(k, field, r, v, LOAD_BYTE, MULTIPLY, ADD)                                    \
  LOAD_BYTE " t0, " #k "(%[a" #r "])\nvsetvli zero, %[n], e8, m1, ta, ma\n" MULTIPLY         \
            " v28, " #field ", t0\nvsetvli zero, %[n], e16, m2, ta, ma\n" ADD " " #v ", " #v \
            ", v28\n"
#define BYTES_ROW(r, v, LOAD_BYTE, MULTIPLY, ADD) \
  PRODUCT(0, v4, r, v, LOAD_BYTE, MULTIPLY, ADD)  \
  PRODUCT(1, v5, r, v, LOAD_BYTE, MULTIPLY, ADD)  \
  PRODUCT(2, v6, r, v, LOAD_BYTE, MULTIPLY, ADD)  \
  PRODUCT(3, v7, r, v, LOAD_BYTE, MULTIPLY, ADD)
#define BYTES_BODY(ROW, ROWS) \
  "vsetvli zero, %[n], e8, m1, ta, ma\nvlseg4e8.v v4, (%[b])\n" ROWS(ROW)
#define S8S8_ROW(r, v) BYTES_ROW(r, v, "lb", "vwmul.vx", "vwadd.wv")
#define U8U8_ROW(r, v) BYTES_ROW(r, v, "lbu", "vwmulu.vx", "vwaddu.wv")
#define U8S8_ROW(r, v) BYTES_ROW(r, v, "lbu", "vwmulsu.vx", "vwadd.wv")
#define S8S8_BODY(ROWS) BYTES_BODY(S8S8_ROW, ROWS)
#define U8U8_BODY(ROWS) BYTES_BODY(U8U8_ROW, ROWS)
#define U8S8_BODY(ROWS) BYTES_BODY(U8S8_ROW, ROWS)
DEFINE_CONTRACT(s8s8, 1, S8S8_BODY)
DEFINE_CONTRACT(u8u8, 1, U8U8_BODY)
DEFINE_CONTRACT(u8s8, 1, U8S8_BODY)

// Signed rows with unsigned columns: the instruction for that takes the unsigned factor from a
// scalar, so the row is spread into a vector first.
#define SPREAD(k, field, r, v)                                \
  "lb t0, " #k "(%[a" #r                                      \
  "])\nvsetvli zero, %[n], e8, m1, ta, ma\nvmv.v.x v24, t0\n" \
  "vwmulsu.vv v28, v24, " #field                              \
  "\nvsetvli zero, %[n], e16, m2, ta, ma\n"                   \
  "vwadd.wv " #v ", " #v ", v28\n"
#define S8U8_ROW(r, v) \
  SPREAD(0, v4, r, v) SPREAD(1, v5, r, v) SPREAD(2, v6, r, v) SPREAD(3, v7, r, v)
#define S8U8_BODY(ROWS) BYTES_BODY(S8U8_ROW, ROWS)
DEFINE_CONTRACT(s8u8, 1, S8U8_BODY)

const eyas_uk_products_t eyas_uk_products_rvv = {
    .name = "rvv",
    .width = 4,
    .contract = EYAS_UK_CONTRACTS(rvv, portable, rvv, rvv, rvv, portable),
    .window = EYAS_UK_WINDOWS(EYAS_UK_WINDOW_PORTABLE),
};

#else
typedef int eyas_uk_not_this_architecture_t;
#endif
