#include "module/variants.h"

#include <stdarg.h>
#include <stdio.h>

#include "eyas/hal.h"

#define MAGIC "EYASVAR"

static bool parse_requirement(eyas_reader_t* r, eyas_bump_t* memory, eyas_requirement_t* out) {
  out->format = eyas_read_text(r, memory);
  out->feature_count = eyas_read_count(r, 4);
  const char** features = eyas_bump_allocate(memory, out->feature_count, sizeof(*features));
  if (!features) return false;
  for (uint32_t i = 0; i < out->feature_count; ++i) features[i] = eyas_read_text(r, memory);
  out->features = features;
  return !r->failed;
}

static bool parse_variant(eyas_reader_t* r, eyas_bump_t* memory, eyas_variant_requirements_t* out) {
  out->variant.name = eyas_read_text(r, memory);
  out->variant.target = eyas_read_text(r, memory);
  out->executable_count = eyas_read_count(r, 8);
  eyas_requirement_t* executables =
      eyas_bump_allocate(memory, out->executable_count, sizeof(*executables));
  if (!executables) return false;
  for (uint32_t i = 0; i < out->executable_count; ++i) {
    if (!parse_requirement(r, memory, &executables[i])) return false;
  }
  out->executables = executables;
  return !r->failed;
}

eyas_status_t eyas_variants_parse(const uint8_t* data, size_t length, eyas_variants_t* variants) {
  memset(variants, 0, sizeof(*variants));
  eyas_reader_t r = {data, 0, length, false};
  const uint8_t* magic = eyas_read_bytes(&r, sizeof(MAGIC));
  bool good = magic && memcmp(magic, MAGIC, sizeof(MAGIC)) == 0;
  variants->count = good ? eyas_read_count(&r, 12) : 0;
  eyas_variant_requirements_t* items =
      eyas_bump_allocate(&variants->memory, variants->count, sizeof(*items));
  good = good && items && variants->count > 0;
  for (uint32_t i = 0; good && i < variants->count; ++i) {
    good = parse_variant(&r, &variants->memory, &items[i]);
  }
  variants->items = items;
  if (good && !r.failed) return NULL;
  eyas_variants_free(variants);
  return eyas_status_make(EYAS_STATUS_CORRUPT, "variants.bin is damaged");
}

void eyas_variants_free(eyas_variants_t* variants) {
  eyas_bump_free(&variants->memory);
  memset(variants, 0, sizeof(*variants));
}

// A message that grows; what does not fit is left out.
typedef struct text_t {
  char data[1024];
  size_t length;
} text_t;

__attribute__((format(printf, 2, 3))) static void append(text_t* text, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const size_t left = sizeof(text->data) - text->length;
  const int written = vsnprintf(text->data + text->length, left, format, arguments);
  va_end(arguments);
  if (written > 0) text->length += (size_t)written < left ? (size_t)written : left - 1;
}

// Whether the device can run all executables of a variant; says what it lacks otherwise.
static bool can_run(const eyas_variant_requirements_t* v, eyas_hal_device_t* device, text_t* why) {
  for (uint32_t i = 0; i < v->executable_count; ++i) {
    const eyas_requirement_t* e = &v->executables[i];
    eyas_status_t status =
        eyas_hal_device_check_code(device, e->format, e->features, e->feature_count);
    if (!status) continue;
    // What to do about it is said once, for all variants.
    const char* message = eyas_status_message(status);
    const char* advice = strstr(message, ": compile");
    const size_t length = advice ? (size_t)(advice - message) : strlen(message);
    append(why, "; %s: %.*s", v->variant.target, (int)length, message);
    eyas_status_free(status);
    return false;
  }
  return true;
}

static eyas_status_t find_named(const eyas_variants_t* variants, const char* wanted,
                                uint32_t* out_index) {
  uint32_t similar = 0;
  for (uint32_t i = 0; i < variants->count; ++i) {
    const eyas_variant_t* v = &variants->items[i].variant;
    if (strcmp(v->name, wanted) == 0 || strcmp(v->target, wanted) == 0) {
      *out_index = i;
      return NULL;
    }
    if (!strstr(v->name, wanted) && !strstr(v->target, wanted)) continue;
    *out_index = i;
    ++similar;
  }
  if (similar == 1) return NULL;
  text_t names = {.length = 0};
  for (uint32_t i = 0; i < variants->count; ++i) {
    append(&names, "%s%s", i ? ", " : "", variants->items[i].variant.target);
  }
  return eyas_status_make(EYAS_STATUS_NOT_FOUND, "%s variant is called '%s'; the module has: %s",
                          similar ? "more than one" : "no", wanted, names.data);
}

eyas_status_t eyas_variants_choose(const eyas_variants_t* variants, const char* wanted,
                                   eyas_hal_device_t* device, uint32_t* out_index) {
  *out_index = 0;
  if (wanted) return find_named(variants, wanted, out_index);
  if (!device) return NULL;
  text_t why = {.length = 0};
  for (uint32_t i = 0; i < variants->count; ++i) {
    *out_index = i;
    if (can_run(&variants->items[i], device, &why)) return NULL;
  }
  eyas_hal_device_info_t info;
  eyas_hal_device_info(device, &info);
  eyas_status_t bytecode = eyas_hal_device_check_code(device, "vmvx", NULL, 0);
  const bool is_cpu = !bytecode;
  eyas_status_free(bytecode);
  return eyas_status_make(
      EYAS_STATUS_INCOMPATIBLE,
      "none of the module's %u variants runs on device %s (%s)%s; compile the model for this %s",
      variants->count, info.driver, info.name, why.data,
      is_cpu ? "machine too, or add the target vmvx, which runs on every CPU" : "device too");
}
