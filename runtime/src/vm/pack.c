#include "vm/pack.h"

// Heap sort by falling size, then rising index: no recursion, no worst case, no allocation.
static bool before(const int64_t* sizes, uint32_t a, uint32_t b) {
  return sizes[a] != sizes[b] ? sizes[a] > sizes[b] : a < b;
}

static void sift(uint32_t* order, const int64_t* sizes, uint32_t root, uint32_t count) {
  for (;;) {
    uint32_t child = 2 * root + 1;
    if (child >= count) return;
    if (child + 1 < count && before(sizes, order[child], order[child + 1])) ++child;
    if (!before(sizes, order[root], order[child])) return;
    uint32_t swap = order[root];
    order[root] = order[child];
    order[child] = swap;
    root = child;
  }
}

static void sort_by_size(uint32_t* order, const int64_t* sizes, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) order[i] = i;
  for (uint32_t i = count / 2; i > 0; --i) sift(order, sizes, i - 1, count);
  for (uint32_t i = count; i > 1; --i) {
    uint32_t swap = order[0];
    order[0] = order[i - 1];
    order[i - 1] = swap;
    sift(order, sizes, 0, i - 1);
  }
}

bool eyas_vm_pack(uint32_t count, const int64_t* sizes, const int64_t* lifetimes, int64_t* offsets,
                  int64_t* out_total, uint32_t* scratch) {
  const int64_t align = EYAS_VM_PACK_ALIGNMENT;
  int64_t sum = 0;  // no offset can pass it, so nothing below overflows
  for (uint32_t i = 0; i < count; ++i) {
    if (sizes[i] < 0 || sizes[i] > INT64_MAX - align) return false;
    if (__builtin_add_overflow(sum, (sizes[i] + align - 1) / align * align, &sum)) return false;
  }
  uint32_t* order = scratch;
  uint32_t* placed = scratch + count;  // by rising offset
  sort_by_size(order, sizes, count);
  uint32_t placed_count = 0;
  int64_t total = 0;
  for (uint32_t k = 0; k < count; ++k) {
    uint32_t i = order[k];
    int64_t size = (sizes[i] + align - 1) / align * align;
    offsets[i] = 0;
    if (size == 0) continue;
    int64_t at = 0;
    for (uint32_t p = 0; p < placed_count; ++p) {
      uint32_t j = placed[p];
      if (lifetimes[2 * j] > lifetimes[2 * i + 1] || lifetimes[2 * i] > lifetimes[2 * j + 1])
        continue;
      if (offsets[j] - at >= size) break;
      int64_t end = offsets[j] + (sizes[j] + align - 1) / align * align;
      if (end > at) at = end;
    }
    offsets[i] = at;
    if (at + size > total) total = at + size;
    uint32_t p = placed_count++;
    for (; p > 0 && offsets[placed[p - 1]] > at; --p) placed[p] = placed[p - 1];
    placed[p] = i;
  }
  *out_total = total;
  return true;
}
