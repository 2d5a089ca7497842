// Modules: files that were checked, and what is in them.
#include "bindings/module.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <optional>

#include "bindings/common.h"
#include "bindings/device.h"

namespace eyas {
namespace {

// `device` and `variant` choose among the variants of a fat module; both may be None.
eyas_module_options_t choice(bool verify, bool skip_digests, Device* device,
                             const std::optional<std::string>& variant) {
  eyas_module_options_t options = {};
  options.verify_parameters = verify;
  options.skip_digests = skip_digests;
  options.variant = variant ? variant->c_str() : nullptr;
  options.device = device ? device->handle : nullptr;
  return options;
}

Module* open(const std::string& path, bool verify, bool skip_digests, Device* device,
             std::optional<std::string> variant) {
  eyas_module_options_t options = choice(verify, skip_digests, device, variant);
  auto module = std::make_unique<Module>();
  check(eyas_module_open(path.c_str(), &options, &module->handle), module_error);
  return module.release();
}

Module* from_bytes(nb::bytes data, bool verify, bool skip_digests, Device* device,
                   std::optional<std::string> variant) {
  eyas_module_options_t options = choice(verify, skip_digests, device, variant);
  void* memory = nullptr;  // Python's bytes are not aligned as weights must be
  size_t length = data.size();
  if (posix_memalign(&memory, 4096, length ? length : 1) != 0) throw std::bad_alloc();
  memcpy(memory, data.c_str(), length);
  auto module = std::make_unique<Module>();
  eyas_status_t status =
      eyas_module_from_memory(memory, length, &options, free, memory, &module->handle);
  if (status) free(memory);
  check(status, module_error);
  return module.release();
}

// The targets of a fat module's variants, best first; empty for a module of one program.
nb::list variants(const Module& self) {
  nb::list out;
  for (uint32_t i = 0; i < eyas_module_variant_count(self.handle); ++i) {
    out.append(text(eyas_module_variant(self.handle, i)->target));
  }
  return out;
}

// The target of the variant that was opened, or None.
nb::object variant(const Module& self) {
  const eyas_variant_t* opened = eyas_module_opened_variant(self.handle);
  return opened ? text(opened->target) : nb::none();
}

// The formats of the opened program's code, or of all variants'.
nb::list formats(const Module& self, bool all) {
  const auto format_of = all ? eyas_module_any_format : eyas_module_format;
  nb::list out;
  const char* format = nullptr;
  for (uint32_t i = 0; (format = format_of(self.handle, i)) != nullptr; ++i) {
    out.append(text(format));
  }
  return out;
}

nb::object manifest(const Module& self) {
  const char* data = nullptr;
  size_t length = 0;
  eyas_module_manifest(self.handle, &data, &length);
  return text(data, length);
}

nb::list specs(const eyas_signature_t* s, const eyas_tensor_spec_t* specs, uint32_t count) {
  nb::list out;
  for (uint32_t i = 0; i < count; ++i) {
    nb::list dims;
    for (uint32_t k = 0; k < specs[i].rank; ++k) {
      int64_t dim = specs[i].dims[k];
      if (dim >= 0) {
        dims.append(dim);
      } else {
        dims.append(text(dim == -1 ? "?" : s->symbols[-2 - dim].name));
      }
    }
    out.append(nb::make_tuple(text(specs[i].name), text(eyas_dtype_name(specs[i].dtype)),
                              nb::tuple(dims)));
  }
  return out;
}

// (name, args, results, symbols) with args and results as (name, dtype, dims).
nb::list functions(const Module& self) {
  nb::list out;
  for (uint32_t i = 0; i < eyas_module_function_count(self.handle); ++i) {
    const eyas_signature_t* s = eyas_module_function(self.handle, i);
    nb::dict symbols;
    for (uint32_t k = 0; k < s->symbol_count; ++k) {
      symbols[text(s->symbols[k].name)] =
          nb::make_tuple(s->symbols[k].min, s->symbols[k].max, s->symbols[k].multiple);
    }
    out.append(nb::make_tuple(text(s->name), specs(s, s->args, s->arg_count),
                              specs(s, s->results, s->result_count), symbols));
  }
  return out;
}

// (name, dtype, shape, bytes, external file or "", key).
nb::list parameters(const Module& self) {
  nb::list out;
  for (uint32_t i = 0; i < eyas_module_parameter_count(self.handle); ++i) {
    const eyas_parameter_t* p = eyas_module_parameter(self.handle, i);
    nb::list shape;
    for (uint32_t k = 0; k < p->rank; ++k) shape.append(p->dims[k]);
    out.append(nb::make_tuple(text(p->name), text(eyas_dtype_name(p->dtype)), nb::tuple(shape),
                              p->bytes, text(p->external), text(p->key)));
  }
  return out;
}

// (name, dtype, shape) of each state variable.
nb::list states(const Module& self) {
  nb::list out;
  for (uint32_t i = 0; i < eyas_module_state_count(self.handle); ++i) {
    const eyas_state_t* s = eyas_module_state(self.handle, i);
    nb::list shape;
    for (uint32_t k = 0; k < s->rank; ++k) shape.append(s->dims[k]);
    out.append(nb::make_tuple(text(s->name), text(eyas_dtype_name(s->dtype)), nb::tuple(shape)));
  }
  return out;
}

// The caller keeps the buffer's memory as it is; see runtime/module.py.
void bind_parameter(Module& self, uint32_t ordinal, nb::object buffer) {
  Py_buffer view;
  if (PyObject_GetBuffer(buffer.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
  eyas_status_t status =
      eyas_module_bind_parameter(self.handle, ordinal, view.buf, (uint64_t)view.len);
  PyBuffer_Release(&view);
  check(status, module_error);
  self.external.append(buffer);
}

}  // namespace

void define_module(nb::module_& m) {
  nb::class_<Module>(m, "Module")
      .def_static("open", open, nb::arg("path"), nb::arg("verify") = false,
                  nb::arg("skip_digests") = false, nb::arg("device").none() = nb::none(),
                  nb::arg("variant") = nb::none())
      .def_static("from_bytes", from_bytes, nb::arg("data"), nb::arg("verify") = false,
                  nb::arg("skip_digests") = false, nb::arg("device").none() = nb::none(),
                  nb::arg("variant") = nb::none())
      .def("variants", variants)
      .def("variant", variant)
      .def("formats", formats, nb::arg("all"))
      .def("manifest", manifest)
      .def("functions", functions)
      .def("parameters", parameters)
      .def("states", states)
      .def("bind_parameter", bind_parameter);
}

}  // namespace eyas
