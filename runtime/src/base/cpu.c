#define _GNU_SOURCE 1
#include "base/cpu.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

uint64_t eyas_clock_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint32_t affinity_count(void) {
  // Machines with more CPUs than a cpu_set_t holds need a larger mask: grow until it fits.
  for (int capacity = 1024; capacity <= 1 << 16; capacity *= 4) {
    cpu_set_t* set = CPU_ALLOC((size_t)capacity);
    if (!set) break;
    size_t bytes = CPU_ALLOC_SIZE((size_t)capacity);
    int result = sched_getaffinity(0, bytes, set);
    int count = result == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (result == 0) return count > 0 ? (uint32_t)count : 1;
  }
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (uint32_t)online : 1;
}

static bool read_line(const char* path, char* line, size_t capacity) {
  FILE* file = fopen(path, "re");
  if (!file) return false;
  bool ok = fgets(line, (int)capacity, file) != NULL;
  fclose(file);
  return ok;
}

// CPUs' worth of time that a quota allows, rounded up; UINT32_MAX for no limit.
static uint32_t quota_count(long long quota, long long period) {
  if (quota <= 0 || period <= 0) return UINT32_MAX;
  long long count = quota / period + (quota % period != 0);
  return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

static uint32_t cgroup_v2_count(void) {
  char group[PATH_MAX] = "", path[PATH_MAX + 64], line[128];
  FILE* file = fopen("/proc/self/cgroup", "re");
  if (!file) return UINT32_MAX;
  while (fgets(group, sizeof(group), file)) {
    if (strncmp(group, "0::", 3) == 0) break;
    group[0] = 0;
  }
  fclose(file);
  if (group[0] == 0) return UINT32_MAX;
  group[strcspn(group, "\n")] = 0;
  char* name = group + 3;
  uint32_t least = UINT32_MAX;
  for (;;) {  // every ancestor may set a tighter limit
    snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.max", strcmp(name, "/") == 0 ? "" : name);
    // "max 100000" or "50000 100000". Not scanf, which would bring all of it into a static program.
    char *behind_quota = line, *behind_period = line;
    if (read_line(path, line, sizeof(line)) && line[0] >= '0' && line[0] <= '9') {
      long long quota = strtoll(line, &behind_quota, 10);
      long long period = strtoll(behind_quota, &behind_period, 10);
      uint32_t count = behind_period > behind_quota ? quota_count(quota, period) : UINT32_MAX;
      if (count < least) least = count;
    }
    char* slash = strrchr(name, '/');
    if (!slash) return least;
    *slash = 0;
  }
}

static uint32_t cgroup_v1_count(void) {
  char line[64];
  if (!read_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", line, sizeof(line))) return UINT32_MAX;
  long long quota = atoll(line);
  if (!read_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", line, sizeof(line))) return UINT32_MAX;
  return quota_count(quota, atoll(line));
}

uint32_t eyas_cpu_count(void) {
  uint32_t count = affinity_count();
  uint32_t v2 = cgroup_v2_count(), v1 = cgroup_v1_count();
  if (v2 < count) count = v2;
  if (v1 < count) count = v1;
  return count;
}

void eyas_cpu_name(char* out_name, size_t capacity) {
  snprintf(out_name, capacity, "cpu");
  FILE* file = fopen("/proc/cpuinfo", "re");
  if (!file) return;
  char line[256];
  while (fgets(line, sizeof(line), file)) {
    // "model name" on x86, "uarch" on RISC-V; AArch64 kernels give no name.
    if (strncmp(line, "model name", 10) != 0 && strncmp(line, "uarch", 5) != 0) continue;
    char* value = strchr(line, ':');
    if (!value) continue;
    value += 1 + strspn(value + 1, " \t");
    value[strcspn(value, "\n")] = 0;
    snprintf(out_name, capacity, "%s", value);
    break;
  }
  fclose(file);
}
