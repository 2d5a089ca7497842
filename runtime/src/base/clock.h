// Monotonic time, and the hint that a CPU wants inside a spin loop.
#ifndef EYAS_BASE_CLOCK_H_
#define EYAS_BASE_CLOCK_H_

#include <stdint.h>

// CLOCK_MONOTONIC in nanoseconds.
uint64_t eyas_clock_now_ns(void);

static inline void eyas_cpu_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield" ::: "memory");
#elif defined(__riscv)
  __asm__ volatile(".4byte 0x0100000f" ::: "memory");  // `pause` (Zihintpause), a no-op without it
#endif
}

#endif  // EYAS_BASE_CLOCK_H_
