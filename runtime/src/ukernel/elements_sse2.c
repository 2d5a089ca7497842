// x86-64 with nothing but SSE2, which all have: what most networks are made of.
#include "ukernel/elements.h"

#if defined(__x86_64__)
#define SET sse2
#define HOT_ONLY
#define FLOATS_ONLY
#define BASIC_ONLY
#include "ukernel/elements_set.inc"
#endif
