#include <stdlib.h>
#include <string.h>

#include "hal/local/local.h"

#if defined(__x86_64__)
#define ELF_FORMAT "elf-x86_64"
#elif defined(__aarch64__)
#define ELF_FORMAT "elf-aarch64"
#elif defined(__riscv) && __riscv_xlen == 64
#define ELF_FORMAT "elf-riscv64"
#else
#error "the local drivers support x86-64, AArch64 and RISC-V 64"
#endif

bool eyas_hal_local_supports_format(eyas_hal_device_t* device, const char* format) {
  (void)device;
  return strcmp(format, ELF_FORMAT) == 0;
}

static eyas_status_t new_payload(eyas_hal_executable_t* executable,
                                 eyas_hal_local_executable_t** out_payload) {
  eyas_hal_local_executable_t* payload = calloc(
      1, sizeof(*payload) + (size_t)executable->export_count * sizeof(payload->functions[0]));
  if (!payload) return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory");
  executable->payload = payload;  // freed with the executable from here on
  *out_payload = payload;
  return NULL;
}

eyas_status_t eyas_hal_local_executable_load(eyas_hal_device_t* device,
                                             eyas_hal_executable_t* executable, const char* format,
                                             const void* bytes, size_t length) {
  (void)device;
  (void)format;
  eyas_hal_local_executable_t* payload = NULL;
  EYAS_RETURN_IF_ERROR(new_payload(executable, &payload));
  EYAS_RETURN_IF_ERROR(eyas_hal_elf_image_load(bytes, length, &payload->image));
  for (uint32_t i = 0; i < executable->export_count; ++i) {
    EYAS_RETURN_IF_ERROR(eyas_hal_elf_image_lookup(payload->image, executable->export_names[i],
                                                   &payload->functions[i]));
  }
  return NULL;
}

eyas_status_t eyas_hal_local_executable_adopt(eyas_hal_device_t* device,
                                              eyas_hal_executable_t* executable,
                                              const eyas_dispatch_fn_t* functions) {
  (void)device;
  eyas_hal_local_executable_t* payload = NULL;
  EYAS_RETURN_IF_ERROR(new_payload(executable, &payload));
  for (uint32_t i = 0; i < executable->export_count; ++i) payload->functions[i] = functions[i];
  return NULL;
}

void eyas_hal_local_executable_unload(eyas_hal_device_t* device,
                                      eyas_hal_executable_t* executable) {
  (void)device;
  eyas_hal_local_executable_t* payload = executable->payload;
  eyas_hal_elf_image_unload(payload->image);
  free(payload);
}
