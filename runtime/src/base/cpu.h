// What this process may use of the machine's processors, and what they can do.
#ifndef EYAS_BASE_CPU_H_
#define EYAS_BASE_CPU_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// CPUs that this process may run on: the affinity mask, cut down to the cgroup's CPU quota (what a
// container's `--cpus` sets). At least 1.
uint32_t eyas_cpu_count(void);

// The processor's name for people, always zero-terminated.
void eyas_cpu_name(char* out_name, size_t capacity);

// Whether this processor, and the kernel, support a feature by LLVM's name. Unknown names: false.
bool eyas_cpu_supports(const char* feature);

#endif  // EYAS_BASE_CPU_H_
