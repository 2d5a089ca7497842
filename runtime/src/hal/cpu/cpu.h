// What drivers share whose devices are CPUs of this process: code in its formats, and semaphores
// that threads signal. The functions have the shape of the driver's vtable or nearly so.
#ifndef EYAS_HAL_CPU_CPU_H_
#define EYAS_HAL_CPU_CPU_H_

#include "hal/cpu/elf_image.h"
#include "hal/driver.h"
#include "vmvx/settings.h"

// Payload of an executable: machine code, functions of this process, or bytecode.
typedef struct eyas_hal_cpu_executable_t {
  eyas_hal_elf_image_t* image;       // machine code
  eyas_vmvx_executable_t* bytecode;  // bytecode
  uint64_t owner;  // unlike that of any other executable; 0 for code that is trusted
  union {
    eyas_dispatch_fn_t function;
    const eyas_vmvx_function_t* bytecode;
  } exports[];  // by ordinal
} eyas_hal_cpu_executable_t;

eyas_status_t eyas_hal_cpu_check_code(eyas_hal_device_t* device, const char* format,
                                      const char* const* features, uint32_t feature_count);
// `settings` is what bytecode runs with.
eyas_status_t eyas_hal_cpu_executable_load(eyas_hal_executable_t* executable, const char* format,
                                           const void* bytes, size_t length,
                                           const eyas_vmvx_settings_t* settings);
eyas_status_t eyas_hal_cpu_executable_adopt(eyas_hal_device_t* device,
                                            eyas_hal_executable_t* executable,
                                            const eyas_dispatch_fn_t* functions);
void eyas_hal_cpu_executable_unload(eyas_hal_device_t* device, eyas_hal_executable_t* executable);

eyas_status_t eyas_hal_cpu_semaphore_create(eyas_hal_device_t* device, uint64_t initial_value,
                                            eyas_hal_semaphore_t** out_semaphore);
void eyas_hal_cpu_semaphore_destroy(eyas_hal_semaphore_t* semaphore);
eyas_status_t eyas_hal_cpu_semaphore_query(eyas_hal_semaphore_t* semaphore, uint64_t* out_value);
eyas_status_t eyas_hal_cpu_semaphore_signal(eyas_hal_semaphore_t* semaphore, uint64_t value);
void eyas_hal_cpu_semaphore_fail(eyas_hal_semaphore_t* semaphore, eyas_status_t status);
eyas_status_t eyas_hal_cpu_semaphore_wait(eyas_hal_semaphore_t* semaphore, uint64_t value,
                                          uint64_t timeout_ns);

#endif  // EYAS_HAL_CPU_CPU_H_
