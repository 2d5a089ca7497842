// The whole test framework: checks that count, and a summary line.
#ifndef EYAS_TESTS_CHECK_H_
#define EYAS_TESTS_CHECK_H_

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "eyas/status.h"

static _Atomic int check_passed, check_failed;

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (condition) {                                                          \
      ++check_passed;                                                         \
    } else {                                                                  \
      ++check_failed;                                                         \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                         \
  } while (0)

static inline int check_status(eyas_status_t status, eyas_status_code_t code, const char* text,
                               const char* file, int line) {
  int ok = eyas_status_code(status) == code &&
           (!text || strstr(eyas_status_message(status), text) != NULL);
  if (ok) {
    ++check_passed;
  } else {
    ++check_failed;
    fprintf(stderr, "%s:%d: expected %s '%s', got %s: %s\n", file, line,
            eyas_status_code_name(code), text ? text : "",
            eyas_status_code_name(eyas_status_code(status)), eyas_status_message(status));
  }
  eyas_status_free(status);
  return ok;
}

// The call succeeds.
#define CHECK_OK(status) check_status((status), EYAS_STATUS_OK, NULL, __FILE__, __LINE__)

// The call fails with this code and a message that contains `text`.
#define CHECK_FAILS(status, code, text) \
  check_status((status), EYAS_STATUS_##code, (text), __FILE__, __LINE__)

static inline int check_summary(const char* name) {
  printf("%s: %d passed, %d failed\n", name, check_passed, check_failed);
  return check_failed != 0;
}

#endif  // EYAS_TESTS_CHECK_H_
