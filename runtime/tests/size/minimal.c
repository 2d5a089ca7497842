// The least program that runs a module of bytecode: loads it, calls its first function with zeros,
// and prints how many results came. For `make vmvx-runtime-size`.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "eyas/hal.h"
#include "eyas/vm.h"

// The C library's has a text for each of a hundred errors.
__attribute__((used)) char* strerror(int error) {
  (void)error;
  return "it cannot be read";
}

static int complain(eyas_status_t status) {
  const char* text = eyas_status_message(status);
  size_t length = 0;
  while (text[length]) ++length;
  (void)!write(2, text, length);
  (void)!write(2, "\n", 1);
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  eyas_hal_device_t* device = NULL;
  eyas_module_t* module = NULL;
  eyas_loaded_module_t* loaded = NULL;
  eyas_context_t* context = NULL;
  eyas_status_t status = eyas_hal_device_create("local-sync", NULL, &device);
  if (!status) status = eyas_module_open(argv[1], NULL, &module);
  if (!status) status = eyas_loaded_module_create(module, device, &loaded);
  if (!status) status = eyas_context_create(loaded, NULL, &context);
  if (status) return complain(status);
  const eyas_signature_t* s = eyas_module_function(module, 0);
  eyas_tensor_t* args = calloc(s->arg_count + 1, sizeof(*args));
  eyas_tensor_t* results = calloc(s->result_count + 1, sizeof(*results));
  if (!args || !results) return 1;
  for (uint32_t i = 0; i < s->arg_count; ++i) {
    uint64_t bytes = eyas_dtype_bytes(s->args[i].dtype);
    args[i].dtype = s->args[i].dtype;
    args[i].rank = s->args[i].rank;
    for (uint32_t k = 0; k < args[i].rank; ++k) {
      args[i].dims[k] = s->args[i].dims[k] < 0 ? 1 : s->args[i].dims[k];
      bytes *= (uint64_t)args[i].dims[k];
    }
    args[i].data = calloc(1, bytes + 1);
  }
  status = eyas_context_invoke(context, 0, args, s->arg_count, results, s->result_count);
  if (status) return complain(status);
  char digit = (char)('0' + s->result_count % 10);
  (void)!write(1, &digit, 1);
  return 0;
}
