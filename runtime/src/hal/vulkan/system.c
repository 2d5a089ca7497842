#define _GNU_SOURCE 1
#include "hal/vulkan/system.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LAYER "VK_LAYER_KHRONOS_validation"

typedef struct loader_t {
  PFN_vkVoidFunction (*GetInstanceProcAddr)(VkInstance instance, const char* name);
  EYAS_VK_GLOBAL_FUNCTIONS(EYAS_VK_FIELD)
} loader_t;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static loader_t loader;
static eyas_hal_vulkan_system_t* systems[2];  // without and with validation
static _Atomic uint32_t message_count;

uint32_t eyas_hal_vulkan_validation_messages(void) {
  return atomic_load(&message_count);
}

static _Atomic uint32_t orphan_count;

void eyas_hal_vulkan_orphan_begins(void) {
  atomic_fetch_add(&orphan_count, 1);
}

void eyas_hal_vulkan_orphan_ends(void) {
  atomic_fetch_sub(&orphan_count, 1);
}

static void wait_for_orphans(void) {
  for (int i = 0; atomic_load(&orphan_count) > 0 && i < 2000; ++i) usleep(1000);
}

static const char* name_of(VkResult result) {
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY: return "out of host memory";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: return "out of device memory";
    case VK_ERROR_INITIALIZATION_FAILED: return "the driver could not be initialised";
    case VK_ERROR_LAYER_NOT_PRESENT: return "a layer is not there";
    case VK_ERROR_EXTENSION_NOT_PRESENT: return "an extension is not there";
    case VK_ERROR_FEATURE_NOT_PRESENT: return "a feature is not there";
    case VK_ERROR_INCOMPATIBLE_DRIVER: return "no driver that works";
    case VK_ERROR_TOO_MANY_OBJECTS: return "too many objects";
    case VK_ERROR_OUT_OF_POOL_MEMORY: return "out of pool memory";
    default: return "an error of Vulkan";
  }
}

eyas_status_t eyas_hal_vulkan_status(VkResult result, const char* what) {
  if (result >= 0) return NULL;
  eyas_status_code_t code = EYAS_STATUS_INTERNAL;
  if (result == VK_ERROR_DEVICE_LOST) {
    return eyas_status_make(EYAS_STATUS_UNAVAILABLE,
                            "%s: the device is lost (a kernel that failed or took too long for the "
                            "system, or a driver that was reset); open the device again",
                            what);
  }
  if (result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
      result == VK_ERROR_TOO_MANY_OBJECTS || result == VK_ERROR_OUT_OF_POOL_MEMORY) {
    code = EYAS_STATUS_RESOURCE_EXHAUSTED;
  }
  return eyas_status_make(code, "%s: %s (VkResult %d)", what, name_of(result), (int)result);
}

// The library stays open: its threads and those of drivers may outlive every device.
static eyas_status_t open_loader(void) {
  if (loader.GetInstanceProcAddr) return NULL;
  void* library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    return eyas_status_make(
        EYAS_STATUS_UNAVAILABLE,
        "no Vulkan loader (libvulkan.so.1): install one and a driver, in Debian "
        "the packages libvulkan1 and mesa-vulkan-drivers");
  }
  loader_t found;
  *(void**)&found.GetInstanceProcAddr = dlsym(library, "vkGetInstanceProcAddr");
  if (!found.GetInstanceProcAddr) {
    return eyas_status_make(EYAS_STATUS_UNAVAILABLE,
                            "libvulkan.so.1 has no vkGetInstanceProcAddr: it is no Vulkan loader");
  }
#define LOAD(result, name, parameters)                                                          \
  found.name = (result(*) parameters)found.GetInstanceProcAddr(NULL, "vk" #name);               \
  if (!found.name) {                                                                            \
    return eyas_status_make(EYAS_STATUS_UNAVAILABLE,                                            \
                            "the Vulkan loader has no vk" #name ": install a newer one (1.2)"); \
  }
  EYAS_VK_GLOBAL_FUNCTIONS(LOAD)
#undef LOAD
  loader = found;
  atexit(wait_for_orphans);
  return NULL;
}

static bool has_layer(void) {
  uint32_t count = 0;
  loader.EnumerateInstanceLayerProperties(&count, NULL);
  VkLayerProperties* layers = calloc(count + 1, sizeof(*layers));
  bool found = false;
  if (layers && loader.EnumerateInstanceLayerProperties(&count, layers) >= 0) {
    for (uint32_t i = 0; i < count; ++i) found |= strcmp(layers[i].layerName, LAYER) == 0;
  }
  free(layers);
  return found;
}

static VkBool32 on_message(uint32_t severity, VkFlags types,
                           const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  (void)severity, (void)types, (void)user;
  atomic_fetch_add(&message_count, 1);
  fprintf(stderr, "vulkan validation: %s\n", data->pMessage);
  return 0;
}

static eyas_status_t load_functions(eyas_hal_vulkan_system_t* system) {
#define LOAD(result, name, parameters) \
  system->vk.name = (result(*) parameters)loader.GetInstanceProcAddr(system->handle, "vk" #name);
#define REQUIRE(result, name, parameters)                                                 \
  LOAD(result, name, parameters)                                                          \
  if (!system->vk.name) {                                                                 \
    return eyas_status_make(EYAS_STATUS_UNAVAILABLE,                                      \
                            "the Vulkan loader has no vk" #name ": install a newer one"); \
  }
  EYAS_VK_INSTANCE_FUNCTIONS(REQUIRE)
  EYAS_VK_OPTIONAL_INSTANCE_FUNCTIONS(LOAD)
#undef REQUIRE
#undef LOAD
  return NULL;
}

static eyas_status_t create_system(bool validation, eyas_hal_vulkan_system_t* system) {
  if (validation && !has_layer()) {
    return eyas_status_make(EYAS_STATUS_UNAVAILABLE,
                            "validation=1, and there is no " LAYER
                            ": install it, in Debian the package vulkan-validationlayers");
  }
  static const char* const layers[] = {LAYER};
  static const char* const extensions[] = {"VK_EXT_debug_utils", "VK_EXT_validation_features"};
  static const uint32_t checks[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  const VkDebugUtilsMessengerCreateInfoEXT messenger = {
      .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
      .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT |
                         VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT,
      .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                     VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
      .pfnUserCallback = on_message,
  };
  const VkValidationFeaturesEXT features = {
      .sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
      .pNext = &messenger,
      .enabledValidationFeatureCount = 1,
      .pEnabledValidationFeatures = checks,
  };
  const VkApplicationInfo application = {
      .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
      .pEngineName = "eyas",
      .apiVersion = VK_API_VERSION_1_3,
  };
  const VkInstanceCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
      .pNext = validation ? &features : NULL,
      .pApplicationInfo = &application,
      .enabledLayerCount = validation ? 1 : 0,
      .ppEnabledLayerNames = layers,
      .enabledExtensionCount = validation ? 2 : 0,
      .ppEnabledExtensionNames = extensions,
  };
  VkResult result = loader.CreateInstance(&info, NULL, &system->handle);
  if (result < 0) {
    eyas_status_t cause = eyas_hal_vulkan_status(result, "vkCreateInstance");
    eyas_status_t status = eyas_status_make(
        EYAS_STATUS_UNAVAILABLE,
        "%s: there is a Vulkan loader, but no driver that it can use. Install one (in Debian "
        "mesa-vulkan-drivers, which has a GPU played by the CPU, too), or name its file in "
        "VK_DRIVER_FILES",
        eyas_status_message(cause));
    eyas_status_free(cause);
    return status;
  }
  system->process = getpid();
  EYAS_RETURN_IF_ERROR(load_functions(system));
  if (!validation || !system->vk.CreateDebugUtilsMessengerEXT) return NULL;
  VkDebugUtilsMessengerEXT handle = NULL;
  return eyas_hal_vulkan_status(
      system->vk.CreateDebugUtilsMessengerEXT(system->handle, &messenger, NULL, &handle),
      "vkCreateDebugUtilsMessenger");
}

eyas_status_t eyas_hal_vulkan_system(bool validation, eyas_hal_vulkan_system_t** out_system) {
  pthread_mutex_lock(&mutex);
  eyas_status_t status = open_loader();
  // A child of a fork leaves its parent's alone: drivers keep threads and files in it.
  eyas_hal_vulkan_system_t* system = systems[validation];
  if (!status && (!system || system->process != getpid())) {
    system = calloc(1, sizeof(*system));
    status = system ? create_system(validation, system)
                    : eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "out of host memory");
    if (status) {
      free(system);
    } else {
      systems[validation] = system;
    }
  }
  pthread_mutex_unlock(&mutex);
  if (!status) *out_system = system;
  return status;
}

// -1: too old to be used.
static int rank(const eyas_hal_vulkan_system_t* system, VkPhysicalDevice device) {
  VkPhysicalDeviceProperties2 about = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  system->vk.GetPhysicalDeviceProperties2(device, &about);
  if (about.properties.apiVersion < VK_API_VERSION_1_2) return -1;
  switch (about.properties.deviceType) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return 2;
    default: return 3;
  }
}

eyas_status_t eyas_hal_vulkan_system_devices(
    eyas_hal_vulkan_system_t* system, uint32_t* out_count,
    VkPhysicalDevice out_devices[EYAS_HAL_VULKAN_MAX_DEVICES]) {
  VkPhysicalDevice found[EYAS_HAL_VULKAN_MAX_DEVICES];
  uint32_t count = EYAS_HAL_VULKAN_MAX_DEVICES;
  *out_count = 0;
  VkResult result = system->vk.EnumeratePhysicalDevices(system->handle, &count, found);
  if (result == VK_ERROR_INITIALIZATION_FAILED) return NULL;  // a driver without a device
  EYAS_RETURN_IF_ERROR(eyas_hal_vulkan_status(result, "vkEnumeratePhysicalDevices"));
  for (int kind = 0; kind <= 3; ++kind) {
    for (uint32_t i = 0; i < count; ++i) {
      if (rank(system, found[i]) == kind) out_devices[(*out_count)++] = found[i];
    }
  }
  return NULL;
}
