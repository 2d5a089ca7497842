// Chooses the handler of an instruction that was read, and lays out its cells.
#include <stdlib.h>

#include "vmvx/decode.h"
#include "vmvx/handlers.h"

#define ONE EYAS_VMVX_EXTENT_ONE

static const uint8_t type_bytes[EYAS_VMVX_TYPE_COUNT] = {EYAS_VMVX_TYPE_BYTES};
static const uint8_t memory_bytes[EYAS_VMVX_MEMORY_COUNT] = {EYAS_VMVX_MEMORY_BYTES};
// In a tile f16 and bf16 are f32.
static const uint8_t tile_bytes[EYAS_VMVX_MEMORY_COUNT] = {4, 8, 1, 2, 4, 8, 4, 4, 1, 2, 4};

static const char* const no_kernel = "this runtime has no microkernel for it";
static const char* const bad_modes = "the result lacks a dimension that an operand has";
static const char* const bad_memory = "a memory type is unknown";

// Handlers of instructions whose cells follow from the table; 0 is CONST, which never looks here.
static int plain_handler(uint32_t op) {
  static const uint16_t handlers[] = {
#define PLAIN(name) [EYAS_VMVX_OP_##name] = EYAS_VMVX_H_##name,
      EYAS_VMVX_PLAIN_HANDLERS(PLAIN)
#undef PLAIN
  };
  return op < sizeof(handlers) / sizeof(handlers[0]) ? handlers[op] : 0;
}

static eyas_vmvx_cell_t* push(eyas_vmvx_decoder_t* d) {
  if (d->cell_count == d->cell_capacity) {
    uint32_t capacity = d->cell_capacity ? 2 * d->cell_capacity : 256;
    eyas_vmvx_cell_t* cells = realloc(d->cells, capacity * sizeof(*cells));
    if (!cells) {
      d->out_of_memory = true;
      return NULL;
    }
    d->cells = cells;
    d->cell_capacity = capacity;
  }
  d->cells[d->cell_count].i = 0;
  return &d->cells[d->cell_count++];
}

static const char* emit(eyas_vmvx_decoder_t* d, int handler, uint32_t count,
                        const uint16_t* units) {
  eyas_vmvx_cell_t* cell = push(d);
  if (cell) cell->handler = d->handlers[handler];
  for (uint32_t i = 0; i < count && cell; ++i) {
    if (i % 4 == 0) cell = push(d);
    if (cell) cell->u[i % 4] = units[i];
  }
  return cell ? NULL : "there is no memory";
}

#define EMIT(d, handler, ...)                                                          \
  emit(d, EYAS_VMVX_H_##handler, sizeof((uint16_t[]){__VA_ARGS__}) / sizeof(uint16_t), \
       (const uint16_t[]){__VA_ARGS__})

static const char* emit_i64(eyas_vmvx_decoder_t* d, int64_t value) {
  eyas_vmvx_cell_t* cell = push(d);
  if (cell) cell->i = value;
  return cell ? NULL : "there is no memory";
}

#define EMIT_KERNEL(d, kernel) emit_function(d, (void (*)(void))(kernel))
static const char* emit_function(eyas_vmvx_decoder_t* d, void (*function)(void)) {
  if (!function) return no_kernel;
  eyas_vmvx_cell_t* cell = push(d);
  if (cell) cell->function = function;
  return cell ? NULL : "there is no memory";
}

static const char* emit_constant(eyas_vmvx_decoder_t* d, uint16_t dst, int64_t value) {
  const char* wrong = EMIT(d, CONST, dst);
  return wrong ? wrong : emit_i64(d, value);
}

#define TRY(expression)                \
  do {                                 \
    const char* wrong_ = (expression); \
    if (wrong_) return wrong_;         \
  } while (0)

// 1: has columns, 2: has rows.
static int dimensions(int extent) {
  static const uint8_t table[] = {3, 1, 2, 0};
  return table[extent];
}

static int mode(int64_t modes, int position) {
  return (int)(modes >> (2 * position)) & 3;
}

static int result_mode(int64_t modes) {
  return mode(modes, 3);
}

// The result covers each of the operands; other bits are 0.
static const char* check_modes(int64_t modes, int operands) {
  int covered = dimensions(result_mode(modes));
  for (int i = 0; i < 3; ++i) {
    int extent = mode(modes, i);
    if (i < operands ? (dimensions(extent) & ~covered) != 0 : extent != 0) return bad_modes;
  }
  return NULL;
}

static const char* select_plain(eyas_vmvx_decoder_t* d) {
  uint16_t units[EYAS_VMVX_MAX_OPERANDS];
  uint32_t count = 0;
  const int64_t* last = NULL;
  for (uint32_t i = 0; i < d->operand_count; ++i) {
    if (d->format[i] == 'q' || d->format[i] == 'L') {
      last = &d->operands[i];
    } else {
      units[count++] = (uint16_t)d->operands[i];
    }
  }
  int handler = plain_handler(d->op);
  if (last && d->format[d->operand_count - 1] == 'L' && *last <= (int64_t)d->byte) {
    switch (d->op) {
      case EYAS_VMVX_OP_BR: handler = EYAS_VMVX_H_BR_BACK; break;
      case EYAS_VMVX_OP_BR_IF: handler = EYAS_VMVX_H_BR_IF_BACK; break;
      case EYAS_VMVX_OP_BR_IFNOT: handler = EYAS_VMVX_H_BR_IFNOT_BACK; break;
      default: handler = EYAS_VMVX_H_LOOP_BACK; break;
    }
  }
  TRY(emit(d, handler, count, units));
  return last ? emit_i64(d, *last) : NULL;
}

static const char* select_access(eyas_vmvx_decoder_t* d, const uint16_t handlers[],
                                 int64_t memory) {
  if (memory >= EYAS_VMVX_MEMORY_COUNT) return bad_memory;
  const int64_t* v = d->operands;
  bool immediate = d->format[2] == 'q';
  uint16_t units[] = {(uint16_t)v[0], (uint16_t)v[1], immediate ? 0 : (uint16_t)v[2]};
  TRY(emit(d, handlers[memory], 3, units));
  return immediate ? emit_i64(d, v[2]) : NULL;
}

#define BY_MEMORY(P, f32, f64, u8, u16, u32)                                    \
  {                                                                             \
      EYAS_VMVX_H_##P##_##f32, EYAS_VMVX_H_##P##_##f64, EYAS_VMVX_H_##P##_I8,   \
      EYAS_VMVX_H_##P##_I16,   EYAS_VMVX_H_##P##_I32,   EYAS_VMVX_H_##P##_I64,  \
      EYAS_VMVX_H_##P##_F16,   EYAS_VMVX_H_##P##_BF16,  EYAS_VMVX_H_##P##_##u8, \
      EYAS_VMVX_H_##P##_##u16, EYAS_VMVX_H_##P##_##u32}
static const uint16_t load_handlers[] = BY_MEMORY(LOAD, U32, I64, U8, U16, U32);
static const uint16_t load_at_handlers[] = BY_MEMORY(LOAD_AT, U32, I64, U8, U16, U32);
static const uint16_t store_handlers[] = BY_MEMORY(STORE, I32, I64, I8, I16, I32);
static const uint16_t store_at_handlers[] = BY_MEMORY(STORE_AT, I32, I64, I8, I16, I32);

static const char* select_scalar(eyas_vmvx_decoder_t* d) {
  const eyas_vmvx_function_t* f = d->function;
  const int64_t* v = d->operands;
  switch (d->op) {
    case EYAS_VMVX_OP_SEXT:
    case EYAS_VMVX_OP_ZEXT:
      if (v[2] < 1 || v[2] > 63) return "a number of bits is not 1 to 63";
      break;
    case EYAS_VMVX_OP_CLZ:
    case EYAS_VMVX_OP_CTZ:
    case EYAS_VMVX_OP_FFPTOSI_F32:
    case EYAS_VMVX_OP_FFPTOSI_F64:
    case EYAS_VMVX_OP_FFPTOUI_F32:
    case EYAS_VMVX_OP_FFPTOUI_F64:
      if (v[2] < 1 || v[2] > 64) return "a number of bits is not 1 to 64";
      break;
    case EYAS_VMVX_OP_WORKGROUP:
      if (v[1] > 2) return "an axis is not 0, 1 or 2";
      break;
    case EYAS_VMVX_OP_CONSTANT:
      if (v[1] >= f->constant_count) return "a constant is out of range";
      break;
    case EYAS_VMVX_OP_BINDING:
      if (v[1] >= f->binding_count) return "a binding is out of range";
      return emit_constant(d, (uint16_t)v[0], v[1] << EYAS_VMVX_BUFFER_SHIFT);
    case EYAS_VMVX_OP_BINDING_BYTES:
      if (v[1] >= f->binding_count) return "a binding is out of range";
      break;
    case EYAS_VMVX_OP_DATA:
      if (v[1] < 0 || v[1] > f->data_bytes) return "an offset is outside of the function's data";
      return emit_constant(d, (uint16_t)v[0],
                           ((int64_t)f->binding_count << EYAS_VMVX_BUFFER_SHIFT) + v[1]);
    case EYAS_VMVX_OP_WIDTH: return emit_constant(d, (uint16_t)v[0], d->settings.width);
    case EYAS_VMVX_OP_LOAD: return select_access(d, load_handlers, v[3]);
    case EYAS_VMVX_OP_LOAD_AT: return select_access(d, load_at_handlers, v[3]);
    case EYAS_VMVX_OP_STORE: return select_access(d, store_handlers, v[3]);
    case EYAS_VMVX_OP_STORE_AT: return select_access(d, store_at_handlers, v[3]);
    case EYAS_VMVX_OP_FILL:
      if (v[3] >= EYAS_VMVX_MEMORY_COUNT) return bad_memory;
      return EMIT(d, FILL, v[0], v[1], v[2], v[3]);
    default:
      if (!plain_handler(d->op) && d->op != EYAS_VMVX_OP_CONST) {
        return "the runtime's own table is wrong";
      }
      break;
  }
  return select_plain(d);
}

// Functions that are not one machine instruction are the microkernels', for one element.
static const char* select_scalar_float(eyas_vmvx_decoder_t* d) {
  const int64_t* v = d->operands;
  if (plain_handler(d->op)) return select_plain(d);
  bool is_f32 = d->type == EYAS_VMVX_TYPE_F32;
  if (d->family == EYAS_VMVX_FAMILY_SCALAR_UNARY) {
    TRY(is_f32 ? EMIT(d, SCALAR_UNARY_F32, v[0], v[1]) : EMIT(d, SCALAR_UNARY_F64, v[0], v[1]));
    return EMIT_KERNEL(d, d->settings.elements->unary[d->number][d->type]);
  }
  TRY(is_f32 ? EMIT(d, SCALAR_BINARY_F32, v[0], v[1], v[2])
             : EMIT(d, SCALAR_BINARY_F64, v[0], v[1], v[2]));
  return EMIT_KERNEL(d, d->settings.elements->binary[d->number][d->type].vv);
}

static const char* select_unary(eyas_vmvx_decoder_t* d, eyas_uk_unary_t kernel, int dst_bytes,
                                int a_bytes) {
  const int64_t* v = d->operands;
  TRY(check_modes(v[2], 1));
  int extent = result_mode(v[2]);
  if (mode(v[2], 0) == extent && (v[0] != v[1] || dst_bytes == a_bytes)) {
    TRY(EMIT(d, TUNARY, v[0], v[1], extent));
  } else {
    TRY(EMIT(d, TUNARY_ANY, v[0], v[1], v[2], dst_bytes, a_bytes));
  }
  return EMIT_KERNEL(d, kernel);
}

static const char* select_binary(eyas_vmvx_decoder_t* d, const eyas_uk_binary_set_t* set,
                                 int dst_bytes, int bytes) {
  const int64_t* v = d->operands;
  TRY(check_modes(v[3], 2));
  if (!set->vv) return no_kernel;
  int extent = result_mode(v[3]), a = mode(v[3], 0), b = mode(v[3], 1);
  // A kernel may write where it reads, if it is the same element.
  bool a_apart = v[0] != v[1] || (a == extent && dst_bytes == bytes);
  bool b_apart = v[0] != v[2] || (b == extent && dst_bytes == bytes);
  bool apart = a_apart && b_apart;
  eyas_uk_binary_t kernel = NULL;
  if (a == extent && b == extent) {
    kernel = set->vv;
  } else if (a == extent && b == ONE) {
    kernel = set->vs;
  } else if (a == ONE && b == extent) {
    kernel = set->sv;
  }
  if (kernel && apart) {
    TRY(EMIT(d, TBINARY, v[0], v[1], v[2], extent));
    return EMIT_KERNEL(d, kernel);
  }
  TRY(EMIT(d, TBINARY_ANY, v[0], v[1], v[2], v[3], dst_bytes, bytes));
  eyas_vmvx_cell_t* cell = push(d);
  if (cell) cell->pointer = set;
  return cell ? NULL : "there is no memory";
}

static const char* select_ternary(eyas_vmvx_decoder_t* d, void (*kernel)(void), int64_t modes,
                                  int bytes, int first_bytes, bool pick) {
  const int64_t* v = d->operands;
  TRY(check_modes(modes, 3));
  int extent = result_mode(modes);
  bool simple = first_bytes == bytes || v[0] != v[1];
  for (int i = 0; i < 3; ++i) simple = simple && mode(modes, i) == extent;
  if (simple) {
    TRY(EMIT(d, TTERNARY, v[0], v[1], v[2], v[3], extent, pick));
  } else {
    TRY(EMIT(d, TTERNARY_ANY, v[0], v[1], v[2], v[3], modes, pick, bytes, first_bytes));
  }
  return emit_function(d, kernel);
}

static const char* select_elements(eyas_vmvx_decoder_t* d) {
  const eyas_uk_elements_t* k = d->settings.elements;
  const int64_t* v = d->operands;
  int n = d->number, t = d->type, bytes = type_bytes[t];
  switch (d->family) {
    case EYAS_VMVX_FAMILY_UNARY: return select_unary(d, k->unary[n][t], bytes, bytes);
    case EYAS_VMVX_FAMILY_INTEGER_UNARY: return select_unary(d, k->iunary[n][t], bytes, bytes);
    case EYAS_VMVX_FAMILY_BINARY: return select_binary(d, &k->binary[n][t], bytes, bytes);
    case EYAS_VMVX_FAMILY_INTEGER_BINARY: return select_binary(d, &k->ibinary[n][t], bytes, bytes);
    case EYAS_VMVX_FAMILY_COMPARE: return select_binary(d, &k->compare[n][t], 1, bytes);
    case EYAS_VMVX_FAMILY_INTEGER_COMPARE: return select_binary(d, &k->icompare[n][t], 1, bytes);
    case EYAS_VMVX_FAMILY_FMA:
      return select_ternary(d, (void (*)(void))k->fma[t], v[4], bytes, bytes, false);
    case EYAS_VMVX_FAMILY_CAST: {
      static const uint8_t types[EYAS_VMVX_CAST_COUNT][2] = {EYAS_VMVX_CAST_TYPES};
      return select_unary(d, k->cast[n], type_bytes[types[n][1]], type_bytes[types[n][0]]);
    }
    case EYAS_VMVX_FAMILY_REDUCE:
    case EYAS_VMVX_FAMILY_INTEGER_REDUCE: {
      if (v[2] > 1) return "an axis is not 0 or 1";
      bool is_float = d->family == EYAS_VMVX_FAMILY_REDUCE;
      TRY(EMIT(d, TREDUCE, v[0], v[1], bytes));
      return EMIT_KERNEL(d, is_float ? k->reduce[n][t][v[2]] : k->ireduce[n][t][v[2]]);
    }
    case EYAS_VMVX_FAMILY_ROWS:
      TRY(EMIT(d, TROWS, v[0], v[1], n == 1 ? v[2] : 0, n == 1));
      return EMIT_KERNEL(d, n == 1 ? k->normalize : k->softmax);
    default: return "the runtime's own table is wrong";
  }
}

static const char* select_products(eyas_vmvx_decoder_t* d) {
  const eyas_uk_products_t* k = d->settings.products;
  const int64_t* v = d->operands;
  int n = d->number, t = d->type;
  uint16_t units[EYAS_VMVX_MAX_OPERANDS + 2];
  for (uint32_t i = 0; i < d->operand_count; ++i) units[i] = (uint16_t)v[i];
  if (d->family == EYAS_VMVX_FAMILY_CONTRACT) {
    static const uint8_t step_bytes[EYAS_VMVX_CONTRACT_COUNT] = {EYAS_VMVX_CONTRACT_STEP_BYTES};
    units[14] = step_bytes[n];
    TRY(emit(d, EYAS_VMVX_H_TCONTRACT, 15, units));
    return EMIT_KERNEL(d, k->contract[n]);
  }
  units[10] = type_bytes[t];
  units[11] = n == EYAS_VMVX_WINDOW_MULADD;
  TRY(emit(d, EYAS_VMVX_H_TWINDOW, 12, units));
  return EMIT_KERNEL(d, k->window[n][t]);
}

static const char* select_tile(eyas_vmvx_decoder_t* d) {
  const eyas_uk_elements_t* k = d->settings.elements;
  const int64_t* v = d->operands;
  switch (d->op) {
    case EYAS_VMVX_OP_TLOAD:
      if (v[4] >= EYAS_VMVX_MEMORY_COUNT) return bad_memory;
      TRY(check_modes(v[5], 0));
      TRY(EMIT(d, TLOAD, v[0], v[1], v[2], v[3], result_mode(v[5]), memory_bytes[v[4]]));
      return EMIT_KERNEL(d, k->load[v[4]]);
    case EYAS_VMVX_OP_TLOAD_INSIDE:
      if (v[9] >= EYAS_VMVX_MEMORY_COUNT) return bad_memory;
      TRY(EMIT(d, TLOAD_INSIDE, v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8],
               memory_bytes[v[9]], tile_bytes[v[9]]));
      return EMIT_KERNEL(d, k->load[v[9]]);
    case EYAS_VMVX_OP_TSTORE:
      if (v[4] >= EYAS_VMVX_MEMORY_COUNT) return bad_memory;
      TRY(check_modes(v[5], 1));
      if (v[6] > 1) return "distinct is not 0 or 1";
      TRY(EMIT(d, TSTORE, v[0], v[1], v[2], v[3], v[5], memory_bytes[v[4]], tile_bytes[v[4]],
               v[6]));
      return EMIT_KERNEL(d, k->store[v[4]]);
    case EYAS_VMVX_OP_TGATHER:
      if (v[3] >= EYAS_VMVX_MEMORY_COUNT) return bad_memory;
      TRY(check_modes(v[4], 1));
      TRY(EMIT(d, TGATHER, v[0], v[1], v[2], v[4], memory_bytes[v[3]], tile_bytes[v[3]]));
      return EMIT_KERNEL(d, k->gather[v[3]]);
    case EYAS_VMVX_OP_TLOAD_ROWS:
      if (v[3] >= EYAS_VMVX_MEMORY_COUNT) return bad_memory;
      TRY(EMIT(d, TLOAD_ROWS, v[0], v[1], v[2], memory_bytes[v[3]], tile_bytes[v[3]]));
      return EMIT_KERNEL(d, k->load[v[3]]);
    case EYAS_VMVX_OP_TFILL:
      if (v[2] >= EYAS_VMVX_TYPE_COUNT) return "a type is unknown";
      TRY(check_modes(v[3], 0));
      return EMIT(d, TFILL, v[0], v[1], type_bytes[v[2]], result_mode(v[3]));
    case EYAS_VMVX_OP_TINDEX:
      TRY(check_modes(v[4], 0));
      return EMIT(d, TINDEX, v[0], v[1], v[2], v[3], result_mode(v[4]));
    case EYAS_VMVX_OP_TMOV:
      if (v[2] >= EYAS_VMVX_TYPE_COUNT) return "a type is unknown";
      TRY(check_modes(v[3], 1));
      return EMIT(d, TMOV, v[0], v[1], type_bytes[v[2]], v[3]);
    case EYAS_VMVX_OP_TEXTRACT:
      if (v[3] >= EYAS_VMVX_TYPE_COUNT) return "a type is unknown";
      return EMIT(d, TEXTRACT, v[0], v[1], v[2], v[3]);
    case EYAS_VMVX_OP_TPICK: {
      int log = v[4] == 1 ? 0 : v[4] == 2 ? 1 : v[4] == 4 ? 2 : v[4] == 8 ? 3 : -1;
      if (log < 0) return "elements are not of 1, 2, 4 or 8 bytes";
      return select_ternary(d, (void (*)(void))k->pick[log], v[5], (int)v[4], 1, true);
    }
    default: return select_scalar(d);
  }
}

const char* eyas_vmvx_select(eyas_vmvx_decoder_t* d) {
  switch (d->family) {
    case EYAS_VMVX_FAMILY_NONE: return select_tile(d);
    case EYAS_VMVX_FAMILY_SCALAR_UNARY:
    case EYAS_VMVX_FAMILY_SCALAR_BINARY:
    case EYAS_VMVX_FAMILY_SCALAR_COMPARE: return select_scalar_float(d);
    case EYAS_VMVX_FAMILY_CONTRACT:
    case EYAS_VMVX_FAMILY_WINDOW: return select_products(d);
    default: return select_elements(d);
  }
}
