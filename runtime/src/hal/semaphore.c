#include "hal/driver.h"

eyas_status_t eyas_hal_semaphore_create(eyas_hal_device_t* device, uint64_t initial_value,
                                        eyas_hal_semaphore_t** out_semaphore) {
  *out_semaphore = NULL;
  eyas_hal_semaphore_t* semaphore = NULL;
  EYAS_RETURN_IF_ERROR(device->vtable->semaphore_create(device, initial_value, &semaphore));
  eyas_ref_initialize(&semaphore->ref);
  semaphore->device = eyas_hal_device_retain(device);
  *out_semaphore = semaphore;
  return NULL;
}

eyas_hal_semaphore_t* eyas_hal_semaphore_retain(eyas_hal_semaphore_t* semaphore) {
  eyas_ref_retain(&semaphore->ref);
  return semaphore;
}

void eyas_hal_semaphore_release(eyas_hal_semaphore_t* semaphore) {
  if (!semaphore || !eyas_ref_release(&semaphore->ref)) return;
  eyas_hal_device_t* device = semaphore->device;
  device->vtable->semaphore_destroy(semaphore);
  eyas_hal_device_release(device);
}

eyas_status_t eyas_hal_semaphore_query(eyas_hal_semaphore_t* semaphore, uint64_t* out_value) {
  return semaphore->device->vtable->semaphore_query(semaphore, out_value);
}

eyas_status_t eyas_hal_semaphore_signal(eyas_hal_semaphore_t* semaphore, uint64_t value) {
  return semaphore->device->vtable->semaphore_signal(semaphore, value);
}

eyas_status_t eyas_hal_semaphore_wait(eyas_hal_semaphore_t* semaphore, uint64_t value,
                                      uint64_t timeout_ns) {
  return semaphore->device->vtable->semaphore_wait(semaphore, value, timeout_ns);
}
