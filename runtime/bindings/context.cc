// Modules on devices, and calls.
#include <nanobind/stl/string.h>

#include <memory>

#include "bindings/common.h"
#include "bindings/device.h"
#include "bindings/module.h"
#include "bindings/results.h"

namespace eyas {
namespace {

constexpr size_t kMaxTensors = 1024;  // arguments or results of one call

// A module on a device: its code and weights, which contexts share. Keeps both Python objects.
struct Loaded {
  Loaded(nb::object module, nb::object device) : module(module), device(device) {
    eyas_module_t* from = nb::cast<Module&>(module).handle;
    eyas_hal_device_t* to = nb::cast<Device&>(device).handle;
    check_unlocked([&] { return eyas_loaded_module_create(from, to, &handle); }, module_error);
  }
  ~Loaded() { eyas_loaded_module_release(handle); }
  Loaded(const Loaded&) = delete;

  nb::object module, device;
  eyas_loaded_module_t* handle = nullptr;
};

// What calls work on.
struct Context {
  Context(nb::object loaded, uint64_t budget, bool profile) : loaded(loaded) {
    eyas_context_options_t options = {budget, profile, 0};
    const Loaded& of = nb::cast<Loaded&>(loaded);
    device = of.device.ptr();
    module = eyas_loaded_module_module(of.handle);
    check(eyas_context_create(of.handle, &options, &handle), module_error);
  }
  ~Context() { eyas_context_release(handle); }
  Context(const Context&) = delete;

  // Called before anything that runs on the context, so that what was submitted earlier is done.
  void wait_for_queue() const {
    if (!before.is_valid() || before.is_none()) return;
    const nb::object held = before;  // the queue may let go of it meanwhile
    held();
  }

  nb::object loaded;
  nb::object before;           // None: nothing waits
  PyObject* device = nullptr;  // `loaded` has it
  eyas_module_t* module = nullptr;
  eyas_context_t* handle = nullptr;
};

// (name, submission, wave, grid, start_ns, end_ns, shares, bindings, constants) per command since
// the last call of this, with shares as (worker, workgroups, start_ns, end_ns, busy_ns) and
// bindings as (address, bytes, access).
nb::list profile(const Context& self) {
  self.wait_for_queue();
  eyas_hal_profile_t profile = {};
  check(eyas_context_profile(self.handle, &profile), call_error);
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
    out.append(nb::make_tuple(text(e.name), e.submission, e.wave,
                              nb::make_tuple(e.grid[0], e.grid[1], e.grid[2]), e.start_ns, e.end_ns,
                              nb::tuple(shares), nb::tuple(bindings), nb::tuple(constants)));
  }
  return out;
}

nb::object get_state(const Context& self, uint32_t index, bool as_torch) {
  self.wait_for_queue();
  eyas_tensor_t tensor;
  check_unlocked([&] { return eyas_context_state_get(self.handle, index, &tensor); }, call_error);
  return owned(write_result(tensor, as_torch ? Form::kTorch : Form::kNumpy, self.device));
}

void set_state(const Context& self, uint32_t index, nb::handle value) {
  self.wait_for_queue();
  const eyas_state_t* s = eyas_module_state(self.module, index);
  if (!s) throw nb::index_error();
  const eyas_tensor_spec_t spec = {s->name, s->dtype, s->rank, s->dims};
  Argument argument;
  eyas_tensor_t tensor = {};
  Form form = Form::kNumpy;
  if (!read_argument(value.ptr(), spec, 0, argument, tensor, form)) throw nb::python_error();
  check_unlocked([&] { return eyas_context_state_set(self.handle, index, &tensor); }, call_error);
}

void reset_state(const Context& self) {
  self.wait_for_queue();
  check_unlocked([&] { return eyas_context_state_reset(self.handle); }, call_error);
}

// One function of a context, ready to be called: the hot path.
class Function {
 public:
  Function(nb::object context, const std::string& name)
      : owner_(context), context_(nb::cast<Context&>(context)) {
    check(eyas_module_lookup(context_.module, name.c_str(), &ordinal_), module_error);
    signature_ = eyas_module_function(context_.module, ordinal_);
    if (signature_->arg_count > kMaxTensors || signature_->result_count > kMaxTensors) {
      PyErr_Format(module_error, "function '%s' has more than %zu arguments or results",
                   signature_->name, kMaxTensors);
      throw nb::python_error();
    }
  }

  nb::object call(const nb::args& args) const { return call_as(args, Form::kNumpy); }
  // The same with results that stay on the device.
  nb::object keep(const nb::args& args) const { return call_as(args, Form::kDevice); }

 private:
  nb::object call_as(const nb::args& args, Form form) const {
    const size_t count = args.size();
    if (count <= 8 && signature_->result_count <= 4) {
      Argument arguments[8];
      eyas_tensor_t tensors[8], results[4];
      return call_with(args, count, arguments, tensors, results, form);
    }
    std::unique_ptr<Argument[]> arguments(new Argument[count]);
    std::unique_ptr<eyas_tensor_t[]> tensors(new eyas_tensor_t[count]);
    std::unique_ptr<eyas_tensor_t[]> results(new eyas_tensor_t[signature_->result_count]);
    return call_with(args, count, arguments.get(), tensors.get(), results.get(), form);
  }

  nb::object call_with(const nb::args& args, size_t count, Argument* arguments,
                       eyas_tensor_t* tensors, eyas_tensor_t* results, Form form) const {
    context_.wait_for_queue();
    const size_t known = count < signature_->arg_count ? count : signature_->arg_count;
    for (size_t i = 0; i < known; ++i) {
      if (!read_argument(PyTuple_GET_ITEM(args.ptr(), (Py_ssize_t)i), signature_->args[i],
                         (uint32_t)i, arguments[i], tensors[i], form)) {
        throw nb::python_error();
      }
    }
    const uint32_t result_count = signature_->result_count;
    check_unlocked(
        [&] {
          return eyas_context_invoke(context_.handle, ordinal_, tensors, (uint32_t)count, results,
                                     result_count);
        },
        call_error);
    if (result_count == 1) return owned(write_result(results[0], form, context_.device));
    if (result_count == 0) return nb::none();
    PyObject* out = PyTuple_New(result_count);
    for (uint32_t i = 0; i < result_count; ++i) {
      if (!out) {  // give back what is left
        eyas_hal_buffer_release(results[i].buffer);
        continue;
      }
      PyObject* object = write_result(results[i], form, context_.device);
      if (object) {
        PyTuple_SET_ITEM(out, i, object);
      } else {
        Py_CLEAR(out);
      }
    }
    return owned(out);
  }

  nb::object owner_;  // keeps the context
  const Context& context_;
  const eyas_signature_t* signature_;
  uint32_t ordinal_ = 0;
};

}  // namespace

void define_context(nb::module_& m) {
  nb::class_<Loaded>(m, "Loaded")
      .def(nb::init<nb::object, nb::object>(), nb::arg("module"), nb::arg("device"));
  nb::class_<Context>(m, "Context")
      .def(nb::init<nb::object, uint64_t, bool>(), nb::arg("loaded"), nb::arg("budget") = 0,
           nb::arg("profile") = false)
      .def_prop_rw(
          "before", [](const Context& self) { return self.before; },
          [](Context& self, nb::object before) { self.before = before; }, nb::arg("before").none())
      .def("transient_bytes",
           [](const Context& self) { return eyas_context_transient_bytes(self.handle); })
      .def("get_state", get_state, nb::arg("index"), nb::arg("as_torch") = false)
      .def("set_state", set_state)
      .def("reset_state", reset_state)
      .def("profile", profile);
  nb::class_<Function>(m, "Function")
      .def(nb::init<nb::object, const std::string&>(), nb::arg("context"), nb::arg("name"))
      .def("__call__", &Function::call)
      .def("keep", &Function::keep);
}

}  // namespace eyas
