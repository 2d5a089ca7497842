#include <stdio.h>

#include "base/checked.h"
#include "vm/context.h"

typedef struct text_t {
  char data[512];
  size_t length;
} text_t;

static void append(text_t* text, const char* part) {
  size_t room = sizeof(text->data) - text->length;
  int written = snprintf(text->data + text->length, room, "%s", part);
  if (written > 0) text->length += (size_t)written < room ? (size_t)written : room - 1;
}

static void append_dim(text_t* text, const eyas_signature_t* s, int64_t dim) {
  char number[24];
  snprintf(number, sizeof(number), "%lld", (long long)dim);
  bool symbol =
      dim <= -2 && -2 - dim < (int64_t)s->symbol_count;  // a caller's own dims may be anything
  append(text, symbol ? s->symbols[-2 - dim].name : dim == -1 ? "?" : number);
}

static text_t type_text(const eyas_signature_t* s, uint32_t dtype, uint32_t rank,
                        const int64_t* dims) {
  text_t text = {.length = 0};
  append(&text, eyas_dtype_name(dtype));
  append(&text, "[");
  for (uint32_t i = 0; i < rank && i < EYAS_MAX_RANK; ++i) {
    if (i) append(&text, ",");
    append_dim(&text, s, dims[i]);
  }
  append(&text, "]");
  return text;
}

// "argument 1 'x': expected f32[?,128], got f32[2,64]: " and what is wrong with it.
static eyas_status_t wrong_arg(const eyas_signature_t* s, uint32_t index, const eyas_tensor_t* arg,
                               const char* why) {
  const eyas_tensor_spec_t* spec = &s->args[index];
  text_t expected = type_text(s, spec->dtype, spec->rank, spec->dims);
  text_t got = type_text(s, arg->dtype, arg->rank, arg->dims);
  return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT, "argument %u '%s': expected %s, got %s: %s",
                          index, spec->name, expected.data, got.data, why);
}

// Where a symbol stands first, which is what bound it.
static void first_place(const eyas_signature_t* s, int64_t symbol, uint32_t* arg, uint32_t* dim) {
  for (*arg = 0;; ++*arg) {
    for (*dim = 0; *dim < s->args[*arg].rank; ++*dim) {
      if (s->args[*arg].dims[*dim] == symbol) return;
    }
  }
}

static eyas_status_t check_symbol(const eyas_signature_t* s, uint32_t index,
                                  const eyas_tensor_t* arg, uint32_t dim, int64_t* bound) {
  uint32_t symbol = (uint32_t)(-2 - s->args[index].dims[dim]);
  const eyas_symbol_t* rule = &s->symbols[symbol];
  int64_t value = arg->dims[dim];
  char why[384];
  if (bound[symbol] < 0) {
    bound[symbol] = value;
    if (value >= rule->min && value <= rule->max && value % rule->multiple == 0) return NULL;
    if (value < rule->min) {
      snprintf(why, sizeof(why), "dimension %u (%s) must be at least %lld", dim, rule->name,
               (long long)rule->min);
    } else if (value > rule->max) {
      snprintf(why, sizeof(why), "dimension %u (%s) must be at most %lld", dim, rule->name,
               (long long)rule->max);
    } else {
      snprintf(why, sizeof(why), "dimension %u (%s) must be a multiple of %lld", dim, rule->name,
               (long long)rule->multiple);
    }
    return wrong_arg(s, index, arg, why);
  }
  if (bound[symbol] == value) return NULL;
  uint32_t first_arg = 0, first_dim = 0;
  first_place(s, s->args[index].dims[dim], &first_arg, &first_dim);
  snprintf(
      why, sizeof(why),
      "dimension %u (%s) must be %lld, as in an earlier argument (dimension %u of '%.64s'); if "
      "they may differ, give it a name of its own when compiling (dynamic_shapes)",
      dim, rule->name, (long long)bound[symbol], first_dim, s->args[first_arg].name);
  return wrong_arg(s, index, arg, why);
}

eyas_status_t eyas_vm_check_buffer(eyas_hal_device_t* device, const eyas_hal_buffer_t* buffer,
                                   uint64_t bytes) {
  if (eyas_hal_buffer_device(buffer) != device) {
    eyas_hal_device_info_t ours, theirs;
    eyas_hal_device_info(device, &ours);
    eyas_hal_device_info(eyas_hal_buffer_device(buffer), &theirs);
    return eyas_status_make(
        EYAS_STATUS_INVALID_ARGUMENT,
        "it is a buffer of another device (%s) than the one that the module is on "
        "(%s): copy it to the host first",
        theirs.driver, ours.driver);
  }
  if (eyas_hal_buffer_length(buffer) < bytes) {
    return eyas_status_make(
        EYAS_STATUS_INVALID_ARGUMENT, "its buffer has %llu bytes, its elements take %llu",
        (unsigned long long)eyas_hal_buffer_length(buffer), (unsigned long long)bytes);
  }
  return NULL;
}

static eyas_status_t check_arg(eyas_hal_device_t* device, const eyas_signature_t* s, uint32_t index,
                               const eyas_tensor_t* arg, int64_t* bound) {
  const eyas_tensor_spec_t* spec = &s->args[index];
  char why[128];
  if (arg->rank > EYAS_MAX_RANK) {
    return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT,
                            "argument %u '%s': rank %u is over the limit of %u", index, spec->name,
                            arg->rank, EYAS_MAX_RANK);
  }
  if (arg->dtype != spec->dtype) {
    snprintf(why, sizeof(why), "the element type must be %s", eyas_dtype_name(spec->dtype));
    return wrong_arg(s, index, arg, why);
  }
  if (arg->rank != spec->rank) {
    snprintf(why, sizeof(why), "it must have %u dimension%s", spec->rank,
             spec->rank == 1 ? "" : "s");
    return wrong_arg(s, index, arg, why);
  }
  uint64_t bytes = eyas_dtype_bytes(spec->dtype);
  for (uint32_t i = 0; i < spec->rank; ++i) {
    int64_t value = arg->dims[i];
    if (value < 0 || !eyas_checked_mul(bytes, (uint64_t)value, &bytes)) {
      return wrong_arg(s, index, arg, "its size in bytes is impossible");
    }
    if (spec->dims[i] < -1) {
      EYAS_RETURN_IF_ERROR(check_symbol(s, index, arg, i, bound));
    } else if (spec->dims[i] >= 0 && spec->dims[i] != value) {
      snprintf(why, sizeof(why), "dimension %u must be %lld", i, (long long)spec->dims[i]);
      return wrong_arg(s, index, arg, why);
    }
  }
  if (arg->buffer) {
    return eyas_status_annotate(eyas_vm_check_buffer(device, arg->buffer, bytes),
                                "argument %u '%s'", index, spec->name);
  }
  if (!arg->data && bytes) return wrong_arg(s, index, arg, "its data pointer is null");
  return NULL;
}

eyas_status_t eyas_vm_check_args(eyas_hal_device_t* device, const eyas_signature_t* s,
                                 const eyas_tensor_t* args, uint32_t arg_count, int64_t* bound) {
  if (arg_count != s->arg_count) {
    text_t names = {.length = 0};
    for (uint32_t i = 0; i < s->arg_count; ++i) {
      if (i) append(&names, ", ");
      append(&names, s->args[i].name);
    }
    return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT, "'%s' takes %u argument%s (%s), got %u",
                            s->name, s->arg_count, s->arg_count == 1 ? "" : "s", names.data,
                            arg_count);
  }
  for (uint32_t i = 0; i < s->symbol_count; ++i) bound[i] = -1;
  for (uint32_t i = 0; i < arg_count; ++i) {
    EYAS_RETURN_IF_ERROR(check_arg(device, s, i, &args[i], bound));
  }
  return NULL;
}

eyas_status_t eyas_vm_check_result(const eyas_signature_t* s, uint32_t index, const int64_t* dims,
                                   uint64_t available, uint64_t* out_bytes) {
  const eyas_tensor_spec_t* spec = &s->results[index];
  uint64_t bytes = eyas_dtype_bytes(spec->dtype);
  bool good = true;
  for (uint32_t i = 0; i < spec->rank; ++i) {
    good = good && dims[i] >= 0 && eyas_checked_mul(bytes, (uint64_t)dims[i], &bytes) &&
           (spec->dims[i] < 0 || spec->dims[i] == dims[i]);
  }
  if (!good || bytes > available) {
    text_t expected = type_text(s, spec->dtype, spec->rank, spec->dims);
    text_t got = {.length = 0};
    for (uint32_t i = 0; i < spec->rank; ++i) {
      char number[24];
      snprintf(number, sizeof(number), "%s%lld", i ? "," : "", (long long)dims[i]);
      append(&got, number);
    }
    return eyas_status_make(
        EYAS_STATUS_INTERNAL,
        "the module gives result %u '%s', of type %s, the dimensions [%s] in %llu "
        "bytes, which do not go together",
        index, spec->name, expected.data, got.data, (unsigned long long)available);
  }
  *out_bytes = bytes;
  return NULL;
}
