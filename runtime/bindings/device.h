#ifndef EYAS_BINDINGS_DEVICE_H_
#define EYAS_BINDINGS_DEVICE_H_

#include <nanobind/nanobind.h>

#include <string>

#include "eyas/hal.h"

namespace eyas {

struct Device {
  Device(const std::string& driver, uint32_t index, nanobind::dict options);
  ~Device() { eyas_hal_device_release(handle); }
  Device(const Device&) = delete;

  eyas_hal_device_t* handle = nullptr;
};

}  // namespace eyas

#endif  // EYAS_BINDINGS_DEVICE_H_
