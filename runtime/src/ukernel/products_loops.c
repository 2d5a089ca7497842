// The loops of a contraction around its register blocks.
#include <stdbool.h>

#include "ukernel/products.h"

eyas_uk_contract_t eyas_uk_with_merged_loops(const eyas_uk_contract_t* call) {
  eyas_uk_contract_t merged = *call;
  eyas_uk_loop_t *inner = &merged.loops[2], *outer = &merged.loops[1];
  for (int level = 0; level < 2; ++level) {
    int64_t steps;
    if (inner->extent == 1) {
      *inner = *outer;
    } else if (outer->a_bytes == inner->extent * inner->a_bytes &&
               outer->b_bytes == inner->extent * inner->b_bytes && inner->extent > 0 &&
               outer->extent > 0 && !__builtin_mul_overflow(inner->extent, outer->extent, &steps)) {
      inner->extent = steps;
    } else if (outer->extent != 1) {
      break;
    }
    *outer = merged.loops[0];
    merged.loops[0] = (eyas_uk_loop_t){1, 0, 0};
  }
  return merged;
}

// Reads a byte and forgets it.
static inline void touch(const char* p) {
  char byte = *(const volatile char*)p;
  (void)byte;
}

// Panels may come from memory: what is read AHEAD steps later is asked for, and in the last steps
// the beginning of the panels behind these. Short loops stay whole, two of them together, since a
// cut costs a pass of the accumulators through memory.
void eyas_uk_run_loops(const eyas_uk_contract_t* call, eyas_uk_block_t block, int64_t panels,
                       eyas_uk_block_fn_t run) {
  enum { AHEAD = 128, PAGE = 64 };
  const eyas_uk_loop_t *x = &call->loops[0], *y = &call->loops[1], *z = &call->loops[2];
  const char *a = block.a, *b = block.b;
  const bool is_short = z->extent <= 2 * AHEAD;
  block.turns = is_short && block.turns ? y->extent : 1;
  block.a_turn = y->a_bytes - z->extent * z->a_bytes;
  block.b_turn = y->b_bytes - z->extent * z->b_bytes;
  for (int64_t i = 0; i < x->extent; ++i) {
    for (int64_t j = 0; j < y->extent; j += block.turns) {
      const bool is_last = i == x->extent - 1 && j + block.turns == y->extent;
      block.a = a + i * x->a_bytes + j * y->a_bytes;
      block.b = b + i * x->b_bytes + j * y->b_bytes;
      for (int64_t left = z->extent; left > 0; left -= block.steps) {
        block.steps = left;
        block.ahead = AHEAD * z->b_bytes;
        if (is_short) {
          if (is_last) block.ahead = panels * call->b_panel_bytes;
        } else if (left > AHEAD) {
          if (is_last) block.steps = left - AHEAD;
          // Processors drop requests for pages whose translation they lack. Several panels find
          // their translations side by side; one panel alone has the pages that come touched.
          if (panels == 1) {
            if (block.steps > AHEAD) block.steps = AHEAD;
            touch(block.b + block.ahead);
            if (left > AHEAD + PAGE) touch(block.b + (AHEAD + PAGE) * z->b_bytes);
          }
        } else if (is_last) {
          block.ahead = b - block.b + panels * call->b_panel_bytes + (AHEAD - left) * z->b_bytes;
        }
        run(call, block);
        block.a += block.steps * z->a_bytes;
        block.b += block.steps * z->b_bytes;
      }
    }
  }
}
