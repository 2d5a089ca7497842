// The kernels of the conformance tests as SPIR-V, in an executable file of that format.
//
// They use what every device has: 32-bit integers. An int64 is two words, low and high; constants
// are not negative. Bindings may start anywhere, so that each has its residual among the words.
#ifndef EYAS_TESTS_HAL_SPIRV_KERNELS_H_
#define EYAS_TESTS_HAL_SPIRV_KERNELS_H_

#include <stdint.h>
#include <string.h>

//===-- Assembler -------------------------------------------------------------------------------//

typedef struct spirv_t {
  uint32_t words[1024];
  uint32_t count;
  uint32_t next_id;
} spirv_t;

enum {
  OP_MEMORY_MODEL = 14,
  OP_ENTRY_POINT = 15,
  OP_EXECUTION_MODE = 16,
  OP_CAPABILITY = 17,
  OP_TYPE_VOID = 19,
  OP_TYPE_BOOL = 20,
  OP_TYPE_INT = 21,
  OP_TYPE_VECTOR = 23,
  OP_TYPE_ARRAY = 28,
  OP_TYPE_RUNTIME_ARRAY = 29,
  OP_TYPE_STRUCT = 30,
  OP_TYPE_POINTER = 32,
  OP_TYPE_FUNCTION = 33,
  OP_CONSTANT = 43,
  OP_FUNCTION = 54,
  OP_FUNCTION_END = 56,
  OP_VARIABLE = 59,
  OP_LOAD = 61,
  OP_STORE = 62,
  OP_ACCESS_CHAIN = 65,
  OP_ARRAY_LENGTH = 68,
  OP_DECORATE = 71,
  OP_MEMBER_DECORATE = 72,
  OP_I_ADD = 128,
  OP_I_SUB = 130,
  OP_I_MUL = 132,
  OP_SELECT = 169,
  OP_I_EQUAL = 170,
  OP_U_LESS_THAN = 176,
  OP_SHIFT_RIGHT = 194,
  OP_BITWISE_OR = 197,
  OP_ATOMIC_COMPARE_EXCHANGE = 230,
  OP_SELECTION_MERGE = 247,
  OP_LABEL = 248,
  OP_BRANCH = 249,
  OP_BRANCH_CONDITIONAL = 250,
  OP_RETURN = 253,
  INPUT = 1,
  PUSH_CONSTANT = 9,
  STORAGE_BUFFER = 12,
  MAX_BUFFERS = 3,
};

static inline void spirv_put(spirv_t* s, uint32_t opcode, const uint32_t* operands,
                             uint32_t count) {
  s->words[s->count++] = (count + 1) << 16 | opcode;
  if (count) memcpy(s->words + s->count, operands, count * sizeof(*operands));
  s->count += count;
}

#define SPV(s, opcode, ...)                                 \
  spirv_put((s), (opcode), (const uint32_t[]){__VA_ARGS__}, \
            sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

// Fixed ids.
enum {
  MAIN = 1,
  VOID,
  FUNCTION,
  BOOL,
  U32,
  VECTOR,
  GRID_POINTER,
  GRID,
  GRID_U32,
  ARRAY,
  BLOCK,
  BLOCK_POINTER,
  BUFFER_U32,
  WORD_COUNT,
  WORD_ARRAY,
  WORD_BLOCK,
  WORD_POINTER,
  WORDS,
  WORD_U32,
  BUFFERS,
  NUMBERS = BUFFERS + MAX_BUFFERS,  // constants 0 to 15
  FIRST_FREE = NUMBERS + 16,
};

// An instruction with a result of type u32.
static inline uint32_t spirv_put_u32(spirv_t* s, uint32_t opcode, const uint32_t* operands,
                                     uint32_t count) {
  uint32_t all[10] = {U32, s->next_id++};
  memcpy(all + 2, operands, count * sizeof(*operands));
  spirv_put(s, opcode, all, count + 2);
  return all[1];
}

#define SPV_U32(s, opcode, ...)                                 \
  spirv_put_u32((s), (opcode), (const uint32_t[]){__VA_ARGS__}, \
                sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

// Everything before the body of a kernel with these descriptors and words.
static inline void spirv_begin(spirv_t* s, uint32_t buffers, uint32_t words) {
  s->count = 5;
  s->next_id = FIRST_FREE;
  SPV(s, OP_CAPABILITY, 1);
  SPV(s, OP_MEMORY_MODEL, 0, 1);
  SPV(s, OP_ENTRY_POINT, 5, MAIN, 0x6e69616d, 0, GRID);  // "main"
  SPV(s, OP_EXECUTION_MODE, MAIN, 17, 1, 1, 1);
  SPV(s, OP_DECORATE, GRID, 11, 26);  // the workgroup's position
  SPV(s, OP_DECORATE, ARRAY, 6, 4);
  SPV(s, OP_DECORATE, BLOCK, 2);
  SPV(s, OP_MEMBER_DECORATE, BLOCK, 0, 35, 0);
  SPV(s, OP_DECORATE, WORD_ARRAY, 6, 4);
  SPV(s, OP_DECORATE, WORD_BLOCK, 2);
  SPV(s, OP_MEMBER_DECORATE, WORD_BLOCK, 0, 35, 0);
  for (uint32_t i = 0; i < buffers; ++i) {
    SPV(s, OP_DECORATE, BUFFERS + i, 34, 0);
    SPV(s, OP_DECORATE, BUFFERS + i, 33, i);
  }
  SPV(s, OP_TYPE_VOID, VOID);
  SPV(s, OP_TYPE_FUNCTION, FUNCTION, VOID);
  SPV(s, OP_TYPE_BOOL, BOOL);
  SPV(s, OP_TYPE_INT, U32, 32, 0);
  SPV(s, OP_TYPE_VECTOR, VECTOR, U32, 3);
  SPV(s, OP_TYPE_POINTER, GRID_POINTER, INPUT, VECTOR);
  SPV(s, OP_TYPE_POINTER, GRID_U32, INPUT, U32);
  SPV(s, OP_VARIABLE, GRID_POINTER, GRID, INPUT);
  for (uint32_t i = 0; i < 16; ++i) SPV(s, OP_CONSTANT, U32, NUMBERS + i, i);
  SPV(s, OP_TYPE_RUNTIME_ARRAY, ARRAY, U32);
  SPV(s, OP_TYPE_STRUCT, BLOCK, ARRAY);
  SPV(s, OP_TYPE_POINTER, BLOCK_POINTER, STORAGE_BUFFER, BLOCK);
  SPV(s, OP_TYPE_POINTER, BUFFER_U32, STORAGE_BUFFER, U32);
  for (uint32_t i = 0; i < buffers; ++i) {
    SPV(s, OP_VARIABLE, BLOCK_POINTER, BUFFERS + i, STORAGE_BUFFER);
  }
  SPV(s, OP_CONSTANT, U32, WORD_COUNT, words);
  SPV(s, OP_TYPE_ARRAY, WORD_ARRAY, U32, WORD_COUNT);
  SPV(s, OP_TYPE_STRUCT, WORD_BLOCK, WORD_ARRAY);
  SPV(s, OP_TYPE_POINTER, WORD_POINTER, PUSH_CONSTANT, WORD_BLOCK);
  SPV(s, OP_TYPE_POINTER, WORD_U32, PUSH_CONSTANT, U32);
  SPV(s, OP_VARIABLE, WORD_POINTER, WORDS, PUSH_CONSTANT);
  SPV(s, OP_FUNCTION, VOID, MAIN, 0, FUNCTION);
  SPV(s, OP_LABEL, s->next_id++);
}

static inline void spirv_end(spirv_t* s) {
  spirv_put(s, OP_RETURN, NULL, 0);
  spirv_put(s, OP_FUNCTION_END, NULL, 0);
  const uint32_t header[5] = {0x07230203, 0x00010300, 0, s->next_id, 0};
  memcpy(s->words, header, sizeof(header));
}

static inline uint32_t spirv_load_at(spirv_t* s, uint32_t type, uint32_t variable, uint32_t first,
                                     uint32_t second) {
  const uint32_t pointer = s->next_id++;
  if (second) {
    SPV(s, OP_ACCESS_CHAIN, type, pointer, variable, first, second);
  } else {
    SPV(s, OP_ACCESS_CHAIN, type, pointer, variable, first);
  }
  return SPV_U32(s, OP_LOAD, pointer);
}

static inline uint32_t spirv_word(spirv_t* s, uint32_t index) {
  return spirv_load_at(s, WORD_U32, WORDS, NUMBERS, NUMBERS + index);
}

static inline uint32_t spirv_position(spirv_t* s, uint32_t dimension) {
  return spirv_load_at(s, GRID_U32, GRID, NUMBERS + dimension, 0);
}

// Where the words of an int64 begin, in a buffer whose residual is one of the words.
static inline uint32_t spirv_index(spirv_t* s, uint32_t element, uint32_t residual) {
  const uint32_t words = SPV_U32(s, OP_SHIFT_RIGHT, spirv_word(s, residual), NUMBERS + 2);
  const uint32_t doubled = SPV_U32(s, OP_I_MUL, element, NUMBERS + 2);
  return SPV_U32(s, OP_I_ADD, doubled, words);
}

static inline void spirv_store(spirv_t* s, uint32_t buffer, uint32_t index, uint32_t value) {
  const uint32_t pointer = s->next_id++;
  SPV(s, OP_ACCESS_CHAIN, BUFFER_U32, pointer, BUFFERS + buffer, NUMBERS, index);
  SPV(s, OP_STORE, pointer, value);
}

// target[to] = source[from] + amount
static inline void spirv_add_i64(spirv_t* s, uint32_t source, uint32_t from, uint32_t target,
                                 uint32_t to, uint32_t amount) {
  const uint32_t from_high = SPV_U32(s, OP_I_ADD, from, NUMBERS + 1);
  const uint32_t to_high = SPV_U32(s, OP_I_ADD, to, NUMBERS + 1);
  const uint32_t low = spirv_load_at(s, BUFFER_U32, BUFFERS + source, NUMBERS, from);
  const uint32_t high = spirv_load_at(s, BUFFER_U32, BUFFERS + source, NUMBERS, from_high);
  const uint32_t sum = SPV_U32(s, OP_I_ADD, low, amount);
  const uint32_t carries = s->next_id++;
  SPV(s, OP_U_LESS_THAN, BOOL, carries, sum, low);
  const uint32_t carry = SPV_U32(s, OP_SELECT, carries, NUMBERS + 1, NUMBERS);
  spirv_store(s, target, to, sum);
  spirv_store(s, target, to_high, SPV_U32(s, OP_I_ADD, high, carry));
}

//===-- Kernels ---------------------------------------------------------------------------------//

static inline void spirv_kernel_add(spirv_t* s) {
  spirv_begin(s, 1, 4);
  const uint32_t z = SPV_U32(s, OP_I_MUL, spirv_position(s, 2), spirv_word(s, 2));
  const uint32_t y = SPV_U32(s, OP_I_ADD, z, spirv_position(s, 1));
  const uint32_t row = SPV_U32(s, OP_I_MUL, y, spirv_word(s, 1));
  const uint32_t element = SPV_U32(s, OP_I_ADD, row, spirv_position(s, 0));
  const uint32_t index = spirv_index(s, element, 3);
  spirv_add_i64(s, 0, index, 0, index, spirv_word(s, 0));
  spirv_end(s);
}

static inline void spirv_kernel_reverse(spirv_t* s) {
  spirv_begin(s, 2, 3);
  const uint32_t last = SPV_U32(s, OP_I_SUB, spirv_word(s, 0), NUMBERS + 1);
  const uint32_t other = SPV_U32(s, OP_I_SUB, last, spirv_position(s, 0));
  const uint32_t from = spirv_index(s, other, 1), to = spirv_index(s, spirv_position(s, 0), 2);
  spirv_add_i64(s, 0, from, 1, to, NUMBERS + 1);
  spirv_end(s);
}

static inline void spirv_kernel_fail(spirv_t* s) {
  spirv_begin(s, 1, 2);
  const uint32_t x = spirv_position(s, 0), bad = spirv_word(s, 0);
  const uint32_t condition = s->next_id++, inside = s->next_id++, after = s->next_id++;
  SPV(s, OP_I_EQUAL, BOOL, condition, x, bad);
  SPV(s, OP_SELECTION_MERGE, after, 0);
  SPV(s, OP_BRANCH_CONDITIONAL, condition, inside, after);
  SPV(s, OP_LABEL, inside);
  const uint32_t report = SPV_U32(s, OP_BITWISE_OR, spirv_word(s, 1), NUMBERS + 1);
  const uint32_t pointer = s->next_id++;
  SPV(s, OP_ACCESS_CHAIN, BUFFER_U32, pointer, BUFFERS, NUMBERS, NUMBERS);
  (void)SPV_U32(s, OP_ATOMIC_COMPARE_EXCHANGE, pointer, NUMBERS + 1, NUMBERS, NUMBERS, report,
                NUMBERS);
  SPV(s, OP_BRANCH, after);
  SPV(s, OP_LABEL, after);
  spirv_end(s);
}

static inline void spirv_kernel_size(spirv_t* s) {
  spirv_begin(s, 1, 1);
  const uint32_t words = SPV_U32(s, OP_ARRAY_LENGTH, BUFFERS, 0);
  const uint32_t bytes = SPV_U32(s, OP_I_MUL, words, NUMBERS + 4);
  const uint32_t own = SPV_U32(s, OP_I_SUB, bytes, spirv_word(s, 0));
  const uint32_t index = spirv_index(s, NUMBERS, 0);
  spirv_store(s, 0, index, own);
  spirv_store(s, 0, SPV_U32(s, OP_I_ADD, index, NUMBERS + 1), NUMBERS);
  spirv_end(s);
}

//===-- The file --------------------------------------------------------------------------------//

enum { SPIRV_RECORD_WORDS = 32, SPIRV_HEADER_WORDS = 4 };

typedef struct spirv_file_t {
  uint32_t words[4096];
  uint32_t count;  // words
} spirv_file_t;

typedef struct spirv_export_t {
  const char* name;  // at most 8 characters
  void (*write)(spirv_t* s);
  uint32_t bindings, constants, flags, writes;
} spirv_export_t;

static inline void spirv_write_file(spirv_file_t* file, const spirv_export_t* exports,
                                    uint32_t count) {
  static spirv_t code;
  memset(file, 0, sizeof(*file));
  file->count = SPIRV_HEADER_WORDS + count * SPIRV_RECORD_WORDS;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t* record = file->words + SPIRV_HEADER_WORDS + i * SPIRV_RECORD_WORDS;
    const spirv_export_t* e = &exports[i];
    record[0] = 4 * file->count;
    record[1] = (uint32_t)strlen(e->name);
    memcpy(file->words + file->count, e->name, record[1]);
    file->count += 2;
    e->write(&code);
    record[2] = 4 * file->count;
    record[3] = 4 * code.count;
    memcpy(file->words + file->count, code.words, record[3]);
    file->count += code.count;
    record[4] = e->bindings;
    record[5] = e->constants;
    record[6] = record[7] = record[8] = 1;
    record[9] = e->flags;
    record[16] = e->writes;
    record[24] = (1u << e->bindings) - 1;  // all are unaligned
  }
  memcpy(file->words, "EYSV", 4);
  file->words[1] = 1;
  file->words[2] = count;
  file->words[3] = 4 * file->count;
}

static inline void spirv_write_kernels(spirv_file_t* file) {
  static const spirv_export_t kernels[] = {
      {"add", spirv_kernel_add, 1, 3, 0, 1},
      {"reverse", spirv_kernel_reverse, 2, 1, 0, 2},
      {"fail", spirv_kernel_fail, 0, 1, 1, 0},
      {"size", spirv_kernel_size, 1, 0, 0, 1},
  };
  spirv_write_file(file, kernels, 4);
}

#endif  // EYAS_TESTS_HAL_SPIRV_KERNELS_H_
