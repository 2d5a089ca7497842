#define _GNU_SOURCE 1
#include "base/futex.h"

#if defined(__linux__) && !defined(EYAS_NO_FUTEX)

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

void eyas_futex_wait(_Atomic uint32_t* word, uint32_t expected) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

void eyas_futex_wake(_Atomic uint32_t* word, uint32_t count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count > INT_MAX ? INT_MAX : count, NULL, NULL, 0);
}

#else

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

void eyas_futex_wait(_Atomic uint32_t* word, uint32_t expected) {
  pthread_mutex_lock(&mutex);
  if (atomic_load(word) == expected) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}

void eyas_futex_wake(_Atomic uint32_t* word, uint32_t count) {
  (void)word, (void)count;
  pthread_mutex_lock(&mutex);
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
}

#endif
