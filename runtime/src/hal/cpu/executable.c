#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "hal/cpu/cpu.h"

// EYAS_WITHOUT_MACHINE_CODE leaves the loader of machine code out, for a runtime of bytecode alone.
#if defined(EYAS_WITHOUT_MACHINE_CODE)
#define ELF_FORMAT EYAS_VMVX_FORMAT
#elif defined(__x86_64__)
#define ELF_FORMAT "elf-x86_64"
#elif defined(__aarch64__)
#define ELF_FORMAT "elf-aarch64"
#elif defined(__riscv) && __riscv_xlen == 64
#define ELF_FORMAT "elf-riscv64"
#else
#error "executables are supported on x86-64, AArch64 and RISC-V 64"
#endif

eyas_status_t eyas_hal_cpu_check_code(eyas_hal_device_t* device, const char* format,
                                      const char* const* features, uint32_t feature_count) {
  eyas_hal_device_info_t info;
  eyas_hal_device_info(device, &info);
  if (strcmp(format, ELF_FORMAT) != 0 && strcmp(format, EYAS_VMVX_FORMAT) != 0) {
    return eyas_status_make(EYAS_STATUS_INCOMPATIBLE,
                            "it has the format %s, which device %s (%s) cannot run", format,
                            info.driver, info.name);
  }
  for (uint32_t i = 0; i < feature_count; ++i) {
    if (eyas_cpu_supports(features[i])) continue;
    return eyas_status_make(EYAS_STATUS_INCOMPATIBLE,
                            "it needs the CPU feature '%s', which this machine (%s) does not have",
                            features[i], info.name);
  }
  return NULL;
}

static eyas_status_t new_payload(eyas_hal_executable_t* executable,
                                 eyas_hal_cpu_executable_t** out_payload) {
  eyas_hal_cpu_executable_t* payload =
      calloc(1, sizeof(*payload) + (size_t)executable->export_count * sizeof(payload->exports[0]));
  if (!payload) return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory");
  executable->payload = payload;  // freed with the executable from here on
  *out_payload = payload;
  return NULL;
}

static eyas_status_t load_bytecode(eyas_hal_executable_t* executable,
                                   eyas_hal_cpu_executable_t* payload, const void* bytes,
                                   size_t length, const eyas_vmvx_settings_t* settings) {
  static _Atomic uint64_t last_owner;
  payload->owner = ++last_owner;
  EYAS_RETURN_IF_ERROR(eyas_vmvx_load(bytes, length, settings, &payload->bytecode));
  executable->needs = calloc((size_t)executable->export_count + 1, sizeof(*executable->needs));
  if (!executable->needs) {
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory");
  }
  for (uint32_t i = 0; i < executable->export_count; ++i) {
    const eyas_vmvx_function_t** function = &payload->exports[i].bytecode;
    EYAS_RETURN_IF_ERROR(
        eyas_vmvx_lookup(payload->bytecode, executable->export_names[i], function));
    executable->needs[i] = (eyas_hal_export_needs_t){
        .binding_count = eyas_vmvx_function_bindings(*function),
        .constant_count = eyas_vmvx_function_constants(*function),
    };
    for (uint32_t b = 0; b < executable->needs[i].binding_count; ++b) {
      uint64_t writes = eyas_vmvx_function_writes(*function, b);
      executable->needs[i].writes[b / 64] |= writes << b % 64;
    }
  }
  return NULL;
}

static eyas_status_t load_machine_code(eyas_hal_executable_t* executable,
                                       eyas_hal_cpu_executable_t* payload, const void* bytes,
                                       size_t length) {
#if !defined(EYAS_WITHOUT_MACHINE_CODE)
  EYAS_RETURN_IF_ERROR(eyas_hal_elf_image_load(bytes, length, &payload->image));
  for (uint32_t i = 0; i < executable->export_count; ++i) {
    EYAS_RETURN_IF_ERROR(eyas_hal_elf_image_lookup(payload->image, executable->export_names[i],
                                                   &payload->exports[i].function));
  }
#else
  (void)executable, (void)payload, (void)bytes, (void)length;  // no format leads here
#endif
  return NULL;
}

eyas_status_t eyas_hal_cpu_executable_load(eyas_hal_executable_t* executable, const char* format,
                                           const void* bytes, size_t length,
                                           const eyas_vmvx_settings_t* settings) {
  eyas_hal_cpu_executable_t* payload = NULL;
  EYAS_RETURN_IF_ERROR(new_payload(executable, &payload));
  if (strcmp(format, EYAS_VMVX_FORMAT) == 0) {
    return load_bytecode(executable, payload, bytes, length, settings);
  }
  return load_machine_code(executable, payload, bytes, length);
}

eyas_status_t eyas_hal_cpu_executable_adopt(eyas_hal_device_t* device,
                                            eyas_hal_executable_t* executable,
                                            const eyas_dispatch_fn_t* functions) {
  (void)device;
  eyas_hal_cpu_executable_t* payload = NULL;
  EYAS_RETURN_IF_ERROR(new_payload(executable, &payload));
  for (uint32_t i = 0; i < executable->export_count; ++i)
    payload->exports[i].function = functions[i];
  return NULL;
}

void eyas_hal_cpu_executable_unload(eyas_hal_device_t* device, eyas_hal_executable_t* executable) {
  (void)device;
  eyas_hal_cpu_executable_t* payload = executable->payload;
#if !defined(EYAS_WITHOUT_MACHINE_CODE)
  eyas_hal_elf_image_unload(payload->image);
#endif
  eyas_vmvx_unload(payload->bytecode);
  free(payload);
}
