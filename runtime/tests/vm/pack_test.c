// The run-time arena packer: no overlap, alignment, bounds, refusal of impossible sizes.
#include "vm/pack.h"

#include <stdlib.h>

#include "hal/check.h"

enum { MAX = 200 };

static void check_random(unsigned seed, uint32_t count) {
  int64_t sizes[MAX], lifetimes[2 * MAX], offsets[MAX], total = -1;
  uint32_t scratch[2 * MAX];
  srand(seed);
  for (uint32_t i = 0; i < count; ++i) {
    sizes[i] = rand() % 8 ? rand() % 100000 : 0;
    lifetimes[2 * i] = rand() % 50;
    lifetimes[2 * i + 1] = lifetimes[2 * i] + rand() % 10;
  }
  CHECK(eyas_vm_pack(count, sizes, lifetimes, offsets, &total, scratch));
  int64_t sum = 0;
  for (uint32_t i = 0; i < count; ++i) {
    sum += (sizes[i] + 63) / 64 * 64;
    CHECK(offsets[i] >= 0 && offsets[i] % 64 == 0 && offsets[i] + sizes[i] <= total);
    for (uint32_t j = 0; j < i; ++j) {
      bool alive =
          lifetimes[2 * i] <= lifetimes[2 * j + 1] && lifetimes[2 * j] <= lifetimes[2 * i + 1];
      bool apart = offsets[i] + sizes[i] <= offsets[j] || offsets[j] + sizes[j] <= offsets[i];
      CHECK(!alive || apart || !sizes[i] || !sizes[j]);
    }
  }
  int64_t bound = 0;  // the most bytes alive at one moment
  for (int64_t t = 0; t < 60; ++t) {
    int64_t alive = 0;
    for (uint32_t i = 0; i < count; ++i) {
      if (lifetimes[2 * i] <= t && t <= lifetimes[2 * i + 1]) alive += (sizes[i] + 63) / 64 * 64;
    }
    if (alive > bound) bound = alive;
  }
  CHECK(total >= bound && total <= sum);
  CHECK(total <= bound + bound / 2);  // greedy by size stays near the bound
}

int main(void) {
  for (unsigned seed = 0; seed < 300; ++seed) check_random(seed, seed % MAX);

  // A chain reuses memory: two alive at a time, so three equal buffers need the room of two.
  int64_t sizes[3] = {100, 100, 100}, chain[6] = {0, 1, 1, 2, 2, 3}, offsets[3], total = 0;
  uint32_t scratch[6];
  CHECK(eyas_vm_pack(3, sizes, chain, offsets, &total, scratch) && total == 256);
  CHECK(offsets[0] == offsets[2] && offsets[0] != offsets[1]);
  // Intervals are closed: buffers that meet in one step do not share.
  int64_t together[6] = {0, 2, 2, 3, 1, 2};
  CHECK(eyas_vm_pack(3, sizes, together, offsets, &total, scratch) && total == 384);

  int64_t negative[1] = {-1}, huge[2] = {INT64_MAX - 70, INT64_MAX - 70}, always[4] = {0, 1, 0, 1};
  CHECK(!eyas_vm_pack(1, negative, always, offsets, &total, scratch));
  CHECK(!eyas_vm_pack(2, huge, always, offsets, &total, scratch));
  CHECK(eyas_vm_pack(0, NULL, NULL, NULL, &total, scratch) && total == 0);
  return check_summary("pack");
}
