// Status: the result of everything in the runtime that can fail.
//
// A status is NULL when the call succeeded. Otherwise it is a heap object with a code and a message
// that says what was seen and what is allowed.
//
// Ownership: whoever receives a status that is not NULL owns it, and must pass it on, hand it to a
// function documented to consume it, or free it with eyas_status_free. Messages live as long as the
// status. When a call fails its out-parameters are left at NULL or untouched, never half-built.
#ifndef EYAS_STATUS_H_
#define EYAS_STATUS_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

// Numbers are stable: bindings and saved logs use them.
typedef enum eyas_status_code_t {
  EYAS_STATUS_OK = 0,
  EYAS_STATUS_INVALID_ARGUMENT = 1,     // the caller passed something that is never allowed
  EYAS_STATUS_OUT_OF_RANGE = 2,         // an offset, length or index beyond its object
  EYAS_STATUS_NOT_FOUND = 3,            // a name that nothing here has
  EYAS_STATUS_UNAVAILABLE = 4,          // not now: a timeout, a device that is absent
  EYAS_STATUS_INCOMPATIBLE = 5,         // made for another machine, format or version
  EYAS_STATUS_CORRUPT = 6,              // a file or image that contradicts itself
  EYAS_STATUS_RESOURCE_EXHAUSTED = 7,   // memory, threads or a named limit
  EYAS_STATUS_FAILED_PRECONDITION = 8,  // right call, wrong moment
  EYAS_STATUS_INTERNAL = 9,             // our own bug, or compiled code that reported failure
} eyas_status_code_t;

typedef struct eyas_status_object_t eyas_status_object_t;
typedef eyas_status_object_t* eyas_status_t;

#define EYAS_STATUS_SUCCESS ((eyas_status_t)0)

// Makes a failure with a printf-style message. `code` must not be EYAS_STATUS_OK. Never returns
// NULL: without memory for the object a static RESOURCE_EXHAUSTED status is returned.
eyas_status_t eyas_status_make(eyas_status_code_t code, const char* format, ...)
    __attribute__((format(printf, 2, 3), cold));

// Consumes `status` and returns it with "context: " put before its message; NULL stays NULL.
eyas_status_t eyas_status_annotate(eyas_status_t status, const char* format, ...)
    __attribute__((format(printf, 2, 3), cold));

// Consumes both and returns the first that is a failure.
eyas_status_t eyas_status_join(eyas_status_t first, eyas_status_t second);

eyas_status_code_t eyas_status_code(eyas_status_t status);

// Never NULL; "ok" for success. Owned by the status.
const char* eyas_status_message(eyas_status_t status);

// "INVALID_ARGUMENT" and so on; a static string.
const char* eyas_status_code_name(eyas_status_code_t code);

// A copy that the caller owns; NULL stays NULL.
eyas_status_t eyas_status_clone(eyas_status_t status);

// Frees the object; NULL is allowed.
void eyas_status_free(eyas_status_t status);

#define EYAS_RETURN_IF_ERROR(expression)             \
  do {                                               \
    eyas_status_t eyas_status_ = (expression);       \
    if (__builtin_expect(eyas_status_ != NULL, 0)) { \
      return eyas_status_;                           \
    }                                                \
  } while (0)

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif  // EYAS_STATUS_H_
