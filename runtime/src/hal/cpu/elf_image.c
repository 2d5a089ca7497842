#define _GNU_SOURCE 1
#include "hal/cpu/elf_image.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "hal/cpu/imports.h"

#define MAX_SEGMENTS 16
#define MAX_PROGRAM_HEADERS 64
#define MAX_IMAGE_BYTES (2ull << 30)  // what the small code model can address
#define ABI_SYMBOL "eyas_executable_abi"

#if defined(__x86_64__)
enum { MACHINE = EM_X86_64, RELATIVE = 8, GLOB_DAT = 6, ABSOLUTE = 1 };
#elif defined(__aarch64__)
enum { MACHINE = EM_AARCH64, RELATIVE = 1027, GLOB_DAT = 1025, ABSOLUTE = 257 };
#elif defined(__riscv)
enum { MACHINE = EM_RISCV, RELATIVE = 3, GLOB_DAT = 2, ABSOLUTE = 2 };
#endif

typedef unsigned long long ull;

// The values of PT_DYNAMIC that we use; addresses are relative to the image.
typedef struct dynamic_t {
  uint64_t symtab, strtab, strtab_bytes, hash, rela, rela_bytes;
} dynamic_t;

struct eyas_hal_elf_image_t {
  uint8_t* base;  // of the mapping; addresses in the image are offsets from it
  uint64_t size;  // of the mapping, whole pages
  uint64_t page;
  uint32_t segment_count;
  Elf64_Phdr segments[MAX_SEGMENTS];  // PT_LOAD, in order of address
  Elf64_Phdr relro;                   // p_memsz 0: none
  Elf64_Phdr dynamic_segment;         // p_memsz 0: none
  dynamic_t dynamic;
  uint32_t bucket_count;
  uint32_t symbol_count;
  const uint8_t* buckets;  // bucket_count + symbol_count words
};

static eyas_status_t corrupt(const char* what, uint64_t value) {
  return eyas_status_make(EYAS_STATUS_CORRUPT, "executable image: %s (0x%llx)", what, (ull)value);
}

static eyas_status_t incompatible(const char* what, uint64_t found, uint64_t needed) {
  return eyas_status_make(EYAS_STATUS_INCOMPATIBLE,
                          "executable image: %s is %llu; this runtime needs %llu", what, (ull)found,
                          (ull)needed);
}

//===-- Reading, with every access checked ------------------------------------------------------//

// The segment that holds the whole range, or NULL.
static const Elf64_Phdr* segment_of(const eyas_hal_elf_image_t* image, uint64_t address,
                                    uint64_t length) {
  for (uint32_t i = 0; i < image->segment_count; ++i) {
    const Elf64_Phdr* segment = &image->segments[i];
    if (address >= segment->p_vaddr &&
        eyas_range_fits(address - segment->p_vaddr, length, segment->p_memsz)) {
      return segment;
    }
  }
  return NULL;
}

// Where a table starts, or NULL if it is not all inside one read-only segment: relocation must not
// change what it reads.
static const uint8_t* table_at(const eyas_hal_elf_image_t* image, uint64_t address,
                               uint64_t length) {
  const Elf64_Phdr* segment = segment_of(image, address, length);
  return segment && !(segment->p_flags & PF_W) ? image->base + address : NULL;
}

// Tables are checked as a whole when the image is loaded. Their entries are copied out, as nothing
// says that they are aligned.
static Elf64_Sym symbol_at(const eyas_hal_elf_image_t* image, uint32_t index) {
  Elf64_Sym symbol;
  memcpy(&symbol, image->base + image->dynamic.symtab + (uint64_t)index * sizeof(symbol),
         sizeof(symbol));
  return symbol;
}

static uint32_t hash_word(const eyas_hal_elf_image_t* image, uint64_t index) {
  uint32_t word;
  memcpy(&word, image->buckets + index * sizeof(word), sizeof(word));
  return word;
}

// NULL when the offset is outside the string table, which ends in a zero.
static const char* string_at(const eyas_hal_elf_image_t* image, uint32_t offset) {
  if (offset >= image->dynamic.strtab_bytes) return NULL;
  return (const char*)image->base + image->dynamic.strtab + offset;
}

//===-- Headers ---------------------------------------------------------------------------------//

static eyas_status_t check_header(const uint8_t* bytes, size_t length, Elf64_Ehdr* header) {
  if (length < sizeof(*header)) return corrupt("too short for an ELF header, bytes", length);
  memcpy(header, bytes, sizeof(*header));
  if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
    return corrupt("does not start with the ELF magic", header->e_ident[0]);
  }
  if (header->e_ident[EI_CLASS] != ELFCLASS64) {
    return incompatible("ELF class", header->e_ident[EI_CLASS], ELFCLASS64);
  }
  if (header->e_ident[EI_DATA] != ELFDATA2LSB) {
    return incompatible("ELF byte order", header->e_ident[EI_DATA], ELFDATA2LSB);
  }
  if (header->e_machine != MACHINE) {
    return incompatible("ELF machine (62: x86-64, 183: AArch64, 243: RISC-V)", header->e_machine,
                        MACHINE);
  }
  if (header->e_type != ET_DYN) return incompatible("ELF type", header->e_type, ET_DYN);
#if defined(__riscv)
  if ((header->e_flags & 6) != 4) {  // EF_RISCV_FLOAT_ABI_DOUBLE
    return incompatible("RISC-V float ABI", header->e_flags & 6, 4);
  }
#endif
  if (header->e_phentsize != sizeof(Elf64_Phdr)) {
    return corrupt("size of a program header", header->e_phentsize);
  }
  if (header->e_phnum > MAX_PROGRAM_HEADERS) return corrupt("program headers", header->e_phnum);
  if (!eyas_range_fits(header->e_phoff, (uint64_t)header->e_phnum * sizeof(Elf64_Phdr), length)) {
    return corrupt("program headers lie outside the file, at", header->e_phoff);
  }
  return NULL;
}

static eyas_status_t add_segment(eyas_hal_elf_image_t* image, const Elf64_Phdr* segment,
                                 size_t file_bytes) {
  if (image->segment_count == MAX_SEGMENTS) return corrupt("too many segments", MAX_SEGMENTS);
  uint64_t end = 0;
  if (!eyas_checked_add(segment->p_vaddr, segment->p_memsz, &end) || end > MAX_IMAGE_BYTES) {
    return corrupt("a segment ends beyond 2 GiB; it starts at", segment->p_vaddr);
  }
  if (segment->p_filesz > segment->p_memsz ||
      !eyas_range_fits(segment->p_offset, segment->p_filesz, file_bytes)) {
    return corrupt("a segment's contents lie outside the file, at", segment->p_offset);
  }
  if (!(segment->p_flags & PF_R)) return corrupt("a segment is not readable", segment->p_flags);
  if ((segment->p_flags & PF_W) && (segment->p_flags & PF_X)) {
    return corrupt("a segment is writable and executable", segment->p_vaddr);
  }
  // Protection is set by page, so segments share none. `size` is the end of those before, in pages.
  uint64_t first_page = segment->p_vaddr & ~(image->page - 1);
  if (image->segment_count > 0 && first_page < image->size) {
    return eyas_status_make(EYAS_STATUS_INCOMPATIBLE,
                            "executable image: the segment at 0x%llx shares a page with the one "
                            "before; this machine has pages of %llu bytes",
                            (ull)segment->p_vaddr, (ull)image->page);
  }
  image->size = (end + image->page - 1) & ~(image->page - 1);
  image->segments[image->segment_count++] = *segment;
  return NULL;
}

static eyas_status_t read_segments(eyas_hal_elf_image_t* image, const uint8_t* bytes, size_t length,
                                   const Elf64_Ehdr* header) {
  for (uint32_t i = 0; i < header->e_phnum; ++i) {
    Elf64_Phdr segment;
    memcpy(&segment, bytes + header->e_phoff + i * sizeof(segment), sizeof(segment));
    switch (segment.p_type) {
      case PT_LOAD:
        if (segment.p_memsz) EYAS_RETURN_IF_ERROR(add_segment(image, &segment, length));
        break;
      case PT_DYNAMIC: image->dynamic_segment = segment; break;
      case PT_GNU_RELRO: image->relro = segment; break;
      case PT_TLS: return corrupt("thread-local storage is not supported", segment.p_vaddr);
      case PT_INTERP: return corrupt("wants a program interpreter", segment.p_vaddr);
      default: break;
    }
  }
  if (image->segment_count == 0) return corrupt("has no segments", 0);
  if (image->dynamic_segment.p_memsz == 0) return corrupt("has no PT_DYNAMIC", 0);
  return NULL;
}

// Copies the segments into fresh memory that is readable and writable for now.
static eyas_status_t map_segments(eyas_hal_elf_image_t* image, const uint8_t* bytes) {
  void* base = mmap(NULL, image->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) {
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED,
                            "cannot map %llu bytes for an executable image: %s", (ull)image->size,
                            strerror(errno));
  }
  image->base = base;
  for (uint32_t i = 0; i < image->segment_count; ++i) {
    const Elf64_Phdr* segment = &image->segments[i];
    if (segment->p_filesz == 0) continue;
    memcpy(image->base + segment->p_vaddr, bytes + segment->p_offset, segment->p_filesz);
  }
  return NULL;
}

//===-- Dynamic section -------------------------------------------------------------------------//

static eyas_status_t read_dynamic(eyas_hal_elf_image_t* image) {
  const uint64_t entry_count = image->dynamic_segment.p_memsz / sizeof(Elf64_Dyn);
  if (!segment_of(image, image->dynamic_segment.p_vaddr, image->dynamic_segment.p_memsz)) {
    return corrupt("PT_DYNAMIC lies outside, at", image->dynamic_segment.p_vaddr);
  }
  const uint8_t* entries = image->base + image->dynamic_segment.p_vaddr;
  dynamic_t* dynamic = &image->dynamic;
  for (uint64_t i = 0; i < entry_count; ++i) {
    Elf64_Dyn entry;
    memcpy(&entry, entries + i * sizeof(entry), sizeof(entry));
    uint64_t value = entry.d_un.d_val;
    switch (entry.d_tag) {
      case DT_NULL: return NULL;
      case DT_SYMTAB: dynamic->symtab = value; break;
      case DT_STRTAB: dynamic->strtab = value; break;
      case DT_STRSZ: dynamic->strtab_bytes = value; break;
      case DT_HASH: dynamic->hash = value; break;
      case DT_RELA: dynamic->rela = value; break;
      case DT_RELASZ: dynamic->rela_bytes = value; break;
      case DT_SYMENT:
        if (value != sizeof(Elf64_Sym)) return corrupt("size of a symbol", value);
        break;
      case DT_RELAENT:
        if (value != sizeof(Elf64_Rela)) return corrupt("size of a relocation", value);
        break;
      case DT_NEEDED: return corrupt("needs a shared library; name at", value);
      case DT_REL:
      case DT_JMPREL: return corrupt("has relocations other than DT_RELA, at", value);
      case DT_INIT:
      case DT_INIT_ARRAY: return corrupt("has code to run when loaded, at", value);
      default: break;
    }
  }
  return NULL;
}

static eyas_status_t check_tables(eyas_hal_elf_image_t* image) {
  const dynamic_t* dynamic = &image->dynamic;
  const uint8_t* strings = table_at(image, dynamic->strtab, dynamic->strtab_bytes);
  if (!strings || dynamic->strtab_bytes == 0 || strings[dynamic->strtab_bytes - 1] != 0) {
    return corrupt("string table is outside read-only data or does not end in a zero, at",
                   dynamic->strtab);
  }
  const uint8_t* hash = table_at(image, dynamic->hash, 8);
  if (dynamic->hash == 0 || !hash) return corrupt("has no DT_HASH; found it at", dynamic->hash);
  memcpy(&image->bucket_count, hash, 4);
  memcpy(&image->symbol_count, hash + 4, 4);
  uint64_t words = (uint64_t)image->bucket_count + image->symbol_count;
  image->buckets = table_at(image, dynamic->hash + 8, words * 4);
  if (!image->buckets) return corrupt("hash table lies outside read-only data; words", words);
  if (!table_at(image, dynamic->symtab, (uint64_t)image->symbol_count * sizeof(Elf64_Sym))) {
    return corrupt("symbol table lies outside read-only data; symbols", image->symbol_count);
  }
  return NULL;
}

// The hash function of the System V ABI, "Hash Table".
static uint32_t sysv_hash(const char* name) {
  uint32_t hash = 0;
  for (const uint8_t* c = (const uint8_t*)name; *c; ++c) {
    hash = (hash << 4) + *c;
    uint32_t high = hash & 0xf0000000u;
    hash = (hash ^ high >> 24) & ~high;
  }
  return hash;
}

// Finds a defined symbol by name.
static bool find_symbol(const eyas_hal_elf_image_t* image, const char* name,
                        Elf64_Sym* out_symbol) {
  if (image->bucket_count == 0) return false;
  uint32_t index = hash_word(image, sysv_hash(name) % image->bucket_count);
  // A chain visits each symbol at most once, unless it is broken and goes round in circles.
  for (uint32_t steps = 0; index != 0 && steps < image->symbol_count; ++steps) {
    if (index >= image->symbol_count) return false;
    Elf64_Sym symbol = symbol_at(image, index);
    const char* found = string_at(image, symbol.st_name);
    if (found && symbol.st_shndx != SHN_UNDEF && strcmp(found, name) == 0) {
      *out_symbol = symbol;
      return true;
    }
    index = hash_word(image, (uint64_t)image->bucket_count + index);
  }
  return false;
}

static eyas_status_t check_abi(const eyas_hal_elf_image_t* image) {
  Elf64_Sym symbol;
  if (!find_symbol(image, ABI_SYMBOL, &symbol) || symbol.st_shndx != SHN_ABS) {
    return eyas_status_make(EYAS_STATUS_INCOMPATIBLE,
                            "executable image: has no absolute symbol '" ABI_SYMBOL
                            "'; this runtime needs executables of ABI version %d",
                            EYAS_EXECUTABLE_ABI_VERSION);
  }
  if (symbol.st_value != EYAS_EXECUTABLE_ABI_VERSION) {
    return incompatible("ABI version", symbol.st_value, EYAS_EXECUTABLE_ABI_VERSION);
  }
  return NULL;
}

//===-- Relocation and protection ---------------------------------------------------------------//

static eyas_status_t resolve_symbol(const eyas_hal_elf_image_t* image, uint32_t index,
                                    uint64_t* out_value) {
  if (index >= image->symbol_count) return corrupt("relocation names a missing symbol", index);
  Elf64_Sym symbol = symbol_at(image, index);
  if (symbol.st_shndx == SHN_ABS) {
    *out_value = symbol.st_value;
    return NULL;
  }
  if (symbol.st_shndx != SHN_UNDEF) {
    if (symbol.st_value > image->size) return corrupt("symbol lies outside, at", symbol.st_value);
    *out_value = (uint64_t)(uintptr_t)image->base + symbol.st_value;
    return NULL;
  }
  const char* name = string_at(image, symbol.st_name);
  if (!name) return corrupt("name of a symbol lies outside, at", symbol.st_name);
  eyas_hal_import_fn_t import = eyas_hal_import_lookup(name);
  if (!import) {
    return eyas_status_make(EYAS_STATUS_NOT_FOUND,
                            "executable image: imports '%.200s', which this runtime does not offer",
                            name);
  }
  *out_value = (uint64_t)(uintptr_t)import;
  return NULL;
}

static eyas_status_t relocate(eyas_hal_elf_image_t* image) {
  const dynamic_t* dynamic = &image->dynamic;
  if (dynamic->rela_bytes == 0) return NULL;
  if (dynamic->rela_bytes % sizeof(Elf64_Rela)) {
    return corrupt("size of the relocations", dynamic->rela_bytes);
  }
  const uint8_t* relocations = table_at(image, dynamic->rela, dynamic->rela_bytes);
  if (!relocations) return corrupt("relocations lie outside read-only data, at", dynamic->rela);
  for (uint64_t i = 0; i < dynamic->rela_bytes / sizeof(Elf64_Rela); ++i) {
    Elf64_Rela relocation;
    memcpy(&relocation, relocations + i * sizeof(relocation), sizeof(relocation));
    const Elf64_Phdr* segment = segment_of(image, relocation.r_offset, sizeof(uint64_t));
    if (!segment || !(segment->p_flags & PF_W)) {
      return corrupt("relocation outside writable data, at", relocation.r_offset);
    }
    uint64_t value = 0, addend = (uint64_t)relocation.r_addend;
    switch (ELF64_R_TYPE(relocation.r_info)) {
      case RELATIVE:
        if (addend > image->size) return corrupt("relocation points outside, to", addend);
        value = (uint64_t)(uintptr_t)image->base + addend;
        break;
      case GLOB_DAT:
#if !defined(__riscv)
      case ABSOLUTE:
#endif
        EYAS_RETURN_IF_ERROR(
            resolve_symbol(image, (uint32_t)ELF64_R_SYM(relocation.r_info), &value));
        value += addend;
        break;
      default: return corrupt("unknown relocation type", ELF64_R_TYPE(relocation.r_info));
    }
    memcpy(image->base + relocation.r_offset, &value, sizeof(value));
  }
  return NULL;
}

static eyas_status_t protect(eyas_hal_elf_image_t* image, uint64_t begin, uint64_t end,
                             int access) {
  if (begin >= end || mprotect(image->base + begin, end - begin, access) == 0) return NULL;
  return eyas_status_make(EYAS_STATUS_UNAVAILABLE,
                          "the system does not let an executable image be protected: %s",
                          strerror(errno));
}

// The pages of a writable segment that PT_GNU_RELRO covers hold addresses only and become
// read-only. Its first and last page count when nothing else of the segment lies in them.
static eyas_status_t protect_relro(eyas_hal_elf_image_t* image, const Elf64_Phdr* segment) {
  const Elf64_Phdr* relro = &image->relro;
  if (relro->p_memsz == 0 || relro->p_vaddr < segment->p_vaddr ||
      !eyas_range_fits(relro->p_vaddr - segment->p_vaddr, relro->p_memsz, segment->p_memsz)) {
    return NULL;
  }
  const uint64_t mask = image->page - 1;
  uint64_t begin = relro->p_vaddr, end = relro->p_vaddr + relro->p_memsz;
  begin = begin == segment->p_vaddr ? begin & ~mask : (begin + mask) & ~mask;
  end = end == segment->p_vaddr + segment->p_memsz ? (end + mask) & ~mask : end & ~mask;
  return protect(image, begin, end, PROT_READ);
}

static eyas_status_t protect_segments(eyas_hal_elf_image_t* image) {
  const uint64_t mask = image->page - 1;
  uint64_t previous_end = 0;
  for (uint32_t i = 0; i < image->segment_count; ++i) {
    const Elf64_Phdr* segment = &image->segments[i];
    uint64_t begin = segment->p_vaddr & ~mask;
    uint64_t end = (segment->p_vaddr + segment->p_memsz + mask) & ~mask;
    int access = PROT_READ;
    if (segment->p_flags & PF_W) access |= PROT_WRITE;
    if (segment->p_flags & PF_X) access |= PROT_EXEC;
    EYAS_RETURN_IF_ERROR(protect(image, previous_end, begin, PROT_NONE));  // the gap before it
    EYAS_RETURN_IF_ERROR(protect(image, begin, end, access));
    if (segment->p_flags & PF_W) EYAS_RETURN_IF_ERROR(protect_relro(image, segment));
    if (segment->p_flags & PF_X) {
      __builtin___clear_cache((char*)image->base + begin, (char*)image->base + end);
    }
    previous_end = end;
  }
  return NULL;
}

//===-- Public ----------------------------------------------------------------------------------//

static eyas_status_t load(eyas_hal_elf_image_t* image, const uint8_t* bytes, size_t length) {
  Elf64_Ehdr header;
  EYAS_RETURN_IF_ERROR(check_header(bytes, length, &header));
  EYAS_RETURN_IF_ERROR(read_segments(image, bytes, length, &header));
  EYAS_RETURN_IF_ERROR(map_segments(image, bytes));
  EYAS_RETURN_IF_ERROR(read_dynamic(image));
  EYAS_RETURN_IF_ERROR(check_tables(image));
  EYAS_RETURN_IF_ERROR(check_abi(image));
  EYAS_RETURN_IF_ERROR(relocate(image));
  return protect_segments(image);
}

eyas_status_t eyas_hal_elf_image_load(const void* bytes, size_t length,
                                      eyas_hal_elf_image_t** out_image) {
  *out_image = NULL;
  eyas_hal_elf_image_t* image = calloc(1, sizeof(*image));
  if (!image) return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory");
  image->page = (uint64_t)sysconf(_SC_PAGESIZE);
  eyas_status_t status = load(image, bytes, length);
  if (status) {
    eyas_hal_elf_image_unload(image);
    return status;
  }
  *out_image = image;
  return NULL;
}

eyas_status_t eyas_hal_elf_image_lookup(const eyas_hal_elf_image_t* image, const char* name,
                                        eyas_dispatch_fn_t* out_function) {
  Elf64_Sym symbol;
  if (!find_symbol(image, name, &symbol)) {
    return eyas_status_make(EYAS_STATUS_NOT_FOUND,
                            "executable image: no export '%s' among %u symbols", name,
                            image->symbol_count);
  }
  const Elf64_Phdr* segment = segment_of(image, symbol.st_value, 1);
  if (symbol.st_shndx == SHN_ABS || !segment || !(segment->p_flags & PF_X)) {
    return eyas_status_make(EYAS_STATUS_CORRUPT,
                            "executable image: export '%s' is at 0x%llx, which is not code", name,
                            (ull)symbol.st_value);
  }
  *out_function = (eyas_dispatch_fn_t)(uintptr_t)(image->base + symbol.st_value);
  return NULL;
}

void eyas_hal_elf_image_unload(eyas_hal_elf_image_t* image) {
  if (!image) return;
  if (image->base) munmap(image->base, image->size);
  free(image);
}
