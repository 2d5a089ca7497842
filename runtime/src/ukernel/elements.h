// What the sets of element microkernels share. A set is one compilation of `elements_set.inc`; its
// fill function writes the entries that it has over those of a simpler set.
#ifndef EYAS_UKERNEL_ELEMENTS_H_
#define EYAS_UKERNEL_ELEMENTS_H_

#include "ukernel/ukernel.h"

void eyas_uk_elements_fill_portable(eyas_uk_elements_t* table);
#if defined(__x86_64__)
void eyas_uk_elements_fill_avx2(eyas_uk_elements_t* table);
void eyas_uk_elements_fill_avx512(eyas_uk_elements_t* table);
#endif

// Bytes of an element of a result and of an operand.
typedef struct eyas_uk_sizes_t {
  size_t dst, operand;
} eyas_uk_sizes_t;

// An instruction with one operand repeated, by the function for two that run along: most have no
// loops of their own for this, which would triple the code.
void eyas_uk_repeat_second(eyas_uk_binary_t function, eyas_uk_sizes_t sizes, void* dst,
                           const void* a, const void* b, size_t count);
void eyas_uk_repeat_first(eyas_uk_binary_t function, eyas_uk_sizes_t sizes, void* dst,
                          const void* a, const void* b, size_t count);

// A conversion to wider elements in place: from the end, so that nothing is overwritten unread.
void eyas_uk_widen_in_place(eyas_uk_unary_t function, eyas_uk_sizes_t sizes, void* tile,
                            size_t count);

#endif  // EYAS_UKERNEL_ELEMENTS_H_
