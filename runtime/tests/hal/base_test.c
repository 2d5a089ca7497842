// Status, checked arithmetic, SHA-256, CPU facts and the 16-bit float conversions.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "base/half.h"
#include "base/sha256.h"
#include "hal/check.h"
#include "hal/cpu/imports.h"

static eyas_status_t fails(void) {
  return eyas_status_make(EYAS_STATUS_NOT_FOUND, "no %s among %d", "x", 3);
}

static eyas_status_t passes_on(void) {
  EYAS_RETURN_IF_ERROR(EYAS_STATUS_SUCCESS);
  EYAS_RETURN_IF_ERROR(fails());
  return NULL;
}

static void test_status(void) {
  CHECK(eyas_status_code(NULL) == EYAS_STATUS_OK);
  CHECK(strcmp(eyas_status_message(NULL), "ok") == 0);
  CHECK_FAILS(passes_on(), NOT_FOUND, "no x among 3");
  CHECK_FAILS(eyas_status_annotate(fails(), "load %d", 7), NOT_FOUND, "load 7: no x among 3");
  CHECK(eyas_status_annotate(NULL, "x") == NULL);
  eyas_status_t status = fails();
  CHECK_FAILS(eyas_status_clone(status), NOT_FOUND, "no x among 3");
  CHECK_FAILS(eyas_status_join(status, eyas_status_make(EYAS_STATUS_CORRUPT, "y")), NOT_FOUND, "x");
  CHECK_FAILS(eyas_status_join(NULL, eyas_status_make(EYAS_STATUS_CORRUPT, "y")), CORRUPT, "y");
  CHECK(strcmp(eyas_status_code_name(EYAS_STATUS_INTERNAL), "INTERNAL") == 0);
  CHECK(strcmp(eyas_status_code_name((eyas_status_code_t)99), "UNKNOWN") == 0);
}

static void test_checked(void) {
  uint64_t value = 0;
  CHECK(eyas_checked_add(1, 2, &value) && value == 3);
  CHECK(!eyas_checked_add(UINT64_MAX, 1, &value));
  CHECK(!eyas_checked_mul(1ull << 32, 1ull << 32, &value));
  CHECK(eyas_checked_align(65, 64, &value) && value == 128);
  CHECK(!eyas_checked_align(UINT64_MAX - 3, 64, &value));
  CHECK(eyas_range_fits(4, 4, 8) && eyas_range_fits(8, 0, 8));
  CHECK(!eyas_range_fits(4, 5, 8) && !eyas_range_fits(9, 0, 8));
  CHECK(!eyas_range_fits(4, UINT64_MAX - 2, 8));
}

static void test_sha256(void) {
  static const struct {
    const char *text, *digest;
  } cases[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
  };
  uint8_t digest[32];
  char text[65];
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    eyas_sha256(cases[i].text, strlen(cases[i].text), digest);
    eyas_sha256_hex(digest, text);
    CHECK(strcmp(text, cases[i].digest) == 0);
  }
  // A million 'a', in pieces of every size (FIPS 180-4's long example).
  char letters[997];
  memset(letters, 'a', sizeof(letters));
  eyas_sha256_t hash;
  eyas_sha256_begin(&hash);
  for (size_t done = 0, step = 1; done < 1000000; step = step % 997 + 1) {
    size_t take = step < 1000000 - done ? step : 1000000 - done;
    eyas_sha256_update(&hash, letters, take);
    done += take;
  }
  eyas_sha256_end(&hash, digest);
  eyas_sha256_hex(digest, text);
  CHECK(strcmp(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0") == 0);
}

static void test_cpu(void) {
  char name[64] = "";
  eyas_cpu_name(name, sizeof(name));
  CHECK(name[0] != 0);
  CHECK(eyas_cpu_count() >= 1);
  CHECK(!eyas_cpu_supports("no-such-feature") && !eyas_cpu_supports(""));
#if defined(__x86_64__)
  CHECK(eyas_cpu_supports("sse2"));
  unsetenv("EYAS_HOST");
  const bool has_avx2 = eyas_cpu_supports("avx2");
  setenv("EYAS_HOST", "x86-64-v2", 1);  // a machine with less
  CHECK(eyas_cpu_supports("sse2") && !eyas_cpu_supports("avx2") && !eyas_cpu_supports("sha"));
  setenv("EYAS_HOST", "x86-64-v3", 1);
  CHECK(eyas_cpu_supports("avx2") == has_avx2 && !eyas_cpu_supports("avx512f"));
  unsetenv("EYAS_HOST");
#endif
}

static uint16_t as_bits(eyas_half_carrier_t carrier) {
  uint32_t wide;
  memcpy(&wide, &carrier, sizeof(wide));
  return (uint16_t)wide;
}

static eyas_half_carrier_t as_carrier(uint16_t bits) {
  uint32_t wide = bits | 0xabcd0000u;  // upper bits are nobody's business
  eyas_half_carrier_t carrier;
  memcpy(&carrier, &wide, sizeof(carrier));
  return carrier;
}

// Every half goes to float and back; every point half way between two neighbours goes to the even
// one, and a hair to either side of it to the nearer one.
static void test_half(void) {
  int wrong = 0;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = eyas_extendhfsf2(as_carrier((uint16_t)bits));
    uint16_t back = as_bits(eyas_truncsfhf2(value));
    bool nan = (bits & 0x7fff) > 0x7c00;
    wrong += nan ? (back & 0x7fff) <= 0x7c00 : back != bits;
    wrong += (double)value != eyas_extendhfdf2(as_carrier((uint16_t)bits)) && !nan;
    if ((bits & 0x7fff) >= 0x7bff) continue;
    double next = eyas_half_to_double((uint16_t)(bits + 1));
    double middle = ((double)value + next) / 2;
    wrong += as_bits(eyas_truncdfhf2(middle)) != bits + (bits & 1);
    wrong += as_bits(eyas_truncdfhf2(nextafter(middle, (double)value))) != bits;
    wrong += as_bits(eyas_truncdfhf2(nextafter(middle, next))) != bits + 1;
    wrong += as_bits(eyas_truncsfhf2((float)middle)) != bits + (bits & 1);
  }
  CHECK(wrong == 0);
  CHECK(eyas_half_to_double(0x3c00) == 1.0 && eyas_half_to_double(0xc000) == -2.0);
  CHECK(eyas_half_to_double(0x0001) == 0x1p-24 && eyas_half_to_double(0x7bff) == 65504.0);
  CHECK(eyas_half_from_double(65519.99) == 0x7bff && eyas_half_from_double(65520.0) == 0x7c00);
  CHECK(eyas_half_from_double(1e300) == 0x7c00 && eyas_half_from_double(-INFINITY) == 0xfc00);
  CHECK(eyas_half_from_double(0x1p-25) == 0 && eyas_half_from_double(0x1.0001p-25) == 1);
  CHECK(eyas_half_from_double(-0.0) == 0x8000 && eyas_half_from_double(1e-300) == 0);
  CHECK((eyas_half_from_double(NAN) & 0x7fff) > 0x7c00);
#if defined(__x86_64__) && defined(__FLT16_MANT_DIG__)
  // The carrier has the place that the compiler's own half type has.
  __extension__ typedef _Float16 half_t;
  half_t (*truncate)(float) = (half_t (*)(float))(void (*)(void))eyas_truncsfhf2;
  float (*extend)(half_t) = (float (*)(half_t))(void (*)(void))eyas_extendhfsf2;
  CHECK((float)truncate(1.5f) == 1.5f && extend((half_t)-0.25f) == -0.25f);
#endif
}

static void test_bfloat(void) {
  int wrong = 0;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = eyas_extendbfsf2(as_carrier((uint16_t)bits));
    bool nan = (bits & 0x7fff) > 0x7f80;
    uint16_t back = as_bits(eyas_truncsfbf2(value));
    wrong += nan ? (back & 0x7fff) <= 0x7f80 : back != bits;
    if ((bits & 0x7fff) >= 0x7f7f) continue;
    float next = eyas_extendbfsf2(as_carrier((uint16_t)(bits + 1)));
    double middle = ((double)value + (double)next) / 2;
    wrong += as_bits(eyas_truncdfbf2(middle)) != bits + (bits & 1);
    wrong += as_bits(eyas_truncdfbf2(nextafter(middle, (double)value))) != bits;
    wrong += as_bits(eyas_truncdfbf2(nextafter(middle, (double)next))) != bits + 1;
  }
  CHECK(wrong == 0);
  CHECK(eyas_bfloat_from_double(1.0) == 0x3f80 && eyas_bfloat_from_double(1e39) == 0x7f80);
}

static void test_imports(void) {
  float (*exp_float)(float) = (float (*)(float))eyas_hal_import_lookup("expf");
  CHECK(exp_float && fabsf(exp_float(1.0f) - 2.7182817f) < 1e-6f);
  double (*round_even)(double) = (double (*)(double))eyas_hal_import_lookup("roundeven");
  CHECK(round_even && round_even(2.5) == 2.0 && round_even(3.5) == 4.0);
  CHECK(!eyas_hal_import_lookup("system") && !eyas_hal_import_lookup(""));
  for (size_t i = 0; eyas_hal_import_name(i); ++i) {
    for (size_t j = 0; j < i; ++j) {
      CHECK(strcmp(eyas_hal_import_name(i), eyas_hal_import_name(j)) != 0);
    }
  }
}

int main(void) {
  test_status();
  test_checked();
  test_sha256();
  test_cpu();
  test_half();
  test_bfloat();
  test_imports();
  return check_summary("base");
}
