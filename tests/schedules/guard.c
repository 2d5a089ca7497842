// Memory in which an overrun is noticed. Loaded with LD_PRELOAD; once `guard_on` was called, aligned allocations end at
// a page that nobody may touch, and what lies between is filled with a pattern that `guard_check` looks for.
// Nothing is given back: the process that runs one schedule ends soon.
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

extern void __libc_free(void*);
extern void* __libc_memalign(size_t, size_t);

#define PAGE ((size_t)4096)
#define REGION ((size_t)1 << 36)
#define MOST 4096
#define PATTERN 0xA5

static char* region;
static _Atomic size_t used;
static _Atomic unsigned count;
static struct {
  char *start, *at;
  size_t size, pages;
} live[MOST];

void guard_on(void) {
  region = mmap(NULL, REGION, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED) region = NULL;
}

void* guard_place(size_t alignment, size_t size) {
  if (!region || alignment > PAGE) return NULL;
  size_t rounded = (size + alignment - 1) / alignment * alignment;
  size_t pages = rounded / PAGE + 1;
  size_t offset = atomic_fetch_add(&used, (pages + 1) * PAGE);
  unsigned number = atomic_fetch_add(&count, 1);
  if (offset + (pages + 1) * PAGE > REGION || number >= MOST) return NULL;
  char* start = region + offset;
  if (mprotect(start, pages * PAGE, PROT_READ | PROT_WRITE) != 0) return NULL;
  memset(start, PATTERN, pages * PAGE);
  live[number].start = start;
  live[number].at = start + pages * PAGE - rounded;
  live[number].size = size;
  live[number].pages = pages;
  return live[number].at;
}

// How many allocations have something written before or behind them.
int guard_check(void) {
  int broken = 0;
  for (unsigned i = 0; i < count && i < MOST; ++i) {
    if (!live[i].at) continue;
    char *end = live[i].start + live[i].pages * PAGE, *behind = live[i].at + live[i].size;
    int bad = 0;
    for (char* p = live[i].start; p < live[i].at; ++p) bad |= (unsigned char)*p != PATTERN;
    for (char* p = behind; p < end; ++p) bad |= (unsigned char)*p != PATTERN;
    broken += bad;
  }
  return broken;
}

int posix_memalign(void** out, size_t alignment, size_t size) {
  void* memory = guard_place(alignment, size);
  *out = memory ? memory : __libc_memalign(alignment, size);
  return *out ? 0 : ENOMEM;
}

void* aligned_alloc(size_t alignment, size_t size) {
  void* memory = guard_place(alignment, size);
  return memory ? memory : __libc_memalign(alignment, size);
}

void free(void* memory) {
  if (region && (char*)memory >= region && (char*)memory < region + REGION) return;
  __libc_free(memory);
}
