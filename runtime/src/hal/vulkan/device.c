#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/cpu/cpu.h"
#include "hal/vulkan/vulkan.h"

enum { VALIDATION, TIMEOUT_MS, POLL_US, PIPELINE_CACHE, STAGING, MATCH, OPTION_COUNT };

static const eyas_hal_option_info_t options[OPTION_COUNT] = {
    [VALIDATION] = {.name = "validation",
                    .description = "1: Khronos' validation layer checks every call and its order, "
                                   "and prints what it finds; slow",
                    .max = 1},
    [TIMEOUT_MS] = {.name = "timeout_ms",
                    .description = "how long one submission may run before the device is given up; "
                                   "0: no bound",
                    .default_value = 300000,
                    .max = 1000000000},
    [POLL_US] = {.name = "poll_us",
                 .description = "how long a thread that waits for a GPU looks without a pause, "
                                "before it sleeps between looks",
                 .default_value = 2000,
                 .max = UINT32_MAX},
    [PIPELINE_CACHE] = {.name = "pipeline_cache",
                        .description = "a folder where compiled pipelines are kept; none otherwise",
                        .is_text = true},
    [STAGING] = {.name = "staging",
                 .description = "1: the host does not see the device's memory and looks at its "
                                "progress, as with a GPU, even where it is the CPU; for tests",
                 .max = 1},
    [MATCH] = {.name = "match",
               .description =
                   "a part of the device's name: the index then counts those that have it",
               .is_text = true},
};

eyas_status_t eyas_hal_vulkan_foreign(void) {
  return eyas_status_make(EYAS_STATUS_FAILED_PRECONDITION,
                          "the device belongs to the process that this one was forked from: create "
                          "the device after the fork");
}

//===-- What it is ------------------------------------------------------------------------------//

static void info(eyas_hal_device_t* base, eyas_hal_device_info_t* out_info) {
  const eyas_hal_vulkan_device_t* device = eyas_hal_vulkan_device(base);
  out_info->name = device->facts.properties.deviceName;
  out_info->worker_count = 1;
  out_info->memory_type_count = 1;
  out_info->memory_types[0] = EYAS_HAL_MEMORY_DEVICE_LOCAL;
  const uint32_t seen = EYAS_HAL_MEMORY_HOST_VISIBLE | EYAS_HAL_MEMORY_HOST_CACHED;
  if (device->memory.host_visible) {
    out_info->memory_types[0] |= seen;
  } else {
    out_info->memory_types[out_info->memory_type_count++] = seen;
  }
  out_info->host_visible = device->memory.host_visible;
  out_info->asynchronous = true;
}

static bool property(eyas_hal_device_t* base, uint32_t index, eyas_hal_property_t* out_property) {
  eyas_hal_vulkan_device_t* device = eyas_hal_vulkan_device(base);
  const eyas_hal_vulkan_facts_t* facts = &device->facts;
  if (device->validation && index == facts->property_count) {
    pthread_mutex_lock(&device->memory.mutex);
    snprintf(device->message_count, sizeof(device->message_count), "%u",
             eyas_hal_vulkan_validation_messages());
    pthread_mutex_unlock(&device->memory.mutex);
    *out_property = (eyas_hal_property_t){"validation-messages", device->message_count};
    return true;
  }
  if (index >= facts->property_count) return false;
  *out_property = (eyas_hal_property_t){facts->names[index].name, facts->names[index].value};
  return true;
}

static eyas_status_t check_code(eyas_hal_device_t* base, const char* format,
                                const char* const* features, uint32_t feature_count) {
  const eyas_hal_vulkan_facts_t* facts = &eyas_hal_vulkan_device(base)->facts;
  if (strcmp(format, EYAS_HAL_VULKAN_FORMAT) != 0) {
    return eyas_status_make(EYAS_STATUS_INCOMPATIBLE,
                            "it has the format %s, which device vulkan (%s) cannot run: compile "
                            "with target 'vulkan'",
                            format, facts->properties.deviceName);
  }
  return eyas_hal_vulkan_check_features(facts, features, feature_count);
}

//===-- Creation --------------------------------------------------------------------------------//

void eyas_hal_vulkan_destroy(eyas_hal_vulkan_device_t* device) {
  const bool ours = eyas_hal_vulkan_is_ours(device);
  if (device->handle) {
    if (ours) device->vk.DeviceWaitIdle(device->handle);
    eyas_hal_vulkan_queue_destroy(device);
    eyas_hal_vulkan_pipelines_destroy(device);
    eyas_hal_vulkan_memory_destroy(device);
    if (ours) device->vk.DestroyDevice(device->handle, NULL);
  }
  if (!eyas_hal_vulkan_is_foreign(device)) {  // a child may have them in any state
    pthread_mutex_destroy(&device->queue.mutex);
    pthread_mutex_destroy(&device->queue.finishing);
    pthread_cond_destroy(&device->queue.changed);
    pthread_cond_destroy(&device->queue.idle);
    pthread_mutex_destroy(&device->memory.mutex);
    pthread_mutex_destroy(&device->pipelines.mutex);
  }
  free(device);
}

static void destroy(eyas_hal_device_t* base) {
  eyas_hal_vulkan_device_t* device = eyas_hal_vulkan_device(base);
  if (eyas_hal_vulkan_queue_stop(device)) eyas_hal_vulkan_destroy(device);
}

static const eyas_hal_device_vtable_t vtable = {
    .destroy = destroy,
    .info = info,
    .property = property,
    .check_code = check_code,
    .wait_idle = eyas_hal_vulkan_wait_idle,
    .buffer_allocate = eyas_hal_vulkan_buffer_allocate,
    .buffer_import = eyas_hal_vulkan_buffer_import,
    .buffer_free = eyas_hal_vulkan_buffer_free,
    .buffer_invalidate = eyas_hal_vulkan_buffer_invalidate,
    .buffer_flush = eyas_hal_vulkan_buffer_flush,
    .executable_load = eyas_hal_vulkan_executable_load,
    .executable_unload = eyas_hal_vulkan_executable_unload,
    .commands_prepare = eyas_hal_vulkan_commands_prepare,
    .commands_destroy = eyas_hal_vulkan_commands_destroy,
    .commands_profile = eyas_hal_vulkan_commands_profile,
    .semaphore_create = eyas_hal_cpu_semaphore_create,
    .semaphore_destroy = eyas_hal_cpu_semaphore_destroy,
    .semaphore_query = eyas_hal_cpu_semaphore_query,
    .semaphore_signal = eyas_hal_cpu_semaphore_signal,
    .semaphore_fail = eyas_hal_cpu_semaphore_fail,
    .semaphore_wait = eyas_hal_vulkan_semaphore_wait,
    .submit = eyas_hal_vulkan_submit,
};

static eyas_status_t load_functions(eyas_hal_vulkan_device_t* device) {
  const eyas_vk_instance_functions_t* vk = &device->system->vk;
#define LOAD(result, name, parameters) \
  device->vk.name = (result(*) parameters)vk->GetDeviceProcAddr(device->handle, "vk" #name);
#define REQUIRE(result, name, parameters)                                                   \
  LOAD(result, name, parameters)                                                            \
  if (!device->vk.name) {                                                                   \
    return eyas_status_make(EYAS_STATUS_INCOMPATIBLE, "the driver of '%s' has no vk" #name, \
                            device->facts.properties.deviceName);                           \
  }
  EYAS_VK_DEVICE_FUNCTIONS(REQUIRE)
  EYAS_VK_OPTIONAL_DEVICE_FUNCTIONS(LOAD)
#undef REQUIRE
#undef LOAD
  return NULL;
}

static eyas_status_t open(eyas_hal_vulkan_device_t* device, const eyas_hal_option_t* values) {
  const float priority = 1;
  const VkDeviceQueueCreateInfo queue = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
      .queueFamilyIndex = device->facts.queue_family,
      .queueCount = 1,
      .pQueuePriorities = &priority,
  };
  const VkDeviceCreateInfo create_info = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
      .pNext = &device->facts.features.base,
      .queueCreateInfoCount = 1,
      .pQueueCreateInfos = &queue,
      .enabledExtensionCount = device->facts.extension_count,
      .ppEnabledExtensionNames = device->facts.extensions,
  };
  EYAS_RETURN_IF_ERROR(eyas_hal_vulkan_status(
      device->system->vk.CreateDevice(device->physical, &create_info, NULL, &device->handle),
      "vkCreateDevice"));
  EYAS_RETURN_IF_ERROR(load_functions(device));
  device->vk.GetDeviceQueue(device->handle, device->facts.queue_family, 0, &device->queue_handle);
  EYAS_RETURN_IF_ERROR(eyas_hal_vulkan_memory_create(device, values[STAGING].number));
  EYAS_RETURN_IF_ERROR(eyas_hal_vulkan_pipelines_create(device, values[PIPELINE_CACHE].text));
  return eyas_hal_vulkan_queue_create(device);
}

// The device of this index among those whose names have a part that is asked for.
static eyas_status_t choose(eyas_hal_vulkan_system_t* system, uint32_t index, const char* name,
                            VkPhysicalDevice* out_device, eyas_hal_vulkan_facts_t* out_facts) {
  VkPhysicalDevice found[EYAS_HAL_VULKAN_MAX_DEVICES];
  uint32_t count = 0, matching = 0;
  char names[512] = "";
  EYAS_RETURN_IF_ERROR(eyas_hal_vulkan_system_devices(system, &count, found));
  if (count == 0) {
    return eyas_status_make(EYAS_STATUS_UNAVAILABLE,
                            "there is a Vulkan loader, but no device with Vulkan 1.2: install a "
                            "driver (in Debian mesa-vulkan-drivers), or name its file in "
                            "VK_DRIVER_FILES; vulkaninfo --summary lists what there is");
  }
  for (uint32_t i = 0; i < count; ++i) {
    VkPhysicalDeviceProperties2 about = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    system->vk.GetPhysicalDeviceProperties2(found[i], &about);
    const char* own = about.properties.deviceName;
    if (!name || strcasestr(own, name)) {
      if (matching++ == index) {
        *out_device = found[i];
        return eyas_hal_vulkan_facts(system, found[i], out_facts);
      }
    }
    strncat(names, *names ? ", " : "", sizeof(names) - strlen(names) - 1);
    strncat(names, own, sizeof(names) - strlen(names) - 1);
  }
  return eyas_status_make(EYAS_STATUS_NOT_FOUND,
                          "no device with index %u and '%s' in its name; there are: %s", index,
                          name ? name : "", names);
}

static eyas_status_t device_count(uint32_t* out_count) {
  VkPhysicalDevice found[EYAS_HAL_VULKAN_MAX_DEVICES];
  eyas_hal_vulkan_system_t* system = NULL;
  *out_count = 0;
  eyas_status_t status = eyas_hal_vulkan_system(false, &system);
  if (eyas_status_code(status) == EYAS_STATUS_UNAVAILABLE) {
    eyas_status_free(status);  // creation says why
    return NULL;
  }
  return status ? status : eyas_hal_vulkan_system_devices(system, out_count, found);
}

static eyas_status_t create(uint32_t index, const eyas_hal_option_t* values,
                            eyas_hal_device_t** out_device) {
  eyas_hal_vulkan_system_t* system = NULL;
  EYAS_RETURN_IF_ERROR(eyas_hal_vulkan_system(values[VALIDATION].number, &system));
  eyas_hal_vulkan_device_t* device = calloc(1, sizeof(*device));
  if (!device) {
    return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory for a device");
  }
  eyas_ref_initialize(&device->base.ref);
  device->base.vtable = &vtable;
  device->base.driver = eyas_hal_vulkan_driver.name;
  device->process = getpid();
  device->system = system;
  device->validation = values[VALIDATION].number;
  device->timeout_ns =
      values[TIMEOUT_MS].number ? values[TIMEOUT_MS].number * 1000000u : UINT64_MAX;
  device->poll_ns = values[POLL_US].number * 1000u;
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_mutex_init(&device->queue.mutex, NULL);
  pthread_mutex_init(&device->queue.finishing, NULL);
  pthread_cond_init(&device->queue.changed, &attributes);
  pthread_cond_init(&device->queue.idle, NULL);
  pthread_mutex_init(&device->memory.mutex, NULL);
  pthread_mutex_init(&device->pipelines.mutex, NULL);
  pthread_condattr_destroy(&attributes);
  eyas_status_t status =
      choose(system, index, values[MATCH].text, &device->physical, &device->facts);
  device->is_polled = values[STAGING].number != 0 ||
                      device->facts.properties.deviceType != VK_PHYSICAL_DEVICE_TYPE_CPU;
  if (!status) status = open(device, values);
  if (status) {
    eyas_hal_vulkan_destroy(device);
    return status;
  }
  *out_device = &device->base;
  return NULL;
}

const eyas_hal_driver_t eyas_hal_vulkan_driver = {
    .name = "vulkan",
    .device_count = device_count,
    .options = options,
    .option_count = OPTION_COUNT,
    .device_create = create,
};
