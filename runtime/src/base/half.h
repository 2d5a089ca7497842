// Conversions of half and bfloat16 that LLVM calls by compiler-rt's names where a processor has no
// instruction for them. Round to nearest, ties to even; subnormals and NaNs as in IEEE 754.
//
// A 16-bit float travels in the low bits of a vector register (x86-64 SysV, AAPCS64), or NaN-boxed
// in a float register (RISC-V lp64d). `eyas_half_carrier_t`, a float whose low 16 bits are the
// value, has that same place in every one of these ABIs, and needs no compiler support.
#ifndef EYAS_BASE_HALF_H_
#define EYAS_BASE_HALF_H_

#include <stdint.h>

typedef float eyas_half_carrier_t;

uint16_t eyas_half_from_double(double value);
uint16_t eyas_bfloat_from_double(double value);
double eyas_half_to_double(uint16_t bits);

eyas_half_carrier_t eyas_truncsfhf2(float value);    // __truncsfhf2
eyas_half_carrier_t eyas_truncdfhf2(double value);   // __truncdfhf2
eyas_half_carrier_t eyas_truncsfbf2(float value);    // __truncsfbf2
eyas_half_carrier_t eyas_truncdfbf2(double value);   // __truncdfbf2
float eyas_extendhfsf2(eyas_half_carrier_t value);   // __extendhfsf2
double eyas_extendhfdf2(eyas_half_carrier_t value);  // __extendhfdf2
float eyas_extendbfsf2(eyas_half_carrier_t value);   // __extendbfsf2

#endif  // EYAS_BASE_HALF_H_
