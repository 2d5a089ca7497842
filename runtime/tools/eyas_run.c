// Runs a function of a module on bytes from files: all that a machine needs that has no Python.
//
//   eyas-run MODULE FUNCTION [INPUT...] [-o OUTPUT...] [--driver NAME] [--variant NAME]
//            [--repeat COUNT]
//
// An INPUT is a file with the argument's elements, dense and in row order, of the size that the
// signature says (sizes that the signature leaves open are written after the name: x.bin:3x17).
// Results go to the OUTPUTs. With --repeat the function is called again, and the fastest call's
// time is printed. EYAS_VMVX_KERNELS and EYAS_VMVX_WIDTH are the device options vmvx_kernels and
// vmvx_width.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "eyas/vm.h"

enum { MAX_FILES = 64 };

typedef struct options_t {
  const char *module, *function, *driver, *variant;
  const char *inputs[MAX_FILES], *outputs[MAX_FILES];
  uint32_t input_count, output_count;
  unsigned long repeat;
} options_t;

static int usage(const char* wrong) {
  fprintf(stderr,
          "eyas-run: %s\n"
          "usage: eyas-run MODULE FUNCTION [INPUT...] [-o OUTPUT...] [--driver NAME] [--variant "
          "NAME] [--repeat COUNT]\n",
          wrong);
  return 2;
}

static int fail(eyas_status_t status, const char* what) {
  fprintf(stderr, "eyas-run: %s: %s\n", what, eyas_status_message(status));
  eyas_status_free(status);
  return 1;
}

static const char* parse(int argc, char** argv, options_t* options) {
  bool outputs = false;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "-o") == 0) {
      outputs = true;
    } else if (strncmp(argv[i], "--", 2) == 0) {
      const char* option = argv[i] + 2;
      if (i + 1 == argc) return "an option lacks its value";
      const char* value = argv[++i];
      if (strcmp(option, "driver") == 0) {
        options->driver = value;
      } else if (strcmp(option, "variant") == 0) {
        options->variant = value;
      } else if (strcmp(option, "repeat") == 0) {
        options->repeat = strtoul(value, NULL, 10);
      } else {
        return "unknown option";
      }
    } else if (!options->module) {
      options->module = argv[i];
    } else if (!options->function) {
      options->function = argv[i];
    } else if (outputs ? options->output_count < MAX_FILES : options->input_count < MAX_FILES) {
      if (outputs) options->outputs[options->output_count++] = argv[i];
      if (!outputs) options->inputs[options->input_count++] = argv[i];
    } else {
      return "too many files";
    }
  }
  return options->function ? NULL : "a module and a function are needed";
}

// NAME or NAME:3x17, for an argument of the signature. The data is the caller's to free.
static const char* read_input(const char* text, const eyas_tensor_spec_t* spec,
                              eyas_tensor_t* out) {
  char name[4096];
  const char* sizes = strrchr(text, ':');
  const size_t length = sizes ? (size_t)(sizes - text) : strlen(text);
  if (length >= sizeof(name)) return "the name is too long";
  memcpy(name, text, length);
  name[length] = 0;
  uint64_t bytes = eyas_dtype_bytes(spec->dtype);
  *out = (eyas_tensor_t){.dtype = spec->dtype, .rank = spec->rank};
  for (uint32_t i = 0; i < spec->rank; ++i) {
    char* end = NULL;
    out->dims[i] = sizes ? strtoll(sizes + 1, &end, 10) : spec->dims[i];
    if (sizes && (end == sizes + 1 || *end != (i + 1 < spec->rank ? 'x' : 0))) return "bad sizes";
    sizes = sizes ? end : NULL;
    if (out->dims[i] < 0) return "a size is not known: write it as NAME:3x17";
    if (__builtin_mul_overflow(bytes, (uint64_t)out->dims[i], &bytes)) return "it is too large";
  }
  FILE* file = fopen(name, "rb");
  if (!file) return "it cannot be opened";
  void* data = aligned_alloc(64, (bytes + 64) & ~(uint64_t)63);
  const bool whole = data && fread(data, 1, bytes, file) == bytes && fgetc(file) == EOF;
  fclose(file);
  out->data = data;
  return whole ? NULL : "its size is not the argument's";
}

static eyas_status_t write_output(const char* name, const eyas_tensor_t* tensor,
                                  bool* out_written) {
  uint64_t bytes = eyas_dtype_bytes(tensor->dtype);
  for (uint32_t i = 0; i < tensor->rank; ++i) bytes *= (uint64_t)tensor->dims[i];
  void* data = malloc(bytes + 1);
  if (!data) return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "no memory for a result");
  eyas_status_t status = eyas_hal_buffer_read(tensor->buffer, 0, data, bytes);
  FILE* file = status ? NULL : fopen(name, "wb");
  *out_written = file && fwrite(data, 1, bytes, file) == bytes;
  if (file && fclose(file) != 0) *out_written = false;
  free(data);
  return status;
}

static int call(const options_t* options, eyas_context_t* context, const eyas_module_t* module) {
  uint32_t number = 0;
  const uint32_t functions = eyas_module_function_count(module);
  while (number < functions &&
         strcmp(eyas_module_function(module, number)->name, options->function))
    ++number;
  if (number == functions) return usage("the module has no such function");
  const eyas_signature_t* signature = eyas_module_function(module, number);
  if (signature->arg_count != options->input_count) return usage("wrong number of inputs");
  if (signature->result_count < options->output_count) return usage("more outputs than results");
  if (signature->result_count > MAX_FILES) return usage("too many results");

  eyas_tensor_t args[MAX_FILES] = {{0}}, results[MAX_FILES];
  int code = 0;
  for (uint32_t i = 0; i < signature->arg_count && code == 0; ++i) {
    const char* wrong = read_input(options->inputs[i], &signature->args[i], &args[i]);
    if (wrong) fprintf(stderr, "eyas-run: %s: %s\n", options->inputs[i], wrong);
    code = wrong != NULL;
  }
  uint64_t fastest_ns = UINT64_MAX;
  for (unsigned long round = 0; round < options->repeat && code == 0; ++round) {
    const uint64_t start = eyas_clock_now_ns();
    eyas_status_t status = eyas_context_invoke(context, number, args, signature->arg_count, results,
                                               signature->result_count);
    const uint64_t taken = eyas_clock_now_ns() - start;
    fastest_ns = taken < fastest_ns ? taken : fastest_ns;
    if (status) {
      code = fail(status, options->function);
      break;
    }
    for (uint32_t i = 0; i < signature->result_count; ++i) {
      bool written = true;
      if (i < options->output_count && round == 0) {
        status = write_output(options->outputs[i], &results[i], &written);
        if (status) code = fail(status, options->outputs[i]);
        if (!written) fprintf(stderr, "eyas-run: %s cannot be written\n", options->outputs[i]);
        code |= !written;
      }
      eyas_hal_buffer_release(results[i].buffer);
    }
  }
  if (code == 0 && options->repeat > 1) printf("%.3f ms\n", (double)fastest_ns / 1e6);
  for (uint32_t i = 0; i < signature->arg_count; ++i) free((void*)args[i].data);
  return code;
}

static eyas_status_t open_device(const char* driver, eyas_hal_device_t** out_device) {
  const char *kernels = getenv("EYAS_VMVX_KERNELS"), *width = getenv("EYAS_VMVX_WIDTH");
  eyas_hal_option_t values[2];
  eyas_hal_device_options_t options = {.values = values};
  if (kernels && *kernels) {
    values[options.value_count++] = (eyas_hal_option_t){.name = "vmvx_kernels", .text = kernels};
  }
  if (width && *width) {
    values[options.value_count++] =
        (eyas_hal_option_t){.name = "vmvx_width", .number = strtoul(width, NULL, 10)};
  }
  return eyas_hal_device_create(driver, &options, out_device);
}

int main(int argc, char** argv) {
  options_t options = {.driver = "local-task", .repeat = 1};
  const char* wrong = parse(argc, argv, &options);
  if (wrong) return usage(wrong);
  eyas_hal_device_t* device = NULL;
  eyas_module_t* module = NULL;
  eyas_loaded_module_t* loaded = NULL;
  eyas_context_t* context = NULL;
  int code = 0;
  eyas_status_t status = open_device(options.driver, &device);
  eyas_module_options_t choice = {.variant = options.variant, .device = device};
  if (!status) status = eyas_module_open(options.module, &choice, &module);
  if (!status) status = eyas_loaded_module_create(module, device, &loaded);
  if (!status) status = eyas_context_create(loaded, NULL, &context);
  code = status ? fail(status, options.module) : call(&options, context, module);
  eyas_context_release(context);
  eyas_loaded_module_release(loaded);
  eyas_module_release(module);
  eyas_hal_device_release(device);
  return code;
}
