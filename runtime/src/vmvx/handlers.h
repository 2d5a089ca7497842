// The instructions as the interpreter runs them. An instruction of the table becomes one of these
// when it is decoded; variants that differ in a memory type or in the shapes of operands have
// handlers of their own, so that nothing is decided again when it runs.
#ifndef EYAS_VMVX_HANDLERS_H_
#define EYAS_VMVX_HANDLERS_H_

// Tables.
// clang-format off

// One handler an instruction, operands as in the table: 16-bit ones packed, then the 64-bit one.
#define EYAS_VMVX_PLAIN_HANDLERS(X)                                                            \
  X(CONST) X(MOV) X(ADD) X(SUB) X(MUL) X(DIVS) X(DIVU) X(REMS) X(REMU) X(MINS) X(MAXS) X(MINU)  \
  X(MAXU) X(AND) X(OR) X(XOR) X(SHL) X(SHRS) X(SHRU) X(EQ) X(NE) X(LTS) X(LES) X(LTU) X(LEU)    \
  X(SELECT) X(SEXT) X(ZEXT) X(CLZ) X(CTZ) X(POPCOUNT) X(MULHU) X(MULHS) X(MADD)                 \
  X(BR) X(BR_IF) X(BR_IFNOT) X(LOOP) X(CHECK) X(RETURN)                                         \
  X(WORKGROUP) X(CONSTANT) X(BINDING_BYTES) X(LOCAL) X(RELEASE) X(COPY) X(PREFETCH)             \
  X(SHAPE) EYAS_VMVX_FLOAT_HANDLERS(X, F32) EYAS_VMVX_FLOAT_HANDLERS(X, F64)                    \
  X(FEXTF) X(FTRUNCF) X(FBITS_F16) X(FFROM_F16) X(FBITS_BF16) X(FFROM_BF16)

#define EYAS_VMVX_FLOAT_HANDLERS(X, T)                                                         \
  X(FADD_##T) X(FSUB_##T) X(FMUL_##T) X(FDIV_##T) X(FMINIMUM_##T) X(FMAXIMUM_##T)               \
  X(FMINNUM_##T) X(FMAXNUM_##T) X(FCOPYSIGN_##T) X(FNEG_##T) X(FABS_##T) X(FSQRT_##T)           \
  X(FOEQ_##T) X(FOGT_##T) X(FOGE_##T) X(FOLT_##T) X(FOLE_##T) X(FONE_##T) X(FORD_##T)           \
  X(FUEQ_##T) X(FUGT_##T) X(FUGE_##T) X(FULT_##T) X(FULE_##T) X(FUNE_##T) X(FUNO_##T)           \
  X(FFMA_##T) X(FSITOFP_##T) X(FUITOFP_##T) X(FFPTOSI_##T) X(FFPTOUI_##T)

// What the decoder chooses.
#define EYAS_VMVX_CHOSEN_HANDLERS(X)                                                           \
  X(BR_BACK) X(BR_IF_BACK) X(BR_IFNOT_BACK) X(LOOP_BACK)                                        \
  X(LOAD_U8) X(LOAD_I8) X(LOAD_U16) X(LOAD_I16) X(LOAD_U32) X(LOAD_I32) X(LOAD_I64)             \
  X(LOAD_F16) X(LOAD_BF16)                                                                      \
  X(LOAD_AT_U8) X(LOAD_AT_I8) X(LOAD_AT_U16) X(LOAD_AT_I16) X(LOAD_AT_U32) X(LOAD_AT_I32)       \
  X(LOAD_AT_I64) X(LOAD_AT_F16) X(LOAD_AT_BF16)                                                 \
  X(STORE_I8) X(STORE_I16) X(STORE_I32) X(STORE_I64) X(STORE_F16) X(STORE_BF16)                 \
  X(STORE_AT_I8) X(STORE_AT_I16) X(STORE_AT_I32) X(STORE_AT_I64) X(STORE_AT_F16)                \
  X(STORE_AT_BF16) X(FILL)                                                                      \
  X(SCALAR_UNARY_F32) X(SCALAR_UNARY_F64) X(SCALAR_BINARY_F32) X(SCALAR_BINARY_F64)             \
  X(TLOAD) X(TLOAD_INSIDE) X(TSTORE) X(TGATHER) X(TLOAD_ROWS) X(TFILL) X(TINDEX) X(TMOV)        \
  X(TEXTRACT)                                                                                   \
  X(TUNARY) X(TUNARY_ANY) X(TBINARY) X(TBINARY_ANY) X(TTERNARY) X(TTERNARY_ANY)                 \
  X(TREDUCE) X(TROWS) X(TCONTRACT) X(TWINDOW)

#define EYAS_VMVX_HANDLERS(X) EYAS_VMVX_PLAIN_HANDLERS(X) EYAS_VMVX_CHOSEN_HANDLERS(X)

enum {
#define EYAS_VMVX_HANDLER_NUMBER(name) EYAS_VMVX_H_##name,
  EYAS_VMVX_HANDLERS(EYAS_VMVX_HANDLER_NUMBER)
#undef EYAS_VMVX_HANDLER_NUMBER
  EYAS_VMVX_HANDLER_COUNT
};

#endif  // EYAS_VMVX_HANDLERS_H_
