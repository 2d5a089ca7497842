// The set for every CPU, and the reference for the others: plain C for the compiler's own target.
#define SET portable
#if defined(__x86_64__)  // where other sets have the vectors
#define PLAIN_LOOPS
#endif
#include "ukernel/elements_set.inc"
