// Devices and drivers. The Python face is src/eyas/runtime/device.py.
#include "bindings/device.h"

#include <nanobind/stl/string.h>

#include <vector>

#include "bindings/common.h"
#include "bindings/device_tensor.h"
#include "eyas/measure.h"
#include "eyas/vmvx.h"

namespace eyas {

Device::Device(const std::string& driver, uint32_t index, nb::dict options) {
  std::vector<eyas_hal_option_t> values;
  std::vector<std::string> names, texts;  // alive until the device is there
  names.reserve(options.size());
  texts.reserve(options.size());
  for (auto [name, value] : options) {
    eyas_hal_option_t option = {};
    names.push_back(nb::cast<std::string>(name));
    option.name = names.back().c_str();
    if (nb::isinstance<nb::str>(value)) {
      texts.push_back(nb::cast<std::string>(value));
      option.text = texts.back().c_str();
    } else {
      option.number = nb::cast<uint64_t>(value);
    }
    values.push_back(option);
  }
  const eyas_hal_device_options_t given = {index, values.data(), (uint32_t)values.size()};
  check(eyas_hal_device_create(driver.c_str(), &given, &handle), usage_error);
}

namespace {

nb::dict info(const Device& self) {
  eyas_hal_device_info_t info;
  eyas_hal_device_info(self.handle, &info);
  nb::dict out;
  out["driver"] = info.driver;
  out["name"] = info.name;
  out["workers"] = info.worker_count;
  out["scratch_bytes"] = info.scratch_bytes;
  out["host_visible"] = info.host_visible;
  out["asynchronous"] = info.asynchronous;
  return out;
}

// What it has, by name.
nb::dict properties(const Device& self) {
  nb::dict out;
  eyas_hal_property_t property = {};
  for (uint32_t i = 0; eyas_hal_device_property(self.handle, i, &property); ++i) {
    out[property.name] = property.value;
  }
  return out;
}

bool runs_format(const Device& self, const std::string& format) {
  eyas_status_t status = eyas_hal_device_check_code(self.handle, format.c_str(), nullptr, 0);
  const bool runs = !status;
  eyas_status_free(status);
  return runs;
}

double measure_fma(const Device& self, uint32_t milliseconds) {
  double best = 0;
  check_unlocked([&] { return eyas_measure_fma(self.handle, milliseconds, &best); }, call_error);
  return best;
}

double measure_read(const Device& self, uint64_t bytes, bool shared, uint32_t milliseconds) {
  double best = 0;
  check_unlocked([&] { return eyas_measure_read(self.handle, bytes, shared, milliseconds, &best); },
                 call_error);
  return best;
}

// (name, how many devices it sees) of each driver.
nb::list drivers() {
  nb::list out;
  for (size_t i = 0; i < eyas_hal_driver_count(); ++i) {
    const char* name = eyas_hal_driver_name(i);
    uint32_t count = 0;
    eyas_status_t status = eyas_hal_driver_device_count(name, &count);
    if (status) {  // a driver whose library is not on this machine
      eyas_status_free(status);
      count = 0;
    }
    out.append(nb::make_tuple(nb::str(name), count));
  }
  return out;
}

// Names alone: no driver is asked, which for some means opening a library.
nb::list driver_names() {
  nb::list out;
  for (size_t i = 0; i < eyas_hal_driver_count(); ++i) {
    out.append(nb::str(eyas_hal_driver_name(i)));
  }
  return out;
}

// (name, description, is_text, default, min, max) of each option of a driver.
nb::list driver_options(const std::string& driver) {
  nb::list out;
  const eyas_hal_option_info_t* o = nullptr;
  for (uint32_t i = 0; (o = eyas_hal_driver_option(driver.c_str(), i)) != nullptr; ++i) {
    out.append(
        nb::make_tuple(o->name, o->description, o->is_text, o->default_value, o->min, o->max));
  }
  return out;
}

// The microkernels and the width that a device with these options runs bytecode with.
nb::tuple vmvx(const std::string& kernels, unsigned width) {
  eyas_vmvx_info_t info;
  check(eyas_vmvx_info(kernels.c_str(), width, &info), usage_error);
  return nb::make_tuple(nb::str(info.kernels), info.width);
}

}  // namespace

void define_device(nb::module_& m) {
  nb::class_<Device>(m, "Device")
      .def(nb::init<const std::string&, uint32_t, nb::dict>(), nb::arg("driver"),
           nb::arg("index") = 0, nb::arg("options") = nb::dict())
      .def("info", info)
      .def_prop_ro("properties", properties)
      .def("runs_format", runs_format)
      .def("put",
           [](nb::handle self, nb::handle value) {
             return put_on_device(nb::cast<Device&>(self).handle, self, value);
           })
      .def("measure_fma", measure_fma, nb::arg("milliseconds"))
      .def("measure_read", measure_read, nb::arg("bytes"), nb::arg("shared"),
           nb::arg("milliseconds"));
  m.def("drivers", drivers);
  m.def("driver_names", driver_names);
  m.def("driver_options", driver_options);
  m.def("vmvx", vmvx, nb::arg("kernels") = "", nb::arg("width") = 0);
}

}  // namespace eyas
