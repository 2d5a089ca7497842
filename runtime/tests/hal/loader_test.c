// The ELF loader: what it accepts, what it refuses and why, and bytes that nobody meant.
#include <math.h>
#include <unistd.h>

#include "hal/cpu/elf_image.h"
#include "hal/fixture.h"
#include "hal/tiny_image.h"

static eyas_status_t try_load(const void* bytes, size_t length) {
  eyas_hal_elf_image_t* image = NULL;
  EYAS_RETURN_IF_ERROR(eyas_hal_elf_image_load(bytes, length, &image));
  eyas_dispatch_fn_t function = NULL;
  eyas_status_t status = eyas_hal_elf_image_lookup(image, "run", &function);
  eyas_hal_elf_image_unload(image);
  return status;
}

// The protection of the page at an address, as the kernel tells it: "r-xp".
static void protection_of(uintptr_t address, char out_text[5]) {
  strcpy(out_text, "none");
  FILE* file = fopen("/proc/self/maps", "r");
  char line[512], text[5];
  unsigned long begin = 0, end = 0;
  while (file && fgets(line, sizeof(line), file)) {
    if (sscanf(line, "%lx-%lx %4s", &begin, &end, text) != 3) continue;
    if (address >= begin && address < end) strcpy(out_text, text);
  }
  if (file) fclose(file);
}

// Code can be run and not written; addresses, once relocated, cannot be written; gaps are closed.
static void test_protection(void) {
  static const struct {
    bool relro;
    uint64_t offset;
    const char* protection;
  } cases[] = {
      {true, 0, "r--p"},      {true, TINY_TEXT, "r-xp"},          {true, TINY_DATA, "r--p"},
      {true, 0xf000, "---p"}, {true, TINY_TEXT + 0xf000, "---p"}, {false, TINY_DATA, "rw-p"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    if ((cases[i].offset & 0xffff) == 0xf000 && sysconf(_SC_PAGESIZE) > 0x1000) continue;
    tiny_image_t tiny = tiny_image();
    if (!cases[i].relro) tiny.segments[4].p_type = PT_NULL;
    eyas_hal_elf_image_t* image = NULL;
    eyas_dispatch_fn_t function = NULL;
    CHECK_OK(eyas_hal_elf_image_load(&tiny, sizeof(tiny), &image));
    CHECK_OK(eyas_hal_elf_image_lookup(image, "run", &function));
    char text[5];
    protection_of((uintptr_t)function - TINY_TEXT + cases[i].offset, text);
    CHECK(strcmp(text, cases[i].protection) == 0);
    eyas_hal_elf_image_unload(image);
  }
}

static void test_loads(void) {
  tiny_image_t tiny = tiny_image();
  eyas_hal_elf_image_t* image = NULL;
  if (!CHECK_OK(eyas_hal_elf_image_load(&tiny, sizeof(tiny), &image))) return;
  eyas_dispatch_fn_t function = NULL;
  if (CHECK_OK(eyas_hal_elf_image_lookup(image, "run", &function))) {
    function(NULL, NULL);  // it only returns
  }
  CHECK_FAILS(eyas_hal_elf_image_lookup(image, "walk", &function), NOT_FOUND, "no export 'walk'");
  CHECK_FAILS(eyas_hal_elf_image_lookup(image, "expf", &function), NOT_FOUND, "expf");
  CHECK_FAILS(eyas_hal_elf_image_lookup(image, "eyas_executable_abi", &function), CORRUPT,
              "not code");
  eyas_hal_elf_image_unload(image);

  char shifted[sizeof(tiny) + 1];  // an image may lie at any address
  memcpy(shifted + 1, &tiny, sizeof(tiny));
  CHECK_OK(try_load(shifted + 1, sizeof(tiny)));
}

// Breaks one thing at a time.
#define CHECK_BROKEN(change, code, text)              \
  do {                                                \
    tiny_image_t t = tiny_image();                    \
    change;                                           \
    CHECK_FAILS(try_load(&t, sizeof(t)), code, text); \
  } while (0)

static void test_refuses(void) {
  CHECK_BROKEN(t.header.e_ident[0] = 'x', CORRUPT, "magic");
  CHECK_BROKEN(t.header.e_ident[EI_CLASS] = ELFCLASS32, INCOMPATIBLE, "class is 1");
  CHECK_BROKEN(t.header.e_ident[EI_DATA] = ELFDATA2MSB, INCOMPATIBLE, "byte order is 2");
  CHECK_BROKEN(t.header.e_machine = EM_S390, INCOMPATIBLE, "is 22; this runtime needs");
  CHECK_BROKEN(t.header.e_type = ET_REL, INCOMPATIBLE, "ELF type is 1");
  CHECK_BROKEN(t.header.e_phentsize = 8, CORRUPT, "size of a program header");
  CHECK_BROKEN(t.header.e_phnum = 65535, CORRUPT, "program headers");
  CHECK_BROKEN(t.header.e_phoff = UINT64_MAX - 8, CORRUPT, "outside the file");
  CHECK_BROKEN(t.symbols[1].st_value = 99, INCOMPATIBLE, "ABI version is 99; this runtime needs 2");
  CHECK_BROKEN(t.symbols[1].st_name = 21, INCOMPATIBLE, "eyas_executable_abi");
  CHECK_BROKEN(t.segments[1].p_flags = PF_R | PF_W | PF_X, CORRUPT, "writable and executable");
  CHECK_BROKEN(t.segments[1].p_flags = PF_X, CORRUPT, "not readable");
  CHECK_BROKEN(t.segments[1].p_offset = sizeof(t), CORRUPT, "outside the file");
  CHECK_BROKEN(t.segments[1].p_filesz = 100, CORRUPT, "outside the file");
  CHECK_BROKEN(t.segments[1].p_vaddr = UINT64_MAX - 1, CORRUPT, "beyond 2 GiB");
  CHECK_BROKEN(t.segments[2].p_memsz = 1ull << 40, CORRUPT, "beyond 2 GiB");
  CHECK_BROKEN(t.segments[1].p_vaddr = 16, INCOMPATIBLE, "shares a page");
  CHECK_BROKEN(t.segments[3].p_type = PT_NULL, CORRUPT, "no PT_DYNAMIC");
  CHECK_BROKEN(t.segments[3].p_memsz = 1 << 20, CORRUPT, "PT_DYNAMIC lies outside");
  CHECK_BROKEN(t.segments[4].p_type = PT_TLS, CORRUPT, "thread-local");
  CHECK_BROKEN(t.hash[1] = UINT32_MAX, CORRUPT, "hash table");
  CHECK_BROKEN(t.hash[0] = 0, INCOMPATIBLE, "eyas_executable_abi");
  CHECK_BROKEN(t.hash[3 + 1] = 1, NOT_FOUND, "no export 'run'");  // a chain that goes in circles
  CHECK_BROKEN(t.strings[sizeof(tiny_strings) - 1] = 'x', CORRUPT, "does not end in a zero");
  CHECK_BROKEN(t.strings[25] = 'E', NOT_FOUND, "imports 'Expf'");
  CHECK_BROKEN(t.symbols[3].st_name = 1000, CORRUPT, "name of a symbol");
  CHECK_BROKEN(t.symbols[2].st_value = TINY_DATA, CORRUPT, "not code");
  CHECK_BROKEN(t.relocations[0].r_offset = TINY_TEXT, CORRUPT, "outside writable data");
  CHECK_BROKEN(t.relocations[0].r_offset = TINY_DATA + sizeof(t.data) - 4, CORRUPT, "outside");
  CHECK_BROKEN(t.relocations[0].r_addend = -8, CORRUPT, "points outside");
  CHECK_BROKEN(t.relocations[1].r_info = ELF64_R_INFO(77, TINY_GLOB_DAT), CORRUPT,
               "missing symbol");
  CHECK_BROKEN(t.relocations[1].r_info = ELF64_R_INFO(3, 99), CORRUPT, "unknown relocation type");
  CHECK_BROKEN(t.data.dynamic[6].d_un.d_val = 25, CORRUPT, "size of the relocations");
  CHECK_BROKEN(t.data.dynamic[5].d_un.d_val = UINT64_MAX - 8, CORRUPT, "relocations lie outside");
  CHECK_BROKEN(t.data.dynamic[3].d_un.d_val = TINY_DATA, CORRUPT, "symbol table");
  CHECK_BROKEN(t.data.dynamic[4].d_tag = DT_NEEDED, CORRUPT, "shared library");
  CHECK_BROKEN(t.data.dynamic[4].d_tag = DT_INIT_ARRAY, CORRUPT, "run when loaded");
}

static uint64_t random_state = 0x9e3779b97f4a7c15ull;

static uint64_t random_bits(void) {  // xorshift64*: the same bytes in every run
  random_state ^= random_state >> 12;
  random_state ^= random_state << 25;
  random_state ^= random_state >> 27;
  return random_state * 0x2545f4914f6cdd1dull;
}

// Each attempt gets an allocation of exactly its size, so that ASan sees any read beyond it.
static int load_exactly(const void* bytes, size_t length) {
  void* exact = malloc(length ? length : 1);
  if (length) memcpy(exact, bytes, length);
  eyas_status_t status = try_load(exact, length);
  int ok = status == NULL;
  eyas_status_free(status);
  free(exact);
  return ok;
}

static void test_fuzz(void) {
  const tiny_image_t tiny = tiny_image();
  int loaded = 0;
  for (size_t length = 0; length < sizeof(tiny); ++length) loaded += load_exactly(&tiny, length);
  CHECK(loaded == 0);

  static const uint64_t nasty[] = {
      0,          1,          7,         0xffff,     0x10000,        0x7fffffff, 0x80000000,
      0xffffffff, 1ull << 40, INT64_MAX, 1ull << 63, UINT64_MAX - 7, UINT64_MAX};
  for (int i = 0; i < 60000; ++i) {
    uint8_t bytes[sizeof(tiny)];
    memcpy(bytes, &tiny, sizeof(tiny));
    for (uint64_t changes = 1 + random_bits() % 4; changes > 0; --changes) {
      size_t at = (size_t)(random_bits() % (sizeof(tiny) - 8));
      uint64_t value = random_bits();
      switch (random_bits() % 4) {
        case 0: bytes[at] = (uint8_t)value; break;
        case 1: bytes[at] ^= (uint8_t)(1u << value % 8); break;
        case 2: memcpy(bytes + at / 4 * 4, &nasty[value % 13], 4); break;
        default: memcpy(bytes + at / 8 * 8, &nasty[value % 13], 8); break;
      }
    }
    loaded += load_exactly(bytes, sizeof(bytes));
  }
  CHECK(loaded > 0 && loaded < 60000);  // some changes matter and some do not
  for (int i = 0; i < 2000; ++i) {
    uint8_t noise[512];
    for (size_t j = 0; j < sizeof(noise); j += 8) {
      uint64_t value = random_bits();
      memcpy(noise + j, &value, 8);
    }
    if (i % 2) memcpy(noise, &tiny.header, sizeof(tiny.header));
    load_exactly(noise, sizeof(noise));
  }
}

// An image from a real linker, through the device.
static void test_linked(const char* path) {
  FILE* file = fopen(path, "rb");
  CHECK(file != NULL);
  if (!file) return;
  static uint8_t bytes[1 << 20];
  size_t length = fread(bytes, 1, sizeof(bytes), file);
  fclose(file);
  eyas_hal_device_t* device = NULL;
  CHECK_OK(eyas_hal_device_create("local-task", NULL, &device));
  eyas_hal_executable_t* executable = NULL;
#if defined(__x86_64__)
  const char* format = "elf-x86_64";
#elif defined(__aarch64__)
  const char* format = "elf-aarch64";
#else
  const char* format = "elf-riscv64";
#endif
  const char* names[] = {"copy", "apply", "missing"};
  CHECK_FAILS(eyas_hal_executable_create(device, format, bytes, length, names, 3, &executable),
              NOT_FOUND, "missing");
  if (CHECK_OK(eyas_hal_executable_create(device, format, bytes, length, names, 2, &executable))) {
    memset(bytes, 0, length);  // it has its own copy
    eyas_hal_buffer_t *in = new_shared_buffer(device, 16), *out = new_shared_buffer(device, 16);
    float *x = map(in), *y = map(out);
    for (int i = 0; i < 4; ++i) x[i] = (float)i - 1;
    for (int64_t operation = 0; operation < 4; ++operation) {
      eyas_hal_command_buffer_t* commands = new_commands(device, 0);
      CHECK_OK(eyas_hal_command_buffer_dispatch(
          commands, &(eyas_hal_dispatch_t){
                        .executable = executable,
                        .ordinal = operation < 3,
                        .workgroup_count = {operation < 3 ? 4 : 1, 1, 1},
                        .constants = &operation,
                        .constant_count = 1,
                        .bindings = (eyas_hal_binding_t[]){direct(in, 0, 16), direct(out, 0, 16)},
                        .binding_count = 2}));
      CHECK_OK(eyas_hal_command_buffer_end(commands));
      CHECK_OK(run(device, commands, NULL, 0));
      for (int i = 0; i < 4; ++i) {
        const float expected[] = {2 * x[i], x[i] / 2, expf(x[i]), x[i]};
        float bias = operation == 3 ? 0 : i % 2 ? 0.5f : 0.25f;
        CHECK(fabsf(y[i] - expected[operation] - bias) < 1e-5f);
      }
      eyas_hal_command_buffer_release(commands);
    }
    eyas_hal_buffer_release(in);
    eyas_hal_buffer_release(out);
    eyas_hal_executable_release(executable);
  }
  eyas_hal_device_release(device);
}

int main(void) {
  test_loads();
  test_protection();
  test_refuses();
  test_fuzz();
  const char* path = getenv("EYAS_TEST_IMAGE");
  if (path)
    test_linked(path);
  else
    fprintf(stderr, "loader: no EYAS_TEST_IMAGE; the linked image was not tried\n");
  return check_summary("hal loader");
}
