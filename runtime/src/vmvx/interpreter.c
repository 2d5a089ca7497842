// The loop. Every instruction's first cell is the address of its handler, and each handler jumps to
// the next one by itself: there is no central switch, and the CPU's branch predictor sees a jump of
// its own behind each handler.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "vmvx/handlers.h"
#include "vmvx/local.h"
#include "vmvx/memory.h"
#include "vmvx/scalar.h"
#include "vmvx/tile.h"

#pragma GCC diagnostic ignored "-Wpedantic"  // labels as values

#define U(n) (at[1].u[n])
#define S(n) (*(int64_t*)((char*)scalars + U(n)))
#define SU(n) ((uint64_t)S(n))
#define F32(n) eyas_vmvx_f32(S(n))
#define F64(n) eyas_vmvx_f64(S(n))
#define BITS_F32(value) eyas_vmvx_f32_bits(value)
#define BITS_F64(value) eyas_vmvx_f64_bits(value)

#define NEXT(cells)     \
  do {                  \
    at += (cells);      \
    goto * at->handler; \
  } while (0)
#define JUMP(cell)       \
  do {                   \
    at = (cell)->target; \
    goto * at->handler;  \
  } while (0)
#define FAIL(why)                  \
  do {                             \
    reason = EYAS_VMVX_FAIL_##why; \
    goto failed;                   \
  } while (0)

// An instruction with one cell of operands whose result is an expression.
#define COMPUTE(name, expression) \
  H_##name : {                    \
    S(0) = (int64_t)(expression); \
    NEXT(2);                      \
  }

#define FLOATS(T, c_type, suffix)                                            \
  COMPUTE(FADD_##T, BITS_##T(T(1) + T(2)))                                   \
  COMPUTE(FSUB_##T, BITS_##T(T(1) - T(2)))                                   \
  COMPUTE(FMUL_##T, BITS_##T(T(1) * T(2)))                                   \
  COMPUTE(FDIV_##T, BITS_##T(T(1) / T(2)))                                   \
  COMPUTE(FMINIMUM_##T, BITS_##T(eyas_vmvx_minimum_##c_type(T(1), T(2))))    \
  COMPUTE(FMAXIMUM_##T, BITS_##T(-eyas_vmvx_minimum_##c_type(-T(1), -T(2)))) \
  COMPUTE(FMINNUM_##T, BITS_##T(eyas_vmvx_minnum_##c_type(T(1), T(2))))      \
  COMPUTE(FMAXNUM_##T, BITS_##T(-eyas_vmvx_minnum_##c_type(-T(1), -T(2))))   \
  COMPUTE(FCOPYSIGN_##T, BITS_##T(copysign##suffix(T(1), T(2))))             \
  COMPUTE(FNEG_##T, BITS_##T(-T(1)))                                         \
  COMPUTE(FABS_##T, BITS_##T(fabs##suffix(T(1))))                            \
  COMPUTE(FSQRT_##T, BITS_##T(sqrt##suffix(T(1))))                           \
  COMPUTE(FOEQ_##T, T(1) == T(2))                                            \
  COMPUTE(FOGT_##T, T(1) > T(2))                                             \
  COMPUTE(FOGE_##T, T(1) >= T(2))                                            \
  COMPUTE(FOLT_##T, T(1) < T(2))                                             \
  COMPUTE(FOLE_##T, T(1) <= T(2))                                            \
  COMPUTE(FONE_##T, T(1) < T(2) || T(1) > T(2))                              \
  COMPUTE(FORD_##T, !isunordered(T(1), T(2)))                                \
  COMPUTE(FUEQ_##T, !(T(1) < T(2) || T(1) > T(2)))                           \
  COMPUTE(FUGT_##T, !(T(1) <= T(2)))                                         \
  COMPUTE(FUGE_##T, !(T(1) < T(2)))                                          \
  COMPUTE(FULT_##T, !(T(1) >= T(2)))                                         \
  COMPUTE(FULE_##T, !(T(1) > T(2)))                                          \
  COMPUTE(FUNE_##T, T(1) != T(2))                                            \
  COMPUTE(FUNO_##T, isunordered(T(1), T(2)))                                 \
  COMPUTE(FFMA_##T, BITS_##T(fma##suffix(T(1), T(2), T(3))))                 \
  COMPUTE(FSITOFP_##T, BITS_##T((c_type)S(1)))                               \
  COMPUTE(FUITOFP_##T, BITS_##T((c_type)SU(1)))                              \
  COMPUTE(FFPTOSI_##T, eyas_vmvx_to_signed(T(1), U(2)))                      \
  COMPUTE(FFPTOUI_##T, eyas_vmvx_to_unsigned(T(1), U(2)))                    \
  H_SCALAR_UNARY_##T : {                                                     \
    c_type a = T(1), result;                                                 \
    ((eyas_uk_unary_t)at[2].function)(&result, &a, 1);                       \
    S(0) = BITS_##T(result);                                                 \
    NEXT(3);                                                                 \
  }                                                                          \
  H_SCALAR_BINARY_##T : {                                                    \
    c_type a = T(1), b = T(2), result;                                       \
    ((eyas_uk_binary_t)at[2].function)(&result, &a, &b, 1);                  \
    S(0) = BITS_##T(result);                                                 \
    NEXT(3);                                                                 \
  }

// `load` has the offset in a cell behind; `load_at` counts elements.
#define LOADS(M, c_type, convert)                                                               \
  H_LOAD_##M : {                                                                                \
    c_type value;                                                                               \
    const char* memory =                                                                        \
        eyas_vmvx_read(buffers, frame->buffer_count, SU(1) + (uint64_t)at[2].i, sizeof(value)); \
    if (EYAS_VMVX_UNLIKELY(!memory)) FAIL(BOUNDS);                                              \
    memcpy(&value, memory, sizeof(value));                                                      \
    S(0) = convert(value);                                                                      \
    NEXT(3);                                                                                    \
  }                                                                                             \
  H_LOAD_AT_##M : {                                                                             \
    c_type value;                                                                               \
    const char* memory = eyas_vmvx_read(buffers, frame->buffer_count,                           \
                                        SU(1) + SU(2) * sizeof(value), sizeof(value));          \
    if (EYAS_VMVX_UNLIKELY(!memory)) FAIL(BOUNDS);                                              \
    memcpy(&value, memory, sizeof(value));                                                      \
    S(0) = convert(value);                                                                      \
    NEXT(2);                                                                                    \
  }

#define STORES(M, c_type, convert)                                                               \
  H_STORE_##M : {                                                                                \
    c_type value = convert(S(0));                                                                \
    uint64_t address = SU(1) + (uint64_t)at[2].i;                                                \
    char* memory = eyas_vmvx_write(buffers, frame->buffer_count, address, sizeof(value));        \
    if (EYAS_VMVX_UNLIKELY(!memory)) {                                                           \
      if (eyas_vmvx_read(buffers, frame->buffer_count, address, sizeof(value))) FAIL(READ_ONLY); \
      FAIL(BOUNDS);                                                                              \
    }                                                                                            \
    memcpy(memory, &value, sizeof(value));                                                       \
    NEXT(3);                                                                                     \
  }                                                                                              \
  H_STORE_AT_##M : {                                                                             \
    c_type value = convert(S(0));                                                                \
    uint64_t address = SU(1) + SU(2) * sizeof(value);                                            \
    char* memory = eyas_vmvx_write(buffers, frame->buffer_count, address, sizeof(value));        \
    if (EYAS_VMVX_UNLIKELY(!memory)) {                                                           \
      if (eyas_vmvx_read(buffers, frame->buffer_count, address, sizeof(value))) FAIL(READ_ONLY); \
      FAIL(BOUNDS);                                                                              \
    }                                                                                            \
    memcpy(memory, &value, sizeof(value));                                                       \
    NEXT(2);                                                                                     \
  }

// A tile instruction that is a function; `cells` is its length.
#define CALL(name, function, cells)                   \
  H_##name : {                                        \
    reason = function(frame, at);                     \
    if (EYAS_VMVX_UNLIKELY(reason != 0)) goto failed; \
    NEXT(cells);                                      \
  }
#define CALL_SAFE(name, function, cells) \
  H_##name : {                           \
    function(frame, at);                 \
    NEXT(cells);                         \
  }

#define SPEND()                                          \
  do {                                                   \
    if (EYAS_VMVX_UNLIKELY(--budget == 0)) FAIL(BUDGET); \
  } while (0)

int eyas_vmvx_interpret(eyas_vmvx_frame_t* frame, const eyas_vmvx_cell_t** out_at,
                        const void* const** out_handlers) {
  static const void* const handlers[EYAS_VMVX_HANDLER_COUNT] = {
#define ADDRESS(name) [EYAS_VMVX_H_##name] = &&H_##name,
      EYAS_VMVX_HANDLERS(ADDRESS)
#undef ADDRESS
  };
  if (!frame) {
    *out_handlers = handlers;
    return 0;
  }
  const eyas_vmvx_cell_t* at = frame->function->cells + frame->function->entry;
  int64_t* const scalars = frame->scalars;
  const eyas_vmvx_buffer_t* const buffers = frame->buffers;
  uint64_t budget = frame->budget;
  int reason = 0;
  goto * at->handler;

  // Handlers are labels with a body of their own.
  // clang-format off
  H_CONST : {
    S(0) = at[2].i;
    NEXT(3);
  }
  COMPUTE(MOV, S(1))
  COMPUTE(ADD, SU(1) + SU(2))
  COMPUTE(SUB, SU(1) - SU(2))
  COMPUTE(MUL, SU(1) * SU(2))
  COMPUTE(DIVS, eyas_vmvx_divs(S(1), S(2)))
  COMPUTE(DIVU, SU(2) ? SU(1) / SU(2) : SU(1))
  COMPUTE(REMS, eyas_vmvx_rems(S(1), S(2)))
  COMPUTE(REMU, SU(2) ? SU(1) % SU(2) : 0)
  COMPUTE(MINS, S(1) < S(2) ? S(1) : S(2))
  COMPUTE(MAXS, S(1) > S(2) ? S(1) : S(2))
  COMPUTE(MINU, SU(1) < SU(2) ? SU(1) : SU(2))
  COMPUTE(MAXU, SU(1) > SU(2) ? SU(1) : SU(2))
  COMPUTE(AND, S(1) & S(2))
  COMPUTE(OR, S(1) | S(2))
  COMPUTE(XOR, S(1) ^ S(2))
  COMPUTE(SHL, SU(2) < 64 ? SU(1) << SU(2) : 0)
  COMPUTE(SHRS, S(1) >> (SU(2) < 64 ? SU(2) : 63))
  COMPUTE(SHRU, SU(2) < 64 ? SU(1) >> SU(2) : 0)
  COMPUTE(EQ, S(1) == S(2))
  COMPUTE(NE, S(1) != S(2))
  COMPUTE(LTS, S(1) < S(2))
  COMPUTE(LES, S(1) <= S(2))
  COMPUTE(LTU, SU(1) < SU(2))
  COMPUTE(LEU, SU(1) <= SU(2))
  COMPUTE(SELECT, S(1) ? S(2) : S(3))
  COMPUTE(SEXT, (int64_t)(SU(1) << (64 - U(2))) >> (64 - U(2)))
  COMPUTE(ZEXT, SU(1) & (((uint64_t)1 << U(2)) - 1))
  COMPUTE(CLZ, eyas_vmvx_clz(SU(1), U(2)))
  COMPUTE(CTZ, eyas_vmvx_ctz(SU(1), U(2)))
  COMPUTE(POPCOUNT, __builtin_popcountll(SU(1)))
  COMPUTE(MULHU, eyas_vmvx_mulhu(SU(1), SU(2)))
  COMPUTE(MULHS, eyas_vmvx_mulhs(S(1), S(2)))
  COMPUTE(MADD, SU(1) * SU(2) + SU(3))

  H_BR : { JUMP(&at[1]); }
  H_BR_BACK : {
    SPEND();
    JUMP(&at[1]);
  }
  H_BR_IF : {
    if (S(0)) JUMP(&at[2]);
    NEXT(3);
  }
  H_BR_IF_BACK : {
    if (S(0)) {
      SPEND();
      JUMP(&at[2]);
    }
    NEXT(3);
  }
  H_BR_IFNOT : {
    if (!S(0)) JUMP(&at[2]);
    NEXT(3);
  }
  H_BR_IFNOT_BACK : {
    if (!S(0)) {
      SPEND();
      JUMP(&at[2]);
    }
    NEXT(3);
  }
  H_LOOP : {
    int64_t index = (int64_t)(SU(0) + SU(1));
    S(0) = index;
    if (index < S(2)) JUMP(&at[2]);
    NEXT(3);
  }
  H_LOOP_BACK : {
    int64_t index = (int64_t)(SU(0) + SU(1));
    S(0) = index;
    if (index < S(2)) {
      SPEND();
      JUMP(&at[2]);
    }
    NEXT(3);
  }
  H_CHECK : {
    if (EYAS_VMVX_UNLIKELY(!S(0))) FAIL(DATA);
    NEXT(2);
  }
  H_RETURN : { return 0; }

  COMPUTE(WORKGROUP, frame->workgroup->id[U(1)])
  COMPUTE(CONSTANT, frame->dispatch->constants[U(1)])
  COMPUTE(BINDING_BYTES, buffers[U(1)].size)
  H_LOCAL : {
    int64_t address = 0;
    reason = eyas_vmvx_local_take(frame, S(1), &budget, &address);
    if (EYAS_VMVX_UNLIKELY(reason != 0)) goto failed;
    S(0) = address;
    NEXT(2);
  }
  H_RELEASE : {
    eyas_vmvx_local_release(frame, S(0));
    NEXT(2);
  }

  LOADS(U8, uint8_t, (int64_t))
  LOADS(I8, int8_t, (int64_t))
  LOADS(U16, uint16_t, (int64_t))
  LOADS(I16, int16_t, (int64_t))
  LOADS(U32, uint32_t, (int64_t))
  LOADS(I32, int32_t, (int64_t))
  LOADS(I64, int64_t, (int64_t))
  LOADS(F16, uint16_t, eyas_vmvx_from_f16)
  LOADS(BF16, uint16_t, eyas_vmvx_from_bf16)
  STORES(I8, int8_t, (int8_t))
  STORES(I16, int16_t, (int16_t))
  STORES(I32, int32_t, (int32_t))
  STORES(I64, int64_t, (int64_t))
  STORES(F16, uint16_t, (uint16_t)eyas_vmvx_to_f16)
  STORES(BF16, uint16_t, (uint16_t)eyas_vmvx_to_bf16)

  H_COPY : {
    reason = eyas_vmvx_copy(frame, S(0), S(1), S(2), &budget);
    if (EYAS_VMVX_UNLIKELY(reason != 0)) goto failed;
    NEXT(2);
  }
  H_FILL : {
    reason = eyas_vmvx_fill(frame, S(0), S(1), S(2), U(3), &budget);
    if (EYAS_VMVX_UNLIKELY(reason != 0)) goto failed;
    NEXT(2);
  }
  H_PREFETCH : {
    eyas_vmvx_prefetch(frame, SU(0), S(1));
    NEXT(2);
  }

  FLOATS(F32, float, f)
  FLOATS(F64, double, )
  COMPUTE(FEXTF, BITS_F64((double)F32(1)))
  COMPUTE(FTRUNCF, BITS_F32((float)F64(1)))
  COMPUTE(FBITS_F16, (int16_t)eyas_vmvx_to_f16(S(1)))
  COMPUTE(FFROM_F16, eyas_vmvx_from_f16((uint16_t)S(1)))
  COMPUTE(FBITS_BF16, (int16_t)eyas_vmvx_to_bf16(S(1)))
  COMPUTE(FFROM_BF16, eyas_vmvx_from_bf16((uint16_t)S(1)))

  H_SHAPE : {
    reason = eyas_vmvx_set_shape(frame, S(0), S(1));
    if (EYAS_VMVX_UNLIKELY(reason != 0)) goto failed;
    NEXT(2);
  }
  CALL(TLOAD, eyas_vmvx_tile_load, 4)
  CALL(TLOAD_INSIDE, eyas_vmvx_tile_load_inside, 5)
  CALL(TSTORE, eyas_vmvx_tile_store, 4)
  CALL(TGATHER, eyas_vmvx_tile_gather, 4)
  CALL(TLOAD_ROWS, eyas_vmvx_tile_load_rows, 4)
  H_TFILL : {
    eyas_vmvx_tile_fill(eyas_vmvx_tile(frame, U(0)), S(1), U(2), frame->counts[U(3)]);
    NEXT(2);
  }
  CALL_SAFE(TINDEX, eyas_vmvx_tile_index, 3)
  CALL_SAFE(TMOV, eyas_vmvx_tile_mov, 2)
  H_TEXTRACT : {
    uint64_t index = SU(2);
    if (EYAS_VMVX_UNLIKELY(index >= EYAS_VMVX_MAX_ELEMENTS)) FAIL(INDEX);
    S(0) = eyas_vmvx_extract(eyas_vmvx_tile(frame, U(1)), index, U(3));
    NEXT(2);
  }
  H_TUNARY : {
    ((eyas_uk_unary_t)at[2].function)(eyas_vmvx_tile(frame, U(0)), eyas_vmvx_tile(frame, U(1)),
                                      frame->counts[U(2)]);
    NEXT(3);
  }
  CALL_SAFE(TUNARY_ANY, eyas_vmvx_tile_unary, 4)
  H_TBINARY : {
    ((eyas_uk_binary_t)at[2].function)(eyas_vmvx_tile(frame, U(0)), eyas_vmvx_tile(frame, U(1)),
                                       eyas_vmvx_tile(frame, U(2)), frame->counts[U(3)]);
    NEXT(3);
  }
  CALL_SAFE(TBINARY_ANY, eyas_vmvx_tile_binary, 4)
  H_TTERNARY : {
    void* dst = eyas_vmvx_tile(frame, U(0));
    const void *a = eyas_vmvx_tile(frame, U(1)), *b = eyas_vmvx_tile(frame, U(2)),
               *c = eyas_vmvx_tile(frame, U(3));
    size_t count = frame->counts[at[2].u[0]];
    if (at[2].u[1]) {
      ((eyas_uk_pick_t)at[3].function)(dst, a, b, c, count);
    } else {
      ((eyas_uk_ternary_t)at[3].function)(dst, a, b, c, count);
    }
    NEXT(4);
  }
  CALL_SAFE(TTERNARY_ANY, eyas_vmvx_tile_ternary, 4)
  CALL_SAFE(TREDUCE, eyas_vmvx_tile_reduce, 3)
  H_TROWS : {
    ((eyas_uk_rows_t)at[2].function)((float*)eyas_vmvx_tile(frame, U(0)),
                                     (const float*)eyas_vmvx_tile(frame, U(1)), frame->rows,
                                     frame->columns, U(3) ? F32(2) : 0.0f);
    NEXT(3);
  }
  H_TCONTRACT : {
    frame->budget = budget;
    reason = eyas_vmvx_tile_contract(frame, at);
    if (EYAS_VMVX_UNLIKELY(reason != 0)) goto failed;
    budget = frame->budget;
    NEXT(6);
  }
  H_TWINDOW : {
    frame->budget = budget;
    reason = eyas_vmvx_tile_window(frame, at);
    if (EYAS_VMVX_UNLIKELY(reason != 0)) goto failed;
    budget = frame->budget;
    NEXT(5);
  }
  // clang-format on

failed:
  *out_at = at;
  return reason;
}
