// The driver `vulkan`: GPUs, and CPUs that play one, through the system's Vulkan loader.
//
// - Nothing of Vulkan is needed to build, and without a loader there are no devices (system.c).
// - What a device has is a list of names and values that code is checked against (facts.c).
// - Memory comes in large blocks, each with one VkBuffer over all of it (memory.c). What the host
//   does not see is reached as on every device (hal/buffer.c).
// - A recording is laid out once (recording.c) and written as Vulkan commands into an instance of
//   it (instance.c, commands.c), which is replayed as it is while the binding table stays the same.
// - One queue in order (queue.c). Semaphores are the host's; a thread of the device (worker.c)
//   notices work that is done, and so does who waits for it.
#ifndef EYAS_HAL_VULKAN_VULKAN_H_
#define EYAS_HAL_VULKAN_VULKAN_H_

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "hal/command_buffer.h"
#include "hal/vulkan/facts.h"
#include "hal/vulkan/system.h"
#include "hal/vulkan/vk_functions.h"

extern const eyas_hal_driver_t eyas_hal_vulkan_driver;

#define EYAS_HAL_VULKAN_FORMAT "spirv"

typedef struct eyas_hal_vulkan_device_t eyas_hal_vulkan_device_t;

//===-- Memory ----------------------------------------------------------------------------------//

typedef struct eyas_hal_vulkan_range_t eyas_hal_vulkan_range_t;

// One VkDeviceMemory, and a VkBuffer over all of it.
typedef struct eyas_hal_vulkan_block_t {
  struct eyas_hal_vulkan_block_t* next;
  VkDeviceMemory memory;
  VkBuffer buffer;
  char* host;  // mapped as long as it lives; NULL: not visible
  uint64_t bytes;
  uint32_t type;
  bool coherent;
  eyas_hal_vulkan_range_t* first;
} eyas_hal_vulkan_block_t;

// A part of a block, in use or free, in the order of addresses. The payload of buffers.
struct eyas_hal_vulkan_range_t {
  eyas_hal_vulkan_block_t* block;
  uint64_t offset;
  uint64_t bytes;
  bool used;
  eyas_hal_vulkan_range_t *previous, *next;
};

typedef struct eyas_hal_vulkan_memory_t {
  pthread_mutex_t mutex;
  VkPhysicalDeviceMemoryProperties properties;
  uint32_t near_type;                   // for dispatches
  uint32_t host_type;                   // that the host reads and writes
  uint32_t constant_type;               // that the host writes and kernels read
  bool host_visible;                    // near_type is mapped
  uint64_t alignment;                   // of every range
  eyas_hal_vulkan_block_t* blocks[32];  // by memory type
  uint64_t idle_bytes[32];              // of blocks that nothing uses
} eyas_hal_vulkan_memory_t;

eyas_status_t eyas_hal_vulkan_memory_create(eyas_hal_vulkan_device_t* device, bool staging);
void eyas_hal_vulkan_memory_destroy(eyas_hal_vulkan_device_t* device);
eyas_status_t eyas_hal_vulkan_range_allocate(eyas_hal_vulkan_device_t* device, uint32_t type,
                                             uint64_t bytes, eyas_hal_vulkan_range_t** out_range);
void eyas_hal_vulkan_range_free(eyas_hal_vulkan_device_t* device, eyas_hal_vulkan_range_t* range);
// Of mapped memory: the host's writes for the device, the device's for the host.
eyas_status_t eyas_hal_vulkan_range_flush(eyas_hal_vulkan_device_t* device,
                                          const eyas_hal_vulkan_range_t* range);
eyas_status_t eyas_hal_vulkan_range_invalidate(eyas_hal_vulkan_device_t* device,
                                               const eyas_hal_vulkan_range_t* range,
                                               uint64_t offset, uint64_t length);

static inline char* eyas_hal_vulkan_range_host(const eyas_hal_vulkan_range_t* range) {
  return range->block->host ? range->block->host + range->offset : NULL;
}

eyas_status_t eyas_hal_vulkan_buffer_allocate(eyas_hal_device_t* device, eyas_hal_buffer_t* buffer);
eyas_status_t eyas_hal_vulkan_buffer_import(eyas_hal_device_t* device, eyas_hal_buffer_t* buffer,
                                            void* pointer);
void eyas_hal_vulkan_buffer_free(eyas_hal_device_t* device, eyas_hal_buffer_t* buffer);
eyas_status_t eyas_hal_vulkan_buffer_invalidate(eyas_hal_device_t* device,
                                                eyas_hal_buffer_t* buffer, uint64_t offset,
                                                uint64_t length);
void eyas_hal_vulkan_buffer_flush(eyas_hal_device_t* device, eyas_hal_buffer_t* buffer);

//===-- Executables -----------------------------------------------------------------------------//

// How many bytes of scratch memory a dispatch needs: the sum over terms of factor * constants.
typedef struct eyas_hal_vulkan_term_t {
  uint64_t factor;
  uint32_t symbol_count;
  uint32_t symbols[5];
} eyas_hal_vulkan_term_t;

typedef struct eyas_hal_vulkan_export_t {
  VkPipeline pipeline;
  VkPipelineLayout layout;  // of the device
  VkDescriptorSetLayout set_layout;
  uint32_t binding_count;
  uint32_t constant_count;
  uint32_t word_count;        // constants, residuals, error tag
  uint32_t descriptor_count;  // bindings, scratch, error word, constants buffer
  bool reports;
  bool words_in_buffer;
  bool has_scratch;
  uint64_t unaligned[EYAS_HAL_MAX_BINDINGS / 64];
  uint32_t term_count;
  eyas_hal_vulkan_term_t* terms;  // owned
} eyas_hal_vulkan_export_t;

typedef struct eyas_hal_vulkan_executable_t {
  uint32_t export_count;
  eyas_hal_vulkan_export_t exports[];
} eyas_hal_vulkan_executable_t;

// An export as its record in a file has it: checked, pointing into the file.
typedef struct eyas_hal_vulkan_record_t {
  const char* name;
  uint32_t name_bytes;
  const uint8_t* code;
  uint32_t code_bytes;
  uint32_t binding_count;
  uint32_t constant_count;
  uint32_t local_size[3];
  uint32_t flags;
  const uint8_t* terms;
  uint32_t term_count;
  uint32_t subgroup_size;
  uint64_t writes[EYAS_HAL_MAX_BINDINGS / 64];
  uint64_t unaligned[EYAS_HAL_MAX_BINDINGS / 64];
} eyas_hal_vulkan_record_t;

#define EYAS_HAL_VULKAN_REPORTS 1u
#define EYAS_HAL_VULKAN_WORDS_IN_BUFFER 2u
#define EYAS_HAL_VULKAN_HAS_SCRATCH 4u

// format.c: the file.
eyas_status_t eyas_hal_vulkan_format_count(const void* bytes, size_t length, uint32_t* out_count);
eyas_status_t eyas_hal_vulkan_format_record(const void* bytes, size_t length, uint32_t index,
                                            eyas_hal_vulkan_record_t* out_record);
void eyas_hal_vulkan_format_term(const eyas_hal_vulkan_record_t* record, uint32_t index,
                                 eyas_hal_vulkan_term_t* out_term);

// executable.c
eyas_status_t eyas_hal_vulkan_executable_load(eyas_hal_device_t* device,
                                              eyas_hal_executable_t* executable, const char* format,
                                              const void* bytes, size_t length);
void eyas_hal_vulkan_executable_unload(eyas_hal_device_t* device,
                                       eyas_hal_executable_t* executable);

// pipelines.c: what pipelines of a device share.
#define EYAS_HAL_VULKAN_MAX_DESCRIPTORS (EYAS_HAL_MAX_BINDINGS + 3)

typedef struct eyas_hal_vulkan_pipelines_t {
  pthread_mutex_t mutex;
  // By the number of descriptors, all of them storage buffers of one set.
  VkDescriptorSetLayout set_layouts[EYAS_HAL_VULKAN_MAX_DESCRIPTORS + 1];
  VkPipelineLayout layouts[EYAS_HAL_VULKAN_MAX_DESCRIPTORS + 1];
  VkPipelineCache cache;
  char* path;          // of the cache's file; NULL: none
  size_t saved_bytes;  // what the file has
} eyas_hal_vulkan_pipelines_t;

eyas_status_t eyas_hal_vulkan_pipelines_create(eyas_hal_vulkan_device_t* device,
                                               const char* folder);
void eyas_hal_vulkan_pipelines_destroy(eyas_hal_vulkan_device_t* device);
eyas_status_t eyas_hal_vulkan_layout(eyas_hal_vulkan_device_t* device, uint32_t descriptor_count,
                                     VkDescriptorSetLayout* out_set_layout,
                                     VkPipelineLayout* out_layout);
// Writes the cache's file when there is something new.
void eyas_hal_vulkan_pipelines_save(eyas_hal_vulkan_device_t* device);

//===-- Recordings ------------------------------------------------------------------------------//

// Where a binding lies.
typedef struct eyas_hal_vulkan_place_t {
  VkBuffer buffer;
  uint64_t offset;
  uint64_t length;
} eyas_hal_vulkan_place_t;

// What a recording knows of one command beside what was recorded.
typedef struct eyas_hal_vulkan_step_t {
  const eyas_hal_vulkan_export_t* export;  // dispatch with work; NULL otherwise
  uint32_t set;                            // dispatch: which descriptor set of the instance
  size_t word_begin;        // dispatch: of its words, in bytes from the start of the instance's
  uint64_t scratch_offset;  // dispatch with scratch memory
  uint64_t scratch_bytes;
  uint64_t data_offset;  // fill, update: of its bytes in the recording's data
} eyas_hal_vulkan_step_t;

// A command pool with its one buffer; they are used again.
typedef struct eyas_hal_vulkan_pool_t {
  struct eyas_hal_vulkan_pool_t* next;
  VkCommandPool pool;
  VkCommandBuffer commands;
} eyas_hal_vulkan_pool_t;

// A recording as commands of Vulkan, with all that one run at a time needs of its own. The queue's
// mutex guards it.
typedef struct eyas_hal_vulkan_instance_t {
  struct eyas_hal_vulkan_instance_t* next;
  bool busy;           // submitted and not finished
  uint64_t last_used;  // on the queue's timeline
  bool recorded;       // the commands fit `places`
  eyas_hal_vulkan_pool_t* pool;
  VkDescriptorPool descriptors;
  VkDescriptorSet* sets;
  eyas_hal_vulkan_place_t* places;  // of every binding
  eyas_hal_vulkan_range_t* words;   // the error word, then those of dispatches, in host memory
  VkQueryPool queries;              // one more than commands, when profiling
} eyas_hal_vulkan_instance_t;

// Payload of a command buffer.
typedef struct eyas_hal_vulkan_recording_t {
  eyas_hal_vulkan_step_t* steps;  // by command
  uint32_t set_count;
  uint32_t descriptor_count;  // of all sets
  size_t word_bytes;          // of an instance's `words`; 0: none
  bool reports;               // some dispatch may fail
  bool changes;               // some binding is indirect
  uint64_t scratch_bytes;
  eyas_hal_vulkan_range_t* scratch;
  eyas_hal_vulkan_range_t* data;  // bytes of fills and updates, in host memory
  eyas_hal_vulkan_instance_t* instances;
  uint32_t instance_count;
  struct {  // the latest run
    eyas_hal_vulkan_place_t* places;
    uint64_t* times_ns;  // before the first command, after each
  } profile;
} eyas_hal_vulkan_recording_t;

#define EYAS_HAL_VULKAN_ERROR_BYTES 64  // of an instance's words, before those of dispatches

// recording.c
eyas_status_t eyas_hal_vulkan_commands_prepare(eyas_hal_device_t* device,
                                               eyas_hal_command_buffer_t* commands);
void eyas_hal_vulkan_commands_destroy(eyas_hal_device_t* device,
                                      eyas_hal_command_buffer_t* commands);

// instance.c
// A free instance, best one that has the places of the table already; NULL when all that there may
// be are busy.
eyas_status_t eyas_hal_vulkan_instance_acquire(eyas_hal_vulkan_device_t* device,
                                               const eyas_hal_command_buffer_t* commands,
                                               const eyas_hal_range_t* table,
                                               eyas_hal_vulkan_instance_t** out_instance);
void eyas_hal_vulkan_instance_free(eyas_hal_vulkan_device_t* device,
                                   eyas_hal_vulkan_instance_t* instance);

// bindings.c: gives an instance the places that a table names, and records it where they changed.
eyas_status_t eyas_hal_vulkan_instance_bind(eyas_hal_vulkan_device_t* device,
                                            const eyas_hal_command_buffer_t* commands,
                                            eyas_hal_vulkan_instance_t* instance,
                                            const eyas_hal_range_t* table);

// Whether an instance has the places that a table names.
bool eyas_hal_vulkan_instance_fits(const eyas_hal_command_buffer_t* commands,
                                   const eyas_hal_vulkan_instance_t* instance,
                                   const eyas_hal_range_t* table);

#define EYAS_HAL_VULKAN_MAX_WORDS (EYAS_HAL_MAX_CONSTANTS + EYAS_HAL_MAX_BINDINGS + 1)
// The words of a dispatch: constants, residuals of unaligned bindings, error tag. How many.
uint32_t eyas_hal_vulkan_dispatch_words(const eyas_hal_vulkan_device_t* device,
                                        const eyas_hal_command_buffer_t* commands, size_t index,
                                        const eyas_hal_vulkan_instance_t* instance,
                                        uint32_t* out_words);

// commands.c: writes an instance's commands.
eyas_status_t eyas_hal_vulkan_instance_record(eyas_hal_vulkan_device_t* device,
                                              const eyas_hal_command_buffer_t* commands,
                                              eyas_hal_vulkan_instance_t* instance);

// transfers.c
void eyas_hal_vulkan_record_transfer(eyas_hal_vulkan_device_t* device,
                                     const eyas_hal_command_buffer_t* commands, size_t index,
                                     const eyas_hal_vulkan_instance_t* instance);
// How much of the recording's data a command needs.
uint64_t eyas_hal_vulkan_transfer_data_bytes(const eyas_hal_command_buffer_t* commands,
                                             size_t index);
void eyas_hal_vulkan_transfer_write_data(const eyas_hal_command_buffer_t* commands, size_t index,
                                         char* target);

// profile.c
void eyas_hal_vulkan_profile_collect(eyas_hal_vulkan_device_t* device,
                                     const eyas_hal_command_buffer_t* commands,
                                     const eyas_hal_vulkan_instance_t* instance,
                                     uint64_t submitted_ns);
void eyas_hal_vulkan_commands_profile(eyas_hal_device_t* device,
                                      eyas_hal_command_buffer_t* commands,
                                      eyas_hal_profile_event_t* events,
                                      eyas_hal_profile_share_t* shares,
                                      eyas_hal_profile_binding_t* bindings);

//===-- Queue -----------------------------------------------------------------------------------//

// Work that was handed over. It holds what it names.
typedef struct eyas_hal_vulkan_submission_t {
  struct eyas_hal_vulkan_submission_t* next;
  eyas_hal_command_buffer_t* commands;
  eyas_hal_range_t* table;
  uint32_t table_count;
  eyas_hal_timepoint_t* points;  // waits, then signals
  uint32_t wait_count;
  uint32_t signal_count;
  eyas_hal_vulkan_instance_t* instance;  // once it is issued; NULL without commands
  uint64_t value;                        // of the queue's timeline when it is done
  uint64_t issued_ns;
  bool may_fail;         // some dispatch of it may report an error
  eyas_status_t status;  // owned; of work that is done or was refused
} eyas_hal_vulkan_submission_t;

typedef struct eyas_hal_vulkan_list_t {
  eyas_hal_vulkan_submission_t *first, *last;
} eyas_hal_vulkan_list_t;

typedef struct eyas_hal_vulkan_queue_t {
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t changed;  // something to do for the thread
  pthread_cond_t idle;
  // One at a time takes what is done and finishes it, so that signals come in order.
  pthread_mutex_t finishing;
  eyas_hal_vulkan_list_t waiting;  // for semaphores, or for an instance
  eyas_hal_vulkan_list_t issued;   // to the device, in its order
  eyas_hal_vulkan_list_t refused;  // with a failure, to be finished
  uint32_t unfinished;             // taken from `issued`, their semaphores not signalled yet
  VkSemaphore timeline;
  uint64_t last_value;            // issued
  uint64_t head_since_ns;         // when the first of `issued` became that
  eyas_status_t failure;          // owned; the device is lost or hangs, and nothing goes on
  eyas_hal_vulkan_pool_t* pools;  // free ones
  bool stopping;
  bool orphaned;  // the last reference to the device was dropped by its own thread
} eyas_hal_vulkan_queue_t;

eyas_status_t eyas_hal_vulkan_queue_create(eyas_hal_vulkan_device_t* device);
// Joins the thread. False when the caller is that thread, which then destroys the device itself.
bool eyas_hal_vulkan_queue_stop(eyas_hal_vulkan_device_t* device);
void eyas_hal_vulkan_queue_destroy(eyas_hal_vulkan_device_t* device);
eyas_status_t eyas_hal_vulkan_submit(eyas_hal_device_t* device,
                                     const eyas_hal_submission_t* submission);
eyas_status_t eyas_hal_vulkan_wait_idle(eyas_hal_device_t* device);
eyas_status_t eyas_hal_vulkan_semaphore_wait(eyas_hal_semaphore_t* semaphore, uint64_t value,
                                             uint64_t timeout_ns);
void eyas_hal_vulkan_destroy(eyas_hal_vulkan_device_t* device);  // device.c

//===-- Device ----------------------------------------------------------------------------------//

struct eyas_hal_vulkan_device_t {
  eyas_hal_device_t base;
  pid_t process;  // whose threads the queue's and the system driver's are
  // A kernel runs without an end: what it uses can never be destroyed.
  _Atomic bool abandoned;
  eyas_hal_vulkan_system_t* system;
  VkPhysicalDevice physical;
  VkDevice handle;
  VkQueue queue_handle;
  eyas_vk_device_functions_t vk;
  eyas_hal_vulkan_facts_t facts;
  bool validation;
  char message_count[16];  // of the validation layer, as a property
  uint64_t timeout_ns;     // of one submission; UINT64_MAX: none
  // Whether who waits looks at the timeline, without a pause for `poll_ns`. Where the device is the
  // CPU itself, looking takes the time of what is looked for.
  bool is_polled;
  uint64_t poll_ns;
  eyas_hal_vulkan_memory_t memory;
  eyas_hal_vulkan_pipelines_t pipelines;
  eyas_hal_vulkan_queue_t queue;
};

static inline eyas_hal_vulkan_device_t* eyas_hal_vulkan_device(eyas_hal_device_t* device) {
  return (eyas_hal_vulkan_device_t*)device;
}

// A forked child has the device's handles and none of its threads.
static inline bool eyas_hal_vulkan_is_foreign(const eyas_hal_vulkan_device_t* device) {
  return device->process != getpid();
}

// Whether objects of Vulkan can be destroyed: not in a child, not while a kernel runs for ever.
static inline bool eyas_hal_vulkan_is_ours(const eyas_hal_vulkan_device_t* device) {
  return !eyas_hal_vulkan_is_foreign(device) && !atomic_load(&device->abandoned);
}

// What such a child is told. device.c
eyas_status_t eyas_hal_vulkan_foreign(void);

#endif  // EYAS_HAL_VULKAN_VULKAN_H_
