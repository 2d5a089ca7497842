// The cursor over untrusted bytes, its texts and its memory; and that files which are none are
// refused.
#include "module/reader.h"

#include <stdlib.h>

#include "eyas/module.h"
#include "hal/check.h"
#include "module/container.h"
#include "module/program.h"

static void check_reader(void) {
  const uint8_t data[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  eyas_reader_t r = {data, 0, sizeof(data), false};
  CHECK(eyas_read_u16(&r) == 0x0201 && eyas_read_u32(&r) == 0x06050403 && !r.failed);
  CHECK(eyas_read_u32(&r) == 0 && r.failed);  // 3 bytes are left
  CHECK(eyas_read_u16(&r) == 0 && r.failed);  // and it stays failed
  r = (eyas_reader_t){data, 0, 8, false};
  CHECK(eyas_read_u64(&r) == 0x0807060504030201ull && eyas_reader_left(&r) == 0 && !r.failed);
  CHECK(!eyas_read_bytes(&r, SIZE_MAX) && r.failed);

  const uint8_t counts[] = {2, 0, 0, 0, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'};
  r = (eyas_reader_t){counts, 0, sizeof(counts), false};
  CHECK(eyas_read_count(&r, 4) == 2 && !r.failed);
  r = (eyas_reader_t){counts, 0, sizeof(counts), false};
  CHECK(eyas_read_count(&r, 5) == 0 && r.failed);
}

static void check_texts(void) {
  eyas_bump_t bump = {0};
  uint8_t data[] = {2, 0, 0, 0, 'h', 'i', 1, 0, 0, 0, 0, 255, 255, 255, 255, 'x'};
  eyas_reader_t r = {data, 0, sizeof(data), false};
  CHECK(strcmp(eyas_read_text(&r, &bump), "hi") == 0 && !r.failed);
  CHECK(eyas_read_text(&r, &bump)[0] == 0 && r.failed);  // a NUL inside
  r = (eyas_reader_t){data, 11, sizeof(data), false};
  CHECK(eyas_read_text(&r, &bump)[0] == 0 && r.failed);  // 4 GB of text in one byte

  for (size_t size = 1; size < 100000; size = size * 3 + 1) {
    uint8_t* memory = eyas_bump_allocate(&bump, size, 1);
    CHECK(memory && (uintptr_t)memory % 16 == 0 && memory[0] == 0 && memory[size - 1] == 0);
    memset(memory, 0xAA, size);
  }
  CHECK(!eyas_bump_allocate(&bump, SIZE_MAX, 2));
  CHECK(!eyas_bump_allocate(&bump, SIZE_MAX / 2, 3));
  eyas_bump_free(&bump);
}

static void check_refusals(void) {
  uint8_t* zeros = aligned_alloc(64, 4096);
  memset(zeros, 0, 4096);
  eyas_module_t* module = NULL;
  CHECK_FAILS(eyas_module_from_memory(zeros, 0, NULL, NULL, NULL, &module), CORRUPT,
              "only 0 bytes");
  CHECK_FAILS(eyas_module_from_memory(zeros, 4096, NULL, NULL, NULL, &module), CORRUPT, "zip");
  CHECK_FAILS(eyas_module_from_memory(zeros + 8, 64, NULL, NULL, NULL, &module), INVALID_ARGUMENT,
              "64-byte aligned");
  CHECK_FAILS(eyas_module_open("/no/such/file.eyas", NULL, &module), NOT_FOUND,
              "/no/such/file.eyas");
  eyas_program_t program;
  CHECK_FAILS(eyas_program_parse(zeros, 4096, &program), CORRUPT, "program header");
  memcpy(zeros, "EYASPRG", 8);
  CHECK_FAILS(eyas_program_parse(zeros, 4096, &program), INCOMPATIBLE, "format version 0");
  zeros[8] = 1;
  CHECK_FAILS(eyas_program_parse(zeros, 4096, &program), CORRUPT, "section table");
  CHECK(module == NULL);
  free(zeros);
}

int main(void) {
  check_reader();
  check_texts();
  check_refusals();
  CHECK(eyas_dtype_bytes(EYAS_DTYPE_C128) == 16 && eyas_dtype_bytes(0) == 0 &&
        eyas_dtype_bytes(26) == 0);
  CHECK(eyas_dtype_bytes(EYAS_DTYPE_U2) == 1 &&
        strcmp(eyas_dtype_name(EYAS_DTYPE_F8E5M2), "f8e5m2") == 0);
  CHECK(strcmp(eyas_dtype_name(EYAS_DTYPE_BF16), "bf16") == 0 &&
        strcmp(eyas_dtype_name(99), "?") == 0);
  return check_summary("reader");
}
