#include "eyas/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct eyas_status_object_t {
  eyas_status_code_t code;
  char message[];  // zero-terminated
};

// What is returned when there is no memory left to say anything better. Its own type, because a
// flexible array member cannot be initialised portably; the layouts agree.
static struct {
  eyas_status_code_t code;
  char message[48];
} out_of_memory = {EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory"};

static eyas_status_t out_of_memory_status(void) {
  return (eyas_status_t)(void*)&out_of_memory;
}

// Makes a status with the message "prefix: suffix", or just the prefix when suffix is NULL.
static eyas_status_t make_status(eyas_status_code_t code, const char* suffix, const char* format,
                                 va_list args) {
  va_list again;
  va_copy(again, args);
  int prefix_length = vsnprintf(NULL, 0, format, args);
  if (prefix_length < 0) prefix_length = 0;
  size_t suffix_length = suffix ? strlen(suffix) + 2 : 0;
  size_t length = (size_t)prefix_length + suffix_length;
  eyas_status_t status = malloc(sizeof(*status) + length + 1);
  if (status) {
    status->code = code;
    status->message[0] = 0;
    vsnprintf(status->message, (size_t)prefix_length + 1, format, again);
    if (suffix) {
      memcpy(status->message + prefix_length, ": ", 2);
      memcpy(status->message + prefix_length + 2, suffix, suffix_length - 2);
    }
    status->message[length] = 0;
  }
  va_end(again);
  return status ? status : out_of_memory_status();
}

eyas_status_t eyas_status_make(eyas_status_code_t code, const char* format, ...) {
  va_list args;
  va_start(args, format);
  eyas_status_t status = make_status(code, NULL, format, args);
  va_end(args);
  return status;
}

eyas_status_t eyas_status_annotate(eyas_status_t status, const char* format, ...) {
  if (!status) return NULL;
  va_list args;
  va_start(args, format);
  eyas_status_t annotated = make_status(status->code, status->message, format, args);
  va_end(args);
  eyas_status_free(status);
  return annotated;
}

eyas_status_t eyas_status_join(eyas_status_t first, eyas_status_t second) {
  if (!first) return second;
  eyas_status_free(second);
  return first;
}

eyas_status_code_t eyas_status_code(eyas_status_t status) {
  return status ? status->code : EYAS_STATUS_OK;
}

const char* eyas_status_message(eyas_status_t status) {
  return status ? status->message : "ok";
}

const char* eyas_status_code_name(eyas_status_code_t code) {
  static const char* const names[] = {
      "OK",        "INVALID_ARGUMENT",   "OUT_OF_RANGE",
      "NOT_FOUND", "UNAVAILABLE",        "INCOMPATIBLE",
      "CORRUPT",   "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "INTERNAL",
  };
  size_t index = (size_t)code;
  return index < sizeof(names) / sizeof(names[0]) ? names[index] : "UNKNOWN";
}

eyas_status_t eyas_status_clone(eyas_status_t status) {
  return status ? eyas_status_make(status->code, "%s", status->message) : NULL;
}

void eyas_status_free(eyas_status_t status) {
  if (status != out_of_memory_status()) free(status);
}
