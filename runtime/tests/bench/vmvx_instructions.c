// What one instruction of bytecode costs: loops of one instruction, less the loop itself. Tiles
// have one row of 16, so that set-up is what is measured.
#include "vmvx/assemble.h"  // first: it asks for the table of instructions

#include "base/clock.h"

enum { REPEAT = 16, ROUNDS = 100000 };

static bytes_t code;

static void start(void) {
  code.count = 0;
  static const int64_t values[] = {1, ROUNDS, 3, 5, 16, 4, 64};
  OP(&code, BINDING, 0, 0);
  OP(&code, BINDING, 1, 1);
  for (int i = 0; i < 7; ++i) OP(&code, CONST, 2 + i, values[i]);
  OP(&code, SHAPE, 2, 6);
  for (int i = 0; i < 4; ++i) OP(&code, TFILL, i, 9, EYAS_VMVX_TYPE_F32, 0);
}

// Nanoseconds of the best of five runs; the loop's body begins at `body`.
static double finish(int64_t body) {
  static float memory[2][4096];
  OP(&code, LOOP, 10, 2, 3, body);
  RETURN(&code);
  header_t header = {.scalars = 20, .tiles = 4, .bindings = 2, .writes = 2};
  double best = 1e30;
  for (int i = 0; i < 5; ++i) {
    uint64_t begin = eyas_clock_now_ns();
    eyas_status_t status = launch(
        header, &code,
        (launch_t){.bindings = {{memory[0], sizeof(memory[0])}, {memory[1], sizeof(memory[1])}}});
    double ns = (double)(eyas_clock_now_ns() - begin);
    if (status) {
      fprintf(stderr, "%s\n", eyas_status_message(status));
      exit(1);
    }
    if (ns < best) best = ns;
  }
  return best;
}

static double empty_ns;

#define COST(name, ...)                                                                       \
  do {                                                                                        \
    start();                                                                                  \
    int64_t body = (int64_t)code.count;                                                       \
    for (int i = 0; i < REPEAT; ++i) OP(&code, name, __VA_ARGS__);                            \
    printf("%-16s %6.2f ns\n", #name, (finish(body) - empty_ns) / ((double)REPEAT * ROUNDS)); \
  } while (0)

int main(void) {
  start();
  empty_ns = finish((int64_t)code.count);
  printf("%-16s %6.2f ns\n", "LOOP", empty_ns / ROUNDS);
  COST(ADD, 11, 12, 4);
  COST(MADD, 11, 12, 4, 5);
  COST(LOAD_AT, 11, 0, 4, EYAS_VMVX_MEMORY_F32);
  COST(STORE_AT, 11, 1, 4, EYAS_VMVX_MEMORY_F32);
  COST(FADD_F32, 11, 12, 13);
  COST(FEXP_F32, 11, 12);
  COST(SHAPE, 2, 6);
  COST(TLOAD, 0, 0, 8, 7, EYAS_VMVX_MEMORY_F32, 0);
  COST(TSTORE, 0, 1, 8, 7, EYAS_VMVX_MEMORY_F32, 0, 1);
  COST(TFADD_F32, 0, 1, 2, 0);
  COST(TFMA_F32, 0, 1, 2, 3, 0);
  COST(TCONTRACT_F32, 0, 0, 8, 0, 8, 2, 8, 8, 2, 8, 8, 2, 8, 8);
  return 0;
}
