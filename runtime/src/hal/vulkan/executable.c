// Executables: a pipeline for each export, made on several threads at once.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "hal/vulkan/vulkan.h"

#define MAX_THREADS 16

static uint32_t count_bits(const uint64_t* words, uint32_t count) {
  uint32_t bits = 0;
  for (uint32_t i = 0; i < count; ++i) bits += (uint32_t)__builtin_popcountll(words[i]);
  return bits;
}

//===-- One export ------------------------------------------------------------------------------//

// What the device must have for this export, beyond the features that the file says it needs.
static eyas_status_t check_limits(const eyas_hal_vulkan_device_t* device,
                                  const eyas_hal_vulkan_record_t* record,
                                  const eyas_hal_vulkan_export_t* export) {
  char needs[4][48];
  const char* features[4] = {needs[0], needs[1], needs[2], needs[3]};
  const uint32_t* size = record->local_size;
  const uint32_t* most = device->facts.properties.limits.maxComputeWorkGroupSize;
  uint32_t count = 0;
  if (size[0] > most[0] || size[1] > most[1] || size[2] > most[2]) {
    return eyas_status_make(EYAS_STATUS_INCOMPATIBLE,
                            "its workgroups have %u x %u x %u threads; the device '%s' allows "
                            "%u x %u x %u",
                            size[0], size[1], size[2], device->facts.properties.deviceName, most[0],
                            most[1], most[2]);
  }
  snprintf(needs[count++], sizeof(needs[0]), "threads=%llu",
           (unsigned long long)size[0] * size[1] * size[2]);
  snprintf(needs[count++], sizeof(needs[0]), "bindings=%u", export->descriptor_count);
  if (!export->words_in_buffer) {
    snprintf(needs[count++], sizeof(needs[0]), "push-bytes=%u", 4 * export->word_count);
  }
  if (record->subgroup_size) {
    snprintf(needs[count++], sizeof(needs[0]), "subgroup=%u", record->subgroup_size);
  }
  return eyas_hal_vulkan_check_features(&device->facts, features, count);
}

static eyas_status_t read_export(eyas_hal_vulkan_device_t* device,
                                 const eyas_hal_vulkan_record_t* record,
                                 eyas_hal_vulkan_export_t* export) {
  export->binding_count = record->binding_count;
  export->constant_count = record->constant_count;
  export->reports = record->flags & EYAS_HAL_VULKAN_REPORTS;
  export->words_in_buffer = record->flags & EYAS_HAL_VULKAN_WORDS_IN_BUFFER;
  export->has_scratch = record->flags & EYAS_HAL_VULKAN_HAS_SCRATCH;
  memcpy(export->unaligned, record->unaligned, sizeof(export->unaligned));
  export->word_count = record->constant_count +
                       count_bits(record->unaligned, EYAS_HAL_MAX_BINDINGS / 64) + export->reports;
  export->descriptor_count =
      record->binding_count + export->has_scratch + export->reports + export->words_in_buffer;
  EYAS_RETURN_IF_ERROR(check_limits(device, record, export));
  export->term_count = record->term_count;
  export->terms = calloc((size_t)record->term_count + 1, sizeof(*export->terms));
  if (!export->terms) return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory");
  for (uint32_t i = 0; i < record->term_count; ++i) {
    eyas_hal_vulkan_format_term(record, i, &export->terms[i]);
  }
  return eyas_hal_vulkan_layout(device, export->descriptor_count, &export->set_layout,
                                &export->layout);
}

static eyas_status_t make_pipeline(eyas_hal_vulkan_device_t* device,
                                   const eyas_hal_vulkan_record_t* record,
                                   eyas_hal_vulkan_export_t* export) {
  uint32_t* code = malloc(record->code_bytes);  // the file may lie at any address
  if (!code) return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory");
  memcpy(code, record->code, record->code_bytes);
  const VkShaderModuleCreateInfo module_info = {
      .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
      .codeSize = record->code_bytes,
      .pCode = code,
  };
  VkShaderModule module = NULL;
  eyas_status_t status = eyas_hal_vulkan_status(
      device->vk.CreateShaderModule(device->handle, &module_info, NULL, &module),
      "vkCreateShaderModule");
  free(code);
  if (status) return status;
  const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup = {
      .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
      .requiredSubgroupSize = record->subgroup_size,
  };
  const bool other_size =
      record->subgroup_size && record->subgroup_size != device->facts.v11.subgroupSize;
  const VkComputePipelineCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
      .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                .pNext = other_size ? &subgroup : NULL,
                .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                .module = module,
                .pName = "main"},
      .layout = export->layout,
  };
  status = eyas_hal_vulkan_status(
      device->vk.CreateComputePipelines(device->handle, device->pipelines.cache, 1, &info, NULL,
                                        &export->pipeline),
      "vkCreateComputePipelines");
  device->vk.DestroyShaderModule(device->handle, module, NULL);
  return status;
}

//===-- All of them -----------------------------------------------------------------------------//

// Work that threads share: they take the next export until none is left.
typedef struct build_t {
  eyas_hal_vulkan_device_t* device;
  const eyas_hal_executable_t* executable;
  eyas_hal_vulkan_executable_t* payload;
  const eyas_hal_vulkan_record_t* records;  // by ordinal
  uint32_t* order;                          // ordinals, the largest code first
  _Atomic uint32_t next;                    // in that order
  pthread_mutex_t mutex;
  eyas_status_t status;  // the first failure
} build_t;

static void* build_some(void* argument) {
  build_t* build = argument;
  for (;;) {
    const uint32_t turn = atomic_fetch_add(&build->next, 1);
    if (turn >= build->executable->export_count) return NULL;
    const uint32_t i = build->order[turn];
    eyas_status_t status =
        make_pipeline(build->device, &build->records[i], &build->payload->exports[i]);
    if (!status) continue;
    status = eyas_status_annotate(status, "kernel '%s'", build->executable->export_names[i]);
    pthread_mutex_lock(&build->mutex);
    build->status = eyas_status_join(build->status, status);
    pthread_mutex_unlock(&build->mutex);
  }
}

// So that no thread is left with a large one at the end.
static void sort_largest_first(const eyas_hal_vulkan_record_t* records, uint32_t* order,
                               uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t place = i;
    for (; place > 0 && records[order[place - 1]].code_bytes < records[i].code_bytes; --place) {
      order[place] = order[place - 1];
    }
    order[place] = i;
  }
}

static eyas_status_t build_all(build_t* build) {
  pthread_t threads[MAX_THREADS];
  const uint32_t count = build->executable->export_count;
  uint32_t wanted = eyas_cpu_count(), started = 0;
  build->order = malloc((count + 1) * sizeof(*build->order));
  if (!build->order) return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory");
  sort_largest_first(build->records, build->order, count);
  if (wanted > count) wanted = count;
  if (wanted > MAX_THREADS) wanted = MAX_THREADS;
  pthread_mutex_init(&build->mutex, NULL);
  while (started + 1 < wanted && pthread_create(&threads[started], NULL, build_some, build) == 0) {
    ++started;
  }
  build_some(build);
  while (started > 0) pthread_join(threads[--started], NULL);
  pthread_mutex_destroy(&build->mutex);
  free(build->order);
  return build->status;
}

static eyas_status_t find_record(const eyas_hal_vulkan_record_t* records, uint32_t count,
                                 const char* name, eyas_hal_vulkan_record_t* out_record) {
  for (uint32_t i = 0; i < count; ++i) {
    if (records[i].name_bytes == strlen(name) &&
        memcmp(records[i].name, name, records[i].name_bytes) == 0) {
      *out_record = records[i];
      return NULL;
    }
  }
  return eyas_status_make(EYAS_STATUS_NOT_FOUND, "the executable has no export '%s' among its %u",
                          name, count);
}

// Reads what the file has; `records` has room for all, `chosen` for those that are asked for.
static eyas_status_t read_file(eyas_hal_executable_t* executable, const void* bytes, size_t length,
                               uint32_t count, eyas_hal_vulkan_record_t* records,
                               eyas_hal_vulkan_record_t* chosen) {
  eyas_hal_vulkan_device_t* device = eyas_hal_vulkan_device(executable->device);
  eyas_hal_vulkan_executable_t* payload = executable->payload;
  for (uint32_t i = 0; i < count; ++i) {
    EYAS_RETURN_IF_ERROR(eyas_hal_vulkan_format_record(bytes, length, i, &records[i]));
  }
  for (uint32_t i = 0; i < executable->export_count; ++i) {
    const char* name = executable->export_names[i];
    EYAS_RETURN_IF_ERROR(find_record(records, count, name, &chosen[i]));
    eyas_hal_export_needs_t* needs = &executable->needs[i];
    needs->binding_count = chosen[i].binding_count;
    needs->constant_count = chosen[i].constant_count;
    memcpy(needs->writes, chosen[i].writes, sizeof(needs->writes));
    EYAS_RETURN_IF_ERROR(eyas_status_annotate(read_export(device, &chosen[i], &payload->exports[i]),
                                              "kernel '%s'", name));
  }
  return NULL;
}

eyas_status_t eyas_hal_vulkan_executable_load(eyas_hal_device_t* base,
                                              eyas_hal_executable_t* executable, const char* format,
                                              const void* bytes, size_t length) {
  (void)format;
  eyas_hal_vulkan_device_t* device = eyas_hal_vulkan_device(base);
  if (eyas_hal_vulkan_is_foreign(device)) return eyas_hal_vulkan_foreign();
  uint32_t count = 0;
  EYAS_RETURN_IF_ERROR(eyas_hal_vulkan_format_count(bytes, length, &count));
  const uint32_t wanted = executable->export_count;
  eyas_hal_vulkan_executable_t* payload =
      calloc(1, sizeof(*payload) + wanted * sizeof(payload->exports[0]));
  eyas_hal_vulkan_record_t* records = calloc((size_t)count + 1, sizeof(*records));
  eyas_hal_vulkan_record_t* chosen = calloc((size_t)wanted + 1, sizeof(*chosen));
  executable->needs = calloc((size_t)wanted + 1, sizeof(*executable->needs));
  executable->payload = payload;
  eyas_status_t status = NULL;
  if (!payload || !records || !chosen || !executable->needs) {
    status = eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory");
  } else {
    payload->export_count = wanted;
    status = read_file(executable, bytes, length, count, records, chosen);
  }
  if (!status) {
    build_t build = {
        .device = device, .executable = executable, .payload = payload, .records = chosen};
    status = build_all(&build);
  }
  if (!status) eyas_hal_vulkan_pipelines_save(device);
  free(records);
  free(chosen);
  return status;
}

void eyas_hal_vulkan_executable_unload(eyas_hal_device_t* base, eyas_hal_executable_t* executable) {
  eyas_hal_vulkan_device_t* device = eyas_hal_vulkan_device(base);
  eyas_hal_vulkan_executable_t* payload = executable->payload;
  for (uint32_t i = 0; i < payload->export_count; ++i) {
    if (payload->exports[i].pipeline && eyas_hal_vulkan_is_ours(device)) {
      device->vk.DestroyPipeline(device->handle, payload->exports[i].pipeline, NULL);
    }
    free(payload->exports[i].terms);
  }
  free(payload);
}
