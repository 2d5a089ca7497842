// What the sets of element microkernels share. A set is one compilation of `elements_set.inc`; its
// fill function writes the entries that it has over those of a simpler set.
#ifndef EYAS_UKERNEL_ELEMENTS_H_
#define EYAS_UKERNEL_ELEMENTS_H_

#include "ukernel/ukernel.h"

void eyas_uk_elements_fill_portable(eyas_uk_elements_t* table);
#if defined(__x86_64__)
void eyas_uk_elements_fill_sse2(eyas_uk_elements_t* table);
void eyas_uk_elements_fill_avx2(eyas_uk_elements_t* table);
void eyas_uk_elements_fill_avx512(eyas_uk_elements_t* table);
#elif defined(__riscv) && __riscv_xlen == 64
void eyas_uk_elements_fill_rvv(eyas_uk_elements_t* table);
#endif

// How most entries of the tables are made: a loop over whole blocks of elements, which needs no
// code for a rest, and one of these functions around it, which pads the rest to a block. They take
// what an entry takes, and then the loop, so that an entry is a jump. `sizes` says how many
// elements a block has, and the bytes of an element of result and operands.
#define EYAS_UK_SIZES(block, dst, operand) ((unsigned)((block) << 16 | (dst) << 8 | (operand)))

// The result may be the operand's tile, also when its elements are wider.
void eyas_uk_blocks_v(void* dst, const void* a, size_t count, eyas_uk_unary_t loop, unsigned sizes);
void eyas_uk_blocks_vv(void* dst, const void* a, const void* b, size_t count, eyas_uk_binary_t loop,
                       unsigned sizes);

#endif  // EYAS_UKERNEL_ELEMENTS_H_
