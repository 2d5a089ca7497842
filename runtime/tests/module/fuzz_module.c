// Alters a module in memory thousands of times, loads every copy and calls what loads. Built with
// sanitizers, so that any read or write outside memory ends it.
//
//   eyas_fuzz_module MODULE COPIES SEED [--skip-digests]
//
// With --skip-digests only program.bin, manifest.json and the index are altered, so that the
// parsers, the verifier and the interpreter meet every alteration; machine code stays as it is,
// since altered machine code may do anything. EYAS_FUZZ_LAST=FILE keeps the copy at hand in FILE.
// The module's kernels must be safe for any binding and constant.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eyas/vm.h"
#include "module/container.h"

static uint64_t state;

static uint64_t random_u64(void) {  // xorshift64*
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 0x2545F4914F6CDD1Dull;
}

static size_t random_below(size_t limit) {
  return (size_t)(random_u64() % limit);
}

// Alters 1 to 4 places, mostly one, of [data, data + length).
static void alter(uint8_t* data, size_t length) {
  static const uint8_t telling[] = {0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF};
  size_t places = random_below(3) ? 1 : 1 + random_below(4);
  for (size_t i = 0; i < places; ++i) {
    size_t at = random_below(length);
    switch (random_below(8)) {
      case 0: data[at] ^= (uint8_t)(1u << random_below(8)); break;
      case 1: data[at] = (uint8_t)random_u64(); break;
      case 2: data[at] = telling[random_below(sizeof(telling))]; break;
      case 3: {  // a 32-bit field
        at &= ~(size_t)3;
        uint32_t value =
            random_below(2) ? (uint32_t)random_below(64) : 0u - (uint32_t)random_below(64);
        if (at + 4 <= length) memcpy(data + at, &value, 4);
        break;
      }
      case 4: {  // a 64-bit field
        uint64_t value = random_u64() >> random_below(64);
        if (random_below(2)) value = 0 - value;
        if (at + 8 <= length) memcpy(data + at, &value, 8);
        break;
      }
      case 5:
      case 6: {  // a 16-bit unit of code: another register, ordinal or opcode
        uint16_t value = (uint16_t)random_below(80);
        at &= ~(size_t)1;
        if (at + 2 <= length) memcpy(data + at, &value, 2);
        break;
      }
      default: {  // a run from elsewhere
        size_t from = random_below(length), count = 1 + random_below(32);
        if (at + count <= length && from + count <= length) memmove(data + at, data + from, count);
        break;
      }
    }
  }
}

// Arguments that fit the signature where that is possible within a small size.
static bool call(eyas_context_t* context, const eyas_signature_t* s, uint32_t ordinal) {
  enum { MAX_ARGS = 16, ROOM = 1 << 16 };
  static uint8_t data[ROOM] __attribute__((aligned(64)));
  eyas_tensor_t args[MAX_ARGS], results[MAX_ARGS];
  memset(args, 0, sizeof(args));
  if (s->arg_count > MAX_ARGS || s->result_count > MAX_ARGS) return false;
  for (uint32_t i = 0; i < s->arg_count; ++i) {
    args[i].data = data;
    args[i].dtype = s->args[i].dtype;
    args[i].rank = s->args[i].rank;
    uint64_t bytes = eyas_dtype_bytes(args[i].dtype);
    for (uint32_t k = 0; k < args[i].rank; ++k) {
      int64_t dim = s->args[i].dims[k];
      if (dim == -1) dim = 3;
      if (dim < -1) dim = s->symbols[-2 - dim].min > 5 ? s->symbols[-2 - dim].min : 6;
      args[i].dims[k] = dim;
      if (dim > ROOM) return false;
      bytes *= (uint64_t)dim;
      if (bytes > ROOM) return false;
    }
  }
  eyas_status_t status =
      eyas_context_invoke(context, ordinal, args, s->arg_count, results, s->result_count);
  if (!status) {
    for (uint32_t i = 0; i < s->result_count; ++i) {
      void* pointer = NULL;
      eyas_status_t mapped =
          eyas_hal_buffer_map(results[i].buffer, EYAS_HAL_ACCESS_READ, 0, EYAS_HAL_WHOLE, &pointer);
      volatile uint8_t sum = 0;
      for (uint64_t k = 0; !mapped && k < eyas_hal_buffer_length(results[i].buffer); ++k) {
        sum = (uint8_t)(sum + ((uint8_t*)pointer)[k]);
      }
      eyas_status_free(mapped);
      eyas_hal_buffer_release(results[i].buffer);
    }
  }
  bool good = !status;
  eyas_status_free(status);
  return good;
}

// Reads every state variable, writes back what came, and resets all.
static void use_states(eyas_context_t* context, const eyas_module_t* module) {
  for (uint32_t i = 0; i < eyas_module_state_count(module); ++i) {
    eyas_tensor_t tensor;
    eyas_status_t status = eyas_context_state_get(context, i, &tensor);
    if (!status) {
      void* pointer = NULL;
      status =
          eyas_hal_buffer_map(tensor.buffer, EYAS_HAL_ACCESS_READ, 0, EYAS_HAL_WHOLE, &pointer);
      tensor.data = pointer;
      if (!status) status = eyas_context_state_set(context, i, &tensor);
      eyas_hal_buffer_release(tensor.buffer);
    }
    eyas_status_free(status);
  }
  eyas_status_free(eyas_context_state_reset(context));
}

// An entry that the runtime parses: a program, or the list of variants.
static const eyas_entry_t* random_parsed(const eyas_container_t* container) {
  for (;;) {
    const eyas_entry_t* entry = &container->entries[random_below(container->entry_count)];
    const size_t length = strlen(entry->name);
    const bool program = length >= 11 && strcmp(entry->name + length - 11, "program.bin") == 0;
    if (program || strcmp(entry->name, "variants.bin") == 0) return entry;
  }
}

typedef struct counts_t {
  size_t refused, unloadable, loaded, called, failed;
} counts_t;

static void try_module(const uint8_t* data, size_t length, bool skip_digests,
                       eyas_hal_device_t* device, counts_t* counts) {
  eyas_module_options_t options = {.skip_digests = skip_digests, .device = device};
  eyas_module_t* module = NULL;
  eyas_status_t status = eyas_module_from_memory(data, length, &options, NULL, NULL, &module);
  if (status) {
    ++counts->refused;
    eyas_status_free(status);
    return;
  }
  eyas_context_options_t context_options = {.instruction_budget = 2000,
                                            .state_limit_bytes = 1 << 20};
  eyas_loaded_module_t* on_device = NULL;
  eyas_context_t* context = NULL;
  status = eyas_loaded_module_create(module, device, &on_device);
  if (!status) status = eyas_context_create(on_device, &context_options, &context);
  if (status) {
    ++counts->unloadable;
    eyas_status_free(status);
  } else {
    ++counts->loaded;
    for (uint32_t i = 0; i < eyas_module_function_count(module); ++i) {
      for (int again = 0; again < 2; ++again) {  // the second call meets what the first has kept
        if (call(context, eyas_module_function(module, i), i)) {
          ++counts->called;
        } else {
          ++counts->failed;
        }
      }
      use_states(context, module);
    }
  }
  eyas_context_release(context);
  eyas_loaded_module_release(on_device);
  eyas_module_release(module);
}

int main(int argc, char** argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: %s MODULE COPIES SEED [--skip-digests]\n", argv[0]);
    return 2;
  }
  size_t copies = strtoull(argv[2], NULL, 10);
  state = strtoull(argv[3], NULL, 10) * 2 + 1;
  bool skip_digests = argc > 4 && strcmp(argv[4], "--skip-digests") == 0;
  FILE* file = fopen(argv[1], "rb");
  if (!file) return 2;
  fseek(file, 0, SEEK_END);
  size_t length = (size_t)ftell(file);
  fseek(file, 0, SEEK_SET);
  uint8_t* original = malloc(length);
  if (fread(original, 1, length, file) != length) return 2;
  fclose(file);

  eyas_hal_device_t* device = NULL;
  eyas_status_t status = eyas_hal_device_create("local-sync", NULL, &device);
  eyas_container_t whole;
  if (!status) status = eyas_container_parse(original, length, true, &whole);
  if (status) {
    fprintf(stderr, "%s\n", eyas_status_message(status));
    return 2;
  }
  const char* last = getenv("EYAS_FUZZ_LAST");
  counts_t counts = {0};
  try_module(original, length, false, device, &counts);
  if (counts.called == 0) {
    fprintf(stderr, "the module itself does not run\n");
    return 2;
  }
  for (size_t i = 0; i < copies; ++i) {
    size_t cut = !random_below(50) ? random_below(length) : length;
    void* memory = NULL;  // of the exact length, so that a read past the end is seen
    if (posix_memalign(&memory, 64, cut ? cut : 1)) return 2;
    memcpy(memory, original, cut);
    if (!skip_digests) {
      if (cut) alter(memory, cut);
    } else if (cut == length) {  // one that is cut off is a test by itself
      const eyas_entry_t* parsed = random_parsed(&whole);
      if (random_below(8)) {
        alter((uint8_t*)memory + (parsed->data - original), parsed->length);
      } else {
        alter((uint8_t*)memory, 512);  // the index
      }
    }
    if (last) {  // what to look at after a crash
      FILE* out = fopen(last, "wb");
      if (!out || fwrite(memory, 1, cut, out) != cut) return 2;
      fclose(out);
    }
    try_module(memory, cut, skip_digests, device, &counts);
    free(memory);
  }
  printf(
      "{\"refused\": %zu, \"unloadable\": %zu, \"loaded\": %zu, \"called\": %zu, \"failed\": "
      "%zu}\n",
      counts.refused, counts.unloadable, counts.loaded, counts.called, counts.failed);
  eyas_container_free(&whole);
  eyas_hal_device_release(device);
  free(original);
  return 0;
}
