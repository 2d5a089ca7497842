// How fast the device is at best: plausible numbers, and errors for sizes that cannot be measured.
#include <string.h>

#include "eyas/measure.h"

#include <math.h>

#include "hal/fixture.h"
#include "measure/kernels.h"

static void test_measure(eyas_hal_device_t* device) {
  double flops = 0, memory = 0, cache = 0;
  // The kernels are functions of this process.
  if (!info_of(device).host_visible || strcmp(format_of(device), "vmvx")) {
    CHECK_FAILS(eyas_measure_fma(device, 5, &flops), INCOMPATIBLE, "functions of this process");
    return;
  }
  CHECK_OK(eyas_measure_fma(device, 5, &flops));
  CHECK_OK(eyas_measure_read(device, 8u << 20, true, 5, &memory));
  CHECK_OK(eyas_measure_read(device, 16u << 10, false, 5, &cache));
  CHECK(flops > 1e6 && flops < 1e15);
  CHECK(memory > 1e6 && memory < 1e13 && cache > 1e6 && cache < 1e14);
  CHECK_FAILS(eyas_measure_read(device, 100, false, 1, &cache), INVALID_ARGUMENT, "at least");
  CHECK_FAILS(eyas_measure_read(device, 1024, true, 1, &cache), INVALID_ARGUMENT, "at least");
}

static void test_kernels(void) {
  const eyas_measure_kernels_t kernels = eyas_measure_kernels();
  // x -> 0.999 x + 0.001 leaves 1 where it is and draws all else to it.
  CHECK(fabsf(kernels.fma(100000) - 12.0f) < 0.1f);
  CHECK(kernels.flops_per_round % 24 == 0);
  static uint64_t words[2 * EYAS_MEASURE_READ_STEP / 8] __attribute__((aligned(64)));
  uint64_t zero = kernels.read(words, sizeof(words));
  words[EYAS_MEASURE_READ_STEP / 8] = 7;  // first lane of the second step
  CHECK(zero == 0 && kernels.read(words, sizeof(words)) == 7);
  CHECK(kernels.read(words, 0) == 0);
}

int main(void) {
  test_kernels();
  for_each_device(test_measure);
  return check_summary("measure");
}
