// Sleep until a 32-bit word changes. Linux futexes; elsewhere one process-wide condition variable.
#ifndef EYAS_BASE_FUTEX_H_
#define EYAS_BASE_FUTEX_H_

#include <stdatomic.h>
#include <stdint.h>

// Sleeps while *word == expected. May return early; callers loop.
void eyas_futex_wait(_Atomic uint32_t* word, uint32_t expected);

// Wakes up to `count` sleepers on the word.
void eyas_futex_wake(_Atomic uint32_t* word, uint32_t count);

#endif  // EYAS_BASE_FUTEX_H_
