// How near product microkernels come to the limits of a core: multiply-adds when the operands are
// in its caches, bytes when the weights come from memory. One thread, best of several.
//
//   ukernels blocks [SET]                GFLOP/s of f32 contractions, operands in cache
//   ukernels stream [SET]                GB/s of the same, panels from memory
//   ukernels resnet WIDTH [SET] [ROWS]   products of a ResNet-50 for 28 x 28 images, 94 MB
//   ukernels windows [SET]               depthwise and pooling windows
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "ukernel/ukernel.h"

enum { PANEL = EYAS_VMVX_PANEL };

static _Alignas(64) float tile[EYAS_VMVX_MAX_ELEMENTS];

static double now(void) {
  return (double)eyas_clock_now_ns() * 1e-9;
}

static char* allocate(size_t bytes) {
  char* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) abort();
  for (size_t i = 0; i < bytes / 4; ++i) ((float*)memory)[i] = (float)(i % 17) * 0x1p-6f;
  return memory;
}

static eyas_uk_contract_t product(const char* a, const char* b, size_t rows, size_t columns,
                                  int64_t depth) {
  return (eyas_uk_contract_t){
      .acc = tile,
      .rows = rows,
      .columns = columns,
      .a = a,
      .a_row_bytes = depth * 4,
      .b = b,
      .b_panel_bytes = depth * PANEL * 4,
      .loops = {{1, 0, 0}, {1, 0, 0}, {depth, 4, PANEL * 4}},
  };
}

static void blocks(const eyas_uk_products_t* set, int64_t depth) {
  const char *a = allocate(1 << 20), *b = allocate(1 << 22);
  printf("%s, depth %d: GFLOP/s with operands in the caches\n%6s", set->name, (int)depth, "rows");
  for (size_t width = 1; width <= 8; width *= 2) printf("  width %zu", width);
  printf("\n");
  for (size_t rows = 1; rows <= 16; ++rows) {
    printf("%6zu", rows);
    for (size_t width = 1; width <= 8; width *= 2) {
      const size_t columns = PANEL * width;
      if (rows * columns > EYAS_VMVX_MAX_ELEMENTS) break;
      const eyas_uk_contract_t call = product(a, b, rows, columns, depth);
      const double flops = 2.0 * (double)(rows * columns) * (double)depth;
      const int repeat = (int)(2e7 / flops) + 1;
      double best = 1e9;
      for (int round = 0; round < 10; ++round) {
        const double start = now();
        for (int i = 0; i < repeat; ++i) set->contract[EYAS_VMVX_CONTRACT_F32](&call);
        const double seconds = (now() - start) / repeat;
        if (seconds < best) best = seconds;
      }
      printf("%9.1f", flops / best * 1e-9);
    }
    printf("\n");
  }
}

static void stream(const eyas_uk_products_t* set, int64_t depth) {
  const size_t bytes = 100u << 20;
  const char *a = allocate(1 << 20), *b = allocate(bytes);
  printf("%s, depth %d: GB/s with panels from memory\n%6s", set->name, (int)depth, "rows");
  for (size_t width = 1; width <= 8; width *= 2) printf("  width %zu", width);
  printf("\n");
  for (size_t rows = 1; rows <= 16; ++rows) {
    double best[9] = {0};
    for (int round = 0; round < 3; ++round) {
      for (size_t width = 1; width <= 8; width *= 2) {
        const size_t columns = PANEL * width, step = columns * (size_t)depth * 4;
        if (rows * columns > EYAS_VMVX_MAX_ELEMENTS) break;
        const double start = now();
        size_t read = 0;
        for (; read + step <= bytes; read += step) {
          const eyas_uk_contract_t call = product(a, b + read, rows, columns, depth);
          set->contract[EYAS_VMVX_CONTRACT_F32](&call);
        }
        const double speed = (double)read / (now() - start) * 1e-9;
        if (speed > best[width]) best[width] = speed;
      }
    }
    printf("%6zu", rows);
    for (size_t width = 1; width <= 8; width *= 2) printf("%9.1f", best[width]);
    printf("\n");
  }
}

// Every convolution of the network: output positions, inputs, kernel positions, outputs, how often.
static const struct {
  int positions, inputs, taps, outputs, count;
} layers[] = {
    {196, 3, 49, 64, 1},  {49, 64, 1, 64, 1},   {49, 64, 9, 64, 3},    {49, 64, 1, 256, 4},
    {49, 256, 1, 64, 2},  {49, 256, 1, 128, 1}, {16, 128, 9, 128, 4},  {16, 128, 1, 512, 4},
    {16, 256, 1, 512, 1}, {16, 512, 1, 128, 3}, {16, 512, 1, 256, 1},  {4, 256, 9, 256, 6},
    {4, 256, 1, 1024, 6}, {4, 512, 1, 1024, 1}, {4, 1024, 1, 256, 5},  {4, 1024, 1, 512, 1},
    {1, 512, 9, 512, 3},  {1, 512, 1, 2048, 3}, {1, 1024, 1, 2048, 1}, {1, 2048, 1, 512, 2},
};
enum { LAYERS = sizeof(layers) / sizeof(layers[0]) };

static void resnet(const eyas_uk_products_t* set, size_t width, size_t most_rows) {
  size_t bytes = 0;
  for (int i = 0; i < LAYERS; ++i) {
    bytes += (size_t)(layers[i].inputs * layers[i].taps * layers[i].outputs * 4) *
             (size_t)layers[i].count;
  }
  const char *a = allocate(1 << 21), *b = allocate(bytes);
  double best[LAYERS], total = 0;
  for (int i = 0; i < LAYERS; ++i) best[i] = 1e9;
  const int rounds = 12;
  for (int round = 0; round < rounds; ++round) {
    const char* weights = b;
    for (int i = 0; i < LAYERS; ++i) {
      const int64_t depth = layers[i].inputs * layers[i].taps;
      const size_t positions = (size_t)layers[i].positions, outputs = (size_t)layers[i].outputs;
      const double start = now();
      for (int n = 0; n < layers[i].count; ++n) {
        for (size_t column = 0; column < outputs; column += PANEL * width) {
          size_t columns = outputs - column;
          if (columns > PANEL * width) columns = PANEL * width;
          size_t most = EYAS_VMVX_MAX_ELEMENTS / columns;
          if (most > most_rows) most = most_rows;
          const size_t pieces = (positions + most - 1) / most;
          for (size_t piece = 0, row = 0; piece < pieces; ++piece) {
            const size_t rows = (positions - row + pieces - piece - 1) / (pieces - piece);
            memset(tile, 0, rows * columns * sizeof(float));
            const eyas_uk_contract_t call =
                product(a + row * (size_t)depth * 4, weights + column * (size_t)depth * 4, rows,
                        columns, depth);
            set->contract[EYAS_VMVX_CONTRACT_F32](&call);
            row += rows;
          }
        }
        weights += (size_t)depth * outputs * 4;
      }
      const double seconds = (now() - start) / layers[i].count;
      if (seconds < best[i]) best[i] = seconds;
    }
  }
  printf("%s, width %zu, at most %zu rows\n", set->name, width, most_rows);
  double flops = 0;
  for (int i = 0; i < LAYERS; ++i) {
    const double depth = layers[i].inputs * layers[i].taps;
    const double work = 2 * depth * layers[i].positions * layers[i].outputs,
                 size = 4 * depth * layers[i].outputs;
    printf("%4d x %4d x %4d  %d times  %7.1f us  %6.1f GFLOP/s  %5.1f GB/s\n", layers[i].positions,
           (int)depth, layers[i].outputs, layers[i].count, best[i] * 1e6, work / best[i] * 1e-9,
           size / best[i] * 1e-9);
    total += best[i] * layers[i].count;
    flops += work * layers[i].count;
  }
  printf("all: %.2f ms, %.1f GFLOP/s, %.1f GB/s\n", total * 1e3, flops / total * 1e-9,
         (double)bytes / total * 1e-9);
}

static void windows(const eyas_uk_products_t* set) {
  static const struct {
    const char* name;
    int number, taps, stride;
  } cases[] = {
      {"depthwise 3x3", EYAS_VMVX_WINDOW_MULADD, 3, 1},
      {"depthwise 3x3 / 2", EYAS_VMVX_WINDOW_MULADD, 3, 2},
      {"depthwise 5x5", EYAS_VMVX_WINDOW_MULADD, 5, 1},
      {"maximum 3x3 / 2", EYAS_VMVX_WINDOW_MAXIMUM, 3, 2},
      {"maximum 2x2 / 2", EYAS_VMVX_WINDOW_MAXIMUM, 2, 2},
      {"sum 3x3", EYAS_VMVX_WINDOW_ADD, 3, 1},
  };
  const char *a = allocate(1 << 21), *b = allocate(1 << 16);
  printf("%s: windows, operations a second (1e9)\n%18s", set->name, "");
  for (size_t width = 1; width <= 8; width *= 2) printf("  width %zu", width);
  printf("\n");
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    printf("%18s", cases[i].name);
    for (size_t width = 1; width <= 8; width *= 2) {
      const int64_t pixel = 128 * 4, line = 56 * pixel;
      eyas_uk_window_t call = {
          .acc = tile,
          .rows = 8,
          .columns = PANEL * width,
          .a = a,
          .a_row_bytes = pixel * cases[i].stride,
          .b = b,
          .loops = {{cases[i].taps, line, 128 * 4 * cases[i].taps},
                    {cases[i].taps, pixel, 128 * 4}},
      };
      const int repeat = 2000;
      double best = 1e9;
      for (int round = 0; round < 10; ++round) {
        const double start = now();
        for (int n = 0; n < repeat; ++n) set->window[cases[i].number][EYAS_VMVX_TYPE_F32](&call);
        const double seconds = (now() - start) / repeat;
        if (seconds < best) best = seconds;
      }
      const double work = (double)(8 * PANEL * width) * cases[i].taps * cases[i].taps;
      printf("%9.1f", work * (cases[i].number == EYAS_VMVX_WINDOW_MULADD ? 2 : 1) / best * 1e-9);
    }
    printf("\n");
  }
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "blocks";
  const int is_resnet = strcmp(what, "resnet") == 0;
  const char* name = argc > 2 + is_resnet ? argv[2 + is_resnet] : NULL;
  const eyas_uk_products_t* set = eyas_uk_products(name);
  if (!set) {
    fprintf(stderr, "this CPU has no set of kernels '%s'\n", name ? name : "");
    return 2;
  }
  if (strcmp(what, "blocks") == 0) {
    blocks(set, 256);
  } else if (strcmp(what, "stream") == 0) {
    stream(set, 1024);
  } else if (is_resnet && argc > 2) {
    resnet(set, (size_t)atoi(argv[2]), argc > 4 ? (size_t)atoi(argv[4]) : 8);
  } else if (strcmp(what, "windows") == 0) {
    windows(set);
  } else {
    fprintf(stderr,
            "usage: ukernels blocks|stream|windows [SET] | ukernels resnet WIDTH [SET] [ROWS]\n");
    return 2;
  }
  return 0;
}
