// Loads a CPU executable from memory: a 64-bit little-endian ET_DYN ELF image as eyas's own linker
// writes it. Needs no linker, no libdl and no file.
//
// What an image may have: PT_LOAD segments that share no page, none writable and executable;
// PT_DYNAMIC with DT_HASH, DT_SYMTAB, DT_STRTAB, DT_RELA in read-only segments; PT_GNU_RELRO,
// which may cover all of the writable data that holds addresses only. Relocations: R_*_RELATIVE,
// R_*_GLOB_DAT and R_*_64, in writable segments. Imports only from imports.c. The absolute symbol
// `eyas_executable_abi` must be EYAS_EXECUTABLE_ABI_VERSION.
//
// The bytes are not trusted: whatever they are, loading and lookup stay inside the image. Code that
// runs afterwards is the compiler's and is trusted.
#ifndef EYAS_HAL_CPU_ELF_IMAGE_H_
#define EYAS_HAL_CPU_ELF_IMAGE_H_

#include <stddef.h>

#include "eyas/executable.h"
#include "eyas/status.h"

typedef struct eyas_hal_elf_image_t eyas_hal_elf_image_t;

// `bytes` is copied, and may have any alignment.
eyas_status_t eyas_hal_elf_image_load(const void* bytes, size_t length,
                                      eyas_hal_elf_image_t** out_image);

// Finds an exported function; it lives as long as the image.
eyas_status_t eyas_hal_elf_image_lookup(const eyas_hal_elf_image_t* image, const char* name,
                                        eyas_dispatch_fn_t* out_function);

// NULL is allowed.
void eyas_hal_elf_image_unload(eyas_hal_elf_image_t* image);

#endif  // EYAS_HAL_CPU_ELF_IMAGE_H_
