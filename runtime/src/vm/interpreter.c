#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "eyas_isa.h"
#include "vm/context.h"
#include "vm/decode.h"
#include "vm/floats.h"
#include "vm/pack.h"

// What one call works on.
typedef struct frame_t {
  eyas_context_t* context;
  const eyas_program_t* program;
  const eyas_function_t* function;
  const eyas_tensor_t* args;
  int64_t* i64s;
  eyas_vm_ref_t* refs;
} frame_t;

static const char* const kind_names[] = {"null", "a buffer", "a command buffer"};

static eyas_status_t wrong_kind(const eyas_vm_ref_t* ref, const char* wanted) {
  return eyas_status_make(EYAS_STATUS_INTERNAL, "a register holds %s where %s is needed",
                          kind_names[ref->kind], wanted);
}

static eyas_status_t as_buffer(frame_t* f, uint32_t index, eyas_vm_ref_t** out_ref) {
  *out_ref = &f->refs[index];
  return (*out_ref)->kind == EYAS_VM_BUFFER ? NULL : wrong_kind(*out_ref, "a buffer");
}

static eyas_status_t as_commands(frame_t* f, uint32_t index, eyas_vm_commands_t** out_commands) {
  eyas_vm_ref_t* ref = &f->refs[index];
  if (ref->kind != EYAS_VM_COMMANDS) return wrong_kind(ref, "a command buffer");
  *out_commands = ref->commands;
  return NULL;
}

// offset and length of a span inside `available` bytes; registers may be absent.
static eyas_status_t read_span(frame_t* f, const uint32_t* w, uint64_t available,
                               uint64_t* out_offset, uint64_t* out_length) {
  int64_t offset = w[0] == EYAS_VM_NO_REGISTER ? 0 : f->i64s[w[0]];
  if (offset < 0 || (uint64_t)offset > available) {
    return eyas_status_make(EYAS_STATUS_OUT_OF_RANGE,
                            "offset %lld is outside a buffer of %llu bytes", (long long)offset,
                            (unsigned long long)available);
  }
  uint64_t left = available - (uint64_t)offset;
  int64_t length = w[1] == EYAS_VM_NO_REGISTER ? (int64_t)left : f->i64s[w[1]];
  if (length < 0 || (uint64_t)length > left) {
    return eyas_status_make(EYAS_STATUS_OUT_OF_RANGE,
                            "%lld bytes at offset %lld are outside a buffer of %llu bytes",
                            (long long)length, (long long)offset, (unsigned long long)available);
  }
  *out_offset = (uint64_t)offset;
  *out_length = (uint64_t)length;
  return NULL;
}

// Binding words: kind, access, register or slot, offset, length. `access` is what the command does.
static eyas_status_t read_binding(frame_t* f, eyas_vm_commands_t* commands, const uint32_t* w,
                                  uint32_t access, eyas_hal_binding_t* out) {
  *out = (eyas_hal_binding_t){.access = w[1]};
  if (w[0] == 1) {
    int64_t offset = w[3] == EYAS_VM_NO_REGISTER ? 0 : f->i64s[w[3]];
    int64_t length = w[4] == EYAS_VM_NO_REGISTER ? 0 : f->i64s[w[4]];
    if (offset < 0 || length < 0 || w[2] >= commands->slot_count) {
      return eyas_status_make(EYAS_STATUS_OUT_OF_RANGE,
                              "slot %u of %u, offset %lld, length %lld cannot be bound", w[2],
                              commands->slot_count, (long long)offset, (long long)length);
    }
    out->slot = w[2];
    out->offset = (uint64_t)offset;
    out->length = w[4] == EYAS_VM_NO_REGISTER ? EYAS_HAL_WHOLE : (uint64_t)length;
    return NULL;
  }
  eyas_vm_ref_t* ref = NULL;
  EYAS_RETURN_IF_ERROR(as_buffer(f, w[2], &ref));
  EYAS_RETURN_IF_ERROR(read_span(f, w + 3, ref->length, &out->offset, &out->length));
  out->offset += ref->offset;
  out->buffer = ref->buffer->hal;
  if (ref->buffer->origin == EYAS_VM_ORIGIN_ARGUMENT) {
    // The recording would outlive the caller's memory.
    if (commands->is_global) {
      return eyas_status_make(EYAS_STATUS_INTERNAL,
                              "an argument is bound directly in commands that are kept");
    }
    commands->holds_argument = true;
  }
  if (ref->buffer->origin == EYAS_VM_ORIGIN_STATE && (access & EYAS_HAL_ACCESS_WRITE)) {
    commands->writes_state = true;
  }
  return eyas_vm_commands_hold(commands, ref->buffer);
}

static eyas_status_t run_dispatch(frame_t* f, const uint32_t* w, const uint32_t** next) {
  eyas_vm_commands_t* commands = NULL;
  EYAS_RETURN_IF_ERROR(as_commands(f, w[1], &commands));
  eyas_hal_dispatch_t dispatch = {.executable = f->context->loaded->executables[w[2]],
                                  .ordinal = w[3]};
  for (int i = 0; i < 3; ++i) {
    int64_t count = f->i64s[w[4 + i]];
    if (count < 0 || count > (int64_t)UINT32_MAX) {
      return eyas_status_make(EYAS_STATUS_OUT_OF_RANGE, "%lld workgroups cannot be dispatched",
                              (long long)count);
    }
    dispatch.workgroup_count[i] = (uint32_t)count;
  }
  const uint32_t* at = w + 7;
  int64_t constants[EYAS_HAL_MAX_CONSTANTS];
  dispatch.constant_count = *at++;
  for (uint32_t i = 0; i < dispatch.constant_count; ++i) constants[i] = f->i64s[*at++];
  eyas_hal_binding_t bindings[EYAS_HAL_MAX_BINDINGS];
  dispatch.binding_count = *at++;
  for (uint32_t i = 0; i < dispatch.binding_count; ++i, at += 5) {
    EYAS_RETURN_IF_ERROR(read_binding(f, commands, at, at[1], &bindings[i]));
  }
  dispatch.constants = constants;
  dispatch.bindings = bindings;
  *next = at;
  return eyas_hal_command_buffer_dispatch(commands->hal, &dispatch);
}

static eyas_status_t run_fill(frame_t* f, const uint32_t* w) {
  eyas_vm_commands_t* commands = NULL;
  eyas_hal_binding_t target;
  EYAS_RETURN_IF_ERROR(as_commands(f, w[1], &commands));
  EYAS_RETURN_IF_ERROR(read_binding(f, commands, w + 2, EYAS_HAL_ACCESS_WRITE, &target));
  return eyas_hal_command_buffer_fill(commands->hal, target, &f->i64s[w[7]], w[8]);
}

static eyas_status_t run_copy(frame_t* f, const uint32_t* w) {
  eyas_vm_commands_t* commands = NULL;
  eyas_hal_binding_t source, target;
  EYAS_RETURN_IF_ERROR(as_commands(f, w[1], &commands));
  EYAS_RETURN_IF_ERROR(read_binding(f, commands, w + 2, EYAS_HAL_ACCESS_READ, &source));
  EYAS_RETURN_IF_ERROR(read_binding(f, commands, w + 7, EYAS_HAL_ACCESS_WRITE, &target));
  return eyas_hal_command_buffer_copy(commands->hal, source, target);
}

static eyas_status_t run_submit(frame_t* f, const uint32_t* w) {
  eyas_vm_commands_t* commands = NULL;
  EYAS_RETURN_IF_ERROR(as_commands(f, w[1], &commands));
  if (!commands->ended)
    return eyas_status_make(EYAS_STATUS_INTERNAL, "commands are submitted before cmd_end");
  bool writes_state = commands->writes_state;
  eyas_hal_range_t* table = f->context->table;
  for (uint32_t i = 0; i < w[2]; ++i) {
    const eyas_vm_ref_t* ref = &f->refs[w[3 + i]];
    if (ref->kind == EYAS_VM_COMMANDS) return wrong_kind(ref, "a buffer");
    bool null = ref->kind == EYAS_VM_NULL;
    writes_state |= !null && ref->buffer->origin == EYAS_VM_ORIGIN_STATE;
    table[i] = (eyas_hal_range_t){null ? NULL : ref->buffer->hal, ref->offset, ref->length};
  }
  eyas_hal_submission_t submission = {
      .commands = commands->hal, .table = table, .table_count = w[2]};
  return eyas_vm_submit_recorded(f->context, &submission, writes_state);
}

static eyas_status_t run_pack(frame_t* f, const uint32_t* w, const uint32_t** next) {
  uint32_t count = w[2];
  const uint32_t* offsets = w + 3;
  const uint32_t* sizes = offsets + count + 1;
  uint32_t site = sizes[count];
  eyas_vm_pack_memo_t* memo = &f->context->pack_memos[site];
  bool same = memo->valid;
  for (uint32_t i = 0; i < count; ++i) {
    int64_t size = f->i64s[sizes[i]];
    same = same && memo->sizes[i] == size;
    memo->sizes[i] = size;
  }
  if (!same) {
    memo->valid = eyas_vm_pack(count, memo->sizes, f->program->pack_sites[site].lifetimes,
                               memo->offsets, &memo->total, memo->scratch);
    if (!memo->valid)
      return eyas_status_make(EYAS_STATUS_OUT_OF_RANGE, "the sizes of an arena are impossible");
  }
  for (uint32_t i = 0; i < count; ++i) f->i64s[offsets[i]] = memo->offsets[i];
  f->i64s[w[1]] = memo->total;
  *next = sizes + count + 1;
  return NULL;
}

static const uint8_t element_bytes[] = {1, 1, 1, 2, 2, 4, 4, 8};

static eyas_status_t element_place(frame_t* f, uint32_t ref_index, uint32_t offset_index,
                                   uint32_t element, eyas_vm_ref_t** out_ref,
                                   uint64_t* out_offset) {
  EYAS_RETURN_IF_ERROR(as_buffer(f, ref_index, out_ref));
  int64_t offset = f->i64s[offset_index];
  if (offset < 0 ||
      !eyas_range_fits((uint64_t)offset, element_bytes[element], (*out_ref)->length)) {
    return eyas_status_make(EYAS_STATUS_OUT_OF_RANGE,
                            "a scalar at offset %lld is outside %llu bytes", (long long)offset,
                            (unsigned long long)(*out_ref)->length);
  }
  *out_offset = (*out_ref)->offset + (uint64_t)offset;
  return NULL;
}

static eyas_status_t run_load(frame_t* f, const uint32_t* w) {
  eyas_vm_ref_t* ref = NULL;
  uint64_t offset = 0, raw = 0;
  EYAS_RETURN_IF_ERROR(element_place(f, w[2], w[3], w[4], &ref, &offset));
  EYAS_RETURN_IF_ERROR(eyas_vm_wait(f->context));
  EYAS_RETURN_IF_ERROR(eyas_hal_buffer_read(ref->buffer->hal, offset, &raw, element_bytes[w[4]]));
  int64_t value = (int64_t)raw;
  switch (w[4]) {
    case EYAS_VM_ELEMENT_I1: value = raw != 0; break;
    case EYAS_VM_ELEMENT_I8: value = (int8_t)raw; break;
    case EYAS_VM_ELEMENT_I16: value = (int16_t)raw; break;
    case EYAS_VM_ELEMENT_I32: value = (int32_t)raw; break;
    default: break;
  }
  f->i64s[w[1]] = value;
  return NULL;
}

static eyas_status_t run_store(frame_t* f, const uint32_t* w) {
  eyas_vm_ref_t* ref = NULL;
  uint64_t offset = 0;
  EYAS_RETURN_IF_ERROR(element_place(f, w[2], w[3], w[4], &ref, &offset));
  EYAS_RETURN_IF_ERROR(eyas_vm_wait(f->context));  // something may be reading what was there
  if (ref->buffer->origin == EYAS_VM_ORIGIN_STATE) f->context->state_written = true;
  int64_t value = w[4] == EYAS_VM_ELEMENT_I1 ? f->i64s[w[1]] != 0 : f->i64s[w[1]];
  return eyas_hal_buffer_write(ref->buffer->hal, offset, &value, element_bytes[w[4]]);
}

static eyas_status_t run_set_result(frame_t* f, const uint32_t* w) {
  eyas_context_t* context = f->context;
  uint32_t index = w[1], rank = w[3];
  eyas_vm_ref_t* ref = NULL;
  EYAS_RETURN_IF_ERROR(as_buffer(f, w[2], &ref));
  eyas_tensor_t result = {.dtype = f->function->signature.results[index].dtype, .rank = rank};
  for (uint32_t i = 0; i < rank; ++i) result.dims[i] = f->i64s[w[4 + i]];
  uint64_t bytes = 0;
  EYAS_RETURN_IF_ERROR(
      eyas_vm_check_result(&f->function->signature, index, result.dims, ref->length, &bytes));
  if (ref->buffer->origin == EYAS_VM_ORIGIN_RESULT && ref->offset == 0) {
    result.buffer = eyas_hal_buffer_retain(ref->buffer->hal);
  } else {
    eyas_status_t status = eyas_vm_allocate_result(context, bytes, &result.buffer);
    if (!status)
      status = eyas_vm_copy(context, ref->buffer->hal, ref->offset, result.buffer, bytes);
    if (status) {
      eyas_hal_buffer_release(result.buffer);
      return status;
    }
  }
  eyas_hal_buffer_release(context->results[index].buffer);
  context->results[index] = result;
  return NULL;
}

static eyas_status_t run_global_store(frame_t* f, const uint32_t* w) {
  const eyas_vm_ref_t* source = &f->refs[w[2]];
  bool argument =
      (source->kind == EYAS_VM_BUFFER && source->buffer->origin == EYAS_VM_ORIGIN_ARGUMENT) ||
      (source->kind == EYAS_VM_COMMANDS && source->commands->holds_argument);
  if (argument) {
    return eyas_status_make(EYAS_STATUS_INTERNAL,
                            "an argument, or commands that bind one, cannot be kept");
  }
  if (source->kind == EYAS_VM_COMMANDS) source->commands->is_global = true;
  eyas_vm_ref_assign(f->context, &f->context->globals[w[1]], source);
  return NULL;
}

static eyas_status_t run_view(frame_t* f, const uint32_t* w) {
  eyas_vm_ref_t* source = NULL;
  uint64_t offset = 0, length = 0;
  EYAS_RETURN_IF_ERROR(as_buffer(f, w[2], &source));
  EYAS_RETURN_IF_ERROR(read_span(f, w + 3, source->length, &offset, &length));
  eyas_vm_ref_t view = *source;
  view.offset += offset;
  view.length = length;
  eyas_vm_ref_assign(f->context, &f->refs[w[1]], &view);
  return NULL;
}

// The message with each {} replaced by the next value. Counts and text come from the module.
static eyas_status_t failure(frame_t* f, const char* message, uint32_t count,
                             const uint32_t* values) {
  char text[1024];
  size_t length = 0;
  uint32_t next = 0;
  for (const char* c = message; *c && length + 32 < sizeof(text); ++c) {
    if (c[0] == '{' && c[1] == '}' && next < count) {
      length += (size_t)snprintf(text + length, 24, "%lld", (long long)f->i64s[values[next++]]);
      ++c;
    } else {
      text[length++] = *c;
    }
  }
  text[length] = 0;
  return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT, "%s", text);
}

static int64_t divide_signed(int64_t a, int64_t b, int64_t* out_remainder) {
  if (b == -1) {  // the one quotient that overflows is INT64_MIN / -1; it wraps
    *out_remainder = 0;
    return (int64_t)(0 - (uint64_t)a);
  }
  *out_remainder = a % b;
  return a / b;
}

static eyas_status_t divide(uint32_t op, int64_t a, int64_t b, int64_t* out) {
  if (b == 0)
    return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT, "division of %lld by zero", (long long)a);
  int64_t remainder = 0;
  if (op == EYAS_VM_OP_DIVU) {
    *out = (int64_t)((uint64_t)a / (uint64_t)b);
  } else if (op == EYAS_VM_OP_REMU) {
    *out = (int64_t)((uint64_t)a % (uint64_t)b);
  } else {
    int64_t quotient = divide_signed(a, b, &remainder);
    bool negative = (a < 0) != (b < 0);
    *out = op == EYAS_VM_OP_DIVS       ? quotient
           : op == EYAS_VM_OP_REMS     ? remainder
           : op == EYAS_VM_OP_CEILDIVS ? quotient + (remainder != 0 && !negative)
                                       : quotient - (remainder != 0 && negative);
  }
  return NULL;
}

static int64_t extend(int64_t value, uint32_t width, bool is_signed) {
  uint64_t bits = (uint64_t)value << (64 - width);
  return is_signed ? (int64_t)bits >> (64 - width) : (int64_t)(bits >> (64 - width));
}

#define BINARY(name, expression)            \
  case EYAS_VM_OP_##name: {                 \
    int64_t a = i64s[w[2]], b = i64s[w[3]]; \
    i64s[w[1]] = (int64_t)(expression);     \
    w += 4;                                 \
    break;                                  \
  }
#define UNARY(name, expression)         \
  case EYAS_VM_OP_##name: {             \
    int64_t a = i64s[w[2]];             \
    i64s[w[1]] = (int64_t)(expression); \
    w += 3;                             \
    break;                              \
  }
#define number eyas_vm_number
#define bits_of eyas_vm_bits_of
#define TRY(expression)  \
  status = (expression); \
  if (status) goto failed

eyas_status_t eyas_vm_run(eyas_context_t* context, const eyas_function_t* function,
                          const eyas_tensor_t* args) {
  int64_t* const i64s = context->i64s;
  eyas_vm_ref_t* const refs = context->refs;
  frame_t frame = {context, &context->module->program, function, args, i64s, refs};
  frame_t* const f = &frame;
  uint64_t left = context->options.instruction_budget;
  if (left == 0) left = UINT64_MAX;
  eyas_status_t status = NULL;
  const uint32_t* w = function->words + function->entry;
  for (;;) {
    if (left-- == 0) {
      return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED,
                              "the call ran out of its %llu instructions",
                              (unsigned long long)context->options.instruction_budget);
    }
    switch (w[0]) {
      case EYAS_VM_OP_CONST_I64:
        i64s[w[1]] = (int64_t)((uint64_t)w[2] | (uint64_t)w[3] << 32);
        w += 4;
        break;
      case EYAS_VM_OP_MOV:
        i64s[w[1]] = i64s[w[2]];
        w += 3;
        break;
        BINARY(ADD, (uint64_t)a + (uint64_t)b)
        BINARY(SUB, (uint64_t)a - (uint64_t)b)
        BINARY(MUL, (uint64_t)a * (uint64_t)b)
        BINARY(MINS, a < b ? a : b)
        BINARY(MAXS, a > b ? a : b)
        BINARY(MINU, (uint64_t)a < (uint64_t)b ? a : b)
        BINARY(MAXU, (uint64_t)a > (uint64_t)b ? a : b)
        BINARY(AND, a & b)
        BINARY(OR, a | b)
        BINARY(XOR, a ^ b)
        BINARY(SHL, (uint64_t)a << (b & 63))
        BINARY(SHRS, a >> (b & 63))
        BINARY(SHRU, (uint64_t)a >> (b & 63))
        BINARY(EQ, a == b)
        BINARY(NE, a != b)
        BINARY(LTS, a < b)
        BINARY(LES, a <= b)
        BINARY(LTU, (uint64_t)a < (uint64_t)b)
        BINARY(LEU, (uint64_t)a <= (uint64_t)b)
        BINARY(FADD, bits_of(number(a) + number(b)))
        BINARY(FSUB, bits_of(number(a) - number(b)))
        BINARY(FMUL, bits_of(number(a) * number(b)))
        BINARY(FDIV, bits_of(number(a) / number(b)))
        BINARY(FREM, bits_of(fmod(number(a), number(b))))
        BINARY(FMIN, bits_of(eyas_vm_minimum(number(a), number(b))))
        BINARY(FMAX, bits_of(-eyas_vm_minimum(-number(a), -number(b))))
        BINARY(FPOW, bits_of(pow(number(a), number(b))))
        BINARY(FEQ, number(a) == number(b))
        BINARY(FLT, number(a) < number(b))
        BINARY(FLE, number(a) <= number(b))
        UNARY(FFLOOR, bits_of(floor(number(a))))
        UNARY(FCEIL, bits_of(ceil(number(a))))
        UNARY(FTRUNC, bits_of(trunc(number(a))))
        UNARY(FNEAREST, bits_of(eyas_vm_nearest(number(a))))
        UNARY(FAWAY, bits_of(round(number(a))))
        UNARY(FSQRT, bits_of(sqrt(number(a))))
        UNARY(FABS, bits_of(fabs(number(a))))
        UNARY(FNEG, bits_of(-number(a)))
        UNARY(FEXP, bits_of(exp(number(a))))
        UNARY(FLOG, bits_of(log(number(a))))
        UNARY(FLOG2, bits_of(log2(number(a))))
        UNARY(ITOF, bits_of((double)a))
        UNARY(UTOF, bits_of((double)(uint64_t)a))
        UNARY(FTOI, eyas_vm_to_signed(number(a)))
        UNARY(FTOU, (int64_t)eyas_vm_to_unsigned(number(a)))
      case EYAS_VM_OP_FROUND:
        i64s[w[1]] = bits_of(eyas_vm_unpack(eyas_vm_pack_float(number(i64s[w[2]]), w[3]), w[3]));
        w += 4;
        break;
      case EYAS_VM_OP_FUNPACK:
        i64s[w[1]] = bits_of(eyas_vm_unpack((uint64_t)i64s[w[2]], w[3]));
        w += 4;
        break;
      case EYAS_VM_OP_FPACK:
        i64s[w[1]] = (int64_t)eyas_vm_pack_float(number(i64s[w[2]]), w[3]);
        w += 4;
        break;
      case EYAS_VM_OP_DIVS:
      case EYAS_VM_OP_DIVU:
      case EYAS_VM_OP_REMS:
      case EYAS_VM_OP_REMU:
      case EYAS_VM_OP_CEILDIVS:
      case EYAS_VM_OP_FLOORDIVS:
        TRY(divide(w[0], i64s[w[2]], i64s[w[3]], &i64s[w[1]]));
        w += 4;
        break;
      case EYAS_VM_OP_SELECT:
        i64s[w[1]] = i64s[w[2]] ? i64s[w[3]] : i64s[w[4]];
        w += 5;
        break;
      case EYAS_VM_OP_SEXT:
        i64s[w[1]] = extend(i64s[w[2]], w[3], true);
        w += 4;
        break;
      case EYAS_VM_OP_ZEXT:
        i64s[w[1]] = extend(i64s[w[2]], w[3], false);
        w += 4;
        break;
      case EYAS_VM_OP_BR: w = function->words + w[1]; break;
      case EYAS_VM_OP_BR_IF: w = i64s[w[1]] ? function->words + w[2] : w + 3; break;
      case EYAS_VM_OP_BR_NULL:
        w = refs[w[1]].kind == EYAS_VM_NULL ? function->words + w[2] : w + 3;
        break;
      case EYAS_VM_OP_CHECK:
        if (!i64s[w[1]]) return failure(f, f->program->strings[w[2]], w[3], w + 4);
        w += 4 + w[3];
        break;
      case EYAS_VM_OP_FAIL: return failure(f, f->program->strings[w[1]], w[2], w + 3);
      case EYAS_VM_OP_RETURN: return NULL;
      case EYAS_VM_OP_MOV_REF:
        eyas_vm_ref_assign(context, &refs[w[1]], &refs[w[2]]);
        w += 3;
        break;
      case EYAS_VM_OP_NULL:
        eyas_vm_ref_clear(context, &refs[w[1]]);
        w += 2;
        break;
      case EYAS_VM_OP_GLOBAL_LOAD:
        eyas_vm_ref_assign(context, &refs[w[1]], &context->globals[w[2]]);
        w += 3;
        break;
      case EYAS_VM_OP_GLOBAL_STORE:
        TRY(run_global_store(f, w));
        w += 3;
        break;
      case EYAS_VM_OP_ARG: {
        eyas_vm_buffer_t* arg = &context->args[w[2]];
        eyas_vm_ref_t ref = {.kind = EYAS_VM_BUFFER, .buffer = arg, .length = arg->capacity};
        eyas_vm_ref_assign(context, &refs[w[1]], &ref);
        w += 3;
        break;
      }
      case EYAS_VM_OP_ARG_DIM:
        i64s[w[1]] = args[w[2]].dims[w[3]];
        w += 4;
        break;
      case EYAS_VM_OP_PARAM: {
        eyas_vm_buffer_t* parameter = &context->parameters[w[2]];
        eyas_vm_ref_t ref = {
            .kind = EYAS_VM_BUFFER, .buffer = parameter, .length = parameter->capacity};
        eyas_vm_ref_assign(context, &refs[w[1]], &ref);
        w += 3;
        break;
      }
      case EYAS_VM_OP_STATE: {
        eyas_vm_buffer_t* state = &context->states[w[2]];
        eyas_vm_ref_t ref = {.kind = EYAS_VM_BUFFER, .buffer = state, .length = state->capacity};
        eyas_vm_ref_assign(context, &refs[w[1]], &ref);
        w += 3;
        break;
      }
      case EYAS_VM_OP_BUFFER_ALLOC:
        TRY(eyas_vm_allocate(context, i64s[w[2]], w[3], &refs[w[1]]));
        w += 4;
        break;
      case EYAS_VM_OP_BUFFER_VIEW:
        TRY(run_view(f, w));
        w += 5;
        break;
      case EYAS_VM_OP_BUFFER_BYTES: {
        eyas_vm_ref_t* ref = NULL;
        TRY(as_buffer(f, w[2], &ref));
        i64s[w[1]] = (int64_t)ref->length;
        w += 3;
        break;
      }
      case EYAS_VM_OP_BUFFER_LOAD:
        TRY(run_load(f, w));
        w += 5;
        break;
      case EYAS_VM_OP_BUFFER_STORE:
        TRY(run_store(f, w));
        w += 5;
        break;
      case EYAS_VM_OP_ARENA_PACK: {
        const uint32_t* next = NULL;
        TRY(run_pack(f, w, &next));
        w = next;
        break;
      }
      case EYAS_VM_OP_CMD_CREATE:
        TRY(eyas_vm_commands_create(context, w[2], &refs[w[1]]));
        w += 3;
        break;
      case EYAS_VM_OP_CMD_DISPATCH: {
        const uint32_t* next = NULL;
        TRY(run_dispatch(f, w, &next));
        w = next;
        break;
      }
      case EYAS_VM_OP_CMD_BARRIER: {
        eyas_vm_commands_t* commands = NULL;
        TRY(as_commands(f, w[1], &commands));
        TRY(eyas_hal_command_buffer_barrier(commands->hal));
        w += 2;
        break;
      }
      case EYAS_VM_OP_CMD_FILL:
        TRY(run_fill(f, w));
        w += 9;
        break;
      case EYAS_VM_OP_CMD_COPY:
        TRY(run_copy(f, w));
        w += 12;
        break;
      case EYAS_VM_OP_CMD_END: {
        eyas_vm_commands_t* commands = NULL;
        TRY(as_commands(f, w[1], &commands));
        TRY(eyas_hal_command_buffer_end(commands->hal));
        commands->ended = true;
        w += 2;
        break;
      }
      case EYAS_VM_OP_SUBMIT:
        TRY(run_submit(f, w));
        w += 3 + w[2];
        break;
      case EYAS_VM_OP_SET_RESULT:
        TRY(run_set_result(f, w));
        w += 4 + w[3];
        break;
      default:  // the decoder let no other through
        return eyas_status_make(EYAS_STATUS_INTERNAL, "opcode 0x%02X is not implemented", w[0]);
    }
  }
failed:
  return eyas_status_annotate(status, "%s", eyas_vm_op_name(w[0]));
}
