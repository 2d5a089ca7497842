// The set for every CPU, and the reference for the others: plain C for the compiler's own target.
#define SET portable
#include "ukernel/elements_set.inc"
