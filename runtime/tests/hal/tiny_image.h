// The smallest executable image that has one of everything, built by hand, so that tests can break
// any byte of it.
#ifndef EYAS_TESTS_HAL_TINY_IMAGE_H_
#define EYAS_TESTS_HAL_TINY_IMAGE_H_

#include <elf.h>
#include <stdint.h>
#include <string.h>

#include "eyas/executable.h"

#if defined(__x86_64__)
enum { TINY_MACHINE = EM_X86_64, TINY_RELATIVE = 8, TINY_GLOB_DAT = 6, TINY_FLAGS = 0 };
static const uint8_t tiny_code[] = {0x31, 0xc0, 0xc3};  // return 0
#elif defined(__aarch64__)
enum { TINY_MACHINE = EM_AARCH64, TINY_RELATIVE = 1027, TINY_GLOB_DAT = 1025, TINY_FLAGS = 0 };
static const uint8_t tiny_code[] = {0x00, 0x00, 0x80, 0x52, 0xc0, 0x03, 0x5f, 0xd6};
#elif defined(__riscv)
enum { TINY_MACHINE = EM_RISCV, TINY_RELATIVE = 3, TINY_GLOB_DAT = 2, TINY_FLAGS = 5 };
static const uint8_t tiny_code[] = {0x01, 0x45, 0x82, 0x80};
#endif

// Segments start at multiples of the largest page that these machines use.
enum { TINY_TEXT = 0x10000, TINY_DATA = 0x20000, TINY_SYMBOLS = 4 };

static const char tiny_strings[] = "\0eyas_executable_abi\0run\0expf";

typedef struct tiny_image_t {
  Elf64_Ehdr header;
  Elf64_Phdr segments[5];  // R, RX, RW, dynamic, relro
  uint32_t hash[2 + 1 + TINY_SYMBOLS];
  char strings[sizeof(tiny_strings)];
  Elf64_Sym symbols[TINY_SYMBOLS];  // null, abi, run, expf (import)
  Elf64_Rela relocations[2];
  uint8_t code[sizeof(tiny_code)];
  struct {
    uint64_t got[2];
    Elf64_Dyn dynamic[9];
  } data;
} tiny_image_t;

static inline tiny_image_t tiny_image(void) {
  tiny_image_t image;
  memset(&image, 0, sizeof(image));
  memcpy(image.header.e_ident, ELFMAG, SELFMAG);
  image.header.e_ident[EI_CLASS] = ELFCLASS64;
  image.header.e_ident[EI_DATA] = ELFDATA2LSB;
  image.header.e_ident[EI_VERSION] = EV_CURRENT;
  image.header.e_type = ET_DYN;
  image.header.e_machine = TINY_MACHINE;
  image.header.e_flags = TINY_FLAGS;
  image.header.e_phoff = offsetof(tiny_image_t, segments);
  image.header.e_phentsize = sizeof(Elf64_Phdr);
  image.header.e_phnum = 5;
  const uint64_t code = offsetof(tiny_image_t, code), data = offsetof(tiny_image_t, data);
  image.segments[0] =
      (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = code, .p_memsz = code};
  image.segments[1] = (Elf64_Phdr){.p_type = PT_LOAD,
                                   .p_flags = PF_R | PF_X,
                                   .p_offset = code,
                                   .p_vaddr = TINY_TEXT,
                                   .p_filesz = sizeof(tiny_code),
                                   .p_memsz = sizeof(tiny_code)};
  image.segments[2] = (Elf64_Phdr){.p_type = PT_LOAD,
                                   .p_flags = PF_R | PF_W,
                                   .p_offset = data,
                                   .p_vaddr = TINY_DATA,
                                   .p_filesz = sizeof(image.data),
                                   .p_memsz = sizeof(image.data)};
  image.segments[3] = (Elf64_Phdr){.p_type = PT_DYNAMIC,
                                   .p_flags = PF_R | PF_W,
                                   .p_vaddr = TINY_DATA + sizeof(image.data.got),
                                   .p_memsz = sizeof(image.data.dynamic)};
  image.segments[4] = (Elf64_Phdr){
      .p_type = PT_GNU_RELRO, .p_flags = PF_R, .p_vaddr = TINY_DATA, .p_memsz = sizeof(image.data)};
  // One bucket: its chain goes through all symbols.
  const uint32_t hash[] = {1, TINY_SYMBOLS, 1, 0, 2, 3, 0};
  memcpy(image.hash, hash, sizeof(hash));
  memcpy(image.strings, tiny_strings, sizeof(tiny_strings));
  image.symbols[1] = (Elf64_Sym){.st_name = 1,
                                 .st_shndx = SHN_ABS,
                                 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE),
                                 .st_value = EYAS_EXECUTABLE_ABI_VERSION};
  image.symbols[2] = (Elf64_Sym){.st_name = 21,
                                 .st_shndx = 1,
                                 .st_value = TINY_TEXT,
                                 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)};
  image.symbols[3] = (Elf64_Sym){
      .st_name = 25, .st_shndx = SHN_UNDEF, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)};
  image.relocations[0] = (Elf64_Rela){TINY_DATA, ELF64_R_INFO(0, TINY_RELATIVE), TINY_TEXT};
  image.relocations[1] = (Elf64_Rela){TINY_DATA + 8, ELF64_R_INFO(3, TINY_GLOB_DAT), 0};
  memcpy(image.code, tiny_code, sizeof(tiny_code));
  const Elf64_Dyn dynamic[] = {
      {DT_HASH, {offsetof(tiny_image_t, hash)}},
      {DT_STRTAB, {offsetof(tiny_image_t, strings)}},
      {DT_STRSZ, {sizeof(tiny_strings)}},
      {DT_SYMTAB, {offsetof(tiny_image_t, symbols)}},
      {DT_SYMENT, {sizeof(Elf64_Sym)}},
      {DT_RELA, {offsetof(tiny_image_t, relocations)}},
      {DT_RELASZ, {sizeof(image.relocations)}},
      {DT_RELAENT, {sizeof(Elf64_Rela)}},
      {DT_NULL, {0}},
  };
  memcpy(image.data.dynamic, dynamic, sizeof(dynamic));
  return image;
}

#endif  // EYAS_TESTS_HAL_TINY_IMAGE_H_
