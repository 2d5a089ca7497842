// eyas.runtime._core: modules, devices and calls for Python. The Python face is src/eyas/runtime.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>

#include "bindings/tensors.h"
#include "eyas/measure.h"
#include "eyas/vmvx.h"

namespace nb = nanobind;

namespace eyas {
namespace {

constexpr size_t kMaxTensors = 1024;  // arguments or results of one call

[[noreturn]] void raise(PyObject* type, eyas_status_t status) {
  PyErr_SetString(type, eyas_status_message(status));
  eyas_status_free(status);
  throw nb::python_error();
}

void check(eyas_status_t status, PyObject* type) {
  if (status) raise(type, status);
}

// Names come from files: bytes that are not UTF-8 must not raise.
nb::object text(const char* data, size_t length) {
  return nb::steal(PyUnicode_DecodeUTF8(data, (Py_ssize_t)length, "replace"));
}
nb::object text(const char* data) {
  return text(data, strlen(data));
}

class Device {
 public:
  Device(const std::string& driver, uint32_t threads) {
    const eyas_hal_option_t value = {"threads", threads, nullptr};
    const eyas_hal_device_options_t options = {0, &value, threads ? 1u : 0u};
    check(eyas_hal_device_create(driver.c_str(), &options, &handle), call_error);
  }
  ~Device() { eyas_hal_device_release(handle); }
  Device(const Device&) = delete;

  nb::dict info() const {
    eyas_hal_device_info_t info;
    eyas_hal_device_info(handle, &info);
    nb::dict out;
    out["driver"] = info.driver;
    out["name"] = info.name;
    out["workers"] = info.worker_count;
    out["scratch_bytes"] = info.scratch_bytes;
    return out;
  }

  double measure_fma(uint32_t milliseconds) const {
    double best = 0;
    eyas_status_t status = nullptr;
    {
      nb::gil_scoped_release unlocked;
      status = eyas_measure_fma(handle, milliseconds, &best);
    }
    check(status, call_error);
    return best;
  }

  double measure_read(uint64_t bytes, bool shared, uint32_t milliseconds) const {
    double best = 0;
    eyas_status_t status = nullptr;
    {
      nb::gil_scoped_release unlocked;
      status = eyas_measure_read(handle, bytes, shared, milliseconds, &best);
    }
    check(status, call_error);
    return best;
  }

  eyas_hal_device_t* handle = nullptr;
};

class Module {
 public:
  // `device` and `variant` choose among the variants of a fat module; both may be None.
  static Module* open(const std::string& path, bool verify, bool skip_digests, Device* device,
                      std::optional<std::string> variant) {
    eyas_module_options_t options = choice(verify, skip_digests, device, variant);
    auto module = std::make_unique<Module>();
    check(eyas_module_open(path.c_str(), &options, &module->handle), module_error);
    return module.release();
  }

  static Module* from_bytes(nb::bytes data, bool verify, bool skip_digests, Device* device,
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

  ~Module() { eyas_module_release(handle); }

  // (name, target) of each, best first; empty unless the module is a fat one.
  nb::list variants() const {
    nb::list out;
    for (uint32_t i = 0; i < eyas_module_variant_count(handle); ++i) {
      const eyas_variant_t* v = eyas_module_variant(handle, i);
      out.append(nb::make_tuple(text(v->name), text(v->target)));
    }
    return out;
  }

  nb::object variant() const {
    const eyas_variant_t* v = eyas_module_opened_variant(handle);
    return v ? text(v->target) : nb::none();
  }

  nb::object manifest() const {
    const char* data = nullptr;
    size_t length = 0;
    eyas_module_manifest(handle, &data, &length);
    return text(data, length);
  }

  // (name, args, results, symbols) with args and results as (name, dtype, dims).
  nb::list functions() const {
    nb::list out;
    for (uint32_t i = 0; i < eyas_module_function_count(handle); ++i) {
      const eyas_signature_t* s = eyas_module_function(handle, i);
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
  nb::list parameters() const {
    nb::list out;
    for (uint32_t i = 0; i < eyas_module_parameter_count(handle); ++i) {
      const eyas_parameter_t* p = eyas_module_parameter(handle, i);
      nb::list shape;
      for (uint32_t k = 0; k < p->rank; ++k) shape.append(p->dims[k]);
      out.append(nb::make_tuple(text(p->name), text(eyas_dtype_name(p->dtype)), nb::tuple(shape),
                                p->bytes, text(p->external), text(p->key)));
    }
    return out;
  }

  // (name, dtype, shape) of each state variable.
  nb::list states() const {
    nb::list out;
    for (uint32_t i = 0; i < eyas_module_state_count(handle); ++i) {
      const eyas_state_t* s = eyas_module_state(handle, i);
      nb::list shape;
      for (uint32_t k = 0; k < s->rank; ++k) shape.append(s->dims[k]);
      out.append(nb::make_tuple(text(s->name), text(eyas_dtype_name(s->dtype)), nb::tuple(shape)));
    }
    return out;
  }

  // The caller keeps `buffer` alive; see runtime/module.py.
  void bind_parameter(uint32_t ordinal, nb::object buffer) {
    Py_buffer view;
    if (PyObject_GetBuffer(buffer.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
    eyas_status_t status =
        eyas_module_bind_parameter(handle, ordinal, view.buf, (uint64_t)view.len);
    PyBuffer_Release(&view);
    check(status, module_error);
    keep.append(buffer);
  }

  eyas_module_t* handle = nullptr;

 private:
  static eyas_module_options_t choice(bool verify, bool skip_digests, Device* device,
                                      const std::optional<std::string>& variant) {
    eyas_module_options_t options = {};
    options.verify_parameters = verify;
    options.skip_digests = skip_digests;
    options.device = device ? device->handle : nullptr;
    options.variant = variant ? variant->c_str() : nullptr;
    return options;
  }

  static nb::list specs(const eyas_signature_t* s, const eyas_tensor_spec_t* specs, uint32_t count) {
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

  nb::list keep;
};

class Context {
 public:
  Context(Module& module, Device& device, uint64_t budget, bool profile) {
    eyas_context_options_t options = {budget, profile, 0};
    eyas_loaded_module_t* loaded = nullptr;
    check(eyas_loaded_module_create(module.handle, device.handle, &loaded), module_error);
    eyas_status_t status = eyas_context_create(loaded, &options, &handle);
    eyas_loaded_module_release(loaded);
    check(status, module_error);
    module_handle = module.handle;
  }
  ~Context() { eyas_context_release(handle); }
  Context(const Context&) = delete;

  uint64_t transient_bytes() const { return eyas_context_transient_bytes(handle); }

  // (name, submission, wave, grid, start_ns, end_ns, shares, bindings, constants) per command since
  // the last call of this, with shares as (worker, workgroups, start_ns, end_ns, busy_ns) and
  // bindings as (address, bytes, access).
  nb::list profile() const {
    eyas_hal_profile_t profile = {};
    check(eyas_context_profile(handle, &profile), call_error);
    struct Clear {
      eyas_hal_profile_t* profile;
      ~Clear() { eyas_hal_profile_clear(profile); }
    } clear{&profile};
    nb::list out;
    for (size_t i = 0; i < profile.event_count; ++i) {
      const eyas_hal_profile_event_t& e = profile.events[i];
      nb::list shares, bindings, constants;
      for (uint32_t worker = 0; worker < profile.worker_count; ++worker) {
        const eyas_hal_profile_share_t& s = profile.shares[i * profile.worker_count + worker];
        if (s.workgroup_count == 0) continue;
        shares.append(nb::make_tuple(worker, s.workgroup_count, s.start_ns, s.end_ns, s.busy_ns));
      }
      for (size_t k = 0; k < e.binding_count; ++k) {
        const eyas_hal_profile_binding_t& b = profile.bindings[e.binding_begin + k];
        bindings.append(nb::make_tuple((uint64_t)(uintptr_t)b.address, b.length, b.access));
      }
      for (size_t k = 0; k < e.constant_count; ++k)
        constants.append(profile.constants[e.constant_begin + k]);
      out.append(nb::make_tuple(
          text(e.name), e.submission, e.wave, nb::make_tuple(e.grid[0], e.grid[1], e.grid[2]),
          e.start_ns, e.end_ns, nb::tuple(shares), nb::tuple(bindings), nb::tuple(constants)));
    }
    return out;
  }

  nb::object get_state(uint32_t index, bool as_torch) const {
    eyas_tensor_t tensor;
    eyas_status_t status = nullptr;
    {
      nb::gil_scoped_release unlocked;
      status = eyas_context_state_get(handle, index, &tensor);
    }
    check(status, call_error);
    PyObject* out = as_torch ? write_torch(tensor) : write_numpy(tensor);
    if (!out) throw nb::python_error();
    return nb::steal(out);
  }

  void set_state(uint32_t index, nb::handle value) const {
    const eyas_state_t* s = eyas_module_state(module_handle, index);
    if (!s) throw nb::index_error();
    const eyas_tensor_spec_t spec = {s->name, s->dtype, s->rank, s->dims};
    Argument argument;
    eyas_tensor_t tensor = {};
    bool is_torch = false;
    if (!read_argument(value.ptr(), spec, 0, argument, tensor, is_torch)) throw nb::python_error();
    eyas_status_t status = nullptr;
    {
      nb::gil_scoped_release unlocked;
      status = eyas_context_state_set(handle, index, &tensor);
    }
    check(status, call_error);
  }

  void reset_state() const {
    eyas_status_t status = nullptr;
    {
      nb::gil_scoped_release unlocked;
      status = eyas_context_state_reset(handle);
    }
    check(status, call_error);
  }

  eyas_context_t* handle = nullptr;
  eyas_module_t* module_handle = nullptr;
};

// One function of a context, ready to be called: the hot path.
class Function {
 public:
  Function(Context& context, const std::string& name) : context_(context.handle) {
    check(eyas_module_lookup(context.module_handle, name.c_str(), &ordinal_), module_error);
    signature_ = eyas_module_function(context.module_handle, ordinal_);
    if (signature_->arg_count > kMaxTensors || signature_->result_count > kMaxTensors) {
      PyErr_Format(module_error, "function '%s' has more than %zu arguments or results",
                   signature_->name, kMaxTensors);
      throw nb::python_error();
    }
  }

  nb::object call(const nb::args& args) const {
    const size_t count = args.size();
    if (count <= 8 && signature_->result_count <= 4) {
      Argument arguments[8];
      eyas_tensor_t tensors[8], results[4];
      return call_with(args, count, arguments, tensors, results);
    }
    std::unique_ptr<Argument[]> arguments(new Argument[count]);
    std::unique_ptr<eyas_tensor_t[]> tensors(new eyas_tensor_t[count]);
    std::unique_ptr<eyas_tensor_t[]> results(new eyas_tensor_t[signature_->result_count]);
    return call_with(args, count, arguments.get(), tensors.get(), results.get());
  }

 private:
  nb::object call_with(const nb::args& args, size_t count, Argument* arguments,
                       eyas_tensor_t* tensors, eyas_tensor_t* results) const {
    bool is_torch = false;
    const size_t known = count < signature_->arg_count ? count : signature_->arg_count;
    for (size_t i = 0; i < known; ++i) {
      tensors[i].buffer = nullptr;
      if (!read_argument(PyTuple_GET_ITEM(args.ptr(), (Py_ssize_t)i), signature_->args[i],
                         (uint32_t)i, arguments[i], tensors[i], is_torch)) {
        throw nb::python_error();
      }
    }
    const uint32_t result_count = signature_->result_count;
    eyas_status_t status = nullptr;
    {
      nb::gil_scoped_release unlocked;
      status =
          eyas_context_invoke(context_, ordinal_, tensors, (uint32_t)count, results, result_count);
    }
    check(status, call_error);
    PyObject* out = nullptr;
    if (result_count == 1) {
      out = is_torch ? write_torch(results[0]) : write_numpy(results[0]);
    } else if (result_count == 0) {
      out = Py_NewRef(Py_None);
    } else {
      out = PyTuple_New(result_count);
      for (uint32_t i = 0; i < result_count; ++i) {
        if (!out) {  // give back what is left
          eyas_hal_buffer_release(results[i].buffer);
          continue;
        }
        PyObject* object = is_torch ? write_torch(results[i]) : write_numpy(results[i]);
        if (object) {
          PyTuple_SET_ITEM(out, i, object);
        } else {
          Py_CLEAR(out);
        }
      }
    }
    if (!out) throw nb::python_error();
    return nb::steal(out);
  }

  eyas_context_t* context_;
  const eyas_signature_t* signature_;
  uint32_t ordinal_ = 0;
};

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

// The microkernels and the width that bytecode is run with.
nb::tuple vmvx() {
  eyas_vmvx_info_t info;
  check(eyas_vmvx_info(nullptr, 0, &info), module_error);
  return nb::make_tuple(nb::str(info.kernels), info.width);
}

}  // namespace
}  // namespace eyas

NB_MODULE(_core, m) {
  using namespace eyas;
  nb::set_leak_warnings(false);  // modules may live in globals until the process ends
  nb::module_ errors = nb::module_::import_("eyas.errors");
  call_error = nb::object(errors.attr("CallError")).release().ptr();
  module_error = nb::object(errors.attr("ModuleError")).release().ptr();
  if (!initialize_tensors()) throw nb::python_error();

  nb::class_<Device>(m, "Device")
      .def(nb::init<const std::string&, uint32_t>(), nb::arg("driver"), nb::arg("threads") = 0)
      .def("info", &Device::info)
      .def("measure_fma", &Device::measure_fma, nb::arg("milliseconds"))
      .def("measure_read", &Device::measure_read, nb::arg("bytes"), nb::arg("shared"),
           nb::arg("milliseconds"));
  nb::class_<Module>(m, "Module")
      .def_static("open", &Module::open, nb::arg("path"), nb::arg("verify") = false, nb::arg("skip_digests") = false,
                  nb::arg("device").none() = nb::none(), nb::arg("variant") = nb::none())
      .def_static("from_bytes", &Module::from_bytes, nb::arg("data"), nb::arg("verify") = false,
                  nb::arg("skip_digests") = false, nb::arg("device").none() = nb::none(),
                  nb::arg("variant") = nb::none())
      .def("manifest", &Module::manifest)
      .def("variants", &Module::variants)
      .def("variant", &Module::variant)
      .def("functions", &Module::functions)
      .def("parameters", &Module::parameters)
      .def("states", &Module::states)
      .def("bind_parameter", &Module::bind_parameter);
  nb::class_<Context>(m, "Context")
      .def(nb::init<Module&, Device&, uint64_t, bool>(), nb::arg("module"), nb::arg("device"),
           nb::arg("budget") = 0, nb::arg("profile") = false, nb::keep_alive<1, 2>(),
           nb::keep_alive<1, 3>())
      .def("transient_bytes", &Context::transient_bytes)
      .def("get_state", &Context::get_state, nb::arg("index"), nb::arg("as_torch") = false)
      .def("set_state", &Context::set_state)
      .def("reset_state", &Context::reset_state)
      .def("profile", &Context::profile);
  nb::class_<Function>(m, "Function")
      .def(nb::init<Context&, const std::string&>(), nb::keep_alive<1, 2>())
      .def("__call__", &Function::call);
  m.def("drivers", &drivers);
  m.def("vmvx", &vmvx);
}
