// What the loader refuses: each malformed executable with a message that names the fault.
#include "vmvx/assemble.h"

#define REFUSED(header, code, text)                                        \
  do {                                                                     \
    eyas_vmvx_executable_t* executable_ = NULL;                            \
    CHECK_FAILS(load_function(header, code, &executable_), CORRUPT, text); \
    CHECK(executable_ == NULL);                                            \
  } while (0)

static const header_t plain = {
    .scalars = 4, .tiles = 4, .bindings = 2, .constants = 1, .writes = 2};

// One instruction that must be refused, then a return.
#define REFUSED_OP(text, name, ...) \
  do {                              \
    static bytes_t code_;           \
    code_.count = 0;                \
    OP(&code_, name, __VA_ARGS__);  \
    RETURN(&code_);                 \
    REFUSED(plain, &code_, text);   \
  } while (0)

static void test_container(void) {
  static bytes_t code, good, bad;
  RETURN(&code);
  put_start(&good, 2);
  put_function(&good, (header_t){.name = "first", .data = "abc", .data_bytes = 3}, &code);
  put_function(&good, (header_t){.name = "second", .bindings = 1, .constants = 2, .writes = 1},
               &code);
  eyas_vmvx_executable_t* executable = NULL;
  CHECK_OK(load_bytes(&good, &executable));
  CHECK(eyas_vmvx_function_count(executable) == 2);
  const eyas_vmvx_function_t* function = NULL;
  CHECK_OK(eyas_vmvx_lookup(executable, "second", &function));
  CHECK(function == eyas_vmvx_function(executable, 1));
  CHECK(strcmp(eyas_vmvx_function_name(function), "second") == 0);
  CHECK(eyas_vmvx_function_bindings(function) == 1 && eyas_vmvx_function_constants(function) == 2);
  CHECK(eyas_vmvx_function_writes(function, 0) && !eyas_vmvx_function_writes(function, 1));
  CHECK(eyas_vmvx_function(executable, 2) == NULL);
  CHECK_FAILS(eyas_vmvx_lookup(executable, "third", &function), NOT_FOUND, "no function 'third'");
  eyas_vmvx_unload(executable);

  for (size_t cut = 0; cut < good.count; ++cut) {  // every length that is too short
    bad = good;
    bad.count = cut;
    eyas_status_t status = load_bytes(&bad, &executable);
    CHECK(eyas_status_code(status) == EYAS_STATUS_CORRUPT ||
          eyas_status_code(status) == EYAS_STATUS_INCOMPATIBLE);
    eyas_status_free(status);
  }
  bad = good;
  put(&bad, 0, 1);
  CHECK_FAILS(load_bytes(&bad, &executable), CORRUPT, "1 bytes follow its last function");
  bad = good;
  bad.data[0] = 'X';
  CHECK_FAILS(load_bytes(&bad, &executable), CORRUPT, "EYVX");
  bad = good;
  bad.data[4] ^= 0x40;
  CHECK_FAILS(load_bytes(&bad, &executable), INCOMPATIBLE, "version");
  bad = good;
  bad.data[8] = 3;
  CHECK_FAILS(load_bytes(&bad, &executable), CORRUPT, "number of functions");
  memset(bad.data + 8, 0xFF, 4);
  CHECK_FAILS(load_bytes(&bad, &executable), CORRUPT, "number of functions");
}

static void test_headers(void) {
  static bytes_t code;
  code.count = 0;
  RETURN(&code);
  REFUSED(((header_t){.scalars = 4097}), &code, "4097 scalar registers; the limit is 4096");
  REFUSED(((header_t){.tiles = EYAS_VMVX_MAX_TILES + 1}), &code, " tile registers; the limit is");
  REFUSED(((header_t){.bindings = 257}), &code, "257 bindings");
  REFUSED(((header_t){.constants = 257}), &code, "257 constants");
  REFUSED(((header_t){.bindings = 2, .writes = 4}), &code, "bindings beyond its 2");
  code.count = 0;
  REFUSED(plain, &code, "impossible length of 0");
  put(&code, EYAS_VMVX_OP_RETURN, 2);
  put(&code, 0, 1);
  REFUSED(plain, &code, "impossible length of 3");
  code.count = 0;
  OP(&code, MOV, 0, 1);
  REFUSED(plain, &code, "runs off its end");
  code.count = 0;
  put(&code, EYAS_VMVX_OP_CONST, 2);
  put(&code, 0, 2);
  REFUSED(plain, &code, "the code ends inside it");
}

static void test_operands(void) {
  static bytes_t code;
  for (uint32_t op = 0; op < 0xFFFF; op += op < 0x1000 ? 1 : 0x101) {
    if (eyas_vmvx_op_info(op).name) continue;
    code.count = 0;
    put(&code, op, 2);
    RETURN(&code);
    REFUSED(plain, &code, "it is not an instruction");
  }
  REFUSED_OP("a scalar register is out of range", ADD, 4, 0, 0);
  REFUSED_OP("a scalar register is out of range", ADD, 0, 0, 4);
  REFUSED_OP("a scalar register is out of range", LOOP, 0, 0, 65535, 0);
  REFUSED_OP("a tile register is out of range", TMOV, 4, 0, 0, 0);
  REFUSED_OP("a tile register is out of range", TMOV, 0, 4, 0, 0);
  REFUSED_OP("not 1 to 63", SEXT, 0, 0, 0);
  REFUSED_OP("not 1 to 63", SEXT, 0, 0, 64);
  REFUSED_OP("not 1 to 63", ZEXT, 0, 0, 64);
  REFUSED_OP("not 1 to 64", CLZ, 0, 0, 65);
  REFUSED_OP("not 1 to 64", CTZ, 0, 0, 0);
  REFUSED_OP("not 1 to 64", FFPTOSI_F32, 0, 0, 65);
  REFUSED_OP("not 1 to 64", FFPTOUI_F64, 0, 0, 0);
  REFUSED_OP("an axis is not 0, 1 or 2", WORKGROUP, 0, 3);
  REFUSED_OP("a constant is out of range", CONSTANT, 0, 1);
  REFUSED_OP("a binding is out of range", BINDING, 0, 2);
  REFUSED_OP("a binding is out of range", BINDING_BYTES, 0, 2);
  REFUSED_OP("outside of the function's data", DATA, 0, 1);
  REFUSED_OP("outside of the function's data", DATA, 0, -1);
  REFUSED_OP("a memory type is unknown", LOAD, 0, 0, 0, 11);
  REFUSED_OP("a memory type is unknown", STORE, 0, 0, 0, 65535);
  REFUSED_OP("a memory type is unknown", LOAD_AT, 0, 0, 0, 11);
  REFUSED_OP("a memory type is unknown", STORE_AT, 0, 0, 0, 11);
  REFUSED_OP("a memory type is unknown", FILL, 0, 0, 0, 11);
  REFUSED_OP("a memory type is unknown", TLOAD, 0, 0, 0, 0, 11, 0);
  REFUSED_OP("a memory type is unknown", TLOAD_INSIDE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 11);
  REFUSED_OP("a memory type is unknown", TSTORE, 0, 0, 0, 0, 11, 0, 1);
  REFUSED_OP("a memory type is unknown", TGATHER, 0, 0, 0, 11, 0);
  REFUSED_OP("a type is unknown", TFILL, 0, 0, 6, 0);
  REFUSED_OP("a type is unknown", TMOV, 0, 0, 6, 0);
  REFUSED_OP("a type is unknown", TEXTRACT, 0, 0, 0, 6);
  REFUSED_OP("elements are not of", TPICK, 0, 0, 0, 0, 3, 0);
  REFUSED_OP("distinct is not 0 or 1", TSTORE, 0, 0, 0, 0, 0, 0, 2);
  REFUSED_OP("an axis is not 0 or 1", TREDUCE_FADD_F32, 0, 0, 2);
}

static void test_modes(void) {
  REFUSED_OP("modes have unknown bits", TFADD_F32, 0, 0, 0, 256);
  REFUSED_OP("lacks a dimension", TFADD_F32, 0, 0, 0, 1 << 6);               // FULL to ROW
  REFUSED_OP("lacks a dimension", TFADD_F32, 0, 0, 0, 1 << 6 | 1 | 2 << 2);  // ROW, COLUMN to ROW
  REFUSED_OP("lacks a dimension", TFNEG_F32, 0, 0, 3 << 6 | 2);              // COLUMN to ONE
  REFUSED_OP("lacks a dimension", TFNEG_F32, 0, 0, 1 << 2);  // a second operand's bits
  REFUSED_OP("lacks a dimension", TLOAD, 0, 0, 0, 0, 0, 1);  // any operand's bits
  REFUSED_OP("lacks a dimension", TSTORE, 0, 0, 0, 0, 0, 2 << 6, 1);
  REFUSED_OP("lacks a dimension", TPICK, 0, 0, 0, 0, 4, 2 << 6 | 2 | 2 << 2 | 1 << 4);
}

static void test_labels(void) {
  static const uint32_t wrong[] = {1, 2, 4, 8, 100, 0xFFFFFFFE, 0xFFFFFFFF};
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
    static bytes_t code;
    code.count = 0;
    OP(&code, BR_IF, 0, wrong[i]);  // 8 bytes
    RETURN(&code);                  // ends at byte 10
    if (wrong[i] == 8) continue;
    REFUSED(plain, &code, "a branch goes to something that is not an instruction");
  }
}

// Bytes at random: nothing but a refusal or a function that could be run.
static void test_noise(void) {
  static bytes_t code, b;
  uint64_t state = 1;
  for (int round = 0; round < 20000; ++round) {
    code.count = 0;
    for (int i = 0; i < 24; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      put(&code, (state >> 33) % (round % 2 ? 8 : EYAS_VMVX_OP_LIMIT), 2);
    }
    RETURN(&code);
    put_start(&b, 1);
    put_function(&b, (header_t){.name = "f", .scalars = 4, .tiles = 4, .bindings = 2}, &code);
    eyas_vmvx_executable_t* executable = NULL;
    eyas_status_t status = load_bytes(&b, &executable);
    CHECK((status == NULL) == (executable != NULL));
    eyas_status_free(status);
    eyas_vmvx_unload(executable);
  }
}

static void test_settings(void) {
  eyas_vmvx_settings_t settings;
  CHECK_FAILS(eyas_vmvx_settings(NULL, 3, &settings), INVALID_ARGUMENT,
              "width of VMVX tiles is 3; allowed are 1, 2, 4 and 8");
  CHECK_FAILS(eyas_vmvx_settings(NULL, 16, &settings), INVALID_ARGUMENT, "tiles is 16");
  CHECK_FAILS(eyas_vmvx_settings("none-such", 0, &settings), INVALID_ARGUMENT,
              "no VMVX microkernels 'none-such'; it has: ");
  CHECK_OK(eyas_vmvx_settings("portable", 4, &settings));
  CHECK(strcmp(settings.products->name, "portable") == 0 && settings.width == 4);
  CHECK_OK(eyas_vmvx_settings("", 0, &settings));
  CHECK(settings.width == settings.products->width);
  static bytes_t code;
  for (unsigned width = 1; width <= 8; width *= 2) {
    code.count = 0;
    OP(&code, WIDTH, 1);
    OP(&code, BINDING, 0, 0);
    OP(&code, STORE, 1, 0, 0, EYAS_VMVX_MEMORY_I64);
    RETURN(&code);
    int64_t seen = 0;
    CHECK_OK(launch((header_t){.scalars = 2, .bindings = 1, .writes = 1}, &code,
                    (launch_t){.bindings = {{&seen, 8}}, .width = width}));
    CHECK(seen == width);
  }
}

int main(void) {
  test_container();
  test_headers();
  test_operands();
  test_modes();
  test_labels();
  test_noise();
  test_settings();
  return check_summary("vmvx/verify");
}
