#include "module/module.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"

#define VARIANTS_FOLDER "variants/"
#define MAX_PARAMETER_BYTES_ALWAYS_CHECKED ((uint64_t)16 << 20)

// An entry in the folder of the opened program.
static eyas_status_t find_entry(const eyas_module_t* m, const char* name,
                                const eyas_entry_t** out_entry) {
  char path[1024];
  int written = snprintf(path, sizeof(path), "%s%s", m->folder, name);
  bool fits = written >= 0 && (size_t)written < sizeof(path);
  *out_entry = fits ? eyas_container_find(&m->container, path) : NULL;
  return *out_entry ? NULL
                    : eyas_status_make(EYAS_STATUS_CORRUPT, "the module has no entry '%s'", path);
}

// Digests first: nothing of an entry is parsed before it. Variants that are not opened are not
// read.
static eyas_status_t check_digests(const eyas_module_t* m, bool all) {
  for (uint32_t i = 0; i < m->container.entry_count; ++i) {
    const eyas_entry_t* e = &m->container.entries[i];
    bool weights = strcmp(e->name, "parameters.bin") == 0;
    bool other = strncmp(e->name, VARIANTS_FOLDER, sizeof(VARIANTS_FOLDER) - 1) == 0 &&
                 strncmp(e->name, m->folder, strlen(m->folder)) != 0;
    if (!all && other) continue;
    if (!all && weights && e->length > MAX_PARAMETER_BYTES_ALWAYS_CHECKED) continue;
    EYAS_RETURN_IF_ERROR(eyas_container_check(e));
  }
  return NULL;
}

// Sets the folder of a fat module in which the program is that the options ask for.
static eyas_status_t choose_variant(eyas_module_t* m, const eyas_module_options_t* options,
                                    bool digests) {
  const char* wanted = options ? options->variant : NULL;
  if (m->container.version != EYAS_CONTAINER_FAT_VERSION) {
    if (!wanted) return NULL;
    return eyas_status_make(
        EYAS_STATUS_NOT_FOUND,
        "no variant is called '%s': the module holds one program for one target", wanted);
  }
  const eyas_entry_t* entry = NULL;
  EYAS_RETURN_IF_ERROR(find_entry(m, "variants.bin", &entry));
  if (digests) EYAS_RETURN_IF_ERROR(eyas_container_check(entry));
  EYAS_RETURN_IF_ERROR(eyas_variants_parse(entry->data, entry->length, &m->variants));
  EYAS_RETURN_IF_ERROR(
      eyas_variants_choose(&m->variants, wanted, options ? options->device : NULL, &m->variant));
  int written = snprintf(m->folder, sizeof(m->folder), VARIANTS_FOLDER "%s/",
                         m->variants.items[m->variant].variant.name);
  if (written >= 0 && (size_t)written < sizeof(m->folder)) return NULL;
  return eyas_status_make(EYAS_STATUS_CORRUPT, "the name of variant %u is too long", m->variant);
}

static eyas_status_t find_executables(eyas_module_t* m) {
  const eyas_program_t* p = &m->program;
  m->executables = calloc((size_t)p->executable_count + 1, sizeof(*m->executables));
  if (!m->executables)
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "no memory for a module");
  for (uint32_t i = 0; i < p->executable_count; ++i) {
    char name[512];
    // Named after the format up to its machine: "elf-x86_64" is an .elf.
    const char* format = p->executables[i].format;
    int written = snprintf(name, sizeof(name), "executables/%s.%.*s", p->executables[i].name,
                           (int)strcspn(format, "-"), format);
    if (written < 0 || (size_t)written >= sizeof(name)) {
      return eyas_status_make(EYAS_STATUS_CORRUPT, "the name of executable %u is too long", i);
    }
    EYAS_RETURN_IF_ERROR(find_entry(m, name, &m->executables[i]));
  }
  return NULL;
}

static eyas_status_t find_parameters(eyas_module_t* m) {
  const eyas_program_t* p = &m->program;
  m->parameters = eyas_container_find(&m->container, "parameters.bin");
  m->parameter_data = calloc((size_t)p->parameter_count + 1, sizeof(*m->parameter_data));
  if (!m->parameter_data) {
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "no memory for a module");
  }
  for (uint32_t i = 0; i < p->parameter_count; ++i) {
    const eyas_parameter_t* parameter = &p->parameters[i];
    if (parameter->external[0]) continue;
    uint64_t available = m->parameters ? m->parameters->length : 0;
    if (!eyas_range_fits(parameter->offset, parameter->bytes, available)) {
      return eyas_status_make(
          EYAS_STATUS_CORRUPT,
          "parameter '%s' needs bytes %llu to %llu of parameters.bin, which has %llu",
          parameter->name, (unsigned long long)parameter->offset,
          (unsigned long long)(parameter->offset + parameter->bytes),
          (unsigned long long)available);
    }
    static const uint8_t nothing[64] __attribute__((aligned(64))) = {0};
    m->parameter_data[i] = m->parameters ? m->parameters->data + parameter->offset : nothing;
  }
  return NULL;
}

static eyas_status_t build(eyas_module_t* m, const uint8_t* data, size_t length,
                           const eyas_module_options_t* options) {
  bool digests = !options || !options->skip_digests;
  EYAS_RETURN_IF_ERROR(eyas_container_parse(data, length, digests, &m->container));
  EYAS_RETURN_IF_ERROR(choose_variant(m, options, digests));
  if (digests) EYAS_RETURN_IF_ERROR(check_digests(m, options && options->verify_parameters));
  const eyas_entry_t* program = NULL;
  EYAS_RETURN_IF_ERROR(find_entry(m, "manifest.json", &m->manifest));
  EYAS_RETURN_IF_ERROR(find_entry(m, "program.bin", &program));
  EYAS_RETURN_IF_ERROR(eyas_program_parse(program->data, program->length, &m->program));
  EYAS_RETURN_IF_ERROR(find_executables(m));
  return find_parameters(m);
}

static void destroy(eyas_module_t* m) {
  free(m->executables);
  free(m->parameter_data);
  eyas_program_free(&m->program);
  eyas_variants_free(&m->variants);
  eyas_container_free(&m->container);
  if (m->release) m->release(m->user);
  free(m);
}

eyas_status_t eyas_module_from_memory(const void* data, size_t length,
                                      const eyas_module_options_t* options,
                                      void (*release)(void* user), void* user,
                                      eyas_module_t** out_module) {
  if ((uintptr_t)data % 64 != 0) {
    return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT,
                            "a module in memory must be 64-byte aligned");
  }
  eyas_module_t* module = calloc(1, sizeof(*module));
  if (!module) return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "no memory for a module");
  eyas_ref_initialize(&module->ref);
  eyas_status_t status = build(module, data, length, options);
  if (status) {
    destroy(module);
    return status;
  }
  module->release = release;
  module->user = user;
  *out_module = module;
  return NULL;
}

typedef struct mapping_t {
  void* data;
  size_t length;
} mapping_t;

static void release_mapping(void* user) {
  mapping_t* mapping = user;
  munmap(mapping->data, mapping->length);
  free(mapping);
}

static eyas_status_t map_file(const char* path, mapping_t* mapping) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    char reason[128] = "";
    int error = errno;
    snprintf(reason, sizeof(reason), "%s", error == ENOENT ? "no such file" : strerror(error));
    return eyas_status_make(error == ENOENT ? EYAS_STATUS_NOT_FOUND : EYAS_STATUS_UNAVAILABLE,
                            "cannot open it: %s", reason);
  }
  struct stat stat;
  eyas_status_t status = NULL;
  if (fstat(file, &stat) != 0 || !S_ISREG(stat.st_mode) || stat.st_size <= 0) {
    status = eyas_status_make(EYAS_STATUS_CORRUPT, "it is empty, or not a regular file");
  } else {
    mapping->length = (size_t)stat.st_size;
    mapping->data = mmap(NULL, mapping->length, PROT_READ, MAP_PRIVATE, file, 0);
    if (mapping->data == MAP_FAILED) {
      status = eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED,
                                "cannot map its %zu bytes into memory", mapping->length);
    }
  }
  close(file);
  return status;
}

eyas_status_t eyas_module_open(const char* path, const eyas_module_options_t* options,
                               eyas_module_t** out_module) {
  mapping_t* mapping = calloc(1, sizeof(*mapping));
  if (!mapping) return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "no memory for a module");
  eyas_status_t status = map_file(path, mapping);
  if (status) {
    free(mapping);
    return eyas_status_annotate(status, "%s", path);
  }
  status = eyas_module_from_memory(mapping->data, mapping->length, options, release_mapping,
                                   mapping, out_module);
  if (status) release_mapping(mapping);
  return eyas_status_annotate(status, "%s", path);
}

eyas_module_t* eyas_module_retain(eyas_module_t* module) {
  if (module) eyas_ref_retain(&module->ref);
  return module;
}

void eyas_module_release(eyas_module_t* module) {
  if (module && eyas_ref_release(&module->ref)) destroy(module);
}

uint32_t eyas_module_function_count(const eyas_module_t* module) {
  return module->program.function_count;
}

const eyas_signature_t* eyas_module_function(const eyas_module_t* module, uint32_t ordinal) {
  const eyas_program_t* p = &module->program;
  return ordinal < p->function_count ? &p->functions[ordinal].signature : NULL;
}

eyas_status_t eyas_module_lookup(const eyas_module_t* module, const char* name,
                                 uint32_t* out_ordinal) {
  const eyas_program_t* p = &module->program;
  for (uint32_t i = 0; i < p->function_count; ++i) {
    if (strcmp(p->functions[i].signature.name, name) == 0) {
      *out_ordinal = i;
      return NULL;
    }
  }
  return eyas_status_make(
      EYAS_STATUS_NOT_FOUND, "the module has no function '%s'; it has %u, the first is '%s'", name,
      p->function_count, p->function_count ? p->functions[0].signature.name : "");
}

uint32_t eyas_module_parameter_count(const eyas_module_t* module) {
  return module->program.parameter_count;
}

const eyas_parameter_t* eyas_module_parameter(const eyas_module_t* module, uint32_t ordinal) {
  const eyas_program_t* p = &module->program;
  return ordinal < p->parameter_count ? &p->parameters[ordinal] : NULL;
}

uint32_t eyas_module_state_count(const eyas_module_t* module) {
  return module->program.state_count;
}

const eyas_state_t* eyas_module_state(const eyas_module_t* module, uint32_t ordinal) {
  const eyas_program_t* p = &module->program;
  return ordinal < p->state_count ? &p->states[ordinal] : NULL;
}

eyas_status_t eyas_module_bind_parameter(eyas_module_t* module, uint32_t ordinal, const void* data,
                                         uint64_t length) {
  const eyas_parameter_t* p = eyas_module_parameter(module, ordinal);
  if (!p || !p->external[0]) {
    return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT, "parameter %u is not an external one",
                            ordinal);
  }
  if (length != p->bytes || !data) {
    return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT,
                            "parameter '%s' has %llu bytes, the memory given for it %llu", p->name,
                            (unsigned long long)p->bytes, (unsigned long long)length);
  }
  module->parameter_data[ordinal] = data;
  return NULL;
}

uint32_t eyas_module_variant_count(const eyas_module_t* module) {
  return module->variants.count;
}

const eyas_variant_t* eyas_module_variant(const eyas_module_t* module, uint32_t ordinal) {
  return ordinal < module->variants.count ? &module->variants.items[ordinal].variant : NULL;
}

const eyas_variant_t* eyas_module_opened_variant(const eyas_module_t* module) {
  return eyas_module_variant(module, module->variant);
}

const char* eyas_module_format(const eyas_module_t* module, uint32_t ordinal) {
  const eyas_program_t* program = &module->program;
  return ordinal < program->executable_count ? program->executables[ordinal].format : NULL;
}

const char* eyas_module_any_format(const eyas_module_t* module, uint32_t ordinal) {
  if (!module->variants.count) return eyas_module_format(module, ordinal);
  for (uint32_t i = 0; i < module->variants.count; ++i) {
    const eyas_variant_requirements_t* variant = &module->variants.items[i];
    if (ordinal < variant->executable_count) return variant->executables[ordinal].format;
    ordinal -= variant->executable_count;
  }
  return NULL;
}

void eyas_module_manifest(const eyas_module_t* module, const char** out_text, size_t* out_length) {
  *out_text = (const char*)module->manifest->data;
  *out_length = module->manifest->length;
}
