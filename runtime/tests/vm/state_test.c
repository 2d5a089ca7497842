// State variables of a context: first values, calls of several threads, reads and writes between
// them, and what a call that fails leaves behind. The module is written here byte by byte.
#include <pthread.h>
#include <stdlib.h>

#include "eyas/vm.h"
#include "eyas_isa.h"
#include "hal/check.h"

typedef struct bytes_t {
  uint8_t data[4096] __attribute__((aligned(64)));
  size_t length;
} bytes_t;

static void put(bytes_t* b, const void* data, size_t length) {
  memcpy(b->data + b->length, data, length);
  b->length += length;
}
static void put_u16(bytes_t* b, uint16_t value) {
  put(b, &value, 2);
}
static void put_u32(bytes_t* b, uint32_t value) {
  put(b, &value, 4);
}
static void put_u64(bytes_t* b, uint64_t value) {
  put(b, &value, 8);
}
static void put_text(bytes_t* b, const char* text) {
  put_u32(b, (uint32_t)strlen(text));
  put(b, text, strlen(text));
}
static void align(bytes_t* b) {
  b->length = (b->length + 63) / 64 * 64;
}

// calls += 1; fails when the argument is not 0.
static void put_code(bytes_t* b) {
  bytes_t c = {.length = 0};
  enum { ZERO, ONE, VALUE, GIVEN };  // i64 registers
  enum { CALLS, ARGUMENT };          // references
  put_u16(&c, EYAS_VM_OP_CONST_I64), put_u16(&c, ONE), put_u64(&c, 1);
  put_u16(&c, EYAS_VM_OP_STATE), put_u16(&c, CALLS), put_u32(&c, 0);
  put_u16(&c, EYAS_VM_OP_ARG), put_u16(&c, ARGUMENT), put_u32(&c, 0);
  put_u16(&c, EYAS_VM_OP_BUFFER_LOAD), put_u16(&c, VALUE), put_u16(&c, CALLS), put_u16(&c, ZERO);
  put_u16(&c, EYAS_VM_ELEMENT_I64);
  put_u16(&c, EYAS_VM_OP_ADD), put_u16(&c, VALUE), put_u16(&c, VALUE), put_u16(&c, ONE);
  put_u16(&c, EYAS_VM_OP_BUFFER_STORE), put_u16(&c, VALUE), put_u16(&c, CALLS), put_u16(&c, ZERO);
  put_u16(&c, EYAS_VM_ELEMENT_I64);
  put_u16(&c, EYAS_VM_OP_BUFFER_LOAD), put_u16(&c, GIVEN), put_u16(&c, ARGUMENT), put_u16(&c, ZERO);
  put_u16(&c, EYAS_VM_ELEMENT_I64);
  put_u16(&c, EYAS_VM_OP_EQ), put_u16(&c, GIVEN), put_u16(&c, GIVEN), put_u16(&c, ZERO);
  put_u16(&c, EYAS_VM_OP_CHECK), put_u16(&c, GIVEN), put_u32(&c, 0), put_u16(&c, 0);
  put_u16(&c, EYAS_VM_OP_RETURN);
  put_u32(b, 4), put_u32(b, 2);  // registers
  put_u32(b, (uint32_t)c.length), put(b, c.data, c.length);
}

// One function and two variables: a count from 0, and four bytes that start as the parameter.
static void put_program(bytes_t* b, uint32_t state_parameter) {
  bytes_t sections[7];
  for (int i = 0; i < 7; ++i) sections[i].length = 0;
  put_u32(&sections[0], 1), put_text(&sections[0], "the argument is not 0");
  put_u32(&sections[1], 0);
  put_u32(&sections[2], 0);
  put_u32(&sections[3], 1), put_text(&sections[3], "w"), put_u32(&sections[3], EYAS_DTYPE_U8);
  put_u32(&sections[3], 1), put_u64(&sections[3], 4), put_u64(&sections[3], 0),
      put_u64(&sections[3], 4);
  put_text(&sections[3], ""), put_text(&sections[3], "");
  put_u32(&sections[4], 0);
  put_u32(&sections[5], 1), put_text(&sections[5], "main"), put_u32(&sections[5], 0);
  put_u32(&sections[5], 1), put_text(&sections[5], "x"), put_u32(&sections[5], EYAS_DTYPE_I64);
  put_u32(&sections[5], 0), put_u32(&sections[5], 0);
  put_code(&sections[5]);
  put_u32(&sections[6], 2);
  put_text(&sections[6], "calls"), put_u32(&sections[6], EYAS_DTYPE_I64), put_u32(&sections[6], 0);
  put_u32(&sections[6], EYAS_STATE_ZEROS);
  put_text(&sections[6], "bytes"), put_u32(&sections[6], EYAS_DTYPE_U8), put_u32(&sections[6], 1);
  put_u64(&sections[6], 4), put_u32(&sections[6], state_parameter);

  size_t start = b->length;
  put(b, "EYASPRG", 8), put_u32(b, 1), put_u32(b, 7);
  size_t at = b->length - start + 7 * 24;
  for (uint32_t i = 0; i < 7; ++i) {
    put_u32(b, i + 1), put_u32(b, 0), put_u64(b, at), put_u64(b, sections[i].length);
    at += sections[i].length;
  }
  for (int i = 0; i < 7; ++i) put(b, sections[i].data, sections[i].length);
}

static void put_module(bytes_t* b, uint32_t state_parameter) {
  static const char* const names[] = {"manifest.json", "program.bin", "parameters.bin"};
  uint64_t offsets[3], lengths[3];
  memset(b, 0, sizeof(*b));
  put(b, "PK\3\4", 4);
  memcpy(b->data + 30, "index.bin", 9);
  b->length = 512;
  for (int i = 0; i < 3; ++i) {
    align(b);
    offsets[i] = b->length;
    if (i == 0) put(b, "{}", 2);
    if (i == 1) put_program(b, state_parameter);
    if (i == 2) put(b, "\1\2\3\4", 4);
    lengths[i] = b->length - offsets[i];
  }
  bytes_t index = {.length = 0};
  for (int i = 0; i < 3; ++i) {
    index.length += 32;  // digests are not checked here
    put_u64(&index, offsets[i]), put_u64(&index, lengths[i]), put_text(&index, names[i]);
  }
  size_t end = b->length;
  b->length = 64;
  put(b, "EYASIDX", 8), put_u32(b, 1), put_u32(b, 3),
      put_u32(b, (uint32_t)(20 + index.length + 32));
  put(b, index.data, index.length);
  b->length = end;
}

static eyas_hal_device_t* device;
static eyas_context_t* context;

static eyas_status_t call(int64_t value) {
  eyas_tensor_t argument = {.data = &value, .dtype = EYAS_DTYPE_I64};
  return eyas_context_invoke(context, 0, &argument, 1, NULL, 0);
}

static int64_t calls(void) {
  eyas_tensor_t tensor;
  int64_t value = -1;
  if (!CHECK_OK(eyas_context_state_get(context, 0, &tensor))) return value;
  CHECK_OK(eyas_hal_buffer_read(tensor.buffer, 0, &value, 8));
  eyas_hal_buffer_release(tensor.buffer);
  return value;
}

static void* work(void* unused) {
  (void)unused;
  int64_t before = 0;
  for (int i = 0; i < 500; ++i) {
    CHECK_OK(call(0));
    int64_t now = calls();
    CHECK(now > before);
    before = now;
  }
  return NULL;
}

static void test_threads(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
  for (int i = 0; i < 4; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  CHECK(calls() == 2000);
  CHECK_OK(eyas_context_state_reset(context));
  CHECK(calls() == 0);
}

static void test_failure(void) {
  eyas_tensor_t tensor;
  int64_t seven = 7;
  CHECK_OK(call(0));
  eyas_tensor_t wrong = {.data = &seven, .dtype = EYAS_DTYPE_I32};
  CHECK_FAILS(eyas_context_invoke(context, 0, &wrong, 1, NULL, 0), INVALID_ARGUMENT,
              "argument 0 'x'");
  CHECK(calls() == 1);  // refused before anything was written
  CHECK_FAILS(call(1), INVALID_ARGUMENT, "the argument is not 0");
  CHECK_FAILS(call(0), FAILED_PRECONDITION, "state 'calls' is undefined");
  CHECK_FAILS(eyas_context_state_get(context, 1, &tensor), FAILED_PRECONDITION, "state 'bytes'");
  eyas_tensor_t value = {.data = &seven, .dtype = EYAS_DTYPE_I64};
  CHECK_OK(eyas_context_state_set(context, 0, &value));
  CHECK(calls() == 7);
  CHECK_FAILS(call(0), FAILED_PRECONDITION, "state 'bytes' is undefined");
  CHECK_OK(eyas_context_state_reset(context));
  CHECK_OK(call(0));
  CHECK(calls() == 1);
}

static void test_values(void) {
  eyas_tensor_t tensor;
  uint8_t bytes[4] = {0};
  CHECK_OK(eyas_context_state_get(context, 1, &tensor));
  CHECK(tensor.rank == 1 && tensor.dims[0] == 4 && tensor.dtype == EYAS_DTYPE_U8);
  CHECK_OK(eyas_hal_buffer_read(tensor.buffer, 0, bytes, 4));
  CHECK(memcmp(bytes, "\1\2\3\4", 4) == 0);
  eyas_hal_buffer_release(tensor.buffer);
  CHECK_FAILS(eyas_context_state_get(context, 2, &tensor), NOT_FOUND, "state 2 of 2");
  eyas_tensor_t longer = {.data = bytes, .dtype = EYAS_DTYPE_U8, .rank = 1, .dims = {5}};
  CHECK_FAILS(eyas_context_state_set(context, 1, &longer), INVALID_ARGUMENT, "state 'bytes'");
}

// Values that stay on the device: what one call leaves is the next one's argument.
static void test_buffers(void) {
  eyas_tensor_t count, bytes;
  CHECK_OK(eyas_context_state_reset(context));
  CHECK_OK(eyas_context_state_get(context, 0, &count));
  CHECK_OK(eyas_context_state_get(context, 1, &bytes));
  CHECK_OK(eyas_context_invoke(context, 0, &count, 1, NULL, 0));  // 0
  CHECK_OK(eyas_context_state_set(context, 0, &count));
  CHECK(calls() == 0);
  eyas_tensor_t narrow = count;
  narrow.buffer = bytes.buffer;
  CHECK_FAILS(eyas_context_invoke(context, 0, &narrow, 1, NULL, 0), INVALID_ARGUMENT,
              "argument 0 'x': its buffer has 4 bytes, its elements take 8");
  CHECK_FAILS(eyas_context_state_set(context, 0, &narrow), INVALID_ARGUMENT,
              "state 'calls': its buffer");
  eyas_hal_device_t* other = NULL;
  eyas_tensor_t foreign = count;
  CHECK_OK(eyas_hal_device_create("local-task", NULL, &other));  // whichever this one is
  CHECK_OK(eyas_hal_buffer_allocate(other, 0, EYAS_HAL_USAGE_ALL, 8, &foreign.buffer));
  CHECK_FAILS(eyas_context_invoke(context, 0, &foreign, 1, NULL, 0), INVALID_ARGUMENT,
              "another device (local-task)");
  eyas_hal_buffer_release(foreign.buffer);
  eyas_hal_device_release(other);
  eyas_hal_buffer_release(count.buffer);
  eyas_hal_buffer_release(bytes.buffer);
}

// Contexts of one loaded module share its weights and not their state.
static void test_contexts(eyas_loaded_module_t* loaded) {
  eyas_context_t *first = context, *second = NULL;
  CHECK_OK(eyas_context_state_reset(first));
  CHECK_OK(eyas_context_create(loaded, NULL, &second));
  CHECK_OK(call(0));
  context = second;
  CHECK(calls() == 0);
  CHECK_OK(call(0));
  CHECK_OK(call(0));
  CHECK(calls() == 2);
  context = first;
  CHECK(calls() == 1);
  eyas_context_release(second);
}

static void test_on(const char* driver, eyas_module_t* module) {
  CHECK_OK(eyas_hal_device_create(driver, NULL, &device));
  eyas_context_options_t small = {.state_limit_bytes = 11};
  eyas_loaded_module_t* loaded = NULL;
  CHECK_OK(eyas_loaded_module_create(module, device, &loaded));
  CHECK_FAILS(eyas_context_create(loaded, &small, &context), RESOURCE_EXHAUSTED, "state 'bytes'");
  CHECK_OK(eyas_context_create(loaded, NULL, &context));
  test_values();
  test_threads();
  test_failure();
  test_buffers();
  test_contexts(loaded);
  eyas_loaded_module_release(loaded);
  eyas_context_release(context);
  eyas_hal_device_release(device);
}

int main(void) {
  static bytes_t file;
  eyas_module_options_t options = {.skip_digests = true};
  eyas_module_t* module = NULL;
  put_module(&file, 1);  // there is one parameter
  CHECK_FAILS(eyas_module_from_memory(file.data, file.length, &options, NULL, NULL, &module),
              CORRUPT, "state 1 'bytes' has an impossible type, first value or name");
  put_module(&file, 0);
  if (!CHECK_OK(eyas_module_from_memory(file.data, file.length, &options, NULL, NULL, &module)))
    return 1;
  CHECK(eyas_module_state_count(module) == 2 && !eyas_module_state(module, 2));
  for (size_t i = 0; i < eyas_hal_driver_count(); ++i) test_on(eyas_hal_driver_name(i), module);
  eyas_module_release(module);
  return check_summary("state");
}
