// What is particular to Vulkan: files that lie, what a device lacks, kernels that never end, memory
// that dispatches share, the cache of pipelines. Skipped where there is no device.
#define _GNU_SOURCE 1
#include "hal/fixture.h"

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hal/vulkan/vulkan.h"

static eyas_hal_device_t* new_device(const eyas_hal_option_t* values, uint32_t count) {
  const eyas_hal_device_options_t options = {.values = values, .value_count = count};
  eyas_hal_device_t* device = NULL;
  CHECK_OK(eyas_hal_device_create("vulkan", &options, &device));
  return device;
}

// Runs a test in a child, which nothing of Vulkan has been used before; what fails there fails
// here.
static void in_child(void (*test)(void)) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    test();
    fflush(NULL);
    _exit(check_failed != 0);
  }
  int state = -1;
  CHECK(waitpid(child, &state, 0) == child && state == 0);
}

static void test_no_driver(void) {
  setenv("VK_DRIVER_FILES", "/nowhere.json", 1);
  setenv("VK_ICD_FILENAMES", "/nowhere.json", 1);
  uint32_t count = 9;
  CHECK_OK(eyas_hal_driver_device_count("vulkan", &count));
  CHECK(count == 0);
  eyas_hal_device_t* device = NULL;
  CHECK_FAILS(eyas_hal_device_create("vulkan", NULL, &device), UNAVAILABLE, "nstall");
}

static void test_choice(void) {
  eyas_hal_device_t* device = NULL;
  eyas_hal_option_t name = {.name = "match", .text = "no device is called this"};
  const eyas_hal_device_options_t options = {.values = &name, .value_count = 1};
  CHECK_FAILS(eyas_hal_device_create("vulkan", &options, &device), NOT_FOUND, "there are: ");
  CHECK_OK(eyas_hal_device_create("vulkan", NULL, &device));
  const eyas_hal_device_info_t info = info_of(device);
  CHECK(info.asynchronous && info.name[0] && strcmp(info.driver, "vulkan") == 0);
  char part[8] = "";
  memcpy(part, info.name, 7);
  name.text = part;
  eyas_hal_device_t* same = NULL;
  CHECK_OK(eyas_hal_device_create("vulkan", &options, &same));
  CHECK(same && strcmp(info_of(same).name, info.name) == 0);
  eyas_hal_device_release(same);
  eyas_hal_device_release(device);
}

//===-- Features --------------------------------------------------------------------------------//

static eyas_status_t check_one(eyas_hal_device_t* device, const char* feature) {
  return eyas_hal_device_check_code(device, "spirv", &feature, 1);
}

static void test_features(void) {
  eyas_hal_device_t* device = new_device(NULL, 0);
  CHECK(property_of(device, "api") && property_of(device, "driver") && !property_of(device, "x"));
  CHECK_OK(eyas_hal_device_check_code(device, "spirv", NULL, 0));
  CHECK_FAILS(eyas_hal_device_check_code(device, "vmvx", NULL, 0), INCOMPATIBLE, "vmvx");
  // What every device has.
  static const char* const always[] = {
      "shared-bytes=16384",   "threads=128",    "push-bytes=128", "bindings=4",
      "offset-alignment=256", "subgroup-basic", "spirv=1.3",      "spirv=1.5"};
  CHECK_OK(eyas_hal_device_check_code(device, "spirv", always, 8));
  static const char* const never[] = {"shared-bytes=99999999",
                                      "threads=100000",
                                      "push-bytes=65536",
                                      "bindings=99999999",
                                      "offset-alignment=1",
                                      "subgroup=1000",
                                      "spirv=1.9",
                                      "spirv=",
                                      "f1",
                                      "shared-bytes",
                                      "shared-bytes=",
                                      "driver=1",
                                      "matrix:f16:f64:3x5x7",
                                      "threads=-1",
                                      "threads=1x",
                                      "="};
  for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); ++i) {
    char named[64];
    snprintf(named, sizeof(named), "it needs '%s'", never[i]);
    CHECK_FAILS(check_one(device, never[i]), INCOMPATIBLE, named);
  }
  CHECK_FAILS(check_one(device, "threads=100000"), INCOMPATIBLE, "has threads=");
  CHECK_FAILS(check_one(device, "f1"), INCOMPATIBLE, "vulkan:baseline");
  char exactly[32];
  snprintf(exactly, sizeof(exactly), "subgroup=%s", property_of(device, "subgroup"));
  CHECK_OK(check_one(device, exactly));
  eyas_hal_device_release(device);
}

//===-- Files -----------------------------------------------------------------------------------//

static eyas_status_t load(eyas_hal_device_t* device, const void* bytes, size_t length,
                          const char* name) {
  eyas_hal_executable_t* executable = NULL;
  const char* names[] = {name};
  eyas_status_t status =
      eyas_hal_executable_create(device, "spirv", bytes, length, names, 1, &executable);
  eyas_hal_executable_release(executable);
  return status;
}

static eyas_status_t load_changed(eyas_hal_device_t* device, const spirv_file_t* file,
                                  uint32_t word, uint32_t value) {
  spirv_file_t* changed = malloc(sizeof(*changed));
  *changed = *file;
  changed->words[word] = value;
  eyas_status_t status = load(device, changed->words, 4 * file->count, "add");
  free(changed);
  return status;
}

static void test_files(void) {
  eyas_hal_device_t* device = new_device(NULL, 0);
  spirv_file_t* file = malloc(sizeof(*file));
  spirv_write_kernels(file);
  const size_t bytes = 4 * (size_t)file->count;
  CHECK_OK(load(device, file->words, bytes, "add"));
  CHECK_FAILS(load(device, file->words, bytes, "ad"), NOT_FOUND, "'ad' among its 4");
  // At any address.
  char* moved = malloc(bytes + 1);
  memcpy(moved + 1, file->words, bytes);
  CHECK_OK(load(device, moved + 1, bytes, "add"));
  free(moved);
  // Cut off anywhere. The copy ends where the file does, so that sanitizers see a read beyond it.
  for (size_t length = 0; length < bytes; length += length < 600 ? 1 : 97) {
    char* cut = malloc(length ? length : 1);
    memcpy(cut, file->words, length);
    CHECK_FAILS(load(device, cut, length, "add"), CORRUPT, "");
    if (length >= 16) {
      const uint32_t claimed = (uint32_t)length;
      memcpy(cut + 12, &claimed, 4);
      CHECK_FAILS(load(device, cut, length, "size"), CORRUPT, "");
    }
    free(cut);
  }
  // Words of the header and of the first record.
  CHECK_FAILS(load_changed(device, file, 1, 2), INCOMPATIBLE, "version 2");
  CHECK_FAILS(load_changed(device, file, 2, 1u << 30), CORRUPT, "exports");
  enum { R = SPIRV_HEADER_WORDS };
  static const struct {
    uint32_t word, value;
    const char* text;
  } lies[] = {
      {R + 0, 0xfffffff0, "its name"},
      {R + 1, 0, "its name"},
      {R + 1, 0x7fffffff, "its name"},
      {R + 2, 2, "its code"},
      {R + 2, 0xfffffffc, "its code"},
      {R + 2, 0, "no SPIR-V"},
      {R + 3, 16, "wrong size"},
      {R + 3, 24, "instruction"},
      {R + 3, 0xfffffffc, "its code"},
      {R + 4, 257, "bindings"},
      {R + 5, 257, "constants"},
      {R + 6, 0, "threads"},
      {R + 9, 8, "flags"},
      {R + 11, 0x10000000, "terms"},
      {R + 17, 1, "does not have"},
      {R + 31, 1u << 31, "does not have"},
  };
  for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); ++i) {
    CHECK_FAILS(load_changed(device, file, lies[i].word, lies[i].value), CORRUPT, lies[i].text);
  }
  CHECK_FAILS(load_changed(device, file, R + 6, 1u << 30), INCOMPATIBLE,
              "1073741824 x 1 x 1 threads");
  if (atoi(property_of(device, "bindings")) < 256) {
    CHECK_FAILS(load_changed(device, file, R + 4, 256), INCOMPATIBLE, "bindings=256");
  }
  CHECK_FAILS(load_changed(device, file, R + 12, 1000), INCOMPATIBLE, "subgroup=1000");
  free(file);
  eyas_hal_device_release(device);
}

// Whatever a file says, reading it stays inside of it: what sanitizers look for here.
static void test_random_files(void) {
  spirv_file_t* file = malloc(sizeof(*file));
  spirv_write_kernels(file);
  const size_t bytes = 4 * (size_t)file->count;
  uint32_t random = 1;
  int good = 0;
  for (int round = 0; round < 20000; ++round) {
    uint8_t* changed = malloc(bytes);
    memcpy(changed, file->words, bytes);
    for (int i = 0; i < 1 + round % 4; ++i) {
      random = random * 1664525 + 1013904223;
      // Mostly where the numbers are.
      const size_t at = (random >> 8) % (random & 128 ? 16 + 4 * 128 : bytes);
      changed[at] ^= (uint8_t)(1 << random % 8);
    }
    uint32_t count = 0;
    eyas_status_t status = eyas_hal_vulkan_format_count(changed, bytes, &count);
    for (uint32_t i = 0; i < count && !status; ++i) {
      eyas_hal_vulkan_record_t record;
      status = eyas_hal_vulkan_format_record(changed, bytes, i, &record);
    }
    good += !status;
    eyas_status_free(status);
    free(changed);
  }
  CHECK(good > 0 && good < 20000);
  free(file);
}

//===-- Kernels with memory of the driver's -----------------------------------------------------//

// binding 0, words: out[x] = word 1; scratch memory in between; words come from a buffer. Binding 1
// is the scratch memory, binding 2 the words.
static void kernel_scratch(spirv_t* s) {
  spirv_begin(s, 3, 1);
  const uint32_t x = spirv_position(s, 0);
  const uint32_t value = spirv_load_at(s, BUFFER_U32, BUFFERS + 2, NUMBERS, NUMBERS + 1);
  const uint32_t residual = spirv_load_at(s, BUFFER_U32, BUFFERS + 2, NUMBERS, NUMBERS + 2);
  spirv_store(s, 1, x, SPV_U32(s, OP_I_ADD, value, x));
  const uint32_t index = SPV_U32(s, OP_I_ADD, SPV_U32(s, OP_SHIFT_RIGHT, residual, NUMBERS + 2), x);
  const uint32_t kept = spirv_load_at(s, BUFFER_U32, BUFFERS + 1, NUMBERS, x);
  spirv_store(s, 0, index, kept);
  spirv_end(s);
}

// Reads its buffer until what is there is not 0. Some drivers end each loop after a while, and so
// it takes many of them to run for ever.
static void kernel_wait(spirv_t* s) {
  enum { OP_LOOP_MERGE = 246, OP_ATOMIC_LOAD = 227 };
  spirv_begin(s, 1, 1);
  const uint32_t head = s->next_id++, body = s->next_id++, next = s->next_id++;
  const uint32_t after = s->next_id++, pointer = s->next_id++, equal = s->next_id++;
  SPV(s, OP_ACCESS_CHAIN, BUFFER_U32, pointer, BUFFERS, NUMBERS, NUMBERS);
  SPV(s, OP_BRANCH, head);
  SPV(s, OP_LABEL, head);
  SPV(s, OP_LOOP_MERGE, after, next, 0);
  SPV(s, OP_BRANCH, body);
  SPV(s, OP_LABEL, body);
  const uint32_t value = SPV_U32(s, OP_ATOMIC_LOAD, pointer, NUMBERS + 1, NUMBERS);
  SPV(s, OP_I_EQUAL, BOOL, equal, value, NUMBERS);
  SPV(s, OP_BRANCH_CONDITIONAL, equal, next, after);
  SPV(s, OP_LABEL, next);
  SPV(s, OP_BRANCH, head);
  SPV(s, OP_LABEL, after);
  spirv_end(s);
}

static eyas_hal_executable_t* new_own_kernels(eyas_hal_device_t* device) {
  static const spirv_export_t kernels[] = {
      {"scratch", kernel_scratch, 1, 2, 2 | 4, 1},
      {"wait", kernel_wait, 1, 0, 0, 1},
  };
  static const char* const names[] = {"scratch", "wait"};
  spirv_file_t* file = malloc(sizeof(*file));
  spirv_write_file(file, kernels, 2);
  // 4 bytes for each of constant 0, and 64 more.
  file->words[SPIRV_HEADER_WORDS + 10] = 4 * file->count;
  file->words[SPIRV_HEADER_WORDS + 11] = 2;
  const uint32_t terms[16] = {4, 0, 1, 0, [8] = 64};
  memcpy(file->words + file->count, terms, sizeof(terms));
  file->count += 16;
  file->words[3] = 4 * file->count;
  eyas_hal_executable_t* executable = NULL;
  CHECK_OK(eyas_hal_executable_create(device, "spirv", file->words, 4 * file->count, names, 2,
                                      &executable));
  free(file);
  return executable;
}

static eyas_status_t record_scratch(eyas_hal_command_buffer_t* commands,
                                    eyas_hal_executable_t* kernels, eyas_hal_binding_t target,
                                    int64_t count, int64_t value) {
  return eyas_hal_command_buffer_dispatch(
      commands, &(eyas_hal_dispatch_t){.executable = kernels,
                                       .workgroup_count = {(uint32_t)count, 1, 1},
                                       .constants = (int64_t[]){count, value},
                                       .constant_count = 2,
                                       .bindings = &target,
                                       .binding_count = 1});
}

static void test_scratch(eyas_hal_device_t* device) {
  if (strcmp(format_of(device), "spirv") != 0) return;
  enum { COUNT = 300 };
  eyas_hal_executable_t* kernels = new_own_kernels(device);
  eyas_hal_buffer_t* buffer = new_zeros(device, 4 * COUNT * 4);
  eyas_hal_command_buffer_t* commands = new_commands(device, 1);
  // Two in one wave, with memory of their own each; one after them.
  CHECK_OK(record_scratch(commands, kernels, indirect(0, 0, COUNT * 4), COUNT, 7));
  CHECK_OK(record_scratch(commands, kernels, direct(buffer, COUNT * 4, COUNT * 4), COUNT, 1000));
  CHECK_OK(eyas_hal_command_buffer_barrier(commands));
  CHECK_OK(record_scratch(commands, kernels, indirect(0, COUNT * 8 + 4, COUNT * 4), COUNT - 1, 50));
  CHECK_OK(eyas_hal_command_buffer_end(commands));
  uint32_t data[4 * COUNT];
  for (uint32_t shift = 0; shift < 3; ++shift) {  // residuals change with the table
    CHECK_OK(run(device, commands, &(eyas_hal_range_t){buffer, 4 * shift, EYAS_HAL_WHOLE}, 1));
    download(buffer, data, sizeof(data));
    int wrong = 0;
    for (uint32_t i = 0; i < COUNT - shift; ++i) wrong += data[i + shift] != i + 7;
    for (uint32_t i = shift; i < COUNT; ++i) wrong += data[COUNT + i] != i + 1000;
    for (uint32_t i = 0; i < COUNT - 1; ++i) wrong += data[2 * COUNT + 1 + shift + i] != i + 50;
    CHECK(wrong == 0);
  }
  eyas_hal_command_buffer_release(commands);
  commands = new_commands(device, 0);
  CHECK_OK(record_scratch(commands, kernels, direct(buffer, 0, 8), (int64_t)1 << 28, 1));
  CHECK_FAILS(eyas_hal_command_buffer_end(commands), RESOURCE_EXHAUSTED, "");
  eyas_hal_command_buffer_release(commands);
  commands = new_commands(device, 0);
  eyas_hal_binding_t target = direct(buffer, 0, 8);
  CHECK_OK(eyas_hal_command_buffer_dispatch(
      commands, &(eyas_hal_dispatch_t){.executable = kernels,
                                       .workgroup_count = {1, 1, 1},
                                       .constants = (int64_t[]){1, (int64_t)1 << 40},
                                       .constant_count = 2,
                                       .bindings = &target,
                                       .binding_count = 1}));
  CHECK_FAILS(eyas_hal_command_buffer_end(commands), OUT_OF_RANGE, "constants of 32 bits");
  eyas_hal_command_buffer_release(commands);
  eyas_hal_buffer_release(buffer);
  eyas_hal_executable_release(kernels);
}

// A binding that is larger than the device can bind is refused, by name.
static void test_large_binding(void) {
  eyas_hal_device_t* device = new_device(NULL, 0);
  const uint64_t most = strtoull(property_of(device, "storage-bytes"), NULL, 10);
  const uint64_t allowed = strtoull(property_of(device, "allocation-bytes"), NULL, 10);
  if (most < (1u << 30) && most + 64 < allowed) {
    eyas_hal_buffer_t* buffer = new_buffer(device, most + 64);
    eyas_hal_executable_t* kernels = new_kernels(device);
    eyas_hal_command_buffer_t* commands = new_commands(device, 1);
    CHECK_OK(record_add(commands, kernels, direct(buffer, 0, most + 64), 1, 1));
    CHECK_FAILS(eyas_hal_command_buffer_end(commands), RESOURCE_EXHAUSTED,
                "dispatch 'add', binding 0: it has");
    eyas_hal_command_buffer_release(commands);
    commands = new_commands(device, 1);
    CHECK_OK(record_add(commands, kernels, indirect(0, 0, EYAS_HAL_WHOLE), 1, 1));
    CHECK_OK(eyas_hal_command_buffer_end(commands));
    CHECK_FAILS(run(device, commands, &(eyas_hal_range_t){buffer, 0, EYAS_HAL_WHOLE}, 1),
                RESOURCE_EXHAUSTED, "one binding of the device");
    eyas_hal_range_t part = {buffer, 64, 64};
    CHECK_OK(run(device, commands, &part, 1));  // the recording is as good as before
    eyas_hal_command_buffer_release(commands);
    eyas_hal_executable_release(kernels);
    eyas_hal_buffer_release(buffer);
  }
  // What is let go of can be had again, large or not.
  eyas_hal_buffer_t* buffer = NULL;
  for (int i = 0; i < 20; ++i) {
    buffer = new_buffer(device, ((uint64_t)1 << 20) << i % 8);
    eyas_hal_buffer_t* other = new_buffer(device, 100);
    eyas_hal_buffer_release(buffer);
    eyas_hal_buffer_release(other);
  }
  CHECK_FAILS(eyas_hal_buffer_allocate(device, 0, EYAS_HAL_USAGE_DISPATCH, allowed + 64, &buffer),
              RESOURCE_EXHAUSTED, "more than it allows at once");
  eyas_hal_device_release(device);
}

// A kernel that does not end: its submission fails in time, and so does everything after.
static void test_endless(void) {
  if (!has_device("vulkan")) return;
  const eyas_hal_option_t timeout = {.name = "timeout_ms", .number = 300};
  eyas_hal_device_t* device = new_device(&timeout, 1);
  eyas_hal_executable_t* kernels = new_own_kernels(device);
  eyas_hal_buffer_t* buffer = new_zeros(device, 64);
  eyas_hal_command_buffer_t* commands = new_commands(device, 0);
  eyas_hal_binding_t binding = direct(buffer, 0, 64);
  CHECK_OK(eyas_hal_command_buffer_dispatch(
      commands, &(eyas_hal_dispatch_t){.executable = kernels,
                                       .ordinal = 1,
                                       .workgroup_count = {65535, 9999, 1},
                                       .bindings = &binding,
                                       .binding_count = 1}));
  CHECK_OK(eyas_hal_command_buffer_end(commands));
  CHECK_FAILS(run(device, commands, NULL, 0), UNAVAILABLE, "the first is 'wait') within 300 ms");
  CHECK_FAILS(run(device, commands, NULL, 0), UNAVAILABLE, "given up");
  CHECK_FAILS(eyas_hal_device_wait_idle(device), UNAVAILABLE, "given up");
  eyas_hal_command_buffer_release(commands);
  eyas_hal_buffer_release(buffer);
  eyas_hal_executable_release(kernels);
  eyas_hal_device_release(device);
}

//===-- Failures of the system's driver, played -------------------------------------------------//

static eyas_vk_device_functions_t real;

static VkResult full(VkDevice device, const VkMemoryAllocateInfo* info, const void* allocator,
                     VkDeviceMemory* out_memory) {
  (void)device, (void)info, (void)allocator, (void)out_memory;
  return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

static VkResult lost_count(VkDevice device, VkSemaphore semaphore, uint64_t* out_value) {
  (void)semaphore, (void)out_value;
  real.DeviceWaitIdle(device);
  return VK_ERROR_DEVICE_LOST;
}

static VkResult lost_submit(VkQueue queue, uint32_t count, const VkSubmitInfo* info, void* fence) {
  (void)queue, (void)count, (void)info, (void)fence;
  return VK_ERROR_DEVICE_LOST;
}

static void test_failing_driver(void) {
  eyas_hal_device_t* device = new_device(NULL, 0);
  eyas_vk_device_functions_t* vk = &eyas_hal_vulkan_device(device)->vk;
  real = *vk;
  eyas_hal_executable_t* kernels = new_kernels(device);
  eyas_hal_buffer_t *buffer = new_zeros(device, 80), *none = NULL;
  eyas_hal_command_buffer_t* commands = new_commands(device, 0);
  CHECK_OK(record_add(commands, kernels, direct(buffer, 0, 80), 4, 10));
  CHECK_OK(eyas_hal_command_buffer_end(commands));

  vk->AllocateMemory = full;
  CHECK_FAILS(eyas_hal_buffer_allocate(device, 0, EYAS_HAL_USAGE_DISPATCH, 1 << 26, &none),
              RESOURCE_EXHAUSTED, "67108864 bytes on the device: vkAllocateMemory: out of device");
  vk->AllocateMemory = real.AllocateMemory;
  vk->QueueSubmit = lost_submit;
  CHECK_FAILS(run(device, commands, NULL, 0), UNAVAILABLE, "vkQueueSubmit: the device is lost");
  vk->QueueSubmit = real.QueueSubmit;
  CHECK_OK(run(device, commands, NULL, 0));
  vk->GetSemaphoreCounterValue = lost_count;
  CHECK_FAILS(run(device, commands, NULL, 0), UNAVAILABLE, "the device is lost");
  CHECK_FAILS(run(device, commands, NULL, 0), UNAVAILABLE, "open the device again");
  CHECK_FAILS(eyas_hal_device_wait_idle(device), UNAVAILABLE, "the device is lost");
  eyas_hal_command_buffer_release(commands);
  eyas_hal_buffer_release(buffer);
  eyas_hal_executable_release(kernels);
  eyas_hal_device_release(device);
}

//===-- Around it -------------------------------------------------------------------------------//

static void use(eyas_hal_device_t* device) {
  eyas_hal_executable_t* kernels = new_kernels(device);
  eyas_hal_buffer_t* buffer = new_zeros(device, 80);
  eyas_hal_command_buffer_t* commands = new_commands(device, 0);
  CHECK_OK(record_add(commands, kernels, direct(buffer, 0, 80), 4, 10));
  CHECK_OK(eyas_hal_command_buffer_end(commands));
  CHECK_OK(run(device, commands, NULL, 0));
  CHECK(count_wrong(buffer, 10, 4) == 0);
  eyas_hal_command_buffer_release(commands);
  eyas_hal_executable_release(kernels);
  eyas_hal_buffer_release(buffer);
}

// Whatever is in the folder of the cache, devices work.
static void test_cache(void) {
  char folder[] = "/tmp/eyas-vulkan-XXXXXX", inside[64];
  CHECK(mkdtemp(folder) != NULL);
  snprintf(inside, sizeof(inside), "%s/a/b", folder);
  const eyas_hal_option_t cache = {.name = "pipeline_cache", .text = inside};
  char path[400] = "";
  for (int round = 0; round < 3; ++round) {
    eyas_hal_device_t* device = new_device(&cache, 1);
    use(device);
    eyas_hal_device_release(device);
    DIR* files = opendir(inside);
    CHECK(files != NULL);
    int count = 0;
    for (struct dirent* file = NULL; files && (file = readdir(files));) {
      if (strncmp(file->d_name, "vulkan-", 7) != 0) continue;
      snprintf(path, sizeof(path), "%s/%s", inside, file->d_name);
      ++count;
    }
    if (files) closedir(files);
    CHECK(count == 1);
    FILE* damaged = round == 1 ? fopen(path, "wb") : NULL;
    if (damaged) {
      fputs("not what a driver would write", damaged);
      fclose(damaged);
    }
  }
  unlink(path);
  rmdir(inside);
  snprintf(inside, sizeof(inside), "%s/a", folder);
  rmdir(inside);
  CHECK(rmdir(folder) == 0);
  const eyas_hal_option_t nowhere = {.name = "pipeline_cache", .text = "/proc/nowhere"};
  eyas_hal_device_t* device = new_device(&nowhere, 1);
  use(device);
  eyas_hal_device_release(device);
}

// The layer sees what is wrong: two fills of the same bytes with no barrier between.
static void test_validation(void) {
  if (!validates("vulkan")) return;
  const eyas_hal_option_t validation = {.name = "validation", .number = 1};
  eyas_hal_device_t* device = new_device(&validation, 1);
  eyas_hal_buffer_t* buffer = new_zeros(device, 64);
  eyas_hal_command_buffer_t* commands = new_commands(device, 0);
  CHECK_OK(eyas_hal_command_buffer_fill(commands, direct(buffer, 0, 64), "a", 1));
  CHECK_OK(eyas_hal_command_buffer_fill(commands, direct(buffer, 0, 64), "b", 1));
  CHECK(strcmp(property_of(device, "validation-messages"), "0") == 0);
  fprintf(stderr, "one message of the validation layer is expected:\n");
  CHECK_OK(eyas_hal_command_buffer_end(commands));
  CHECK(atoi(property_of(device, "validation-messages")) > 0);
  eyas_hal_command_buffer_release(commands);
  eyas_hal_buffer_release(buffer);
  eyas_hal_device_release(device);
}

int main(void) {
  // First, while this process has no threads: sanitizers do not allow to fork later.
  in_child(test_no_driver);
  in_child(test_endless);
  test_random_files();
  if (!has_device("vulkan")) {
    printf("hal vulkan: skipped, there is no device: install mesa-vulkan-drivers\n");
    return check_summary("hal vulkan");
  }
  test_choice();
  test_features();
  test_files();
  for_each_device(test_scratch);
  test_large_binding();
  test_failing_driver();
  test_cache();
  test_validation();
  return check_summary("hal vulkan");
}
